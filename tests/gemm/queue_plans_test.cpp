// Step 19's kernel with plans that its model would not choose: short tiles that are cut all the same. Rings
// that are not filled once, work tiles of a single k-tile, more slots than stages, entries of the queue that
// are written many times.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "19_work_queue/kernel.cuh"
#include "emulator/emulator_test.h"
#include "gemm/pipeline/work_queue.cuh"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "plans.h"

using namespace emulator_test;

namespace {

using gemm::Decomposition;
using gemm::TileScheduler;
using gemm::WorkTile;
using gemm::step_19::kQueueEntries;

/// What happens in a plan, summed over all plans that a test runs.
struct Met {
  int most_slots = 0;           // of the peers of one tile
  int single_k_tiles = 0;       // work tiles of one k-tile whose partials are stored or that are fixed up
  int behind_fixup = 0;         // work tiles of the same worker behind one that fixes up
  int whole_behind_stored = 0;  // whole tiles of a worker that has stored partials
  int most_entries = 0;         // of one CTA's queue
  int odd_entries = 0;          // CTAs with an odd number: the groups end with different counts
};

void note(Met& met, const Decomposition& all) {
  for (int worker = 0; worker < all.workers; ++worker) {
    TileScheduler scheduler(all, worker);
    bool stored = false;
    bool fixed_up = false;
    int entries = 0;
    for (WorkTile work; scheduler.next(work); ++entries) {
      if (fixed_up) ++met.behind_fixup;
      const int slots = work.slot >= 0 ? 0 : gemm::peers_of(all, work, worker).count();
      if (work.slot >= 0 || slots > 0) met.single_k_tiles += work.count() == 1;
      if (work.slot < 0 && slots == 0 && stored) ++met.whole_behind_stored;
      stored |= work.slot >= 0;
      fixed_up |= slots > 0;
      met.most_slots = std::max(met.most_slots, slots);
    }
    met.most_entries = std::max(met.most_entries, entries);
    met.odd_entries += entries % 2;
  }
}

/// Runs the plan three times on one workspace, D poisoned before each, and verifies every time; the flags
/// must be zero behind each.
template <typename T, int kStages, int kGroups>
void run_plan(const Decomposition& all, const Schedule& schedule) {
  constexpr auto* kKernel = gemm::step_19::work_queue_kernel<T, kStages, kGroups>;
  // Nearly whole tiles: all accumulators matter.
  const gemm::Shape shape{all.tiles * T::kM - 5, T::kN - 8, all.k_tiles * T::kK - 24};
  INFO(T::kM << " x " << T::kN << ": " << all.stream_k_tiles << " of " << all.tiles << " tiles of "
             << int{all.k_tiles} << " k-tiles are stream-K tiles, " << all.workers << " workers, seed "
             << schedule.seed);
  const emulator::ScopedOptions scope(options_of(schedule, all.workers));
  harness::Workload workload(shape, harness::Pattern::kExact, 4);
  const gemm::Gemm gemm = workload.gemm();
  const gemm::GroupedRaster raster(gemm::tile_grid<T>(shape), 2);
  const ptx::LaunchShape launch{.grid = {static_cast<unsigned>(all.workers)},
                                .block = {gemm::Roles<T, kGroups * T::kWarpgroups>::kThreads},
                                .cluster = {},
                                .shared_bytes = sizeof(gemm::step_19::Shared<T, kStages, kGroups>),
                                .co_resident = true};
  const std::size_t bytes = static_cast<std::size_t>(all.slots()) * gemm::Partials<T>::kBytesPerSlot;
  DeviceArray<unsigned char> workspace(std::max<std::size_t>(bytes, 16), "workspace");
  workspace.fill(0);
  const gemm::TileMaps maps = gemm::tile_maps<T>(gemm);
  const auto start = [&](ptx::Stream stream) {
    ptx::launch(kKernel, launch, stream, all, raster, workspace.get(), maps.a, maps.b, maps.d);
  };
  for (int i = 1; i <= 3; ++i) {
    INFO("launch " << i);
    verify_launch(workload, start, {T::kM, T::kN, T::kK});
    const std::vector<unsigned char> left = workspace.host();
    const std::size_t flags = static_cast<std::size_t>(all.slots() * T::kWarpgroups) * 4;
    CHECK(std::all_of(left.begin() + static_cast<std::ptrdiff_t>(bytes - flags),
                      left.begin() + static_cast<std::ptrdiff_t>(bytes),
                      [](unsigned char byte) { return byte == 0; }));
  }
}

/// 1 to 6 workers; 1, S - 1, S, S + 1 and 2 S + 1 k-tiles; one stream-K tile, two, about as many as workers;
/// alone, and with data-parallel tiles behind them. Each plan under one schedule, which changes from plan to
/// plan.
template <typename T, int kStages, int kGroups>
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
        note(met, all);
        run_plan<T, kStages, kGroups>(all, kSchedules[(number + which) % 5]);
      }
      number += 1 + (workers + k_tiles) % 3;
    }
  }
  // More workers than stages, each with one k-tile, all of one tile; and a queue that is written three times.
  for (const Decomposition& all : {Decomposition{1, kStages + 2, kStages + 2, 1, 1},
                                   Decomposition{3 * kQueueEntries * 2 - 1, 2, 2, 3, 1}}) {
    note(met, all);
    for (const Schedule& schedule : kSchedules) run_plan<T, kStages, kGroups>(all, schedule);
  }

  INFO(T::kM << " x " << T::kN);
  CHECK(met.most_slots > kStages);
  CHECK(met.single_k_tiles > 10);
  CHECK(met.behind_fixup > 0);
  CHECK(met.whole_behind_stored > 10);
  CHECK(met.most_entries > 2 * kQueueEntries);
  CHECK(met.odd_entries > 10);
}

}  // namespace

