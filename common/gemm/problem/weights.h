// Weights of 4 or 8 bits as they lie in memory: packed for the fragment of wgmma's A, so that a thread finds
// its own in 16 bytes.
#pragma once

#include <cstdint>

#include "gemm/problem/gemm.h"
#include "gemm/problem/types.h"

namespace gemm {

/// A block of weights: the rows of a wgmma, by four slabs of K. 128 threads have 32 weights of it each.
inline constexpr int kWeightRows = 64;
inline constexpr int kWeightK = 64;

/// Rows of 256 bytes, of which packed weights are made where TMA is concerned.
inline constexpr int kWeightLine = 256;

/// Bytes of a block.
constexpr int weight_block_bytes(Type type) {
  return kWeightRows * kWeightK * bits_of(type) / 8;
}

/// Where a weight lies: a byte, and of its bits those from `shift` on.
struct WeightPlace {
  std::int64_t byte = 0;
  int shift = 0;
};

/// Where weight (n, k) of `rows` rows lies. Blocks are [k / 64][n / 64], each [vector][thread][16 bytes]: of
/// int4 one vector with a word for each slab, of 8-bit weights two vectors with two slabs of two words each.
/// PTX ISA, "wgmma.mma_async: Matrix fragments": thread 32 * warp + lane holds rows 16 * warp + lane / 4 and
/// 8 more, and of K lane % 4 * 2, the next one, and both 8 further: registers 0 to 3 of two elements each.
constexpr WeightPlace weight_place(Type type, int rows, int n, int k) {
  const std::int64_t block = static_cast<std::int64_t>(k / kWeightK) * (rows / kWeightRows) + n / kWeightRows;
  const int row = n % kWeightRows;
  const int thread = row / 16 * 32 + row % 8 * 4 + k % 8 / 2;
  const int slab = k % kWeightK / 16;
  const int reg = k % 16 / 8 * 2 + row % 16 / 8;
  const int upper = k % 2;  // the upper half of its register
  const std::int64_t first = block * weight_block_bytes(type) + static_cast<std::int64_t>(thread) * 16;
  if (type == Type::kInt4) {
    const int nibble = reg + 4 * upper;
    const int byte = slab * 4 + nibble / 2;
    return {first + byte, nibble % 2 * 4};
  }
  const int byte = slab / 2 * 2048 + slab % 2 * 8 + reg / 2 * 4 + reg % 2 + 2 * upper;
  return {first + byte, 0};
}

/// The bits that are stored for a weight. Integers are stored plus 8, or plus 128, so that none is negative.
constexpr std::uint32_t stored_weight(Type type, std::uint32_t bits) {
  if (type == Type::kInt4) return (bits ^ 0x8u) & 0xfu;
  return type == Type::kInt8 ? (bits ^ 0x80u) & 0xffu : bits;
}

}  // namespace gemm
