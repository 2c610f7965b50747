#include "emulator/machine/ranks.h"

#include <fmt/format.h>

#if __has_include(<execinfo.h>)  // not in a page
#include <execinfo.h>
#endif

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "emulator/explore/run.h"
#include "emulator/machine/launch/rank_grid.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/device_memory.h"
#include "emulator/memory/faults.h"
#include "emulator/report/places.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "harness/backend/backend.h"
#include "ptx/atomic.cuh"

namespace emulator {
namespace {

int told_devices = 0;
thread_local int device_of_thread = 0;
std::mutex peers_mutex;
std::vector<std::pair<int, int>> enabled_peers;  // who may access whose memory

int devices_of_environment() {
  static const int devices = [] {
    const char* const value = std::getenv("GEMM_STEPS_DEVICES");  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? 1 : std::clamp(std::atoi(value), 1, 64);
  }();
  return devices;
}

}  // namespace

int device_count() {
  return told_devices > 0 ? told_devices : devices_of_environment();
}
void set_device_count(int count) {
  told_devices = count;
  device_of_thread = 0;
  const std::lock_guard lock(peers_mutex);
  enabled_peers.clear();
}
int current_device() {
  return device_of_thread;
}
bool set_current_device(int device) {
  if (device < 0 || device >= device_count()) return false;
  device_of_thread = device;
  return true;
}

bool has_peer_access(int device, int owner) {
  const std::lock_guard lock(peers_mutex);
  return std::find(enabled_peers.begin(), enabled_peers.end(), std::pair(device, owner)) !=
         enabled_peers.end();
}
bool set_peer_access(int device, int owner, bool enabled) {
  if (has_peer_access(device, owner) == enabled) return false;
  const std::lock_guard lock(peers_mutex);
  if (enabled) {
    enabled_peers.emplace_back(device, owner);
  } else {
    std::erase(enabled_peers, std::pair(device, owner));
  }
  return true;
}

namespace ranks {

struct EventState {
  std::uint64_t asked = 0, done = 0;  // how often it was to be recorded, and which of them has happened
  std::uint64_t epoch = 0;            // of `clock`
  VectorClock clock;                  // what comes before the latest
  std::chrono::steady_clock::time_point time;
};

namespace {

struct RankStream;

/// Where host code has submitted something.
using Callers = std::vector<void*>;

struct Item {
  Operation run;
  Work work = Work::kOther;
  Options options;
  std::vector<std::pair<RankStream*, std::uint64_t>> after;  // so many items of other streams
  Event waits;                                               // for a recording
  Event records;
  std::uint64_t number = 0;  // of the recording
  VectorClock known;         // to the host
  Callers callers;
};

/// A stream and its OS thread.
struct RankStream {
  int device = 0;
  std::uint64_t number = 0;  // 0: a default stream
  bool waits_for_default = true;
  bool has_thread = false;
  std::deque<Item> queue;
  std::uint64_t submitted = 0, completed = 0, known = 0;  // known: to the host
  VectorClock clock;                                      // of what it has done

  std::condition_variable wake;
  Worker* worker = nullptr;  // its OS thread's
  std::uint64_t epoch = 0;   // of what the worker's arena holds
  // While it runs something.
  const Item* running = nullptr;
  Gang* gang = nullptr;
  const Grid* grid = nullptr;
  std::uint64_t changes = 0;  // of the gang, at its latest turn
  std::uint64_t yields = 0;
  std::uint64_t version = 0;  // of everything, when it last found a change
  std::uint64_t polls = 0;    // since then

