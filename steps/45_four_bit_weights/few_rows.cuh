// For few rows of activations: four warpgroups of a CTA multiply a tile of 256 rows of weights, and the CTAs
// of a cluster multiply the same tile over parts of K.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "gemm/launch/tile_launch.cuh"
#include "gemm/launch/typed_launch.cuh"
#include "gemm/launch/weight_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
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
#include "ptx/launch.cuh"
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

/// Warpgroup w of the tile is finished by CTA w % parts of the cluster.
inline constexpr int kMostParts = 4;

template <typename T, int kStages>
struct FewRowsShared {
  Ring<T, kStages> ring;
  float4 partials[kMostParts - 1][T::kN / 8][128];  // [warpgroup, CTA][vector][thread], of the other CTAs
  std::uint64_t arrived;                            // all of them
};

template <typename T, int kStages, bool kAhead>
__global__ void __launch_bounds__(Roles<T>::kThreads, T::kCtasPerSm)
    few_rows_kernel(Shape shape, bf16* d, const __grid_constant__ ptx::TensorMap w_map,
                    const __grid_constant__ ptx::TensorMap x_map,
                    const __grid_constant__ ptx::TensorMap s_map) {
  using Stage = WgmmaTiles<T>;
  constexpr int kVectors = T::kN / 8;  // of four sums of a thread
  constexpr std::uint32_t kStartBarrier = 1, kAll = T::kThreads + 32;
  auto& shared = ptx::dynamic_shared<FewRowsShared<T, kStages>>();
  auto& ring = shared.ring;
  const int parts = static_cast<int>(ptx::cluster_nctarank());
  const int rank = static_cast<int>(ptx::cluster_ctarank());
  const int row = static_cast<int>(blockIdx.y) * T::kM;
  const int column = static_cast<int>(blockIdx.z) * T::kN;
  const int first = shape.k / T::kK * rank / parts;  // group
  const int count = shape.k / T::kK * (rank + 1) / parts - first;

  if (warp_index() >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    const bool produces = warp_index() == Roles<T>::kProducerWarp && ptx::elect_sync();
    if (produces) {
      ring.init(4 * T::kWarpgroups);
      ptx::mbarrier_init(&shared.arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      const int bytes = (T::kWarpgroups + parts - 1 - rank) / parts * (parts - 1) * static_cast<int>(sizeof shared.partials[0]);
      ptx::mbarrier_arrive_expect_tx(&shared.arrived, static_cast<std::uint32_t>(bytes));
    }
    __syncwarp();
    if (warp_index() == Roles<T>::kProducerWarp) ptx::bar_arrive(kStartBarrier, kAll);
    ptx::barrier_cluster_arrive();
    if (produces) {
      constexpr int kLines = T::kBlockBytes / kWeightLine;  // of a block of 64 rows
      PipelineState<kStages> fill{0, 1};
      for (int i = 0; i < count; ++i) {
        ring.producer_acquire(fill, i);
        Stage& stage = ring.stage[fill.stage];
        std::uint64_t* const full = &ring.full[fill.stage];
        ptx::mbarrier_arrive_expect_tx(full, Stage::kTileBytes);
#pragma unroll
        for (int panel = 0; panel < T::kPanels; ++panel) {
          const int k_tile = (first + i) * T::kPanels + panel;
          const int block = (k_tile * shape.m + row) / kWeightRows;
          ptx::cp_async_bulk_tensor_2d(stage.weights[panel], &w_map, 0, block * kLines, full);
          ptx::cp_async_bulk_tensor_2d(stage.activations[panel], &x_map, k_tile * 64, column, full);
        }
        ptx::cp_async_bulk_tensor_2d(stage.scales, &s_map, row, first + i, full);
        fill.advance();
      }
    }
    __syncwarp();
    ptx::barrier_cluster_wait();
    return;
  }
  ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
  if (threadIdx.x == 0) {
    for (const ptx::TensorMap* map : {&w_map, &x_map, &s_map}) ptx::prefetch_tensormap(map);
  }
  __syncwarp();
  ptx::bar_sync(kStartBarrier, kAll);
  ptx::barrier_cluster_arrive();

  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int warpgroup = warp_index() / 4;
  const int n = warp_index() * 16 + thread % 32 / 4;  // of the tile, and 8 more: this thread's rows of weights
  float sums[T::kN / 2] = {};
  std::uint32_t words[T::kPanels][4 * T::kVectors];
  bf16 scales[2];
  PipelineState<kStages> read{0, 0};
  PipelineState<kStages> release{0, 0};
  const auto load = [&](int i) {
    ring.consumer_wait(read, i);
    const Stage& stage = ring.stage[read.stage];
    for (int panel = 0; panel < T::kPanels; ++panel) load_words(words[panel], stage.weights[panel][warpgroup]);
    scales[0] = ptx::ld_shared(&stage.scales[n]);
    scales[1] = ptx::ld_shared(&stage.scales[n + 8]);
    read.advance();
  };
  if (kAhead && count > 0) load(0);
  for (int i = 0; i < count; ++i) {
    float products[T::kN / 2];
    Fragment fragments[T::kPanels][4];
    if (!kAhead) load(i);
    const float factors[2] = {to_float(scales[0]), to_float(scales[1])};
#pragma unroll
    for (int panel = 0; panel < T::kPanels; ++panel) {
      for (int slab = 0; slab < 4; ++slab)
        widen<typename T::Weight>(fragments[panel][slab], &words[panel][slab * T::kVectors]);
      const std::uint64_t b = tile_descriptor<64>(ring.stage[release.stage].activations[panel][0]);
      ptx::wgmma_fence_operand(products);
      for (auto& fragment : fragments[panel]) ptx::wgmma_fence_operand(fragment);
      ptx::wgmma_fence();
#pragma unroll
      for (int slab = 0; slab < 4; ++slab)
        ptx::wgmma_m64nNk16_f32_bf16_rs<T::kN, 0>(products, fragments[panel][slab],
                                                  ptx::advanced(b, 32 * slab), panel > 0 || slab > 0);
    }
    ptx::wgmma_commit_group();
    if (kAhead && i + 1 < count) load(i + 1);
    // Lesson: nothing is multiplied behind this wait. Three other warpgroups of the SM are elsewhere.
    ptx::wgmma_wait_group<0>();
    ptx::fence_proxy_async_shared_cta();
    __syncwarp();
    if (thread % 32 == 0) ring.consumer_release(release);
    release.advance();
    ptx::wgmma_fence_operand(products);
#pragma unroll
    for (int j = 0; j < T::kN / 2; ++j) sums[j] += products[j] * factors[j / 2 % 2];
  }
  ptx::barrier_cluster_wait();  // the other CTAs have initialised their barriers

  const int owner = warpgroup % parts;
  const auto slot = [&](int source) { return warpgroup / parts * (parts - 1) + source; };
  if (owner != rank) {
    const auto peer = static_cast<std::uint32_t>(owner);
    const std::uint32_t arrived = ptx::mapa(ptx::shared_address(&shared.arrived), peer);
    auto& partials = shared.partials[slot(rank < owner ? rank : rank - 1)];
#pragma unroll
    for (int i = 0; i < kVectors; ++i)
      ptx::st_async(ptx::mapa(ptx::shared_address(&partials[i][thread]), peer),
                    make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]), arrived);
    return;
  }
  if (parts > 1) ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, count});
  for (int source = 0; source < parts - 1; ++source) {  // always in this order
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float4 more = ptx::ld_shared(&shared.partials[slot(source)][i][thread]);
      sums[4 * i] += more.x;
      sums[4 * i + 1] += more.y;
      sums[4 * i + 2] += more.z;
      sums[4 * i + 3] += more.w;
    }
  }
