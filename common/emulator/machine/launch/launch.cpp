// Checks a launch, divides its grid into gangs, and runs them on OS threads.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include <time.h>

#include "emulator/async/launch_control.h"
#include "emulator/explore/run.h"
#include "emulator/machine/attention.h"
#include "emulator/machine/launch/launch_bounds.h"
#include "emulator/machine/launch/rank_grid.h"
#include "emulator/machine/launch/running_grid.h"
#include "emulator/machine/launch/thread_pool.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/ranks.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/faults.h"
#include "emulator/report/causes/flags.h"
#include "emulator/report/causes/tile_owners.h"
#include "emulator/report/counters.h"
#include "emulator/report/course_rules.h"
#include "emulator/report/kernel_source.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "emulator/sync/dependent_launch.h"
#include "emulator/sync/streams_at_once.h"
#include "emulator/timeline/timeline.h"
#include "harness/backend/backend.h"

namespace emulator {
namespace {

Options current_options;
int major_told = 9;
std::set<const void*> unportable_kernels;  // whose clusters may have more than 8 CTAs
std::atomic<std::uint64_t> launches{0};

/// The rule's name leads the text, so that it can be looked up from what the terminal shows.
[[noreturn]] void throw_report(const std::string& rule, const std::string& text) {
  throw harness::EmulatorReport(rule, rule + ": " + text);
}

[[noreturn]] void refuse(const std::string& headline, const std::string& rule, const std::string& source) {
  throw_report("launch-limits", Report("launch refused: " + headline).rule(rule, source).str());
}

void check_shape(const gemm::ptx::LaunchShape& shape, int sm_count, bool is_portable) {
  const char* limits = "CUDA C++ Programming Guide, \"Compute Capabilities: Technical Specifications\"";
  auto extent = [](const gemm::ptx::Extent& e) { return fmt::format("({},{},{})", e.x, e.y, e.z); };
  const gemm::ptx::Extent& grid = shape.grid;
  const gemm::ptx::Extent& block = shape.block;
  const gemm::ptx::Extent& cluster = shape.cluster;
  if (block.count() == 0 || grid.count() == 0 || cluster.count() == 0) {
    refuse(fmt::format("the grid is {}, the block is {} and the cluster is {}", extent(grid), extent(block),
                       extent(cluster)),
           "every dimension must be at least 1", limits);
  }
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || block.count() > kMaxThreads) {
    refuse(fmt::format("a block of {} has {} threads", extent(block), block.count()),
           "a block has at most 1024 threads, and at most 1024 x 1024 x 64 of them in x, y, z", limits);
  }
  if (grid.x > 2147483647u || grid.y > 65535u || grid.z > 65535u) {
    refuse(fmt::format("the grid has {} CTAs", extent(grid)),
           "a grid has at most 2^31-1 x 65535 x 65535 CTAs", limits);
  }
  if (shape.shared_bytes < 0 || shape.shared_bytes > kMaxSharedBytes) {
    refuse(fmt::format("it requests {} bytes of dynamic shared memory", shape.shared_bytes),
           "a CTA has at most 227 KB (232448 bytes) of shared memory on sm_90", limits);
  }
  if (cluster.count() > 1) {
    if (cluster.count() > (is_portable ? kMaxCluster : kMaxUnportableCluster)) {
      refuse(fmt::format("a cluster of {} has {} CTAs", extent(cluster), cluster.count()),
             "a portable cluster has at most 8 CTAs, and with "
             "cudaFuncAttributeNonPortableClusterSizeAllowed it has at most 16",
             "CUDA C++ Programming Guide, \"Thread Block Clusters\"");
    }
    if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
      refuse(
          fmt::format("a grid of {} does not consist of whole clusters of {}", extent(grid), extent(cluster)),
          "each dimension of the grid must be a multiple of the cluster's",
          "CUDA C++ Programming Guide, \"Thread Block Clusters\"");
    }
  }
  if (shape.co_resident) {
    const int per_sm = ctas_per_sm(shape, shape.shared_bytes);
    if (grid.count() > static_cast<long long>(per_sm) * sm_count) {
      refuse(fmt::format("{} CTAs cannot be resident at once: {} SMs hold {} each", grid.count(), sm_count,
                         per_sm),
             "all CTAs of a co-resident grid must be on an SM at the same time",
             "CUDA C++ Programming Guide, \"Cooperative Groups: Grid Synchronization\"");
    }
  }
}

