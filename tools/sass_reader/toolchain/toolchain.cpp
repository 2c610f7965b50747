#include "toolchain/toolchain.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "checks/expectations.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "text.h"
#include "toolchain/process.h"

namespace fs = std::filesystem;

namespace sass {
namespace {

using harness::Error;

/// Anything that changes what build_step keeps must change this number.
constexpr int kCacheFormat = 5;

std::vector<fs::path> search_path(const fs::path& root) {
  std::vector<fs::path> folders;
  if (const char* path = std::getenv("PATH"))
    for (const std::string& folder : split(path, ':'))
      if (!folder.empty()) folders.emplace_back(folder);
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  folders.push_back(root / ".toolchain" / "bin");
  folders.push_back(root / ".toolchain" / "cuda" / "bin");
  const char* system = std::getenv("GEMM_STEPS_SYSTEM_CUDA");
  folders.push_back(fs::path(system != nullptr ? system : "/usr/local/cuda") / "bin");
  return folders;
}

std::vector<std::string> find_programs(const fs::path& root, const std::string& name) {
  std::vector<std::string> found;
  for (const fs::path& folder : search_path(root)) {
    const fs::path candidate = folder / name;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate))
      found.push_back(candidate.string());
  }
  return found;
}

/// "Cuda compilation tools, release 13.0, V13.0.88" -> "13.0.88"
std::string version_of(const std::string& program) {
  std::string output;
  try {
    output = run_process({program, "--version"}).output;
  } catch (const Error&) {
    return "";
  }
  const auto position = output.find(", V");
  if (position == std::string::npos) return "";
  const auto start = position + 3;
  return output.substr(start, output.find_first_not_of("0123456789.", start) - start);
}

std::vector<int> version_numbers(const std::string& version) {
  std::vector<int> numbers;
  for (const std::string& part : split(version, '.')) numbers.push_back(std::atoi(part.c_str()));
  numbers.resize(2);  // the third is a build number
  return numbers;
}

std::string find_disassembler(const fs::path& root, const std::string& name,
                              const std::string& compiler_version) {
  std::string too_old;
  for (const std::string& program : find_programs(root, name)) {
    const std::string version = version_of(program);
    if (!version.empty() && version_numbers(version) >= version_numbers(compiler_version)) return program;
    too_old = version;
  }
  throw MissingTool(
      too_old.empty() ? fmt::format("{} was not found; 'tools/bootstrap' installs it below .toolchain", name)
                      : fmt::format("{} {} is older than nvcc {} and cannot read what it writes; put the one "
                                    "of the same or a newer CUDA Toolkit on the PATH",
                                    name, too_old, compiler_version));
}

/// FNV-1a, 64 bits.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char letter : text) {
      value_ ^= static_cast<unsigned char>(letter);
      value_ *= 0x100000001b3u;
    }
    value_ ^= 0xff;  // between two texts
    value_ *= 0x100000001b3u;
  }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

/// One process at a time works in a folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) {
    fs::create_directories(folder);
    descriptor_ = open((folder / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor_ < 0 || flock(descriptor_, LOCK_EX) != 0)
      throw Error(fmt::format("cannot lock {}: {}", folder.string(), std::strerror(errno)));
  }
  ~FolderLock() { close(descriptor_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// Every file below a folder, by name.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void run_or_throw(const std::vector<std::string>& command, const std::string& what,
                  std::string* output = nullptr) {
  const ProcessResult result = run_process(command);
  if (result.status != 0)
    throw Error(fmt::format("{} failed with status {}:\n{}", what, result.status, result.output));
  if (output != nullptr) *output = result.output;
}

/// The flags of cmake/GemmToolchain.cmake that influence code, without "warnings are errors": what ptxas
/// complains about is for the expectations to report.
std::vector<std::string> compile_command(const Toolchain& toolchain, const std::string& architecture) {
  return {toolchain.nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-lineinfo",
          "-O3",          "-Xptxas=-v", gencode(architecture)};
}

/// Symbols of an ELF executable by value. `loaded_value` is that of the one that tells where the running
/// program was loaded.
std::map<std::uint64_t, std::string> function_symbols(const fs::path& program, std::uint64_t& loaded_value) {
  const std::string bytes = read_file(program);
  const auto fail = [&] { throw Error(fmt::format("{} is not a 64-bit ELF program", program.string())); };
  const auto read_at = [&]<typename T>(std::uint64_t offset, T& value) {
    if (offset + sizeof(T) > bytes.size()) fail();
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  };
  Elf64_Ehdr header;
  read_at(0, header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) fail();

  std::map<std::uint64_t, std::string> symbols;
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    read_at(header.e_shoff + std::uint64_t(i) * header.e_shentsize, section);
    if (section.sh_type != SHT_SYMTAB) continue;
    Elf64_Shdr strings;
    read_at(header.e_shoff + std::uint64_t(section.sh_link) * header.e_shentsize, strings);
    for (std::uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= section.sh_size;
         offset += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      read_at(section.sh_offset + offset, symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const std::uint64_t name = strings.sh_offset + symbol.st_name;
      if (name >= bytes.size()) fail();
      const std::string text(bytes.c_str() + name);
      if (text == "loaded_here") loaded_value = symbol.st_value;
      symbols[symbol.st_value] = text;
    }
  }
  return symbols;
}

/// The program whose compilation holds the kernels, and which tells which kernel belongs to which variant.
std::string step_program(const std::string& step) {
  return fmt::format(R"(// Generated by tools/sass.
#include "kernel.cuh"
#include "print_variants.h"

int main() {{ return print_variants(gemm::step_{}::kStep); }}
)",
                     step.substr(0, 2));
}

