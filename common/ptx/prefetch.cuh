// Prefetches: hints that bring memory closer and change no result.
//
// PTX ISA, "Data Movement and Conversion Instructions: prefetch, prefetchu", "cp.async.bulk.prefetch",
// "cp.async.bulk.prefetch.tensor". The first four take a cache line, by every thread that executes them; the
// bulk ones what cp.async.bulk would take, by one thread. No barrier counts a prefetch.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/tensor_map.h"

namespace gemm::ptx {

/// prefetch.global.L1
__device__ __forceinline__ void prefetch_global_l1(const void* global) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(global)) : "memory");
}

/// prefetch.global.L2
__device__ __forceinline__ void prefetch_global_l2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(global)) : "memory");
}

/// prefetch.global.L2::evict_last
__device__ __forceinline__ void prefetch_global_l2_evict_last(const void* global) {
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(__cvta_generic_to_global(global)) : "memory");
}

/// prefetchu.L1: into the uniform cache. Nothing happens where the address is one of constant, local or
/// shared memory.
__device__ __forceinline__ void prefetchu_l1(const void* pointer) {
  asm volatile("prefetchu.L1 [%0];" ::"l"(pointer) : "memory");
}

/// cp.async.bulk.prefetch.L2.global: address and size are multiples of 16.
__device__ __forceinline__ void cp_async_bulk_prefetch_l2(const void* global, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(global)),
               "r"(bytes)
               : "memory");
}

/// cp.async.bulk.prefetch.tensor.1d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_1d_l2(const TensorMap* map, int c0) {
  asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%0, {%1}];" ::"l"(map), "r"(c0) : "memory");
}

/// cp.async.bulk.prefetch.tensor.2d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_2d_l2(const TensorMap* map, int c0, int c1) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(map), "r"(c0), "r"(c1)
               : "memory");
}

/// cp.async.bulk.prefetch.tensor.3d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_3d_l2(const TensorMap* map, int c0, int c1,
                                                                    int c2) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map), "r"(c0),
               "r"(c1), "r"(c2)
               : "memory");
}

/// cp.async.bulk.prefetch.tensor.4d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_4d_l2(const TensorMap* map, int c0, int c1,
                                                                    int c2, int c3) {
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(map), "r"(c0),
               "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}

/// cp.async.bulk.prefetch.tensor.5d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_5d_l2(const TensorMap* map, int c0, int c1,
                                                                    int c2, int c3, int c4) {
  asm volatile("cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %3, %4, %5}];" ::"l"(map),
               "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
               : "memory");
}

}  // namespace gemm::ptx
