// Step 62: a product whose sums belong to other GPUs. A tile's partials leave for the rank that owns its
// rows while the next tile is multiplied, and the owner adds them in a fixed order.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/pipeline/peer_copier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/ring_reader.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/problem/ranks.h"
#include "gemm/problem/step.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/convert.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "scatter.cuh"

namespace gemm::step_62 {

template <typename T, int kStages>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers out[T::kWarpgroups];  // partials and D, on their way out
};

/// A warpgroup's accumulators on their way to another rank, as P: bf16 or float. The thread with the same
/// number reads them there, so they stay in the order of the registers: no matrix, and no tensor map.
template <typename T, typename P>
struct Partials {
  static constexpr int kInVector = 16 / sizeof(P);
  static constexpr int kVectors = T::kBlocks * T::kN / 2 / kInVector;  // per thread
  static constexpr int kInBuffer = sizeof(StoreBuffers) / 2 / 16 / 128;
  static_assert(kVectors % (2 * kInBuffer) == 0, "a tile begins with the buffer that was read longer ago");

  __device__ __forceinline__ static uint4 rounded(const float* sums) {
    if constexpr (std::is_same_v<P, bf16>) {
      return {ptx::cvt_rn_bf16x2_f32(sums[0], sums[1]), ptx::cvt_rn_bf16x2_f32(sums[2], sums[3]),
              ptx::cvt_rn_bf16x2_f32(sums[4], sums[5]), ptx::cvt_rn_bf16x2_f32(sums[6], sums[7])};
    } else {  // The sums are new registers: if the stores read the accumulators, ptxas would serialise wgmma.
      return {__float_as_uint(sums[0] + 0.0f), __float_as_uint(sums[1] + 0.0f),
              __float_as_uint(sums[2] + 0.0f), __float_as_uint(sums[3] + 0.0f)};
    }
  }
  __device__ __forceinline__ static void add(float* sums, const uint4& more) {
    const std::uint32_t words[4] = {more.x, more.y, more.z, more.w};
#pragma unroll
    for (const std::uint32_t word : words) {
      if constexpr (std::is_same_v<P, bf16>) {  // the upper half of a binary32 with the same value
        *sums++ += __uint_as_float(word << 16);
        *sums++ += __uint_as_float(word & 0xffff0000u);
      } else {
        *sums++ += __uint_as_float(word);
      }
    }
  }

  using Vectors = uint4[128];  // [thread]

  // ANCHOR: send
  /// Issues the copies, 8 KiB each, to the warpgroup's slot in the owner's memory.
  __device__ __forceinline__ static void send(const WarpgroupTile<T>& tile, StoreBuffers& buffers,
                                              Vectors* slot) {
    const float* sums = &tile.accumulators[0][0];
    const auto barrier = static_cast<std::uint32_t>(1 + warp_index() / 4);
#pragma unroll
    for (int first = 0; first < kVectors; first += kInBuffer) {
      auto* const buffer = reinterpret_cast<Vectors*>(&buffers.d[first / kInBuffer % 2]);
      if (stores_tile()) ptx::cp_async_bulk_wait_group_read<1>();
      ptx::bar_sync(barrier, 128);
#pragma unroll
      for (int i = 0; i < kInBuffer; ++i, sums += kInVector)
        ptx::st_shared(&buffer[i][threadIdx.x % 128], rounded(sums));
      ptx::fence_proxy_async_shared_cta();
      ptx::bar_sync(barrier, 128);
      if (stores_tile()) {
        ptx::cp_async_bulk_store(slot[first], buffer, sizeof(buffers.d[0]));
        ptx::cp_async_bulk_commit_group();
      }
    }
  }
  // ANCHOR_END: send
  // ANCHOR: add
  /// Adds what another rank has sent to this slot of the own memory.
  __device__ __forceinline__ static void add_slot(WarpgroupTile<T>& tile, const Vectors* slot) {
    float* sums = &tile.accumulators[0][0];
#pragma unroll
    for (int i = 0; i < kVectors; ++i, sums += kInVector)
      add(sums, ptx::ld_global_no_allocate(&slot[i][threadIdx.x % 128]));
  }
  // ANCHOR_END: add
  __device__ __forceinline__ static Vectors* slot(uint4* partials, int number) {
    return reinterpret_cast<Vectors*>(partials) + std::int64_t{number} * kVectors;
  }
};

