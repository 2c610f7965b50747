// For few rows of activations: each thread copies its own weights.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/launch/tile_launch.cuh"
#include "gemm/launch/weight_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/tile/weight_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_transposed.cuh"
#include "widen.cuh"

namespace gemm {
template <typename W, int kRows, int kColumns>
struct OwnTiling : WgmmaTiling<kRows, kColumns, 128, kRows / 64> {
  using Weight = W;
  static constexpr int kBlockBytes = weight_block_bytes(kTypeOf<W>);
  static constexpr int kVectors = kBlockBytes / (128 * 16);
};
template <typename W, int kRows, int kColumns>
struct alignas(1024) WgmmaTiles<OwnTiling<W, kRows, kColumns>> {
  using T = OwnTiling<W, kRows, kColumns>;
  bf16 activations[T::kPanels][kColumns][64];  // [panel][m][k], swizzled
  bf16 scales[kRows];                          // [n]
  static constexpr int kTileBytes = sizeof activations + sizeof scales;
};
}  // namespace gemm

namespace gemm::step_45 {

inline constexpr int kFour = 4;  // consumer warpgroups

template <typename T, int kStages, int kAhead, int kParts>
struct OwnShared {
  static constexpr int kSets = kFour / T::kWarpgroups;
  Ring<T, kStages> ring;
  unsigned char weights[kFour][kAhead][T::kPanels][T::kVectors][128][16];  // each thread's own
  float4 partials[kParts * kSets - 1][T::kN / 8][128];
  std::uint64_t arrived;
};

template <typename T, int kStages, int kAhead, int kParts, bool kPanelwise, bool kFence>
__global__ void __launch_bounds__(Roles<T, kFour>::kThreads, 1)
    own_kernel(Shape shape, bf16* d, const unsigned char* weights, const __grid_constant__ ptx::TensorMap x_map,
               const __grid_constant__ ptx::TensorMap s_map) {
  using R = Roles<T, kFour>;
  constexpr std::uint32_t kStart = 1;
  constexpr int kSets = kFour / T::kWarpgroups;
  auto& shared = ptx::dynamic_shared<OwnShared<T, kStages, kAhead, kParts>>();
  auto& ring = shared.ring;
  static_assert(T::kWarpgroups == kParts, "each CTA of a cluster finishes one block");
  const int rank = kParts > 1 ? static_cast<int>(ptx::cluster_ctarank()) : 0;
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.z) * T::kN;
  const int first = shape.k / T::kK * rank / kParts;  // group
  const int count = shape.k / T::kK * (rank + 1) / kParts - first;
  const int warp = warp_index();

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    const bool produces = warp == R::kProducerWarp && ptx::elect_sync();
    if (produces) {
      for (const ptx::TensorMap* map : {&x_map, &s_map}) ptx::prefetch_tensormap(map);
      ring.init(4 * T::kWarpgroups);
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      if (kParts > 1) ptx::mbarrier_arrive_expect_tx(&shared.arrived, sizeof shared.partials);
    }
    __syncwarp();
    if (warp == R::kProducerWarp) ptx::bar_arrive(kStart, 512 + 32);
    if (kParts > 1) ptx::barrier_cluster_arrive();
    if (produces) {
      PipelineState<kStages> fill{0, 1};
      for (int i = 0; i < count; ++i) {
        ring.producer_acquire(fill, i);
        auto& stage = ring.stage[fill.stage];
        std::uint64_t* const full = &ring.full[fill.stage];
        ptx::mbarrier_arrive_expect_tx(full, WgmmaTiles<T>::kTileBytes);
        ptx::cp_async_bulk_tensor_3d(stage.activations, &x_map, 0, tile_column, (first + i) * T::kPanels, full);
        ptx::cp_async_bulk_tensor_2d(stage.scales, &s_map, tile_row, first + i, full);
        fill.advance();
      }
    }
    __syncwarp();
    if (kParts > 1) ptx::barrier_cluster_wait();
    return;
  }
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int set = warp / 4 / T::kWarpgroups;
  const int block = warp / 4 % T::kWarpgroups;  // of 64 rows
  auto& mine = shared.weights[warp / 4];
  const int blocks = shape.m / kWeightRows;
  const unsigned char* source =
      weights + static_cast<std::int64_t>(first + set) * T::kPanels * blocks * T::kBlockBytes +
      static_cast<std::int64_t>(std::min(tile_row / kWeightRows + block, blocks - 1)) * T::kBlockBytes + thread * 16;
  int left = count - set;
  const auto load = [&](int slot) {
    if (left > 0) {
#pragma unroll
      for (int panel = 0; panel < T::kPanels; ++panel)
#pragma unroll
        for (int vector = 0; vector < T::kVectors; ++vector)
          ptx::cp_async_cg_16(mine[slot][panel][vector][thread],
                              source + static_cast<std::int64_t>(panel) * blocks * T::kBlockBytes + vector * 2048);
    }
    ptx::cp_async_commit_group();
    left -= kSets;
    source += static_cast<std::int64_t>(kSets) * T::kPanels * blocks * T::kBlockBytes;
  };
  for (int slot = 0; slot < kAhead; ++slot) load(slot);
  ptx::setmaxnreg_inc<R::kConsumerRegisters>();
  ptx::bar_sync(kStart, 512 + 32);
  if (kParts > 1) ptx::barrier_cluster_arrive();

  const int row = block * 64 + warp % 4 * 16 + thread % 32 / 4;  // of the tile, and 8 more
  float sums[T::kN / 2] = {};
  PipelineState<kStages> read{0, 0};
  read.advance(set);
  int slot = 0;
  for (int i = set; i < count; i += kSets) {
    const auto& stage = ring.stage[read.stage];
    float products[T::kN / 2];          // of this group
    Fragment fragments[T::kPanels][4];  // [panel][slab]
    ptx::cp_async_wait_group<kAhead - 1>();
    const auto multiply = [&](int panel) {
      ptx::wgmma_fence_operand(products);
      for (auto& fragment : fragments[panel]) ptx::wgmma_fence_operand(fragment);
      ptx::wgmma_fence();
#pragma unroll
      for (int slab = 0; slab < 4; ++slab)
        ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, 0>(
            products, fragments[panel][slab],
            ptx::advanced(tile_descriptor<64>(stage.activations[panel][0]), slab * 32), panel > 0 || slab > 0);
      ptx::wgmma_commit_group();
    };
    float scales[2];
    if constexpr (kPanelwise) {
      widen_panel<T>(fragments[0], mine[slot][0]);
      ring.consumer_wait(read, i);
      scales[0] = to_float(ptx::ld_shared(&stage.scales[row]));
      scales[1] = to_float(ptx::ld_shared(&stage.scales[row + 8]));
      multiply(0);
      widen_panel<T>(fragments[1], mine[slot][1]);
      multiply(1);
    } else {
      widen_panel<T>(fragments[0], mine[slot][0]);
      widen_panel<T>(fragments[1], mine[slot][1]);
      ring.consumer_wait(read, i);
      scales[0] = to_float(ptx::ld_shared(&stage.scales[row]));
      scales[1] = to_float(ptx::ld_shared(&stage.scales[row + 8]));
      multiply(0);
      multiply(1);
    }
    load(slot);
    slot = slot + 1 == kAhead ? 0 : slot + 1;
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_fence_operand(products);
    if (kFence) ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (thread % 32 == 0) ring.consumer_release(read);
    read.advance(kSets);
#pragma unroll
    for (int j = 0; j < T::kN / 2; ++j) sums[j] += products[j] * scales[j / 2 % 2];
  }
  ptx::cp_async_wait_group<0>();
  if (kParts > 1) ptx::barrier_cluster_wait();

  const int sender = rank * kSets + set;
  const int owner = block * kSets;
  if constexpr (kParts == 1) {
    if (sender != owner) {
#pragma unroll
      for (int i = 0; i < T::kN / 8; ++i)
        ptx::st_shared(&shared.partials[sender - 1][i][thread],
                       make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]));
      ptx::bar_arrive(2, 512);
      return;
    }
    ptx::bar_sync(2, 512);
  }
  if (kParts > 1 && sender != owner) {
    const auto peer = static_cast<std::uint32_t>(block);
    const std::uint32_t arrived = ptx::mapa(ptx::shared_address(&shared.arrived), peer);
    auto& partials = shared.partials[sender < owner ? sender : sender - 1];
#pragma unroll
    for (int i = 0; i < T::kN / 8; ++i)
      ptx::st_async(ptx::mapa(ptx::shared_address(&partials[i][thread]), peer),
                    make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]), arrived);
    return;
  }
  if (kParts > 1) ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});
  for (int from = 0; from < kParts * kSets - 1; ++from) {
#pragma unroll
    for (int i = 0; i < T::kN / 8; ++i) {
      const float4 more = ptx::ld_shared(&shared.partials[from][i][thread]);
      sums[4 * i] += more.x;
      sums[4 * i + 1] += more.y;
      sums[4 * i + 2] += more.z;
      sums[4 * i + 3] += more.w;
    }
  }
