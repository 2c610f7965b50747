// Step 21's kernel with plans that no host would choose: widths, clusters, pieces, periods and edges that
// have nothing to do with each other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "21_fitted_tiles/kernel.cuh"
#include "emulator/emulator_test.h"
#include "emulator/memory/device_memory.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "plans.h"

using namespace emulator_test;

namespace fitted_plans_test {

using gemm::ClusterShape;
using gemm::FittedPlan;

/// Tiles of kM x kN, as many stages as are asked for.
template <int kM, int kN, int kWarpgroups, int kGroups, int kStages>
struct Cell {
  using T = gemm::WgmmaTiling<kM, kN, 64, kWarpgroups>;
  using Launch = gemm::FittedLaunch<gemm::step_21::fitted_kernel<T, kStages, kGroups>, T,
                                    gemm::step_21::Shared<T, kStages, kGroups>,
                                    gemm::Roles<T, kGroups * kWarpgroups>::kThreads>;
  static constexpr int kRing = kStages;
};

/// What happened, summed over all plans that a test ran.
struct Met {
  int pieces = 0;          // work tiles whose partials are stored
  int single_k_tiles = 0;  // those of one k-tile
  int two_tiles = 0;       // ranges that begin in one tile and end in another
  int most_arrivals = 0;   // of the workers of one tile
  int outside = 0;         // plans in which a CTA of a cluster has a tile wholly outside D
  int one_row = 0;         // plans whose last tile has a single row
  int transposed = 0;
  int periods = 0;  // plans with a lockstep
};

/// The counters at the beginning of every workspace that is there.
bool counters_are_zero() {
  for (std::size_t slot = 0; slot < emulator::device_space.slots; ++slot) {
    const emulator::Buffer* const buffer = emulator::device_space.buffers[slot];
    if (buffer == nullptr || buffer->name != "workspace") continue;
    std::vector<unsigned char> counters(
        std::min(buffer->bytes, gemm::FixUp<gemm::WgmmaTiling<64, 64, 64, 1>>::kCounterBytes));
    emulator::copy_out(counters.data(), reinterpret_cast<const void*>(buffer->begin), counters.size());
    if (std::any_of(counters.begin(), counters.end(), [](unsigned char byte) { return byte != 0; }))
      return false;
  }
  return true;
}

/// A shape and a plan: `rows` and `columns` of the tiles' matrix, D or D transposed.
struct Case {
  int rows;
  int columns;
  int k;
  FittedPlan plan;
};

template <typename C>
void note(Met& met, const Case& one, const gemm::Decomposition& all) {
  using T = typename C::T;
  for (int worker = 0; worker < all.workers; ++worker) {
    gemm::TileScheduler scheduler(all, worker);
    for (gemm::WorkTile work; scheduler.next(work);) {
      if (work.count() == all.k_tiles) continue;
      ++met.pieces;
      met.single_k_tiles += work.count() == 1;
    }
    if (worker >= all.ranges()) continue;
    met.two_tiles += all.range_begin(worker) / all.k_tiles != (all.range_begin(worker + 1) - 1) / all.k_tiles;
  }
  for (int tile = 0; tile < all.stream_k_tiles; ++tile) {
    const int first = all.worker_at(tile * all.k_tiles);
    met.most_arrivals = std::max(met.most_arrivals, all.worker_at((tile + 1) * all.k_tiles - 1) - first + 1);
  }
  const auto hangs_over = [](int size, int tile, int ctas) { return gemm::ceil_div(size, tile) % ctas != 0; };
  met.outside +=
      hangs_over(one.rows, T::kM, one.plan.cluster.m) || hangs_over(one.columns, T::kN, one.plan.cluster.n);
  met.one_row += one.rows % T::kM == 1 || one.columns % T::kN == 1;
  met.transposed += one.plan.transposed;
  met.periods += one.plan.lockstep > 0;
}

/// Runs the plan three times on one workspace, D poisoned before each, and verifies every time.
template <typename C>
void run_plan(Met& met, const Case& one, const Schedule& schedule) {
  using T = typename C::T;
  const FittedPlan& plan = one.plan;
  const gemm::Shape shape =
      plan.transposed ? gemm::Shape{one.columns, one.rows, one.k} : gemm::Shape{one.rows, one.columns, one.k};
  const emulator::ScopedOptions scope(options_of(schedule, plan.workers * plan.cluster.ctas()));
  INFO(T::kM << " x " << T::kN << (plan.transposed ? ", transposed, " : ", ") << harness::to_string(shape)
             << ", cluster " << plan.cluster.m << " x " << plan.cluster.n << ", " << plan.workers
             << " workers, " << plan.stream_k_tiles << " stream-K tiles, raster group " << plan.raster_group
             << ", lockstep " << plan.lockstep << ", seed " << schedule.seed << ", completion "
             << static_cast<int>(schedule.completion));
  const gemm::Decomposition all = C::Launch::decomposition(shape, plan);
  REQUIRE(all.workers == plan.workers);
  REQUIRE(plan.stream_k_tiles <= all.tiles);
  note<C>(met, one, all);
  harness::Workload workload(shape, harness::Pattern::kExact, 4);
  const gemm::Launcher launch = C::Launch::prepare(workload.gemm(), plan);
  for (int i = 1; i <= 3; ++i) {
    INFO("launch " << i);
    verify_launch(workload, launch, {T::kM, T::kN, T::kK});
    CHECK(counters_are_zero());
  }
}

/// 1 to 7 workers, each with one plan for every cluster: the other choices change from plan to plan, each at
/// a pace of its own.
template <typename C>
Met run_plans(const std::vector<ClusterShape>& clusters) {
  using T = typename C::T;
  Met met;
  int number = 0;
  for (const ClusterShape& cluster : clusters) {
    REQUIRE(gemm::shares_columns(cluster, T::kN));
    for (int workers = 1; workers <= 7; ++workers, ++number) {
      if (workers * cluster.ctas() > 16) continue;
      const bool transposed = number % 2 == 1;
      // Whole tiles, and one that is 1 row high; the edge along N is a multiple of 8.
      const int row_tiles = 1 + number % 3;
      const int column_tiles = 1 + number / 3 % 3;
      const int row_edge = transposed ? 8 : 1;
      const int column_edge = transposed ? (number % 5 == 0 ? T::kN - 3 : 1) : std::min(8, T::kN);
      Case one{row_tiles * T::kM + (number % 4 < 3 ? row_edge : T::kM - 8) - (row_tiles > 1 ? T::kM : 0),
               column_tiles * T::kN + column_edge - (number % 2 == 0 ? T::kN : 0),
               0,
               {}};
      one.columns = std::max(one.columns, 8);
      if (transposed) one.rows = (one.rows + 7) / 8 * 8;
      if (!transposed) one.columns = (one.columns + 7) / 8 * 8;
      const int k_tiles = std::vector<int>{1, 2, C::kRing + 1, 2 * C::kRing + 1, 5}[number % 5];
      one.k = k_tiles * T::kK - (number % 3 == 0 ? 24 : 0);
      one.plan = {.transposed = transposed,
                  .cluster = cluster,
                  .workers = workers,
                  .raster_group = 1 + number % 2,
                  .lockstep = std::vector<int>{0, 2, 0, 16}[number % 4]};
      const gemm::Shape shape =
          transposed ? gemm::Shape{one.columns, one.rows, one.k} : gemm::Shape{one.rows, one.columns, one.k};
      const int tiles = C::Launch::grid(shape, one.plan).count();
      one.plan.stream_k_tiles = std::vector<int>{tiles, 1, (tiles + 1) / 2, 0, tiles}[number / 2 % 5];
      run_plan<C>(met, one, kSchedules[number % 5]);
    }
  }
  return met;
}

void check_met(const Met& met) {
  CHECK(met.pieces > 10);
  CHECK(met.single_k_tiles > 0);
  CHECK(met.two_tiles > 0);
  CHECK(met.most_arrivals > 2);
  CHECK(met.one_row > 0);
  CHECK(met.transposed > 2);
  CHECK(met.periods > 2);
}

TEST_CASE("21_fitted_tiles, plans: a width of 8", "[slow]") {
  const Met met = run_plans<Cell<64, 8, 1, 2, 3>>({{1, 1}, {1, 2}, {1, 4}});
  check_met(met);
  CHECK(met.outside > 2);
}

TEST_CASE("21_fitted_tiles, plans: a width of 40", "[slow]") {
  const Met met = run_plans<Cell<128, 40, 1, 2, 3>>({{1, 1}, {1, 2}});
  check_met(met);
  CHECK(met.outside > 2);
}

TEST_CASE("21_fitted_tiles, plans: a width of 72", "[slow]") {
  check_met(run_plans<Cell<64, 72, 1, 2, 4>>({{1, 1}, {1, 4}}));
}

TEST_CASE("21_fitted_tiles, plans: a width of 104", "[slow]") {
  check_met(run_plans<Cell<128, 104, 2, 1, 3>>({{1, 1}, {1, 2}}));
}

TEST_CASE("21_fitted_tiles, plans: a width of 168", "[slow]") {
  check_met(run_plans<Cell<256, 168, 2, 1, 3>>({{1, 1}, {1, 2}}));
}

TEST_CASE("21_fitted_tiles, plans: clusters of tiles below each other, and beside each other", "[slow]") {
  const Met met = run_plans<Cell<64, 64, 1, 2, 4>>({{2, 1}, {1, 2}, {4, 1}, {1, 4}});
  check_met(met);
  CHECK(met.outside > 4);
}

// Shares that lie wholly outside: a CTA that loaded nothing then was not waited for, and a peer that was a
// ring ahead released a stage to it twice before another had released it once.
TEST_CASE("21_fitted_tiles, plans: clusters in both directions", "[slow]") {
  const Met met = run_plans<Cell<64, 64, 1, 2, 4>>({{2, 2}, {4, 2}, {2, 4}});
  CHECK(met.outside > 4);
  CHECK(met.pieces > 5);
}

TEST_CASE("21_fitted_tiles, plans: clusters in both directions whose tiles all lie inside D", "[slow]") {
  for (const ClusterShape& cluster : {ClusterShape{2, 2}, ClusterShape{4, 2}, ClusterShape{2, 4}}) {
    for (int number = 0; number < 4; ++number) {
      const bool transposed = number % 2 == 1;
      Met met;
      const Case one{.rows = 64 * cluster.m * (1 + number % 2) - (number % 3 == 0 ? 8 : 0),
                     .columns = 64 * cluster.n * (1 + number / 2 % 2) - (transposed ? 3 : 0),
                     .k = 64 * (1 + 2 * (number % 3)) - (number % 2 == 0 ? 24 : 0),
                     .plan = {.transposed = transposed,
                              .cluster = cluster,
                              .stream_k_tiles = number % 3 == 2 ? 0 : 1,
                              .workers = 1 + number % 2,
                              .raster_group = 1,
                              .lockstep = number % 3 == 1 ? 2 : 0}};
      run_plan<Cell<64, 64, 1, 2, 4>>(met, one, kSchedules[number % 5]);
      CHECK(met.outside == 0);
    }
  }
}

// Two blocks of columns, of eight and of three; strips of four rows, of two and, in the last group, of one.
TEST_CASE("21_fitted_tiles, plans: tiles in strips that are whole and that are not", "[slow]") {
  for (int number = 0; number < 4; ++number) {
    const bool transposed = number % 2 == 1;
    Met met;
    const Case one{.rows = 64 * 7 - 16,
                   .columns = 8 * 11,
                   .k = 64 * (1 + number) - 24,
                   .plan = {.transposed = transposed,
                            .workers = 2 + number % 3,
                            .raster_group = 6,
                            .lockstep = number % 2 == 0 ? 4 : 2}};
    CHECK(one.plan.strips());
    run_plan<Cell<64, 8, 1, 2, 3>>(met, one, kSchedules[number % 5]);
  }
}

}  // namespace fitted_plans_test
