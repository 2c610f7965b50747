// Words in global memory by which CTAs tell each other something: loads and stores that order what surrounds
// them.
//
// PTX ISA, "Data Movement and Conversion Instructions: ld, st"; "Memory Consistency Model: Release and
// Acquire Patterns". A release makes visible what this thread wrote, and what it knows of others by barriers,
// to a thread that acquires the value. The relaxed forms pass the value alone.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// ld.acquire.gpu.global.u32
__device__ __forceinline__ std::uint32_t ld_acquire_gpu(const std::uint32_t* address) {
  if constexpr (kTraces) trace_state(TraceState::kPass);
  std::uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

/// ld.acquire.sys.global.u32: with what threads of other GPUs and of the host have released, too.
__device__ __forceinline__ std::uint32_t ld_acquire_sys(const std::uint32_t* address) {
  if constexpr (kTraces) trace_state(TraceState::kPass);
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

/// ld.relaxed.gpu.global.u32
__device__ __forceinline__ std::uint32_t ld_relaxed_gpu(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

/// st.release.gpu.global.u32
__device__ __forceinline__ void st_release_gpu(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
  if constexpr (kTraces) trace_state(TraceState::kPass);
  if constexpr (kTraces) trace_state(TraceState::kNone);
}

/// st.release.sys.global.u32: for threads of other GPUs and of the host, too.
__device__ __forceinline__ void st_release_sys(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
  if constexpr (kTraces) trace_state(TraceState::kPass);
  if constexpr (kTraces) trace_state(TraceState::kNone);
}

/// st.relaxed.gpu.global.u32
__device__ __forceinline__ void st_relaxed_gpu(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// red.relaxed.gpu.global.add.u32: adds, and does not wait for what was there.
/// PTX ISA, "Parallel Synchronization and Communication Instructions: red".
__device__ __forceinline__ void red_add_relaxed_gpu(std::uint32_t* address, std::uint32_t value) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// red.release.gpu.global.add.u32: the same with a release.
__device__ __forceinline__ void red_add_release_gpu(std::uint32_t* address, std::uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// red.release.sys.global.add.u32: with a release to threads of other GPUs, too.
__device__ __forceinline__ void red_add_release_sys(std::uint32_t* address, std::uint32_t value) {
  asm volatile("red.release.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// red.relaxed.gpu.global.add.f32: the same of binary32, rounded to nearest even; subnormal operands and
/// results are 0. The order in which several threads' values are added is not defined, and with it the last
/// bits of the sum.
__device__ __forceinline__ void red_add_relaxed_gpu(float* address, float value) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(address), "f"(value) : "memory");
}

/// red.relaxed.gpu.global.max.u32
__device__ __forceinline__ void red_max_relaxed_gpu(std::uint32_t* address, std::uint32_t value) {
  asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// atom.acq_rel.gpu.global.add.u32: adds, and gives back what was there.
/// PTX ISA, "Parallel Synchronization and Communication Instructions: atom".
__device__ __forceinline__ std::uint32_t atom_add_acq_rel_gpu(std::uint32_t* address, std::uint32_t value) {
  std::uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address), "r"(value)
               : "memory");
  return old;
}

/// atom.relaxed.gpu.global.add.u32: the same without an order for other accesses.
__device__ __forceinline__ std::uint32_t atom_add_relaxed_gpu(std::uint32_t* address, std::uint32_t value) {
  std::uint32_t old;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address), "r"(value)
               : "memory");
  return old;
}

/// ld.relaxed.sys.global.u32
__device__ __forceinline__ std::uint32_t ld_relaxed_sys(const std::uint32_t* address) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

/// st.relaxed.sys.global.u32
__device__ __forceinline__ void st_relaxed_sys(std::uint32_t* address, std::uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// red.relaxed.sys.global.add.u32
__device__ __forceinline__ void red_add_relaxed_sys(std::uint32_t* address, std::uint32_t value) {
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// atom.acq_rel.sys.global.add.u32
__device__ __forceinline__ std::uint32_t atom_add_acq_rel_sys(std::uint32_t* address, std::uint32_t value) {
  std::uint32_t old;
  asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address), "r"(value)
               : "memory");
  return old;
}

}  // namespace gemm::ptx
