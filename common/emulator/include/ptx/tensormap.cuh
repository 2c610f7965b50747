// Changing a tensor map inside a kernel. The emulator's counterparts.
//
// PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy", "membar, fence": fence.proxy.tensormap::generic.
// The copy engine reads a map in global memory through a proxy, and a cache, of its own. So a change has
// three parts: one thread changes the map (in shared memory, followed by __syncwarp and
// tensormap_cp_fenceproxy by the whole warp; or in global memory, followed by the release fence), and a
// thread of each CTA that uses the map executes the acquire fence behind that. Maps are at multiples of 128
// bytes. A stride's number is that of its dimension less 1, and it is in bytes.
#pragma once

#include <cstdint>

#include "emulator/async/descriptor_cache.h"
#include "ptx/core.cuh"
#include "ptx/tensor_map.h"

namespace gemm::ptx {

/// tensormap.replace.tile.global_address.shared::cta.b1024.b64
__device__ __forceinline__ void tensormap_replace_global_address_shared(TensorMap* map, const void* address,
                                                                        Where where = Where::here()) {
  emulator::tensormap_replace(map,
                              {"tensormap_replace_global_address_shared", emulator::MapField::kGlobalAddress,
                               0, reinterpret_cast<std::uintptr_t>(address), true},
                              where);
}

/// tensormap.replace.tile.global_dim.shared::cta.b1024.b32
template <int kDimension>
__device__ __forceinline__ void tensormap_replace_global_dim_shared(TensorMap* map, std::uint32_t elements,
                                                                    Where where = Where::here()) {
  emulator::tensormap_replace(
      map,
      {"tensormap_replace_global_dim_shared", emulator::MapField::kGlobalDim, kDimension, elements, true},
      where);
}

/// tensormap.replace.tile.global_stride.shared::cta.b1024.b64
template <int kStride>
__device__ __forceinline__ void tensormap_replace_global_stride_shared(TensorMap* map, std::uint64_t bytes,
                                                                       Where where = Where::here()) {
  emulator::tensormap_replace(
      map,
      {"tensormap_replace_global_stride_shared", emulator::MapField::kGlobalStride, kStride, bytes, true},
      where);
}

/// tensormap.replace.tile.global_address.global.b1024.b64
__device__ __forceinline__ void tensormap_replace_global_address_global(TensorMap* map, const void* address,
                                                                        Where where = Where::here()) {
  emulator::tensormap_replace(map,
                              {"tensormap_replace_global_address_global", emulator::MapField::kGlobalAddress,
                               0, reinterpret_cast<std::uintptr_t>(address), false},
                              where);
}

/// tensormap.replace.tile.global_dim.global.b1024.b32
template <int kDimension>
__device__ __forceinline__ void tensormap_replace_global_dim_global(TensorMap* map, std::uint32_t elements,
                                                                    Where where = Where::here()) {
  emulator::tensormap_replace(
      map,
      {"tensormap_replace_global_dim_global", emulator::MapField::kGlobalDim, kDimension, elements, false},
      where);
}

/// tensormap.replace.tile.global_stride.global.b1024.b64
template <int kStride>
__device__ __forceinline__ void tensormap_replace_global_stride_global(TensorMap* map, std::uint64_t bytes,
                                                                       Where where = Where::here()) {
  emulator::tensormap_replace(
      map,
      {"tensormap_replace_global_stride_global", emulator::MapField::kGlobalStride, kStride, bytes, false},
      where);
}

/// tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
__device__ __forceinline__ void tensormap_cp_fenceproxy_release_gpu(TensorMap* global,
                                                                    const TensorMap* shared,
                                                                    Where where = Where::here()) {
  emulator::tensormap_cp_fenceproxy(emulator::FenceScope::kGpu, global, shared, where);
}

/// fence.proxy.tensormap::generic.release.gpu
__device__ __forceinline__ void fence_proxy_tensormap_release_gpu(Where where = Where::here()) {
  emulator::fence_proxy_tensormap_release(emulator::FenceScope::kGpu, where);
}

/// fence.proxy.tensormap::generic.acquire.gpu
__device__ __forceinline__ void fence_proxy_tensormap_acquire_gpu(const TensorMap* global,
                                                                  Where where = Where::here()) {
  emulator::fence_proxy_tensormap_acquire(emulator::FenceScope::kGpu, global, where);
}

/// fence.proxy.tensormap::generic.acquire.sys
__device__ __forceinline__ void fence_proxy_tensormap_acquire_sys(const TensorMap* global,
                                                                  Where where = Where::here()) {
  emulator::fence_proxy_tensormap_acquire(emulator::FenceScope::kSys, global, where);
}

}  // namespace gemm::ptx
