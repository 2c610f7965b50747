// The states of a timeline (trace_state.h) on the GPU. Whoever has a state to report asks kTraces first, so
// that an ordinary build (without GEMM_STEPS_TRACE) is compiled as if there were no timelines.
//
// In a traced build the first warp of every warpgroup writes a record of 8 bytes into device memory when its
// state changes; one lane does it. Its next record's number is in shared memory, so that no kernel has to
// carry it.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "ptx/core.cuh"
#include "ptx/trace.h"
#include "ptx/trace_state.h"

namespace ptx {

#ifdef GEMM_STEPS_TRACE

inline constexpr bool kTraces = true;

/// One in every translation unit that has kernels.
[[maybe_unused]] static __constant__ TraceMemory trace_destination;

/// Called by launch(): tells this translation unit's kernels where to write.
[[maybe_unused]] static void connect_trace() {
  static TraceMemory connected;
  if (connected == trace_memory()) return;
  connected = trace_memory();
  if (cudaMemcpyToSymbol(trace_destination, &connected, sizeof connected) != cudaSuccess)
    throw std::runtime_error("the memory for a timeline could not be handed to the kernels");
}

/// Of each warpgroup: the number of its next record, and in the low 8 bits its state.
__device__ __forceinline__ volatile std::uint32_t* trace_counter(unsigned thread) {
  __shared__ std::uint32_t counters[kTraceRoles];
  return &counters[thread / 128 % kTraceRoles];
}

__device__ __forceinline__ unsigned trace_cta() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

/// All threads call it when the kernel starts.
__device__ __forceinline__ void trace_start() {
  const unsigned cta = trace_cta();
  const bool records = cta < static_cast<unsigned>(trace_destination.ctas);
  if (threadIdx.x % 128 == 0) *trace_counter(threadIdx.x) = records ? 0 : ~0u;
  if (threadIdx.x == 0 && records) {
    TraceHeader header;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(header.globaltimer)::"memory");
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(header.clock)::"memory");
    asm volatile("mov.u32 %0, %%smid;" : "=r"(header.sm));
    header.ctas = gridDim.x * gridDim.y * gridDim.z;
    trace_destination.headers[cta % kTraceCtas] = header;
  }
}

/// From now on the calling warp does this. PTX ISA, "Special Registers: %clock".
__device__ __forceinline__ void trace_state(TraceState state, int stage = -1, int k_tile = -1,
                                            char role = 0) {
  // volatile: read anew each time, so that nothing of this stays in registers while the kernel works.
  unsigned thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  if (thread / 32 % 4 != 0 ||
      thread % 32 != static_cast<unsigned>(__ffs(static_cast<int>(__activemask())) - 1))
    return;
  volatile std::uint32_t* const counter = trace_counter(thread);
  const std::uint32_t packed = *counter;
  const std::uint32_t number = packed >> 8;
  if (number >= kTraceRecords - 1) return;  // off, or full
  // Every multiplication counts, of other states only the change.
  if (state != TraceState::kMultiply && role == 0 && (packed & 0xff) == static_cast<std::uint32_t>(state))
    return;
  *counter = (number + 1) << 8 | static_cast<std::uint32_t>(state);
  std::uint32_t clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock)::"memory");
  const std::uint32_t place =
      (trace_cta() % kTraceCtas * kTraceRoles + thread / 128) * kTraceRecords + number;
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(trace_destination.records + place), "r"(clock),
               "r"(trace_word({state, role, stage, k_tile}))
               : "memory");
}

#else

inline constexpr bool kTraces = false;

inline void connect_trace() {}
__device__ __forceinline__ void trace_start() {}
__device__ __forceinline__ void trace_state(TraceState, int = -1, int = -1, char = 0) {}

#endif

}  // namespace ptx
