#include "rewrite.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace emulate {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The text with blanks for comments, and, unless told, for what stands in quotes.
std::string blanked(const std::string& text, bool keep_literals) {
  std::string result = text;
  const auto blank = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < std::min(end, text.size()); ++i) {
      if (text[i] != '\n') result[i] = ' ';
    }
  };
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      blank(i, end);
      i = end;
    } else if (text.compare(i, 2, "/*") == 0) {
      const std::size_t end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
      blank(i, end);
      i = end;
    } else if (text.compare(i, 2, "R\"") == 0 && (i == 0 || !is_word(text[i - 1]))) {
      const std::size_t open = text.find('(', i);
      if (open == std::string::npos) break;
      const std::string close = ")" + text.substr(i + 2, open - i - 2) + "\"";
      const std::size_t end = std::min(text.find(close, open), text.size() - close.size()) + close.size();
      if (!keep_literals) blank(i + 2, end - 1);
      i = end;
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] != text[i] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      if (!keep_literals) blank(i + 1, end);
      i = end + 1;
    } else {
      ++i;
    }
  }
  return result;
}

/// Where the word stands alone, from `from` on.
std::size_t find_word(const std::string& text, const std::string& word, std::size_t from = 0) {
  for (std::size_t at = text.find(word, from); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const bool ends = at + word.size() == text.size() || !is_word(text[at + word.size()]);
    if (begins && ends) return at;
  }
  return std::string::npos;
}

/// Behind the bracket that closes the one at `open`.
std::size_t behind_closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == '}' || text[i] == ']') --depth;
    if (depth == 0) return i + 1;
  }
  return std::string::npos;
}

std::size_t next_solid(const std::string& text, std::size_t from) {
  while (from < text.size() && std::isspace(static_cast<unsigned char>(text[from]))) ++from;
  return from;
}

