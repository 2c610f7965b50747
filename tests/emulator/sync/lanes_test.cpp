// Instructions that wait for all lanes of a warp: no lane is behind one that another has left.
#include "emulator/hopper_test.h"
#include "emulator/report/course_rules.h"

namespace lanes_test {

using namespace emulator_test;

namespace {

struct Shared {
  std::uint64_t go;
  std::uint64_t done;
  int value;
};

enum Between { kFence, kWait, kBarArrive, kNothing, kSyncwarp };

/// Each round: all threads of a warpgroup wait for `go`; lane 0 of each warp arrives at `done` for all of
/// them.
__global__ void rounds(int between, int count) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.go, 1);
    ptx::mbarrier_init(&shared.done, 4);
  }
  __syncthreads();
  const bool drives = threadIdx.x / 32 == 4;
  for (int round = 0; round < count; ++round) {
    const auto parity = static_cast<std::uint32_t>(round & 1);
    if (drives) {
      if (threadIdx.x % 32 == 0) {
        ptx::mbarrier_arrive(&shared.go);
        wait(&shared.done, parity);
      }
      if (between == kBarArrive) ptx::bar_sync(1, 160);
      continue;
    }
    wait(&shared.go, parity);
    if (between == kFence) ptx::wgmma_fence();
    if (between == kWait) ptx::wgmma_wait_group<0>();
    if (between == kBarArrive) ptx::bar_arrive(1, 160);
    if (between == kSyncwarp) __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&shared.done);
  }
}

/// Lane 0 arrives behind a wgmma_fence that the other lanes come to only when it has arrived.
__global__ void waits_for_lane_0(int) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.go, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::wgmma_fence();
    ptx::mbarrier_arrive(&shared.go);
  } else {
    wait(&shared.go, 0);
    ptx::wgmma_fence();
  }
}

/// The same with lanes that end instead of coming.
__global__ void others_return(int) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.go, 1);
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    ptx::wgmma_fence();
    if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.go);
  }
}

/// Lane 0 lets another warp write what the other lanes have read.
__global__ void speaks_for_readers(int fence, int* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.go, 1);
    ptx::st_shared(&shared.value, 1);
  }
  __syncthreads();
  if (threadIdx.x / 32 == 4) {
    wait(&shared.go, 0);
    if (threadIdx.x % 32 == 0) ptx::st_shared(&shared.value, 2);
    return;
  }
  if (threadIdx.x / 32 == 0) ptx::st_global(out + threadIdx.x, ptx::ld_shared(&shared.value));
  if (fence != 0) ptx::wgmma_fence();
  if (fence == 2) __syncwarp();
  if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.go);
}

ptx::LaunchShape shape(unsigned threads) {
  return one_cta(threads, sizeof(Shared));
}

}  // namespace

TEST_CASE("lane 0 arrives for its warp behind an instruction that waits for all lanes") {
  CHECK_PASSES(run(rounds, shape(160), kFence, 9));
  CHECK_PASSES(run(rounds, shape(160), kWait, 9));
  CHECK_PASSES(run(rounds, shape(160), kBarArrive, 9));
  CHECK_PASSES(run(rounds, shape(160), kSyncwarp, 9));
}

TEST_CASE("deadlock: lane 0 arrives for its warp, and nothing waits for the other lanes") {
  std::set<std::string> rules;
  under_all_schedules([&] { rules.insert(run(rounds, shape(160), kNothing, 9).rule); });
  CHECK(rules.count("deadlock") == 1);
}

TEST_CASE("deadlock: lanes that come to the instruction only behind an arrival that comes behind it") {
  CHECK_BREAKS("deadlock", run(waits_for_lane_0, shape(128), 0));
  check_report(run(waits_for_lane_0, shape(128), 0), "deadlock",
               {"no lane of a warp leaves before all of them have reached it; still missing: threads 1-31",
                "wgmma_fence at"});
}

TEST_CASE("lanes that have returned are not waited for") {
  CHECK_PASSES(run(others_return, shape(128), 0));
}

TEST_CASE("shared-race: coming to an instruction together orders no memory") {
  DeviceArray<int> out(32);
  CHECK_BREAKS("shared-race", run(speaks_for_readers, shape(160), 1, out.get()));
  CHECK_BREAKS("shared-race", run(speaks_for_readers, shape(160), 0, out.get()));
  CHECK_PASSES(run(speaks_for_readers, shape(160), 2, out.get()));
}

TEST_CASE("release-for-warp: switched off, an instruction with .sync orders what lanes did before it") {
  const emulator::ScopedCourseRule off(emulator::CourseRule::kReleaseForWarp, false);
  DeviceArray<int> out(32);
  CHECK_PASSES(run(speaks_for_readers, shape(160), 1, out.get()));
  CHECK_BREAKS("shared-race", run(speaks_for_readers, shape(160), 0, out.get()));
}

}  // namespace lanes_test
