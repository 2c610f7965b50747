#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "emulator/report/symbols.h"

namespace emulator {
namespace {

struct Symbol {
  std::uint64_t offset = 0;  // in the program, or in its thread-local block
  std::uint64_t bytes = 0;
  std::string
      name;  // mangled; of a variable "a_tile", not "gemm::step_02::kernel<32, 1>(gemm::Gemm)::a_tile"
  bool may_be_shared = false;
};

/// The program's file, mapped: of its hundred thousand symbols only a few are looked for.
class SymbolTable {
 public:
  SymbolTable() {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file < 0) return;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      void* const mapped = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
      if (mapped != MAP_FAILED) begin_ = static_cast<const char*>(mapped);
    }
    close(file);
  }
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;
  ~SymbolTable() {
    if (begin_) munmap(const_cast<char*>(begin_), bytes_);
  }

  /// Calls visit(offset, bytes, mangled name) for each symbol of this type (STT_...). None where the program
  /// was stripped.
  template <typename Visit>
  void each(int type, Visit&& visit) const {
    const auto* const header = at<ElfW(Ehdr)>(0, 1);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return;
    const auto* const sections = at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
    for (int i = 0; sections && i < header->e_shnum; ++i) {
      const ElfW(Shdr)& section = sections[i];
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= header->e_shnum) continue;
      const std::size_t count = section.sh_size / sizeof(ElfW(Sym));
      const auto* const table = at<ElfW(Sym)>(section.sh_offset, count);
      const ElfW(Shdr)& strings = sections[section.sh_link];
      const char* const names = at<char>(strings.sh_offset, strings.sh_size);
      if (!table || !names || strings.sh_size == 0 || names[strings.sh_size - 1] != '\0') continue;
      for (std::size_t j = 0; j < count; ++j) {
        const ElfW(Sym)& symbol = table[j];
        if ((symbol.st_info & 15) != type || symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0) continue;
        if (symbol.st_name < strings.sh_size) visit(symbol.st_value, symbol.st_size, names + symbol.st_name);
      }
    }
  }

 private:
  template <typename T>
  const T* at(std::uint64_t offset, std::uint64_t count) const {
    const bool lies_inside = begin_ && offset <= bytes_ && count <= (bytes_ - offset) / sizeof(T);
    return lies_inside ? reinterpret_cast<const T*>(begin_ + offset) : nullptr;
  }

  const char* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

std::string demangled(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = text ? text : mangled;
  std::free(text);
  return name;
}

/// Whether it can be a kernel's own: the language and the libraries have variables, too.
bool is_of_kernel(const std::string& name) {
  for (const char* other : {"emulator::", "emulator_", "harness::", "std::", "guard variable",
                            "Catch::", "fmt::", "nlohmann::", "boost::", "__tls_guard"}) {
    if (name.rfind(other, 0) == 0) return false;
  }
  return name != "threadIdx" && name != "blockIdx" && name != "blockDim" && name != "gridDim";
}

/// Symbols of the program of this type (STT_...), by offset. Empty where it was stripped.
std::vector<Symbol> read_symbols(int type) {
  std::vector<Symbol> symbols;
  SymbolTable().each(type, [&](std::uint64_t offset, std::uint64_t bytes, const char* name) {
    symbols.push_back({offset, bytes, name});
  });
  std::sort(symbols.begin(), symbols.end(),
            [](const Symbol& a, const Symbol& b) { return a.offset < b.offset; });
  return symbols;
}

/// The thread-local variables, by their short names.
const std::vector<Symbol>& symbols() {
  static const std::vector<Symbol> instance = [] {
    std::vector<Symbol> variables = read_symbols(STT_TLS);
    for (Symbol& variable : variables) {
      const std::string name = demangled(variable.name);
      const std::size_t colons = name.rfind("::");
      variable.name = colons == std::string::npos ? name : name.substr(colons + 2);
      variable.may_be_shared = is_of_kernel(name);
    }
    return variables;
  }();
  return instance;
}