  bool can_run() const;
};

/// A grid, or a copy that looks like one, of the present epoch.
struct Job {
  std::uint32_t first_key = 0;
  std::uint64_t ctas = 0;
  gemm::ptx::LaunchShape shape;
  int rank = 0;
  std::uint64_t stream = 0;
  std::string engine;  // "a copy of 64 bytes"; "": a grid
  Callers callers;
};

/// Host code that waits.
struct Waiting {
  std::function<bool()> done;
  bool released = false;
  std::exception_ptr failure;
};

/// A gang that has polled so often, while no rank has changed anything, waits in vain if all others do.
constexpr std::uint64_t kVainPolls = 100'000;
/// So many polls, and it is time for what comes late.
constexpr std::uint64_t kPatience = 512;
constexpr std::uint32_t kLongestTurn = 64;  // switches between threads
constexpr std::uint64_t kMostKeys = kAgentKey - 2;

struct Ranks {
  std::mutex mutex;
  std::condition_variable host_wake;
  std::vector<RankStream*> streams;  // never deleted: their OS threads stay
  std::vector<RankStream*> destroyed;
  std::vector<RankStream*> defaults;  // by device
  std::uint64_t made = 0;
  RankStream* holder = nullptr;  // the only one that runs
  std::vector<Waiting*> hosts;
  bool failed = false;  // the others end as well
  std::exception_ptr failure;
  Random random;
  std::uint64_t seed = 0;  // of `random`; 0: none yet
  Completion completion{};
  std::uint64_t version = 1;  // counts what may let a thread go on that polls
  std::uint64_t turns = 0;
  // An epoch begins when nothing has been done of which the host does not know.
  std::uint64_t epoch = 0;
  bool is_open = false;
  std::uint64_t launch = 0;
  std::uint64_t keys = 0;  // given away
  VectorClock host;
  std::vector<Job> jobs;
};
Ranks& ranks() {
  static Ranks& instance = *new Ranks;  // OS threads wait there until the program ends
  return instance;
}
using Lock = std::unique_lock<std::mutex>;

thread_local RankStream* own_stream = nullptr;

/// Thrown through an operation whose run is over because of another rank.
struct Stopped {};

bool RankStream::can_run() const {
  if (queue.empty()) return false;
  const Item& item = queue.front();
  if (item.waits && item.waits->done < item.number) return false;
  return std::all_of(item.after.begin(), item.after.end(),
                     [](const auto& other) { return other.first->completed >= other.second; });
}

RankStream* default_stream(int device) {
  Ranks& r = ranks();
  while (r.defaults.size() <= static_cast<std::size_t>(device)) {
    auto* stream = new RankStream;
    stream->device = static_cast<int>(r.defaults.size());
    r.defaults.push_back(stream);
    r.streams.push_back(stream);
  }
  return r.defaults[static_cast<std::size_t>(device)];
}

RankStream* stream_of(Stream stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return default_stream(current_device());
  auto* const found = reinterpret_cast<RankStream*>(stream);
  const std::vector<RankStream*>& all = ranks().streams;
  if (std::find(all.begin(), all.end(), found) == all.end())
    throw harness::Error("a stream is used that cudaStreamCreate did not make, or that was destroyed");
  return found;
}

std::string name_of(const RankStream& stream) {
  return stream.number == 0 ? fmt::format("the default stream of rank {}", stream.device)
                            : fmt::format("stream {} of rank {}", stream.number, stream.device);
}

// ---- Who goes on.

bool is_copy(const RankStream& stream) {
  return (stream.running ? stream.running : &stream.queue.front())->work == Work::kCopy;
}
/// It has polled for long, and nothing has changed.
bool is_stalled(const RankStream& stream) {
  return stream.running && !is_copy(stream) && stream.version == ranks().version && stream.polls >= kPatience;
}

/// Decides whose turn it is. The lock is held.
void choose() {
  Ranks& r = ranks();
  ++r.turns;
  r.holder = nullptr;
  std::vector<RankStream*> ready;
  for (RankStream* stream : r.streams) {
    if (stream->running || (!r.failed && stream->can_run())) ready.push_back(stream);
  }
  if (ready.empty()) return;
  if (r.failed) {  // each ends, one after the other
    r.holder = ready.front();
    r.holder->wake.notify_one();
    return;
  }
  const Completion completion =
      (ready.front()->running ? *ready.front()->running : ready.front()->queue.front()).options.completion;
  const auto keep = [&](const auto& wanted) {
    if (std::any_of(ready.begin(), ready.end(), wanted))
      std::erase_if(ready, [&](const RankStream* stream) { return !wanted(stream); });
  };
  if (completion == Completion::kEarliest) keep([](const RankStream* stream) { return is_copy(*stream); });
  if (completion == Completion::kLatest)
    keep([](const RankStream* stream) { return !is_copy(*stream) && !is_stalled(*stream); });
  std::size_t chosen = r.random.below(static_cast<std::uint32_t>(ready.size()));
  // Some streams are ahead of others for a while.
  const auto priority = [&](const RankStream& stream) {
    return Random((r.turns >> 6 << 20) ^ static_cast<std::uint64_t>(stream.device) << 10 ^ stream.number)
        .next();
  };
  if (r.random.below(2) == 0) {
    const std::size_t other = r.random.below(static_cast<std::uint32_t>(ready.size()));
    if (priority(*ready[other]) > priority(*ready[chosen])) chosen = other;
  }
  r.holder = ready[chosen];
  r.holder->wake.notify_one();
}

/// Lets host code go on that has waited for what has happened. The lock is held.
void release_hosts() {
  Ranks& r = ranks();
  const bool over = r.failed && std::none_of(r.streams.begin(), r.streams.end(),
                                             [](const RankStream* stream) { return stream->running; });
  if (r.failed && !over) return;
  bool any = false;
  for (Waiting* host : r.hosts) {
    if (host->released || !(over || host->done())) continue;
    host->released = any = true;
    if (over) host->failure = r.failure;
  }
  std::erase_if(r.hosts, [](const Waiting* host) { return host->released; });
  if (over) {
    for (RankStream* stream : r.streams) {
      stream->queue.clear();
      stream->completed = stream->known = stream->submitted;
    }
    r.failed = false;
    r.failure = nullptr;
    r.is_open = false;
  }
  if (any) r.host_wake.notify_all();
}

bool may_run() {
  return !ranks().hosts.empty() || ranks().failed;
}

void wait_for_host(Lock& lock, const std::function<bool()>& done) {
  Ranks& r = ranks();
  if (done()) return;
  Waiting waiting;
  waiting.done = done;
  r.hosts.push_back(&waiting);
  if (r.holder && (r.holder->running || r.holder->can_run())) {
    r.holder->wake.notify_one();
  } else {
    choose();
  }
  if (!r.holder && r.hosts.size() == 1) {
    r.hosts.clear();
    throw harness::Error("streams wait for each other: none of them can go on");
  }
  r.host_wake.wait(lock, [&] { return waiting.released; });
  if (waiting.failure) std::rethrow_exception(waiting.failure);
}

/// The host knows what the stream has done. When it knows all, histories of memory need not be kept.
void note_known(RankStream& stream) {
  Ranks& r = ranks();
  r.host.join(stream.clock);
  stream.known = stream.completed;
  if (std::all_of(r.streams.begin(), r.streams.end(),
                  [](const RankStream* one) { return one->known == one->submitted; }))
    r.is_open = false;
}

void open_epoch() {
  Ranks& r = ranks();
  if (std::exchange(r.is_open, true)) return;
  ++r.epoch;
  r.launch = next_launch();
  r.keys = 0;
  r.jobs.clear();
  r.host.clear();
  for (RankStream* stream : r.streams) stream->clock.clear();
  prepare_buffers(true);
}

// ---- The OS thread of a stream.

void run_front(RankStream& stream, Lock& lock) {
  Ranks& r = ranks();
  const Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  open_epoch();
  if (std::exchange(stream.epoch, r.epoch) != r.epoch) stream.worker->launch_arena.reset();
  stream.clock.join(item.known);
  for (const auto& [other, count] : item.after) stream.clock.join(other->clock);
  if (item.waits && item.waits->epoch == r.epoch) stream.clock.join(item.waits->clock);
  stream.running = &item;
  stream.polls = 0;
  stream.version = 0;
  std::exception_ptr error;
  if (item.run) {
    lock.unlock();
    try {
      item.run();
    } catch (const Stopped&) {
      error = nullptr;
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
  }
  stream.running = nullptr;
  stream.gang = nullptr;
  if (error && !r.failed) {
    r.failed = true;
    r.failure = error;
  }
  if (r.failed) return;
  ++stream.completed;
  ++r.version;
  if (item.records && item.records->done < item.number) {
    item.records->done = item.number;
    item.records->epoch = r.epoch;
    item.records->clock = stream.clock;
    item.records->time = std::chrono::steady_clock::now();
  }
}

void serve(RankStream& stream) {
  thread_local Worker worker;
  own_stream = &stream;
  stream.worker = &worker;
  device_of_thread = stream.device;
  use_signal_stack();
  Ranks& r = ranks();
  Lock lock(r.mutex);
  while (true) {
    stream.wake.wait(lock, [&] { return r.holder == &stream && may_run(); });
    if (!r.failed && stream.can_run()) run_front(stream, lock);
    release_hosts();
    choose();
  }
}

void enqueue(RankStream& stream, Item item) {
  Ranks& r = ranks();
  item.options = options();
  // Another schedule begins.
  if (r.seed != item.options.seed || r.completion != item.options.completion) {
    r.seed = item.options.seed;
    r.completion = item.options.completion;
    r.random = Random(r.seed ^ 0x72616e6b73u);
  }
  if (r.is_open) item.known = r.host;
  ++stream.submitted;
  stream.queue.push_back(std::move(item));
  if (!std::exchange(stream.has_thread, true)) std::thread([&stream] { serve(stream); }).detach();
}

/// What the default stream of a device has to do comes after what its other streams had, and theirs after it.
void order_by_default(const RankStream& stream, Item& item) {
  Ranks& r = ranks();
  if (stream.number != 0) {
    RankStream* const first = default_stream(stream.device);
    if (stream.waits_for_default && first->submitted > 0) item.after.emplace_back(first, first->submitted);
    return;
  }
  for (RankStream* other : r.streams) {
    if (other != &stream && other->device == stream.device && other->waits_for_default &&
        other->submitted > 0)
      item.after.emplace_back(other, other->submitted);
  }
}

Callers callers_here() {
#if __has_include(<execinfo.h>)
  constexpr int kFrames = 16;
  void* frames[kFrames];
  const int count = ::backtrace(frames, kFrames);
  return Callers(frames, frames + count);
#else
  return {};
#endif
}

std::string place_of(const Callers& callers) {
  static std::map<const void*, std::string> known;  // to ask costs a process
  for (const void* caller : callers) {
    const auto [found, is_new] = known.try_emplace(caller);
    if (is_new)
      found->second = place_with_callers(lines_of_instruction(reinterpret_cast<std::uintptr_t>(caller) - 1));
    const std::string& place = found->second;
    if (place.empty() || place.starts_with("common/") || place.starts_with("own_kernel/")) continue;
    return place;
  }
  return "(unknown place)";
}

const Job* job_of(std::uint32_t key) {
  const std::uint64_t linear = (key & (kAgentKey - 1)) - 1;
  for (const Job& job : ranks().jobs) {
    if (linear - job.first_key < job.ctas) return &job;
  }
  return nullptr;
}

/// The deadlock of all ranks, or nothing. The lock is held.
std::unique_ptr<Failure> deadlock() {
  Ranks& r = ranks();
  for (const RankStream* stream : r.streams) {
    if (stream->running ? is_copy(*stream) || stream->version != r.version || stream->polls < kVainPolls
                        : stream->can_run())
      return nullptr;
  }
  Report report(
      "the ranks wait for ever: nothing in memory changes any more, and every thread that can run polls "
      "for a value that no rank is going to write");
  for (const RankStream* stream : r.streams) {
    if (stream->running && stream->gang)
      report.line("rank", "{} ({})", stream->device, name_of(*stream)).block(describe_polls(*stream->gang));
    if (!stream->running && !stream->queue.empty())
      report.line("waits", "{} has {} more operation{}, which come{} after {}", name_of(*stream),
                  stream->queue.size(), stream->queue.size() == 1 ? "" : "s",
                  stream->queue.size() == 1 ? "s" : "",
                  stream->queue.front().waits ? "an event" : "another stream's");
  }
  report.rule(
      "every wait needs a thread or an operation that can still end it: a flag's owner must raise the flag "
      "of "
      "this rank, with this launch's number",
      "PTX ISA, \"Memory Consistency Model\"");
  return std::make_unique<Failure>(Failure{"deadlock", report.str()});
}

}  // namespace

// ---- For the machine.

bool is_stream_thread() {
  return own_stream != nullptr;
}

bool take_turn(Gang& gang, std::unique_ptr<Failure>& failure) {
  RankStream& stream = *own_stream;
  if (gang.until_turn > 0 && !gang.grid.is_engine) {
    --gang.until_turn;
    return true;
  }
  gang.until_turn = gang.random.below(kLongestTurn);
  Ranks& r = ranks();
  Lock lock(r.mutex);
  const std::uint64_t changes = gang.progress + gang.global_stores + gang.completions;
  if (stream.gang != &gang || changes != stream.changes) {
    ++r.version;
    stream.gang = &gang;
    stream.changes = changes;
    stream.yields = gang.yields;
  }
  if (stream.version != r.version) {
    stream.version = r.version;
    stream.polls = 0;
  }
  stream.polls += gang.yields - stream.yields;
  stream.yields = gang.yields;
  if (stream.polls >= kVainPolls) failure = deadlock();
  if (failure) return false;
  release_hosts();
  choose();
  stream.wake.wait(lock, [&] { return r.holder == &stream && may_run(); });
  return !r.failed;
}

std::string name_cta(std::uint32_t key) {
  const Job* const job = job_of(key);
  if (!job) return "(of an earlier launch)";
  const std::uint64_t linear = (key & (kAgentKey - 1)) - 1 - job->first_key;
  const gemm::ptx::Extent& grid = job->shape.grid;
  return fmt::format("({},{},{}) of rank {}", linear % grid.x, linear / grid.x % grid.y,
                     linear / grid.x / grid.y, job->rank);
}

std::string name_thread(Stamp stamp) {
  const Job* const job = job_of(stamp_cta(stamp));
  if (job && !job->engine.empty()) {
    return fmt::format("{}, issued at {} into {} of rank {}", job->engine, place_of(job->callers),
                       job->stream == 0 ? "the default stream" : fmt::format("stream {}", job->stream),
                       job->rank);
  }
  const std::uint32_t index = stamp_thread(stamp);
  const gemm::ptx::Extent block = job ? job->shape.block : gemm::ptx::Extent{};
  return fmt::format("thread ({},{},{}) (warp {}, lane {}) of CTA {}", index % block.x,
                     index / block.x % block.y, index / block.x / block.y, index / 32, index % 32,
                     name_cta(stamp_cta(stamp)));
}

int rank_of(std::uint32_t key) {
  const Job* const job = job_of(key);
  return job ? job->rank : -1;
}

int rank_of_other(const Grid& grid, Stamp stamp) {
  if (grid.rank < 0) return -1;
  const int rank = rank_of(stamp_cta(stamp));
  return rank == grid.rank ? -1 : rank;
}

bool is_engine(Stamp stamp) {
  const Job* const job = job_of(stamp_cta(stamp));
  return job && !job->engine.empty();
}

namespace {

/// Runs a grid, or what an engine does as if it were a grid of one thread.
void run_here(const gemm::ptx::LaunchShape& shape, const std::function<void()>& body, const void* kernel,
              const std::string& engine) {
  if (explore::searching())
    throw harness::Error("the schedules of several devices cannot be enumerated: run with one device");
  RankStream& stream = *own_stream;
  Ranks& r = ranks();
  Grid grid;
  {
    const Lock lock(r.mutex);
    grid.shape = shape;
    grid.body = &body;
    grid.options = stream.running->options;
    grid.launch = r.launch;
    grid.rank = stream.device;
    grid.first_key = static_cast<std::uint32_t>(r.keys);
    grid.is_engine = !engine.empty();
    r.keys += static_cast<std::uint64_t>(shape.grid.count());
    if (r.keys > kMostKeys)
      throw harness::Error(
          "a run of several devices has more than two million CTAs of which the host does not know that they "
          "have ended: let it wait for all streams (cudaDeviceSynchronize) now and then");
    grid.before = stream.clock;
    grid.before.unshare();  // clocks of streams change under the lock only
    r.jobs.push_back({grid.first_key, static_cast<std::uint64_t>(shape.grid.count()), shape, stream.device,
                      stream.number, engine, engine.empty() ? Callers{} : stream.running->callers});
  }
  run_rank_grid(*stream.worker, grid, kernel);
  grid.after.unshare();
  const Lock lock(r.mutex);
  if (r.failed) throw Stopped{};
  stream.clock.join(std::exchange(grid.after, {}));
  for (std::uint64_t linear = 0; linear < static_cast<std::uint64_t>(shape.grid.count()); ++linear) {
    const std::uint32_t key = cta_key(grid.first_key + linear);
    stream.clock.raise_base(key, std::numeric_limits<std::uint32_t>::max());
    stream.clock.raise_base(kAgentKey | key, std::numeric_limits<std::uint32_t>::max());
  }
}

/// An access of the engine, in the pieces that the history knows.
void check_piece(std::uintptr_t address, std::size_t bytes, Access access) {
  static const Where engine = Where::here("(a copy engine)", 1);
  const std::uintptr_t end = address + bytes;
  while (address < end) {
    unsigned piece = 16;
    while (address % piece != 0 || address + piece > end) piece /= 2;
    const Buffer* const buffer = find_buffer(address);
    // What nobody has written may be copied along with the rest.
    if (access != Access::kRead || !buffer || buffer->is_written(address, piece))
      check_global(reinterpret_cast<const void*>(address), piece, access, engine);
    address += piece;
  }
}

/// Calls move(offset, bytes) for pieces of the range, in an order that the seed decides.
template <typename Move>
void in_pieces(std::size_t bytes, const Move& move) {
  constexpr std::size_t kMostPieces = 16;
  constexpr std::size_t kUnit = 256;
  const std::size_t piece = std::max((bytes / kMostPieces + kUnit - 1) / kUnit * kUnit, kUnit);
  std::vector<std::size_t> order((bytes + piece - 1) / piece);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Gang& gang = *running_thread().cta->gang;
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[gang.random.below(static_cast<std::uint32_t>(i))]);
  for (const std::size_t index : order) {
    gang.yield();
    move(index * piece, std::min(piece, bytes - index * piece));
    ++gang.progress;
  }
}

std::string text_of_devices(const void* to, const void* from) {
  const auto side = [](const void* memory) {
    const Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(memory));
    return !buffer || buffer->owner < 0 ? std::string("the host") : fmt::format("rank {}", buffer->owner);
  };
  return fmt::format("from {} to {}", side(from), side(to));
}

}  // namespace

void run_grid(const gemm::ptx::LaunchShape& shape, const std::function<void()>& body, const void* kernel) {
  run_here(shape, body, kernel, {});
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto target = reinterpret_cast<std::uintptr_t>(to);
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  const bool reads = find_buffer(source) != nullptr;
  const bool writes = find_buffer(target) != nullptr;
  if (!reads && !writes) {
    std::memcpy(to, from, bytes);
    return;
  }
  const auto body = [&] {
    in_pieces(bytes, [&](std::size_t at, std::size_t count) {
      if (reads) check_piece(source + at, count, Access::kRead);
      if (writes) check_piece(target + at, count, Access::kWrite);
      std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, count);
    });
  };
  run_here({}, body, nullptr, fmt::format("a copy of {} bytes {}", bytes, text_of_devices(to, from)));
}

