// Cooperative groups on the emulator: thread block, tiles of a warp, coalesced threads, cluster, grid.
//
// CUDA C++ Programming Guide, "Cooperative Groups".
#pragma once

#include <cstdint>

#include "cuda_runtime.h"
#include "emulator/instrument/grid_barrier.h"
#include "emulator/instrument/reductions.h"
#include "emulator/memory/shared_space.h"
#include "emulator/sync/cluster.h"

namespace cooperative_groups {

using Where = emulator::Where;

class thread_block {
 public:
  static void sync(Where where = Where::here()) { emulator::cta_barrier("thread_block::sync", 0, where); }
  static unsigned thread_rank() { return emulator::running_thread().index; }
  static unsigned num_threads() {
    return static_cast<unsigned>(emulator::running_thread().cta->thread_count);
  }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 dim_threads() { return {blockDim.x, blockDim.y, blockDim.z}; }
  static dim3 group_dim() { return dim_threads(); }
};
inline thread_block this_thread_block() {
  return {};
}

/// What tiles and coalesced groups have in common: some lanes of a warp.
class warp_part {
 public:
  explicit warp_part(unsigned mask) : mask_(mask) {}
  void sync(Where where = Where::here()) const { __syncwarp(mask_, where); }
  unsigned thread_rank() const {
    const unsigned lane = static_cast<unsigned>(emulator::running_thread().lane());
    return static_cast<unsigned>(__popc(mask_ & ((1u << lane) - 1)));
  }
  unsigned num_threads() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned size() const { return num_threads(); }
  int any(int predicate, Where where = Where::here()) const {
    return (__ballot_sync(mask_, predicate, where) & mask_) != 0;
  }
  int all(int predicate, Where where = Where::here()) const {
    return __ballot_sync(mask_, predicate, where) == mask_;
  }
  unsigned ballot(int predicate, Where where = Where::here()) const {
    const unsigned votes = __ballot_sync(mask_, predicate, where);
    unsigned packed = 0;
    for (unsigned rank = 0; rank < num_threads(); ++rank) packed |= (votes >> lane_of(rank) & 1u) << rank;
    return packed;
  }
  template <typename T>
  T shfl(T value, unsigned rank, Where where = Where::here()) const {
    return __shfl_sync(mask_, value, static_cast<int>(lane_of(rank % num_threads())), 32, where);
  }
  template <typename T>
  T shfl_down(T value, unsigned delta, Where where = Where::here()) const {
    const unsigned from = thread_rank() + delta;
    return shfl(value, from < num_threads() ? from : thread_rank(), where);
  }
  template <typename T>
  T shfl_up(T value, unsigned delta, Where where = Where::here()) const {
    return shfl(value, delta <= thread_rank() ? thread_rank() - delta : thread_rank(), where);
  }
  template <typename T>
  T shfl_xor(T value, unsigned mask, Where where = Where::here()) const {
    return shfl(value, thread_rank() ^ mask, where);
  }

 protected:
  unsigned lane_of(unsigned rank) const {
    unsigned rest = mask_;
    for (unsigned i = 0; i < rank; ++i) rest &= rest - 1;
    return static_cast<unsigned>(__ffs(static_cast<int>(rest))) - 1;
  }
  unsigned mask_;
};

template <unsigned kSize, typename Parent = thread_block>
class thread_block_tile : public warp_part {
  static_assert(kSize >= 1 && kSize <= 32 && (kSize & (kSize - 1)) == 0,
                "the emulator's tiles have 1 to 32 threads, a power of two");

 public:
  thread_block_tile()
      : warp_part(kMask << (static_cast<unsigned>(emulator::running_thread().lane()) / kSize * kSize)) {}
  static constexpr unsigned num_threads() { return kSize; }
  static constexpr unsigned size() { return kSize; }
  static unsigned meta_group_rank() { return emulator::running_thread().index / kSize; }
  static unsigned meta_group_size() { return (thread_block::num_threads() + kSize - 1) / kSize; }

 private:
  static constexpr unsigned kMask = kSize == 32 ? 0xffffffffu : (1u << kSize) - 1;
};
template <unsigned kSize, typename Parent>
thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}

class coalesced_group : public warp_part {
 public:
  explicit coalesced_group(unsigned mask) : warp_part(mask) {}
};
inline coalesced_group coalesced_threads(Where where = Where::here()) {
  return coalesced_group(__activemask(where));
}

class cluster_group {
 public:
  static void sync(Where where = Where::here()) {
    emulator::barrier_cluster_arrive(true, where);
    emulator::barrier_cluster_wait(where);
  }
  static void barrier_arrive(Where where = Where::here()) { emulator::barrier_cluster_arrive(true, where); }
  static void barrier_wait(Where where = Where::here()) { emulator::barrier_cluster_wait(where); }
  static unsigned block_rank(Where where = Where::here()) { return emulator::cluster_ctarank(where); }
  static unsigned num_blocks(Where where = Where::here()) { return emulator::cluster_nctarank(where); }
  static unsigned thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned num_threads() { return num_blocks() * thread_block::num_threads(); }
  static dim3 block_index() {
    const uint3 at = emulator::cluster_ctaid();
    return {at.x, at.y, at.z};
  }
  static dim3 dim_blocks() {
    const uint3 size = emulator::cluster_nctaid();
    return {size.x, size.y, size.z};
  }
  /// The same variable in another CTA's shared memory, for plain loads, stores and atomics.
  template <typename T>
  static T* map_shared_rank(T* pointer, unsigned rank, Where where = Where::here()) {
    return static_cast<T*>(emulator::cluster_pointer(
        emulator::mapa(emulator::shared_address(pointer, where), rank, where), where));
  }
  static unsigned query_shared_rank(const void* pointer, Where where = Where::here()) {
    return emulator::shared_address(pointer, where) >> 24;
  }
};
inline cluster_group this_cluster() {
  return {};
}

class grid_group {
 public:
  static void sync(Where where = Where::here()) { emulator::grid_barrier("grid_group::sync", where); }
  static bool is_valid() { return emulator::is_cooperative(); }
  static unsigned long long block_rank() { return emulator::running_thread().cta->linear; }
  static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(emulator::running_thread().cta->gang->grid.shape.grid.count());
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
};
inline grid_group this_grid() {
  return {};
}

template <typename Group>
void sync(const Group& group, Where where = Where::here()) {
  group.sync(where);
}

template <typename T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <typename T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};

/// Every thread of the tile gets the result; the order of the operations is open.
template <typename Tile, typename T, typename Op>
T reduce(const Tile& tile, T value, Op op, Where where = Where::here()) {
  T result = tile.shfl(value, 0, where);
  for (unsigned rank = 1; rank < tile.num_threads(); ++rank)
    result = op(result, tile.shfl(value, rank, where));
  return result;
}
template <typename Tile, typename T, typename Op = plus<T>>
T inclusive_scan(const Tile& tile, T value, Op op = {}, Where where = Where::here()) {
  for (unsigned delta = 1; delta < tile.num_threads(); delta *= 2) {
    const T before = tile.shfl_up(value, delta, where);
    if (tile.thread_rank() >= delta) value = op(before, value);
  }
  return value;
}
template <typename Tile, typename T, typename Op = plus<T>>
T exclusive_scan(const Tile& tile, T value, Op op = {}, Where where = Where::here()) {
  const T through = inclusive_scan(tile, value, op, where);
  const T before = tile.shfl_up(through, 1, where);
  return tile.thread_rank() == 0 ? T{} : before;
}

}  // namespace cooperative_groups