/// What the kernel itself says about how it is launched.
void check_kernel(const void* kernel, const gemm::ptx::LaunchShape& shape) {
  check_kernel_source(kernel);
  const int bounds = launch_bounds(kernel);
  if (bounds == 0 || shape.block.count() <= bounds) return;
  const gemm::ptx::Extent& block = shape.block;
  Report report("launch refused: a block of ({},{},{}) has {} threads, but the kernel is compiled for {}",
                block.x, block.y, block.z, block.count(), bounds);
  report.line("kernel", name_function(kernel));
  if (const std::string place = place_of_kernel(kernel); !place.empty()) report.line("where", place);
  report.rule(
      "a launch must not have more threads than __launch_bounds__ says, because the compiler gives each "
      "thread as many registers as that number of threads allows",
      "CUDA C++ Programming Guide, \"Launch Bounds\"");
  throw_report("launch-bounds", report.str());
}

/// The first CTA of cluster `index` of the grid.
uint3 first_of_cluster(const gemm::ptx::LaunchShape& shape, std::uint64_t index) {
  const gemm::ptx::Extent& cluster = shape.cluster;
  const std::uint64_t across = shape.grid.x / cluster.x;
  const std::uint64_t down = shape.grid.y / cluster.y;
  return {static_cast<unsigned>(index % across * cluster.x),
          static_cast<unsigned>(index / across % down * cluster.y),
          static_cast<unsigned>(index / across / down * cluster.z)};
}

/// Which CTAs share a gang: gang `index` of the grid.
std::vector<std::uint64_t> gang_members(const gemm::ptx::LaunchShape& shape, std::uint64_t index) {
  const auto count = static_cast<std::uint64_t>(shape.grid.count());
  std::vector<std::uint64_t> members;
  if (shape.co_resident) {
    members.resize(count);
    std::iota(members.begin(), members.end(), std::uint64_t{0});
    return members;
  }
  const gemm::ptx::Extent& grid = shape.grid;
  const gemm::ptx::Extent& cluster = shape.cluster;
  const auto [x0, y0, z0] = first_of_cluster(shape, index);
  for (unsigned z = 0; z < cluster.z; ++z) {
    for (unsigned y = 0; y < cluster.y; ++y) {
      for (unsigned x = 0; x < cluster.x; ++x) {
        members.push_back((std::uint64_t{z0 + z} * grid.y + y0 + y) * grid.x + x0 + x);
      }
    }
  }
  return members;
}

/// Without the rule co-residency CTAs are dispatched as GPUs do it: in the order of their numbers, and as
/// many at once as fit. A CTA may then wait for one with a lower number, or for one that is resident with it.
std::uint64_t clusters_at_once(const gemm::ptx::LaunchShape& shape, int sm_count) {
  const auto ctas =
      static_cast<std::uint64_t>(ctas_per_sm(shape, shape.shared_bytes)) * static_cast<unsigned>(sm_count);
  return std::max<std::uint64_t>(1, ctas / static_cast<std::uint64_t>(shape.cluster.count()));
}

