// Cooperative groups on the emulator: thread block, tiles of a warp, coalesced threads, cluster, grid.
//
// CUDA C++ Programming Guide, "Cooperative Groups".
#pragma once

#include <cstdint>
#include <utility>

#include "cuda_runtime.h"
#include "emulator/instrument/grid_barrier.h"
#include "emulator/instrument/reductions.h"
#include "emulator/memory/shared_space.h"
#include "emulator/sync/cluster.h"
#include "emulator/sync/named_barrier.h"

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

/// Memory for tiles of more than a warp, in shared memory: 32 bytes for each warp.
template <unsigned kMaxThreads = 1024>
struct block_tile_memory {
  alignas(16) unsigned char bytes[(kMaxThreads + 31) / 32][32];
};
/// A thread block that can be divided into tiles of more than a warp.
class thread_block_with_memory : public thread_block {
 public:
  explicit thread_block_with_memory(unsigned char (*memory)[32]) : memory_(memory) {}
  unsigned char (*memory() const)[32] { return memory_; }

 private:
  unsigned char (*memory_)[32];
};
template <unsigned kMaxThreads>
thread_block_with_memory this_thread_block(block_tile_memory<kMaxThreads>& memory) {
  return thread_block_with_memory(memory.bytes);
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
  int any(int predicate, Where where = Where::here()) const { return __any_sync(mask_, predicate, where); }
  int all(int predicate, Where where = Where::here()) const { return __all_sync(mask_, predicate, where); }
  unsigned ballot(int predicate, Where where = Where::here()) const {
    return packed(__ballot_sync(mask_, predicate, where));
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
  template <typename T>
  unsigned match_any(T value, Where where = Where::here()) const {
    return packed(__match_any_sync(mask_, value, where));
  }
  template <typename T>
  unsigned match_all(T value, int& all, Where where = Where::here()) const {
    return packed(__match_all_sync(mask_, value, &all, where));
  }
  unsigned lanes() const { return mask_; }  // for partitions of the group

 protected:
  /// One bit a lane of the warp, as one bit a thread of the group.
  unsigned packed(unsigned lanes) const {
    unsigned ranks = 0;
    for (unsigned rank = 0; rank < num_threads(); ++rank) ranks |= (lanes >> lane_of(rank) & 1u) << rank;
    return ranks;
  }
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
  /// Lanes that the last warp of the CTA does not have take no part.
  thread_block_tile()
      : warp_part(kMask << (static_cast<unsigned>(emulator::running_thread().lane()) / kSize * kSize) &
                  lanes_of_warp()) {}
  static constexpr unsigned num_threads() { return kSize; }
  static constexpr unsigned size() { return kSize; }
  /// Which of the parent's tiles this is, and of how many.
  static unsigned meta_group_rank() { return Parent().thread_rank() / kSize; }
  static unsigned meta_group_size() { return (Parent().num_threads() + kSize - 1) / kSize; }

 private:
  static constexpr unsigned kMask = kSize == 32 ? 0xffffffffu : (1u << kSize) - 1;
  static unsigned lanes_of_warp() {
    const unsigned lanes = thread_block::num_threads() - thread_block::thread_rank() / 32 * 32;
    return lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
  }
};
template <unsigned kSize, typename Parent>
requires(kSize <= 32) thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return {};
}

/// A tile of several warps, which meets at a barrier of its own.
template <unsigned kSize>
class warps_tile {
  static_assert(kSize > 32 && kSize <= 1024 && (kSize & (kSize - 1)) == 0,
                "the emulator's tiles have 1 to 1024 threads, a power of two");

 public:
  explicit warps_tile(unsigned char (*memory)[32]) : memory_(memory + meta_group_rank() * (kSize / 32)) {}
  static unsigned thread_rank() { return thread_block::thread_rank() % kSize; }
  static constexpr unsigned num_threads() { return kSize; }
  static constexpr unsigned size() { return kSize; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / kSize; }
  static unsigned meta_group_size() { return (thread_block::num_threads() + kSize - 1) / kSize; }
  void sync(Where where = Where::here()) const { emulator::bar_sync(15 - meta_group_rank(), kSize, where); }
  template <typename T>
  T shfl(T value, unsigned rank, Where where = Where::here()) const {
    static_assert(sizeof(T) <= 32, "the emulator's tiles exchange at most 32 bytes");
    sync(where);  // what was exchanged before has been read
    if (thread_rank() == rank % kSize) *place<T>(0) = value;
    sync(where);
    return *place<T>(0);
  }
  int any(int predicate, Where where = Where::here()) const {
    return combine(
        predicate != 0 ? 1 : 0, [](int a, int b) { return a | b; }, where);
  }
  int all(int predicate, Where where = Where::here()) const {
    return combine(
        predicate != 0 ? 1 : 0, [](int a, int b) { return a & b; }, where);
  }
  /// The warps' results come together in the memory.
  template <typename T, typename Op>
  T combine(T value, Op op, Where where) const {
    for (int distance = 16; distance > 0; distance /= 2)
      value = op(value, __shfl_xor_sync(0xffffffffu, value, distance, 32, where));
    sync(where);
    if (thread_rank() % 32 == 0) *place<T>(thread_rank() / 32) = value;
    sync(where);
    T result = *place<T>(0);
    for (unsigned warp = 1; warp < kSize / 32; ++warp) result = op(result, *place<T>(warp));
    return result;
  }

