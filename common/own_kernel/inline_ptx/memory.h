// Loads, stores and atomics of inline PTX, by state space and memory order.
//
// PTX ISA, "Data Movement and Conversion Instructions: ld, st"; "atom", "red"; "Memory Consistency Model".
#pragma once

#include "emulator/instrument/generic_access.h"
#include "emulator/machine/context.h"
#include "emulator/machine/sanitizer.h"
#include "emulator/memory/atomics.h"
#include "emulator/memory/shared_space.h"
#include "own_kernel/inline_ptx/scalar.h"
#include "own_kernel/inline_ptx/values.h"
#include "ptx/memory.cuh"
#include "ptx/prefetch.cuh"
#include "ptx/tma.cuh"

namespace inline_ptx {

using emulator::Where;

inline void* pointer(u64 address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
/// An address of .shared: 32 bits in the cluster's window.
inline void* shared_pointer(u64 address, Where where) {
  return emulator::cluster_pointer(static_cast<u32>(address), where);
}
inline u64 shared_address(u64 generic, Where where) {
  return emulator::shared_address(pointer(generic), where);
}
inline u64 generic_address(u64 shared, Where where) {
  return number_of(shared_pointer(shared, where));
}
inline bool is_in_shared(u64 generic, Where) {
  return emulator::is_shared_memory(pointer(generic));
}
inline bool is_in_global(u64 generic, Where where) {
  return !is_in_shared(generic, where);
}

enum class Space { kGeneric, kGlobal, kShared };
enum class Order { kWeak, kRelaxed, kAcquire, kRelease, kAcquireRelease };
struct Place {
  Space space;
  Order order;
  emulator::Scope scope;
};
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Elements {
  T at[kCount];
};

inline void* object_at(const Place& place, u64 address, Where where) {
  return place.space == Space::kShared ? shared_pointer(address, where) : pointer(address);
}
inline void order_before(const char* what, const Place& place, Where where) {
  if (place.order == Order::kRelease || place.order == Order::kAcquireRelease)
    emulator::fence(place.scope, what, where);
}
inline void order_after(const char* what, const Place& place, Where where) {
  if (place.order == Order::kAcquire || place.order == Order::kAcquireRelease)
    emulator::fence(place.scope, what, where);
}

/// Of a strong load or store.
inline emulator::Scope strong_scope(const Place& place) {
  return place.scope == emulator::Scope::kSystem ? place.scope : emulator::Scope::kDevice;
}

/// One element, read or written as one that other threads may touch at the same time.
template <typename T>
EMULATOR_NOT_INSTRUMENTED T load_strongly(const char* what, const T* object, Where where) {
  emulator::AtomicAccess access(object, sizeof(T), what, where, emulator::AtomicKind::kLoad);
  T value;
  std::memcpy(static_cast<void*>(&value), object, sizeof value);
  access.saw(static_cast<u64>(number_of(value)));
  return value;
}
template <typename T>
EMULATOR_NOT_INSTRUMENTED void store_strongly(const char* what, T* object, T value, Where where) {
  emulator::AtomicAccess access(object, sizeof(T), what, where, emulator::AtomicKind::kStore);
  const bool is_same = std::memcmp(object, &value, sizeof value) == 0;
  std::memcpy(static_cast<void*>(object), &value, sizeof value);
  if (is_same) {
    access.repeated(static_cast<u64>(number_of(value)));
  } else {
    access.changed();
  }
}

/// 32 bytes are two accesses of 16 here, and have to be aligned as one.
inline void check_aligned_to_32(const char* what, u64 address, Where where) {
  if (address % 32 == 0) return;
  emulator::Report report("{} accesses 32 bytes at an address that is not a multiple of 32", what);
  report.at(where, emulator::running_thread());
  report.line("address", "{:#x}", address);
  emulator::fail(
      "global-misaligned",
      report.rule("an access must be aligned to its size", "PTX ISA, \"Addresses as Operands: Alignment\"")
          .str());
}

template <typename T, int kCount>
EMULATOR_NOT_INSTRUMENTED Elements<T, kCount> load(const char* what, Place place, u64 address, Where where) {
  using Whole = Elements<T, kCount>;
  if constexpr (sizeof(Whole) == 32) {
    check_aligned_to_32(what, address, where);
    const auto low = load<T, kCount / 2>(what, place, address, where);
    const auto high = load<T, kCount / 2>(what, place, address + 16, where);
    Whole both;
    std::copy_n(low.at, kCount / 2, both.at);
    std::copy_n(high.at, kCount / 2, both.at + kCount / 2);
    return both;
  } else {
    auto* const object = static_cast<Whole*>(object_at(place, address, where));
    Whole result;
    if (place.order != Order::kWeak) {
      const emulator::AtomicScope scope(strong_scope(place));
      for (int i = 0; i < kCount; ++i) result.at[i] = load_strongly(what, &object->at[i], where);
      order_after(what, place, where);
      return result;
    }
    switch (place.space) {
      case Space::kShared:
        return gemm::ptx::ld_shared(object, where);
      case Space::kGlobal:
        return gemm::ptx::ld_global(object, where);
      default:
        emulator::generic_access(object, sizeof(Whole), emulator::Access::kRead, where);
        std::memcpy(static_cast<void*>(&result), object, sizeof result);
        return result;
    }
  }
}

template <typename T, int kCount>
EMULATOR_NOT_INSTRUMENTED void store(const char* what, const Elements<T, kCount>& value, Place place,
                                     u64 address, Where where) {
  using Whole = Elements<T, kCount>;
  if constexpr (sizeof(Whole) == 32) {
    check_aligned_to_32(what, address, where);
    Elements<T, kCount / 2> half;
    std::copy_n(value.at, kCount / 2, half.at);
    store<T, kCount / 2>(what, half, place, address, where);
    std::copy_n(value.at + kCount / 2, kCount / 2, half.at);
    store<T, kCount / 2>(what, half, place, address + 16, where);
    return;
  } else {
    auto* const object = static_cast<Whole*>(object_at(place, address, where));
    for (const T& element : value.at) emulator::check_poison_of(what, element, where);
    if (place.order != Order::kWeak) {
      order_before(what, place, where);
      const emulator::AtomicScope scope(strong_scope(place));
      for (int i = 0; i < kCount; ++i) store_strongly(what, &object->at[i], value.at[i], where);
      return;
    }
    switch (place.space) {
      case Space::kShared:
        gemm::ptx::st_shared(object, value, where);
        break;
      case Space::kGlobal:
        gemm::ptx::st_global(object, value, where);
        break;
      default:
        emulator::generic_access(object, sizeof(Whole), emulator::Access::kWrite, where);
        std::memcpy(static_cast<void*>(object), &value, sizeof value);
    }
  }
}

template <typename T, typename Update>
T atomic(const char* what, Place place, u64 address, Where where, Update update) {
  auto* const object = static_cast<T*>(object_at(place, address, where));
  if (place.space == Space::kGlobal)
    emulator::check_global(object, sizeof(T), emulator::Access::kAtomic, where);
  order_before(what, place, where);
  const emulator::AtomicScope scope(place.scope);
  const T old = emulator::atomic_update(object, what, where, update);
  order_after(what, place, where);
  return old;
}
template <typename T>
T atomic_add(T old, T b, T) {
  return add(old, b, 0u);
}
template <typename T>
T atomic_min(T old, T b, T) {
  return min(old, b, 0u);
}
template <typename T>
T atomic_max(T old, T b, T) {
  return max(old, b, 0u);
}
template <typename T>
T atomic_and(T old, T b, T) {
  return bit_and(old, b, 0u);
}
template <typename T>
T atomic_or(T old, T b, T) {
  return bit_or(old, b, 0u);
}
template <typename T>
T atomic_xor(T old, T b, T) {
  return bit_xor(old, b, 0u);
}
template <typename T>
T atomic_exch(T, T b, T) {
  return b;
}
template <typename T>
T atomic_cas(T old, T compare, T value) {
  return old == compare ? value : old;
}
template <typename T>
T atomic_inc(T old, T limit, T) {
  return old >= limit ? 0 : old + 1;
}
template <typename T>
T atomic_dec(T old, T limit, T) {
  return old == 0 || old > limit ? limit : old - 1;
}

inline const emulator::TensorMapBits& tensor_map(u64 address) {
  return *static_cast<const emulator::TensorMapBits*>(pointer(address));
}
/// prefetch.tensormap: a hint.
inline void prefetch_tensormap(const char*, u64, Where) {}
inline void prefetch(const char* what, bool is_uniform, u64 address, Where where) {
  if (is_uniform) {
    emulator::prefetch_uniform(what, pointer(address), where);
  } else {
    emulator::prefetch_global(what, pointer(address), where);
  }
}
inline u64 policy() {
  return gemm::ptx::createpolicy_fractional_l2_evict_first();
}

}  // namespace inline_ptx
