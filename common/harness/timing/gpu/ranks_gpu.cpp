// harness/timing/ranks.h for the GPU.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <thread>

#include "harness/backend/backend.h"
#include "harness/backend/cuda_check.h"
#include "harness/timing/clock.h"
#include "harness/timing/cuda_event.h"
#include "harness/timing/gpu/delay.h"
#include "harness/timing/gpu/meet.h"
#include "harness/timing/ranks.h"

namespace harness {
namespace {

constexpr int kRankRounds = 15;            // at least
constexpr double kStableInterval = 0.005;  // relative width of the median's interval: good enough to stop
constexpr double kEpochDelayUs = 300;      // covers the host's time to enqueue one epoch of all ranks

class RankTimer {
 public:
  explicit RankTimer(RankRun& run) : run_(run) {
    if (ranks().count() > kMostRanks) throw Error(fmt::format("at most {} ranks can be timed", kMostRanks));
    for (int rank = 0; rank < ranks().count(); ++rank) {
      ranks().enter(rank);
      constexpr std::size_t kPlaceBytes = kMostRanks * sizeof(std::uint32_t);
      void* memory = nullptr;
      check_cuda(cudaMalloc(&memory, kPlaceBytes), "allocating the flags of a barrier of ranks");
      place_.words[rank] = static_cast<std::uint32_t*>(memory);
      check_cuda(cudaMemset(memory, 0, kPlaceBytes), "zeroing the flags of a barrier of ranks");
      load_meeting();
      launch_delay(ranks().stream(rank, RankStream::kSend), 1);
      starts_.push_back(std::make_unique<CudaEvent>());
      stops_.push_back(std::make_unique<CudaEvent>());
    }
    ranks().synchronize();
  }
  ~RankTimer() {
    for (std::uint32_t* memory : place_.words) cudaFree(memory);
    cudaGetLastError();
  }
  RankTimer(const RankTimer&) = delete;
  RankTimer& operator=(const RankTimer&) = delete;

  /// Microseconds of the slowest rank.
  double sample(const gemm::RankLauncher& launcher, double idle_ms) {
    ranks().synchronize();
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(idle_ms));
    gemm::RankLauncher timed = launcher;
    bool all_timed = true;
    for (int rank = 0; rank < ranks().count(); ++rank) all_timed = all_timed && run_.is_timed(rank);
    timed.before = [&](int rank, std::uint32_t epoch, gemm::ptx::Stream stream) {
      launch_delay(stream, kEpochDelayUs);
      if (launcher.before) launcher.before(rank, epoch, stream);
    };
    timed.run = [&](int rank, std::uint32_t epoch, gemm::ptx::Stream stream) {
      if (all_timed) launch_meeting(place_, rank, ranks().count(), epoch, stream);
      starts_[static_cast<std::size_t>(rank)]->record(stream);
      if (launcher.run) launcher.run(rank, epoch, stream);
    };
    timed.after = [&](int rank, std::uint32_t epoch, gemm::ptx::Stream stream) {
      stops_[static_cast<std::size_t>(rank)]->record(stream);
      if (launcher.after) launcher.after(rank, epoch, stream);
    };
    run_.start(timed, RankRun::Readers::kBeside, {});
    ranks().synchronize();
    double slowest = 0;
    for (int rank = 0; rank < ranks().count(); ++rank) {
      if (!run_.is_timed(rank)) continue;
      const auto i = static_cast<std::size_t>(rank);
      slowest = std::max(slowest, stops_[i]->microseconds_since(*starts_[i]));
    }
    return slowest;
  }

 private:
  const Ranks& ranks() const { return run_.ranks(); }

  RankRun& run_;
  MeetingPlace place_;
  std::vector<std::unique_ptr<CudaEvent>> starts_, stops_;
};

/// Twice, with all that is written poisoned before: the first time loads the kernels, in the second time
/// nothing waits for that.
void verify_contestant(RankRun& run, const RankContestant& contestant) {
  if (!contestant.has_result) return;
  run.poison();
  run.start(contestant.launcher, RankRun::Readers::kApart, {});
  run.ranks().synchronize();
  run.start(contestant.launcher, RankRun::Readers::kBeside, {});
  run.ranks().synchronize();
  const CheckResult result = run.check();
  if (!result.ok)
    throw Error(fmt::format("{} is wrong; its times do not count\n{}", contestant.variant, result.report));
}

bool all_stable(const std::vector<RankContestant>& contestants) {
  return std::all_of(contestants.begin(), contestants.end(), [](const RankContestant& contestant) {
    const Ratio interval = median_interval(contestant.samples_us);
    return interval.high - interval.low < kStableInterval * interval.median;
  });
}

}  // namespace

void time_ranks(RankRun& run, std::vector<RankContestant>& contestants, const TimingOptions& options) {
  RankTimer timer(run);
  for (const RankContestant& contestant : contestants) verify_contestant(run, contestant);
  std::vector<std::size_t> order(contestants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(options.seed);
  const auto start = Clock::now();
  const auto enough = [&](int rounds) {
    if (options.rounds > 0) return rounds >= options.rounds;
    if (rounds < kRankRounds) return false;
    return seconds_since(start) > options.budget_s || all_stable(contestants);
  };
  for (int round = 0; !enough(round); ++round) {
    if (options.progress) options.progress(fmt::format("round {}", round + 1));
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order)
      contestants[i].samples_us.push_back(timer.sample(contestants[i].launcher, options.idle_ms));
  }
  for (const RankContestant& contestant : contestants) verify_contestant(run, contestant);

  const auto reference =
      std::find_if(contestants.begin(), contestants.end(),
                   [](const RankContestant& contestant) { return contestant.is_reference; });
  for (RankContestant& contestant : contestants) {
    contestant.median_us = quantile(contestant.samples_us, 0.5);
    contestant.q1_us = quantile(contestant.samples_us, 0.25);
    contestant.q3_us = quantile(contestant.samples_us, 0.75);
    if (reference == contestants.end()) continue;
    std::vector<double> ratios;  // within one round, so that a drift of the clock cancels
    for (std::size_t i = 0; i < contestant.samples_us.size(); ++i)
      ratios.push_back(reference->samples_us[i] / contestant.samples_us[i]);
    contestant.to_reference = median_interval(ratios);
    contestant.verdict = verdict_of(contestant.to_reference, ratios.size());
  }
}

void delay_rank(gemm::ptx::Stream stream, double microseconds) {
  launch_delay(stream, microseconds);
}

}  // namespace harness
