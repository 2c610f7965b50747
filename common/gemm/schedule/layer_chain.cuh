// The chain of layers of steps 51 and 57: what stands for a model of several layers in one multiplication.
#pragma once

#include <bit>
#include <cstdint>

#include "gemm/problem/gemm.h"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/memory.cuh"

namespace gemm {

/// Layer i multiplies its activations by its own weights, which are some of the rows of B, and hands the
/// activations on to layer i + 1. To make stale ones show, each layer doubles them; D is divided by the same
/// power of two, which is exact.
struct Layer {
  const bf16* a;  // [m][k]: activations, written by the layer before
  bf16* next;     // [m][k]: for the next layer, or nullptr
  int begin;      // columns of D, rows of B
  int end;
  float scale;  // of this layer's sums
};

/// A warp for each of `shares`: its share of the activations, doubled.
__device__ __forceinline__ void hand_on(const Layer& layer, std::int64_t elements, unsigned share,
                                        unsigned shares) {
  if (layer.next == nullptr) return;
  const std::int64_t all = std::int64_t{shares} * 32;
  for (auto i = std::int64_t{share} * 32 + threadIdx.x % 32; i < elements / 8; i += all) {
    const uint4 from = ptx::ld_global(reinterpret_cast<const uint4*>(layer.a) + i);
    const std::uint32_t words[4] = {from.x, from.y, from.z, from.w};
    std::uint32_t doubled[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      doubled[j] = ptx::cvt_rn_bf16x2_f32(2 * std::bit_cast<float>(words[j] << 16),
                                          2 * std::bit_cast<float>(words[j] & 0xffff0000u));
    ptx::st_global(reinterpret_cast<uint4*>(layer.next) + i,
                   uint4{doubled[0], doubled[1], doubled[2], doubled[3]});
  }
}

/// A warp of each CTA does it for the layer of a launch.
__device__ __forceinline__ void hand_on(const Layer& layer, std::int64_t elements) {
  hand_on(layer, elements, blockIdx.x, gridDim.x);
}

}  // namespace gemm
