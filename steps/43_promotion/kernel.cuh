// Step 43: the accumulators of fp8 products keep 14 bits, so every 128 elements of K they are added to
// binary32 sums; meanwhile the tensor cores multiply for the other warpgroup.
#pragma once

#include <cstdint>

#include "gemm/epilogue/typed_store.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/typed_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/typed_slab.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/trace.cuh"
#include "ptx/wgmma.cuh"

namespace gemm::step_43 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  unsigned char d[T::kWarpgroups][2][64][kRowBytes];  // [warpgroup][buffer][m], swizzled
};

/// In which order the two warpgroups issue multiplications.
enum class Phase { kOut, kIn, kAny };

// Lesson: a warpgroup that promotes has nothing in flight: the tensor cores work on if the other warpgroup
// has issued before. So the two take turns. A turn begins when the other one has issued, and ends when this
// one has: its multiplications queue up behind the other's, and while they run, the other one promotes. Two
// named barriers pass the turn; 128 threads arrive and 128 wait.
// ANCHOR: issue_order
template <Phase kPhase>
struct IssueOrder {
  static constexpr std::uint32_t kFirst = 3;  // 0 is for __syncthreads, 1 and 2 are for the stores
  static constexpr std::uint32_t kThreads = 256;
  std::uint32_t me = static_cast<std::uint32_t>(warp_index()) / 4;

  /// Before the first turn, which is warpgroup 0's.
  __device__ __forceinline__ void begin() const {
    if (kPhase == Phase::kOut && me == 1) pass();
  }
  __device__ __forceinline__ void wait() const {
    if constexpr (kPhase == Phase::kOut) ptx::bar_sync(kFirst + me, kThreads);
    if constexpr (kPhase == Phase::kIn) ptx::bar_sync(kFirst, kThreads);
  }
  __device__ __forceinline__ void pass() const {
    if constexpr (kPhase == Phase::kOut) ptx::bar_arrive(kFirst + 1 - me, kThreads);
  }
  /// After the last turn, which is warpgroup 1's, so that no barrier is left half full.
  __device__ __forceinline__ void end() const {
    if (kPhase == Phase::kOut && me == 0) wait();
  }
};
// ANCHOR_END: issue_order

