// How a tile is permuted in shared memory so that its columns do not meet in one bank.
#pragma once

#include <cstdint>

namespace gemm::ptx {

/// The three address permutations that tensor maps and wgmma descriptors share. A k128B tile exchanges the
/// 16-byte units of each 128-byte row: address bits 4-6 ^= bits 7-9; k64B: bits 4-5 ^= bits 7-8; k32B: bit 4
/// ^= bit 7. PTX ISA, "Tensors: Swizzling Modes".
enum class Swizzle { kNone, k32B, k64B, k128B };

/// Bytes of a row that the permutation stays inside: 32, 64 or 128 (16, one unit, without one).
constexpr int span_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::k32B:
      return 32;
    case Swizzle::k64B:
      return 64;
    case Swizzle::k128B:
      return 128;
    default:
      return 16;
  }
}

/// Bytes after which the permutation repeats, and to which a tile is aligned: 256, 512 or 1024 (128 without
/// one).
constexpr int period_bytes(Swizzle swizzle) {
  return 8 * span_bytes(swizzle);
}

/// Where the byte lands that would be at `offset` bytes from a multiple of period_bytes() without a swizzle.
constexpr std::uint32_t swizzled(std::uint32_t offset, Swizzle swizzle) {
  const std::uint32_t units =
      static_cast<std::uint32_t>(span_bytes(swizzle)) / 16 - 1;  // mask of 0, 1, 2 or 3 bits
  return offset ^ ((offset >> 7 & units) << 4);
}

}  // namespace gemm::ptx