std::vector<VariantInfo> parse_variants(const std::string& text,
                                        const std::map<std::uint64_t, std::string>& symbols,
                                        std::uint64_t loaded_value) {
  std::vector<VariantInfo> variants;
  std::uint64_t loaded_address = 0;
  for (const std::string& line : split_lines(text)) {
    const auto fields = split(line, '\t');
    if (fields.size() == 2 && fields[0] == "loaded_here") loaded_address = std::stoull(fields[1]);
    if (fields.size() != 10 || fields[0] != "variant") continue;
    const auto symbol = symbols.find(std::stoull(fields[3]) - loaded_address + loaded_value);
    if (symbol == symbols.end())
      throw Error(fmt::format("variant {} does not name a kernel of its own step", fields[1]));
    const auto number = [&](int index) { return std::atoi(fields[static_cast<std::size_t>(index)].c_str()); };
    variants.push_back({fields[1], fields[2], symbol->second, number(4), number(5), number(6), number(7),
                        number(8), number(9)});
  }
  return variants;
}

}  // namespace

std::string demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  std::string text = status == 0 ? plain.get() : name;
  const auto parameters = text.rfind('(');
  if (parameters != std::string::npos && parameters > 0) text.resize(parameters);
  if (text.starts_with("void ")) text = text.substr(5);
  return text;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(fmt::format("cannot read {}", path.string()));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const fs::path& path, const std::string& text) {
  fs::path part = path;
  part += fmt::format(".part{}", getpid());
  {
    std::ofstream file(part, std::ios::binary);
    file << text;
    if (!file) throw Error(fmt::format("cannot write {}", part.string()));
  }
  fs::rename(part, path);
}

std::string gencode(const std::string& architecture) {
  const std::string number = architecture.starts_with("sm_") ? architecture.substr(3) : architecture;
  return fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number);
}

Toolchain find_toolchain(const fs::path& root) {
  Toolchain toolchain;
  if (const char* chosen = std::getenv("CUDACXX")) {
    toolchain.nvcc = chosen;
  } else {
    const auto compilers = find_programs(root, "nvcc");
    if (compilers.empty())
      throw MissingTool(
          "nvcc was not found; 'tools/bootstrap --cuda' installs a CUDA Toolkit below .toolchain");
    toolchain.nvcc = compilers.front();
  }
  toolchain.compiler_version = version_of(toolchain.nvcc);
  if (toolchain.compiler_version.empty()) throw MissingTool(fmt::format("{} does not run", toolchain.nvcc));
  toolchain.nvdisasm = find_disassembler(root, "nvdisasm", toolchain.compiler_version);
  toolchain.cuobjdump = find_disassembler(root, "cuobjdump", toolchain.compiler_version);
  toolchain.disassembler_version = version_of(toolchain.nvdisasm);
  return toolchain;
}