#pragma unroll
  for (int j = 0; j < T::kN / 2; ++j) {
    const int m = column + j / 4 * 8 + thread % 4 * 2 + j % 2;
    const int d_column = row + n + j / 2 % 2 * 8;
    if (m < shape.n && d_column < shape.m)
      ptx::st_global(d + offset(m, d_column, shape.m), ptx::cvt_rn_bf16_f32(sums[j] * kUnit<typename T::Weight>));
  }
}

/// How the host starts it.
template <typename T, bool kAhead>
struct FewRowsLaunch {
  static constexpr int kStages =
      (226 * 1024 / T::kCtasPerSm - 1024 * (T::kCtasPerSm - 1) - static_cast<int>(sizeof FewRowsShared<T, 1>::partials)) / static_cast<int>(sizeof(WgmmaTiles<T>));
  static constexpr auto* kKernel = few_rows_kernel<T, kStages, kAhead>;
  static constexpr Type kWeight = kTypeOf<typename T::Weight>;

  /// As many parts of K as keep all CTAs of the grid at work at the same time.
  static int parts_of(const Shape& shape) {
    const int tiles = tile_grid<T>(exchanged(shape)).count();
    int parts = kMostParts;
    while (parts > 1 && (parts > shape.k / T::kK || tiles * parts > ptx::this_card().sms * T::kCtasPerSm)) parts /= 2;
    return parts;
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    const auto parts = static_cast<unsigned>(parts_of(shape));
    return {.grid = {parts, static_cast<unsigned>(ceil_div(shape.n, T::kM)),
                     static_cast<unsigned>(ceil_div(shape.m, T::kN))},
            .block = {Roles<T>::kThreads},
            .cluster = {parts},
            .shared_bytes = kSharedBytes<FewRowsShared<T, kStages>>,
            .ctas_per_sm = T::kCtasPerSm};
  }
  static double busiest_tiles(const Shape& shape) { return 1.0 / parts_of(shape); }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    return [shape = exchanged(problem.shape), d = static_cast<bf16*>(problem.d),
            w_map = weight_map(problem.b, kWeight, n, k, T::kM),
            x_map = typed_map(problem.a, Type::kBf16, m, k, T::kN),
            s_map = scale_map(problem.group_scales, n, k / T::kK, T::kM),
            launch = launch_shape(problem.shape)](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, shape, d, w_map, x_map, s_map);
    };
  }
  static Launcher prepare(const Gemm&) {
    throw std::invalid_argument(
        "this variant multiplies packed weights: it takes a Problem with their scales");
  }
  static Variant variant(Variant given) {
    given.stages = kStages;
    given.types.b = kWeight;
    given.types.group = T::kK;
    given.prepare_problem = prepare_problem;
    given.busiest_tiles = busiest_tiles;
    const double weight_bytes = bits_of(kWeight) / 8.0 + 2.0 / T::kK;
    const double bytes = weight_bytes / T::kN + 2.0 / T::kM;
    given.traffic = {.shared_bytes_per_fma = bytes + weight_bytes / T::kN + 2.0 / 64,
                     .global_bytes_per_fma = bytes};
    given = complete_variant<kKernel, T, FewRowsLaunch>(given);
    given.tile = {T::kN, T::kM, T::kK};
    return given;
  }
};

}  // namespace gemm::step_45
