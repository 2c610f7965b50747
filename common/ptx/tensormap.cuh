// Changing a tensor map inside a kernel.
//
// PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", "membar, fence": fence.proxy.tensormap::generic.
// The copy engine reads a map in global memory through a proxy, and a cache, of its own. So a change has
// three parts: one thread changes the map (in shared memory, followed by __syncwarp and
// tensormap_cp_fenceproxy by the whole warp; or in global memory, followed by the release fence), and a
// thread of each CTA that uses the map executes the acquire fence behind that. Maps are at multiples of 128
// bytes. A stride's number is that of its dimension less 1, and it is in bytes.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"

namespace gemm::ptx {

/// tensormap.replace.tile.global_address.shared::cta.b1024.b64
__device__ __forceinline__ void tensormap_replace_global_address_shared(TensorMap* map, const void* address) {
  asm volatile(
      "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(shared_address(map)),
      "l"(reinterpret_cast<std::uint64_t>(address))
      : "memory");
}

/// tensormap.replace.tile.global_dim.shared::cta.b1024.b32
template <int kDimension>
__device__ __forceinline__ void tensormap_replace_global_dim_shared(TensorMap* map, std::uint32_t elements) {
  asm volatile(
      "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], %1, %2;" ::"r"(shared_address(map)),
      "n"(kDimension), "r"(elements)
      : "memory");
}

/// tensormap.replace.tile.global_stride.shared::cta.b1024.b64
template <int kStride>
__device__ __forceinline__ void tensormap_replace_global_stride_shared(TensorMap* map, std::uint64_t bytes) {
  asm volatile(
      "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], %1, %2;" ::"r"(shared_address(map)),
      "n"(kStride), "l"(bytes)
      : "memory");
}

/// tensormap.replace.tile.global_address.global.b1024.b64
__device__ __forceinline__ void tensormap_replace_global_address_global(TensorMap* map, const void* address) {
  asm volatile(
      "tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(map)),
      "l"(reinterpret_cast<std::uint64_t>(address))
      : "memory");
}

/// tensormap.replace.tile.global_dim.global.b1024.b32
template <int kDimension>
__device__ __forceinline__ void tensormap_replace_global_dim_global(TensorMap* map, std::uint32_t elements) {
  asm volatile(
      "tensormap.replace.tile.global_dim.global.b1024.b32 [%0], %1, %2;" ::"l"(__cvta_generic_to_global(map)),
      "n"(kDimension), "r"(elements)
      : "memory");
}

/// tensormap.replace.tile.global_stride.global.b1024.b64
template <int kStride>
__device__ __forceinline__ void tensormap_replace_global_stride_global(TensorMap* map, std::uint64_t bytes) {
  asm volatile("tensormap.replace.tile.global_stride.global.b1024.b64 [%0], %1, %2;" ::"l"(
                   __cvta_generic_to_global(map)),
               "n"(kStride), "l"(bytes)
               : "memory");
}

/// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned: the warp copies
/// the map to global memory and releases it.
__device__ __forceinline__ void tensormap_cp_fenceproxy_release_gpu(TensorMap* global,
                                                                    const TensorMap* shared) {
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], "
      "128;" ::"l"(__cvta_generic_to_global(global)),
      "r"(shared_address(shared))
      : "memory");
}

/// fence.proxy.tensormap::generic.release.gpu
__device__ __forceinline__ void fence_proxy_tensormap_release_gpu() {
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

/// fence.proxy.tensormap::generic.acquire.gpu
__device__ __forceinline__ void fence_proxy_tensormap_acquire_gpu(const TensorMap* global) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(global) : "memory");
}

/// fence.proxy.tensormap::generic.acquire.sys: of a map that the host wrote.
__device__ __forceinline__ void fence_proxy_tensormap_acquire_sys(const TensorMap* global) {
  asm volatile("fence.proxy.tensormap::generic.acquire.sys [%0], 128;" ::"l"(global) : "memory");
}

}  // namespace gemm::ptx