void fill(void* memory, std::uint8_t value, std::size_t bytes) {
  if (bytes == 0) return;
  const auto target = reinterpret_cast<std::uintptr_t>(memory);
  const auto body = [&] {
    in_pieces(bytes, [&](std::size_t at, std::size_t count) {
      check_piece(target + at, count, Access::kWrite);
      std::memset(static_cast<char*>(memory) + at, value, count);
    });
  };
  run_here({}, body, nullptr, fmt::format("a fill of {} bytes", bytes));
}

void write_flag(std::uint32_t* flag, std::uint32_t value) {
  static const Where engine = Where::here("(a stream)", 1);
  run_here(
      {}, [&] { gemm::ptx::st_release_sys(flag, value, engine); }, nullptr, "a write of a flag");
}

void copy_now(void* to, const void* from, std::size_t bytes) {
  submit(nullptr, Work::kCopy, [=] { copy(to, from, bytes); });
  finish(Stream{});
}
void fill_now(void* memory, std::uint8_t value, std::size_t bytes) {
  submit(nullptr, Work::kCopy, [=] { fill(memory, value, bytes); });
  finish(Stream{});
}

// ---- Streams.

Stream make_stream(bool waits_for_default) {
  Ranks& r = ranks();
  const Lock lock(r.mutex);
  RankStream* stream = nullptr;
  const int device = current_device();
  const auto reusable = std::find_if(r.destroyed.begin(), r.destroyed.end(), [&](const RankStream* one) {
    return one->device == device && one->completed == one->submitted;
  });
  if (reusable != r.destroyed.end()) {
    stream = *reusable;
    r.destroyed.erase(reusable);
  } else {
    stream = new RankStream;
    stream->device = device;
    r.streams.push_back(stream);
  }
  stream->waits_for_default = waits_for_default;
  stream->number = ++r.made;
  return reinterpret_cast<Stream>(stream);
}

