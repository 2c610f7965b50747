// Shared memory: the dynamic part as one typed struct, and addresses in the form that instructions take. The
// emulator's counterpart.
#pragma once

#include <cstdint>

#include "emulator/report/member_names.h"
#include "ptx/core.cuh"

namespace gemm::ptx {

/// Where dynamic shared memory starts is aligned to this many bytes: what the 128-byte swizzle needs.
inline constexpr int kDynamicSharedAlignment = 1024;

/// The launch's dynamic shared memory (LaunchShape::shared_bytes, at least sizeof(T)) as one T. Nothing is
/// constructed: the memory holds whatever the SM's last CTA left there, which here is NaNs.
/// CUDA C++ Programming Guide, "__shared__".
template <typename T>
__device__ __forceinline__ T& dynamic_shared(Where where = Where::here()) {
  static_assert(alignof(T) <= kDynamicSharedAlignment, "dynamic shared memory is aligned to 1024 bytes");
  static_assert(__is_trivially_constructible(T), "shared memory is never constructed");
  T& shared = *static_cast<T*>(emulator::dynamic_shared(sizeof(T), where));
  emulator::name_dynamic_shared(shared);
  return shared;
}

/// The 32-bit address in the shared state space that `pointer` stands for.
/// PTX ISA, "Data Movement and Conversion Instructions: cvta".
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer, Where where = Where::here()) {
  return emulator::shared_address(pointer, where);
}

}  // namespace gemm::ptx
