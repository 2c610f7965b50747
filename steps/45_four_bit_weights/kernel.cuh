// Step 45: weights of 4 bits times activations in bf16. The weights are wgmma's A, which comes from
// registers: there they are widened to bf16, with tricks on their bits, while the k-tile before is
// multiplied.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/epilogue/transposed_store.cuh"
#include "gemm/launch/weight_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/weight_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/partials.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/weight_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_transposed.cuh"

namespace gemm::step_45 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  TransposedBuffers<T> d[T::kWarpgroups];
};

/// Where a weight gets its scale: when it is widened, or when the products of a group are summed.
enum class Scale { kWeights, kSums };

/// The four registers of a slab's fragment: rows r and r + 8, and the same 8 further along K.
using Fragment = std::uint32_t[4];

// Lesson: in a bf16 between 128 and 256 the last bit of the fraction counts 1. So 0x4300, which is 128, with
// an integer u < 16 in its last four bits is 128 + u, and no instruction converts: one LOP3 takes the nibbles
// of two weights and inserts them, one FMA subtracts 128 and the 8 that was added when they were packed. 8
// bits are two nibbles, 16 * high + low. An e4m3 in a bf16's place has the right fraction and an exponent too
// small by 127 - 7 = 120, subnormal numbers included.
template <typename W>
__device__ __forceinline__ void widen(Fragment& fragment, const std::uint32_t* word) {
  constexpr std::uint32_t kOne = 0x3f803f80, kSixteen = 0x41804180, kMinus136 = 0xc308c308;
  constexpr std::uint32_t kMinus2304 = 0xc510c510, kTwoTo120 = 0x7b807b80, k128 = 0x43004300;
  const auto nibbles = [](std::uint32_t bits) { return ptx::lop3_and_or(bits, 0x000f000f, k128); };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<W, int4x2>) {
      fragment[i] = ptx::fma_rn_bf16x2(nibbles(word[0] >> 4 * i), kOne, kMinus136);
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

/// The fragments of a k-tile.
template <typename T, Scale kScale>
__device__ __forceinline__ void widen_tile(Fragment (&fragments)[4],
                                           const unsigned char (&weights)[T::kVectors][128][16],
                                           const bf16 (&scales)[2]) {
  std::uint32_t words[4 * T::kVectors];  // T::kVectors for each slab
  load_words(words, weights);
#pragma unroll
  for (int slab = 0; slab < 4; ++slab) {
    widen<typename T::Weight>(fragments[slab], &words[slab * T::kVectors]);
    if constexpr (kScale == Scale::kWeights) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        fragments[slab][i] = ptx::fma_rn_bf16x2(fragments[slab][i], scales[i % 2].bits * 0x10001u, 0);
    }
  }
}

// Lesson: a scale belongs to a row of weights, and a thread has two rows of the accumulators: two scales a
// group. So the products of a group can be summed first and scaled once, in binary32, with nothing rounded;
// or each weight is scaled, and rounded to bf16 again, and no second set of accumulators is needed.
template <int kCount>
__device__ __forceinline__ void add_scaled(float (&sums)[kCount], const float (&products)[kCount],
                                           const bf16 (&scales)[2]) {
#pragma unroll
  for (int j = 0; j < kCount; ++j) sums[j] += products[j] * to_float(scales[j / 2 % 2]);
}

