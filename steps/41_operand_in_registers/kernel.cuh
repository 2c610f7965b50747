// Step 41: A comes to the tensor cores through registers. ldmatrix reads the fragments of a slab while the
// slab before it is multiplied, and wgmma takes them from there.
#pragma once

#include <cstdint>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/operand_layout.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_transposed.cuh"

namespace gemm::step_41 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

/// A slab of A in a warp's registers: its 16 rows in 8 x 8 matrices, [k half][row half].
using Fragment = std::uint32_t[4];

// Lesson: lane i hands ldmatrix the address of line i % 8 of matrix i / 8, swizzled as TMA wrote it. In a
// K-major tile a line is a row, in an M-major one a k. There the matrices are read with .trans, and the two
// in the middle change places. The bit tnspA has no part in it: the layout of a fragment is fixed.
// ANCHOR: load_fragments
template <Major kMajor>
__device__ __forceinline__ void load_fragment(Fragment& fragment, const bf16 (*tile)[64], int slab) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  if constexpr (kMajor == Major::kK) {
    const int row = warp * 16 + lane % 16;
    const int unit = slab * 2 + lane / 16;  // each has 8 elements of K
    const int place = (unit ^ row % 8) * 8;
    ptx::ldmatrix_x4(fragment, &tile[row][place]);
  } else {
    const int k = slab * 16 + lane / 16 * 8 + lane % 8;
    const int unit = warp * 2 + lane / 8 % 2;  // each has 8 rows
    const int place = (unit ^ k % 8) * 8;
    ptx::ldmatrix_x4_trans(fragment, &tile[k][place]);
  }
}
// ANCHOR_END: load_fragments

inline constexpr int kSlabs = 4;  // per k-tile, with 16 elements of K each

template <typename T, int kStages, bool kPrefetch, Major kMajorA, Major kMajorB>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    registers_kernel(Shape shape, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                     const __grid_constant__ ptx::TensorMap b_map,
                     const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>(shape);
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(shape.k, T::kK);
  const int warp = warp_index();

  if (threadIdx.x == 0) {
    ring.init(4 * T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int index = first; index < tiles.count(); index += step) {
        const TilePosition tile = tile_at(index, tiles, raster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          auto& stage = ring.stage[fill.stage];
          std::uint64_t* const full = &ring.full[fill.stage];
          ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kBytes);
          load_operand<kMajorA>(stage.a[0], &a_map, tile.m * T::kM, i * T::kK, full);
          load_operand<kMajorB>(stage.b[0], &b_map, tile.n * T::kN, i * T::kK, full);
          fill.advance();
        }
      }
    }
  } else {  // a consumer warpgroup
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    WarpgroupTile<T> warpgroup;
    auto& accumulators = warpgroup.accumulators[0];
    Fragment fragments[2];  // one for the slab that is multiplied, one for the next
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    // Lesson: the threads of four warps read A with loads of their own, and wait_group says nothing about
    // other warps' loads. So each warp releases the stage for its lanes. The fence orders a read through one
    // proxy before a write through another: without it an arrival may overtake a load (docs/proxies.md).
    const auto release_stage = [&] {
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (threadIdx.x % 32 == 0) ring.consumer_release(release);
      release.advance();
    };
    // ANCHOR: load
    const auto load = [&](int slab) {
      load_fragment<kMajorA>(fragments[slab % 2], &ring.stage[read.stage].a[0][warpgroup.row], slab);
    };
    // ANCHOR_END: load
    for (int index = first; index < tiles.count(); index += step) {
      ring.consumer_wait(read, 0);
      if constexpr (kPrefetch) load(0);
      // ANCHOR: main_loop
      for (int i = 0; i < k_tiles; ++i) {
        // ANCHOR: k_tile
        const std::uint64_t b = operand_descriptor<kMajorB>(ring.stage[read.stage].b[0][0]);
#pragma unroll
        for (int slab = 0; slab < kSlabs; ++slab) {
          if constexpr (!kPrefetch) load(slab);
          ptx::wgmma_fence_operand(accumulators);
          ptx::wgmma_fence_operand(fragments[slab % 2]);
          ptx::wgmma_fence();
          ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, kMajorB == Major::kMn>(
              accumulators, fragments[slab % 2], ptx::advanced(b, slab * kSlabStep<kMajorB>),
              i > 0 || slab > 0);
          ptx::wgmma_commit_group();
          // The multiplication before has read the other fragment: it may be loaded under this one.
          warpgroup.template wait<kPrefetch ? 1 : 0>();
          if (slab == 0 && i > 0) release_stage();
          // ANCHOR_END: k_tile
          if (slab + 1 == kSlabs) {
            read.advance();
            if (i + 1 == k_tiles) break;
            ring.consumer_wait(read, i + 1);
          }
          if constexpr (kPrefetch) load((slab + 1) % kSlabs);
        }
      }
      // ANCHOR_END: main_loop
      const TilePosition tile = tile_at(index, tiles, raster);
      warpgroup.template wait<0>();
      release_stage();
      store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.m * T::kM, tile.n * T::kN);
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <bool kPrefetch, Major kMajorA, Major kMajorB>
Variant variant(const char* name, const char* summary) {
  using T = WgmmaTiling<128, 256, 64, 2>;
  constexpr int kStages = 4;
  using Grid = PersistentCtas<T, Shared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<registers_kernel<T, kStages, kPrefetch, kMajorA, kMajorB>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .types = {.major_a = kMajorA, .major_b = kMajorB}},
      [](const Problem& problem) {
        return with_typed_maps<T>(problem, problem.shape, Raster{RasterOrder::kGrouped, 16});
      });
}

using enum Major;

inline const Step kStep{
    .name = "41_operand_in_registers",
    .title = "A through registers: ldmatrix under the multiplication before",
    .builds_on = "40_layouts",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.m_multiple = 8, .n_multiple = 8, .k_multiple = 8},
    .variants = {variant<true, kK, kK>("rs", "a fragment is loaded while the one before is multiplied"),
                 variant<false, kK, kK>("rs_no_prefetch", "load, multiply, wait: one slab after the other"),
                 variant<true, kMn, kK>("rs_nn", "M-major A, read with ldmatrix.trans"),
                 variant<true, kMn, kMn>("rs_nt", "both operands MN-major")}};

}  // namespace gemm::step_41