/// Offset of the address in the calling thread's copy of the program's thread-local block, or -1.
std::int64_t tls_offset(std::uintptr_t address) {
  struct Query {
    std::uintptr_t address;
    std::int64_t offset;
  } query{address, -1};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* q = static_cast<Query*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS || !info->dlpi_tls_data) continue;
          const auto begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
          if (q->address - begin < info->dlpi_phdr[i].p_memsz)
            q->offset = static_cast<std::int64_t>(q->address - begin);
        }
        return 1;  // the first module is the program
      },
      &query);
  return query.offset;
}

/// The last variable that starts at or before the offset: its index, or -1.
std::ptrdiff_t symbol_before(std::uint64_t offset) {
  const auto& all = symbols();
  auto after =
      std::upper_bound(all.begin(), all.end(), offset,
                       [](std::uint64_t value, const Symbol& symbol) { return value < symbol.offset; });
  return after - all.begin() - 1;
}

}  // namespace

ThreadBlock thread_block_around(std::uintptr_t address) {
  struct Query {
    std::uintptr_t address;
    ThreadBlock block;
  } query{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto* q = static_cast<Query*>(data);
        if (!info->dlpi_tls_data) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
          const auto begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
          const std::size_t bytes = info->dlpi_phdr[i].p_memsz;
          if (q->address - begin < bytes) {
            q->block = {begin, bytes};
            return 1;
          }
        }
        return 0;
      },
      &query);
  return query.block;
}

std::uintptr_t load_address() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
        return 1;  // the first module is the program
      },
      &base);
  return base;
}

bool is_program_data(std::uintptr_t address) {
  static const ThreadBlock data = [] {
    ThreadBlock block;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const ElfW(Phdr)& segment = info->dlpi_phdr[i];
            if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0)
              *static_cast<ThreadBlock*>(to) = {info->dlpi_addr + segment.p_vaddr, segment.p_memsz};
          }
          return 1;  // the first module is the program
        },
        &block);
    return block;
  }();
  return address - data.begin < data.bytes;
}

std::string name_function(const void* function) {
  static std::mutex mutex;
  static std::map<const void*, std::string> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(function);
  if (found != known.end()) return found->second;
  std::string& text = known[function];
  const std::uint64_t wanted = reinterpret_cast<std::uintptr_t>(function) - load_address();
  SymbolTable().each(STT_FUNC, [&](std::uint64_t offset, std::uint64_t, const char* name) {
    if (offset == wanted && text.empty()) text = demangled(name);
  });
  return text;
}

std::string name_variable(std::uintptr_t address) {
  const std::uint64_t wanted = address - load_address();
  std::string found = fmt::format("{:#x}", address);
  SymbolTable().each(STT_OBJECT, [&](std::uint64_t offset, std::uint64_t bytes, const char* name) {
    if (wanted - offset < bytes) found = fmt::format("{} + {}", demangled(name), wanted - offset);
  });
  return found;
}

StaticSymbol find_variable(std::uintptr_t address) {
  const std::uint64_t wanted = address - load_address();
  StaticSymbol found;
  SymbolTable().each(STT_OBJECT, [&](std::uint64_t offset, std::uint64_t bytes, const char* name) {
    if (wanted - offset >= bytes) return;
    const std::string demangled_name = demangled(name);
    if (is_of_kernel(demangled_name)) found = {demangled_name, address - (wanted - offset), bytes};
  });
  return found;
}

