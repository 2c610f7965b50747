// TMA: one thread issues the copy of a whole tile between global and shared memory. The emulator's
// counterparts; the GPU header explains coordinates, edges, barriers and fences.
//
// PTX ISA, "Data Movement and Conversion Instructions: Tensor copy", cp.async.bulk.tensor,
// cp.async.bulk.commit_group, cp.async.bulk.wait_group, prefetch.tensormap.
#pragma once

#include <cstdint>

#include "emulator/async/hopper.h"
#include "emulator/report/report.h"
#include "ptx/core.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/trace.cuh"

namespace gemm::ptx {
namespace detail {

template <typename... Coordinates>
inline void tensor_load(const char* what, void* shared, const TensorMap* map, std::uint64_t* barrier,
                        bool multicast, std::uint32_t ctas, Where where, Coordinates... coordinates) {
  const std::int32_t at[] = {coordinates...};
  emulator::hopper_engine(what, where)
      .copies.load(what, shared, *map, at, static_cast<int>(sizeof...(coordinates)), barrier, ctas, multicast,
                   where);
}

template <int kRank>
inline void im2col_load(const char* what, void* shared, const TensorMap* map, const std::int32_t (&at)[kRank],
                        std::uint64_t* barrier, const std::uint16_t (&offsets)[kRank - 2], Where where) {
  constexpr std::uint32_t kAlignment = 128;
  emulator::hopper_engine(what, where)
      .copies.load(what, shared, *map, at, kRank, barrier, 0, false, where, kAlignment, offsets);
}

template <typename... Coordinates>
inline void tensor_store(const char* what, const TensorMap* map, const void* shared, Where where,
                         Coordinates... coordinates) {
  trace_state(TraceState::kStore, where);
  const std::int32_t at[] = {coordinates...};
  emulator::hopper_engine(what, where)
      .copies.store(what, *map, at, static_cast<int>(sizeof...(coordinates)), shared, where);
}

/// What createpolicy makes here. A hint changes no result, so this is all there is to it.
inline constexpr std::uint64_t kEvictFirst = 0x12f0000000000000;

inline void check_policy(std::uint64_t policy, Where where) {
  if (policy == kEvictFirst) return;
  emulator::Report report("a copy has a cache hint that is not a policy");
  report.line("where", where.text());
  report.rule("the operand of .L2::cache_hint must come from createpolicy", "PTX ISA, \"createpolicy\"");
  emulator::fail("cache-policy", report.str());
}

}  // namespace detail

/// cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk(void* shared, const void* global, std::uint32_t bytes,
                                              std::uint64_t* barrier, Where where = Where::here()) {
  emulator::hopper_engine("cp_async_bulk", where).copies.load_plain(shared, global, bytes, barrier, where);
}

/// cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_1d(void* shared, const TensorMap* map, int c0,
                                                        std::uint64_t* barrier, Where where = Where::here()) {
  detail::tensor_load("cp_async_bulk_tensor_1d", shared, map, barrier, false, 0, where, c0);
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_2d(void* shared, const TensorMap* map, int c0, int c1,
                                                        std::uint64_t* barrier, Where where = Where::here()) {
  detail::tensor_load("cp_async_bulk_tensor_2d", shared, map, barrier, false, 0, where, c0, c1);
}

/// createpolicy.fractional.L2::evict_first: there is no L2 here; any value that a hint can be told by.
__device__ __forceinline__ std::uint64_t createpolicy_fractional_l2_evict_first() {
  return detail::kEvictFirst;
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
__device__ __forceinline__ void cp_async_bulk_tensor_2d_cache_hint(void* shared, const TensorMap* map, int c0,
                                                                   int c1, std::uint64_t* barrier,
                                                                   std::uint64_t policy,
                                                                   Where where = Where::here()) {
  detail::check_policy(policy, where);
  detail::tensor_load("cp_async_bulk_tensor_2d_cache_hint", shared, map, barrier, false, 0, where, c0, c1);
}

/// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_3d(void* shared, const TensorMap* map, int c0, int c1,
                                                        int c2, std::uint64_t* barrier,
                                                        Where where = Where::here()) {
  detail::tensor_load("cp_async_bulk_tensor_3d", shared, map, barrier, false, 0, where, c0, c1, c2);
}

/// cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_4d(void* shared, const TensorMap* map, int c0, int c1,
                                                        int c2, int c3, std::uint64_t* barrier,
                                                        Where where = Where::here()) {
  detail::tensor_load("cp_async_bulk_tensor_4d", shared, map, barrier, false, 0, where, c0, c1, c2, c3);
}

/// cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_5d(void* shared, const TensorMap* map, int c0, int c1,
                                                        int c2, int c3, int c4, std::uint64_t* barrier,
                                                        Where where = Where::here()) {
  detail::tensor_load("cp_async_bulk_tensor_5d", shared, map, barrier, false, 0, where, c0, c1, c2, c3, c4);
}

/// cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_3d_im2col(void* shared, const TensorMap* map, int c,
                                                               int w, int n, std::uint64_t* barrier,
                                                               std::uint16_t offset_w,
                                                               Where where = Where::here()) {
  detail::im2col_load("cp_async_bulk_tensor_3d_im2col", shared, map, {c, w, n}, barrier, {offset_w}, where);
}

/// cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_4d_im2col(void* shared, const TensorMap* map, int c,
                                                               int w, int h, int n, std::uint64_t* barrier,
                                                               std::uint16_t offset_w, std::uint16_t offset_h,
                                                               Where where = Where::here()) {
  detail::im2col_load("cp_async_bulk_tensor_4d_im2col", shared, map, {c, w, h, n}, barrier,
                      {offset_w, offset_h}, where);
}

/// cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
__device__ __forceinline__ void cp_async_bulk_tensor_5d_im2col(void* shared, const TensorMap* map, int c,
                                                               int w, int h, int d, int n,
                                                               std::uint64_t* barrier, std::uint16_t offset_w,
                                                               std::uint16_t offset_h, std::uint16_t offset_d,
                                                               Where where = Where::here()) {
  detail::im2col_load("cp_async_bulk_tensor_5d_im2col", shared, map, {c, w, h, d, n}, barrier,
                      {offset_w, offset_h, offset_d}, where);
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast(void* shared, const TensorMap* map, int c0,
                                                                  int c1, std::uint64_t* barrier,
                                                                  std::uint16_t ctas,
                                                                  Where where = Where::here()) {
  detail::tensor_load("cp_async_bulk_tensor_2d_multicast", shared, map, barrier, true, ctas, where, c0, c1);
}

/// cp.async.bulk.tensor.2d....multicast::cluster.L2::cache_hint
__device__ __forceinline__ void cp_async_bulk_tensor_2d_multicast_cache_hint(
    void* shared, const TensorMap* map, int c0, int c1, std::uint64_t* barrier, std::uint16_t ctas,
    std::uint64_t policy, Where where = Where::here()) {
  detail::check_policy(policy, where);
  detail::tensor_load("cp_async_bulk_tensor_2d_multicast_cache_hint", shared, map, barrier, true, ctas, where,
                      c0, c1);
}

/// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
__device__ __forceinline__ void cp_async_bulk_tensor_3d_multicast(void* shared, const TensorMap* map, int c0,
                                                                  int c1, int c2, std::uint64_t* barrier,
                                                                  std::uint16_t ctas,
                                                                  Where where = Where::here()) {
  detail::tensor_load("cp_async_bulk_tensor_3d_multicast", shared, map, barrier, true, ctas, where, c0, c1,
                      c2);
}

/// cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2
__device__ __forceinline__ void cp_async_bulk_tensor_2d_cta_group_2(void* shared, const TensorMap* map,
                                                                    int c0, int c1, std::uint32_t barrier,
                                                                    Where where = Where::here()) {
  constexpr const char* kWhat = "cp_async_bulk_tensor_2d_cta_group_2";
  const std::int32_t at[] = {c0, c1};
  emulator::hopper_engine(kWhat, where).copies.load_of_pair(kWhat, shared, *map, at, 2, barrier, where);
}

/// cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
__device__ __forceinline__ void cp_async_bulk_tensor_2d_store(const TensorMap* map, int c0, int c1,
                                                              const void* shared,
                                                              Where where = Where::here()) {
  detail::tensor_store("cp_async_bulk_tensor_2d_store", map, shared, where, c0, c1);
}

/// cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group
__device__ __forceinline__ void cp_async_bulk_tensor_3d_store(const TensorMap* map, int c0, int c1, int c2,
                                                              const void* shared,
                                                              Where where = Where::here()) {
  detail::tensor_store("cp_async_bulk_tensor_3d_store", map, shared, where, c0, c1, c2);
}

/// cp.async.bulk.global.shared::cta.bulk_group
__device__ __forceinline__ void cp_async_bulk_store(void* global, const void* shared, std::uint32_t bytes,
                                                    Where where = Where::here()) {
  emulator::hopper_engine("cp_async_bulk_store", where)
      .copies.store_plain("cp_async_bulk_store", global, shared, bytes, {}, where);
}

/// cp.async.bulk.commit_group
__device__ __forceinline__ void cp_async_bulk_commit_group(Where where = Where::here()) {
  emulator::hopper_engine("cp_async_bulk_commit_group", where).copies.commit(where);
  trace_state(TraceState::kNone, where);
}

/// cp.async.bulk.wait_group: waits until at most kPending of this thread's latest groups are under way.
template <int kPending>
__device__ __forceinline__ void cp_async_bulk_wait_group(Where where = Where::here()) {
  static_assert(kPending >= 0, "a number of groups");
  trace_state(TraceState::kWaitStore, where);
  emulator::hopper_engine("cp_async_bulk_wait_group", where).copies.wait(kPending, false, where);
  trace_state(TraceState::kNone, where);
}

/// cp.async.bulk.wait_group.read: as above, but the others have only been read.
template <int kPending>
__device__ __forceinline__ void cp_async_bulk_wait_group_read(Where where = Where::here()) {
  static_assert(kPending >= 0, "a number of groups");
  trace_state(TraceState::kWaitStore, where);
  emulator::hopper_engine("cp_async_bulk_wait_group_read", where).copies.wait(kPending, true, where);
  trace_state(TraceState::kEpilogue, where);
}

/// prefetch.tensormap: nothing that a program could see.
__device__ __forceinline__ void prefetch_tensormap(const TensorMap*) {}

}  // namespace gemm::ptx
