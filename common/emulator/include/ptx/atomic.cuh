// Words in global memory by which CTAs tell each other something. The emulator's counterparts: a release is a
// fence and a relaxed store, an acquire a relaxed load and a fence.
//
// PTX ISA, "Data Movement and Conversion Instructions: ld, st"; "Memory Consistency Model: Release and
// Acquire Patterns".
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "emulator/memory/atomics.h"
#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// .global: an address outside every buffer is not taken for one of shared memory.
template <typename Word>
inline void check_flag(const Word* address, Where where) {
  emulator::check_global(address, sizeof *address, emulator::Access::kAtomic, where);
}

/// ld.relaxed.gpu.global.u32
__device__ __forceinline__ std::uint32_t ld_relaxed_gpu(const std::uint32_t* address,
                                                        Where where = Where::here()) {
  check_flag(address, where);
  return emulator::atomic_update(
      const_cast<std::uint32_t*>(address), "ld_relaxed_gpu", where, [](std::uint32_t value) { return value; },
      emulator::AtomicKind::kLoad);
}

/// ld.acquire.gpu.global.u32
__device__ __forceinline__ std::uint32_t ld_acquire_gpu(const std::uint32_t* address,
                                                        Where where = Where::here()) {
  check_flag(address, where);
  const std::uint32_t value = emulator::atomic_update(
      const_cast<std::uint32_t*>(address), "ld_acquire_gpu", where, [](std::uint32_t old) { return old; },
      emulator::AtomicKind::kLoad);
  emulator::fence(emulator::Scope::kDevice, "ld_acquire_gpu", where);
  if (value != 0 && emulator::timeline_on()) {
    trace_state(TraceState::kPass, where);
    emulator::log_flag(emulator::OperationKind::kFlagWait, address, where);
  }
  return value;
}

/// st.relaxed.gpu.global.u32
__device__ __forceinline__ void st_relaxed_gpu(std::uint32_t* address, std::uint32_t value,
                                               Where where = Where::here()) {
  check_flag(address, where);
  emulator::atomic_update(
      address, "st_relaxed_gpu", where, [value](std::uint32_t) { return value; },
      emulator::AtomicKind::kStore);
}

/// st.release.gpu.global.u32
__device__ __forceinline__ void st_release_gpu(std::uint32_t* address, std::uint32_t value,
                                               Where where = Where::here()) {
  check_flag(address, where);
  emulator::fence(emulator::Scope::kDevice, "st_release_gpu", where);
  emulator::atomic_update(
      address, "st_release_gpu", where, [value](std::uint32_t) { return value; },
      emulator::AtomicKind::kStore);
  if (emulator::timeline_on()) {
    trace_state(TraceState::kPass, where);
    emulator::log_flag(emulator::OperationKind::kFlagSet, address, where);
    trace_state(TraceState::kNone, where);
  }
}

/// red.relaxed.gpu.global.add.u32
__device__ __forceinline__ void red_add_relaxed_gpu(std::uint32_t* address, std::uint32_t value,
                                                    Where where = Where::here()) {
  check_flag(address, where);
  emulator::atomic_update(address, "red_add_relaxed_gpu", where,
                          [value](std::uint32_t old) { return old + value; });
}

/// red.release.gpu.global.add.u32
__device__ __forceinline__ void red_add_release_gpu(std::uint32_t* address, std::uint32_t value,
                                                    Where where = Where::here()) {
  check_flag(address, where);
  emulator::fence(emulator::Scope::kDevice, "red_add_release_gpu", where);
  emulator::atomic_update(address, "red_add_release_gpu", where,
                          [value](std::uint32_t old) { return old + value; });
}

/// PTX ISA, "red": an add of binary32 in global memory takes subnormal numbers for 0 of their sign.
inline float without_subnormal(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}

/// red.relaxed.gpu.global.add.f32
__device__ __forceinline__ void red_add_relaxed_gpu(float* address, float value,
                                                    Where where = Where::here()) {
  check_flag(address, where);
  emulator::atomic_update(address, "red_add_relaxed_gpu", where, [value](float old) {
    return without_subnormal(without_subnormal(old) + without_subnormal(value));
  });
}

/// red.relaxed.gpu.global.max.u32
__device__ __forceinline__ void red_max_relaxed_gpu(std::uint32_t* address, std::uint32_t value,
                                                    Where where = Where::here()) {
  check_flag(address, where);
  emulator::atomic_update(address, "red_max_relaxed_gpu", where,
                          [value](std::uint32_t old) { return old < value ? value : old; });
}

