// timing.h for the GPU.
//
// Operands are rotated through as many copies as exceed twice the L2. Rounds interleave the contestants in a
// new random order each, so that drift hits all of them. Burst: idle, then one launch between two events,
// enqueued while the GPU is held up by a delay kernel, so that the host's time is not measured. Sustained:
// after settling, blocks of back-to-back launches; the first third of each block is not timed, because the
// power limit reacts to what ran before.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "gemm/problem/check_problem.h"
#include "harness/backend/backend.h"
#include "harness/backend/watchdog.h"
#include "harness/base/problem.h"
#include "harness/timing/clock.h"
#include "harness/timing/cuda_event.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/timing/gpu/ceiling.h"
#include "harness/timing/gpu/delay.h"
#include "harness/timing/gpu/nvml.h"
#include "harness/timing/surprises.h"
#include "harness/timing/timing.h"
#include "harness/verify/epilogue/auxiliary.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

constexpr gemm::ptx::Stream kStream = nullptr;

constexpr int kMaxOperandSets = 256;
constexpr double kMemoryShare = 0.6;  // of what is free, for operands

constexpr int kMinRoundsBurst = 15;
constexpr int kMinRoundsSustained = 7;  // fewer than 6 have no 95 % interval
constexpr int kFewestRounds = 3;        // when even those would take more than twice the time allowed
constexpr double kStableWidth = 0.005;  // relative width of the median's interval: good enough to stop

constexpr double kSettleSeconds = 3;       // sustained: until clock and temperature have settled
constexpr double kSettleShare = 0.3;       // of the time allowed, if that is less
constexpr double kMinBlockSeconds = 0.05;  // sustained: of one contestant in one round
constexpr double kMaxBlockSeconds = 0.5;
constexpr double kLeadInShare = 1.0 / 3;  // of a block: not timed, the power of the contestant before fades

constexpr double kFirstDelayUs = 100;  // burst: covers the host's time to enqueue one launch
constexpr double kLastDelayUs = 10000;

/// As many copies of the problem as it takes for their bytes to exceed 2 x L2, so that no launch finds its
/// operands in the cache because an earlier launch left them there.
class OperandSets {
 public:
  OperandSets(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed, const ProblemForm& form) {
    const DeviceInfo device = device_info();
    const auto bytes = static_cast<double>(workload_bytes(shape, form));
    const double wanted = std::max(2.0, std::ceil(2.0 * static_cast<double>(device.l2_bytes) / bytes));
    const double affordable =
        std::floor(kMemoryShare * static_cast<double>(device.memory_free_bytes) / bytes);
    const int count =
        static_cast<int>(std::clamp(std::min(wanted, affordable), 1.0, double{kMaxOperandSets}));
    for (int i = 0; i < count; ++i)
      sets_.emplace_back(shape, pattern, seed + static_cast<std::uint64_t>(i), form);
  }

  int count() const { return static_cast<int>(sets_.size()); }
  Workload& operator[](int index) { return sets_[static_cast<std::size_t>(index)]; }
  /// The set that was used longest ago.
  std::size_t next() { return turn_++ % sets_.size(); }

 private:
  std::deque<Workload> sets_;
  std::size_t turn_ = 0;
};

/// A contestant, prepared for every operand set, and its samples.
struct Racer {
  Contestant contestant;
  OperandSets* sets = nullptr;
  std::vector<gemm::Launcher> launchers;  // one per operand set
  double estimate_us = 0;
  std::vector<double> samples_us;
};

gemm::Problem problem_of(const Contestant& contestant, const Workload& set) {
  return contestant.epilogue ? set.problem(*contestant.epilogue) : set.problem();
}

Racer make_racer(const Contestant& contestant, OperandSets& sets) {
  Racer racer{.contestant = contestant, .sets = &sets, .launchers = {}, .samples_us = {}};
  for (int i = 0; i < sets.count(); ++i)
    racer.launchers.push_back(contestant.prepare(problem_of(contestant, sets[i])));
  return racer;
}

void launch(const Racer& racer) {
  racer.launchers[racer.sets->next()](kStream);
}