TEST_CASE("19_work_queue, plans: two warpgroups are one consumer group", "[slow]") {
  run_plans<gemm::step_19::Tile128x256, 4, 1>();
}

TEST_CASE("19_work_queue, plans: two consumer groups", "[slow]") {
  run_plans<gemm::step_19::Tile128x192, 4, 2>();
}

TEST_CASE("19_work_queue, plans: two consumer groups, smaller tiles, more stages", "[slow]") {
  run_plans<gemm::WgmmaTiling<128, 128, 64, 1>, 6, 2>();
}

namespace lesson_queue_test {

/// One work tile after the other, from the queue that `Filler` fills to the one that `Taker` takes from.
template <typename Filler, typename Taker>
__global__ void pass_work(int count, int* out) {
  static_assert(sizeof(Filler) == sizeof(Taker), "both are the same memory");
  auto& filler = ptx::dynamic_shared<Filler>();
  auto& taker = reinterpret_cast<Taker&>(filler);
  if (threadIdx.x == 0) {
    filler.init(1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    gemm::PipelineState<gemm::kQueueEntries> entry{0, 1};
    for (int i = 0; i < count; ++i) filler.enqueue(entry, {i + 1, {3 * i}}, {i, 2 * i, 5 * i, 7 * i});
    filler.enqueue(entry, {0, {0}}, {0, 0, 0, 0});
  } else if (threadIdx.x >= 32) {
    gemm::PipelineState<gemm::kQueueEntries> entry{0, 0};
    for (int i = 0;; ++i) {
      const auto first = taker.front(entry);
      if (first.k_tiles == 0) break;
      const auto last = taker.dequeue(entry, 1);
      const int sum = first.k_tiles + first.at.word + last.row + last.column + last.slot + last.peers;
      if (threadIdx.x == 32) ptx::st_global(out + i, sum);
    }
  }
}

template <typename Filler, typename Taker>
void check_queue() {
  constexpr int kCount = 3 * gemm::kQueueEntries + 1;
  DeviceArray<int> out(static_cast<std::size_t>(kCount));
  CHECK_PASSES(run(pass_work<Filler, Taker>, one_cta(64, sizeof(Filler)), kCount, out.get()));
  const std::vector<int> sums = out.host();
  for (int i = 0; i < kCount; ++i)
    CHECK(sums[static_cast<std::size_t>(i)] == 1 + (1 + 3 + 1 + 2 + 5 + 7) * i);
}

TEST_CASE("lesson and library: step 19's queue") {
  using Lesson = gemm::step_19::WorkQueue;
  using Library = gemm::WorkQueue<gemm::step_19::QueuedEpilogue>;
  check_queue<Lesson, Library>();
  check_queue<Library, Lesson>();
  for (int stage = 0; stage < 7; ++stage) {
    for (const std::uint32_t phase : {0u, 1u}) {
      const gemm::PipelineState<7> fill{stage, phase};
      const auto lesson = gemm::step_19::PackedState::filled_next(fill);
      CHECK(lesson.word == gemm::PackedState::filled_next(fill).word);
      const gemm::PipelineState<7> read = gemm::PackedState{lesson.word}.state<7>();
      CHECK((read.stage == stage && read.phase == (phase ^ 1)));
    }
  }
}

}  // namespace lesson_queue_test
