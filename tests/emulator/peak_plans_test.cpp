// Step 22's kernel with plans that its model would not choose: short tiles that are cut all the same. Rings
// that are not filled once, pieces of a single k-tile, more slots than stages. And
// pairs of tiles on clusters.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "22_peak/kernel.cuh"
#include "emulator_test.h"
#include "harness/base/problem.h"
#include "harness/verify/workload.h"

namespace peak_plans_test {

using namespace emulator_test;

namespace {

using emulator::Completion;
using gemm::Decomposition;
using gemm::TileScheduler;
using gemm::WorkTile;
using gemm::step_22::SlotParts;

struct Schedule {
  std::uint64_t seed;
  Completion completion;
};
constexpr Schedule kSchedules[] = {{1, Completion::kRandom},
                                   {1, Completion::kEarliest},
                                   {2, Completion::kRandom},
                                   {1, Completion::kLatest},
                                   {3, Completion::kRandom}};

/// What happens in a plan, summed over all plans that a test runs.
struct Met {
  int fetched_slots = 0;      // most of one tile that come through the ring
  int added_slots = 0;        // most of one tile that consumers add
  int fetched_parts = 0;      // stages that the sums of one tile take
  int single_k_tiles = 0;     // pieces of one k-tile whose sums are passed on or added to
  int behind_fetched = 0;     // pieces of the same worker behind one that fetches
  int whole_behind_tape = 0;  // pieces that pass no sums, of plans with a tape
};

template <typename T>
void note(Met& met, const Decomposition& all, int teams) {
  for (int worker = 0; worker < all.workers; ++worker) {
    TileScheduler work(all, worker);
    WorkTile piece;
    WorkTile following;
    bool fetched_before = false;
    for (bool more = work.next(piece); more; piece = following) {
      more = work.next(following);
      if (fetched_before) ++met.behind_fetched;
      const int slots = piece.slot >= 0 ? 0 : gemm::peers_of(all, piece, worker).count();
      if (piece.slot >= 0 || slots > 0) met.single_k_tiles += piece.count() == 1;
      if (piece.slot < 0 && slots == 0) ++met.whole_behind_tape;
      if (slots == 0) continue;
      if (teams == 2 && more) {
        met.added_slots = std::max(met.added_slots, slots);
        continue;
      }
      fetched_before = true;
      met.fetched_slots = std::max(met.fetched_slots, slots);
      met.fetched_parts = std::max(met.fetched_parts, slots * SlotParts<T>::kCount);
    }
  }
}

/// Runs the plan three times on one workspace, D poisoned before each, and verifies every time; the flags
/// must be zero behind each.
template <typename T, int kStages, int kTeams, bool kStreamed>
void run_plan(const Decomposition& all, const Schedule& schedule) {
  constexpr auto* kKernel = gemm::step_22::peak_kernel<T, kStages, kTeams, gemm::Cluster<1, 1>, kStreamed>;
  // Nearly whole tiles: all sums matter. Where B streams through, every other plan has few rows: the rest of
  // a stage was cleared before the first k-tile, and sums come there later.
  const int k = all.k_tiles * T::kK - 24;
  const bool few_rows = kStreamed && all.k_tiles % 2 == 0;
  const gemm::Shape shape = kStreamed ? gemm::Shape{few_rows ? 5 : T::kM, all.tiles * T::kN - 24, k}
                                      : gemm::Shape{all.tiles * T::kM - 5, T::kN - 8, k};
  INFO(T::kM << " x " << T::kN << ": " << all.stream_k_tiles << " of " << all.tiles << " tiles of "
             << int{all.k_tiles} << " k-tiles as a tape, " << all.workers << " workers, seed "
             << schedule.seed);
  emulator::Options options;
  options.seed = schedule.seed;
  options.completion = schedule.completion;
  options.sm_count = all.workers;
  const emulator::ScopedOptions scope(options);
  harness::Workload workload(shape, harness::Pattern::kExact, 4);
  const gemm::Gemm gemm = workload.gemm();
  const int a_rows = kStreamed ? std::min(T::kM, gemm::ceil_div(shape.m, 8) * 8) : T::kM;
  const gemm::step_22::Plan plan{all, {gemm::tile_grid<T>(shape), 2}, a_rows};
  const ptx::LaunchShape launch{.grid = {static_cast<unsigned>(all.workers)},
                                .block = {gemm::Roles<T, kTeams * T::kWarpgroups>::kThreads},
                                .cluster = {},
                                .shared_bytes = sizeof(gemm::step_22::Shared<T, kStages, kTeams>),
                                .co_resident = true};
  const std::size_t bytes = static_cast<std::size_t>(all.slots()) * gemm::Partials<T>::kBytesPerSlot;
  DeviceArray<unsigned char> workspace(std::max<std::size_t>(bytes, 16), "workspace");
  workspace.fill(0);
  const ptx::TensorMap a_map = gemm::operand_map<T>(gemm.a, shape.m, shape.k, a_rows);
  const ptx::TensorMap b_map = gemm::operand_map<T>(gemm.b, shape.n, shape.k, T::kN);
  const ptx::TensorMap d_map = gemm::store_map(gemm.d, shape.m, shape.n);
  for (int i = 1; i <= 3; ++i) {
    workload.poison();
    const Outcome outcome =
        run(kKernel, launch, plan, gemm::step_22::Pace{}, workspace.get(), a_map, b_map, d_map);
    INFO("launch " << i << "\n" << outcome.report);
    REQUIRE(outcome.rule == "passed");
    const harness::CheckResult result = workload.check({T::kM, T::kN, T::kK});
    INFO(result.report);
    REQUIRE(result.ok);
    const std::vector<unsigned char> left = workspace.host();
    const std::size_t flags = static_cast<std::size_t>(all.slots() * T::kWarpgroups) * 4;
    CHECK(std::all_of(left.begin() + static_cast<std::ptrdiff_t>(bytes - flags),
                      left.begin() + static_cast<std::ptrdiff_t>(bytes),
                      [](unsigned char byte) { return byte == 0; }));
  }
}

/// 1 to 6 workers; 1, S - 1, S, S + 1 and 2 S + 1 k-tiles; a tape alone of one tile, of about as many tiles
/// as workers, of more; and whole tiles behind it. Each plan under one schedule, which
/// changes from plan to plan.
template <typename T, int kStages, int kTeams, bool kStreamed = false>
void run_plans() {
  Met met;
  int number = 0;
  for (int workers = 1; workers <= 6; ++workers) {
    for (const int k_tiles : {1, kStages - 1, kStages, kStages + 1, 2 * kStages + 1}) {
      const std::vector<Decomposition> plans{{1, k_tiles, workers, 1, 1},
                                             {2, k_tiles, workers, 2, 1},
                                             {workers + 1, k_tiles, workers, workers + 1, 1},
                                             {1 + workers, k_tiles, workers, 1, 1},
                                             {2 * workers + 1, k_tiles, workers, workers + 1, 1}};
      // Two of the five each time, so that every plan meets many numbers of k-tiles.
      for (const int which : {number % 5, (number + 2) % 5}) {
        const Decomposition& all = plans[static_cast<std::size_t>(which)];
        note<T>(met, all, kTeams);
        run_plan<T, kStages, kTeams, kStreamed>(all, kSchedules[(number + which) % 5]);
      }
      number += 1 + (workers + k_tiles) % 3;
    }
  }
  // More workers than stages, each with one k-tile, all of one tile.
  const Decomposition many{1, kStages + 2, kStages + 2, 1, 1};
  note<T>(met, many, kTeams);
  for (const Schedule& schedule : kSchedules) run_plan<T, kStages, kTeams, kStreamed>(many, schedule);

  INFO(T::kM << " x " << T::kN);
  CHECK(met.fetched_slots > kStages);
  CHECK(met.fetched_parts > kStages);
  CHECK(met.single_k_tiles > 10);
  CHECK(met.whole_behind_tape > 10);
  CHECK((met.behind_fetched > 0) == (kTeams == 1));
  CHECK((met.added_slots > 1) == (kTeams == 2));
}

/// Pairs of tiles on clusters of two CTAs, `rows` x `columns` tiles of `k_tiles` k-tiles, not all of them
/// whole: three launches, as in run_plan. Where `rows` is odd, the second tile of the
/// last pairs is outside D.
void run_pairs(int rows, int columns, int k_tiles, int clusters, int band, const Schedule& schedule) {
  using T = gemm::step_22::Tile128x256;
  using C = gemm::Cluster<2, 1>;
  constexpr int kStages = 4;
  constexpr auto* kKernel = gemm::step_22::peak_kernel<T, kStages, 1, C, false>;
  const gemm::Shape shape{rows * T::kM - 5, columns * T::kN - 8, k_tiles * T::kK - 24};
  const gemm::TileGrid grid = gemm::cluster_grid<T, C>(shape);
  INFO(rows << " x " << columns << " tiles of " << k_tiles << " k-tiles, " << grid.count() << " pairs, "
            << clusters << " clusters, bands of " << band << ", seed " << schedule.seed);
  REQUIRE(grid.count() == (rows + 1) / 2 * columns);
  emulator::Options options;
  options.seed = schedule.seed;
  options.completion = schedule.completion;
  options.sm_count = 2 * clusters;
  const emulator::ScopedOptions scope(options);
  harness::Workload workload(shape, harness::Pattern::kExact, 4);
  const gemm::Gemm gemm = workload.gemm();
  const gemm::step_22::Plan plan{{grid.count(), k_tiles, clusters, 0, 1}, {grid, band}, T::kM};
  const ptx::LaunchShape launch{.grid = {static_cast<unsigned>(2 * clusters)},
                                .block = {gemm::Roles<T, T::kWarpgroups>::kThreads},
                                .cluster = {2},
                                .shared_bytes = sizeof(gemm::step_22::Shared<T, kStages, 1>)};
  const ptx::TensorMap a_map = gemm::operand_map<T>(gemm.a, shape.m, shape.k, T::kM);
  const ptx::TensorMap b_map = gemm::operand_map<T>(gemm.b, shape.n, shape.k, T::kN / 2);
  const ptx::TensorMap d_map = gemm::store_map(gemm.d, shape.m, shape.n);
  for (int i = 1; i <= 3; ++i) {
    workload.poison();
    const Outcome outcome =
        run(kKernel, launch, plan, gemm::step_22::Pace{}, static_cast<void*>(nullptr), a_map, b_map, d_map);
    INFO("launch " << i << "\n" << outcome.report);
    REQUIRE(outcome.rule == "passed");
    const harness::CheckResult result = workload.check({T::kM, T::kN, T::kK});
    INFO(result.report);
    REQUIRE(result.ok);
  }
}

}  // namespace

TEST_CASE("22_peak, plans: pairs of tiles on clusters of two CTAs", "[slow]") {
  constexpr int kStages = 4;
  int number = 0;
  for (const int clusters : {1, 2, 3}) {
    for (const int k_tiles : {1, kStages - 1, kStages, kStages + 1, 2 * kStages + 1}) {
      // One tile, one pair, a pair that is cut off below one that is not, as many pairs as clusters and one
      // more, and several rounds; upright and flat.
      const std::vector<gemm::TileGrid> grids{
          {1, 1}, {2, 1}, {3, 1}, {1, clusters + 1}, {2 * clusters + 1, 1}, {3, clusters + 1}};
      // Two of the six each time, so that every grid meets many numbers of k-tiles.
      for (const int which : {number % 6, (number + 3) % 6}) {
        const gemm::TileGrid& grid = grids[static_cast<std::size_t>(which)];
        run_pairs(grid.m, grid.n, k_tiles, clusters, 1 + (number + which) % 3,
                  kSchedules[(number + which) % 5]);
      }
      ++number;
    }
  }
  // Every schedule: three rounds of one cluster, the last tile outside D.
  for (const Schedule& schedule : kSchedules) run_pairs(5, 1, kStages + 1, 1, 2, schedule);
}

TEST_CASE("22_peak, plans: two warpgroups on a tile, one team", "[slow]") {
  run_plans<gemm::step_22::Tile128x256, 4, 1>();
}

TEST_CASE("22_peak, plans: two teams", "[slow]") {
  run_plans<gemm::step_22::Tile128x192, 4, 2>();
}

TEST_CASE("22_peak, plans: two teams, smaller tiles, more stages", "[slow]") {
  run_plans<gemm::WgmmaTiling<128, 128, 64, 1>, 6, 2>();
}

TEST_CASE("22_peak, plans: B streams through", "[slow]") {
  run_plans<gemm::WgmmaTiling<64, 128, 64, 1>, 8, 1, true>();
}

TEST_CASE("22_peak, plans: B streams through in deep tiles, a slot is one part", "[slow]") {
  run_plans<gemm::WgmmaTiling<64, 64, 128, 1>, 6, 1, true>();
}

TEST_CASE("22_peak: the parts of a slot are all of it, and each fits into a stage") {
  const auto check = [](auto tiling) {
    using T = decltype(tiling);
    using Parts = SlotParts<T>;
    CHECK(Parts::kCount * Parts::kBytes == 4 * T::kM * T::kN);
    CHECK(Parts::kBytes <= static_cast<std::uint32_t>(gemm::WgmmaTiles<T>::kBytes));
    CHECK(Parts::kVectors * Parts::kCount == gemm::Partials<T>::kVectors);
  };
  check(gemm::step_22::Tile128x256{});
  check(gemm::step_22::Tile128x192{});
  check(gemm::WgmmaTiling<128, 128, 64, 1>{});
  check(gemm::WgmmaTiling<64, 128, 64, 1>{});
  check(gemm::WgmmaTiling<64, 64, 128, 1>{});
}

}  // namespace peak_plans_test
