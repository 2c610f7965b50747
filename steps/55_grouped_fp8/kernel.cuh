// Step 55: groups of rows with block scales. Only the producer searches: a tile's place in the groups reaches
// the consumers with the last k-tile of the tile before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "built.cuh"
#include "gemm/epilogue/whole_store.cuh"
#include "gemm/launch/groups.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/issue_order.cuh"
#include "gemm/pipeline/lane_scales.cuh"
#include "gemm/pipeline/promoting_reader.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/scaled_parts.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/group_search.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/byte_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_55 {

template <typename V, typename T = typename V::T>
__global__ void __launch_bounds__(V::R::kThreads, T::kCtasPerSm)
    grouped_fp8_kernel(Gemm gemm, GroupsOnDevice groups, BlockScales given,
                       const __grid_constant__ ptx::TensorMap scale_map,
                       const __grid_constant__ ptx::TensorMap a_map,
                       const __grid_constant__ ptx::TensorMap b_map,
                       const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<V>>();
  auto& ring = shared.ring;
  const auto [m, n, k] = gemm.shape;
  const int k_tiles = ceil_div(k, kScaleBlock);
  const int warp = warp_index();

  // Lesson: a search that looks at 32 more groups takes longer than a part, so consumers would issue their
  // next part late. Only the producer searches. The CTA's first tile is the exception: nothing is being
  // multiplied yet, so every warp finds it for itself.

  // ANCHOR: first_tile
  GroupSearch<T, GroupsOnDevice> search{n, {RasterOrder::kGrouped, 2048 / T::kM}, groups};
  int index = static_cast<int>(blockIdx.x);
  GroupTile found;
  if (!search.find(index, found)) return;
  ConsumerTile work = consumer_tile(found, search.at.group);
  // ANCHOR_END: first_tile

  if (threadIdx.x == 0) {
    ring.init(4 * V::kConsumers);  // one arrival per warp: each has read scales
    ptx::fence_mbarrier_init_release_cluster();
  }
  if constexpr (V::kBoxRows < T::kM) fill_with_zeros(ring.stage, V::R::kThreads);
  __syncthreads();

  if (warp >= V::R::kProducerWarp) {
    ptx::setmaxnreg_dec<V::R::kProducerRegisters>();
    if (warp != V::R::kProducerWarp) return;
    const bool issues = ptx::elect_sync();
    PipelineState<V::kStages> fill{0, 1};
    bool backwards = false;  // every second tile goes backwards along K, as in step 46
    // ANCHOR: producer
    for (bool more = true; more; backwards = !backwards) {
      const GroupTile tile = found;
      more = search.find(index += static_cast<int>(gridDim.x), found);
      const ConsumerTile following = more ? consumer_tile(found, search.at.group) : ConsumerTile{};
      const int boxes =
          V::kBoxRows == T::kM ? 1 : ceil_div(std::min(tile.end - tile.row, +T::kM), V::kBoxRows);
      const auto bytes =
          static_cast<std::uint32_t>(kRowBytes * (boxes * V::kBoxRows + T::kN) + 4 * kScaleRows<T>);
      for (int number = 0; issues && number < k_tiles; ++number) {
        ring.producer_acquire(fill, number);
        auto& stage = ring.stage[fill.stage];
        auto* const full = &ring.full[fill.stage];
        if (number + 1 == k_tiles) ptx::st_shared(&shared.following[fill.stage], following);
        ptx::mbarrier_arrive_expect_tx(full, bytes);
        // ANCHOR_END: producer
        const int i = backwards ? k_tiles - 1 - number : number;
#pragma unroll 1
        for (int row = 0; row < boxes * V::kBoxRows; row += V::kBoxRows)
          ptx::cp_async_bulk_tensor_2d(stage.a[0][row], &a_map, i * kRowBytes, tile.row + row, full);
        ptx::cp_async_bulk_tensor_2d(stage.b, &b_map, i * kRowBytes, tile.b_row, full);
        ptx::cp_async_bulk_tensor_2d(shared.scales_a[fill.stage].rows, &scale_map, tile.row / 4 * 4, i, full);
        fill.advance();
      }
      __syncwarp();
    }
    return;
  }

  ptx::setmaxnreg_inc<V::R::kConsumerRegisters>();
  const int warpgroup = warp / 4;
  typename V::Reader reader{ring, warpgroup / V::kAcross * 64, warpgroup % V::kAcross * V::kWidth};
  bool backwards = false;  // the direction along K of the tile whose scales are loaded
  int scale_row = 0;       // the place of this thread's upper row among A's scales in a stage
  const auto load_scales_b = [&](const ConsumerTile& tile, int k_tile) {
    reader.scales_b.load(scales_of_group(given, tile.group), tile.column + reader.column, k_tile, k_tiles,
                         backwards);
  };
  // ANCHOR: row_scales
  const auto begin_tile = [&](const ConsumerTile& tile) {
    load_scales_b(tile, 0);
    scale_row = tile.row % 4 + reader.thread_row;
  };
  const auto wait_for = [&](int k_tile) {
    ring.consumer_wait(reader.read, k_tile);
    read_row_scales(reader.scales_a, &shared.scales_a[reader.read.stage].rows[scale_row]);
  };
  // ANCHOR_END: row_scales
  const auto issue_next = [&] { reader.issue(0, reader.read.stage); };
  const auto store = [&] {
    const int row = work.row + reader.row;
    const int column = work.column + reader.column;
    if (row + 64 <= work.end)
      store_whole_tile(reader.sums, shared.d[warpgroup], &d_map, row, column);
    else
      store_rows_before(reader.sums, gemm.d, work.end, gemm.shape.n, row, column);
    __syncwarp();  // without it, ptxas takes the stage's number for one that differs from lane to lane
  };

  begin_tile(work);
  wait_for(0);
  reader.order.begin();
  issue_next();
  int first = 0;  // the column of a block of B in which this warpgroup's columns begin
  for (;;) {
    first = (work.column + reader.column) % kScaleBlock;
    reader.clear();
    for (int i = 0; i + 1 < k_tiles; ++i) {
      const auto meanwhile = [&] {
        if (i % 32 == 31) load_scales_b(work, i + 1);
        reader.read.advance();
        wait_for(i + 1);
      };
      reader.finish_k_tile(i, first, meanwhile, issue_next);
    }
    // ANCHOR: end_of_tile
    const ConsumerTile following = ptx::ld_shared(&shared.following[reader.read.stage]);
    if (warp_uniform(following.end) == 0) break;
    backwards = !backwards;
    const auto meanwhile = [&] {
      begin_tile(following);
      reader.read.advance();
      wait_for(0);
    };
    reader.finish_k_tile(k_tiles - 1, first, meanwhile, issue_next);
    store();
    work = following;
    // ANCHOR_END: end_of_tile
  }
  reader.finish_k_tile(
      k_tiles - 1, first, [] {}, [] {});
  reader.order.end();
  store();
  if (threadIdx.x % 128 == 0) ptx::cp_async_bulk_wait_group<0>();
}