void destroy_stream(Stream stream) {
  Ranks& r = ranks();
  const Lock lock(r.mutex);
  r.destroyed.push_back(stream_of(stream));
}

int device_of(Stream stream) {
  const Lock lock(ranks().mutex);
  return stream_of(stream)->device;
}

void submit(Stream stream, Work work, Operation operation) {
  const Lock lock(ranks().mutex);
  RankStream& queue = *stream_of(stream);
  if (work == Work::kKernel && queue.device != current_device())
    throw harness::Error(
        fmt::format("a kernel is launched into {} while device {} is current (cudaSetDevice)", name_of(queue),
                    current_device()));
  Item item;
  item.run = std::move(operation);
  item.work = work;
  if (work == Work::kCopy) item.callers = callers_here();
  order_by_default(queue, item);
  enqueue(queue, std::move(item));
}

void launch(const gemm::ptx::LaunchShape& shape, Stream stream, const void* kernel, Operation body) {
  submit(stream, Work::kKernel, [=, body = std::move(body)] { run_grid(shape, body, kernel); });
}

void finish(Stream stream) {
  Ranks& r = ranks();
  Lock lock(r.mutex);
  RankStream& queue = *stream_of(stream);
  std::vector<RankStream*> all{&queue};
  if (queue.number == 0) {
    for (RankStream* other : r.streams) {
      if (other->device == queue.device && other->waits_for_default) all.push_back(other);
    }
  }
  wait_for_host(lock, [&] {
    return std::all_of(all.begin(), all.end(),
                       [](const RankStream* one) { return one->completed == one->submitted; });
  });
  for (RankStream* one : all) note_known(*one);
}