/// Loads the code, fills the caches of the driver, and estimates how long a launch takes.
void warm_up(Racer& racer) {
  constexpr double kLongSeconds = 0.1;
  const Watchdog watchdog(fmt::format("the warm-up of {}", racer.contestant.name));
  CudaEvent start;
  CudaEvent stop;
  const auto begin = Clock::now();
  launch(racer);
  synchronize();
  const int launches = seconds_since(begin) > kLongSeconds ? 1 : 3;
  launch_delay(kStream, kFirstDelayUs);
  start.record(kStream);
  for (int i = 0; i < launches; ++i) launch(racer);
  stop.record(kStream);
  synchronize();
  racer.estimate_us = stop.microseconds_since(start) / launches;
}

/// Waits of the race below are as long as a round: the watchdog must not take a slow
/// contestant for a hanging one.
void allow_for(const std::vector<Racer>& racers) {
  double round_s = 0;
  for (const Racer& racer : racers) round_s += 2 * racer.estimate_us * 1e-6 + kMaxBlockSeconds;
  const std::chrono::duration<double> needed(3 * round_s);
  if (needed > watchdog_limit()) set_watchdog_limit(needed);
}

/// The time of one launch after an idle gap, in microseconds.
double burst_sample(const Racer& racer, double idle_ms) {
  const Watchdog watchdog(fmt::format("a launch of {}", racer.contestant.name));
  CudaEvent start;
  CudaEvent stop;
  for (double delay_us = kFirstDelayUs;; delay_us *= 4) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(idle_ms));
    launch_delay(kStream, delay_us);
    start.record(kStream);
    launch(racer);
    stop.record(kStream);
    // If the GPU has reached the start already, it may have waited there for the host: not a sample.
    const bool gapless = !start.passed();
    synchronize();
    if (gapless || delay_us >= kLastDelayUs) return stop.microseconds_since(start);
  }
}

/// Back-to-back launches: some to lead in, then `launches` between two events. Not waited for.
struct SustainedBlock {
  CudaEvent start;
  CudaEvent stop;
  int launches = 0;

  void enqueue(const Racer& racer, double seconds) {
    const auto launches_in = [&racer](double part) {
      return static_cast<int>(std::clamp(std::ceil(part * 1e6 / racer.estimate_us), 1.0, 1e6));
    };
    for (int i = launches_in(seconds * kLeadInShare); i > 0; --i) launch(racer);
    launches = launches_in(seconds * (1 - kLeadInShare));
    start.record(kStream);
    for (int i = 0; i < launches; ++i) launch(racer);
    stop.record(kStream);
  }

  double microseconds() const { return stop.microseconds_since(start) / launches; }
};

/// A new order for every round, the same ones for the same seed.
class RoundOrder {
 public:
  RoundOrder(std::size_t contestants, std::uint64_t seed) : order_(contestants), random_(seed) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }
  const std::vector<std::size_t>& next() {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_() % i]);
    return order_;
  }

 private:
  std::vector<std::size_t> order_;
  std::mt19937_64 random_;
};

bool all_stable(const std::vector<Racer>& racers) {
  return std::all_of(racers.begin(), racers.end(), [](const Racer& racer) {
    const Ratio interval = median_interval(racer.samples_us);
    return interval.high - interval.low < kStableWidth * interval.median;
  });
}

/// When to stop, and what to say meanwhile.
class Progress {
 public:
  Progress(const gemm::Shape& shape, const TimingOptions& options, double budget_s, int min_rounds)
      : shape_(shape), options_(options), budget_s_(budget_s), min_rounds_(min_rounds) {}

  bool enough(const std::vector<Racer>& racers) const {
    const int rounds = static_cast<int>(racers.front().samples_us.size());
    if (options_.rounds > 0) return rounds >= options_.rounds;
    const double used_s = seconds_since(start_);
    if (rounds >= kFewestRounds && used_s > 2 * budget_s_) return true;
    if (rounds < min_rounds_) return false;
    return used_s > budget_s_ || all_stable(racers);
  }

  void say(const std::string& what) {
    if (!options_.progress || seconds_since(said_) < 1) return;
    said_ = Clock::now();
    options_.progress(fmt::format("{} {}: {}, {:.0f} of at most {:.0f} s",
                                  options_.mode == TimingMode::kBurst ? "burst" : "sustained",
                                  to_string(shape_), what, seconds_since(start_), budget_s_));
  }

