#include "emulator/timeline/timeline_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>

#include "harness/backend/backend.h"

namespace emulator {
namespace {

using harness::EngineSpan;

constexpr int kWarpsOfWarpgroup = 4;
// Names of copies that no barrier counts.
constexpr std::uint64_t kLoads = ~std::uint64_t{0};
constexpr std::uint64_t kCpAsyncCopies = kLoads - 1;
constexpr double kMmaFlop = 2.0 * 16 * 8 * 16;
constexpr double kWgmmaFlopOfColumn = 2.0 * 64 * 16;

/// Does one thing after the other: what comes while it is busy waits.
struct Server {
  double free = 0;
  /// Begins at `now` or later; returns the end.
  double serve(double now, double clocks) {
    free = std::max(free, now) + clocks;
    return free;
  }
};

struct Sm {
  Server tensor_cores;           // wgmma
  Server mma[4];                 // mma.sync, by sub-partition
  Server arithmetic[4];          // of binary32, by sub-partition: a warp's instruction each clock
  Server tensor_memory;          // tcgen05.ld
  Server shared, lines;          // shared memory, the load/store unit's way to L2
  Server copies_in, copies_out;  // bytes from and to L2
};

struct WarpRun;

struct BarrierState {
  std::uint32_t count = 0;
  std::uint32_t pending = 0;
  std::int64_t missing = 0;  // bytes
  double latest = 0;         // of what has come in this phase
  std::vector<double> done;  // when each phase completed
  std::vector<WarpRun*> waiting;
};

/// A rendezvous of threads: __syncthreads, bar.sync, barrier.cluster.
struct Meeting {
  std::uint32_t threads = 0;
  double latest = 0;
  std::vector<WarpRun*> waiting;
};

struct Group {
  double done = 0;
  bool known = false;
};

struct WarpgroupRun {
  int committed[kWarpsOfWarpgroup] = {};
  double first[kWarpsOfWarpgroup] = {};   // when each warp issued the first instruction of its open group
  double clocks[kWarpsOfWarpgroup] = {};  // of the tensor cores, for the open group
  std::vector<double> issued;             // by group: when the last warp had issued it
  std::vector<int> arrivals;
  std::vector<double> end;
  std::vector<WarpRun*> waiting;
};

struct CtaRun {
  const CtaLog* log = nullptr;
  int sm = -1;
  bool started = false;
  int warps_left = 0;
  double end = 0;
  Meeting cta_barrier;
  std::map<std::uint32_t, Meeting> named;
  std::vector<WarpgroupRun> warpgroups;
};

struct WarpRun {
  CtaRun* cta = nullptr;
  int index = 0;
  std::vector<Operation> operations;
  std::size_t next = 0;
  double now = 0;
  double loads_ready = 0;  // ld.global
  std::uint64_t load_batches = 0;
  bool loads_used = false;
  double fragments_ready = 0;  // of the batch of ldmatrix that is being collected
  bool collecting = false;
  std::map<std::uint64_t, double> register_ready;
  std::vector<std::uint64_t> batch;
  double copies_ready = 0;          // cp.async since the last commit
  std::vector<double> copy_groups;  // cp.async
  double stores_read = 0, stores_done = 0;
  double multiplied = 0;       // when the tcgen05.mma issued so far are over
  double multiplication = -1;  // when the tensor cores begin those since the last commit; -1: none
  CtaRun* peer = nullptr;      // that takes part in them
  double tensor_loaded = 0;    // tcgen05.ld
  std::vector<double> store_read_groups, store_done_groups;
  std::vector<harness::TimedState> states;
};

class Replay {
 public:
  Replay(const LaunchLog& log, int sms, const ModelConstants& constants)
      : constants_(constants),
        cut_off_(log.cut_off),
        ctas_per_sm_(log.ctas_per_sm),
        sms_(static_cast<std::size_t>(sms)) {
    for (const auto& [linear, cta] : log.ctas) {
      CtaRun& run = ctas_[linear];
      run.log = cta.get();
      run.warps_left = static_cast<int>(cta->warps.size());
      run.warpgroups.resize((cta->warps.size() + kWarpsOfWarpgroup - 1) / kWarpsOfWarpgroup);
      for (const auto& [offset, count] : cta->barriers) {
        BarrierState& barrier = barriers_[linear << 32 | offset];
        barrier.count = barrier.pending = count;
      }
      if (cta->cluster.front() == linear) waiting_clusters_.push_back(linear);
      for (std::size_t i = 0; i < cta->warps.size(); ++i) {
        auto warp = std::make_unique<WarpRun>();
        warp->cta = &run;
        warp->index = static_cast<int>(i);
        warp->operations = cta->warps[i].operations();
        warps_.push_back(std::move(warp));
      }
    }
    for (int slot = 0; slot < sms * log.ctas_per_sm; ++slot) free_slots_.push_back({0, slot % sms});
  }

