// Step 22's meetings by themselves: nobody runs ahead, nobody waits for who has left, and the counters are
// zero for the next launch.
#include <algorithm>
#include <vector>

#include "22_peak/kernel.cuh"
#include "emulator_test.h"

namespace in_step_test {

using namespace emulator_test;

namespace {

using gemm::step_22::InStep;
using gemm::step_22::Pace;

/// Each CTA walks its k-tiles. `begun` [CTA]: its k-tiles so far. As long as nobody has left (who leaves
/// arrives at all later meetings at once): `ahead`, how often a CTA got through though another one had not
/// come to the meeting; `most`, the largest distance seen.
__global__ void walk(Pace pace, const int* k_tiles, std::uint32_t* begun, std::uint32_t* ahead,
                     std::uint32_t* most) {
  if (threadIdx.x > 0) return;
  const int mine = ptx::ld_global(k_tiles + blockIdx.x);
  InStep in_step(pace);
  for (int i = 1; i <= mine; ++i) {
    ptx::st_relaxed_gpu(begun + blockIdx.x, static_cast<std::uint32_t>(i));
    in_step.before_k_tile();
    // The last meeting was before k-tile 2 + period * n; who came to it has begun the one before.
    const int met = i < 2 ? 0 : (i - 2) / pace.period * pace.period + 1;
    int last = i;
    bool all_here = true;
    for (unsigned other = 0; other < gridDim.x; ++other) {
      const int there = static_cast<int>(ptx::ld_relaxed_gpu(begun + other));
      if (other != blockIdx.x && there >= ptx::ld_global(k_tiles + other)) all_here = false;
      if (there < last) last = there;
    }
    if (!all_here) continue;
    if (last < met) ptx::red_add_relaxed_gpu(ahead, 1);
    if (i - last > static_cast<int>(ptx::ld_relaxed_gpu(most)))
      ptx::st_relaxed_gpu(most, static_cast<std::uint32_t>(i - last));
  }
  in_step.leave();
}

struct Walk {
  Outcome outcome;
  std::uint32_t ahead = 0;
  std::uint32_t most = 0;
  std::vector<std::uint32_t> counters;
};

Walk run_walk(const std::vector<int>& k_tiles, int period, int launches) {
  const int longest = *std::max_element(k_tiles.begin(), k_tiles.end());
  const DeviceArray<std::uint32_t> counters(std::vector<std::uint32_t>{0, 0}, "counters");
  const DeviceArray<int> lengths(k_tiles, "k_tiles");
  const DeviceArray<std::uint32_t> seen(std::vector<std::uint32_t>{0, 0}, "seen");
  const ptx::LaunchShape shape{.grid = {static_cast<unsigned>(k_tiles.size())},
                               .block = {32},
                               .cluster = {},
                               .shared_bytes = 0,
                               .co_resident = true};
  Walk walked;
  for (int launch = 0; launch < launches; ++launch) {
    const DeviceArray<std::uint32_t> begun(std::vector<std::uint32_t>(k_tiles.size(), 0), "begun");
    const int meetings = period == 0 ? 0 : gemm::ceil_div(longest, period);
    walked.outcome = run(walk, shape, Pace{counters.get(), period, meetings}, lengths.get(), begun.get(),
                         seen.get(), seen.get() + 1);
    if (walked.outcome.rule != "passed") return walked;
  }
  walked.ahead = seen.host()[0];
  walked.most = seen.host()[1];
  walked.counters = counters.host();
  return walked;
}

}  // namespace

TEST_CASE("in step: nobody runs ahead of a meeting, and the counters are zero behind every launch") {
  std::uint32_t most = 0;
  for (const std::vector<int>& k_tiles :
       {std::vector<int>{9, 9, 9}, {1, 9, 4}, {0, 8, 5}, {7}, {2, 1, 0, 3}, {1, 1}, {12, 3, 12, 11}}) {
    for (const int period : {2, 3, 4}) {
      const int longest = *std::max_element(k_tiles.begin(), k_tiles.end());
      INFO(k_tiles.size() << " CTAs, at most " << longest << " k-tiles, period " << period);
      under_all_schedules([&] {
        const Walk walked = run_walk(k_tiles, period, 2);
        INFO(walked.outcome.report);
        REQUIRE(walked.outcome.rule == "passed");
        CHECK(walked.ahead == 0);
        CHECK(walked.counters == std::vector<std::uint32_t>{0, 0});
        CHECK(walked.most <= static_cast<std::uint32_t>(period));
        most = std::max(most, walked.most);
      });
    }
  }
  CHECK(most > 1);  // CTAs do drift apart between meetings; otherwise this shows nothing
}

TEST_CASE("in step: who promises too few meetings when he leaves keeps the others waiting") {
  const DeviceArray<std::uint32_t> counters(std::vector<std::uint32_t>{0, 0}, "counters");
  const DeviceArray<int> lengths(std::vector<int>{1, 10}, "k_tiles");
  const DeviceArray<std::uint32_t> begun(std::vector<std::uint32_t>{0, 0}, "begun");
  const DeviceArray<std::uint32_t> seen(std::vector<std::uint32_t>{0, 0}, "seen");
  const ptx::LaunchShape shape{
      .grid = {2}, .block = {32}, .cluster = {}, .shared_bytes = 0, .co_resident = true};
  // 10 k-tiles, period 4: three meetings, not two.
  const Outcome outcome =
      run(walk, shape, Pace{counters.get(), 4, 2}, lengths.get(), begun.get(), seen.get(), seen.get() + 1);
  CHECK(outcome.rule == "livelock");
}

}  // namespace in_step_test