/// Position in the launch order -> gang: hardware promises none, so the seed draws one. A bijection of [0,
/// count) that needs no table: an affine map with a factor prime to count.
class LaunchOrder {
 public:
  LaunchOrder(std::uint64_t seed, std::uint64_t count) : count_(count) {
    Random random(seed ^ 0x6c61756e63684f72u);
    offset_ = random.next() % count;
    do {
      // Below 2^31, like the number of gangs of any launch that ends in a lifetime: the product fits 64 bits.
      factor_ = count == 1 ? 1 : random.next() % std::min(count, std::uint64_t{1} << 31);
    } while (std::gcd(factor_, count) != 1);
  }
  std::uint64_t operator[](std::uint64_t position) const { return (position * factor_ + offset_) % count_; }

 private:
  std::uint64_t count_, offset_, factor_ = 1;
};

std::atomic<bool> cancels_clusters{false};

/// The gangs of a grid in queues, each with its own in the order of launch. In a program whose kernels cancel
/// clusters there is a queue for each cluster that is resident at once: its first gang is launched, the
/// others follow where it has not cancelled them. The seed decides who is in which queue: what other SMs take
/// in time. Elsewhere every gang is a queue.
std::vector<std::vector<Unlaunched>> launch_queues(const Grid& grid, std::uint64_t gangs,
                                                   const LaunchOrder& order) {
  const auto resident = static_cast<std::uint64_t>(resident_ctas(grid.shape)) /
                        static_cast<std::uint64_t>(grid.shape.cluster.count());
  const std::uint64_t count = std::min(gangs, std::max<std::uint64_t>(1, resident));
  std::vector<std::vector<Unlaunched>> queues(count);
  Random random(grid.options.seed ^ 0x63616e63656c6564u);
  const bool in_turn = grid.options.completion == Completion::kEarliest;
  for (std::uint64_t position = 0; position < gangs; ++position) {
    const std::uint64_t queue = position < count || in_turn ? position % count : random.next() % count;
    queues[queue].push_back({position, order[position]});
  }
  return queues;
}

}  // namespace

bool expect_launch_control() {
  cancels_clusters = true;
  return true;
}

uint3 Grid::first_cta(std::uint64_t index) const {
  return first_of_cluster(shape, index);
}

const Options& options() {
  return current_options;
}
void set_options(const Options& next) {
  current_options = next;
}

void allow_unportable_cluster(const void* kernel, bool allow) {
  if (allow) {
    unportable_kernels.insert(kernel);
  } else {
    unportable_kernels.erase(kernel);
  }
}

int compute_capability_major() {
  return major_told;
}
bool set_compute_capability_major(int major) {
  major_told = major;
  return true;
}

int ctas_per_sm(const gemm::ptx::LaunchShape& shape, int shared_bytes) {
  const int warps = static_cast<int>((shape.block.count() + kWarpSize - 1) / kWarpSize);
  return std::min({kMaxThreadsPerSm / (warps * kWarpSize), kMaxCtasPerSm,
                   kSharedBytesPerSm / (shared_bytes + kReservedSharedBytes)});
}

unsigned resident_ctas(const gemm::ptx::LaunchShape& shape) {
  const auto slots = static_cast<unsigned>(std::max(1, options().sm_count * shape.ctas_per_sm));
  const auto cluster = static_cast<unsigned>(shape.cluster.count());
  return std::max(1u, slots / cluster) * cluster;
}

namespace {

std::atomic<bool> running_grid{false};
double seconds_of_grids = 0;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct RunningGrid {
  const double begin = cpu_seconds();
  RunningGrid() { running_grid = true; }
  ~RunningGrid() {
    running_grid = false;
    seconds_of_grids += cpu_seconds() - begin;
  }
};

}  // namespace

bool is_running_grid() {
  return running_grid;
}
double cpu_seconds_of_grids() {
  return seconds_of_grids;
}
std::uint64_t launches_so_far() {
  return launches;
}

namespace {

/// A kernel may have written there without a wrapper.
void check_margins() {
  if (const std::string damage = damaged_margin(); !damage.empty()) {
    throw_report("global-out-of-bounds",
                 Report("a kernel wrote outside a device buffer and did not use a wrapper: " + damage)
                     .rule("a kernel may access only memory that has been allocated",
                           "CUDA C++ Programming Guide, \"Device Memory\"")
                     .str());
  }
}

}  // namespace

