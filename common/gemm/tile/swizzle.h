// Swizzled shared memory: which 16-byte chunk of a row lands where.
//
// A tile row of kSpan bytes is stored with its 16-byte chunks permuted; the permutation changes from row to
// row so that the same chunk of eight consecutive rows lies in eight different groups of four banks. The
// three patterns are the ones the Hopper copy engine and wgmma know. Steps 04 to 08 permute by hand, with the
// functions below; step 08 also names the pattern to wgmma, which reads what they wrote. From step 09 on the
// hardware permutes and a step only names the pattern (ptx/swizzle_mode.h). Source: CUDA Driver API,
// CUtensorMapSwizzle; PTX ISA, "Shared Memory Matrix Layout: swizzling modes".
#pragma once

namespace gemm {

/// Where byte `offset` of an unswizzled tile goes. kSpan (32, 64 or 128 bytes) is the length of a tile row;
/// the tile starts at a multiple of 8 * kSpan bytes.
///   128: bits 4-6 ^= bits 7-9      64: bits 4-5 ^= bits 7-8      32: bit 4 ^= bit 7
template <int kSpan>
constexpr int swizzle(int offset) {
  static_assert(kSpan == 32 || kSpan == 64 || kSpan == 128, "swizzle spans are 32, 64 or 128 bytes");
  constexpr int kChunks = kSpan / 16;
  return offset ^ ((offset >> 7) % kChunks << 4);
}

/// The same by row and chunk: where 16-byte chunk `chunk` of row `row` is found, in chunks from the start of
/// the row. Cheaper in a loop: the row's part is the same for rows that are a multiple of 8 apart.
template <int kSpan>
constexpr int swizzle_chunk(int row, int chunk) {
  static_assert(kSpan == 32 || kSpan == 64 || kSpan == 128, "swizzle spans are 32, 64 or 128 bytes");
  constexpr int kChunks = kSpan / 16;
  constexpr int kRowsPer128Bytes = 128 / kSpan;
  return chunk ^ (row / kRowsPer128Bytes % kChunks);
}

}  // namespace gemm
