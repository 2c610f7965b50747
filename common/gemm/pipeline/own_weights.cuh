// Step 45's packed weights where rows are few: each thread copies its own, some groups ahead.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gemm/problem/weights.h"
#include "ptx/core.cuh"
#include "ptx/cp_async.cuh"

namespace gemm {

// Lesson: a thread needs 16 bytes of a block that no other thread needs. So it copies them itself, with
// cp.async, and waits for its own copies only: no barrier, no descriptor, and nobody to tell that they are
// read. The first copies leave before a barrier is initialised.
//
/// kEvery: from one group of a warpgroup to its next.
template <typename T, int kAhead, int kEvery>
struct OwnWeights {
  using Group = unsigned char[T::kPanels][T::kVectors][128][16];  // [panel][vector][thread][byte]

  Group (&slots)[kAhead];       // of the warpgroup
  const unsigned char* source;  // of the next group to copy: this thread's first byte
  std::int64_t panel_bytes;     // from 64 of K to the next 64
  int left;                     // groups from that one on
  int slot = 0;

  /// Block `block` of 64 rows, of `blocks`; a block behind the last one is the last one. Groups `first`, first
  /// + kEvery and so on, of `count` from `first` on.
  __device__ __forceinline__ OwnWeights(Group (&own)[kAhead], const unsigned char* weights, int block,
                                        int blocks, int first, int count)
      : slots(own), panel_bytes(static_cast<std::int64_t>(blocks) * T::kBlockBytes), left(count) {
    source = weights + first * T::kPanels * panel_bytes +
             static_cast<std::int64_t>(std::min(block, blocks - 1)) * T::kBlockBytes + threadIdx.x % 128 * 16;
    for (; slot < kAhead; ++slot) copy();
    slot = 0;
  }
  /// One group, or nothing behind the last one: a group of copies either way, so that waits count alike.
  __device__ __forceinline__ void copy() {
    if (left > 0) {
#pragma unroll
      for (int panel = 0; panel < T::kPanels; ++panel) {
#pragma unroll
        for (int vector = 0; vector < T::kVectors; ++vector)
          ptx::cp_async_cg_16(slots[slot][panel][vector][threadIdx.x % 128],
                              source + panel * panel_bytes + vector * 2048);
      }
    }
    ptx::cp_async_commit_group();
    source += kEvery * T::kPanels * panel_bytes;
    left -= kEvery;
  }
  /// The group of the slot has arrived.
  __device__ __forceinline__ void wait() const {
    ptx::cp_async_wait_group<kAhead - 1>();
  }
  /// The thread has read the slot: it is filled anew.
  __device__ __forceinline__ void refill() {
    copy();
    slot = slot + 1 == kAhead ? 0 : slot + 1;
  }
};

}  // namespace gemm
