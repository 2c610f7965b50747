// The copy engine (TMA): tensor copies between global and shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/async/async_memory.h"
#include "emulator/async/cp_async.h"
#include "emulator/async/tensor_map.h"
#include "emulator/explore/under_way.h"
#include "emulator/machine/machine.h"
#include "emulator/sync/mbarrier.h"

namespace emulator {

class HopperEngine;
class Report;
struct UnfencedRead;

/// What landed where: kept after the copy for checks of the layout and for reports.
struct LoadRecord {
  std::uint32_t serial = 0;
  gemm::ptx::TensorMapSpec spec;
  Coordinates coordinates{};
  std::uint32_t offset = 0;  // in shared memory
  std::uint32_t bytes = 0;
  Stamp issuer = 0;
  Where where;
  const Mbarrier* barrier = nullptr;
  std::uint64_t phase = 0;                          // of the barrier at the issue
  Activity activity;                                // of the issuer
  bool remote = false;                              // an st.async, or
  bool reduces = false;                             // a red.async
  std::uint32_t ctas = 0;                           // the mask of a multicast
  bool peer = false;                                // the mbarrier is that of the other CTA of the pair
  std::shared_ptr<struct CancelRequest> request{};  // what it brings is the response to one

  Brings brings() const { return remote ? Brings::kStore : peer ? Brings::kPeerLoad : Brings::kLoad; }

  std::uint32_t row_bytes() const { return box_row_bytes(spec); }
};
/// "box of 64 x 128 at (192, 0) of A, k-tile 3".
std::string describe_load(const Grid& grid, const LoadRecord& load);

/// What a reducing store does with an element of global memory: a null pointer overwrites.
struct Reduction {
  using Apply = void (*)(void* global, const void* brought);
  Apply apply = nullptr;
  unsigned bytes = 4;  // of an element
};

/// From registers to the shared memory of another CTA of the cluster: st.async, red.async.
struct RemoteStore {
  const char* what;
  std::uint32_t address;  // of the cluster's window, as is that of the mbarrier, which is in the same CTA
  const void* value;
  std::uint32_t bytes;  // 4, 8 or 16
  std::uint32_t barrier;
  Reduction reduction{};  // red.async
};

/// The bulk groups of one thread.
struct BulkStores {
  std::uint64_t committed = 0;  // groups
  std::uint64_t read = 0;       // groups waited for with wait_group.read or wait_group
  std::uint64_t written = 0;    // groups waited for with wait_group
  std::uint32_t read_agent = 0;
  std::uint32_t write_agent = 0;
  bool has_agents = false;
  std::uint32_t uncommitted = 0;
  // The latest wait: groups committed by then, those it left.
  std::uint32_t waits = 0;  // executed
  Where waited;
  std::uint64_t at_wait = 0;
  std::uint64_t left = 0;
  bool waited_read = false;  // wait_group.read
};

class CopyEngine {
 public:
  explicit CopyEngine(HopperEngine& engine) : engine_(engine) {}

  /// cp.async.bulk: a copy without a map, as a tensor of one dimension.
  void load_plain(void* shared, const void* global, std::uint32_t bytes, void* barrier, Where where,
                  std::uint32_t ctas = 0, bool multicast = false, const char* what = "cp_async_bulk");
  /// cp.async.bulk between two CTAs of a cluster: the destination and its mbarrier are addresses of the
  /// cluster's window.
  void copy_to_cluster(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t barrier,
                       Where where, const Reduction& reduction = {});
  /// cp.async.bulk, and cp.reduce.async.bulk, from shared to global memory.
  void store_plain(const char* what, void* global, const void* shared, std::uint32_t bytes,
                   const Reduction& reduction, Where where);
  void load(const char* what, void* shared, const TensorMapBits& map, const std::int32_t* coordinates,
            int rank, void* barrier, std::uint32_t ctas, bool multicast, Where where,
            std::uint32_t alignment = 128, const std::uint16_t* im2col_offsets = nullptr);
  /// With cta_group::2: `barrier` is an address of the cluster's window, in this CTA or in its peer.
  void load_of_pair(const char* what, void* shared, const TensorMapBits& map, const std::int32_t* coordinates,
                    int rank, std::uint32_t barrier, Where where);
  void store(const char* what, const TensorMapBits& map, const std::int32_t* coordinates, int rank,
             const void* shared, Where where, const Reduction& reduction = {}, std::uint32_t alignment = 128);
  void store_remote(const RemoteStore& store, Where where);
  /// The response to a clusterlaunchcontrol.try_cancel of the running thread, on its way to `target`.
  void start_response(const char* what, Thread& thread, Cta& target, Mbarrier& barrier,
                      const LoadRecord& record) {
    start_load(what, thread, target, barrier, record);
  }
  /// cp.async.bulk.prefetch: nothing happens, but what is named is checked.
  void prefetch_plain(const void* global, std::uint32_t bytes, Where where);
  void prefetch(const char* what, const TensorMapBits& map, const std::int32_t* coordinates, int rank,
                Where where);
  void commit(Where where);
  /// The running thread's cp.async copies arrive at the barrier, once, when all of them have landed.
  void arrive_with_copies(const char* what, Mbarrier& barrier, Where where);
  /// The running thread has waited for its cp.async groups up to `group`.
  void finish_handed(Thread& thread, std::uint64_t group);
  void wait(std::uint64_t pending_groups, bool read_only, Where where);

  std::size_t pending() const { return loads_.size() + stores_.size() + arrivals_.size(); }
  void complete_one(Random& random);
  /// What will arrive at an mbarrier, for the search for schedules; and lets one of them do so.
  void arrivals_under_way(std::vector<explore::UnderWay>& all) const;
  void complete(const explore::UnderWay& one);
  void thread_exits(Thread& thread);
  void cta_exits(Cta& cta);
  std::string describe() const;

