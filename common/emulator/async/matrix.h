// ldmatrix, stmatrix and mma.sync: what the lanes of a warp do together.
#pragma once

#include <cstdint>
#include <optional>

#include "emulator/machine/where.h"

namespace emulator {

/// Loads `matrices` (1, 2, 4) 8 x 8 matrices of 16-bit elements; `row` is the calling lane's row address,
/// registers get the calling lane's elements. PTX ISA, "Warp Level Matrix Load Instruction: ldmatrix".
void ldmatrix(const char* what, std::uint32_t* registers, unsigned matrices, bool transposed, const void* row,
              Where where);
/// Stores as many such matrices: the mirror image of ldmatrix.
void stmatrix(const char* what, const std::uint32_t* registers, unsigned matrices, bool transposed, void* row,
              Where where);

/// What the registers of mma.sync hold.
enum class MmaElement : std::uint8_t { kBf16, kF16, kTf32, kS8, kU8, kE4m3, kE5m2 };
struct MmaForm {
  const char* what;
  MmaElement element;
  unsigned depth;         // k
  bool f16_sums = false;  // accumulators of 16 bits, two a register; otherwise of 32 bits, four registers
  std::optional<MmaElement> of_b = {};  // where B's are others than A's, as wide
};

/// d[16][8] += a[16][k] * b[8][k]^T. Sums are formed in binary32 in ascending order of k, f16 accumulators
/// rounded once; those of integers are exact, modulo 2^32. PTX ISA, "Warp Level Matrix Instructions: mma".
void mma_m16n8(const MmaForm& form, void* d, const std::uint32_t* a, const std::uint32_t* b, Where where);

}  // namespace emulator
