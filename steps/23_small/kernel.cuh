// Step 23: a kernel for small problems. It leaves out what pays only in a launch with many k-tiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "choice.h"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/tile/swizzle.h"
#include "gemm/tile/tile_source.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "partials.cuh"
#include "ptx/cluster.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

namespace gemm::step_23 {

/// Issues this thread's copies of a k-tile of one operand.
template <typename T, int kRows>
__device__ __forceinline__ void copy_async(bf16 (&rows)[kRows][T::kPanelK],
                                           const TileSource<T, kRows>& source, int k0) {
  const int count = source.count(k0);
  bf16* const to = &rows[source.row][swizzle_chunk<2 * T::kPanelK>(source.row, source.column / 8) * 8];
#pragma unroll
  for (int i = 0; i < source.kVectors; ++i)
    ptx::cp_async_cg_16(to + i * source.kTileStep, source.address(i, k0), i < count ? 16 : 0);
}

/// Rounds a unit and stores what lies inside D. `row` and `column` are those of its first accumulator.
__device__ __forceinline__ void store_unit(const Gemm& gemm, const float4& unit, int row, int column) {
  const auto [m, n, k] = gemm.shape;
  if (column >= n) return;
  bf16* const to = gemm.d + offset(row, column, n);
  if (row < m) ptx::st_global(reinterpret_cast<std::uint32_t*>(to), ptx::cvt_rn_bf16x2_f32(unit.x, unit.y));
  if (row + 8 < m)
    ptx::st_global(reinterpret_cast<std::uint32_t*>(to + offset(8, 0, n)),
                   ptx::cvt_rn_bf16x2_f32(unit.z, unit.w));
}

// Lesson: there is no tensor map, no ring of barriers, no producer and no queue. They keep the tensor cores
// busy through many k-tiles. A launch with few k-tiles is over before that pays. Without them, less code
// is fetched as well: a launch executes it for the first time, so no cache of the SM has it yet.
template <typename T>
__global__ void __launch_bounds__(T::kThreads, 1) small_kernel(Gemm gemm) {
  auto& shared = ptx::dynamic_shared<Shared<T>>();
  const auto [m, n, k] = gemm.shape;
  const int part = static_cast<int>(blockIdx.x);  // also the rank in the cluster
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.z) * T::kN;
  const int k_tiles = ceil_div(k, T::kK);
  const int first = part * k_tiles / T::kParts;
  const int count = (part + 1) * k_tiles / T::kParts - first;
  const TileSource<T, T::kM> a(gemm.a, tile_row, m, k);
  const TileSource<T, T::kN> b(gemm.b, tile_column, n, k);
  const auto copy = [&](int k_tile) {
    if (k_tile < count) {
      WgmmaTiles<T>& tiles = shared.stage[k_tile % T::kStages];
      copy_async(tiles.a[0], a, (first + k_tile) * T::kK);
      copy_async(tiles.b[0], b, (first + k_tile) * T::kK);
    }
    ptx::cp_async_commit_group();
  };
  // ANCHOR: prologue
#pragma unroll 1
  for (int i = 0; i < T::kAhead; ++i) copy(i);
  if constexpr (T::kParts > 1) {
    if (threadIdx.x == 0) {
      constexpr int kBytes =
          (T::kParts - 1) * T::kUnitsPerCta * T::kThreads * static_cast<int>(sizeof(float4));
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      ptx::mbarrier_arrive_expect_tx(&shared.arrived, kBytes);
    }
    __syncwarp();
    ptx::barrier_cluster_arrive_relaxed();
  }
  // ANCHOR_END: prologue

  WarpgroupTile<T> warpgroup;
  // If K has fewer k-tiles than parts, this CTA may have none. forget() sets its accumulators to 0, and it
  // sends these zeros.
  if (count == 0) warpgroup.forget();

