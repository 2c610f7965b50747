// Prefetches: hints that bring memory closer and change no result. The emulator's counterparts, which check
// what they name.
//
// PTX ISA, "Data Movement and Conversion Instructions: prefetch, prefetchu", "cp.async.bulk.prefetch",
// "cp.async.bulk.prefetch.tensor".
#pragma once

#include <cstdint>

#include "emulator/async/hopper.h"
#include "ptx/core.cuh"
#include "ptx/tensor_map.h"

namespace gemm::ptx {
namespace detail {

template <typename... Coordinates>
inline void tensor_prefetch(const char* what, const TensorMap* map, Where where, Coordinates... coordinates) {
  const std::int32_t at[] = {coordinates...};
  emulator::hopper_engine(what, where)
      .copies.prefetch(what, *map, at, static_cast<int>(sizeof...(coordinates)), where);
}

}  // namespace detail

/// prefetch.global.L1
__device__ __forceinline__ void prefetch_global_l1(const void* global, Where where = Where::here()) {
  emulator::prefetch_global("prefetch_global_l1", global, where);
}

/// prefetch.global.L2
__device__ __forceinline__ void prefetch_global_l2(const void* global, Where where = Where::here()) {
  emulator::prefetch_global("prefetch_global_l2", global, where);
}

/// prefetch.global.L2::evict_last
__device__ __forceinline__ void prefetch_global_l2_evict_last(const void* global,
                                                              Where where = Where::here()) {
  emulator::prefetch_global("prefetch_global_l2_evict_last", global, where);
}

/// prefetchu.L1
__device__ __forceinline__ void prefetchu_l1(const void* pointer, Where where = Where::here()) {
  emulator::prefetch_uniform("prefetchu_l1", pointer, where);
}

/// cp.async.bulk.prefetch.L2.global
__device__ __forceinline__ void cp_async_bulk_prefetch_l2(const void* global, std::uint32_t bytes,
                                                          Where where = Where::here()) {
  emulator::hopper_engine("cp_async_bulk_prefetch_l2", where).copies.prefetch_plain(global, bytes, where);
}

/// cp.async.bulk.prefetch.tensor.1d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_1d_l2(const TensorMap* map, int c0,
                                                                    Where where = Where::here()) {
  detail::tensor_prefetch("cp_async_bulk_prefetch_tensor_1d_l2", map, where, c0);
}

/// cp.async.bulk.prefetch.tensor.2d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_2d_l2(const TensorMap* map, int c0, int c1,
                                                                    Where where = Where::here()) {
  detail::tensor_prefetch("cp_async_bulk_prefetch_tensor_2d_l2", map, where, c0, c1);
}

/// cp.async.bulk.prefetch.tensor.3d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_3d_l2(const TensorMap* map, int c0, int c1,
                                                                    int c2, Where where = Where::here()) {
  detail::tensor_prefetch("cp_async_bulk_prefetch_tensor_3d_l2", map, where, c0, c1, c2);
}

/// cp.async.bulk.prefetch.tensor.4d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_4d_l2(const TensorMap* map, int c0, int c1,
                                                                    int c2, int c3,
                                                                    Where where = Where::here()) {
  detail::tensor_prefetch("cp_async_bulk_prefetch_tensor_4d_l2", map, where, c0, c1, c2, c3);
}

/// cp.async.bulk.prefetch.tensor.5d.L2.global.tile
__device__ __forceinline__ void cp_async_bulk_prefetch_tensor_5d_l2(const TensorMap* map, int c0, int c1,
                                                                    int c2, int c3, int c4,
                                                                    Where where = Where::here()) {
  detail::tensor_prefetch("cp_async_bulk_prefetch_tensor_5d_l2", map, where, c0, c1, c2, c3, c4);
}

}  // namespace gemm::ptx