/// atom.acq_rel.gpu.global.add.u32
__device__ __forceinline__ std::uint32_t atom_add_acq_rel_gpu(std::uint32_t* address, std::uint32_t value,
                                                              Where where = Where::here()) {
  check_flag(address, where);
  emulator::fence(emulator::Scope::kDevice, "atom_add_acq_rel_gpu", where);
  const std::uint32_t before = emulator::atomic_update(address, "atom_add_acq_rel_gpu", where,
                                                       [value](std::uint32_t old) { return old + value; });
  emulator::fence(emulator::Scope::kDevice, "atom_add_acq_rel_gpu", where);
  return before;
}

/// atom.relaxed.gpu.global.add.u32
__device__ __forceinline__ std::uint32_t atom_add_relaxed_gpu(std::uint32_t* address, std::uint32_t value,
                                                              Where where = Where::here()) {
  check_flag(address, where);
  return emulator::atomic_update(address, "atom_add_relaxed_gpu", where,
                                 [value](std::uint32_t old) { return old + value; });
}

// Scope .sys: words by which GPUs tell each other something.

/// ld.relaxed.sys.global.u32
__device__ __forceinline__ std::uint32_t ld_relaxed_sys(const std::uint32_t* address,
                                                        Where where = Where::here()) {
  check_flag(address, where);
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  return emulator::atomic_update(
      const_cast<std::uint32_t*>(address), "ld_relaxed_sys", where, [](std::uint32_t value) { return value; },
      emulator::AtomicKind::kLoad);
}

/// ld.acquire.sys.global.u32
__device__ __forceinline__ std::uint32_t ld_acquire_sys(const std::uint32_t* address,
                                                        Where where = Where::here()) {
  check_flag(address, where);
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  const std::uint32_t value = emulator::atomic_update(
      const_cast<std::uint32_t*>(address), "ld_acquire_sys", where, [](std::uint32_t old) { return old; },
      emulator::AtomicKind::kLoad);
  emulator::fence(emulator::Scope::kSystem, "ld_acquire_sys", where);
  if (value != 0 && emulator::timeline_on()) {
    trace_state(TraceState::kPass, where);
    emulator::log_flag(emulator::OperationKind::kFlagWait, address, where);
  }
  return value;
}

/// st.relaxed.sys.global.u32
__device__ __forceinline__ void st_relaxed_sys(std::uint32_t* address, std::uint32_t value,
                                               Where where = Where::here()) {
  check_flag(address, where);
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  emulator::atomic_update(
      address, "st_relaxed_sys", where, [value](std::uint32_t) { return value; },
      emulator::AtomicKind::kStore);
}

/// st.release.sys.global.u32
__device__ __forceinline__ void st_release_sys(std::uint32_t* address, std::uint32_t value,
                                               Where where = Where::here()) {
  check_flag(address, where);
  emulator::fence(emulator::Scope::kSystem, "st_release_sys", where);
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  emulator::atomic_update(
      address, "st_release_sys", where, [value](std::uint32_t) { return value; },
      emulator::AtomicKind::kStore);
  if (emulator::timeline_on()) {
    trace_state(TraceState::kPass, where);
    emulator::log_flag(emulator::OperationKind::kFlagSet, address, where);
    trace_state(TraceState::kNone, where);
  }
}

/// red.relaxed.sys.global.add.u32
__device__ __forceinline__ void red_add_relaxed_sys(std::uint32_t* address, std::uint32_t value,
                                                    Where where = Where::here()) {
  check_flag(address, where);
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  emulator::atomic_update(address, "red_add_relaxed_sys", where,
                          [value](std::uint32_t old) { return old + value; });
}

/// red.release.sys.global.add.u32
__device__ __forceinline__ void red_add_release_sys(std::uint32_t* address, std::uint32_t value,
                                                    Where where = Where::here()) {
  check_flag(address, where);
  emulator::fence(emulator::Scope::kSystem, "red_add_release_sys", where);
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  emulator::atomic_update(address, "red_add_release_sys", where,
                          [value](std::uint32_t old) { return old + value; });
}

/// atom.acq_rel.sys.global.add.u32
__device__ __forceinline__ std::uint32_t atom_add_acq_rel_sys(std::uint32_t* address, std::uint32_t value,
                                                              Where where = Where::here()) {
  check_flag(address, where);
  emulator::fence(emulator::Scope::kSystem, "atom_add_acq_rel_sys", where);
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  const std::uint32_t before = emulator::atomic_update(address, "atom_add_acq_rel_sys", where,
                                                       [value](std::uint32_t old) { return old + value; });
  emulator::fence(emulator::Scope::kSystem, "atom_add_acq_rel_sys", where);
  return before;
}

}  // namespace gemm::ptx
