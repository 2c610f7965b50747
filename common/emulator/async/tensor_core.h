// The arithmetic of one wgmma instruction, without its rules.
#pragma once

#include <cstdint>

namespace emulator {

inline constexpr unsigned kSlabRows = 64;   // of A and D
inline constexpr unsigned kSlabDepth = 16;  // elements of K in one instruction
inline constexpr unsigned kMaxSlabColumns = 256;

/// The bits of bf16 operands, K-major.
using SlabRow = std::uint16_t[kSlabDepth];

/// D = A * B^T, or D += A * B^T, in binary32: a [64][16], b [n][16], d column by column, [n][64]. Adds along
/// K in ascending order. A product of two bf16 numbers is exact in binary32 (unless it leaves its range), so
/// it does not matter whether the host has a fused multiply-add.
/// `pitch`: from one column of d to the next.
void multiply_slab(const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch = kSlabRows);

}  // namespace emulator
