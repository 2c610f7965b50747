// Plain loads and stores, by state space: the emulator's counterparts. Every access is checked for bounds,
// alignment, initialisation and races before it happens.
//
// PTX ISA, "Data Movement and Conversion Instructions": ld, st.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "emulator/machine/attention.h"
#include "emulator/machine/poison.h"
#include "emulator/machine/sanitizer.h"
#include "ptx/core.cuh"

// In an instrumented source the compiler would have each access checked a second time, as one of this header.
#ifdef EMULATOR_INSTRUMENTED
#define EMULATOR_WRAPPER EMULATOR_NOT_INSTRUMENTED inline
#else
#define EMULATOR_WRAPPER __forceinline__
#endif

namespace gemm::ptx {
namespace detail {

template <typename T>
inline constexpr unsigned kAccessLog2 = std::countr_zero(sizeof(T));

template <typename T>
inline constexpr bool kAccessible = std::is_trivially_copyable_v<T>&& std::has_single_bit(sizeof(T)) &&
                                    sizeof(T) <= 16;

}  // namespace detail

/// Reads sizeof(T) bytes (1, 2, 4, 8 or 16) from global memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ EMULATOR_WRAPPER T ld_global(const T* address, Where where = Where::here()) {
  static_assert(detail::kAccessible<T>, "one access moves 1, 2, 4, 8 or 16 bytes");
  emulator::global_read<detail::kAccessLog2<T>>(address, where);
  emulator::note_load(address);
  constexpr unsigned kBytes = 1U << detail::kAccessLog2<T>;
  if (emulator::attention()) [[unlikely]]
    emulator::attend_load(true, address, kBytes, where);
  std::remove_cv_t<T> value;
  std::memcpy(&value, address, kBytes);  // a float4 may be read from an array of float
  return value;
}

/// ld.global.L1::no_allocate: a read like any other here, because there is no L1.
__device__ EMULATOR_WRAPPER uint4 ld_global_no_allocate(const uint4* address, Where where = Where::here()) {
  return ld_global(address, where);
}

/// Writes sizeof(T) bytes (1, 2, 4, 8 or 16) to global memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ EMULATOR_WRAPPER void st_global(T* address, T value, Where where = Where::here()) {
  static_assert(detail::kAccessible<T>, "one access moves 1, 2, 4, 8 or 16 bytes");
  emulator::check_poison_of("st_global", value, where);
  emulator::global_write<detail::kAccessLog2<T>>(address, where);
  if (emulator::attention()) [[unlikely]]
    emulator::attend_store(true, address, &value, sizeof(T), where);
  std::memcpy(static_cast<void*>(address), &value, sizeof(T));
}

/// Reads sizeof(T) bytes (1, 2, 4, 8 or 16) from shared memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ EMULATOR_WRAPPER T ld_shared(const T* address, Where where = Where::here()) {
  static_assert(detail::kAccessible<T>, "one access moves 1, 2, 4, 8 or 16 bytes");
  emulator::shared_read<detail::kAccessLog2<T>>(address, where);
  if (emulator::attention()) [[unlikely]]
    emulator::attend_load(false, address, sizeof(T), where);
  std::remove_cv_t<T> value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

/// Writes sizeof(T) bytes (1, 2, 4, 8 or 16) to shared memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ EMULATOR_WRAPPER void st_shared(T* address, T value, Where where = Where::here()) {
  static_assert(detail::kAccessible<T>, "one access moves 1, 2, 4, 8 or 16 bytes");
  emulator::check_poison_of("st_shared", value, where);
  emulator::shared_write<detail::kAccessLog2<T>>(address, where);
  if (emulator::attention()) [[unlikely]]
    emulator::attend_store(false, address, &value, sizeof(T), where);
  std::memcpy(static_cast<void*>(address), &value, sizeof(T));
}

}  // namespace gemm::ptx

#undef EMULATOR_WRAPPER