std::string place(const std::string& text, const std::string& path, std::size_t at) {
  return path + ":" +
         std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

/// The instruction of inline PTX, "mbarrier.init.shared::cta.b64", or "".
std::string instruction_of(std::string assembly) {
  for (const char* escape : {"\\n", "\\t", "\\r"}) {
    for (std::size_t at = assembly.find(escape); at != std::string::npos; at = assembly.find(escape, at))
      assembly.replace(at, 2, "  ");
  }
  std::string_view rest = assembly;
  while (true) {
    const std::size_t begin = rest.find_first_not_of("{} \t\n\";,");
    if (begin == std::string_view::npos) return "";
    rest.remove_prefix(begin);
    std::size_t end = rest.find_first_of(" \t\n;\"\\[{");
    std::string word(rest.substr(0, end));
    if (word.rfind("mov.", 0) == 0) {  // what counts is the register that it reads
      const std::string_view statement = rest.substr(0, rest.find(';'));
      std::size_t name = statement.rfind('%');
      while (name != std::string_view::npos && name > 0 &&
             !std::isalpha(static_cast<unsigned char>(statement[std::min(name + 1, statement.size() - 1)])))
        name = statement.rfind('%', name - 1);
      if (name != std::string_view::npos && name > 0) {
        const std::size_t behind = statement.find_first_of(" \t\n;\"\\", name);
        word += " " + std::string(
                          statement.substr(name, behind == std::string_view::npos ? behind : behind - name));
      }
      return word;
    }
    if (end == std::string_view::npos) return word;
    const bool is_declaration =
        word == ".reg" || word.rfind('@', 0) == 0 || word.empty() || word.back() == ':';
    if (!is_declaration) return word;
    rest.remove_prefix(word == ".reg" ? std::min(rest.find(';'), rest.size() - 1) + 1
                                      : std::max<std::size_t>(end, 1));
  }
}

/// What the project has for an instruction that a file writes as inline PTX.
std::string wrapper_of(const std::string& instruction) {
  const auto begins = [&](std::string_view with) { return instruction.rfind(with, 0) == 0; };
  static const std::vector<std::pair<std::string_view, std::string_view>> kWrappers = {
      {"mbarrier.complete_tx", "gemm::ptx::mbarrier_complete_tx of \"ptx/mbarrier.cuh\""},
      {"mbarrier.pending_count", "gemm::ptx::mbarrier_pending_count of \"ptx/mbarrier.cuh\""},
      {"mbarrier.", "cuda::ptx::mbarrier_* of <cuda/ptx>"},
      {"cp.async.bulk.prefetch", "gemm::ptx::cp_async_bulk_prefetch_* of \"ptx/prefetch.cuh\""},
      {"cp.async.bulk", "cuda::ptx::cp_async_bulk* of <cuda/ptx>"},
      {"lop3", "the operators & | ^ ~"},
      {"prmt", "__byte_perm"},
      {"createpolicy", "the copy without its cache hint"},
      {"cp.reduce.async.bulk", "cuda::ptx::cp_reduce_async_bulk* of <cuda/ptx>"},
      {"cp.async", "gemm::ptx::cp_async_* of \"ptx/cp_async.cuh\", or __pipeline_memcpy_async"},
      {"fence", "cuda::ptx::fence* of <cuda/ptx>"},
      {"barrier.cluster", "cuda::ptx::barrier_cluster_* of <cuda/ptx>"},
      {"elect.sync", "cuda::ptx::elect_sync of <cuda/ptx>"},
      {"wgmma", "gemm::ptx::wgmma_* of \"ptx/wgmma.cuh\""},
      {"setmaxnreg", "gemm::ptx::setmaxnreg_* of \"ptx/setmaxnreg.cuh\""},
      {"ldmatrix", "gemm::ptx::ldmatrix_* of \"ptx/ldmatrix.cuh\""},
      {"stmatrix", "gemm::ptx::stmatrix_* of \"ptx/stmatrix.cuh\""},
      {"mma.sync", "gemm::ptx::mma_* of \"ptx/mma_sync.cuh\""},
      {"bar.red", "gemm::ptx::bar_red_* of \"ptx/named_barrier.cuh\", or __syncthreads_count, _and and _or"},
      {"barrier.red",
       "gemm::ptx::bar_red_* of \"ptx/named_barrier.cuh\", or __syncthreads_count, _and and _or"},
      {"bar.", "gemm::ptx::bar_sync and bar_arrive of \"ptx/named_barrier.cuh\""},
      {"barrier.", "gemm::ptx::bar_sync and bar_arrive of \"ptx/named_barrier.cuh\""},
      {"mapa", "cuda::ptx::mapa or gemm::ptx::mapa"},
      {"cvta", "__cvta_generic_to_shared"},
      {"prefetch.tensormap", "gemm::ptx::prefetch_tensormap of \"ptx/tma.cuh\""},
      {"prefetch", "gemm::ptx::prefetch_* of \"ptx/prefetch.cuh\""},
      {"tensormap.", "cuda::ptx::tensormap_* of <cuda/ptx>"},
      {"griddepcontrol", "cudaGridDependencySynchronize"},
      {"st.async", "cuda::ptx::st_async of <cuda/ptx>"},
      {"red.async", "cuda::ptx::red_async of <cuda/ptx>"},
      {"ld.", "a plain load, __ldg, or cuda::atomic_ref"},
      {"st.", "a plain store or cuda::atomic_ref"},
      {"red.", "atomicAdd or cuda::atomic_ref"},
      {"atom.", "atomicAdd or cuda::atomic_ref"},
  };
  static const std::vector<std::pair<std::string_view, std::string_view>> kRegisters = {
      {"%laneid", "cuda::ptx::get_sreg_laneid of <cuda/ptx>"},
      {"%lanemask_lt", "(1u << lane) - 1"},
      {"%lanemask_le", "(2u << lane) - 1"},
      {"%lanemask_eq", "1u << lane"},
      {"%lanemask_ge", "~((1u << lane) - 1)"},
      {"%lanemask_gt", "~((2u << lane) - 1)"},
      {"%warpid", "cuda::ptx::get_sreg_warpid of <cuda/ptx>"},
      {"%clock", "clock64()"},
      {"%globaltimer", "clock64()"},
      {"%cluster", "cuda::ptx::get_sreg_cluster* of <cuda/ptx>"},
      {"%tid", "threadIdx"},
      {"%ntid", "blockDim"},
      {"%ctaid", "blockIdx"},
      {"%nctaid", "gridDim"},
  };
  if (begins("mov.")) {
    for (const auto& [name, instead] : kRegisters) {
      if (instruction.find(std::string(" ").append(name)) != std::string::npos) return std::string(instead);
    }
    return "";
  }
  // Forms of these that the emulator has under no name.
  for (const char* missing :
       {".im2col::w", ".im2col_no_offs", ".tile::gather4", ".tile::scatter4", "mma.sp"}) {
    if (instruction.find(missing) != std::string::npos) return "";
  }
  if (instruction.find(".im2col") != std::string::npos && begins("cp.async.bulk.tensor."))
    return "gemm::ptx::cp_async_bulk_tensor_*d_im2col of \"ptx/tma.cuh\"";
  for (const auto& [prefix, wrapper] : kWrappers) {
    if (begins(prefix)) return std::string(wrapper);
  }
  return "";
}

struct Edit {
  std::size_t begin;
  std::size_t end;
  std::string text;
};

/// Inline PTX: an ordinary compiler cannot assemble it.
void refuse_inline_ptx(const std::string& text, const std::string& code, const std::string& with_literals,
                       const std::string& path) {
  for (const char* word : {"asm", "__asm__", "__asm"}) {
    for (std::size_t at = find_word(code, word); at != std::string::npos;
         at = find_word(code, word, at + 1)) {
      const std::size_t open = code.find('(', at);
      if (open == std::string::npos) continue;
      const std::size_t end = behind_closing(code, open);
      const std::size_t operands = std::min(code.find(':', open), end - 1);  // behind the text
      const std::string instruction = instruction_of(with_literals.substr(open + 1, operands - open - 1));
      if (instruction.empty()) continue;  // a barrier for the compiler: asm volatile("" ::: "memory")
      const std::string wrapper = wrapper_of(instruction);
      throw Refused(
          place(text, path, at) + ": the emulator does not run inline PTX, and here is '" + instruction +
          "'" + (wrapper.empty() ? "; the emulator has no such instruction." : "; write " + wrapper + "."));
    }
  }
}

/// Where the name before a launch's <<< begins, with its template arguments; `end` where it is no plain name.
std::size_t kernel_before(const std::string& code, std::size_t end) {
  std::size_t last = end;
  while (last > 0 && std::isspace(static_cast<unsigned char>(code[last - 1]))) --last;
  std::size_t begin = last;
  if (begin > 0 && code[begin - 1] == '>') {
    int depth = 0;
    int parentheses = 0;  // in them < and > compare
    do {
      --begin;
      if (std::string_view(";{}").find(code[begin]) != std::string_view::npos) return end;
      if (code[begin] == ')') ++parentheses;
      if (code[begin] == '(') --parentheses;
      if (parentheses == 0 && code[begin] == '>') ++depth;
      if (parentheses == 0 && code[begin] == '<') --depth;
    } while (depth > 0 && begin > 0);
  }
  const std::size_t arguments = begin;
  while (begin > 0 && (is_word(code[begin - 1]) || code[begin - 1] == ':')) --begin;
  return begin == arguments ? end : begin;
}

/// kernel<<<grid, block>>>(arguments): a call of an object that knows the kernel as a function of its name,
/// whose default arguments and deduced template arguments are there, and as what is its address.
void rewrite_launches(const std::string& text, const std::string& code, const std::string& path,
                      std::vector<Edit>& edits) {
  for (std::size_t at = code.find("<<<"); at != std::string::npos; at = code.find("<<<", at + 3)) {
    std::size_t end = at + 3;
    while (end < code.size() && code.compare(end, 3, ">>>") != 0) {
      end = code[end] == '(' || code[end] == '{' || code[end] == '[' ? behind_closing(code, end) : end + 1;
      if (end == std::string::npos || code[std::min(end, code.size() - 1)] == ';') break;
    }
    if (end >= code.size() || code.compare(end, 3, ">>>") != 0)
      throw Refused(place(text, path, at) + ": a launch begins with <<< but has no >>>.");
    const std::size_t begin = kernel_before(code, at);
    if (begin == at) {
      edits.push_back({at, at + 3, " ->* ::emulator_cuda::configured("});
      edits.push_back({end, end + 3, ")"});
      continue;
    }
    std::string kernel = code.substr(begin, at - begin);
    const auto lines = static_cast<std::size_t>(std::count(kernel.begin(), kernel.end(), '\n'));
    std::replace(kernel.begin(), kernel.end(), '\n', ' ');
    edits.push_back({begin, at + 3, "::emulator_cuda::configured(" + std::string(lines, '\n')});
    std::string call = ").with([&](auto... emulator_values) -> decltype(void(";
    call.append(kernel)
        .append("(emulator_values...))) { ")
        .append(kernel)
        .append("(emulator_values...); }, ");
    call.append("[&](auto emulator_probe) -> decltype(emulator_probe(").append(kernel).append(")) { ");
    call.append("return emulator_probe(").append(kernel).append("); })");
    edits.push_back({end, end + 3, call});
  }
}

/// cudaLaunchKernel((void*)kernel, ...): the kernel's parameters are known from its type, so that the cast
/// goes.
void rewrite_casts_of_kernels(const std::string& code, std::vector<Edit>& edits) {
  for (const char* function : {"cudaLaunchKernel", "cudaLaunchCooperativeKernel"}) {
    for (std::size_t at = find_word(code, function); at != std::string::npos;
         at = find_word(code, function, at + 1)) {
      const std::size_t open = next_solid(code, at + std::string_view(function).size());
      if (open >= code.size() || code[open] != '(') continue;
      const std::size_t cast = next_solid(code, open + 1);
      if (cast >= code.size() || code[cast] != '(') continue;
      const std::size_t behind = behind_closing(code, cast);
      if (behind == std::string::npos) continue;
      std::string type = code.substr(cast + 1, behind - cast - 2);
      std::erase_if(type, [](char c) { return std::isspace(static_cast<unsigned char>(c)); });
      if (type == "void*" || type == "constvoid*") edits.push_back({cast, behind, ""});
    }
  }
}

/// Whether the place is inside a function: some open brace there belongs to no namespace.
bool is_in_function(const std::string& code, std::size_t at) {
  std::vector<bool> open;
  for (std::size_t i = 0; i < at; ++i) {
    if (code[i] == '}' && !open.empty()) open.pop_back();
    if (code[i] != '{') continue;
    const std::size_t begin = code.find_last_of(";{}", i == 0 ? 0 : i - 1);
    const std::string before = code.substr(begin == std::string::npos ? 0 : begin + 1,
                                           i - (begin == std::string::npos ? 0 : begin + 1));
    const bool is_scope =
        find_word(before, "namespace") != std::string::npos ||
        (find_word(before, "extern") != std::string::npos && before.find('"') != std::string::npos);
    open.push_back(!is_scope);
  }
  return std::find(open.begin(), open.end(), true) != open.end();
}

/// `extern __shared__ __align__(16) T name[];` in a function: a reference to where the CTA's dynamic memory
/// is. Elsewhere the linker defines the array (cmake/link_extern_shared).
void rewrite_dynamic_shared(const std::string& code, std::vector<Edit>& edits) {
  for (std::size_t at = find_word(code, "extern"); at != std::string::npos;
       at = find_word(code, "extern", at + 1)) {
    const std::size_t end = code.find(';', at);
    const std::size_t shared = find_word(code, "__shared__", at);
    if (end == std::string::npos || shared >= end || !is_in_function(code, at)) continue;
    std::string declaration = code.substr(at + 6, end - at - 6);
    for (const char* attribute : {"__align__", "alignas", "__attribute__"}) {
      const std::size_t begin = find_word(declaration, attribute);
      if (begin == std::string::npos) continue;
      const std::size_t behind = behind_closing(declaration, declaration.find('(', begin));
      if (behind != std::string::npos) declaration.erase(begin, behind - begin);
    }
    declaration.erase(find_word(declaration, "__shared__"), std::string("__shared__").size());
    const std::size_t bracket = declaration.rfind('[');
    if (bracket == std::string::npos) continue;
    std::size_t last = bracket;
    while (last > 0 && std::isspace(static_cast<unsigned char>(declaration[last - 1]))) --last;
    std::size_t first = last;
    while (first > 0 && is_word(declaration[first - 1])) --first;
    std::string type = declaration.substr(0, first);
    const std::string name = declaration.substr(first, last - first);
    const auto lines =
        static_cast<std::size_t>(std::count(code.begin() + static_cast<std::ptrdiff_t>(at),
                                            code.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    std::replace(type.begin(), type.end(), '\n', ' ');
    std::string whole = type;
    whole.append("(&").append(name).append(")[] = *static_cast<").append(type);
    whole.append("(*)[]>(::emulator::dynamic_shared(0, ::emulator::Where::here()))").append(lines, '\n');
    edits.push_back({at, end, whole});
  }
}

/// `__cluster_dims__(2, 1, 1)`: the launch is told by a variable behind the kernel.
void rewrite_clusters(const std::string& text, const std::string& code, const std::string& path,
                      std::vector<Edit>& edits) {
  int number = 0;
  const std::string cluster_dims = "__cluster_dims__";
  for (std::size_t at = find_word(code, cluster_dims); at != std::string::npos;
       at = find_word(code, cluster_dims, at + 1)) {
    const std::size_t open = next_solid(code, at + cluster_dims.size());
    if (open >= code.size() || code[open] != '(') continue;
    const std::size_t end = behind_closing(code, open);
    if (end == std::string::npos) continue;
    // The kernel's name stands before the first bracket that does not belong to an attribute.
    std::size_t bracket = code.find('(', end);
    std::string name;
    while (bracket != std::string::npos) {
      std::size_t last = bracket;
      while (last > 0 && std::isspace(static_cast<unsigned char>(code[last - 1]))) --last;
      std::size_t first = last;
      while (first > 0 && is_word(code[first - 1])) --first;
      name = code.substr(first, last - first);
      if (name.rfind("__", 0) != 0) break;
      bracket = code.find('(', behind_closing(code, bracket));
    }
    if (bracket == std::string::npos) continue;
    const std::size_t behind_parameters = next_solid(code, behind_closing(code, bracket));
    if (behind_parameters >= code.size() || code[behind_parameters] != '{') continue;  // a declaration
    const std::size_t behind_body = behind_closing(code, behind_parameters);
    if (behind_body == std::string::npos)
      throw Refused(place(text, path, behind_parameters) + ": a { without its }.");
    edits.push_back({behind_body, behind_body,
                     " [[maybe_unused]] static const ::emulator_cuda::ClusterDims emulator_cluster_" +
                         std::to_string(number++) + "(\"" + name + "\", " +
                         code.substr(open + 1, end - open - 2) + ");"});
  }
}

}  // namespace

std::string rewrite(const std::string& file, const std::string& path, Backend backend) {
  const std::string mark = "\xef\xbb\xbf";  // of UTF-8, which editors write in front; nvcc takes it
  const std::string text = file.rfind(mark, 0) == 0 ? file.substr(mark.size()) : file;
  const std::string code = blanked(text, false);
  if (find_word(code, "__global__") == std::string::npos)
    throw Refused(path + " has no kernel: no function in it is __global__.");
  std::vector<Edit> edits;
  if (backend == Backend::kEmulator) {
    refuse_inline_ptx(text, code, blanked(text, true), path);
    rewrite_launches(text, code, path, edits);
    rewrite_casts_of_kernels(code, edits);
    rewrite_clusters(text, code, path, edits);
    rewrite_dynamic_shared(code, edits);
  }

  std::string trailer;
  const std::size_t main = find_word(code, "main");
  if (find_word(code, "check_kernel") != std::string::npos) {
    trailer = "void emulate::detail::run_once(emulate::Run& run) { ::check_kernel(run); }\n";
  } else if (main != std::string::npos && code[next_solid(code, main + 4)] == '(') {
    edits.push_back({main, main + 4, "emulate_main"});
    trailer =
        "void emulate::detail::run_once(emulate::Run& run) { emulate::detail::call_main(&::emulate_main, "
        "run); }\n";
  } else {
    throw Refused(path +
                  " has kernels but nothing that runs them: write 'void check_kernel(emulate::Run& run)' "
                  "that allocates, launches and checks (docs/emulator/bring-your-own-kernel.md), or a main.");
  }

  std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result = "#include \"own_kernel/emulate.h\"\n#line 1 \"" + path + "\"\n";
  std::size_t done = 0;
  for (const Edit& edit : edits) {
    result += text.substr(done, edit.begin - done) + edit.text;
    done = edit.end;
  }
  return result + text.substr(done) + "\n" + trailer;
}

}  // namespace emulate