  void run() {
    start_clusters(0);
    while (!ready_.empty()) {
      WarpRun* warp = ready_.top().warp;
      ready_.pop();
      step(*warp);
    }
    for (const auto& warp : warps_) {
      if (!cut_off_ && (warp->next < warp->operations.size() || !warp->cta->started)) {
        throw harness::Error(fmt::format(
            "the timeline's model is stuck: warp {} of CTA {} waits at {} for an event that never happens",
            warp->index, warp->cta->log->linear,
            Where::from_packed(warp->operations[warp->next].where).text()));
      }
    }
  }

  harness::TraceData data(int ctas) {
    harness::TraceData data;
    data.is_model = true;
    data.clock_mhz = constants_.clock_mhz;
    data.ctas = static_cast<int>(ctas_.size());
    data.ctas_per_sm = ctas_per_sm_;
    data.engines = std::move(engines_);
    data.constants = constants_.described();
    double last = 0;
    for (const auto& warp : warps_) last = std::max(last, warp->now);
    for (const auto& warp : warps_) {
      const auto linear = static_cast<int>(warp->cta->log->linear);
      if (linear >= ctas || warp->index % kWarpsOfWarpgroup != 0 || !warp->cta->started) continue;
      const bool waits = cut_off_ && !warp->states.empty() && is_wait(warp->states.back().state.state);
      data.roles.push_back({.cta = linear,
                            .sm = warp->cta->sm,
                            .warpgroup = warp->index / kWarpsOfWarpgroup,
                            .states = std::move(warp->states),
                            .end = waits ? last : warp->now});
    }
    return data;
  }

 private:
  struct Entry {
    double time;
    std::uint64_t cta;
    int index;
    WarpRun* warp;
    bool operator<(const Entry& other) const {  // the earliest is the greatest
      if (time != other.time) return time > other.time;
      if (cta != other.cta) return cta > other.cta;
      return index > other.index;
    }
  };
  struct Slot {
    double free;
    int sm;
  };

  static bool is_wait(gemm::ptx::TraceState state) {
    using gemm::ptx::TraceState;
    return state == TraceState::kWaitFull || state == TraceState::kWaitEmpty ||
           state == TraceState::kWaitOrder || state == TraceState::kWaitStore ||
           state == TraceState::kWaitSource;
  }

  void push(WarpRun& warp) { ready_.push({warp.now, warp.cta->log->linear, warp.index, &warp}); }

  /// The clusters that find room, in the order of the grid.
  void start_clusters(double gap) {
    while (next_cluster_ < waiting_clusters_.size()) {
      const std::vector<std::uint64_t>& members = ctas_[waiting_clusters_[next_cluster_]].log->cluster;
      if (free_slots_.size() < members.size()) return;
      std::stable_sort(free_slots_.begin(), free_slots_.end(),
                       [](const Slot& a, const Slot& b) { return a.free < b.free; });
      const double begin = free_slots_[members.size() - 1].free + gap;
      for (std::size_t i = 0; i < members.size(); ++i) {
        CtaRun& cta = ctas_[members[i]];
        cta.sm = free_slots_[i].sm;
        cta.started = true;
        for (const auto& warp : warps_) {
          if (warp->cta != &cta) continue;
          warp->now = begin;
          push(*warp);
        }
      }
      free_slots_.erase(free_slots_.begin(),
                        free_slots_.begin() + static_cast<std::ptrdiff_t>(members.size()));
      ++next_cluster_;
    }
  }