std::uint64_t next_launch() {
  return launches.fetch_add(1);
}

void run_rank_grid(Worker& worker, Grid& grid, const void* kernel) {
  const gemm::ptx::LaunchShape& shape = grid.shape;
  read_course_rules_of_environment();
  grid.tag = grid.launch + 1;
  grid.keeps_reads = true;
  grid.single_os_thread = true;
  if (!grid.is_engine) {
    note_launch_shape(shape);
    check_shape(shape, grid.options.sm_count, unportable_kernels.count(kernel) == 0);
    if (kernel != nullptr) check_kernel(kernel, shape);
  }
  install_fault_handlers();
  const WatchTimer timer(grid.options.stall_seconds);
  const auto clusters = static_cast<std::uint64_t>(shape.grid.count() / shape.cluster.count());
  const std::uint64_t at_once = shape.co_resident ? clusters : clusters_at_once(shape, grid.options.sm_count);
  grid.gangs = shape.co_resident ? 1 : (clusters + at_once - 1) / at_once;
  for (std::uint64_t index = 0; index < grid.gangs; ++index) {
    ++grid.started;
    std::vector<std::uint64_t> members;
    for (std::uint64_t i = index * at_once; i < std::min(clusters, (index + 1) * at_once); ++i) {
      const std::vector<std::uint64_t> more = gang_members(shape, i);
      members.insert(members.end(), more.begin(), more.end());
      if (shape.co_resident) break;
    }
    Gang gang(worker, grid, index, members);
    const std::unique_ptr<Failure> failure = gang.run();
    if (failure) throw_report(failure->rule, failure->text);
    if (gang.is_stopped()) return;
    for (const auto& cta : gang.ctas) {
      for (const Thread& thread : cta->threads) grid.after.join(thread.clock);
    }
  }
  if (!grid.is_engine) check_margins();
}