void finish_device(int device) {
  Ranks& r = ranks();
  Lock lock(r.mutex);
  const auto is_of = [device](const RankStream* stream) { return stream->device == device; };
  wait_for_host(lock, [&] {
    return std::all_of(r.streams.begin(), r.streams.end(), [&](const RankStream* one) {
      return !is_of(one) || one->completed == one->submitted;
    });
  });
  for (RankStream* stream : r.streams) {
    if (is_of(stream)) note_known(*stream);
  }
}

bool is_empty(Stream stream) {
  Ranks& r = ranks();
  const Lock lock(r.mutex);
  RankStream& queue = *stream_of(stream);
  if (queue.completed != queue.submitted) return false;
  note_known(queue);
  return true;
}

void go_on() {
  Ranks& r = ranks();
  Lock lock(r.mutex);
  if (std::none_of(r.streams.begin(), r.streams.end(),
                   [](const RankStream* stream) { return stream->running || stream->can_run(); }))
    return;
  const std::uint64_t until = r.turns + 2;
  wait_for_host(lock, [&r, until] { return r.turns >= until; });
}

void forget_everything() {
  Ranks& r = ranks();
  const Lock lock(r.mutex);
  r.seed = 0;
  r.is_open = false;
  for (RankStream* stream : r.streams) {
    if (stream->running) continue;
    stream->queue.clear();
    stream->completed = stream->known = stream->submitted;
  }
}