std::vector<std::string> list_steps(const fs::path& root) {
  std::vector<std::string> steps;
  if (!fs::is_directory(root / "steps")) throw Error(fmt::format("{} has no folder steps", root.string()));
  for (const auto& entry : fs::directory_iterator(root / "steps"))
    if (fs::exists(entry.path() / "kernel.cuh")) steps.push_back(entry.path().filename().string());
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string find_step(const fs::path& root, const std::string& name) {
  std::vector<gemm::Step> steps;
  for (const std::string& step : list_steps(root)) {
    steps.emplace_back();
    steps.back().name = step;
  }
  std::vector<const gemm::Step*> pointers;
  for (const gemm::Step& step : steps) pointers.push_back(&step);
  return harness::find_step(pointers, name).name;
}

const VariantInfo& StepBinary::find_variant(const std::string& name) const {
  gemm::Step registered;
  registered.name = step;
  for (const VariantInfo& variant : variants) {
    registered.variants.emplace_back();
    registered.variants.back().name = variant.name;
  }
  const gemm::Variant& found = harness::find_variant(registered, name);
  return variants[static_cast<std::size_t>(&found - registered.variants.data())];
}

Binary assemble_binary(const std::string& disassembly, const std::string& usage, const std::string& log,
                       const std::string& architecture) {
  Binary binary;
  binary.architecture = architecture;
  try {
    binary.listing = parse_listing(disassembly);
  } catch (const std::invalid_argument& error) {
    throw Error(error.what());
  }
  binary.target = binary.listing.target;
  binary.log = parse_ptxas_log(log);
  binary.usage = parse_resource_usage(usage);
  for (auto& [function, resources] : binary.usage) {
    const auto compiled = binary.log.functions.find(function);
    if (compiled == binary.log.functions.end()) continue;
    // cuobjdump adds the 1 KB that the system keeps of every block's shared memory on sm_90.
    resources.shared_bytes = compiled->second.shared_bytes;
    resources.spill_store_bytes = compiled->second.spill_store_bytes;
    resources.spill_load_bytes = compiled->second.spill_load_bytes;
  }
  return binary;
}

namespace {

std::string disassemble(const Toolchain& toolchain, const fs::path& cubin) {
  const ProcessResult result =
      run_process({toolchain.nvdisasm, "-c", "-gi", "-hex", cubin.string()}, Capture::kOutput);
  if (result.status != 0) throw Error(fmt::format("nvdisasm could not read {}", cubin.string()));
  return result.output;
}

std::string resource_usage(const Toolchain& toolchain, const fs::path& cubin) {
  const ProcessResult result =
      run_process({toolchain.cuobjdump, "--dump-resource-usage", cubin.string()}, Capture::kOutput);
  if (result.status != 0) throw Error(fmt::format("cuobjdump could not read {}", cubin.string()));
  return result.output;
}

/// A line for each variant of the step: what the program says of it, with the name of its kernel in the
/// disassembly.
std::string resolve_variants(const std::string& step, const fs::path& program,
                             const std::string& disassembly) {
  std::uint64_t loaded_value = 0;
  const auto symbols = function_symbols(program, loaded_value);
  std::string variants;
  run_or_throw({program.string()}, fmt::format("listing the variants of step {}", step), &variants);
  // The host stub of a template may be a static function, whose mangled name
  // differs; the plain names agree.
  std::map<std::string, std::string> kernels;
  for (const Function& function : parse_listing(disassembly).functions)
    kernels[demangle(function.name)] = function.name;
  std::string resolved;
  for (const VariantInfo& variant : parse_variants(variants, symbols, loaded_value)) {
    const auto kernel = kernels.find(demangle(variant.function));
    if (kernel == kernels.end())
      throw Error(fmt::format("variant {} of step {} names {}, which is no kernel of its cubin", variant.name,
                              step, demangle(variant.function)));
    resolved += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", variant.name, variant.summary,
                            kernel->second, variant.tile_m, variant.tile_n, variant.tile_k, variant.stages,
                            variant.threads, variant.dynamic_shared_bytes);
  }
  return resolved;
}

/// What the tools and the compiler printed about a step, and the lines of resolve_variants.
StepBinary assemble_step(const fs::path& root, const std::string& step, const Binary& binary,
                         const std::string& variants) {
  StepBinary result;
  static_cast<Binary&>(result) = binary;
  result.step = step;
  for (const std::string& line : split_lines(variants)) {
    const auto fields = split(line, '\t');
    const auto number = [&](int index) { return std::atoi(fields[static_cast<std::size_t>(index)].c_str()); };
    result.variants.push_back(
        {fields[0], fields[1], fields[2], number(3), number(4), number(5), number(6), number(7), number(8)});
  }
  const fs::path expectations = root / "steps" / step / "expect.json";
  if (fs::exists(expectations)) {
    const ExpectationFile file =
        parse_expectations(read_file(expectations), fmt::format("steps/{}/expect.json", step));
    for (VariantInfo& variant : result.variants) {
      for (const VariantExpectations& expected : file.variants) {
        if (expected.variant == variant.name) variant.math_threads = expected.math_threads;
      }
    }
  }
  return result;
}

/// Of what ptxas said, the part about one architecture.
std::string log_for(const std::string& log, const std::string& architecture) {
  std::string part;
  bool is_of_it = true;
  for (const std::string& line : split_lines(log)) {
    if (line.find("Compiling entry function") != std::string::npos)
      is_of_it = line.find(fmt::format("for '{}'", architecture)) != std::string::npos;
    if (is_of_it) part += line + "\n";
  }
  return part;
}

/// The host functions of common/ptx that steps call (tensor maps, for example),
/// compiled once for all of them.
std::vector<fs::path> host_objects(const Toolchain& toolchain, const fs::path& root) {
  std::vector<fs::path> sources;
  Hash hash;
  hash.add(fmt::format("{} {} {}", kCacheFormat, toolchain.nvcc, toolchain.compiler_version));
  for (const fs::path& file : files_of(root / "common" / "ptx")) {
    hash.add(file.string());
    hash.add(read_file(file));
    if (file.extension() == ".cu") sources.push_back(file);
  }
  const fs::path folder = root / "build" / "sass" / "host";
  const FolderLock lock(folder);
  const fs::path key_file = folder / "key";
  const bool fresh = !fs::exists(key_file) || read_file(key_file) != hash.text();
  if (fresh) fs::remove(key_file);
  std::vector<fs::path> objects;
  for (const fs::path& source : sources) {
    objects.push_back(folder / (source.stem().string() + ".o"));
    if (!fresh) continue;
    std::vector<std::string> command = compile_command(toolchain, "sm_90a");
    command.insert(command.end(),
                   {"-I", (root / "common").string(), "-c", "-o", objects.back().string(), source.string()});
    run_or_throw(command, fmt::format("compiling {}", source.string()));
  }
  if (fresh) write_file(key_file, hash.text());
  return objects;
}

}  // namespace

