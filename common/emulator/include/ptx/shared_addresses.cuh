// The instructions of barriers, bulk copies, ldmatrix and stmatrix with addresses of shared memory as 32-bit
// numbers, as published kernels keep them. The emulator's counterparts.
//
// PTX ISA, "Data Movement and Conversion Instructions: cvta".
#pragma once

#include <cstdint>

#include "emulator/memory/shared_space.h"
#include "ptx/ldmatrix.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tma.cuh"

namespace gemm::ptx {

/// The object at this address.
template <typename T>
__device__ __forceinline__ T* at_shared_address(std::uint32_t address, Where where = Where::here()) {
  return static_cast<T*>(emulator::cluster_pointer(address, where));
}

/// mbarrier.init.shared::cta.b64
__device__ __forceinline__ void mbarrier_init(std::uint32_t barrier, std::uint32_t count,
                                              Where where = Where::here()) {
  mbarrier_init(at_shared_address<std::uint64_t>(barrier, where), count, where);
}

/// mbarrier.arrive.release.cta.shared::cta.b64
__device__ __forceinline__ void mbarrier_arrive(std::uint32_t barrier, Where where = Where::here()) {
  mbarrier_arrive(at_shared_address<std::uint64_t>(barrier, where), where);
}

/// mbarrier.arrive.expect_tx.release.cta.shared::cta.b64
__device__ __forceinline__ void mbarrier_arrive_expect_tx(std::uint32_t barrier, std::uint32_t bytes,
                                                          Where where = Where::here()) {
  mbarrier_arrive_expect_tx(at_shared_address<std::uint64_t>(barrier, where), bytes, where);
}

/// mbarrier.expect_tx.relaxed.cta.shared::cta.b64
__device__ __forceinline__ void mbarrier_expect_tx(std::uint32_t barrier, std::uint32_t bytes,
                                                   Where where = Where::here()) {
  mbarrier_expect_tx(at_shared_address<std::uint64_t>(barrier, where), bytes, where);
}

/// mbarrier.test_wait.parity.acquire.cta.shared::cta.b64
__device__ __forceinline__ bool mbarrier_test_wait_parity(std::uint32_t barrier, std::uint32_t parity,
                                                          Where where = Where::here()) {
  return mbarrier_test_wait_parity(at_shared_address<std::uint64_t>(barrier, where), parity, where);
}

/// mbarrier.try_wait.parity.acquire.cta.shared::cta.b64
__device__ __forceinline__ bool mbarrier_try_wait_parity(std::uint32_t barrier, std::uint32_t parity,
                                                         Where where = Where::here()) {
  return mbarrier_try_wait_parity(at_shared_address<std::uint64_t>(barrier, where), parity, where);
}

/// cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk(std::uint32_t shared, const void* global, std::uint32_t bytes,
                                              std::uint32_t barrier, Where where = Where::here()) {
  cp_async_bulk(at_shared_address<void>(shared, where), global, bytes,
                at_shared_address<std::uint64_t>(barrier, where), where);
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
template <typename Map>
__device__ __forceinline__ void cp_async_bulk_tensor_2d(std::uint32_t shared, const Map* map, int c0, int c1,
                                                        std::uint32_t barrier, Where where = Where::here()) {
  cp_async_bulk_tensor_2d(at_shared_address<void>(shared, where), map, c0, c1,
                          at_shared_address<std::uint64_t>(barrier, where), where);
}

/// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
template <typename Map>
__device__ __forceinline__ void cp_async_bulk_tensor_3d(std::uint32_t shared, const Map* map, int c0, int c1,
                                                        int c2, std::uint32_t barrier,
                                                        Where where = Where::here()) {
  cp_async_bulk_tensor_3d(at_shared_address<void>(shared, where), map, c0, c1, c2,
                          at_shared_address<std::uint64_t>(barrier, where), where);
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
template <typename Map>
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(std::uint32_t shared, const Map* map,
                                                                  int c0, int c1, std::uint32_t barrier,
                                                                  std::uint16_t ctas,
                                                                  Where where = Where::here()) {
  cp_async_bulk_tensor_2d_multicast(at_shared_address<void>(shared, where), map, c0, c1,
                                    at_shared_address<std::uint64_t>(barrier, where), ctas, where);
}

/// cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
template <typename Map>
__device__ __forceinline__ void cp_async_bulk_tensor_2d_store(const Map* map, int c0, int c1,
                                                              std::uint32_t shared,
                                                              Where where = Where::here()) {
  cp_async_bulk_tensor_2d_store(map, c0, c1, at_shared_address<const void>(shared, where), where);
}

/// ldmatrix.sync.aligned.m8n8.x4.shared.b16
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t row,
                                            Where where = Where::here()) {
  ldmatrix_x4(r, at_shared_address<const void>(row, where), where);
}

/// ldmatrix.sync.aligned.m8n8.x2.shared.b16
__device__ __forceinline__ void ldmatrix_x2(std::uint32_t (&r)[2], std::uint32_t row,
                                            Where where = Where::here()) {
  ldmatrix_x2(r, at_shared_address<const void>(row, where), where);
}

/// ldmatrix.sync.aligned.m8n8.x1.shared.b16
__device__ __forceinline__ void ldmatrix_x1(std::uint32_t (&r)[1], std::uint32_t row,
                                            Where where = Where::here()) {
  ldmatrix_x1(r, at_shared_address<const void>(row, where), where);
}

/// ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x1_trans(std::uint32_t (&r)[1], std::uint32_t row,
                                                  Where where = Where::here()) {
  ldmatrix_x1_trans(r, at_shared_address<const void>(row, where), where);
}

/// ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x2_trans(std::uint32_t (&r)[2], std::uint32_t row,
                                                  Where where = Where::here()) {
  ldmatrix_x2_trans(r, at_shared_address<const void>(row, where), where);
}

/// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t row,
                                                  Where where = Where::here()) {
  ldmatrix_x4_trans(r, at_shared_address<const void>(row, where), where);
}

/// stmatrix.sync.aligned.m8n8.x1.shared.b16
__device__ __forceinline__ void stmatrix_x1(std::uint32_t row, const std::uint32_t (&r)[1],
                                            Where where = Where::here()) {
  stmatrix_x1(at_shared_address<void>(row, where), r, where);
}

/// stmatrix.sync.aligned.m8n8.x1.trans.shared.b16
__device__ __forceinline__ void stmatrix_x1_trans(std::uint32_t row, const std::uint32_t (&r)[1],
                                                  Where where = Where::here()) {
  stmatrix_x1_trans(at_shared_address<void>(row, where), r, where);
}

/// stmatrix.sync.aligned.m8n8.x2.shared.b16
__device__ __forceinline__ void stmatrix_x2(std::uint32_t row, const std::uint32_t (&r)[2],
                                            Where where = Where::here()) {
  stmatrix_x2(at_shared_address<void>(row, where), r, where);
}

/// stmatrix.sync.aligned.m8n8.x2.trans.shared.b16
__device__ __forceinline__ void stmatrix_x2_trans(std::uint32_t row, const std::uint32_t (&r)[2],
                                                  Where where = Where::here()) {
  stmatrix_x2_trans(at_shared_address<void>(row, where), r, where);
}

/// stmatrix.sync.aligned.m8n8.x4.shared.b16
__device__ __forceinline__ void stmatrix_x4(std::uint32_t row, const std::uint32_t (&r)[4],
                                            Where where = Where::here()) {
  stmatrix_x4(at_shared_address<void>(row, where), r, where);
}

/// stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
__device__ __forceinline__ void stmatrix_x4_trans(std::uint32_t row, const std::uint32_t (&r)[4],
                                                  Where where = Where::here()) {
  stmatrix_x4_trans(at_shared_address<void>(row, where), r, where);
}

}  // namespace gemm::ptx