#pragma unroll
  for (int j = 0; j < T::kN / 2; ++j) {
    const int m = tile_column + j / 4 * 8 + thread % 4 * 2 + j % 2;
    const int n = tile_row + row + j / 2 % 2 * 8;
    if (m < shape.n && n < shape.m)
      ptx::st_global(d + offset(m, n, shape.m), ptx::cvt_rn_bf16_f32(sums[j] * kUnit<typename T::Weight>));
  }
}

template <auto kKernel, typename T, typename Shared, int kThreads, int kParts>
struct OwnLaunch {
  static constexpr Type kWeight = kTypeOf<typename T::Weight>;
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return {.grid = {kParts, static_cast<unsigned>(ceil_div(shape.n, T::kM)),
                     static_cast<unsigned>(ceil_div(shape.m, T::kN))},
            .block = {kThreads},
            .cluster = {kParts},  // 1: none
            .shared_bytes = kSharedBytes<Shared>};
  }
  static double busiest_tiles(const Shape& shape) {
    const ptx::LaunchShape launch = launch_shape(shape);
    const auto at_once = static_cast<int>(ptx::resident_ctas(ptx::kernel_handle(kKernel), launch));
    return static_cast<double>(ceil_div(static_cast<int>(launch.grid.count()), at_once)) / kParts;
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return [shape = exchanged(problem.shape), d = static_cast<bf16*>(problem.d),
            weights = reinterpret_cast<const unsigned char*>(problem.b),
            x_map = panel_map(problem.a, m, k, T::kN, T::kPanels),
            s_map = scale_map(problem.group_scales, n, k / T::kK, T::kM),
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, d, weights, x_map, s_map);
    };
  }
  static Launcher prepare(const Gemm& gemm) { return prepare_weights(gemm); }
  static Variant variant(Variant given) {
    given.prepare_problem = prepare_problem;
    given.busiest_tiles = busiest_tiles;
    return complete_weight_variant<kKernel, T, OwnLaunch>(given, T::kK);
  }
};

template <typename W, int kRows, int kColumns, int kAhead, bool kPanelwise, int kMost = 16, bool kFence = true>
Variant own(const char* name, const char* summary) {
  using T = OwnTiling<W, kRows, kColumns>;
  constexpr int kParts = kRows / 64;
  constexpr int kFixed = static_cast<int>(sizeof(OwnShared<T, 1, kAhead, kParts>) - sizeof(Ring<T, 1>));
  constexpr int kStages = std::min(kMost, (226 * 1024 - kFixed) / static_cast<int>(sizeof(WgmmaTiles<T>)));
  using Launch = OwnLaunch<own_kernel<T, kStages, kAhead, kParts, kPanelwise, kFence>, T, OwnShared<T, kStages, kAhead, kParts>,
                           Roles<T, kFour>::kThreads, kParts>;
  return Launch::variant({.name = name, .summary = summary, .stages = kStages});
}

}  // namespace gemm::step_45
