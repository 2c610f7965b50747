// The tiles of step 22 whose K is cut in a cluster, in as many parts as there can be: also where the model
// would choose others.
#include <algorithm>
#include <string>

#include "22_peak/choice.h"
#include "22_peak/split.cuh"
#include "emulator/emulator_test.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"

using namespace emulator_test;

namespace split_parts_test {

using emulator::Completion;
using gemm::step_22::kTiles;

struct Schedule {
  std::uint64_t seed;
  Completion completion;
};
constexpr Schedule kSchedules[] = {{1, Completion::kRandom},
                                   {1, Completion::kEarliest},
                                   {2, Completion::kRandom},
                                   {1, Completion::kLatest},
                                   {3, Completion::kRandom}};

/// What happened, summed over all plans.
struct Met {
  int plans = 0;
  int idle = 0;     // in which a CTA finishes nothing
  int unequal = 0;  // in which some CTAs have a k-tile more
  int clipped = 0;  // whose last tile is not a whole one
};

template <typename T>
void run_plan(Met& met, const gemm::Shape& shape, const gemm::FittedPlan& plan, const Schedule& schedule) {
  using Launch = gemm::step_22::SplitLaunch<T>;
  emulator::Options options;
  options.seed = schedule.seed;
  options.completion = schedule.completion;
  options.sm_count = 32;
  const emulator::ScopedOptions scope(options);
  INFO(T::kM << " x " << T::kN << " x " << T::kK << (plan.transposed ? ", transposed, " : ", ")
             << harness::to_string(shape) << ", " << plan.parts << " parts, seed " << schedule.seed
             << ", completion " << static_cast<int>(schedule.completion));
  harness::Workload workload(shape, harness::Pattern::kExact, 4);
  const gemm::Launcher launch = Launch::prepare(workload.gemm(), plan);
  for (int i = 1; i <= 2; ++i) {
    workload.poison();
    Outcome outcome{"passed", ""};
    try {
      launch(nullptr);
    } catch (const harness::EmulatorReport& report) {
      outcome = {report.rule(), report.what()};
    }
    INFO("launch " << i << "\n" << outcome.report);
    REQUIRE(outcome.rule == "passed");
    const harness::CheckResult result = workload.check({T::kM, T::kN, T::kK});
    INFO(result.report);
    REQUIRE(result.ok);
  }
  ++met.plans;
  const int units = gemm::step_22::kUnits<T>;
  met.idle += (plan.parts - 1) * gemm::step_22::units_of_one<T>(plan.parts) >= units;
  met.unequal += gemm::ceil_div(shape.k, T::kK) % plan.parts != 0;
  met.clipped += (plan.transposed ? shape.n : shape.m) % T::kM != 0;
}

/// One tile and two, either way round, with K that no number of parts divides, or as short as it can be.
template <std::size_t kNumber>
void run_tile(Met& met) {
  constexpr gemm::step_22::FittedTile kTile = kTiles[kNumber];
  if constexpr (kTile.split) {
    using T = gemm::WgmmaTiling<kTile.m, kTile.n, kTile.k, kTile.warpgroups>;
    for (int parts = 1; parts <= gemm::step_22::kMostParts; ++parts) {
      for (const bool transposed : {false, true}) {
        const int number = met.plans;
        const int rows = (1 + number % 2) * T::kM - std::array{0, 8, 56}[number % 3];
        const int columns = (1 + number / 2 % 2) * T::kN - std::array{0, 8, 24, 40}[number / 3 % 4];
        const int k_tiles = std::array{parts, parts + 1, 2 * parts - 1, 11}[number % 4];
        const int k = std::max(k_tiles, parts) * T::kK - std::array{0, 8, 40}[number % 3];
        // One row or column more than a multiple of 8 where D's rows allow it.
        const gemm::Shape shape =
            transposed ? gemm::Shape{columns - 3, rows, k} : gemm::Shape{rows - 5, columns, k};
        run_plan<T>(met, shape, {.transposed = transposed, .parts = parts},
                    kSchedules[number % std::size(kSchedules)]);
      }
    }
  }
}

TEST_CASE("split: every tile, in every number of parts, either way round, twice", "[slow]") {
  Met met;
  [&]<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    (run_tile<kNumbers>(met), ...);
  }
  (std::make_index_sequence<kTiles.size()>());
  int split = 0;
  for (const gemm::step_22::FittedTile& tile : kTiles) split += tile.split;
  CHECK(met.plans == split * gemm::step_22::kMostParts * 2);
  CHECK(met.idle > 10);
  CHECK(met.unequal > 30);
  CHECK(met.clipped > 30);
}

}  // namespace split_parts_test
