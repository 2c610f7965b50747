// The tiles of step 22 whose K is cut in a cluster, in as many parts as there can be: also where the model
// would choose others.
#include <algorithm>
#include <string>

#include "22_peak/split.cuh"
#include "22_peak/tiles.h"
#include "emulator/emulator_test.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "plans.h"

using namespace emulator_test;

namespace split_parts_test {

using gemm::step_22::kTiles;

/// What happened, summed over all plans.
struct Met {
  int plans = 0;
  int idle = 0;     // in which a CTA finishes nothing
  int unequal = 0;  // in which some CTAs have a k-tile more
  int clipped = 0;  // whose last tile is not a whole one
  int outside = 0;  // in which a CTA's tile lies wholly outside
  int wraps = 0;    // in which a CTA fills a stage twice
};

template <typename T>
void run_plan(Met& met, const gemm::Shape& shape, const gemm::FittedPlan& plan, const Schedule& schedule) {
  using Launch = gemm::step_22::SplitLaunch<T>;
  const emulator::ScopedOptions scope(options_of(schedule, 32));
  INFO(T::kM << " x " << T::kN << " x " << T::kK << (plan.transposed ? ", transposed, " : ", ")
             << harness::to_string(shape) << ", " << plan.parts << " parts, loads shared by "
             << plan.cluster.m << " x " << plan.cluster.n << ", seed " << schedule.seed << ", completion "
             << static_cast<int>(schedule.completion));
  harness::Workload workload(shape, harness::Pattern::kExact, 4);
  const gemm::Launcher launch = Launch::prepare(workload.gemm(), plan);
  for (int i = 1; i <= 2; ++i) {
    INFO("launch " << i);
    verify_launch(workload, launch, {T::kM, T::kN, T::kK});
  }
  ++met.plans;
  const int units = gemm::step_22::kUnits<T>;
  met.idle += (plan.parts - 1) * gemm::step_22::units_per_cta<T>(plan.parts) >= units;
  met.unequal += gemm::ceil_div(shape.k, T::kK) % plan.parts != 0;
  const int rows = plan.transposed ? shape.n : shape.m;
  const int columns = plan.transposed ? shape.m : shape.n;
  met.clipped += rows % T::kM != 0;
  met.outside += gemm::ceil_div(rows, T::kM) % plan.cluster.m != 0 ||
                 gemm::ceil_div(columns, T::kN) % plan.cluster.n != 0;
  met.wraps += gemm::ceil_div(shape.k, T::kK) / plan.parts > Launch::kStages;
}

/// One tile and two, either way round, with K that no number of parts divides, or as short as it can be.
template <std::size_t kNumber>
void run_tile(Met& met) {
  constexpr gemm::FittedTile kTile = kTiles[kNumber];
  if constexpr (kTile.split) {
    using T = gemm::WgmmaTiling<kTile.m, kTile.n, kTile.k, kTile.warpgroups>;
    for (int parts = 1; parts <= gemm::step_22::kMostParts<T>; ++parts) {
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

/// In clusters that share loads as well: as many tiles as share, one more or one fewer (but one at least of
/// each CTA's row or column), and rings that wrap.
template <std::size_t kNumber>
void run_shared(Met& met) {
  constexpr gemm::FittedTile kTile = kTiles[kNumber];
  if constexpr (kTile.split) {
    using T = gemm::WgmmaTiling<kTile.m, kTile.n, kTile.k, kTile.warpgroups>;
    constexpr int kStages = gemm::step_22::SplitLaunch<T>::kStages;
    for (const gemm::ClusterShape& cluster : {gemm::ClusterShape{2, 1}, gemm::ClusterShape{1, 2},
                                              gemm::ClusterShape{4, 1}, gemm::ClusterShape{1, 4}}) {
      if (!gemm::shares_columns(cluster, T::kN)) continue;
      for (int parts = 1; parts <= gemm::step_22::kMostParts<T> && parts * cluster.ctas() <= 8; ++parts) {
        const int number = met.plans;
        const bool transposed = number % 2 == 1;
        const auto tiles = [&](int ctas, int pace) { return ctas == 1 ? 1 : ctas + (number / pace) % 2; };
        const int rows = tiles(cluster.m, 2) * T::kM - std::array{0, 8, 56}[number % 3];
        const int columns = tiles(cluster.n, 3) * T::kN - std::array{0, 8, 24, 40}[number / 3 % 4];
        const int k_tiles =
            parts * std::array{1, kStages, kStages + 1, 2 * kStages + 1}[number % 4] + number % 3;
        const int k = k_tiles * T::kK - std::array{0, 8, 40}[number % 3];
        const gemm::Shape shape =
            transposed ? gemm::Shape{columns - 3, rows, k} : gemm::Shape{rows - 5, columns, k};
        run_plan<T>(met, shape, {.transposed = transposed, .cluster = cluster, .parts = parts},
                    kSchedules[number % std::size(kSchedules)]);
      }
    }
  }
}

TEST_CASE("split: every tile, with loads that several CTAs share, twice", "[slow]") {
  Met met;
  [&]<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    (run_shared<kNumbers>(met), ...);
  }
  (std::make_index_sequence<kTiles.size()>());
  CHECK(met.plans > 100);
  CHECK(met.outside > 20);
  CHECK(met.wraps > 20);
  CHECK(met.unequal > 20);
  CHECK(met.clipped > 30);
}

TEST_CASE("split: every tile, in every number of parts, either way round, twice", "[slow]") {
  Met met;
  [&]<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    (run_tile<kNumbers>(met), ...);
  }
  (std::make_index_sequence<kTiles.size()>());
  int parts = 0;
  for (const gemm::FittedTile& tile : kTiles) {
    if (!tile.split) continue;
    const int most = gemm::step_22::most_parts(tile.m, tile.n, tile.k, tile.warpgroups);
    CHECK(most == (tile.m == 128 && tile.n == 160 ? 7 : 8));  // 8 leave the others four stages
    parts += most;
  }
  CHECK(met.plans == parts * 2);
  CHECK(met.idle > 10);
  CHECK(met.unequal > 30);
  CHECK(met.clipped > 30);
}

}  // namespace split_parts_test
