// The CTA's 16 hardware barriers. Number 0 is the one that __syncthreads uses. The emulator's counterparts.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier". `threads` counts all
// threads that synchronise or arrive, is a multiple of 32, and every warp takes part as a whole.
#pragma once

#include <cstdint>

#include "emulator/sync/named_barrier.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// bar.sync: arrives and waits for the others; what they wrote before is visible after.
__device__ __forceinline__ void bar_sync(std::uint32_t barrier, std::uint32_t threads,
                                         Where where = Where::here()) {
  emulator::bar_sync(barrier, threads, where);
}

/// bar.arrive: arrives without waiting.
__device__ __forceinline__ void bar_arrive(std::uint32_t barrier, std::uint32_t threads,
                                           Where where = Where::here()) {
  emulator::bar_arrive(barrier, threads, where);
}

/// bar.red.popc.u32: as bar_sync, and returns the number of threads whose predicate is true.
__device__ __forceinline__ std::uint32_t bar_red_popc(std::uint32_t barrier, std::uint32_t threads,
                                                      bool predicate, Where where = Where::here()) {
  return emulator::bar_red("bar_red_popc", barrier, threads, predicate, where);
}

/// bar.red.and.pred: as bar_sync, and returns whether the predicates of all threads are true.
__device__ __forceinline__ bool bar_red_and(std::uint32_t barrier, std::uint32_t threads, bool predicate,
                                            Where where = Where::here()) {
  return emulator::bar_red("bar_red_and", barrier, threads, predicate, where) == threads;
}

/// bar.red.or.pred: as bar_sync, and returns whether the predicate of any thread is true.
__device__ __forceinline__ bool bar_red_or(std::uint32_t barrier, std::uint32_t threads, bool predicate,
                                           Where where = Where::here()) {
  return emulator::bar_red("bar_red_or", barrier, threads, predicate, where) != 0;
}

}  // namespace gemm::ptx