    // ANCHOR: k_tiles
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    ptx::cp_async_wait_group<T::kAhead - 1>();
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();  // k-tile i is there, and k-tile i - 2 has been multiplied
    warpgroup.issue(shared.stage[i % T::kStages], i == 0);
    copy(i + T::kAhead);  // where k-tile i - 2 was
    warpgroup.template wait<1>();
  }
  warpgroup.template wait<0>();
  ptx::cp_async_wait_group<0>();  // only empty groups are left
  // ANCHOR_END: k_tiles

  const float* const accumulators = warpgroup.accumulators[0];
  if constexpr (T::kParts > 1) {
    ptx::barrier_cluster_wait();  // the others have initialised their barriers
    send_partials(shared, accumulators, part);
    ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = tile_row + static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int owner = 0; owner < T::kParts; ++owner) {
    if (owner != part) continue;  // so that the index of every accumulator is a constant
#pragma unroll
    for (int i = 0; i < T::kUnitsPerCta; ++i) {
      const int unit = owner * T::kUnitsPerCta + i;
      float4 sum = unit_of(accumulators, unit);
      for (int source = 0; source < T::kParts - 1; ++source) {  // always in this order
        const float4 other = ptx::ld_shared(&shared.partials[source * T::kUnitsPerCta + i][threadIdx.x]);
        sum = make_float4(sum.x + other.x, sum.y + other.y, sum.z + other.z, sum.w + other.w);
      }
      store_unit(gemm, sum, row, tile_column + unit * 8 + lane % 4 * 2);
    }
  }
}

/// Launches a cluster for every tile of D, with a CTA for every part of K.
template <typename T>
struct SmallGrid {
  using Tile = T;
  static LaunchPlan plan(const void*, const Shape& shape) {
    return {.launch = {.grid = {T::kParts, static_cast<unsigned>(ceil_div(shape.m, T::kM)),
                                static_cast<unsigned>(ceil_div(shape.n, T::kN))},
                       .block = {T::kThreads},
                       .cluster = {T::kParts},
                       .shared_bytes = sizeof(Shared<T>)}};
  }
};

template <typename T>
Variant variant(const char* name, const char* summary) {
  return variant_of<small_kernel<T>, SmallGrid<T>>(
      {.name = name, .summary = summary, .stages = T::kStages, .traffic = wgmma_tile_traffic<T>()});
}

/// The tiles of kCosts.
inline const std::vector<Variant>& tiles() {
  static const std::vector<Variant> all{
      variant<SmallTiling<64, 1>>("64x64", "a CTA multiplies all of K"),
      variant<SmallTiling<64, 2>>("64x64_2", "two CTAs share K"),
      variant<SmallTiling<64, 4>>("64x64_4", "four CTAs share K"),
      variant<SmallTiling<64, 8>>("64x64_8", "eight CTAs share K"),
      variant<SmallTiling<32, 1>>("64x32", "half as wide"),
      variant<SmallTiling<32, 2>>("64x32_2", "half as wide, two CTAs share K"),
      variant<SmallTiling<32, 4>>("64x32_4", "half as wide, four CTAs share K"),
      variant<SmallTiling<16, 1>>("64x16", "a quarter as wide"),
      variant<SmallTiling<16, 2>>("64x16_2", "a quarter as wide, two CTAs share K")};
  return all;
}
/// The tile that is predicted to be fastest. A mutant is built with one tile alone and has no choice.
inline const Variant& fastest_tile(const Shape& shape) {
  const Cost& cost = kCosts[static_cast<std::size_t>(fastest(shape, ptx::this_card().sms))];
  const auto found =
      std::find_if(tiles().begin(), tiles().end(), [&](const Variant& one) { return one.name == cost.name; });
  return found == tiles().end() ? tiles().front() : *found;
}

/// All tiles, and before them a variant that stands for the one that is predicted to be fastest.
inline std::vector<Variant> variants() {
  Variant by_shape = tiles().front();  // the widest: a launch has at least a CTA per tile of this size
  by_shape.name = "auto";
  by_shape.summary = "the one below that suits the shape";
  by_shape.launch_shape = [](const Shape& shape) { return fastest_tile(shape).launch_shape(shape); };
  by_shape.prepare = [](const Problem& problem) { return fastest_tile(problem.shape).prepare(problem); };
  by_shape.choose = [](const Shape& shape) {
    return Choice{fastest_tile(shape).name, "It has the shortest predicted time."};
  };
  std::vector<Variant> all{by_shape};
  all.insert(all.end(), tiles().begin(), tiles().end());
  return all;
}

inline const Step kStep{.name = "23_small",
                        .title = "what a launch costs, and how a small problem pays less of it",
                        .builds_on = "08_wgmma",
                        .unit = MathUnit::kWgmma,
                        .architecture = Architecture::kSm90a,
                        .contract = {.n_multiple = 8, .k_multiple = 8},
                        .variants = variants()};

}  // namespace gemm::step_23
