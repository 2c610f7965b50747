// Plain loads and stores, by state space. A kernel that names the space of every access is easier to read
// beside its SASS (LDG, STG, LDS, STS), and on the emulator every access is bounds-checked and race-checked.
//
// PTX ISA, "Data Movement and Conversion Instructions": ld, st.
// No asm here but for a cache hint: the compiler picks ld.global/ld.shared itself once the space is certain,
// and may then reorder and combine the accesses as it may in any C++ program.
#pragma once

#include "ptx/core.cuh"

namespace gemm::ptx {

/// Reads sizeof(T) bytes (1, 2, 4, 8 or 16) from global memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ __forceinline__ T ld_global(const T* address) {
  __builtin_assume(__isGlobal(address));
  return *address;
}

/// ld.global.L1::no_allocate: reads 16 bytes that are not kept in L1, where they would displace what is read
/// again. PTX ISA, "Data Movement and Conversion Instructions: ld" and "Cache Eviction Priority Hints".
/// volatile, so that one that is issued ahead of a wait stays ahead of it; ld.global.nc would not, because
/// ptxas may move a load of what never changes.
__device__ __forceinline__ uint4 ld_global_no_allocate(const uint4* address) {
  uint4 value;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

/// Writes sizeof(T) bytes (1, 2, 4, 8 or 16) to global memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ __forceinline__ void st_global(T* address, T value) {
  __builtin_assume(__isGlobal(address));
  *address = value;
}

/// Reads sizeof(T) bytes (1, 2, 4, 8 or 16) from shared memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ __forceinline__ T ld_shared(const T* address) {
  __builtin_assume(__isShared(address));
  return *address;
}

/// Writes sizeof(T) bytes (1, 2, 4, 8 or 16) to shared memory; the address is a multiple of sizeof(T).
template <typename T>
__device__ __forceinline__ void st_shared(T* address, T value) {
  __builtin_assume(__isShared(address));
  *address = value;
}

}  // namespace gemm::ptx
