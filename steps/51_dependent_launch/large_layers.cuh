// Trial: layers of many rows, with the kernel of step 15.
#pragma once

#include <algorithm>
#include <memory>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/persistent_launch.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/ring_reader.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/schedule/layer_chain.cuh"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/graph.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"
#include "ptx/workspace.h"

namespace gemm::step_51 {

using LargeTile = WgmmaTiling<128, 256, 64, 2>;
inline constexpr int kLargeStages = 4;
inline constexpr int kLargeLayers = 8;

struct LargeShared {
  Ring<LargeTile, kLargeStages> ring;
  StoreBuffers d[LargeTile::kWarpgroups];
};

template <bool kTrigger>
__global__ void __launch_bounds__(Roles<LargeTile>::kThreads, 1)
    large_kernel(Gemm gemm, Layer layer, Raster raster, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map, const __grid_constant__ ptx::TensorMap d_map) {
  using T = LargeTile;
  auto& shared = ptx::dynamic_shared<LargeShared>();
  auto& ring = shared.ring;
  const TileGrid tiles = tile_grid<T>({gemm.shape.m, layer.end - layer.begin, gemm.shape.k});
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  const int k_tiles = ceil_div(gemm.shape.k, T::kK);
  const int warp = warp_index();
  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
    ptx::prefetch_tensormap(&a_map);
    ptx::prefetch_tensormap(&b_map);
  }
  __syncthreads();
  if (warp >= Roles<T>::kProducerWarp) {
    ptx::setmaxnreg_dec<Roles<T>::kProducerRegisters>();
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      if constexpr (kTrigger) ptx::griddepcontrol_launch_dependents();
      ptx::griddepcontrol_wait();
      PipelineState<kLargeStages> fill{0, 1};
      for (int index = first; index < tiles.count(); index += step) {
        const TilePosition tile = tile_at(index, tiles, raster);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.m * T::kM,
                        layer.begin + tile.n * T::kN, i * T::kK);
          fill.advance();
        }
      }
    } else if (warp == Roles<T>::kProducerWarp + 1) {
      ptx::griddepcontrol_wait();
      hand_on(layer, offset(gemm.shape.m, 0, gemm.shape.k));
    }
  } else {
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    WarpgroupTile<T> warpgroup;
    RingReader<T, kLargeStages> reader{ring};
    for (int index = first; index < tiles.count(); index += step) {
      const TilePosition tile = tile_at(index, tiles, raster);
      reader.multiply(warpgroup, k_tiles);
      reader.finish(warpgroup);
#pragma unroll
      for (int i = 0; i < T::kN / 2; ++i) warpgroup.accumulators[0][i] *= layer.scale;
      store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.m * T::kM, layer.begin + tile.n * T::kN);
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

template <bool kGraph, bool kDependent, bool kTrigger>
struct LargeChain {
  static constexpr auto kKernel = large_kernel<kTrigger>;
  static int columns(const Shape& shape) {
    return ceil_div(ceil_div(shape.n, kLargeLayers), LargeTile::kN) * LargeTile::kN;
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {
    return persistent_launch<kKernel>(
        {.block = {Roles<LargeTile>::kThreads}, .shared_bytes = kSharedBytes<LargeShared>},
        tile_grid<LargeTile>({shape.m, std::max(1, std::min(shape.n, columns(shape))), shape.k}).count());
  }
  static void launch_layers(const Gemm& gemm, bf16* activations, ptx::Stream stream) {
    const auto [m, n, k] = gemm.shape;
    const ptx::TensorMap b_map = operand_map<LargeTile>(gemm.b, n, k, LargeTile::kN);
    const ptx::TensorMap d_map = store_map(gemm.d, m, n);
    Layer layer{.a = gemm.a, .scale = 1};
    for (int i = 0; i < kLargeLayers; ++i) {
      layer.next = i + 1 < kLargeLayers ? activations + offset(i % 2 * m, 0, k) : nullptr;
      layer.begin = i * columns(gemm.shape);
      layer.end = std::max(layer.begin, std::min(n, layer.begin + columns(gemm.shape)));
      ptx::LaunchShape shape = launch_shape(gemm.shape);
      shape.dependent = kDependent && i > 0;
      ptx::launch(kKernel, shape, stream, gemm, layer, Raster{RasterOrder::kGrouped, 16},
                  operand_map<LargeTile>(layer.a, m, k, LargeTile::kM), b_map, d_map);
      layer.a = layer.next;
      layer.scale /= 2;
    }
  }
  static Launcher prepare(const Gemm& gemm) {
    const auto bytes = static_cast<std::size_t>(2 * offset(gemm.shape.m, 0, gemm.shape.k)) * sizeof(bf16);
    return [gemm, workspace = std::make_shared<ptx::Workspace>(bytes),
            graph = std::make_shared<ptx::Graph>()](ptx::Stream stream) {
      const auto chain = [&gemm, memory = static_cast<bf16*>(workspace->of(stream))](ptx::Stream on) {
        launch_layers(gemm, memory, on);
      };
      kGraph ? graph->launch(stream, chain) : chain(stream);
    };
  }
  static Variant variant(const char* name, const char* summary) {
    return complete_variant<large_kernel<kTrigger>, LargeTile, LargeChain>(
        {.name = name,
         .summary = summary,
         .stages = kLargeStages,
         .traffic = wgmma_tile_traffic<LargeTile>(),
         .layers = kLargeLayers});
  }
};

}  // namespace gemm::step_51