/// kColumns: the columns of one multiplication. kEvery: k-tiles from one promotion to the next.
template <typename T, int kStages, int kColumns, int kEvery, Phase kPhase, typename A, typename B, typename D>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    promotion_kernel(Shape shape, Raster raster, const float* scales,
                     const __grid_constant__ ptx::TensorMap a_map,
                     const __grid_constant__ ptx::TensorMap b_map,
                     const __grid_constant__ ptx::TensorMap d_map) {
  static_assert(kEvery == 1 || kColumns == T::kN,
                "accumulators that live longer than a k-tile are those of one part of the tile only");
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync())
      produce_typed_tiles<T, A>(ring, shape, raster, &a_map, &b_map);
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const TileGrid tiles = tile_grid<T>(shape);
    const int k_tiles = ceil_div(shape.k, kRowBytes / static_cast<int>(sizeof(A)));
    const int row = warp / 4 * 64;
    const float scale = ptx::ld_global(scales) * ptx::ld_global(scales + 1) * ptx::ld_global(scales + 2);
    const IssueOrder<kPhase> order;
    // Lesson: 192 registers of 232. A second set of 128 accumulators would not fit beside 128 sums, so the
    // tile is multiplied in two parts, which use the same 64 accumulators one after the other.
    float sums[T::kN / 2];             // binary32: 64 rows x kN
    float accumulators[kColumns / 2];  // the tensor cores', 14 bits: 64 rows x kColumns
    PipelineState<kStages> read{0, 0};
    order.begin();
    for (int index = static_cast<int>(blockIdx.x); index < tiles.count();
         index += static_cast<int>(gridDim.x)) {
#pragma unroll
      for (float& sum : sums) sum = 0;
      ring.consumer_wait(read, 0);
      for (int i = 0; i < k_tiles; ++i) {
        const PipelineState<kStages> at = read;
        const auto& stage = ring.stage[at.stage];
        const bool begins = i % kEvery == 0;
        const bool promotes = (i + 1) % kEvery == 0 || i + 1 == k_tiles;
#pragma unroll
        // ANCHOR: promote_columns
        for (int column = 0; column < T::kN; column += kColumns) {
          order.wait();
          ptx::wgmma_fence_operand(accumulators);
          ptx::wgmma_fence();
          const std::uint64_t a = tile_descriptor<64>(stage.a[0][row]);
          const std::uint64_t b = tile_descriptor<64>(stage.b[0][column]);
#pragma unroll
          for (int byte = 0; byte < kRowBytes; byte += 32)
            multiply_slab<A, B, kColumns>(accumulators, ptx::advanced(a, byte), ptx::advanced(b, byte),
                                          !begins || byte > 0);
          ptx::wgmma_commit_group();
          order.pass();
          // Lesson: a warpgroup must issue again before the other one's part is done, in 256 clocks. The
          // promotion takes 64 of them. If the wait for the next k-tile followed it, with all that must be
          // computed before a part can be issued, the turn would come too late. Here the wait costs nothing,
          // because this warpgroup's part is being multiplied.
          if (column + kColumns == T::kN) {
            read.advance();
            if (i + 1 < k_tiles) ring.consumer_wait(read, i + 1);
          }
          ptx::wgmma_wait_group<0>();
          ptx::wgmma_fence_operand(accumulators);
          if (column + kColumns == T::kN && threadIdx.x % 128 == 0) ring.consumer_release(at);
          // ANCHOR_END: promote_columns
          if (promotes) {
            ptx::trace_arithmetic(kColumns / 2);
#pragma unroll
            // ANCHOR: add
            for (int j = 0; j < kColumns / 2; ++j) sums[column / 2 + j] += accumulators[j];
            // ANCHOR_END: add
          }
        }
      }
      const TilePosition tile = tile_at(index, tiles, raster);
      store_typed_tile<D>(sums, scale, shared.d[warp / 4], &d_map, tile.m * T::kM + row, tile.n * T::kN);
    }
    order.end();
    if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
  }
}

inline constexpr int kNever = 1 << 20;  // k-tiles: more than any K has

/// Promotes every kEvery k-tiles of 128 elements.
template <int kN, int kStages, int kEvery, Phase kPhase, typename D>
Variant variant(const char* name, const char* summary) {
  using T = ByteTiling<128, kN, 2>;
  using Grid = PersistentCtas<T, Shared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<promotion_kernel<T, kStages, 128, kEvery, kPhase, e4m3, e4m3, D>, Grid>(
      {.name = name,
       .summary = summary,
       .tile = kByteTile<T, e4m3>,
       .stages = kStages,
       .traffic = byte_tile_traffic<T, e4m3>(),
       .types = {.a = Type::kE4m3,
                 .b = Type::kE4m3,
                 .d = kTypeOf<D>,
                 .promotion = kEvery == kNever ? 0 : 128 * kEvery}},
      [](const Problem& problem) {
        const Raster raster{RasterOrder::kGrouped, 16};
        return with_typed_maps<T>(problem, problem.shape, raster, problem.scales);
      });
}

inline const Step kStep{
    .name = "43_promotion",
    .title = "fp8 sums in two levels: every 128 of K the accumulators are added to binary32 sums",
    .builds_on = "42_types",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 16, .k_multiple = 16},
    .variants = {
        variant<256, 4, 1, Phase::kOut, bf16>("128x256", "every 128 of K, warpgroups out of phase"),
        variant<256, 4, 1, Phase::kIn, bf16>("128x256_in_phase", "both promote at the same time"),
        variant<256, 4, 1, Phase::kAny, bf16>("128x256_unordered", "as it happens"),
        variant<128, 6, 1, Phase::kOut, float>("128x128_every128", "D in binary32"),
        variant<128, 6, 2, Phase::kOut, float>("128x128_every256", "every 256 of K, D in binary32"),
        variant<128, 6, 4, Phase::kOut, float>("128x128_every512", "every 512 of K, D in binary32"),
        variant<128, 6, kNever, Phase::kOut, float>("128x128_never", "fast accumulation, D in binary32")}};

}  // namespace gemm::step_43
