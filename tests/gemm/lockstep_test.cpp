// The grid-wide barrier of step 20 by itself, and its version for later steps: no producer runs ahead, none
// waits for one that has left, and the counters are zero for the next launch.
#include "gemm/pipeline/lockstep.cuh"

#include <algorithm>
#include <vector>

#include "20_l2_lockstep/kernel.cuh"
#include "emulator/emulator_test.h"
#include "emulator/report/course_rules.h"

using namespace emulator_test;

namespace {

/// Each CTA walks its k-tiles. `begun` [CTA]: its k-tiles so far. As long as no CTA has left (one that leaves
/// arrives at all later barriers at once): `ahead`, how often a CTA got through though another one had not
/// arrived; `most`, the largest distance seen.
template <typename Lockstep, typename LockstepPlan>
__global__ void walk(LockstepPlan plan, const int* k_tiles, std::uint32_t* begun, std::uint32_t* ahead,
                     std::uint32_t* most) {
  if (threadIdx.x > 0) return;
  const int mine = ptx::ld_global(k_tiles + blockIdx.x);
  Lockstep lockstep(plan);
  for (int i = 1; i <= mine; ++i) {
    ptx::st_relaxed_gpu(begun + blockIdx.x, static_cast<std::uint32_t>(i));
    lockstep.before_k_tile();
    // The last barrier was before k-tile 2 + period * n; a CTA that arrived there has begun the one before.
    const int reached = i < 2 ? 0 : (i - 2) / plan.period * plan.period + 1;
    int last = i;
    bool all_here = true;
    for (unsigned other = 0; other < gridDim.x; ++other) {
      const int there = static_cast<int>(ptx::ld_relaxed_gpu(begun + other));
      if (other != blockIdx.x && there >= ptx::ld_global(k_tiles + other)) all_here = false;
      if (there < last) last = there;
    }
    if (!all_here) continue;
    if (last < reached) ptx::red_add_relaxed_gpu(ahead, 1);
    if (i - last > static_cast<int>(ptx::ld_relaxed_gpu(most)))
      ptx::st_relaxed_gpu(most, static_cast<std::uint32_t>(i - last));
  }
  lockstep.leave();
}

struct Walk {
  Outcome outcome;
  std::uint32_t ahead = 0;
  std::uint32_t most = 0;
  std::vector<std::uint32_t> counters;
};

/// `barriers`: of the plan; -1: as many as the CTA with the most k-tiles needs.
template <typename Lockstep, typename LockstepPlan>
Walk run_walk(const std::vector<int>& k_tiles, int period, int launches, int barriers = -1) {
  const int longest = *std::max_element(k_tiles.begin(), k_tiles.end());
  const DeviceArray<std::uint32_t> counters(std::vector<std::uint32_t>{0, 0}, "counters");
  const DeviceArray<int> lengths(k_tiles, "k_tiles");
  const DeviceArray<std::uint32_t> seen(std::vector<std::uint32_t>{0, 0}, "seen");
  const ptx::LaunchShape shape{.grid = {static_cast<unsigned>(k_tiles.size())},
                               .block = {32},
                               .cluster = {},
                               .shared_bytes = 0,
                               .co_resident = true};
  const LockstepPlan plan{counters.get(), period, barriers < 0 ? gemm::ceil_div(longest, period) : barriers};
  Walk walked;
  // What the test itself counts is read without any order.
  const emulator::ScopedCourseRule off(emulator::CourseRule::kRelaxedOrder, false);
  for (int launch = 0; launch < launches; ++launch) {
    const DeviceArray<std::uint32_t> begun(std::vector<std::uint32_t>(k_tiles.size(), 0), "begun");
    walked.outcome = run(walk<Lockstep, LockstepPlan>, shape, plan, lengths.get(), begun.get(), seen.get(),
                         seen.get() + 1);
    if (walked.outcome.rule != "passed") return walked;
  }
  walked.ahead = seen.host()[0];
  walked.most = seen.host()[1];
  walked.counters = counters.host();
  return walked;
}

template <typename Lockstep, typename LockstepPlan>
void check_walks() {
  std::uint32_t most = 0;
  for (const std::vector<int>& k_tiles :
       {std::vector<int>{9, 9, 9}, {1, 9, 4}, {0, 8, 5}, {7}, {2, 1, 0, 3}, {1, 1}, {12, 3, 12, 11}}) {
    for (const int period : {2, 3, 4}) {
      const int longest = *std::max_element(k_tiles.begin(), k_tiles.end());
      INFO(k_tiles.size() << " CTAs, at most " << longest << " k-tiles, period " << period);
      under_all_schedules([&] {
        const Walk walked = run_walk<Lockstep, LockstepPlan>(k_tiles, period, 2);
        INFO(walked.outcome.report);
        REQUIRE(walked.outcome.rule == "passed");
        CHECK(walked.ahead == 0);
        CHECK(walked.counters == std::vector<std::uint32_t>{0, 0});
        CHECK(walked.most <= static_cast<std::uint32_t>(period));
        most = std::max(most, walked.most);
      });
    }
  }
  CHECK(most > 1);  // CTAs do drift apart between barriers; otherwise this shows nothing
}

}  // namespace

TEST_CASE("lockstep: no CTA runs ahead of a barrier, and the counters are zero behind every launch") {
  check_walks<gemm::step_20::Lockstep, gemm::step_20::LockstepPlan>();
}

TEST_CASE("lockstep, as later steps have it: no CTA runs ahead, and the counters are zero") {
  check_walks<gemm::Lockstep, gemm::LockstepPlan>();
}

TEST_CASE("lockstep: a plan with too few barriers keeps the others waiting when a CTA leaves") {
  // 10 k-tiles, period 4: three barriers, not two.
  const auto rule = [](int barriers) {
    return run_walk<gemm::step_20::Lockstep, gemm::step_20::LockstepPlan>({1, 10}, 4, 1, barriers)
        .outcome.rule;
  };
  CHECK(rule(2) == "livelock");
  CHECK(rule(3) == "passed");
}
