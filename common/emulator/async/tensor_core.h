// The arithmetic of one wgmma instruction, without its rules.
#pragma once

#include <cstdint>

#include "gemm/problem/types.h"
#include "ptx/tcgen05_scaled_descriptor.h"

namespace emulator {

inline constexpr unsigned kSlabRows = 64;   // of A and D
inline constexpr unsigned kSlabDepth = 16;  // elements of 16 bits along K in one instruction
inline constexpr unsigned kSlabBytes = 32;  // of K, whatever the type
inline constexpr unsigned kMaxSlabColumns = 256;

/// The bits of operands, K-major: of 16 elements of 16 bits, 8 of 32, or 32 of 8.
using SlabRow = std::uint16_t[kSlabDepth];

/// D = A * B^T, or D += A * B^T, in binary32: a [64][16], b [n][16], d column by column, [n][64]. Adds along
/// K in ascending order. A product of two bf16 numbers is exact in binary32 (unless it leaves its range), so
/// it does not matter whether the host has a fused multiply-add.
/// `pitch`: from one column of d to the next.
void multiply_slab(const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch = kSlabRows);

/// binary16, rounded to nearest; what is too large is infinite.
std::uint32_t f16_bits(float value);

/// The types of the operands of one instruction.
struct SlabTypes {
  gemm::Type a = gemm::Type::kBf16;
  gemm::Type b = gemm::Type::kBf16;
  bool f16_sums = false;  // accumulators of 16 bits, two per register, rounded after each instruction
  bool operator==(const SlabTypes&) const = default;

  /// Elements of K in one instruction.
  constexpr unsigned depth() const { return kSlabBytes / static_cast<unsigned>(gemm::bytes_of(a)); }
};

/// The same for operands of these types, with the rules of each type:
/// - bf16, fp16 and tf32 as above; of tf32 the low 13 bits are cut off first.
/// - fp8: products and accumulator are aligned to the largest exponent among them, of each 13 bits of
/// fraction
///   are kept and the rest is cut off, and so is what the sum has beyond 13 bits of its own. A product's
///   exponent is the sum of its factors' (its significand is 1 to 4), a subnormal factor has that of the
///   smallest normal number, and zeros have no say. docs/verification.md has sources.
/// - int8: exact, modulo 2^32; d are the bits of 32-bit integers.
void multiply_slab(SlabTypes types, const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch = kSlabRows);

/// 16 elements of 4 or 6 bits, packed in the first of 16 bytes with padding behind them, become a byte each,
/// as they are in tensor memory: the element in the middle bits, and zeros around it. tcgen05_cp.cuh has
/// sources.
void widen_elements(unsigned bits, std::uint8_t* unit);
/// The way back.
void pack_elements(unsigned bits, std::uint8_t* unit);

/// The scales of a row that one instruction of tcgen05.mma with .block_scale multiplies it with: the first
/// scale_vector(kind) of them.
using RowScales = std::uint8_t[4];

/// D = (A * scales)(B * scales)^T, or D += that: a [128][32 bytes], b [n][32 bytes], d column by column. The
/// PTX ISA leaves the precision of the sum open. Here the products and their sum are formed in binary64,
/// which holds the sum of one block exactly, and each instruction rounds once, when it adds that to D.
void multiply_scaled(gemm::ptx::ScaledKind kind, const gemm::ptx::ScaledInstruction& instruction,
                     const SlabRow* a, const SlabRow* b, const RowScales* scales_a, const RowScales* scales_b,
                     bool accumulate, float* d, unsigned pitch);

/// One element of an fp8 instruction: c plus the 32 products. For tests as well.
float add_fp8_products(SlabTypes types, const std::uint8_t* a, const std::uint8_t* b, float c);

}  // namespace emulator