 private:
  gemm::Shape shape_;
  const TimingOptions& options_;
  double budget_s_;
  int min_rounds_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point said_ = Clock::now();
};

void race_burst(std::vector<Racer>& racers, const TimingOptions& options, Progress& progress) {
  RoundOrder order(racers.size(), options.seed);
  for (int round = 1; !progress.enough(racers); ++round) {
    for (const std::size_t i : order.next()) {
      racers[i].samples_us.push_back(burst_sample(racers[i], options.idle_ms));
      progress.say(fmt::format("round {}", round));
    }
  }
}

/// Runs all contestants in turn, untimed, for `seconds`.
void settle(const std::vector<Racer>& racers, double seconds, Progress& progress) {
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    for (const Racer& racer : racers) {
      const Watchdog watchdog(fmt::format("launches of {}", racer.contestant.name));
      SustainedBlock block;
      block.enqueue(racer, kMinBlockSeconds);
      synchronize();
      progress.say("settling");
    }
  }
}

void race_sustained(std::vector<Racer>& racers, const TimingOptions& options, double budget_s,
                    Progress& progress) {
  const double settle_s = std::min(kSettleSeconds, kSettleShare * budget_s);
  settle(racers, settle_s, progress);
  const int rounds = options.rounds > 0 ? options.rounds : kMinRoundsSustained;
  const double block_s = std::clamp((budget_s - settle_s) / (rounds * static_cast<double>(racers.size())),
                                    kMinBlockSeconds, kMaxBlockSeconds);
  RoundOrder order(racers.size(), options.seed);
  for (int round = 1; !progress.enough(racers); ++round) {
    // The whole round is enqueued before anything is read: between contestants the GPU does not pause.
    std::vector<SustainedBlock> blocks(racers.size());
    Watchdog watchdog(fmt::format("a round of {} contestants", racers.size()));
    for (const std::size_t i : order.next()) {
      blocks[i].enqueue(racers[i], block_s);
      watchdog.reset();
      progress.say(fmt::format("round {}", round));
    }
    synchronize();
    for (std::size_t i = 0; i < racers.size(); ++i) racers[i].samples_us.push_back(blocks[i].microseconds());
  }
}

void race(std::vector<Racer>& racers, const TimingOptions& options, double budget_s, Progress& progress) {
  allow_for(racers);
  if (options.mode == TimingMode::kBurst) {
    race_burst(racers, options, progress);
  } else {
    race_sustained(racers, options, budget_s, progress);
  }
}

/// Poisons D of the first operand set, runs the contestant on it, checks. "" or what is wrong.
std::string verify(const Racer& racer) {
  if (racer.contestant.kind == ContestantKind::kCeiling) return "";  // it computes no D
  Workload& set = (*racer.sets)[0];
  set.poison();
  racer.launchers.front()(kStream);
  const Contestant& contestant = racer.contestant;
  const gemm::Problem problem = problem_of(contestant, set);
  if (contestant.deliver) contestant.deliver(problem, kStream);
  const CheckResult result = set.check({128, 128, 64}, problem.epilogue, contestant.allowance);
  return result.ok ? "" : result.report;
}

void note(const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "note: %s\n", line.c_str());
}

/// Says it the first time only: the comparison times many shapes.
void note_once(const std::string& line) {
  static std::vector<std::string> said;
  if (std::find(said.begin(), said.end(), line) != said.end()) return;
  said.push_back(line);
  note(line);
}

