// Step 61: a product begins before all of its A is here: a tile whose rows come from another GPU waits for
// the flag of their piece.
#pragma once

#include <cstdint>

#include "gather.cuh"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/pipeline/peer_copier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/ring_reader.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/ranks.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace gemm::step_61 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[T::kWarpgroups];
};

/// Step 15's kernel with another order of tiles and one more wait. The first outbox.ctas CTAs copy instead.
template <typename T, int kStages>
__global__ void __launch_bounds__(Roles<T>::kThreads, 1)
    gather_gemm(Gather gather, Outbox outbox, int k_tiles, const __grid_constant__ ptx::TensorMap a_map,
                const __grid_constant__ ptx::TensorMap b_map, const __grid_constant__ ptx::TensorMap d_map) {
  // ANCHOR: senders
  const int cta = static_cast<int>(blockIdx.x) - outbox.ctas;
  if (cta < 0) {
    auto& stages = ptx::dynamic_shared<PeerCopier::Storage>();
    if (threadIdx.x < 32 && ptx::elect_sync())
      PeerCopier::copy(stages, outbox, static_cast<int>(blockIdx.x), outbox.ctas);
    return;
  }
  // ANCHOR_END: senders
  const int step = static_cast<int>(gridDim.x) - outbox.ctas;
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
    // ANCHOR: producer
    if (warp == Roles<T>::kProducerWarp && ptx::elect_sync()) {
      PipelineState<kStages> fill{0, 1};
      for (int index = cta; index < gather.tiles(); index += step) {
        const GatheredTile tile = gather.tile_at<T>(index);
        // Lesson: only this thread waits. The consumers wait for the stages that it fills, as always. The
        // acquire orders what follows in the generic proxy; TMA reads through the async proxy, so a fence
        // comes between them.
        if (tile.owner != gather.rank) {
          wait_until(gather.flag(tile), gather.epoch);
          ptx::fence_proxy_async_global();
        }
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          // ANCHOR_END: producer
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, tile.row, tile.column,
                        i * T::kK);
          fill.advance();
        }
      }
    }
  } else {
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    WarpgroupTile<T> warpgroup;
    RingReader<T, kStages> reader{ring};
    // ANCHOR: consumer
    for (int index = cta; index < gather.tiles(); index += step) {
      const GatheredTile tile = gather.tile_at<T>(index);
      reader.multiply(warpgroup, k_tiles);
      reader.finish(warpgroup);
      store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, tile.row, tile.column);
    }
    // ANCHOR_END: consumer
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

using Tile = WgmmaTiling<128, 256, 64, 2>;
inline constexpr int kStages = 4;

template <Sender kSender, int kFirstOwner = 0>
Variant variant(const char* name, const char* summary) {
  static_assert(Tile::kM == kGatherRows, "all rows of a tile are in one piece");
  static_assert(sizeof(PeerCopier::Storage) <= sizeof(Shared<Tile, kStages>), "CTAs that copy have room");
  constexpr int kThreads = Roles<Tile>::kThreads;
  return {
      .name = name,
      .summary = summary,
      .tile = {Tile::kM, Tile::kN, Tile::kK},
      .stages = kStages,
      .traffic = wgmma_tile_traffic<Tile>(),
      .kernel = ptx::kernel_handle(gather_gemm<Tile, kStages>),
      .launch_shape =
          [](const Shape& shape) {
            return PersistentCtas<Tile, Shared<Tile, kStages>, kThreads>::plan(
                       ptx::kernel_handle(gather_gemm<Tile, kStages>), shape)
                .launch;
          },
      .prepare_gather =
          prepare<gather_gemm<Tile, kStages>, Tile, Shared<Tile, kStages>, kThreads, kSender, kFirstOwner>,
      .by_copy_engine = kSender != Sender::kSms};
}

inline const Step kStep{
    .name = "61_gather_gemm",
    .title = "a product that begins before all of its operand has arrived from other GPUs",
    .builds_on = "15_tma_store",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<Sender::kCopyEngine>("copy_engine", "copies run beside the product, and take no SM"),
                 variant<Sender::kSms>("sms", "some CTAs of the launch copy, the others multiply"),
                 variant<Sender::kCopyEngine, 1>("own_rows_last", "tiles whose rows are here come last"),
                 variant<Sender::kCopyEngineFirst>("copy_first", "the product begins after the copies"),
                 variant<Sender::kNobody>("product_alone", "all rows are here before the clock starts")}};

}  // namespace gemm::step_61
