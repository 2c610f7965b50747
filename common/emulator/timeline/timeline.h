// What each warp of a launch did, in its own order: the log from which the model (timeline_model.h) makes a
// timeline. The order between warps is not kept: on the emulator it says nothing about time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "emulator/machine/where.h"
#include "ptx/trace_state.h"

namespace emulator {

struct Cta;
struct Mbarrier;
struct Thread;

enum class OperationKind : std::uint8_t {
  kState,
  kMbarrierWait,
  kMbarrierArrive,
  kTmaLoad,
  kBulkStore,
  kBulkCommit,
  kBulkWait,
  kWgmma,
  kWgmmaCommit,
  kWgmmaWait,
  kCtaBarrier,
  kNamedBarrier,
  kClusterArrive,
  kClusterWait,
  kLoadGlobal,
  kStoreGlobal,
  kShared,  // ld.shared, st.shared, stmatrix
  kLdmatrix,
  kMma,
  kCpAsync,
  kCpAsyncCommit,
  kCpAsyncWait,
  kFlagSet,
  kFlagWait,
  kMultiplication,  // tcgen05.mma
  kMultiplicationCommit,
  kTensorLoad,  // tcgen05.ld, .st
  kTensorWait,
  kArithmetic,  // count: instructions
};

/// One instruction of a warp.
struct Operation {
  OperationKind kind = OperationKind::kState;
  std::uint64_t where = 0;
  std::uint32_t lanes = 0;   // that executed it
  std::uint32_t bytes = 0;   // of all lanes; an arrive's: expected
  std::uint32_t count = 0;   // kMbarrierWait: completed phases; waits for groups: pending; barriers: threads
  std::uint32_t number = 0;  // kWgmma: N; kMultiplication: M * N; kNamedBarrier: which
  // kBulkWait: read only; kNamedBarrier: waits; kMbarrierArrive: arrives; kMultiplication: of a pair
  bool flag = false;
  gemm::ptx::TraceRecord state;
  std::vector<std::uint64_t> keys;  // barriers (CTA << 32 | offset), 128-byte lines, flags, registers
};

/// The operations of a warp. On the emulator its lanes run one after the other; what they execute at one
/// place of the kernel becomes one operation.
class WarpLog {
 public:
  /// An instruction that all lanes execute, always in the same order.
  Operation& together(int lane, const Operation& operation);
  /// One that some lanes may skip.
  Operation& alone(int lane, const Operation& operation);
  std::vector<Operation> operations() const;

 private:
  struct Segment {
    std::array<std::vector<Operation>, 32> alone;  // by lane
    Operation last;                                // executed together; lanes 0: not yet
  };
  static std::vector<Operation> merged(const Segment& segment);

  std::vector<Segment> segments_ = std::vector<Segment>(1);
  std::array<std::size_t, 32> segment_of_{};
};

struct CtaLog {
  std::uint64_t linear = 0;
  int threads = 0;
  std::vector<std::uint64_t> cluster;  // the CTAs of the cluster, by rank
  std::vector<WarpLog> warps;
  std::map<std::uint32_t, std::uint32_t> barriers;  // offset -> count
};

struct LaunchLog {
  int ctas_per_sm = 1;   // that the launch promises
  int room = 1;          // CTAs for which an SM has threads and shared memory
  bool cut_off = false;  // in its middle: what waits for an event that never came waits to the end
  std::map<std::uint64_t, std::unique_ptr<CtaLog>> ctas;
};

inline std::atomic<bool> timeline_active{false};
inline bool timeline_on() {
  return timeline_active.load(std::memory_order_relaxed);
}

/// Starts a new log; the launches until end_timeline() go into it.
void begin_timeline();
LaunchLog end_timeline();

// What the instructions call while timeline_on(); the running thread executes them.
void log_state(gemm::ptx::TraceState state, int stage, int k_tile, char role, Where where);
/// An instruction with no more to say than its numbers.
void log_together(OperationKind kind, std::uint32_t count, std::uint32_t number, std::uint32_t bytes,
                  Where where);
void log_alone(OperationKind kind, std::uint32_t count, std::uint32_t bytes, bool flag, Where where);
void log_global(OperationKind kind, const void* address, std::uint32_t bytes, Where where);
void log_registers(OperationKind kind, const void* registers, std::uint32_t bytes, Where where);
void log_barrier_init(const Mbarrier& barrier);
void log_barrier_wait(const Mbarrier& barrier, std::uint64_t phase, Where where);
void log_barrier_arrive(const Mbarrier& barrier, std::uint32_t expected, bool arrives, Where where);
void log_load(const std::vector<const Mbarrier*>& signalled, std::uint32_t bytes, Where where);
void log_named_barrier(std::uint32_t number, std::uint32_t threads, bool waits, Where where);
/// m: the rows of each CTA.
void log_multiplication(std::uint32_t m, std::uint32_t n, bool pair, Where where);
void log_commit(const std::vector<Mbarrier*>& signalled, Where where);
void log_flag(OperationKind kind, const void* flag, Where where);
void log_launch(int ctas_per_sm, int room);

}  // namespace emulator