template <typename V, GroupForm kForm>
Variant variant(const char* name, const char* summary) {
  using T = typename V::T;
  using Grid = GroupedCtas<T, Shared<V>, V::R::kThreads>;
  return variant_of<grouped_fp8_kernel<V>, Grid>(
      {.name = name,
       .summary = summary,
       .tile = kByteTile<T, e4m3>,
       .stages = V::kStages,
       .traffic = byte_tile_traffic<T, e4m3>(),
       .types = {.a = Type::kE4m3,
                 .b = Type::kE4m3,
                 .d = Type::kBf16,
                 .promotion = kScaleBlock,
                 .scaling = Scaling::kBlocks},
       .groups = kForm},
      [](const Problem& problem) {
        const auto [m, n, k] = problem.shape;
        return std::tuple(static_cast<const Gemm&>(problem), groups_on_device(problem),
                          BlockScales{problem.scales_b, problem.scales_b_pitch, n},
                          block_scale_map(problem, kScaleRows<T>),
                          typed_map(problem.a, Type::kE4m3, m, k, V::kBoxRows),
                          typed_map(problem.b, Type::kE4m3, count_groups(problem) * n, k, T::kN),
                          typed_map(problem.d, Type::kBf16, m, n, 64));
      });
}

inline const Step kStep{.name = "55_grouped_fp8",
                        .title = "groups with block scales, whose tiles only the producer looks for",
                        .builds_on = "46_fitted_fp8",
                        .unit = MathUnit::kWgmma,
                        .architecture = Architecture::kSm90a,
                        .contract = {.n_multiple = 8, .k_multiple = 16},
                        .variants = {variant<Fp8Groups<128, 256, 3>, GroupForm::kRows>(
                                         "contiguous", "groups one after another, tiles of 128 x 256"),
                                     variant<Fp8Groups<128, 192, 4, Phase::kOut>, GroupForm::kRows>(
                                         "contiguous_192", "the same, 128 x 192 in turns"),
                                     variant<Fp8Groups<128, 256, 3>, GroupForm::kMasked>(
                                         "masked", "counts in device memory, tiles of 128 x 256"),
                                     variant<Fp8Groups<64, 256, 4, Phase::kAny, 16>, GroupForm::kMasked>(
                                         "masked_few", "tiles of 64 x 256 for few rows per group")}};

}  // namespace gemm::step_55
