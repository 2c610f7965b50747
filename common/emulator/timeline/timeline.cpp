#include "emulator/timeline/timeline.h"

#include <algorithm>
#include <mutex>

#include "emulator/async/hopper.h"
#include "emulator/machine/attention.h"
#include "emulator/machine/machine.h"

namespace emulator {
namespace {

std::mutex log_mutex;
LaunchLog current_log;

std::uint64_t barrier_key(const Mbarrier& barrier) {
  return barrier.cta->linear << 32 | barrier.offset;
}

CtaLog& log_of(Cta& cta) {
  if (cta.timeline) return *cta.timeline;
  const std::lock_guard lock(log_mutex);
  auto& log = current_log.ctas[cta.linear];
  log = std::make_unique<CtaLog>();
  log->linear = cta.linear;
  log->threads = cta.thread_count;
  log->warps.resize(cta.warps.size());
  const gemm::ptx::Extent& extent = cta.gang->grid.shape.cluster;
  log->cluster.resize(static_cast<std::size_t>(extent.count()));
  for (const auto& other : cta.gang->ctas) {
    if (other->id.x / extent.x == cta.id.x / extent.x && other->id.y / extent.y == cta.id.y / extent.y &&
        other->id.z / extent.z == cta.id.z / extent.z) {
      log->cluster[static_cast<std::size_t>(other->rank_in_cluster)] = other->linear;
    }
  }
  cta.timeline = log.get();
  return *log;
}

WarpLog& my_log() {
  Thread& thread = running_thread();
  return log_of(*thread.cta).warps[static_cast<std::size_t>(thread.warp())];
}

Operation& alone(const Operation& operation) {
  return my_log().alone(running_thread().lane(), operation);
}

}  // namespace

Operation& WarpLog::together(int lane, const Operation& operation) {
  const std::size_t index = segment_of_[static_cast<std::size_t>(lane)]++;
  Operation& last = segments_[index].last;
  if (last.lanes == 0) {
    last = operation;
    last.bytes = 0;
  }
  last.lanes |= 1u << lane;
  last.bytes += operation.bytes;
  if (index + 1 == segments_.size()) segments_.emplace_back();
  return segments_[index].last;
}

Operation& WarpLog::alone(int lane, const Operation& operation) {
  std::vector<Operation>& operations =
      segments_[segment_of_[static_cast<std::size_t>(lane)]].alone[static_cast<std::size_t>(lane)];
  operations.push_back(operation);
  operations.back().lanes = 1u << lane;
  return operations.back();
}

std::vector<Operation> WarpLog::merged(const Segment& segment) {
  // The lane that did most says in which order; the others' operations are looked for there, and what is
  // theirs alone goes behind what they did before.
  const auto longest = std::max_element(segment.alone.begin(), segment.alone.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<Operation> all = *longest;
  for (auto lane = segment.alone.begin(); lane != segment.alone.end(); ++lane) {
    if (lane == longest) continue;
    std::size_t cursor = 0;
    for (const Operation& operation : *lane) {
      const auto same = std::find_if(
          all.begin() + static_cast<std::ptrdiff_t>(cursor), all.end(), [&](const Operation& other) {
            return other.kind == operation.kind && other.where == operation.where &&
                   (other.lanes & operation.lanes) == 0 && other.state.state == operation.state.state &&
                   other.state.k_tile == operation.state.k_tile;
          });
      if (same == all.end()) {
        all.insert(all.begin() + static_cast<std::ptrdiff_t>(cursor++), operation);
        continue;
      }
      cursor = static_cast<std::size_t>(same - all.begin()) + 1;
      same->lanes |= operation.lanes;
      same->bytes += operation.bytes;
      const bool each_counts = operation.kind == OperationKind::kMbarrierArrive;
      for (const std::uint64_t key : operation.keys) {
        if (each_counts || std::find(same->keys.begin(), same->keys.end(), key) == same->keys.end())
          same->keys.push_back(key);
      }
    }
  }
  return all;
}

std::vector<Operation> WarpLog::operations() const {
  std::vector<Operation> all;
  for (const Segment& segment : segments_) {
    const std::vector<Operation> alone = merged(segment);
    all.insert(all.end(), alone.begin(), alone.end());
    if (segment.last.lanes != 0) all.push_back(segment.last);
  }
  return all;
}

void begin_timeline() {
  const std::lock_guard lock(log_mutex);
  current_log = {};
  timeline_active = true;
  attention_flags.fetch_or(kTimelineAttention);
}

LaunchLog end_timeline() {
  const std::lock_guard lock(log_mutex);
  timeline_active = false;
  attention_flags.fetch_and(~kTimelineAttention);
  return std::move(current_log);
}

void log_launch(int ctas_per_sm, int room) {
  const std::lock_guard lock(log_mutex);
  current_log.ctas_per_sm = ctas_per_sm;
  current_log.room = room;
}

void log_state(gemm::ptx::TraceState state, int stage, int k_tile, char role, Where where) {
  Operation operation{.kind = OperationKind::kState, .where = where.packed()};
  operation.state.state = state;
  operation.state.stage = stage;
  operation.state.k_tile = k_tile;
  operation.state.role = role;
  alone(operation);
}

void log_together(OperationKind kind, std::uint32_t count, std::uint32_t number, std::uint32_t bytes,
                  Where where) {
  my_log().together(
      running_thread().lane(),
      {.kind = kind, .where = where.packed(), .bytes = bytes, .count = count, .number = number});
}

void log_alone(OperationKind kind, std::uint32_t count, std::uint32_t bytes, bool flag, Where where) {
  alone({.kind = kind, .where = where.packed(), .bytes = bytes, .count = count, .flag = flag});
}

void log_global(OperationKind kind, const void* address, std::uint32_t bytes, Where where) {
  constexpr std::uintptr_t kLine = 128;
  Operation& operation = alone({.kind = kind, .where = where.packed(), .bytes = bytes});
  if (bytes > 0) operation.keys.push_back(reinterpret_cast<std::uintptr_t>(address) / kLine);
}

void log_registers(OperationKind kind, const void* registers, std::uint32_t bytes, Where where) {
  Operation& operation =
      my_log().together(running_thread().lane(), {.kind = kind, .where = where.packed(), .bytes = bytes});
  if (operation.keys.empty()) operation.keys.push_back(reinterpret_cast<std::uintptr_t>(registers));
}

void log_barrier_init(const Mbarrier& barrier) {
  log_of(*barrier.cta).barriers[barrier.offset] = barrier.count;
}

void log_barrier_wait(const Mbarrier& barrier, std::uint64_t phase, Where where) {
  Operation& operation = alone({.kind = OperationKind::kMbarrierWait,
                                .where = where.packed(),
                                .count = static_cast<std::uint32_t>(phase)});
  operation.keys.push_back(barrier_key(barrier));
}

void log_barrier_arrive(const Mbarrier& barrier, std::uint32_t expected, bool arrives, Where where) {
  Operation& operation = alone(
      {.kind = OperationKind::kMbarrierArrive, .where = where.packed(), .bytes = expected, .flag = arrives});
  operation.keys.push_back(barrier_key(barrier));
}

void log_load(const std::vector<const Mbarrier*>& signalled, std::uint32_t bytes, Where where) {
  Operation& operation = alone({.kind = OperationKind::kTmaLoad, .where = where.packed(), .bytes = bytes});
  for (const Mbarrier* barrier : signalled) operation.keys.push_back(barrier_key(*barrier));
}

void log_named_barrier(std::uint32_t number, std::uint32_t threads, bool waits, Where where) {
  my_log().together(running_thread().lane(), {.kind = OperationKind::kNamedBarrier,
                                              .where = where.packed(),
                                              .count = threads,
                                              .number = number,
                                              .flag = waits});
}

void log_multiplication(std::uint32_t m, std::uint32_t n, bool pair, Where where) {
  alone({.kind = OperationKind::kMultiplication, .where = where.packed(), .number = m * n, .flag = pair});
}

void log_commit(const std::vector<Mbarrier*>& signalled, Where where) {
  Operation& operation = alone({.kind = OperationKind::kMultiplicationCommit, .where = where.packed()});
  for (const Mbarrier* barrier : signalled) operation.keys.push_back(barrier_key(*barrier));
}

void log_flag(OperationKind kind, const void* flag, Where where) {
  Operation& operation = alone({.kind = kind, .where = where.packed()});
  operation.keys.push_back(reinterpret_cast<std::uintptr_t>(flag));
}

}  // namespace emulator
