// A k-tile of packed weights, the activations that they are multiplied with, and the weights' scales.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/problem/types.h"
#include "gemm/problem/weights.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"
#include "ptx/wgmma_transposed.cuh"

namespace gemm {

/// Lines of numbers that come with a group of weights: their scales, and zero points where they have any.
template <typename W>
inline constexpr int kScaleLines = std::is_same_v<W, asymmetric_int4x2> ? 2 : 1;

/// The operands have changed places: a tile has kRows rows of weights and kColumns rows of activations, so
/// that the weights, W, are wgmma's A. 64 of K.
template <typename W, int kRows, int kColumns, int kCtas>
struct WeightTiling : WgmmaTiling<kRows, kColumns, 64, kRows / 64, kCtas> {
  using Weight = W;
  using Activation = bf16;
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
  bf16 scales[kScaleLines<W>][kRows];                           // [line][n]

  static constexpr int kTileBytes = sizeof activations + sizeof weights;
  static constexpr int kScaleBytes = sizeof scales;
};

/// The same with a whole group in a stage, as two panels of 64 of K, and its scales in each; activations are
/// X.
template <typename W, int kRows, int kColumns, typename X>
struct GroupTiling : WgmmaTiling<kRows, kColumns, 128, kRows / 64> {
  using Weight = W;
  using Activation = X;
  static constexpr int kBlockBytes = weight_block_bytes(kTypeOf<W>);
  static constexpr int kVectors = kBlockBytes / (128 * 16);
};

template <typename W, int kRows, int kColumns, typename X>
struct alignas(1024) WgmmaTiles<GroupTiling<W, kRows, kColumns, X>> {
  using T = GroupTiling<W, kRows, kColumns, X>;
  bf16 activations[T::kPanels][kColumns][64];  // [panel][m][k], swizzled; or fp16
  unsigned char weights[T::kPanels][T::kWarpgroups][T::kVectors][128]
                       [16];           // [panel][warpgroup][vector][thread][byte]
  bf16 scales[kScaleLines<W>][kRows];  // [line][n]

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

/// d (+)= a slab of weights in registers * activations, as the tiling has them.
template <typename T>
__device__ __forceinline__ void multiply_weights(float (&d)[T::kN / 2], const std::uint32_t (&weights)[4],
                                                 std::uint64_t activations, int scale_d) {
  if constexpr (std::is_same_v<typename T::Activation, fp16>)
    ptx::wgmma_m64nNk16_f32_f16_rs<T::kN, 0>(d, weights, activations, scale_d);
  else
    ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, 0>(d, weights, activations, scale_d);
}

/// A sum as an element of D, which has the type of the activations.
template <typename X>
__device__ __forceinline__ X narrowed(float sum) {
  if constexpr (std::is_same_v<X, fp16>)
    return {static_cast<std::uint16_t>(ptx::cvt_rn_satfinite_f16x2_f32(sum, 0))};
  else
    return ptx::cvt_rn_bf16_f32(sum);
}

}  // namespace gemm
