// For few rows of activations: four warpgroups share an SM's issue slots, and the CTAs of a cluster multiply
// the same 256 rows of weights over parts of K.
#pragma once

#include <cstdint>

#include "gemm/launch/few_rows_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/pipeline/weight_producer.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/tile/weight_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/cluster.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
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

namespace gemm::step_45 {

template <typename T, int kStages>
struct FewRowsShared {
  Ring<T, kStages> ring;
  // [warpgroup and CTA][four sums][thread]: of the warpgroups that this CTA finishes, from the other CTAs
  float4 partials[T::kWarpgroups - 1][T::kN / 8][128];
  std::uint64_t arrived;  // all of them; count 1, the producer
};

template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T>::kThreads, 1)
    few_rows_kernel(Shape shape, bf16* d, const __grid_constant__ ptx::TensorMap w_map,
                    const __grid_constant__ ptx::TensorMap x_map,
                    const __grid_constant__ ptx::TensorMap s_map) {
  constexpr std::uint32_t kStart = 1;  // named barrier: the mbarriers are initialised
  auto& shared = ptx::dynamic_shared<FewRowsShared<T, kStages>>();
  auto& ring = shared.ring;
  const int parts = static_cast<int>(ptx::cluster_nctarank());
  const int rank = static_cast<int>(ptx::cluster_ctarank());
  const int tile_row = static_cast<int>(blockIdx.y) * T::kM;
  const int tile_column = static_cast<int>(blockIdx.z) * T::kN;
  const int first = shape.k / T::kK * rank / parts;  // group
  const int count = shape.k / T::kK * (rank + 1) / parts - first;
  const int warp = warp_index();

  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    const bool produces = warp == Roles<T>::kProducerWarp && ptx::elect_sync();
    if (produces) {
      ring.init(4 * T::kWarpgroups);
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      const int bytes = T::kWarpgroups / parts * (parts - 1) * static_cast<int>(sizeof shared.partials[0]);
      ptx::mbarrier_arrive_expect_tx(&shared.arrived, static_cast<std::uint32_t>(bytes));
    }
    __syncwarp();
    if (warp == Roles<T>::kProducerWarp) ptx::bar_arrive(kStart, T::kThreads + 32);
    ptx::barrier_cluster_arrive();
    if (produces) produce_groups<T>(ring, shape, tile_row, tile_column, first, count, &w_map, &x_map, &s_map);
    __syncwarp();
    ptx::barrier_cluster_wait();
    return;
  }
  ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
  if (threadIdx.x == 0) {
    for (const ptx::TensorMap* map : {&w_map, &x_map, &s_map}) ptx::prefetch_tensormap(map);
  }
  __syncwarp();
  ptx::bar_sync(kStart, T::kThreads + 32);
  ptx::barrier_cluster_arrive();

  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int warpgroup = warp / 4;
  const int row = warp * 16 + thread % 32 / 4;  // of the tile, and 8 more: of this thread's weights
  float sums[T::kN / 2] = {};
  PipelineState<kStages> read{0, 0};
  for (int i = 0; i < count; ++i) {
    ring.consumer_wait(read, i);
    const auto& stage = ring.stage[read.stage];
    const float scales[2] = {to_float(ptx::ld_shared(&stage.scales[row])),
                             to_float(ptx::ld_shared(&stage.scales[row + 8]))};
    float products[T::kN / 2];           // of this group
    Fragment fragments[T::kPanels][4];  // [panel][slab]
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      widen_panel<T>(fragments[panel], stage.weights[panel][warpgroup]);
      const std::uint64_t b = tile_descriptor<64>(stage.activations[panel][0]);
      ptx::wgmma_fence_operand(products);
      for (auto& fragment : fragments[panel]) ptx::wgmma_fence_operand(fragment);
      ptx::wgmma_fence();
#pragma unroll
      for (int slab = 0; slab < 4; ++slab)
        ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, 0>(products, fragments[panel][slab],
                                                  ptx::advanced(b, 32 * slab), panel > 0 || slab > 0);
    }
    ptx::wgmma_commit_group();
    // Lesson: behind this wait the warpgroup has nothing in flight, and its products may be read. The SM's
    // three other warpgroups are at other places of their groups: one widens while another multiplies.
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_fence_operand(products);
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (thread % 32 == 0) ring.consumer_release(read);
    read.advance();
#pragma unroll
    for (int j = 0; j < T::kN / 2; ++j) sums[j] += products[j] * scales[j / 2 % 2];
  }
  ptx::barrier_cluster_wait();  // the other CTAs have initialised their barriers

  // Lesson: CTA w of four finishes the rows of warpgroup w. So each sends three warpgroups' sums and receives
  // three, and nothing goes through global memory: the bytes count themselves on the receiver's barrier.
  const int owner = warpgroup % parts;
  const auto slot = [&](int source) { return warpgroup / parts * (parts - 1) + source; };
  if (owner != rank) {
    const auto peer = static_cast<std::uint32_t>(owner);
    const std::uint32_t arrived = ptx::mapa(ptx::shared_address(&shared.arrived), peer);
    auto& partials = shared.partials[slot(rank < owner ? rank : rank - 1)];
#pragma unroll
    for (int i = 0; i < T::kN / 8; ++i)
      ptx::st_async(ptx::mapa(ptx::shared_address(&partials[i][thread]), peer),
                    make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]), arrived);
    return;
  }
  if (parts > 1) ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});
  for (int source = 0; source < parts - 1; ++source) {  // always in this order
#pragma unroll
    for (int i = 0; i < T::kN / 8; ++i) {
      const float4 more = ptx::ld_shared(&shared.partials[slot(source)][i][thread]);
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

/// As many stages as fit, of a group each. kMostParts: CTAs of a cluster.
template <typename W, int kColumns, int kMostParts>
Variant few_rows(const char* name, const char* summary) {
  using T = GroupTiling<W, 256, kColumns>;
  constexpr int kStages = (226 * 1024 - static_cast<int>(sizeof FewRowsShared<T, 1>::partials)) /
                          static_cast<int>(sizeof(WgmmaTiles<T>));
  using Launch = FewRowsLaunch<few_rows_kernel<T, kStages>, T, FewRowsShared<T, kStages>, Roles<T>::kThreads,
                               kMostParts>;
  return Launch::variant({.name = name, .summary = summary, .stages = kStages});
}

}  // namespace gemm::step_45
