// When a kernel that polls can never end, and when it only takes its time.
#include <cstdint>
#include <vector>

#include "emulator/emulator_test.h"
#include "ptx/atomic.cuh"

namespace livelock_test {

using emulator_test::check_report;
using emulator_test::DeviceArray;
using emulator_test::one_cta;
using emulator_test::Outcome;
using emulator_test::run;
namespace ptx = gemm::ptx;

constexpr std::uint32_t kTries = 3000;

/// Two pollers; one of them asks three times in each of its circles.
__global__ void polls_in_circles(std::uint32_t* flags) {
  if (threadIdx.x == 0) {
    while (ptx::ld_relaxed_gpu(flags) == 0 && ptx::ld_relaxed_gpu(flags + 1) == 0 &&
           ptx::ld_acquire_gpu(flags + 2) == 0) {
    }
  }
  if (threadIdx.x == 32) {
    while (ptx::ld_acquire_gpu(flags + 1) == 0) {
    }
  }
}

/// Thread 0 gives up, and only then thread 32 may go on.
__device__ void give_up(std::uint32_t* flags) {
  ptx::st_release_gpu(flags + 1, 1);
}
__device__ void wait_for_thread_0(std::uint32_t* flags) {
  while (ptx::ld_acquire_gpu(flags + 1) == 0) {
  }
}

__global__ void counts_in_a_register(std::uint32_t* flags) {
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < kTries && ptx::ld_relaxed_gpu(flags) == 0;) ++i;
    give_up(flags);
  }
  if (threadIdx.x == 32) wait_for_thread_0(flags);
}

struct Shared {
  std::uint32_t count;
};

__global__ void counts_in_shared_memory(std::uint32_t* flags) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::st_shared(&shared.count, std::uint32_t{0});
    do {
      ptx::st_shared(&shared.count, ptx::ld_shared(&shared.count) + 1);
    } while (ptx::ld_relaxed_gpu(flags) == 0 && ptx::ld_shared(&shared.count) < kTries);
    give_up(flags);
  }
  if (threadIdx.x == 32) wait_for_thread_0(flags);
}

__global__ void counts_in_global_memory(std::uint32_t* flags, std::uint32_t* count) {
  if (threadIdx.x == 0) {
    do {
      ptx::st_global(count, ptx::ld_global(count) + 1);
    } while (ptx::ld_relaxed_gpu(flags) == 0 && ptx::ld_global(count) < kTries);
    give_up(flags);
  }
  if (threadIdx.x == 32) wait_for_thread_0(flags);
}

// Slow: under AddressSanitizer, whose fake stacks differ from round to round, only the limit of polls ends
// it.
TEST_CASE("livelock: whoever can run polls in circles", "[slow]") {
  DeviceArray<std::uint32_t> flags(std::vector<std::uint32_t>(4, 0), "flags");
  emulator_test::under_all_schedules([&] {
    check_report(run(polls_in_circles, one_cta(64), flags.get()), "livelock",
                 {"every thread that can run polls", "ld_acquire_gpu: flags + 4 holds 0"});
  });
}

TEST_CASE("a thread that counts its polls and gives up is in no circle, wherever it counts") {
  const std::vector<std::uint32_t> zeros(4, 0);
  emulator_test::under_all_schedules([&] {
    DeviceArray<std::uint32_t> first(zeros, "flags");
    CHECK(run(counts_in_a_register, one_cta(64), first.get()).rule == "passed");
    DeviceArray<std::uint32_t> second(zeros, "flags");
    CHECK(run(counts_in_shared_memory, one_cta(64, sizeof(Shared)), second.get()).rule == "passed");
    DeviceArray<std::uint32_t> third(zeros, "flags");
    DeviceArray<std::uint32_t> count(zeros, "count");
    CHECK(run(counts_in_global_memory, one_cta(64), third.get(), count.get()).rule == "passed");
  });
}

}  // namespace livelock_test