  void wake(std::vector<WarpRun*>& waiting) {
    for (WarpRun* warp : waiting) push(*warp);
    waiting.clear();
  }

  void finish(WarpRun& warp) {
    CtaRun& cta = *warp.cta;
    cta.end = std::max(cta.end, std::max(warp.now, warp.stores_read));
    if (--cta.warps_left > 0) return;
    free_slots_.push_back({cta.end, cta.sm});
    start_clusters(constants_.cta_start);
  }

  void step(WarpRun& warp) {
    if (warp.next == warp.operations.size()) return finish(warp);
    if (!execute(warp, warp.operations[warp.next])) return;  // what ends the wait pushes it
    ++warp.next;
    push(warp);
  }

  void complete_phases(BarrierState& barrier) {
    if (barrier.pending != 0 || barrier.missing != 0) return;
    barrier.done.push_back(barrier.latest);
    barrier.pending = barrier.count;
    barrier.latest = 0;
    wake(barrier.waiting);
  }

  /// All warps of a rendezvous go on when the last has come. False: not yet.
  bool meet(Meeting& meeting, WarpRun& warp, std::uint32_t threads, std::uint32_t expected, bool waits,
            double clocks) {
    meeting.latest = std::max(meeting.latest, warp.now);
    meeting.threads += threads;
    if (meeting.threads < expected) {
      if (!waits) return true;
      meeting.waiting.push_back(&warp);
      return false;
    }
    const double end = meeting.latest + clocks;
    for (WarpRun* other : meeting.waiting) {
      other->now = end;
      ++other->next;
      push(*other);
    }
    meeting = {};
    if (waits) warp.now = end;
    return true;
  }

  double barrier_clocks(std::uint32_t threads) const {
    return constants_.barrier_base + threads * constants_.barrier_thread;
  }

