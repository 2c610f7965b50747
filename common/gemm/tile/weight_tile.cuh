// A k-tile of packed weights, the activations that they are multiplied with, and the weights' scales.
#pragma once

#include <cstdint>

#include "gemm/problem/types.h"
#include "gemm/problem/weights.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm {

/// The operands have changed places: a tile has kRows rows of weights and kColumns rows of activations, so
/// that the weights, W, are wgmma's A. 64 of K.
template <typename W, int kRows, int kColumns, int kCtas>
struct WeightTiling : WgmmaTiling<kRows, kColumns, 64, kRows / 64, kCtas> {
  using Weight = W;
  static constexpr int kScaleGroup = 128;           // elements of K that share a scale
  static constexpr int kHalves = kScaleGroup / 64;  // k-tiles of a group
  static constexpr int kBlockBytes = weight_block_bytes(kTypeOf<W>);
  static constexpr int kVectors = kBlockBytes / (128 * 16);  // of 16 bytes, for each thread and k-tile
};

/// A stage. The scales come with the first k-tile of a group only.
template <typename W, int kRows, int kColumns, int kCtas>
struct alignas(1024) WgmmaTiles<WeightTiling<W, kRows, kColumns, kCtas>> {
  using T = WeightTiling<W, kRows, kColumns, kCtas>;
  bf16 activations[kColumns][64];                               // [m][k], swizzled
  unsigned char weights[T::kWarpgroups][T::kVectors][128][16];  // [warpgroup][vector][thread][byte]
  bf16 scales[kRows];                                           // [n]

  static constexpr int kTileBytes = sizeof activations + sizeof weights;
  static constexpr int kScaleBytes = sizeof scales;
};

/// The same with a whole group in a stage, as two panels of 64 of K, and its scales in each.
template <typename W, int kRows, int kColumns>
struct GroupTiling : WgmmaTiling<kRows, kColumns, 128, kRows / 64> {
  using Weight = W;
  static constexpr int kBlockBytes = weight_block_bytes(kTypeOf<W>);
  static constexpr int kVectors = kBlockBytes / (128 * 16);
};

template <typename W, int kRows, int kColumns>
struct alignas(1024) WgmmaTiles<GroupTiling<W, kRows, kColumns>> {
  using T = GroupTiling<W, kRows, kColumns>;
  bf16 activations[T::kPanels][kColumns][64];  // [panel][m][k], swizzled
  unsigned char weights[T::kPanels][T::kWarpgroups][T::kVectors][128]
                       [16];  // [panel][warpgroup][vector][thread][byte]
  bf16 scales[kRows];         // [n]

  static constexpr int kTileBytes = sizeof activations + sizeof weights + sizeof scales;
};

/// This thread's weights of a block: one vector, or two, of 16 bytes.
template <int kVectors>
__device__ __forceinline__ void load_words(std::uint32_t (&words)[4 * kVectors],
                                           const unsigned char (&block)[kVectors][128][16]) {
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const uint4 vector = ptx::ld_shared(reinterpret_cast<const uint4*>(block[i][threadIdx.x % 128]));
    words[4 * i] = vector.x;
    words[4 * i + 1] = vector.y;
    words[4 * i + 2] = vector.z;
    words[4 * i + 3] = vector.w;
  }
}

}  // namespace gemm