// ---- Events.

Event make_event() {
  return std::make_shared<EventState>();
}

void record(const Event& event, Stream stream) {
  const Lock lock(ranks().mutex);
  RankStream& queue = *stream_of(stream);
  Item item;
  item.records = event;
  item.number = ++event->asked;
  order_by_default(queue, item);
  enqueue(queue, std::move(item));
}

void wait_for(Stream stream, const Event& event) {
  const Lock lock(ranks().mutex);
  if (event->asked == 0) return;
  Item item;
  item.waits = event;
  item.number = event->asked;
  enqueue(*stream_of(stream), std::move(item));
}

void finish(const Event& event) {
  Ranks& r = ranks();
  Lock lock(r.mutex);
  const std::uint64_t number = event->asked;
  wait_for_host(lock, [&] { return event->done >= number; });
  if (r.is_open && event->epoch == r.epoch) r.host.join(event->clock);
}

bool has_happened(const Event& event) {
  Ranks& r = ranks();
  const Lock lock(r.mutex);
  if (event->done < event->asked) return false;
  if (r.is_open && event->epoch == r.epoch) r.host.join(event->clock);
  return true;
}

std::chrono::steady_clock::time_point time_of(const Event& event) {
  const Lock lock(ranks().mutex);
  return event->time;
}