  bool execute(WarpRun& warp, const Operation& operation) {
    const ModelConstants& c = constants_;
    CtaRun& cta = *warp.cta;
    Sm& sm = sms_[static_cast<std::size_t>(cta.sm)];
    const auto lines = static_cast<double>(operation.keys.size());
    if (operation.kind != OperationKind::kLdmatrix) warp.collecting = false;
    switch (operation.kind) {
      case OperationKind::kState:
        warp.states.push_back({warp.now, operation.state});
        return true;
      case OperationKind::kMbarrierWait: {
        double begin = warp.now;
        for (const std::uint64_t key : operation.keys) {
          if (operation.count == 0) continue;  // a fresh barrier lets the first wait pass
          BarrierState& barrier = barriers_[key];
          if (barrier.done.size() < operation.count) {
            barrier.waiting.push_back(&warp);
            return false;
          }
          begin = std::max(begin, barrier.done[operation.count - 1]);
        }
        warp.now = begin + c.shared_latency;
        return true;
      }
      case OperationKind::kMbarrierArrive:
        warp.now += c.issue;
        for (const std::uint64_t key : operation.keys) {
          BarrierState& barrier = barriers_[key];
          const bool remote = key >> 32 != cta.log->linear;
          barrier.latest =
              std::max(barrier.latest, warp.now + (remote ? c.remote_latency : c.shared_latency));
          barrier.missing += operation.bytes;
          if (operation.flag) --barrier.pending;
          complete_phases(barrier);
        }
        return true;
      case OperationKind::kTmaLoad: {
        warp.now += c.issue;
        const double sent = sm.copies_in.serve(warp.now, operation.bytes / c.copy_bytes);
        const double done = sent + c.tma_latency;
        // The copies of one phase of a barrier are one.
        const std::uint64_t first = operation.keys.front();
        add_copy(cta, {first, barriers_[first].done.size()}, warp.now, done, operation.bytes);
        for (const std::uint64_t key : operation.keys) {
          BarrierState& barrier = barriers_[key];
          barrier.latest = std::max(barrier.latest, done);
          barrier.missing -= operation.bytes;
          complete_phases(barrier);
        }
        return true;
      }
      case OperationKind::kBulkStore: {
        warp.now += c.issue;
        const double read = sm.copies_out.serve(warp.now, operation.bytes / c.copy_bytes);
        warp.stores_read = std::max(warp.stores_read, read);
        warp.stores_done = warp.stores_read + c.flag_latency;
        engines_.push_back({.kind = EngineSpan::Kind::kStore,
                            .cta = static_cast<int>(cta.log->linear),
                            .sm = cta.sm,
                            .begin = warp.now,
                            .end = warp.stores_done,
                            .bytes = operation.bytes});
        return true;
      }
      case OperationKind::kBulkCommit:
        warp.store_read_groups.push_back(warp.stores_read);
        warp.store_done_groups.push_back(warp.stores_done);
        return true;
      case OperationKind::kBulkWait:
        warp.now = after_group(operation.flag ? warp.store_read_groups : warp.store_done_groups,
                               operation.count, warp.now + c.issue);
        return true;
      case OperationKind::kWgmma:
        issue_wgmma(warp, operation);
        return true;
      case OperationKind::kWgmmaCommit:
        commit_wgmma(warp, sm);
        return true;
      case OperationKind::kWgmmaWait:
        return wait_wgmma(warp, operation);
      case OperationKind::kMultiplication: {
        constexpr double kFlop = 2.0 * 16;
        warp.now += c.issue;
        // Of a pair both SMs multiply, at the same time.
        warp.peer = operation.flag ? &peer_of(cta) : nullptr;
        Server* const other =
            warp.peer ? &sms_[static_cast<std::size_t>(warp.peer->sm)].tensor_cores : nullptr;
        const double begin = std::max({sm.tensor_cores.free, warp.now, other ? other->free : 0.0});
        const double clocks = operation.number * kFlop / c.tcgen05_flop;
        warp.multiplied = sm.tensor_cores.serve(begin, clocks);
        if (other) other->serve(begin, clocks);
        if (warp.multiplication < 0) warp.multiplication = begin;
        return true;
      }
      case OperationKind::kMultiplicationCommit: {
        warp.now += c.issue;
        const double done = std::max(warp.multiplied, warp.now);
        for (const CtaRun* one : {static_cast<const CtaRun*>(&cta), static_cast<const CtaRun*>(warp.peer)}) {
          if (warp.multiplication < 0 || !one) continue;
          engines_.push_back({.kind = EngineSpan::Kind::kTensorCores,
                              .cta = static_cast<int>(one->log->linear),
                              .sm = one->sm,
                              .warpgroup = warp.index / kWarpsOfWarpgroup,
                              .begin = warp.multiplication,
                              .end = warp.multiplied});
        }
        warp.multiplication = -1;
        for (const std::uint64_t key : operation.keys) {
          BarrierState& barrier = barriers_[key];
          const bool remote = key >> 32 != cta.log->linear;
          barrier.latest = std::max(barrier.latest, done + c.mma_latency + (remote ? c.remote_latency : 0));
          --barrier.pending;
          complete_phases(barrier);
        }
        return true;
      }
      case OperationKind::kTensorLoad:
        warp.now += c.issue;
        warp.tensor_loaded = sm.tensor_memory.serve(warp.now, operation.bytes / c.tensor_memory_bytes);
        return true;
      case OperationKind::kTensorWait:
        warp.now = std::max(warp.now, warp.tensor_loaded + c.mma_latency);
        return true;
      case OperationKind::kCtaBarrier:
        return meet(cta.cta_barrier, warp, 1, static_cast<std::uint32_t>(cta.log->warps.size()), true,
                    barrier_clocks(operation.count));
      case OperationKind::kNamedBarrier:
        return meet(cta.named[operation.number], warp, 32, operation.count, operation.flag,
                    barrier_clocks(operation.count));
      case OperationKind::kClusterArrive:
        return true;  // in the steps a wait follows at once
      case OperationKind::kClusterWait: {
        std::uint32_t expected = 0;
        for (const std::uint64_t member : cta.log->cluster)
          expected += static_cast<std::uint32_t>(ctas_[member].log->warps.size());
        return meet(cluster_barriers_[cta.log->cluster.front()], warp, 1, expected, true, c.remote_latency);
      }
      case OperationKind::kLoadGlobal: {
        const double left = sm.lines.serve(warp.now, lines * c.line_clocks);
        warp.now = std::max(warp.now + c.issue, left);
        const double arrived = sm.copies_in.serve(left, operation.bytes / c.copy_bytes);
        if (warp.loads_used) ++warp.load_batches;
        warp.loads_used = false;
        warp.loads_ready = std::max(warp.loads_ready, arrived + c.memory_latency);
        add_copy(cta, {kLoads, warp.load_batches}, warp.now, warp.loads_ready, operation.bytes);
        return true;
      }
      case OperationKind::kStoreGlobal: {
        warp.now = std::max(warp.now, warp.loads_ready);
        // A kernel that stores without the copy engine does not say so.
        if (!warp.states.empty() && (warp.states.back().state.state == gemm::ptx::TraceState::kNone ||
                                     warp.states.back().state.state == gemm::ptx::TraceState::kWaitFull)) {
          warp.states.push_back({warp.now, {.state = gemm::ptx::TraceState::kStore}});
        }
        const double left = sm.lines.serve(warp.now, lines * c.line_clocks);
        warp.now = std::max(warp.now + c.issue, left);
        return true;
      }
      case OperationKind::kShared:
        warp.loads_used = true;
        warp.now = std::max(warp.now, warp.loads_ready);
        warp.now = sm.shared.serve(warp.now, std::max(c.issue, operation.bytes / c.shared_bytes));
        if (operation.flag) warp.now += c.shared_latency;
        return true;
      case OperationKind::kLdmatrix: {
        if (!warp.collecting) {
          warp.batch.clear();
          warp.collecting = true;
        }
        warp.now = sm.shared.serve(warp.now, operation.bytes / c.shared_bytes);
        warp.batch.push_back(operation.keys.front());
        // Whatever is loaded together is ready together.
        for (const std::uint64_t key : warp.batch) warp.register_ready[key] = warp.now + c.shared_latency;
        return true;
      }
      case OperationKind::kMma: {
        const double ready = warp.register_ready[operation.keys.front()];
        Server& unit = sm.mma[warp.index % 4];
        const double begin = std::max({warp.now, ready, unit.free});
        unit.serve(begin, kMmaFlop / (c.mma_flop / 4));
        warp.now = begin + kMmaFlop / c.mma_warp_flop;
        return true;
      }
      case OperationKind::kArithmetic:
        warp.now = sm.arithmetic[warp.index % 4].serve(warp.now, operation.count * c.issue);
        return true;
      case OperationKind::kCpAsync: {
        const double left = sm.lines.serve(warp.now, lines * c.line_clocks);
        const double arrived = sm.copies_in.serve(left, operation.bytes / c.copy_bytes);
        add_copy(cta, {kCpAsyncCopies, warp.copy_groups.size()}, warp.now, arrived + c.memory_latency,
                 operation.bytes);
        warp.now = std::max(warp.now + c.issue, left);
        warp.copies_ready = std::max(warp.copies_ready, arrived + c.memory_latency);
        return true;
      }
      case OperationKind::kCpAsyncCommit:
        warp.copy_groups.push_back(warp.copies_ready);
        return true;
      case OperationKind::kCpAsyncWait:
        warp.now = after_group(warp.copy_groups, operation.count, warp.now + c.issue);
        return true;
      case OperationKind::kFlagSet:
        warp.now += c.issue;
        flags_[operation.keys.front()].push_back(warp.now + c.flag_latency);
        wake(flag_waiting_[operation.keys.front()]);
        return true;
      case OperationKind::kFlagWait: {
        std::vector<double>& set = flags_[operation.keys.front()];
        if (set.empty()) {
          flag_waiting_[operation.keys.front()].push_back(&warp);
          return false;
        }
        warp.now = std::max(warp.now, set.back()) + c.flag_latency;
        return true;
      }
    }
    return true;
  }