/// Of all candidates, which are algorithms of cuBLASLt, what is fastest in the mode that is timed, and right.
std::vector<Racer> choose_cublaslt(const gemm::Shape& shape, const std::vector<Contestant>& proposals,
                                   OperandSets& sets, const TimingOptions& options) {
  constexpr double kWorthRacing = 1.25;  // times the fastest estimate
  constexpr double kShare = 0.3;         // of the contestants' time
  const std::string name = to_string(shape);

  std::vector<Racer> candidates;
  for (const Contestant& candidate : proposals) {
    Racer racer = make_racer(candidate, sets);
    try {
      warm_up(racer);
    } catch (const Error& error) {
      note(fmt::format("cuBLASLt proposes {} for {} but cannot run it: {}", candidate.variant, name,
                       error.what()));
      continue;
    }
    candidates.push_back(std::move(racer));
  }
  const int proposed = static_cast<int>(candidates.size());
  if (proposed == 0) {
    note(fmt::format("cuBLASLt proposes no algorithm for {} with {}, so there are no ratios", name,
                     to_string(options.form.epilogue)));
    return {};
  }
  const double fastest =
      std::min_element(candidates.begin(), candidates.end(), [](const Racer& x, const Racer& y) {
        return x.estimate_us < y.estimate_us;
      })->estimate_us;
  // A single launch says too little to drop one of several short ones.
  constexpr double kSlackUs = 5;
  std::erase_if(candidates,
                [&](const Racer& racer) { return racer.estimate_us > kWorthRacing * fastest + kSlackUs; });

  // Twice: all of them, then the best few again, so that the choice is not the luckiest of many.
  constexpr std::size_t kFinalists = 4;
  TimingOptions selection = options;
  selection.rounds = 0;
  const double budget_s = kShare / 2 * options.budget_s;
  for (int heat = 0; heat < 2; ++heat) {
    for (Racer& racer : candidates) racer.samples_us.clear();
    Progress progress(shape, selection, budget_s, kFewestRounds);
    progress.say("choosing cuBLASLt's algorithm");
    race(candidates, selection, budget_s, progress);
    std::sort(candidates.begin(), candidates.end(), [](const Racer& x, const Racer& y) {
      return quantile(x.samples_us, 0.5) < quantile(y.samples_us, 0.5);
    });
    if (candidates.size() > kFinalists) candidates.erase(candidates.begin() + kFinalists, candidates.end());
  }
  for (Racer& racer : candidates) {
    const std::string wrong = verify(racer);
    if (!wrong.empty()) {
      note(fmt::format("cuBLASLt's {} computes {} wrongly and is left out:\n{}", racer.contestant.variant,
                       name, wrong));
      continue;
    }
    racer.samples_us.clear();
    racer.contestant.variant = fmt::format("best of {}: {}", proposed, racer.contestant.variant);
    std::vector<Racer> chosen;
    chosen.push_back(std::move(racer));
    return chosen;
  }
  return {};
}

/// The baselines that this machine can run, warmed up and verified.
std::vector<Racer> make_baselines(const gemm::Shape& shape, OperandSets& sets, const TimingOptions& options) {
  std::vector<Racer> baselines;
  if (const std::string problem = baselines_problem(); !problem.empty()) {
    note_once("there is no cuBLAS baseline, so there are no ratios: " + problem);
  } else if (narrows_d(options.form.types) ||
             (!cublaslt_has(options.form.epilogue) && !unfused_has(options.form.epilogue))) {
    note_once(fmt::format("no opponent computes {} here, so there are no ratios",
                          to_string(options.form.epilogue)));
  } else {
    const gemm::Epilogue& epilogue = options.form.epilogue;
    const auto add_one = [&](const Contestant& contestant) {
      try {
        Racer racer = make_racer(contestant, sets);
        warm_up(racer);
        const std::string wrong = verify(racer);
        if (wrong.empty()) baselines.push_back(std::move(racer));
        if (!wrong.empty())
          note(fmt::format("{} computes {} wrongly and is left out:\n{}", contestant.name, to_string(shape),
                           wrong));
      } catch (const std::exception& error) {
        note(fmt::format("{} cannot run {}: {}", contestant.name, to_string(shape), error.what()));
      }
    };
    const auto add = [&](const std::vector<Contestant>& proposals) {
      for (Racer& racer : choose_cublaslt(shape, proposals, sets, options))
        baselines.push_back(std::move(racer));
    };
    if (!options.form.groups.empty()) {
      if (options.form.types.are_bf16()) add_one(cublas_grouped());
      add_one(cublaslt_loop());
      if (options.form.types.are_bf16() && options.form.capacity == 0 &&
          gemm::violated_batch_rule(options.form.groups).empty())
        add(cublaslt_batch_candidates(shape, options.form.groups));
      return baselines;
    }
    const bool has_blocks = options.form.types.have_blocks();  // of which it promotes each
    if (cublaslt_has(epilogue) && !has_blocks) {
      const std::vector<Contestant> proposals = cublaslt_candidates(shape, options.form);
      add(proposals);
      if (!epilogue.is_plain() && !proposals.empty()) add_one(first_choice(proposals));
    }
    if (options.layers > 0) add(cublaslt_chain_candidates(shape, options.layers));
    if (gemm::is_fp8(options.form.types.a))
      add(cublaslt_candidates(shape, options.form, Accumulation::kFull));
    if (!cublaslt_has(epilogue))
      note_once(fmt::format("cuBLASLt has no epilogue of its own for {}, so there are no ratios",
                            to_string(epilogue)));
    if (!epilogue.is_plain() && unfused_has(epilogue)) add(cublaslt_unfused_candidates(shape, options.form));
    if (epilogue.is_plain() && options.form.types.are_bf16()) add_one(cublas_default());
  }
  if (options.form.types.are_bf16() && has_math_unit(gemm::MathUnit::kWgmma)) {  // it multiplies bf16
    Racer ceiling = make_racer(wgmma_ceiling(), sets);
    warm_up(ceiling);
    baselines.push_back(std::move(ceiling));
  }
  return baselines;
}