// ---- Memory that goes away.

void before_free(const void* memory) {
  Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(memory));
  if (!buffer || buffer->owner < 0) return;
  finish_device(buffer->owner);
  Ranks& r = ranks();
  const Lock lock(r.mutex);
  if (!r.is_open || !buffer->has_lines) return;
  const std::uintptr_t first = buffer->allocation_begin / 16 * 16;
  const std::size_t count = (buffer->allocation_begin + buffer->allocation_bytes - first + 15) / 16;
  for (std::size_t i = 0; i < count; ++i) {
    const Line& line = buffer->lines[i];
    if (line.tag() != r.launch + 1) continue;
    const unsigned bytes = 1u << line.granule_log2();
    for (unsigned at = 0; at < 16; at += bytes) {
      const Cell& cell = line.cells()[at / bytes];
      const bool writes = cell.write != 0 && !r.host.covers(cell.write);
      if (!writes && (cell.readers == 0 || r.host.covers(cell.first.stamp))) continue;
      const Stamp stamp = writes ? cell.write : cell.first.stamp;
      const std::uint64_t where = (writes ? cell.write_where : cell.first.where) & ~kAtomicBit;
      Report report("rank {} frees memory that rank {} may still be {}", buffer->owner,
                    rank_of(stamp_cta(stamp)), writes ? "writing" : "reading");
      report.line("bytes", "{} ({} bytes)", name_address(first + 16 * i + at), bytes);
      report.line(writes ? "write" : "read", "at {} by {}", Where::from_packed(where).text(),
                  name_thread(stamp));
      report.missing(
          "a wait for rank {} before rank {} frees its memory: cudaFree and cudaDeviceReset wait for their "
          "own "
          "device only (cudaSetDevice({}), then cudaDeviceSynchronize)",
          rank_of(stamp_cta(stamp)), buffer->owner, rank_of(stamp_cta(stamp)));
      report.rule("a rank's memory must exist for as long as its peers use it",
                  "CUDA C++ Programming Guide, \"Peer-to-Peer Memory Access\"");
      throw harness::EmulatorReport("peer-gone", "peer-gone: " + report.str());
    }
  }
}

}  // namespace ranks
}  // namespace emulator
