// Step 40: 16-bit operands lie either way round. An MN-major tile comes in boxes of 64 x 64, its descriptor
// has other strides, and two bits of the instruction say that it is transposed.
#pragma once

#include <cstdint>
#include <type_traits>

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
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_transposed.cuh"

namespace gemm::step_40 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

// Lesson: a box is 128 bytes wide, the span of the swizzle. In a K-major operand these are 64 elements of
// K, and one box has all rows of the tile. In an MN-major operand they are 64 rows, and the box has 64
// lines, one for each k. The tile is a column of such panels. Both layouts take 64 * 128 bytes for 64 rows,
// so a stage is as large either way, and the rows of the second warpgroup start at the same byte.
inline constexpr int kPanelBytes = 64 * 128;

// ANCHOR: load_operand
template <Major kMajor, int kRows>
__device__ __forceinline__ void load_operand(bf16 (&tile)[kRows][64], const ptx::TensorMap* map, int row,
                                             int k, std::uint64_t* full) {
  if constexpr (kMajor == Major::kK) {
    ptx::cp_async_bulk_tensor_2d(tile, map, k, row, full);  // [row][k]
  } else {
#pragma unroll
    for (int panel = 0; panel < kRows; panel += 64)
      ptx::cp_async_bulk_tensor_2d(tile[panel], map, row + panel, k, full);  // [panel][k][row]
  }
}
// ANCHOR_END: load_operand

// Lesson: for 16 elements of K the tensor cores read 32 bytes of each row of a K-major tile, and the next 16
// follow in the same rows. Of an MN-major tile they read 16 whole lines, and the next 16 are 16 lines further
// on. The stride leads from 8 lines to the next 8, rows in one case and k in the other. Both are 1024 bytes,
// so it is the same number. The leading offset was ignored; now it leads from one panel to the next.
// ANCHOR: descriptor
template <Major kMajor>
inline constexpr int kSlabStep = kMajor == Major::kK ? 32 : 16 * 128;

template <Major kMajor>
__device__ __forceinline__ std::uint64_t operand_descriptor(const bf16* tile) {
  const std::uint32_t address = ptx::shared_address(tile);
  return kMajor == Major::kK ? ptx::k_major_descriptor(address, ptx::Swizzle::k128B)
                             : ptx::mn_major_descriptor(address, ptx::Swizzle::k128B, kPanelBytes);
}
// ANCHOR_END: descriptor

template <typename E, int kN, Major kMajorA, Major kMajorB>
__device__ __forceinline__ void multiply_slab(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b,
                                              bool accumulate) {
  constexpr int kTnspA = kMajorA == Major::kMn;
  constexpr int kTnspB = kMajorB == Major::kMn;
  if constexpr (std::is_same_v<E, bf16>)
    ptx::wgmma_m64nNk16_f32_bf16_ss<kN, kTnspA, kTnspB>(d, a, b, accumulate);
  else
    ptx::wgmma_m64nNk16_f32_f16_ss<kN, kTnspA, kTnspB>(d, a, b, accumulate);
}

template <typename T, int kStages, typename E, Major kMajorA, Major kMajorB>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    layouts_kernel(Shape shape, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
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
    ring.init(T::kWarpgroups);
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
    PipelineState<kStages> read{0, 0};
    PipelineState<kStages> release{0, 0};
    const auto release_stage = [&] {
      if (stores_tile()) ring.consumer_release(release);
      release.advance();
    };
    for (int index = first; index < tiles.count(); index += step) {
      // ANCHOR: main_loop
      for (int i = 0; i < k_tiles; ++i) {
        ring.consumer_wait(read, i);
        ptx::wgmma_fence_operand(accumulators);
        ptx::wgmma_fence();
        const auto& stage = ring.stage[read.stage];
        const std::uint64_t a = operand_descriptor<kMajorA>(stage.a[0][warpgroup.row]);
        const std::uint64_t b = operand_descriptor<kMajorB>(stage.b[0][0]);
#pragma unroll
        for (int slab = 0; slab < T::kK / 16; ++slab)
          multiply_slab<E, T::kN, kMajorA, kMajorB>(accumulators, ptx::advanced(a, slab * kSlabStep<kMajorA>),
                                                    ptx::advanced(b, slab * kSlabStep<kMajorB>),
                                                    i > 0 || slab > 0);
        ptx::wgmma_commit_group();
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      // ANCHOR_END: main_loop
      const TilePosition tile = tile_at(index, tiles, raster);
      warpgroup.template wait<0>();
      release_stage();
      store_tile<T, E>(warpgroup, shared.d[warp / 4], &d_map, tile.m * T::kM, tile.n * T::kN);
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <typename E, Major kMajorA, Major kMajorB>
Variant variant(const char* name, const char* summary) {
  using T = WgmmaTiling<128, 256, 64, 2>;
  static_assert(T::kPanels == 1 && T::kWarpgroupM == 64, "a warpgroup has one panel of A, 64 of K deep");
  static_assert(T::kN % 64 == 0, "an MN-major B is whole panels");
  constexpr int kStages = 4;
  using Grid = PersistentCtas<T, Shared<T, kStages>, Roles<T>::kThreads>;
  return variant_of<layouts_kernel<T, kStages, E, kMajorA, kMajorB>, Grid>(
      {.name = name,
       .summary = summary,
       .stages = kStages,
       .traffic = wgmma_tile_traffic<T>(),
       .types = {kTypeOf<E>, kTypeOf<E>, kTypeOf<E>, kMajorA, kMajorB}},
      [](const Problem& problem) {
        return with_typed_maps<T>(problem, problem.shape, Raster{RasterOrder::kGrouped, 16});
      });
}

using enum Major;

inline const Step kStep{
    .name = "40_layouts",
    .title = "16-bit operands either way round: four layouts, one kernel",
    .builds_on = "15_tma_store",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.m_multiple = 8, .n_multiple = 8, .k_multiple = 8},
    .variants = {variant<bf16, kK, kK>("tn", "A [m][k], B [n][k]: a linear layer forward, step 15's problem"),
                 variant<bf16, kK, kMn>("tt", "A [m][k], B [k][n]: the gradient of a layer's input"),
                 variant<bf16, kMn, kMn>("nt", "A [k][m], B [k][n]: the gradient of a layer's weights"),
                 variant<bf16, kMn, kK>("nn", "A [k][m], B [n][k]"),
                 variant<fp16, kMn, kMn>("nt_fp16", "nt in fp16, D saturating")}};

}  // namespace gemm::step_40