Binary build_file(const Toolchain& toolchain, const fs::path& source, const fs::path& folder,
                  const std::string& architecture, const std::vector<std::string>& options) {
  fs::create_directories(folder);
  const fs::path cubin = folder / (source.stem().string() + "." + architecture + ".cubin");
  std::vector<std::string> command = compile_command(toolchain, architecture);
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-cubin", "-o", cubin.string(), source.string()});
  std::string log;
  run_or_throw(command, fmt::format("compiling {}", source.string()), &log);
  return assemble_binary(disassemble(toolchain, cubin), resource_usage(toolchain, cubin), log, architecture);
}

std::string architecture_of_step(const fs::path& root, const std::string& step) {
  const std::string kernel = read_file(root / "steps" / step / "kernel.cuh");
  return kernel.find(".architecture = Architecture::kSm100a") != std::string::npos ? "sm_100a" : "sm_90a";
}

StepBinary build_step(const Toolchain& toolchain, const fs::path& root, const std::string& step,
                      const std::string& wanted) {
  const std::string architecture = wanted.empty() ? architecture_of_step(root, step) : wanted;
  const std::string program_text = step_program(step);
  Hash hash;
  hash.add(fmt::format("{} {} {} {}", kCacheFormat, toolchain.nvcc, toolchain.compiler_version,
                       toolchain.disassembler_version));
  hash.add(program_text);
  std::vector<fs::path> inputs;
  for (const char* folder : {"common/gemm", "common/ptx", "tools/sass_reader/variants"})
    for (const fs::path& file : files_of(root / folder)) inputs.push_back(file);
  for (const auto& entry : fs::directory_iterator(root / "steps" / step))
    if (entry.path().extension() == ".cuh" || entry.path().extension() == ".h")
      inputs.push_back(entry.path());
  std::sort(inputs.begin(), inputs.end());
  for (const fs::path& input : inputs) {
    hash.add(input.string());
    hash.add(read_file(input));
  }

  const fs::path folder = root / "build" / "sass" / fmt::format("{}.{}", step, architecture);
  const FolderLock lock(folder);
  const fs::path key_file = folder / "key";
  if (!fs::exists(key_file) || read_file(key_file) != hash.text()) {
    fs::remove(key_file);
    const fs::path source = folder / "step.cu";
    const fs::path program = folder / "step";
    write_file(source, program_text);
    std::vector<std::string> command = compile_command(toolchain, architecture);
    command.insert(command.end(), {"-I", (root / "common").string(), "-I", (root / "steps" / step).string(),
                                   "-I", (root / "tools/sass_reader/variants").string(), "--keep",
                                   "--keep-dir", folder.string(), "-o", program.string(), source.string()});
    for (const fs::path& object : host_objects(toolchain, root)) command.push_back(object.string());
    std::string log;
    run_or_throw(command, fmt::format("compiling step {} for {}", step, architecture), &log);
    const fs::path cubin = folder / "step.cubin";
    const std::string disassembly = disassemble(toolchain, cubin);
    const std::string resolved = resolve_variants(step, program, disassembly);
    const std::string usage = resource_usage(toolchain, cubin);
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path() != cubin && entry.path().filename() != "lock") fs::remove(entry.path());
    write_file(folder / "disassembly", disassembly);
    write_file(folder / "usage", usage);
    write_file(folder / "ptxas.log", log);
    write_file(folder / "variants", resolved);
    write_file(key_file, hash.text());
  }

  const Binary binary = assemble_binary(read_file(folder / "disassembly"), read_file(folder / "usage"),
                                        read_file(folder / "ptxas.log"), architecture);
  return assemble_step(root, step, binary, read_file(folder / "variants"));
}

