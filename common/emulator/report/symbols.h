// Names of kernels, names and sizes of __shared__ arrays, from the program's own symbol table: on the
// emulator they are thread-local variables, and their symbols survive compilation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emulator {

/// The thread-local block, of the calling OS thread, that contains the address: of the program or of a
/// library. No bytes: none does.
struct ThreadBlock {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};
ThreadBlock thread_block_around(std::uintptr_t address);

/// Where the program was loaded, which its symbols are relative to.
std::uintptr_t load_address();

/// "gemm::step_02::shared_tile_kernel<32, 1>(gemm::Gemm)", or "" where the program has no symbols.
std::string name_function(const void* function);

/// "__shared__ a_tile + 128", as far as the symbol table knows.
std::string name_static_shared(std::uintptr_t address);
/// A thread-local variable of the program, in the calling OS thread's copy.
struct StaticSymbol {
  std::string name;  // "a_tile"
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
};

enum class SymbolSearch : std::uint8_t {
  kFound,
  kNotShared,  // no variable there, or one that is not the kernel's
  kNoSymbols,  // the program was stripped, or the address belongs to a library
};
SymbolSearch find_static_symbol(std::uintptr_t address, StaticSymbol& found);

/// The variable of a kernel's program that is no thread-local one and contains the address, with its whole
/// name; no bytes: none does.
StaticSymbol find_variable(std::uintptr_t address);
/// Whether such variables can lie there at all.
bool is_program_data(std::uintptr_t address);
/// "histogram + 8" of a variable of the program that is no thread-local one, or the bare address.
std::string name_variable(std::uintptr_t address);

/// Which words of the program's thread-local block belong to __shared__ variables, dynamic memory included.
struct SharedWords {
  std::vector<std::uint8_t> is_shared;  // [offset / 4]
  /// Where the calling OS thread's block begins.
  std::uintptr_t block_of_calling_thread() const;
};
const SharedWords& shared_words();

/// "4 bytes past the end of __shared__ words (64 bytes)", "4 bytes before __shared__ words (64 bytes)", of an
/// access that is in no variable but beside one; or "".
std::string near_static_shared(std::uintptr_t address, unsigned bytes);

}  // namespace emulator
