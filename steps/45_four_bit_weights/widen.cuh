// Widening: packed weights to fragments of bf16, and where they get their scales.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/problem/types.h"
#include "gemm/problem/weights.h"
#include "gemm/tile/weight_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/math.cuh"
#include "ptx/wgmma.cuh"

namespace gemm::step_45 {

/// The four registers of a slab's fragment: rows r and r + 8, and the same 8 further along K.
using Fragment = std::uint32_t[4];

/// What a sum of products must be multiplied by: widened int4 are 64 times too small.
template <typename W>
inline constexpr float kUnit = std::is_same_v<W, int4x2> ? 64 : 1;

// Lesson: the bits of a bf16 below 256, read as an integer u, are the number u * 2^-133: subnormal below 128,
// and the numbers with the smallest exponent go on in the same steps. So nothing converts: an AND leaves two
// nibbles u where they lie, in bits 0 to 3 or 4 to 7 of each half, and one FMA makes (u - 8) / 64 of them,
// without the 8 that was added when they were packed. A sum is multiplied by 64 once. An int8 is widened in
// another way, as two nibbles: 0x4300, which is 128, with u in its last four bits is 128 + u. An e4m3 in
// a bf16's place has the right fraction and an exponent too small by 127 - 7 = 120, subnormal numbers
// included.
template <typename W>
__device__ __forceinline__ void widen(Fragment& fragment, const std::uint32_t* word) {
  constexpr std::uint32_t kTwoTo127 = 0x7f007f00, kTwoTo123 = 0x7d007d00, kMinusEighth = 0xbe00be00;
  constexpr std::uint32_t kOne = 0x3f803f80, kSixteen = 0x41804180, kMinus2304 = 0xc510c510;
  constexpr std::uint32_t kTwoTo120 = 0x7b807b80, k128 = 0x43004300;
  const auto nibbles = [](std::uint32_t bits) { return ptx::lop3_and_or(bits, 0x000f000f, k128); };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<W, int4x2>) {
      // ANCHOR: widen
      const std::uint32_t two = word[0] >> i / 2 * 8 & (i % 2 == 0 ? 0x000f000f : 0x00f000f0);
      fragment[i] = ptx::fma_rn_bf16x2(two, i % 2 == 0 ? kTwoTo127 : kTwoTo123, kMinusEighth);
      // ANCHOR_END: widen
    } else if constexpr (std::is_same_v<W, int8>) {
      const std::uint32_t pair = word[i / 2] >> 8 * (i % 2);
      const std::uint32_t high = ptx::fma_rn_bf16x2(nibbles(pair >> 4), kSixteen, kMinus2304);
      fragment[i] = ptx::fma_rn_bf16x2(nibbles(pair), kOne, high);  // low + 128, and 16 * high - 256
    } else {
      const std::uint32_t pair = i % 2 == 0 ? word[i / 2] << 8 : word[i / 2];
      const std::uint32_t magnitude = pair >> 4 & 0x07f007f0;
      fragment[i] = ptx::fma_rn_bf16x2(ptx::lop3_and_or(pair, 0x80008000, magnitude), kTwoTo120, 0);
    }
  }
}

/// The fragments of 64 elements of K.
template <typename T>
__device__ __forceinline__ void widen_panel(Fragment (&fragments)[4],
                                            const unsigned char (&weights)[T::kVectors][128][16]) {
  std::uint32_t words[4 * T::kVectors];  // T::kVectors for each slab
  load_words(words, weights);
#pragma unroll
  for (int slab = 0; slab < 4; ++slab) widen<typename T::Weight>(fragments[slab], &words[slab * T::kVectors]);
}

// Lesson: a scale belongs to a row of weights, and a thread has two rows of the accumulators: two scales a
// group. So the products of a group can be summed first and scaled once, in binary32, with nothing rounded;
// or each weight is scaled, as here, and rounded to bf16 again, and the products of all groups go to the same
// accumulators.
__device__ __forceinline__ void scale_weights(Fragment (&fragments)[4], const bf16 (&scales)[2]) {
#pragma unroll
  for (auto& fragment : fragments) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      fragment[i] = ptx::fma_rn_bf16x2(fragment[i], scales[i % 2].bits * 0x10001u, 0);
  }
}

}  // namespace gemm::step_45