void run_grid(const gemm::ptx::LaunchShape& shape, gemm::ptx::Stream stream,
              const std::function<void()>& body, const void* kernel) {
  if (context.thread) throw harness::Error("a kernel cannot launch a kernel here");
  if (ranks::is_stream_thread()) return ranks::run_grid(shape, body, kernel);
  if (has_ranks()) {
    ranks::launch(shape, stream, kernel, body);
    return ranks::finish(stream);
  }
  if (stream != nullptr && !streams_at_once())
    throw harness::Error("the emulator has only the default stream; pass nullptr");
  read_course_rules_of_environment();
  const RunningGrid running;
  Grid grid;
  grid.shape = shape;
  grid.body = &body;
  grid.options = current_options;
  if (explore::searching() && explore::current().kind() != explore::Run::Kind::kRecord) {
    grid.options.completion = Completion::kLatest;
    grid.options.slow_warps = 0;
  }
  grid.launch = launches.fetch_add(1);
  grid.tag = grid.launch + 1;
  note_launch_shape(shape);
  check_shape(shape, grid.options.sm_count, unportable_kernels.count(kernel) == 0);
  if (kernel != nullptr) check_kernel(kernel, shape);
  begin_grid(grid, kernel);
  grid.keeps_reads = shape.dependent || keeps_all_reads || streams_at_once();
  prepare_buffers(grid.keeps_reads);
  if (timeline_on()) log_launch(shape.ctas_per_sm, ctas_per_sm(shape, shape.shared_bytes));
  install_fault_handlers();

  const auto ctas = static_cast<std::uint64_t>(shape.grid.count());
  const std::uint64_t clusters = ctas / static_cast<std::uint64_t>(shape.cluster.count());
  const bool explored = explore::searching();
  if (explored && ctas > explore::kMostCtas)
    throw harness::Error(
        fmt::format("the schedules of a launch can be enumerated for at most {} CTAs, and this one has {}: "
                    "take a smaller shape",
                    explore::kMostCtas, ctas));
  const bool in_order = !shape.co_resident && (explored || !course_rule_on(CourseRule::kCoResidency));
  const std::uint64_t at_once = !in_order  ? 1
                                : explored ? clusters
                                           : clusters_at_once(shape, grid.options.sm_count);
  const std::uint64_t gangs = shape.co_resident ? 1 : (clusters + at_once - 1) / at_once;
  int os_threads = grid.options.os_threads;
  if (os_threads <= 0)
    os_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  if (explored || grid.options.cta_order != CtaOrder::kSeed) os_threads = 1;
  grid.gangs = gangs;
  attention_flags.fetch_and(~kWatchAttention);

  const LaunchOrder order(grid.options.seed, gangs);
  const auto place_of = [&](std::uint64_t turn) {
    if (in_order || grid.options.cta_order == CtaOrder::kAscending) return turn;
    return grid.options.cta_order == CtaOrder::kDescending ? gangs - 1 - turn : order[turn];
  };
  std::vector<std::vector<Unlaunched>> queues;
  if (cancels_clusters && !shape.co_resident && !in_order) queues = launch_queues(grid, gangs, order);
  const std::uint64_t turns = queues.empty() ? gangs : queues.size();
  os_threads =
      in_order ? 1 : static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(os_threads), turns));
  grid.os_threads = os_threads;
  grid.single_os_thread = os_threads == 1;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::unique_ptr<Failure> failure;  // of the earliest gang in launch order
  std::uint64_t failed_at = ~std::uint64_t{0};
  std::exception_ptr exception;

  ThreadPool::instance().run(os_threads - 1, [&](Worker& worker) {
    use_signal_stack();
    const WatchTimer timer(grid.options.stall_seconds);
    worker.launch_arena.reset();
    const auto run_gang = [&](std::uint64_t position, std::uint64_t index, std::vector<Unlaunched>* queue) {
      std::unique_ptr<Failure> outcome;
      std::exception_ptr thrown;
      try {
        ++grid.started;
        std::vector<std::uint64_t> members = gang_members(shape, index * at_once);
        for (std::uint64_t i = 1; i < at_once && index * at_once + i < clusters; ++i) {
          for (const std::uint64_t member : gang_members(shape, index * at_once + i))
            members.push_back(member);
        }
        Gang gang(worker, grid, index, members);
        gang.unlaunched = queue;
        outcome = gang.run();
        note_exits(gang);
        if (gang.waits_long && !outcome)
          --grid.waiting;  // one that has failed may leave others to wait for ever
      } catch (...) {
        thrown = std::current_exception();
      }
      if (!outcome && !thrown) return;
      const std::lock_guard lock(mutex);
      if (position < failed_at) {
        failed_at = position;
        failure = std::move(outcome);
        exception = thrown;
        grid.cancelled_from = position;
      }
    };
    const auto too_late = [&](std::uint64_t position) {
      return position > grid.cancelled_from.load(std::memory_order_relaxed);
    };
    while (true) {
      const std::uint64_t turn = next.fetch_add(1);
      if (turn >= turns || (queues.empty() && too_late(turn))) break;
      if (queues.empty()) {
        run_gang(turn, place_of(turn), nullptr);
        continue;
      }
      std::vector<Unlaunched>& queue = queues[turn];
      while (!queue.empty() && !too_late(queue.front().position)) {
        const Unlaunched first = queue.front();
        queue.erase(queue.begin());
        run_gang(first.position, first.index, &queue);
      }
    }
  });

  end_grid(grid);
  if (after_grid) after_grid(grid);
  if (exception || failure) forget_grids();
  if (exception) std::rethrow_exception(exception);
  if (failure) throw_report(failure->rule, failure->text);
  if (const std::string report = store_without_order(grid.launch); !report.empty())
    throw_report("reset-order", report);
  if (streams_at_once()) compare_streams(grid, stream, kernel);
  check_margins();
}

}  // namespace emulator
