// Names of kernels, names and sizes of __shared__ arrays, from the program's own symbol table: on the
// emulator they are thread-local variables, and their symbols survive compilation.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/machine/machine.h"

namespace emulator {

/// "gemm::step_02::shared_tile_kernel<32, 1>(gemm::Gemm)", or "" where the program has no symbols.
std::string name_function(const void* function);

/// "__shared__ a_tile + 128", as far as the symbol table knows.
std::string name_static_shared(std::uintptr_t address);

/// Reports an access that is not inside one __shared__ variable. Lets it pass where
/// the program has no symbols.
void require_static_shared(std::uintptr_t address, unsigned bytes, Where where, const Thread& thread);

}  // namespace emulator
