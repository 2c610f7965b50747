// The kernels of step 22 that are built for some plans only: each does what the one that is built for all
// does.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "emulator/emulator_test.h"
#include "gemm/fitted/fitted_kernel.cuh"
#include "gemm/fitted/fitted_launch.cuh"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "plans.h"

using namespace emulator_test;

namespace narrowed_kernels_test {

using gemm::BuiltFor;
using gemm::FittedPlan;

template <int kM, int kN, int kWarpgroups, int kGroups, int kStages>
struct Cell {
  using T = gemm::WgmmaTiling<kM, kN, 64, kWarpgroups>;
  template <bool kTransposed, BuiltFor kBuiltFor>
  using Launch =
      gemm::FittedLaunch<gemm::fitted_kernel<T, kStages, kGroups, kTransposed, kBuiltFor>, T,
                         gemm::FittedShared<T, kStages, kGroups>,
                         gemm::Roles<T, kGroups * kWarpgroups>::kThreads, gemm::FetchedPartials<T>>;

  /// Two launches of a plan on odd edges, D poisoned before each, under seeds 1 to `seeds`, earliest and
  /// latest.
  template <bool kTransposed, BuiltFor kBuiltFor>
  static void run(FittedPlan plan, int tiles_m, int tiles_n, int k, int seeds = 2) {
    plan.transposed = kTransposed;
    CHECK(plan.needs() <= kBuiltFor);
    const int rows = tiles_m * kM - 8;
    const int columns = tiles_n * kN - 24;
    const gemm::Shape shape =
        kTransposed ? gemm::Shape{columns - 3, rows, k} : gemm::Shape{rows - 3, columns, k};
    std::vector<Schedule> schedules = {{1, Completion::kEarliest}, {1, Completion::kLatest}};
    for (int seed = 1; seed <= seeds; ++seed)
      schedules.push_back({static_cast<std::uint64_t>(seed), Completion::kRandom});
    for (const Schedule& schedule : schedules) {
      const emulator::ScopedOptions scope(options_of(schedule, plan.workers * plan.cluster.ctas()));
      harness::Workload workload(shape, harness::Pattern::kExact, 4);
      const gemm::Launcher launch = Launch<kTransposed, kBuiltFor>::prepare(workload.gemm(), plan);
      for (int i = 1; i <= 2; ++i) {
        INFO(kM << " x " << kN << (kTransposed ? ", transposed" : "") << ", built for "
                << static_cast<int>(kBuiltFor) << ", launch " << i << ", seed " << schedule.seed);
        verify_launch(workload, launch, {kM, kN, 64});
      }
    }
  }
  template <BuiltFor kBuiltFor>
  static void run_both(const FittedPlan& plan, int tiles_m, int tiles_n, int k, int seeds = 2) {
    run<false, kBuiltFor>(plan, tiles_m, tiles_n, k, seeds);
    run<true, kBuiltFor>(plan, tiles_m, tiles_n, k, seeds);
  }
};

constexpr FittedPlan kWhole{.workers = 2, .raster_group = 2};
constexpr FittedPlan kLockstep{.workers = 3, .raster_group = 2, .lockstep = 4};

TEST_CASE("22_peak, kernels for whole tiles") {
  Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kWholeTiles>(kWhole, 3, 2, 520);
  Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kWholeTiles>(kLockstep, 5, 2, 328);
}

TEST_CASE("22_peak, kernels for whole tiles and stream-K tiles") {
  Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kStreamK>({.stream_k_tiles = 3, .workers = 5, .raster_group = 2},
                                                      3, 1, 520);
  Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kStreamK>({.stream_k_tiles = 1, .workers = 2, .raster_group = 2},
                                                      3, 1, 328);
}

TEST_CASE("22_peak, kernels for clusters") {
  Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kClusters>(
      {.cluster = {2, 1}, .stream_k_tiles = 1, .workers = 2, .raster_group = 1}, 5, 2, 328);
}

// In a cluster of two rows and two columns, the CTA in the other corner is nobody's peer: it may be slower
// than those that are. A stage of fetched partials must not be released to a peer that has not seen the phase
// before.
TEST_CASE("22_peak, fetched partials in clusters of four") {
  constexpr int kSeeds = 8;
  const FittedPlan cut{.cluster = {2, 2}, .stream_k_tiles = 1, .workers = 2, .raster_group = 1};
  Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kClusters>(cut, 2, 2, 584, kSeeds);
  Cell<128, 64, 2, 1, 4>::run_both<BuiltFor::kClusters>(cut, 2, 2, 584, kSeeds);
}

TEST_CASE("22_peak, in clusters whole tiles follow a tile that is cut") {
  const FittedPlan hybrid{.cluster = {2, 2}, .stream_k_tiles = 1, .workers = 2, .raster_group = 1};
  Cell<128, 64, 2, 1, 4>::run_both<BuiltFor::kClusters>(hybrid, 4, 5, 328);
}

TEST_CASE("22_peak, kernels for whole tiles in clusters") {
  for (const gemm::ClusterShape& cluster : {gemm::ClusterShape{2, 1}, gemm::ClusterShape{1, 2}}) {
    Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kWholeInClusters>(
        {.cluster = cluster, .workers = 2, .raster_group = 1}, 5, 3, 328);
  }
}

TEST_CASE("22_peak, kernels for clusters of eight", "[slow]") {
  for (const gemm::ClusterShape& cluster : {gemm::ClusterShape{2, 4}, gemm::ClusterShape{4, 2}}) {
    Cell<64, 64, 1, 2, 4>::run_both<BuiltFor::kWholeInClusters>(
        {.cluster = cluster, .stream_k_tiles = 0, .workers = 2, .raster_group = 1}, 5, 6, 328);
  }
}

TEST_CASE("22_peak, 128 x 192 in ping-pong, with all that a plan may need", "[slow]") {
  Cell<128, 192, 1, 2, 4>::run_both<BuiltFor::kWholeInClusters>(
      {.cluster = {2, 2}, .workers = 1, .raster_group = 1}, 2, 3, 328);
  Cell<128, 192, 1, 2, 4>::run_both<BuiltFor::kStreamK>(
      {.stream_k_tiles = 2, .workers = 3, .raster_group = 2}, 2, 1, 520);
  Cell<128, 192, 1, 2, 4>::run_both<BuiltFor::kWholeTiles>(kLockstep, 2, 2, 328);
}

TEST_CASE("22_peak, the tile that no plan puts into a cluster", "[slow]") {
  Cell<192, 256, 3, 1, 3>::run_both<BuiltFor::kWholeTiles>(kWhole, 2, 2, 328);
  Cell<192, 256, 3, 1, 3>::run_both<BuiltFor::kWholeTiles>(kLockstep, 3, 1, 520);
}

/// A fourth stage instead of a second chunk buffer; several tiles for each worker, of 3 and of 6 chunks.
template <int kM, int kN, int kWarpgroups>
void check_one_buffer() {
  using T = gemm::WgmmaTiling<kM, kN, 64, kWarpgroups>;
  static_assert(gemm::kChunkBuffers<T, kWarpgroups> == 1);
  static_assert(sizeof(gemm::FittedShared<T, 4, 1>) <= 227 * 1024);
  using OneBuffer = Cell<kM, kN, kWarpgroups, 1, 4>;
  OneBuffer::template run_both<BuiltFor::kWholeTiles>(kWhole, 3, 2, 328);
  OneBuffer::template run_both<BuiltFor::kStreamK>({.stream_k_tiles = 2, .workers = 3, .raster_group = 2}, 2,
                                                   1, 520);
  OneBuffer::template run_both<BuiltFor::kClusters>({.cluster = {1, 2}, .workers = 2, .raster_group = 1}, 3,
                                                    2, 264);
}

TEST_CASE("22_peak, tiles with one chunk buffer for each warpgroup: three warpgroups", "[slow]") {
  check_one_buffer<192, 192, 3>();
  check_one_buffer<192, 184, 3>();
}
TEST_CASE("22_peak, tiles with one chunk buffer for each warpgroup: two blocks of rows", "[slow]") {
  check_one_buffer<256, 144, 2>();
  check_one_buffer<256, 152, 2>();
}

}  // namespace narrowed_kernels_test
