// Device functions of CUDA that no step of the course uses. Those that compute with numbers are in
// integer_functions.h and float_functions.h.
//
// CUDA C++ Programming Guide, "Warp Match Functions", "Warp Reduce Functions", "Time Function".
#pragma once

#include <cmath>
#include <cstdint>

#include "emulator/instrument/warp_functions.h"
#include "emulator/memory/shared_space.h"
#include "float_functions.h"
#include "integer_functions.h"
#include "ptx/core.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

#define __noinline__ __attribute__((noinline))
#define __inline__ inline
#define __managed__
#define __nv_pure__
#define __builtin_assume(condition) static_cast<void>(0)

// CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization".
// NOLINTBEGIN(readability-identifier-naming): CUDA's names
inline void cudaGridDependencySynchronize(emulator::Where where = emulator::Where::here()) {
  gemm::ptx::griddepcontrol_wait(where);
}
inline void cudaTriggerProgrammaticLaunchCompletion(emulator::Where where = emulator::Where::here()) {
  gemm::ptx::griddepcontrol_launch_dependents(where);
}
// NOLINTEND(readability-identifier-naming)

// Read-only and cached loads are loads.
template <typename T>
inline T __ldg(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldcs(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldcv(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldcg(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldca(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline T __ldlu(const T* address, emulator::Where where = emulator::Where::here()) {
  return gemm::ptx::ld_global(address, where);
}
template <typename T>
inline void __stcs(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  gemm::ptx::st_global(address, value, where);
}
template <typename T>
inline void __stcg(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  gemm::ptx::st_global(address, value, where);
}
template <typename T>
inline void __stwb(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  gemm::ptx::st_global(address, value, where);
}
template <typename T>
inline void __stwt(T* address, std::type_identity_t<T> value,
                   emulator::Where where = emulator::Where::here()) {
  gemm::ptx::st_global(address, value, where);
}

inline void __threadfence_system(emulator::Where where = emulator::Where::here()) {
  emulator::fence(emulator::Scope::kSystem, "__threadfence_system", where, emulator::FenceOrder::kSequential);
}

// Scoped atomics.
#define EMULATOR_SCOPED(name)                                               \
  template <typename T>                                                     \
  inline T name##_block(T* address, std::type_identity_t<T> value,          \
                        emulator::Where where = emulator::Where::here()) {  \
    const emulator::AtomicScope scope(emulator::Scope::kCta);               \
    return name(address, value, where);                                     \
  }                                                                         \
  template <typename T>                                                     \
  inline T name##_system(T* address, std::type_identity_t<T> value,         \
                         emulator::Where where = emulator::Where::here()) { \
    const emulator::AtomicScope scope(emulator::Scope::kSystem);            \
    return name(address, value, where);                                     \
  }
EMULATOR_SCOPED(atomicAdd)
EMULATOR_SCOPED(atomicSub)
EMULATOR_SCOPED(atomicExch)
EMULATOR_SCOPED(atomicMin)
EMULATOR_SCOPED(atomicMax)
EMULATOR_SCOPED(atomicAnd)
EMULATOR_SCOPED(atomicOr)
EMULATOR_SCOPED(atomicXor)
#undef EMULATOR_SCOPED
template <typename T>
inline T atomicCAS_block(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value,
                         emulator::Where where = emulator::Where::here()) {
  const emulator::AtomicScope scope(emulator::Scope::kCta);
  return atomicCAS(address, compare, value, where);
}
template <typename T>
inline T atomicCAS_system(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value,
                          emulator::Where where = emulator::Where::here()) {
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  return atomicCAS(address, compare, value, where);
}
/// ((old == 0 || old > limit) ? limit : old - 1)
inline unsigned atomicDec(unsigned* address, unsigned limit,
                          emulator::Where where = emulator::Where::here()) {
  return emulator::atomic_update(address, "atomicDec", where,
                                 [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}

inline unsigned atomicInc_block(unsigned* address, unsigned limit,
                                emulator::Where where = emulator::Where::here()) {
  const emulator::AtomicScope scope(emulator::Scope::kCta);
  return atomicInc(address, limit, where);
}
inline unsigned atomicInc_system(unsigned* address, unsigned limit,
                                 emulator::Where where = emulator::Where::here()) {
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  return atomicInc(address, limit, where);
}
inline unsigned atomicDec_block(unsigned* address, unsigned limit,
                                emulator::Where where = emulator::Where::here()) {
  const emulator::AtomicScope scope(emulator::Scope::kCta);
  return atomicDec(address, limit, where);
}
inline unsigned atomicDec_system(unsigned* address, unsigned limit,
                                 emulator::Where where = emulator::Where::here()) {
  const emulator::AtomicScope scope(emulator::Scope::kSystem);
  return atomicDec(address, limit, where);
}

// Warp reductions and matches.
inline unsigned __reduce_add_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_add_sync", emulator::WarpReduce::kAdd, mask, value, where);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_min_sync", emulator::WarpReduce::kMin, mask, value, where);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_max_sync", emulator::WarpReduce::kMax, mask, value, where);
}
inline int __reduce_add_sync(unsigned mask, int value, emulator::Where where = emulator::Where::here()) {
  return static_cast<int>(__reduce_add_sync(mask, static_cast<unsigned>(value), where));
}
// The sign bit flipped, signed numbers are in the order of unsigned ones.
inline int __reduce_min_sync(unsigned mask, int value, emulator::Where where = emulator::Where::here()) {
  return static_cast<int>(__reduce_min_sync(mask, static_cast<unsigned>(value) ^ 0x80000000u, where) ^
                          0x80000000u);
}
inline int __reduce_max_sync(unsigned mask, int value, emulator::Where where = emulator::Where::here()) {
  return static_cast<int>(__reduce_max_sync(mask, static_cast<unsigned>(value) ^ 0x80000000u, where) ^
                          0x80000000u);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_and_sync", emulator::WarpReduce::kAnd, mask, value, where);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value,
                                 emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_or_sync", emulator::WarpReduce::kOr, mask, value, where);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value,
                                  emulator::Where where = emulator::Where::here()) {
  return emulator::warp_reduce("__reduce_xor_sync", emulator::WarpReduce::kXor, mask, value, where);
}
/// The lanes of the mask that have the same value.
template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, emulator::Where where = emulator::Where::here()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a match compares 4 or 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return emulator::warp_match("__match_any_sync", mask, bits, where);
}
/// The mask, without lanes that have returned, when all its lanes have the same value; otherwise 0.
template <typename T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all,
                                 emulator::Where where = emulator::Where::here()) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const emulator::Match match = emulator::match_lanes("__match_all_sync", mask, bits, where);
  *all = match.equal == match.all;
  return *all ? match.all : 0;
}

// Addresses.
inline std::size_t __cvta_generic_to_shared(const void* pointer,
                                            emulator::Where where = emulator::Where::here()) {
  return emulator::shared_address(pointer, where);
}
inline void* __cvta_shared_to_generic(std::size_t address, emulator::Where where = emulator::Where::here()) {
  return emulator::cluster_pointer(static_cast<std::uint32_t>(address), where);
}
inline std::size_t __cvta_generic_to_global(const void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}

inline void* __cvta_global_to_generic(std::size_t address) {
  return reinterpret_cast<void*>(address);
}

/// Without a debugger a breakpoint ends the kernel.
inline void __brkpt(emulator::Where where = emulator::Where::here()) {
  emulator::trap(where);
}

// Time: it goes on, which is all that a kernel may rely on.
inline long long clock64() {
  return emulator::next_clock();
}