  /// Copies of the same CTA with the same name are drawn as one.
  /// The other CTA of its pair.
  CtaRun& peer_of(const CtaRun& cta) {
    const std::vector<std::uint64_t>& cluster = cta.log->cluster;
    const auto rank = static_cast<std::size_t>(std::find(cluster.begin(), cluster.end(), cta.log->linear) -
                                               cluster.begin());
    return ctas_[cluster[rank ^ 1]];
  }

  void add_copy(const CtaRun& cta, std::pair<std::uint64_t, std::uint64_t> name, double begin, double end,
                std::uint32_t bytes) {
    const auto [found, is_new] = copies_.try_emplace({cta.log->linear, name}, engines_.size());
    if (is_new) {
      engines_.push_back({.kind = EngineSpan::Kind::kCopy,
                          .cta = static_cast<int>(cta.log->linear),
                          .sm = cta.sm,
                          .begin = begin,
                          .end = end});
    }
    EngineSpan& copy = engines_[found->second];
    copy.begin = std::min(copy.begin, begin);
    copy.end = std::max(copy.end, end);
    copy.bytes += bytes;
  }

  /// When all but the latest `pending` groups are over.
  static double after_group(const std::vector<double>& groups, std::uint32_t pending, double now) {
    if (groups.size() <= pending) return now;
    return std::max(now, groups[groups.size() - pending - 1]);
  }