/// Step 15's kernel with another epilogue. kLate: a tile's flags are raised after the next tile's product.
template <typename T, int kStages, typename P, bool kLate>
__global__ void __launch_bounds__(Roles<T>::kThreads, 1)
    gemm_scatter(Scatter scatter, int k_tiles, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map, const __grid_constant__ ptx::TensorMap d_map) {
  auto& shared = ptx::dynamic_shared<Shared<T, kStages>>();
  auto& ring = shared.ring;
  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
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
      for (int index = first; index < scatter.tiles(); index += step) {
        const ScatteredTile tile = scatter.tile_at<T>(index);
        for (int i = 0; i < k_tiles; ++i) {
          ring.producer_acquire(fill, i);
          load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map,
                        tile.owner * scatter.rows + tile.row, tile.column, i * T::kK);
          fill.advance();
        }
      }
    }
  } else {
    ptx::setmaxnreg_inc<Roles<T>::kConsumerRegisters>();
    const int number = warp / 4;
    WarpgroupTile<T> warpgroup;
    RingReader<T, kStages> reader{ring};
    // ANCHOR: signal
    std::uint32_t* sent = nullptr;  // the flag of partials that are on their way
    const auto signal = [&] {
      if (!stores_tile() || sent == nullptr) return;
      ptx::cp_async_bulk_wait_group<0>();  // not .read: they are in the owner's memory
      ptx::st_release_sys(sent, scatter.epoch);
      sent = nullptr;
    };
    // ANCHOR_END: signal
    // ANCHOR: epilogue
    for (int index = first; index < scatter.tiles(); index += step) {
      const ScatteredTile tile = scatter.tile_at<T>(index);
      reader.multiply(warpgroup, k_tiles);
      reader.finish(warpgroup);
      // Lesson: the tile before has been on its way during this tile's product, so this hardly waits. And it
      // comes before every wait for others: a rank that kept its flags while it waits could wait forever.
      if constexpr (kLate) signal();
      if (tile.owner != scatter.rank) {
        const int slot = scatter.slot<T>(scatter.rank, tile, number);
        Partials<T, P>::send(warpgroup, shared.out[number],
                             Partials<T, P>::slot(scatter.partials[tile.owner], slot));
        sent = scatter.arrived[tile.owner] + slot;
        if constexpr (!kLate) signal();
        continue;
      }
      for (int sender = 0; sender < scatter.ranks; ++sender) {  // always in this order
        if (sender == scatter.rank) continue;
        const int slot = scatter.slot<T>(sender, tile, number);
        if (stores_tile()) wait_until(scatter.arrived[scatter.rank] + slot, scatter.epoch);
        ptx::bar_sync(static_cast<std::uint32_t>(1 + number), 128);
        Partials<T, P>::add_slot(warpgroup, Partials<T, P>::slot(scatter.partials[scatter.rank], slot));
      }
      store_tile<T>(warpgroup, shared.out[number], &d_map, tile.row, tile.column);
    }
    signal();
    // ANCHOR_END: epilogue
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
}

using Tile = WgmmaTiling<128, 256, 64, 2>;
inline constexpr int kStages = 4;

template <typename P, bool kLate = true, bool kTurned = true>
Variant variant(const char* name, const char* summary) {
  static_assert(Tile::kM == kScatterRows && Tile::kN == kScatterColumns && Tile::kWarpgroups == kScatterFlags,
                "there is memory for the partials and flags of such tiles");
  constexpr int kThreads = Roles<Tile>::kThreads;
  return {.name = name,
          .summary = summary,
          .tile = {Tile::kM, Tile::kN, Tile::kK},
          .stages = kStages,
          .traffic = wgmma_tile_traffic<Tile>(),
          .kernel = ptx::kernel_handle(gemm_scatter<Tile, kStages, P, kLate>),
          .launch_shape =
              [](const Shape& shape) {
                return PersistentCtas<Tile, Shared<Tile, kStages>, kThreads>::plan(
                           ptx::kernel_handle(gemm_scatter<Tile, kStages, P, kLate>), shape)
                    .launch;
              },
          .prepare_scatter =
              prepare<gemm_scatter<Tile, kStages, P, kLate>, Tile, Shared<Tile, kStages>, kThreads, kTurned>};
}

inline const Step kStep{
    .name = "62_gemm_scatter",
    .title = "sums that are scattered while they are made, and added by the GPU that owns them",
    .builds_on = "61_gather_gemm",
    .unit = MathUnit::kWgmma,
    .architecture = Architecture::kSm90a,
    .contract = {.n_multiple = 8, .k_multiple = 8},
    .variants = {variant<bf16>("bf16", "partials travel in bf16, while the next tile is multiplied"),
                 variant<float>("binary32", "partials travel in binary32, twice as many bytes"),
                 variant<bf16, false>("flag_at_once",
                                      "copies are awaited, and their flag is raised, before the next tile"),
                 variant<bf16, true, false>("same_owner", "all ranks send to the same rank at a time")}};

}  // namespace gemm::step_62
