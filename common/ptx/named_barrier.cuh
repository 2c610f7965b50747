// The CTA's 16 hardware barriers. Number 0 is the one that __syncthreads uses.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier". `threads` counts all
// threads that synchronise or arrive, is a multiple of 32, and every warp takes part as a whole.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// bar.sync: arrives and waits for the others; what they wrote before is visible after.
__device__ __forceinline__ void bar_sync(std::uint32_t barrier, std::uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// bar.arrive: arrives without waiting.
__device__ __forceinline__ void bar_arrive(std::uint32_t barrier, std::uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// bar.red: all threads of one round execute the same one, and none of them bar.sync or bar.arrive.

/// bar.red.popc.u32: as bar_sync, and returns the number of threads whose predicate is true.
__device__ __forceinline__ std::uint32_t bar_red_popc(std::uint32_t barrier, std::uint32_t threads,
                                                      bool predicate) {
  std::uint32_t count;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %3, 0;\n\tbar.red.popc.u32 %0, %1, %2, p;\n\t}"
               : "=r"(count)
               : "r"(barrier), "r"(threads), "r"(static_cast<std::uint32_t>(predicate))
               : "memory");
  return count;
}

/// bar.red.and.pred: as bar_sync, and returns whether the predicates of all threads are true.
__device__ __forceinline__ bool bar_red_and(std::uint32_t barrier, std::uint32_t threads, bool predicate) {
  std::uint32_t all;
  asm volatile(
      "{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %3, 0;\n\tbar.red.and.pred q, %1, %2, p;\n\tselp.u32 %0, 1, "
      "0, "
      "q;\n\t}"
      : "=r"(all)
      : "r"(barrier), "r"(threads), "r"(static_cast<std::uint32_t>(predicate))
      : "memory");
  return all != 0;
}

/// bar.red.or.pred: as bar_sync, and returns whether the predicate of any thread is true.
__device__ __forceinline__ bool bar_red_or(std::uint32_t barrier, std::uint32_t threads, bool predicate) {
  std::uint32_t any;
  asm volatile(
      "{\n\t.reg .pred p, q;\n\tsetp.ne.u32 p, %3, 0;\n\tbar.red.or.pred q, %1, %2, p;\n\tselp.u32 %0, 1, 0, "
      "q;\n\t}"
      : "=r"(any)
      : "r"(barrier), "r"(threads), "r"(static_cast<std::uint32_t>(predicate))
      : "memory");
  return any != 0;
}

}  // namespace gemm::ptx
