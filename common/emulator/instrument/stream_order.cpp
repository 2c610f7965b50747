#include "emulator/instrument/stream_order.h"

#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>
#include <utility>

#include "emulator/instrument/program_memory.h"
#include "emulator/machine/launch/running_grid.h"
#include "emulator/machine/machine.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/places.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "emulator/sync/dependent_launch.h"
#include "harness/backend/backend.h"

namespace emulator_cuda {

std::atomic<bool> may_be_running = false;

namespace {

using emulator::TouchedBytes;

constexpr std::size_t kMostWork = 64;      // that is kept, the latest
constexpr std::size_t kMostRanges = 8192;  // of the host

/// An access of host code while work was waiting in a queue, which may touch the same bytes.
struct HostUse {
  TouchedBytes bytes;
  bool is_write = false;
  std::uint64_t issued = 0;  // so much had been
};

struct Order {
  std::recursive_mutex mutex;
  std::uint64_t issued = 0, ended = 0;
  std::set<std::uint64_t> streams;  // that were given something
  StreamClock host;
  std::shared_ptr<StreamWork> running;
  std::deque<std::shared_ptr<StreamWork>> done;
  std::vector<HostUse> host_uses;
  std::string host_report;
  std::uintptr_t host_report_at = 0;
  std::set<std::uintptr_t> host_atomics;  // words of 8 bytes of which host code has used atomics
};
Order& order() {
  static Order& instance = *new Order;
  return instance;
}
using Lock = std::lock_guard<std::recursive_mutex>;

/// What the grid has left in the histories of global memory.
void collect(const emulator::Grid& grid) {
  Order& o = order();
  const Lock lock(o.mutex);
  if (!o.running) return;
  StreamWork& work = *o.running;
  if (const void* kernel = emulator::latest_kernel()) work.kernel = emulator::name_function(kernel);
  const bool overlaps = o.streams.size() > 1;
  emulator::collect_touched(
      grid, [overlaps](const emulator::Buffer& buffer) { return overlaps || buffer.is_of_both; },
      work.touched);
}

std::string name_stream(std::uint64_t stream) {
  return stream == 0 ? "the default stream" : fmt::format("stream {}", stream);
}

/// Where host code has issued it: the first caller that is no code of ours.
std::string place_of(const StreamWork& work) {
  for (const void* caller : work.callers) {
    std::string place = emulator::place_with_callers(
        emulator::lines_of_instruction(reinterpret_cast<std::uintptr_t>(caller) - 1));
    if (place.empty() || place.starts_with("common/") || place.starts_with("own_kernel/")) continue;
    return place;
  }
  return "(unknown place)";
}

std::string text_of(const StreamWork& work, const TouchedBytes& bytes, bool is_write) {
  const char* access = is_write ? "write" : "read";
  const std::string issued = fmt::format("issued at {} into {}", place_of(work), name_stream(work.stream));
  const char* what = work.kind == NodeKind::kMemset  ? "fill"
                     : work.kind == NodeKind::kGraph ? "graph"
                                                     : "copy";
  if (bytes.where == 0) return fmt::format("{} by a {}, {}", access, what, issued);
  return fmt::format("{} at {} by {}, {}", access, emulator::Where::from_packed(bytes.where).text(),
                     work.kernel.empty() ? what : work.kernel, issued);
}

[[noreturn]] void fail(const std::string& rule, const std::string& text) {
  throw harness::EmulatorReport(rule, rule + ": " + text);
}

/// Reports bytes that both works touch, where one writes them.
void compare(const StreamWork& one, const StreamWork& other) {
  const auto look = [&](const std::vector<TouchedBytes>& of_one, bool one_writes,
                        const std::vector<TouchedBytes>& of_other, bool other_writes) {
    const auto [a, b] = emulator::common_bytes(of_one, of_other, false);
    if (!a) return;
    emulator::Report report(
        "nothing orders two operations of different streams: a {} and a {} of the same bytes",
        one_writes ? "write" : "read", other_writes ? "write" : "read");
    report.line("bytes", emulator::name_common_bytes(*a, *b));
    report.line("one", text_of(one, *a, one_writes));
    report.line("other", text_of(other, *b, other_writes));
    const bool is_default = one.stream == 0 || other.stream == 0;
    report.line("missing",
                fmt::format("an event that is recorded in {} after the first operation (cudaEventRecord) and "
                            "for which {} waits before the second (cudaStreamWaitEvent), or host code that "
                            "waits in between (cudaStreamSynchronize){}",
                            name_stream(one.stream), name_stream(other.stream),
                            is_default ? ". A stream that was created with cudaStreamNonBlocking does not "
                                         "wait for the default stream, nor the default stream for it"
                                       : ""));
    report.rule("operations of different streams may run in any order, and at the same time",
                "CUDA C++ Programming Guide, \"Streams\"");
    fail("stream-race", report.str());
  };
  look(one.touched.writes, true, other.touched.writes, true);
  look(one.touched.writes, true, other.touched.reads, false);
  look(one.touched.reads, false, other.touched.writes, true);
}

std::string host_text(const StreamWork& work, const TouchedBytes& of_work, bool work_writes,
                      const TouchedBytes& of_host, bool host_writes) {
  const std::string host = emulator::Where::from_packed(of_host.where).text();
  emulator::Report report("host code {} bytes that {} may still {}", host_writes ? "writes" : "reads",
                          work.kind == NodeKind::kKernel ? "a kernel" : "an operation of a stream",
                          work_writes ? "write" : "read");
  report.line("bytes", emulator::name_common_bytes(of_host, of_work));
  report.line("host", fmt::format("{} at {}", host_writes ? "write" : "read", host));
  report.line("device", text_of(work, of_work, work_writes));
  report.line("missing",
              fmt::format("a wait between {} and {}: cudaStreamSynchronize, cudaEventSynchronize or "
                          "cudaDeviceSynchronize",
                          place_of(work), host));
  report.rule("a launch and an asynchronous copy return before the device has done the work",
              "CUDA C++ Programming Guide, \"Asynchronous Concurrent Execution\"");
  return "host-race: " + report.str();
}

/// The report where the work touches these bytes of the host's, or nothing.
std::string host_conflict(const StreamWork& work, const TouchedBytes& of_host, bool host_writes) {
  const auto look = [&](const std::vector<TouchedBytes>& ranges) {
    auto after = std::upper_bound(ranges.begin(), ranges.end(), of_host, emulator::begins_before);
    // The one before it may reach into the bytes.
    if (after != ranges.begin() && std::prev(after)->end > of_host.begin) return &*std::prev(after);
    if (after != ranges.end() && after->begin < of_host.end) return &*after;
    return static_cast<const TouchedBytes*>(nullptr);
  };
  if (const TouchedBytes* found = look(work.touched.writes))
    return host_text(work, *found, true, of_host, host_writes);
  const TouchedBytes* found = host_writes ? look(work.touched.reads) : nullptr;
  return found ? host_text(work, *found, false, of_host, true) : std::string();
}

/// The work that runs, until it has ended.
class Running {
 public:
  explicit Running(const std::shared_ptr<StreamWork>& work) {
    Order& o = order();
    const Lock lock(o.mutex);
    o.done.push_back(work);
    if (o.done.size() > kMostWork) o.done.pop_front();
    before_ = std::exchange(o.running, work);
  }
  ~Running() {
    const Lock lock(order().mutex);
    order().running = std::move(before_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::shared_ptr<StreamWork> before_;
};

/// Whether something that has run, or waits, is not ordered with it. To keep all reads takes time.
bool may_overlap(const StreamWork& work, const std::vector<const StreamWork*>& pending) {
  Order& o = order();
  const Lock lock(o.mutex);
  return std::any_of(o.done.begin(), o.done.end(),
                     [&](const auto& past) { return !work.clock.covers(past->stream, past->position); }) ||
         std::any_of(pending.begin(), pending.end(), [&](const StreamWork* other) {
           return !other->clock.covers(work.stream, work.position);
         });
}

void finish_work(const std::shared_ptr<StreamWork>& work) {
  Order& o = order();
  const Lock lock(o.mutex);
  work->touched.sort();
  for (const HostUse& use : o.host_uses) {
    if (use.issued < work->number || o.host_atomics.contains(use.bytes.begin / 8)) continue;
    if (const std::string text = host_conflict(*work, use.bytes, use.is_write); !text.empty())
      throw harness::EmulatorReport("host-race", text);
  }
  for (const auto& past : o.done) {
    if (past == work || work->clock.covers(past->stream, past->position)) continue;
    past->number < work->number ? compare(*past, *work) : compare(*work, *past);
  }
}

}  // namespace

void StreamClock::join(const StreamClock& other) {
  for (const auto& [stream, count] : other.counts_) {
    std::uint64_t& own = counts_[stream];
    own = std::max(own, count);
  }
}

std::uint64_t StreamClock::advance(std::uint64_t stream) {
  return ++counts_[stream];
}

bool StreamClock::covers(std::uint64_t stream, std::uint64_t position) const {
  const auto found = counts_.find(stream);
  return found != counts_.end() && found->second >= position;
}

std::shared_ptr<StreamWork> issue(std::uint64_t stream, NodeKind kind, StreamClock& clock) {
  constexpr int kFrames = 12;
  Order& o = order();
  const Lock lock(o.mutex);
  auto work = std::make_shared<StreamWork>();
  work->stream = stream;
  work->position = clock.advance(stream);
  work->number = ++o.issued;
  work->kind = kind;
  work->clock = clock;
  if (kind != NodeKind::kEmpty) {
    void* frames[kFrames];
    const int count = ::backtrace(frames, kFrames);
    work->callers.assign(frames, frames + count);
    o.streams.insert(stream);
    emulator::after_grid = collect;
    may_be_running = true;
  }
  return work;
}

void run_work(const std::shared_ptr<StreamWork>& work, const std::vector<const StreamWork*>& pending,
              const Operation& run) {
  if (work->kind == NodeKind::kEmpty) return run();
  throw_host_report();
  {
    // Without the lock: a function of the host may wait for a thread of the host.
    const Running running(work);
    emulator::keeps_all_reads = may_overlap(*work, pending);
    run();
  }
  finish_work(work);
}

void note_unwritten(const std::shared_ptr<StreamWork>& work) {
  const emulator::UnwrittenRead read = emulator::latest_unwritten_read();
  Order& o = order();
  {
    const Lock lock(o.mutex);
    const std::uintptr_t begin = read.address;
    work->touched.reads.push_back({begin, begin + read.bytes, read.where.packed()});
    if (const void* kernel = emulator::latest_kernel()) work->kernel = emulator::name_function(kernel);
  }
  finish_work(work);
}

void host_has_waited(const StreamClock& clock, const std::vector<const StreamWork*>& pending) {
  Order& o = order();
  const Lock lock(o.mutex);
  o.host.join(clock);
  std::erase_if(o.done, [&](const std::shared_ptr<StreamWork>& work) {
    const auto is_before = [&](const StreamClock& other) {
      return other.covers(work->stream, work->position);
    };
    return is_before(o.host) && std::all_of(pending.begin(), pending.end(),
                                            [&](const StreamWork* other) { return is_before(other->clock); });
  });
  if (pending.empty()) o.host_uses.clear();
  may_be_running = !pending.empty() || !o.done.empty();
}

const StreamClock& known_to_host() {
  return order().host;
}

void forget_work() {
  Order& o = order();
  const Lock lock(o.mutex);
  o.streams.clear();
  o.host = {};
  o.done.clear();
  o.host_uses.clear();
  o.host_report.clear();
  o.host_atomics.clear();
  emulator::keeps_all_reads = false;
  may_be_running = false;
}

void throw_host_report() {
  Order& o = order();
  const Lock lock(o.mutex);
  if (o.host_report.empty()) return;
  throw harness::EmulatorReport("host-race", std::exchange(o.host_report, {}));
}

void note_copied(const void* memory, std::size_t bytes, bool is_write) {
  Order& o = order();
  const Lock lock(o.mutex);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (o.running && bytes > 0) {
    emulator::Touched& touched = o.running->touched;
    emulator::add_touched(is_write ? touched.writes : touched.reads, {begin, begin + bytes});
  }
}

void note_host_use(std::uintptr_t address, unsigned bytes, emulator::Access access, emulator::Where where) {
  Order& o = order();
  const Lock lock(o.mutex);
  if (o.running || !o.host_report.empty()) return;  // a function of the host that a stream calls
  if (o.host_atomics.contains(address / 8)) return;
  const bool is_write = access != emulator::Access::kRead;
  const TouchedBytes touched{address, address + bytes, where.packed()};
  for (auto work = o.done.rbegin(); work != o.done.rend(); ++work) {
    if (o.host.covers((*work)->stream, (*work)->position)) continue;
    o.host_report = host_conflict(**work, touched, is_write);
    o.host_report_at = address;
    if (!o.host_report.empty()) return;
  }
  if (!may_go_on) return;  // nothing waits in a queue
  if (!o.host_uses.empty()) {
    HostUse& last = o.host_uses.back();
    if (last.bytes.end == address && last.bytes.where == where.packed() && last.is_write == is_write &&
        last.issued == o.issued) {
      last.bytes.end += bytes;
      return;
    }
  }
  if (o.host_uses.size() < kMostRanges) o.host_uses.push_back({touched, is_write, o.issued});
}

void note_host_atomic(std::uintptr_t address) {
  if (!may_be_running.load(std::memory_order_relaxed)) return;
  const emulator::Buffer* buffer = emulator::find_buffer(address);
  if (!buffer || !buffer->is_of_both) return;
  Order& o = order();
  const Lock lock(o.mutex);
  o.host_atomics.insert(address / 8);
  if (!o.host_report.empty() && o.host_report_at / 8 == address / 8) o.host_report.clear();
}

}  // namespace emulator_cuda