 private:
  template <typename T>
  T* place(unsigned warp) const {
    return reinterpret_cast<T*>(memory_[warp]);
  }
  unsigned char (*memory_)[32];
};
template <unsigned kSize>
auto tiled_partition(const thread_block_with_memory& block) {
  if constexpr (kSize > 32) {
    return warps_tile<kSize>(block.memory());
  } else {
    return tiled_partition<kSize>(static_cast<const thread_block&>(block));
  }
}

class coalesced_group : public warp_part {
 public:
  explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : warp_part(mask), meta_rank_(meta_rank), meta_size_(meta_size) {}
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

 private:
  unsigned meta_rank_, meta_size_;
};
inline coalesced_group coalesced_threads(Where where = Where::here()) {
  return coalesced_group(emulator::lanes_together("coalesced_threads", where));
}

/// The threads of a tile, or of coalesced threads, that give the same label. Groups are numbered in the order
/// of their first lanes.
template <typename Group, typename Label>
coalesced_group labeled_partition(const Group& group, Label label, Where where = Where::here()) {
  const unsigned mine = __match_any_sync(group.lanes(), label, where) & group.lanes();
  const unsigned first = mine & (0u - mine);
  const bool is_first = emulator::running_thread().lane() + 1 == __ffs(static_cast<int>(first));
  const unsigned firsts = __ballot_sync(group.lanes(), is_first ? 1 : 0, where) & group.lanes();
  return coalesced_group(mine, static_cast<unsigned>(__popc(firsts & (first - 1))),
                         static_cast<unsigned>(__popc(firsts)));
}
/// The same with two labels. Where all threads give one, there is one group.
template <typename Group>
coalesced_group binary_partition(const Group& group, bool predicate, Where where = Where::here()) {
  const unsigned yes = __ballot_sync(group.lanes(), predicate ? 1 : 0, where) & group.lanes();
  if (yes == 0 || yes == group.lanes()) return coalesced_group(group.lanes());
  return coalesced_group(predicate ? yes : group.lanes() & ~yes, predicate ? 1 : 0, 2);
}
template <typename Group>
coalesced_group labeled_partition(const Group& group, bool label, Where where = Where::here()) {
  return binary_partition(group, label, where);
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

/// Any group of a CTA's threads, as functions take it that are called with several.
class thread_group {
 public:
  thread_group(const thread_block&) {}                          // NOLINT(google-explicit-constructor)
  thread_group(const warp_part& part) : mask_(part.lanes()) {}  // NOLINT(google-explicit-constructor)
  void sync(Where where = Where::here()) const {
    mask_ == 0 ? thread_block::sync(where) : warp_part(mask_).sync(where);
  }
  unsigned thread_rank() const {
    return mask_ == 0 ? thread_block::thread_rank() : warp_part(mask_).thread_rank();
  }
  unsigned num_threads() const {
    return mask_ == 0 ? thread_block::num_threads() : warp_part(mask_).num_threads();
  }
  unsigned size() const { return num_threads(); }
  static bool is_valid() { return true; }

 private:
  unsigned mask_ = 0;  // 0: the whole CTA
};
/// Tiles of a size that is known only now: of a CTA, or of a group inside a warp.
inline thread_group tiled_partition(const thread_group& group, unsigned size) {
  const unsigned lane = static_cast<unsigned>(emulator::running_thread().lane());
  const unsigned first = lane - group.thread_rank() % size;
  return warp_part((size >= 32 ? 0xffffffffu : (1u << size) - 1) << first);
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
template <typename T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <typename T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <typename T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

/// One thread of the group calls the function; CUDA leaves open which. invoke_one_broadcast gives its result
/// to all.
template <typename Group, typename Function, typename... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) function(std::forward<Arguments>(arguments)...);
}
template <typename Group, typename Function, typename... Arguments>
auto invoke_one_broadcast(const Group& group, Function&& function, Arguments&&... arguments) {
  decltype(function(std::forward<Arguments>(arguments)...)) result{};
  if (group.thread_rank() == 0) result = function(std::forward<Arguments>(arguments)...);
  return group.shfl(result, 0);
}

/// Every thread of the tile gets the result; the order of the operations is open.
template <typename Tile, typename T, typename Op>
T reduce(const Tile& tile, T value, Op op, Where where = Where::here()) {
  T result = tile.shfl(value, 0, where);
  for (unsigned rank = 1; rank < tile.num_threads(); ++rank)
    result = op(result, tile.shfl(value, rank, where));
  return result;
}
template <unsigned kSize, typename T, typename Op>
T reduce(const warps_tile<kSize>& tile, T value, Op op, Where where = Where::here()) {
  return tile.combine(value, op, where);
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