/// "" or what the contestant computes instead of what the race is about.
std::string own_epilogue(const Contestant& contestant, const TimingOptions& options) {
  if (contestant.dense) return "one B for all rows";
  if (!contestant.epilogue || *contestant.epilogue == options.form.epilogue) return "";
  return to_string(*contestant.epilogue);
}

}  // namespace

ShapeRecord time_shape(const gemm::Shape& shape, const std::vector<Contestant>& contestants,
                       const TimingOptions& options) {
  if (contestants.empty() && !options.baselines) throw Error("there is nothing to time: name a step");
  if (!(options.budget_s > 0))
    throw Error(
        fmt::format("a time budget of {} s is not possible: it must be more than 0", options.budget_s));
  if (!(options.idle_ms >= 0))
    throw Error(fmt::format("an idle gap of {} ms is not possible: it must be at least 0", options.idle_ms));

  ProblemForm form = options.form;
  form.wide_weights = form.types.has_weights();
  OperandSets sets(shape, parse_pattern(options.pattern), options.seed, form);
  std::optional<OperandSets> of_dense;
  const auto sets_of = [&](const Contestant& contestant) -> OperandSets& {
    if (!contestant.dense) return sets;
    if (!of_dense) {
      int rows = 0;
      for (const gemm::GroupRows& group : form.groups) rows += group.count();
      of_dense.emplace(gemm::Shape{rows, shape.n, shape.k}, parse_pattern(options.pattern), options.seed,
                       without_groups(form));
    }
    return *of_dense;
  };
  std::vector<Racer> racers;
  for (const Contestant& contestant : contestants) {
    racers.push_back(make_racer(contestant, sets_of(contestant)));
    warm_up(racers.back());
  }
  if (options.baselines) {
    for (Racer& racer : make_baselines(shape, sets, options)) racers.push_back(std::move(racer));
  }
  if (racers.empty()) throw Error("there is nothing to time: no step was named and no baseline can run");

  for (const std::string& line : surprises(device_info(), nvml_card())) note_once(line);
  NvmlSampler sampler;
  sampler.start();
  const bool burst = options.mode == TimingMode::kBurst;
  Progress progress(shape, options, options.budget_s, burst ? kMinRoundsBurst : kMinRoundsSustained);
  race(racers, options, options.budget_s, progress);

  ShapeRecord record;
  record.conditions = sampler.stop();
  if (!sampler.problem().empty()) note_once("no clocks, power or temperature: " + sampler.problem());
  for (const std::string& line : surprises(record.conditions, options.mode)) note_once(line);
  record.shape = shape;
  if (!options.form.epilogue.is_plain()) record.epilogue = to_string(options.form.epilogue);
  record.rotated_buffers = sets.count();
  for (Racer& racer : racers) {
    if (const std::string wrong = options.verified ? verify(racer) : ""; !wrong.empty()) {
      throw Error(fmt::format(
          "{} ({}) computed {} wrongly when it was run again after timing; its times do not count\n{}",
          racer.contestant.name, racer.contestant.variant, to_string(shape), wrong));
    }
    record.contestants.push_back({.name = racer.contestant.name,
                                  .variant = racer.contestant.variant,
                                  .epilogue = own_epilogue(racer.contestant, options),
                                  .kind = racer.contestant.kind,
                                  .samples_us = std::move(racer.samples_us)});
  }
  derive(record);
  return record;
}

}  // namespace harness