/// What lies between __shared__ variables and belongs to none, and the bytes around them (emulate-cc links
/// them): only an index that has left its array comes there.
static void mark_surroundings(std::vector<std::uint8_t>& is_shared) {
  if (is_shared.empty()) return;
  const auto is_guard = [](const Symbol& symbol) {
    return symbol.name == "emulator_guard_before" || symbol.name == "emulator_guard_behind";
  };
  for (const Symbol& symbol : symbols()) {
    const std::uint64_t words = (symbol.offset + symbol.bytes + 3) / 4;
    if (is_guard(symbol) && is_shared.size() < words) is_shared.resize(words);
  }
  std::vector<std::uint8_t> belongs_to_another(is_shared.size());
  for (const Symbol& symbol : symbols()) {
    const std::uint64_t end =
        std::min<std::uint64_t>((symbol.offset + symbol.bytes + 3) / 4, is_shared.size());
    for (std::uint64_t word = symbol.offset / 4; word < end; ++word) {
      if (is_guard(symbol)) is_shared[word] = 1;
      if (!is_guard(symbol) && !symbol.may_be_shared) belongs_to_another[word] = 1;
    }
  }
  auto word = static_cast<std::size_t>(std::find(is_shared.begin(), is_shared.end(), 1) - is_shared.begin());
  for (; word < is_shared.size(); ++word) {
    if (belongs_to_another[word] == 0) is_shared[word] = 1;
  }
}

const SharedWords& shared_words() {
  static const SharedWords words = [] {
    SharedWords result;
    for (const Symbol& symbol : symbols()) {
      if (!symbol.may_be_shared) continue;
      const std::uint64_t end = symbol.offset + symbol.bytes;
      if (result.is_shared.size() * 4 < end) result.is_shared.resize((end + 3) / 4);
      for (std::uint64_t word = symbol.offset / 4; word * 4 < end; ++word) result.is_shared[word] = 1;
    }
    mark_surroundings(result.is_shared);
    return result;
  }();
  return words;
}

std::uintptr_t SharedWords::block_of_calling_thread() const {
  std::uintptr_t begin = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
        return 1;  // the first module is the program
      },
      &begin);
  return begin;
}

SymbolSearch find_static_symbol(std::uintptr_t address, StaticSymbol& found) {
  const auto& all = symbols();
  const std::int64_t offset = tls_offset(address);
  if (all.empty() || offset < 0) return SymbolSearch::kNoSymbols;
  const std::ptrdiff_t index = symbol_before(static_cast<std::uint64_t>(offset));
  if (index < 0) return SymbolSearch::kNotShared;
  const Symbol& symbol = all[static_cast<std::size_t>(index)];
  if (static_cast<std::uint64_t>(offset) >= symbol.offset + symbol.bytes || !symbol.may_be_shared)
    return SymbolSearch::kNotShared;
  const std::uintptr_t block = address - static_cast<std::uint64_t>(offset);
  found.name = symbol.name;
  found.begin = block + symbol.offset;
  found.bytes = symbol.bytes;
  return SymbolSearch::kFound;
}

std::string near_static_shared(std::uintptr_t address, unsigned bytes) {
  constexpr std::uint64_t kNear = 4096;
  const std::int64_t offset = tls_offset(address);
  if (offset < 0) return {};
  for (std::ptrdiff_t i = symbol_before(static_cast<std::uint64_t>(offset)); i >= 0; --i) {
    const Symbol& symbol = symbols()[static_cast<std::size_t>(i)];
    const std::uint64_t end = symbol.offset + symbol.bytes;
    if (end + kNear < static_cast<std::uint64_t>(offset)) break;
    if (!symbol.may_be_shared) continue;
    return fmt::format("{} bytes past the end of __shared__ {} ({} bytes)",
                       static_cast<std::uint64_t>(offset) + bytes - end, symbol.name, symbol.bytes);
  }
  for (const Symbol& symbol : symbols()) {
    const auto at = static_cast<std::uint64_t>(offset);
    if (!symbol.may_be_shared || symbol.offset < at || symbol.offset - at > kNear) continue;
    return fmt::format("{} bytes before __shared__ {} ({} bytes)", symbol.offset - at, symbol.name,
                       symbol.bytes);
  }
  return {};
}

}  // namespace emulator