namespace {

/// The disassembly with the names of this folder's sources: an object from a compiler cache may name those of
/// the folder in which it was compiled, some of them by way of its build folder.
std::string with_own_sources(const std::string& disassembly, const fs::path& root, const std::string& step) {
  const std::string mark = "//## File \"";
  std::string result;
  std::size_t done = 0;
  for (auto found = disassembly.find(mark); found != std::string::npos;
       found = disassembly.find(mark, done)) {
    const auto name = found + mark.size();
    const auto end = std::min(disassembly.find('"', name), disassembly.size());
    result += disassembly.substr(done, name - done);
    result += fs::path(disassembly.substr(name, end - name)).lexically_normal().string();
    done = end;
  }
  result += disassembly.substr(done);
  auto below = result.find(fmt::format("/steps/{}/", step));
  if (below == std::string::npos) below = result.find("/common/gemm/");  // the kernel lies there
  if (below == std::string::npos) return result;
  const auto quote = result.rfind('"', below);
  const std::string there = result.substr(quote, below - quote) + "/";
  const std::string here = "\"" + root.string() + "/";
  std::string renamed;
  done = 0;
  for (auto found = result.find(there); found != std::string::npos; found = result.find(there, done)) {
    renamed += result.substr(done, found - done) + here;
    done = found + there.size();
  }
  return renamed + result.substr(done);
}

}  // namespace

StepBinary read_built_step(const Toolchain& toolchain, const fs::path& root, const std::string& step,
                           const std::vector<std::string>& objects, const std::vector<std::string>& linked) {
  const std::string architecture = architecture_of_step(root, step);
  fs::path folder = objects.front();
  folder += ".sass";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::string disassembly;
  std::string usage;
  std::string log;
  for (const fs::path object : objects) {
    // cuobjdump writes one file for each architecture into the folder where it runs.
    const fs::path cubin = folder / fmt::format("{}.{}.cubin", object.stem().string(), architecture);
    run_or_throw({"env", "-C", folder.string(), toolchain.cuobjdump, "-xelf", architecture,
                  fs::absolute(object).string()},
                 fmt::format("taking the machine code out of {}", object.string()));
    std::vector<fs::path> cubins = files_of(folder);
    if (cubins.size() != 1)
      throw Error(
          fmt::format("{} holds machine code for {} {} times", object.string(), architecture, cubins.size()));
    fs::rename(cubins.front(), cubin);
    disassembly += disassemble(toolchain, cubin);
    usage += resource_usage(toolchain, cubin);
    log += log_for(read_file(object.string() + ".ptxas.log"), architecture);
    fs::remove(cubin);
  }

  const fs::path program = folder / "step";
  const std::string accessor = "step_" + step;
  std::vector<std::string> command{
      toolchain.nvcc, gencode(architecture),
      "-o",           program.string(),
      "-Xlinker",     fmt::format("--defsym=_Z10built_stepv=_Z{}{}v", accessor.size(), accessor)};
  command.insert(command.end(), objects.begin(), objects.end());
  command.insert(command.end(), linked.begin(), linked.end());
  run_or_throw(command, fmt::format("linking step {}", step));

  disassembly = with_own_sources(disassembly, root, step);
  const std::string variants = resolve_variants(step, program, disassembly);
  const Binary binary = assemble_binary(disassembly, usage, log, architecture);
  fs::remove_all(folder);
  return assemble_step(root, step, binary, variants);
}

}  // namespace sass
