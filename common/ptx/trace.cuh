// The states of a timeline (trace_state.h) on the GPU. Code that has a state to report asks kTraces first, so
// that an ordinary build (without GEMM_STEPS_TRACE) is compiled as if there were no timelines.
//
// In a traced build the first warp of every warpgroup writes a record of 8 bytes into device memory when its
// state changes. Where the next one goes is in shared memory, so that no kernel has to carry it.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "ptx/core.cuh"
#include "ptx/trace.h"
#include "ptx/trace_state.h"

namespace gemm::ptx {

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
    throw std::runtime_error("the memory for a timeline could not be passed to the kernels");
}

/// Of each warpgroup, in shared memory: where its next record goes, how many more there is room for, its
/// state.
struct __align__(16) TraceCursor {
  std::uint64_t next;
  std::uint32_t left;
  std::uint32_t state;
};
__device__ __forceinline__ std::uint32_t trace_cursor(unsigned thread) {
  __shared__ TraceCursor cursors[kTraceRoles];
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(&cursors[thread / 128 % kTraceRoles]));
}
__device__ __forceinline__ void set_trace_cursor(std::uint32_t place, const TraceCursor& cursor) {
  asm volatile(
      "{\n"
      ".reg .b32 low, high;\n"
      "mov.b64 {low, high}, %1;\n"
      "st.shared.v4.b32 [%0], {low, high, %2, %3};\n"
      "}" ::"r"(place),
      "l"(cursor.next), "r"(cursor.left), "r"(cursor.state)
      : "memory");
}

/// All threads call it when the kernel starts.
__device__ __forceinline__ void trace_start() {
  const unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const bool records = cta < static_cast<unsigned>(trace_destination.ctas);
  if (threadIdx.x % 128 == 0) {
    const unsigned role = cta % kTraceCtas * kTraceRoles + threadIdx.x / 128 % kTraceRoles;
    const auto first = reinterpret_cast<std::uint64_t>(trace_destination.records + role * kTraceRecords);
    // The last record stays unwritten: it ends the list.
    set_trace_cursor(trace_cursor(threadIdx.x), {first, records ? kTraceRecords - 1u : 0u,
                                                 static_cast<std::uint32_t>(TraceState::kNone)});
  }
  __syncwarp();
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
  if (thread / 32 % 4 != 0) return;
  // All active lanes do the same with the same values, which costs less than to choose one of them.
  const std::uint32_t place = trace_cursor(thread);
  TraceCursor cursor;
  asm volatile(
      "{\n"
      ".reg .b32 low, high;\n"
      "ld.shared.v4.b32 {low, high, %1, %2}, [%3];\n"
      "mov.b64 %0, {low, high};\n"
      "}"
      : "=l"(cursor.next), "=r"(cursor.left), "=r"(cursor.state)
      : "r"(place)
      : "memory");
  if (cursor.left == 0) return;  // off, or full
  // Every multiplication counts, of other states only the change.
  if (state != TraceState::kMultiply && role == 0 && cursor.state == static_cast<std::uint32_t>(state))
    return;
  std::uint32_t clock;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clock)::"memory");
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(cursor.next), "r"(clock),
               "r"(trace_word({state, role, stage, k_tile}))
               : "memory");
  set_trace_cursor(place,
                   {cursor.next + sizeof(TraceWords), cursor.left - 1, static_cast<std::uint32_t>(state)});
}

#else

inline constexpr bool kTraces = false;

inline void connect_trace() {}
__device__ __forceinline__ void trace_start() {}
__device__ __forceinline__ void trace_state(TraceState, int = -1, int = -1, char = 0) {}

#endif

/// Nothing: a word to the emulator's model of the time, which does not see plain arithmetic.
__device__ __forceinline__ void trace_arithmetic(int) {}

}  // namespace gemm::ptx