  static WarpgroupRun& warpgroup_of(const WarpRun& warp) {
    return warp.cta->warpgroups[static_cast<std::size_t>(warp.index / kWarpsOfWarpgroup)];
  }

  void issue_wgmma(WarpRun& warp, const Operation& operation) {
    WarpgroupRun& warpgroup = warpgroup_of(warp);
    const int i = warp.index % kWarpsOfWarpgroup;
    if (warpgroup.clocks[i] == 0) warpgroup.first[i] = warp.now;
    warpgroup.clocks[i] += operation.number * kWgmmaFlopOfColumn / constants_.tensor_flop;
    warp.now += constants_.issue;
  }

  void commit_wgmma(WarpRun& warp, Sm& sm) {
    WarpgroupRun& warpgroup = warpgroup_of(warp);
    const int i = warp.index % kWarpsOfWarpgroup;
    const auto group = static_cast<std::size_t>(warpgroup.committed[i]++);
    if (group == warpgroup.issued.size()) {
      warpgroup.issued.push_back(0);
      warpgroup.arrivals.push_back(0);
    }
    warpgroup.issued[group] = std::max(warpgroup.issued[group], warpgroup.first[i]);
    const double clocks = warpgroup.clocks[i];
    warpgroup.clocks[i] = 0;
    if (++warpgroup.arrivals[group] < kWarpsOfWarpgroup) return;
    const double begin = std::max(sm.tensor_cores.free, warpgroup.issued[group]);
    const double end = sm.tensor_cores.serve(begin, clocks);
    warpgroup.end.push_back(end);
    engines_.push_back({.kind = EngineSpan::Kind::kTensorCores,
                        .cta = static_cast<int>(warp.cta->log->linear),
                        .sm = warp.cta->sm,
                        .warpgroup = warp.index / kWarpsOfWarpgroup,
                        .begin = begin,
                        .end = end});
    wake(warpgroup.waiting);
  }

