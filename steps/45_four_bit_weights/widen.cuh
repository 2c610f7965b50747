// Widening: packed weights to fragments of bf16 or fp16, and where they get their scales.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/problem/types.h"
#include "gemm/problem/weights.h"
#include "gemm/tile/weight_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/math.cuh"
#include "ptx/wgmma.cuh"

namespace gemm::step_45 {

/// The four registers of a slab's fragment: rows r and r + 8, and the same 8 further along K.
using Fragment = std::uint32_t[4];

/// What a sum of products must be multiplied by: widened int4 are so much too small.
template <typename W, typename X>
inline constexpr float kUnit = kTypeOf<W> != Type::kInt4 ? 1
                               : std::is_same_v<X, fp16> ? 512
                                                         : 64;

/// What widening adds to int4 that are stored plus 8, twice in a register: -8 / kUnit.
template <typename X>
inline constexpr std::uint32_t kMinus8 = std::is_same_v<X, fp16> ? 0xa400a400 : 0xbe00be00;

/// What it adds to the weights of this thread's rows `row` and row + 8 where they have zero points, which
/// come as bf16 in units of 1 / 64.
template <typename X, int kRows>
__device__ __forceinline__ void load_zero_points(std::uint32_t (&minus)[2], const bf16 (&line)[kRows],
                                                 int row) {
  for (int i = 0; i < 2; ++i) {
    const bf16 zero = ptx::ld_shared(&line[row + 8 * i]);
    const float of_fp16 = to_float(zero) * (kUnit<asymmetric_int4x2, bf16> / kUnit<asymmetric_int4x2, fp16>);
    minus[i] =
        std::is_same_v<X, fp16> ? ptx::cvt_rn_satfinite_f16x2_f32(of_fp16, of_fp16) : zero.bits * 0x10001u;
  }
}

// Lesson: the bits of a bf16 below 256, read as an integer u, are the number u * 2^-133: subnormal below 128,
// and the numbers with the smallest exponent go on in the same steps. So nothing converts: an AND leaves two
// nibbles u where they lie, in bits 0 to 3 or 4 to 7 of each half, and one FMA makes (u - 8) / 64 of them,
// without the 8 that was added when they were packed. A sum is multiplied by 64 once. An int8 is widened in
// another way, as two nibbles: 0x4300, which is 128, with u in its last four bits is 128 + u. An e4m3 in
// a bf16's place has the right fraction and an exponent too small by 127 - 7 = 120, subnormal numbers
// included.
// Where a row has a zero point, the FMA adds what came with the scale, and -8 / 64 is not in the code. The
// bits of an fp16 below 1024 are u * 2^-24, and 2^15 is its largest power of 2: so the same FMA makes
// (u - 8) / 512.
template <typename W, typename X>
__device__ __forceinline__ void widen(Fragment& fragment, const std::uint32_t* word,
                                      const std::uint32_t (&minus)[2]) {
  constexpr std::uint32_t kTwoTo127 = 0x7f007f00, kTwoTo123 = 0x7d007d00;
  constexpr std::uint32_t kTwoTo15 = 0x78007800, kTwoTo11 = 0x68006800;  // in fp16
  constexpr std::uint32_t kOne = 0x3f803f80, kSixteen = 0x41804180, kMinus2304 = 0xc510c510;
  constexpr std::uint32_t kTwoTo120 = 0x7b807b80, k128 = 0x43004300;
  const auto nibbles = [](std::uint32_t bits) { return ptx::lop3_and_or(bits, 0x000f000f, k128); };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kTypeOf<W> == Type::kInt4) {
      // ANCHOR: widen
      const std::uint32_t two = word[0] >> i / 2 * 8 & (i % 2 == 0 ? 0x000f000f : 0x00f000f0);
      if constexpr (std::is_same_v<X, bf16>)
        fragment[i] = ptx::fma_rn_bf16x2(two, i % 2 == 0 ? kTwoTo127 : kTwoTo123, minus[i % 2]);
      // ANCHOR_END: widen
      else
        fragment[i] = ptx::fma_rn_f16x2(two, i % 2 == 0 ? kTwoTo15 : kTwoTo11, minus[i % 2]);
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
                                            const unsigned char (&weights)[T::kVectors][128][16],
                                            const std::uint32_t (&minus)[2]) {
  std::uint32_t words[4 * T::kVectors];  // T::kVectors for each slab
  load_words(words, weights);
#pragma unroll
  for (int slab = 0; slab < 4; ++slab)
    widen<typename T::Weight, typename T::Activation>(fragments[slab], &words[slab * T::kVectors], minus);
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
