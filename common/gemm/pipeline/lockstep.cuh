// What step 20 taught: producers that keep to the same k, so that the L2 reads a line once for all of them.
#pragma once

#include <cstdint>
#include <limits>

#include "gemm/schedule/decomposition.h"
#include "ptx/atomic.cuh"
#include "ptx/core.cuh"

namespace gemm {

/// How often the producers of all CTAs wait for each other. `counters`: arrivals at all barriers of the
/// launch, CTAs that are done; zero between launches.
struct LockstepPlan {
  std::uint32_t* counters;
  int period;    // k-tiles between two barriers, at least 2; 0: no producer waits for another
  int barriers;  // of the CTA with the most k-tiles
};

/// How often each producer meets the others, with a barrier every `period` k-tiles: as often as the one with
/// the most k-tiles.
constexpr int lockstep_barriers(const Decomposition& all, int period) {
  if (period == 0) return 0;
  const int rounds = (all.data_parallel() + all.workers - 1) / all.workers;
  const int range = all.stream_k_tiles == 0 ? 0 : all.range_begin(1) - all.range_begin(0);
  return (range + rounds * all.k_tiles + period - 1) / period;
}

// Step 20 asks before every k-tile whether there is a period. Here a producer without one counts down from a
// number that it does not live to see, and asks once a k-tile, not twice.

/// A producer's part in the grid-wide barrier. It arrives one k-tile before it waits. Needs all CTAs
/// co-resident.
class Lockstep {
 public:
  __device__ __forceinline__ explicit Lockstep(const LockstepPlan& plan)
      : plan_(plan), until_(plan.period == 0 ? std::numeric_limits<int>::max() : 2) {}

  /// Before every k-tile that the producer loads.
  __device__ __forceinline__ void before_k_tile() {
    --until_;
    if (until_ > 1) return;
    if (until_ == 1) {
      ++arrived_;
      ptx::red_add_relaxed_gpu(&plan_.counters[0], 1);
      return;
    }
    until_ = plan_.period;
    while (ptx::ld_relaxed_gpu(&plan_.counters[0]) < static_cast<std::uint32_t>(arrived_) * gridDim.x) {
    }
  }
  /// When it has loaded its last k-tile: arrives at all later barriers at once, so that no other waits for
  /// this CTA. The last one makes ready for the next launch.
  __device__ __forceinline__ void leave() {
    if (plan_.period == 0) return;
    ptx::red_add_relaxed_gpu(&plan_.counters[0], static_cast<std::uint32_t>(plan_.barriers - arrived_));
    if (ptx::atom_add_acq_rel_gpu(&plan_.counters[1], 1) + 1 < gridDim.x) return;
    ptx::st_relaxed_gpu(&plan_.counters[0], 0);
    ptx::st_relaxed_gpu(&plan_.counters[1], 0);
  }

 private:
  LockstepPlan plan_;
  int until_;  // the next barrier, in k-tiles
  int arrived_ = 0;
};

}  // namespace gemm
