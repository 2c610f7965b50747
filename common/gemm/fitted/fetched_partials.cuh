// What step 22 adds to step 18's fix-up: the producer fetches the peers' partials through the ring.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/pipeline/ring.cuh"
#include "gemm/schedule/decomposition.h"
#include "gemm/schedule/partials.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"

namespace gemm {

/// A slot is cut into pieces that fit into a stage. Each has kVectors vectors of every thread, and the last
/// piece those that are left.
template <typename T>
struct SlotPieces {
  static constexpr int kMost = WgmmaTiles<T>::kBytes / (16 * T::kThreads);
  static constexpr int kCount = (Partials<T>::kVectors + kMost - 1) / kMost;
  static constexpr int kVectors = (Partials<T>::kVectors + kCount - 1) / kCount;
  __host__ __device__ static constexpr int vectors(int piece) {
    return piece + 1 < kCount ? kVectors : Partials<T>::kVectors - piece * kVectors;
  }
};

// Lesson: a thread with 192 accumulators has registers for four or five loads at a time, and each takes
// hundreds of clocks. The ring has room for more than 100 KB. So the producer fetches the peers' partials
// behind the k-tiles of the work tile that fixes up. What came early is there when the last k-tile is
// multiplied.

/// Partials of workers that are clusters: slots are ordered [rank of the CTA][worker].
template <typename T>
struct FetchedPartials {
  static constexpr std::size_t kCounterBytes = 256;  // the workspace begins with a lockstep's two
  static constexpr bool kWaitsInside = true;         // a worker waits for others before its work is done
  static_assert(SlotPieces<T>::vectors(SlotPieces<T>::kCount - 1) > 0, "no piece of a slot is empty");

  static std::size_t bytes(const Decomposition& all, int ctas) {
    if (all.stream_k_tiles == 0) return 0;
    return kCounterBytes + static_cast<std::size_t>(all.slots() * ctas) * Partials<T>::kBytesPerSlot;
  }
  static __device__ __forceinline__ Partials<T> in(void* workspace, const Decomposition& all, int ctas) {
    return {static_cast<char*>(workspace) + kCounterBytes, all.slots() * ctas};
  }

  /// Waits for the partials of a slot and starts their copies into the ring. The producer's thread calls it.
  template <int kStages>
  static __device__ __forceinline__ void fetch(Ring<T, kStages>& ring, PipelineState<kStages>& fill,
                                               const Partials<T>& partials, int slot) {
    using Pieces = SlotPieces<T>;
    for (int warpgroup = 0; warpgroup < T::kWarpgroups; ++warpgroup) partials.wait(slot, warpgroup);
    for (int piece = 0; piece < Pieces::kCount; ++piece) {
      const auto bytes = static_cast<std::uint32_t>(16 * T::kThreads * Pieces::vectors(piece));
      ring.producer_acquire(fill, piece);
      ptx::mbarrier_arrive_expect_tx(&ring.full[fill.stage], bytes);
      ptx::cp_async_bulk(&ring.stage[fill.stage], partials.slot_vectors(slot, piece * Pieces::kVectors),
                         bytes, &ring.full[fill.stage]);
      fill.advance();
    }
  }

  /// Adds the partials of a slot that was fetched. A warpgroup calls it; release(): it has read the stage.
  /// Uses named barrier 1 + (number of the warpgroup in the CTA).
  template <int kStages, typename Release>
  static __device__ __forceinline__ void add(WarpgroupTile<T>& tile, int warpgroup, Ring<T, kStages>& ring,
                                             PipelineState<kStages>& read, const Release& release) {
    using Pieces = SlotPieces<T>;
#pragma unroll
    for (int piece = 0; piece < Pieces::kCount; ++piece) {
      ring.consumer_wait(read, piece);
      const int first = warpgroup * 128;
      const float4* const vectors =
          reinterpret_cast<const float4*>(&ring.stage[read.stage]) + first + threadIdx.x % 128;
#pragma unroll
      for (int i = 0; i < Pieces::kVectors; ++i) {
        const int vector = piece * Pieces::kVectors + i;
        if (vector < Partials<T>::kVectors)
          Partials<T>::add(tile, vector, ptx::ld_shared(vectors + T::kThreads * i));
      }
      // It is this CTA's memory, whoever fills it next: shared::cta holds for a peer's multicast, too.
      ptx::fence_proxy_async_shared_cta();  // read by threads, filled again by a copy
      ptx::bar_sync(1 + threadIdx.x / 128, 128);
      release();
      read.advance();
    }
  }
};

}  // namespace gemm