  bool wait_wgmma(WarpRun& warp, const Operation& operation) {
    WarpgroupRun& warpgroup = warpgroup_of(warp);
    const auto committed = static_cast<std::uint32_t>(warpgroup.committed[warp.index % kWarpsOfWarpgroup]);
    if (committed <= operation.count) return true;
    const std::size_t groups = committed - operation.count;
    if (warpgroup.end.size() < groups) {
      warpgroup.waiting.push_back(&warp);
      return false;
    }
    warp.now = std::max(warp.now + constants_.issue, warpgroup.end[groups - 1] + constants_.mma_latency);
    return true;
  }

  ModelConstants constants_;
  bool cut_off_;
  int ctas_per_sm_;
  std::vector<Sm> sms_;
  std::map<std::uint64_t, CtaRun> ctas_;
  std::vector<std::unique_ptr<WarpRun>> warps_;
  std::map<std::uint64_t, BarrierState> barriers_;
  std::map<std::uint64_t, Meeting> cluster_barriers_;
  std::map<std::uint64_t, std::vector<double>> flags_;
  std::map<std::uint64_t, std::vector<WarpRun*>> flag_waiting_;
  std::vector<std::uint64_t> waiting_clusters_;
  std::size_t next_cluster_ = 0;
  std::vector<Slot> free_slots_;
  std::priority_queue<Entry> ready_;
  std::vector<EngineSpan> engines_;
  std::map<std::pair<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>>, std::size_t> copies_;
};

}  // namespace

std::vector<harness::NamedNumber> ModelConstants::described() const {
  const char* record = "docs/results/roofline_h200.json";
  return {
      {"clock", clock_mhz, "MHz", fmt::format("{}, device.clock_hz", record)},
      {"wgmma", tensor_flop, "FLOP/clock/SM", fmt::format("{}, wgmma.rate, rounded", record)},
      {"mma.sync", mma_flop, "FLOP/clock/SM", fmt::format("{}, mma_sync.rate of 8 warps", record)},
      {"mma.sync of one warp", mma_warp_flop, "FLOP/clock",
       fmt::format("{}, mma_sync.rate of 1 warp", record)},
      {"result of a multiplication", mma_latency, "clocks", fmt::format("{}, latency.mma_sync", record)},
      {"copies", copy_bytes, "bytes/clock/SM",
       fmt::format("{}, l2.read of 2 MiB over 132 SMs at 1980 MHz", record)},
      {"ld.global, cp.async", memory_latency, "clocks", fmt::format("{}, latency.dram of 256 MiB", record)},
      {"TMA copy", tma_latency, "clocks",
       "fitted: step 09's k-tiles of 64 and of 128 in docs/results/part3_h200.json"},
      {"shared memory", shared_bytes, "bytes/clock/SM", fmt::format("{}, shared.read, shared.write", record)},
      {"shared memory, an mbarrier", shared_latency, "clocks", fmt::format("{}, latency.shared", record)},
      {"128-byte line of an instruction", line_clocks, "clocks", fmt::format("{}, l1.read", record)},
      {"barrier", barrier_base, "clocks", fmt::format("{}, a line through barrier", record)},
      {"barrier, each thread", barrier_thread, "clocks", fmt::format("{}, a line through barrier", record)},
      {"word in L2", flag_latency, "clocks", fmt::format("{}, latency.l2 of 2 MiB", record)},
      {"another CTA's mbarrier", remote_latency, "clocks", "an assumption"},
      {"start of a CTA", cta_start, "clocks", "an assumption"},
      {"issue of an instruction", issue, "clocks", "an assumption"},
  };
}

harness::TraceData replay(const LaunchLog& log, int sms, int ctas, const ModelConstants& constants) {
  Replay replay(log, sms, constants);
  replay.run();
  return replay.data(ctas);
}

}  // namespace emulator