template <typename T, int kStages, Scale kScale>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    weights_kernel(Shape shape, Raster raster, Decomposition decomposition, void* workspace,
                   const __grid_constant__ ptx::TensorMap w_map, const __grid_constant__ ptx::TensorMap x_map,
                   const __grid_constant__ ptx::TensorMap s_map,
                   const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(shape);
  const int worker = static_cast<int>(blockIdx.x);
  TileScheduler scheduler(decomposition, worker);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(4 * T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync())
      produce_weight_tiles<T>(ring, shape, raster, scheduler, &w_map, &x_map, &s_map);
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const int row = warp * 16 + thread % 32 / 4;  // of the tile, and 8 more: of this thread's weights
    const Partials<T> partials(workspace, decomposition.slots());
    WarpgroupTile<T> warpgroup;
    auto& accumulators = warpgroup.accumulators[0];      // with kSums, of one group
    float sums[kScale == Scale::kSums ? T::kN / 2 : 1];  // of all groups, scaled
    Fragment fragments[T::kHalves][4];  // [half][slab]: of a k-tile that is multiplied, and of the next one
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (thread % 32 == 0) ring.consumer_release(release);
      release.advance();
    };
    for (WorkTile work; scheduler.next(work);) {
#pragma unroll
      for (float& sum : sums) sum = 0;
      for (int i = 0; i < work.count(); ++i) {  // groups
        bf16 scales[2];
#pragma unroll
        for (int half = 0; half < T::kHalves; ++half) {
          ring.consumer_wait(read, i);
          const auto& stage = ring.stage[read.stage];
          if (half == 0) {
            scales[0] = ptx::ld_shared(&stage.scales[row]);
            scales[1] = ptx::ld_shared(&stage.scales[row + 8]);
          }
          widen_tile<T, kScale>(fragments[half], stage.weights[warp / 4], scales);
          const std::uint64_t b = tile_descriptor<64>(stage.activations[0]);
          ptx::wgmma_fence_operand(accumulators);
          for (auto& fragment : fragments[half]) ptx::wgmma_fence_operand(fragment);
          ptx::wgmma_fence();
#pragma unroll
          for (int slab = 0; slab < 4; ++slab)
            ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, 0>(
                accumulators, fragments[half][slab], ptx::advanced(b, 32 * slab),
                (kScale == Scale::kWeights && i > 0) || half > 0 || slab > 0);
          ptx::wgmma_commit_group();
          read.advance();
          warpgroup.template wait<1>();  // the k-tile before: its fragments and its stage are free
          if (half > 0 || (kScale == Scale::kWeights && i > 0)) release_stage();
        }
        if constexpr (kScale == Scale::kSums) {
          warpgroup.template wait<0>();
          release_stage();
          add_scaled(sums, accumulators, scales);
        }
      }
      if constexpr (kScale == Scale::kSums) {
        for (int j = 0; j < T::kN / 2; ++j) accumulators[j] = sums[j];
      } else {
        warpgroup.template wait<0>();
        release_stage();
      }
      if (work.slot >= 0) {
        partials.store_partials(warpgroup, work.slot, warp / 4);
        continue;
      }
      partials.fixup(warpgroup, peers_of(decomposition, work, worker), warp / 4);
      const TilePosition tile = tile_at(work.tile, tiles, raster);
      store_transposed<T>(warpgroup, shared.d[warp / 4], &d_map, tile.n * T::kN,
                          tile.m * T::kM + warp / 4 * 64);
    }
    if (thread == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

/// Stages hold half a group each; what the harness calls a k-tile is a whole one.
template <typename W, int kColumns, int kStages, Scale kScale, Split kSplit>
Variant variant(const char* name, const char* summary) {
  using T = WeightTiling<W, 128, kColumns, kColumns <= 16 ? 2 : 1>;
  using Launch =
      WeightLaunch<weights_kernel<T, kStages, kScale>, T, Shared<T, kStages>, Roles<T>::kThreads, kSplit>;
  return Launch::variant({.name = name,
                          .summary = summary,
                          .stages = kStages / T::kHalves,
                          .types = {.rounds_weights = kScale == Scale::kWeights}});
}

using enum Scale;
using enum Split;

inline const Step kStep{
    .name = "45_four_bit_weights",
    .title = "4-bit weights, packed for the fragment and widened in registers",
    .builds_on = "41_operand_in_registers",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = kWeightRows, .k_multiple = 128},
    .variants = {variant<int4x2, 16, 12, kSums, kStreamK>("int4_16", "for M up to 16, all tiles stream-K"),
                 variant<int4x2, 16, 12, kSums, kDataParallel>("int4_16_whole", "whole tiles"),
                 variant<int4x2, 16, 12, kWeights, kStreamK>("int4_16_weights", "the weights are scaled"),
                 variant<int4x2, 64, 12, kSums, kStreamK>("int4_64", "for M up to 64"),
                 variant<int4x2, 128, 8, kSums, kHybrid>("int4_128", "128 rows, the sums are scaled"),
                 variant<int4x2, 256, 4, kWeights, kHybrid>("int4_256", "256 rows, the weights are scaled"),
                 variant<int8, 16, 8, kSums, kStreamK>("int8_16", "weights of 8 bits"),
                 variant<int8, 256, 4, kWeights, kHybrid>("int8_256", "the same, for many rows"),
                 variant<e4m3, 16, 8, kSums, kStreamK>("e4m3_16", "weights in e4m3"),
                 variant<e4m3, 256, 4, kWeights, kHybrid>("e4m3_256", "the same, for many rows")}};

}  // namespace gemm::step_45
