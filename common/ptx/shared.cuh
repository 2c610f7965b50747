// Shared memory: the dynamic part as one typed struct, and addresses in the form that instructions take.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// Where dynamic shared memory starts is aligned to this many bytes: what the 128-byte swizzle needs.
inline constexpr int kDynamicSharedAlignment = 1024;

/// The launch's dynamic shared memory (LaunchShape::shared_bytes, at least sizeof(T)) as one T. Nothing is
/// constructed: the memory holds whatever the SM's last CTA left there.
/// CUDA C++ Programming Guide, "__shared__".
template <typename T>
__device__ __forceinline__ T& dynamic_shared() {
  static_assert(alignof(T) <= kDynamicSharedAlignment, "dynamic shared memory is aligned to 1024 bytes");
  static_assert(__is_trivially_constructible(T), "shared memory is never constructed");
  if constexpr (kTraces) trace_start();
  extern __shared__ __align__(kDynamicSharedAlignment) unsigned char dynamic_shared_memory[];
  return *reinterpret_cast<T*>(dynamic_shared_memory);
}

/// The 32-bit address in the shared state space (of the executing CTA, or in its cluster's window) that
/// `pointer` stands for. PTX ISA, "Data Movement and Conversion Instructions: cvta".
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace gemm::ptx