  /// The latest load that signals the barrier, or nullptr when it is too long ago.
  const LoadRecord* latest_load(const Mbarrier& barrier) const;
  /// One that was issued in this phase of it.
  const LoadRecord* load_of_phase(const Mbarrier& barrier, std::uint64_t phase) const;
  /// The CTAs into which this thread's loads go, as far as they are remembered.
  std::vector<const Cta*> targets_of(Stamp issuer) const;
  /// Calls `visit` with each load that is remembered, in the order of issue.
  template <typename Visit>
  void visit_loads(Visit visit) const {
    for (const LoadRecord& load : log_) {
      if (load.bytes > 0) visit(load);
    }
  }
  /// The k-tile of its latest load.
  std::optional<int> latest_k_tile_of(Stamp issuer) const;
  std::uint32_t next_serial() const { return next_serial_; }
  /// The load that wrote the line last, or nullptr when it is too long ago.
  const LoadRecord* record(const Cta& cta, std::uint32_t line) const;
  /// The running thread writes what the store with this stamp may still be writing: adds which two stores
  /// these are.
  void explain_stores(Report& report, const Thread& thread, Stamp writes, std::uintptr_t address) const;
  /// The owner's bulk group may still be reading: adds which store it is and what the owner's latest wait
  /// left. Returns the wait that is missing: "cp.async.bulk.wait_group.read<0> of thread ...".
  std::string explain_unread(Report& report, const Thread& owner, std::uint64_t group) const;
  [[noreturn]] void fail_touched(std::uint32_t operation, const std::string& bytes, Access access,
                                 Where where);

 private:
  struct Load {
    std::uint32_t id;  // Cell::pending
    Cta* target;
    Mbarrier* barrier;
    LoadRecord what;
    std::vector<unsigned char> snapshot{};  // of the source, where that is shared memory or registers
    Reduction reduction{};                  // of a red.async
  };
  struct CopiesArrive {
    std::uint32_t id;  // Cell::pending
    const Thread* thread;
    Mbarrier* barrier;
    std::vector<CpAsyncEngine::Handed> copies;
    Where where;
  };
  struct Landed {
    std::uint64_t group;
    Stamp stamp;
  };
  struct Store {
    Thread* thread;
    Cta* cta;
    std::uint64_t group;
    gemm::ptx::TensorMapSpec spec;
    Coordinates coordinates;
    std::uint32_t offset;
    std::uint32_t bytes;
    bool read = false;
    std::vector<unsigned char> data;
    Where where;
    Reduction reduction{};
  };
  /// What fail_async_race needs of a store that may be over.
  struct StoreRecord {
    Stamp writes = 0;
    const Thread* thread = nullptr;
    gemm::ptx::TensorMapSpec spec;
    Coordinates coordinates{};
    Where where;
    std::uint32_t offset = 0;   // in shared memory
    std::uint32_t k_tiles = 0;  // that the thread had waited for
  };

  /// What a load says of itself before it is known where it goes.
  LoadRecord record_of(const char* what, void* shared, const TensorMapBits& map,
                       const std::int32_t* coordinates, int rank, Where where, std::uint32_t alignment,
                       const std::uint16_t* im2col_offsets = nullptr);
  /// `snapshot`: what it loads, where that is not global memory.
  void start_load(const char* what, Thread& thread, Cta& target, Mbarrier& barrier, LoadRecord record,
                  std::vector<unsigned char> snapshot = {}, const Reduction& reduction = {});
  /// Size and address of a copy without a map, as a tensor of one dimension.
  gemm::ptx::TensorMapSpec plain_spec(const char* what, const void* global, std::uint32_t bytes, Where where);
  /// Reports when the load may not overwrite the cell. `unfenced`: the first read that no fence is behind. It
  /// is reported when the whole box has been checked, because a read that may not be over says more.
  void check_destination(const char* what, const Thread& thread, const Cta& target, const LoadRecord& load,
                         const Line& line, unsigned index, std::optional<UnfencedRead>& unfenced);
  void land(const Load& load);
  void start_remote(const RemoteStore& store, Thread& thread, Cta& target, Mbarrier& barrier,
                    LoadRecord record);
  void land_remote(const Load& load);
  void land_reduction(const Load& load);
  std::uint32_t other_reduction(const Load& load) const;
  /// The load is under way from now on.
  void register_load(const char* what, const Thread& thread, Cta& target, Mbarrier& barrier,
                     const LoadRecord& record);
  const Load* find_load(std::uint32_t id) const;
  void land_arrival(std::size_t index);
  void check_source_cell(const char* what, const Thread& thread, const Store& store, const Line& line,
                         unsigned index, bool clipped);
  /// Which of the thread's stores no wait of its own covers, and who waits instead.
  void explain_unwaited_stores(Report& report, const Thread& thread) const;
  /// Advances a store by one stage, reading or writing; true when it is done.
  bool step(Store& store);
  BulkStores& stores_of(Thread& thread);

  HopperEngine& engine_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::vector<CopiesArrive> arrivals_;                             // in the order of issue
  std::unordered_map<const Thread*, std::vector<Landed>> landed_;  // the latest of each mbarrier
  std::deque<StoreRecord> store_log_;                              // the latest stores
  const Store* storing_ = nullptr;                                 // being issued
  std::deque<LoadRecord> log_;                                     // the latest loads, by serial
  std::uint32_t next_serial_ = 1;
};

// prefetch.global and prefetchu, by the running thread: hints, of which only the address is checked.
void prefetch_global(const char* what, const void* global, Where where);
void prefetch_uniform(const char* what, const void* pointer, Where where);

}  // namespace emulator
