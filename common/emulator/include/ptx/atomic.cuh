// Words in global memory by which CTAs tell each other something. The emulator's twins: a release is a fence
// and a relaxed store, an acquire a relaxed load and a fence.
//
// PTX ISA, "Data Movement and Conversion Instructions: ld, st"; "Memory Consistency Model: Release and
// Acquire Patterns".
#pragma once

#include <cstdint>

#include "emulator/atomics.h"
#include "ptx/core.cuh"

namespace ptx {

/// ld.relaxed.gpu.global.u32
__device__ __forceinline__ std::uint32_t ld_relaxed_gpu(const std::uint32_t* address,
                                                        emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(const_cast<std::uint32_t*>(address), "ld_relaxed_gpu", where,
                                 [](std::uint32_t value) { return value; });
}

/// ld.acquire.gpu.global.u32
__device__ __forceinline__ std::uint32_t ld_acquire_gpu(const std::uint32_t* address,
                                                        emulator::Where where = emulator::Where::here()) {
  const std::uint32_t value = emulator::atomic_update(const_cast<std::uint32_t*>(address), "ld_acquire_gpu",
                                                      where, [](std::uint32_t old) { return old; });
  emulator::fence(emulator::Scope::kDevice, "ld_acquire_gpu", where);
  return value;
}

/// st.relaxed.gpu.global.u32
__device__ __forceinline__ void st_relaxed_gpu(std::uint32_t* address, std::uint32_t value,
                                               emulator::Where where = emulator::Where::here()) {
  emulator::atomic_update(address, "st_relaxed_gpu", where, [value](std::uint32_t) { return value; });
}

/// st.release.gpu.global.u32
__device__ __forceinline__ void st_release_gpu(std::uint32_t* address, std::uint32_t value,
                                               emulator::Where where = emulator::Where::here()) {
  emulator::fence(emulator::Scope::kDevice, "st_release_gpu", where);
  emulator::atomic_update(address, "st_release_gpu", where, [value](std::uint32_t) { return value; });
}

}  // namespace ptx
