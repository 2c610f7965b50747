// Launches: limits, places in the grid, determinism, options.
#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

#include "emulator/emulator_test.h"

namespace launch_test {

using namespace emulator_test;

namespace {

__global__ void nothing() {}

__global__ void places(unsigned* result) {
  const unsigned cta = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned all = blockDim.x * blockDim.y * blockDim.z;
  ptx::st_global(result + cta * all + thread, threadIdx.x | threadIdx.y << 4 | threadIdx.z << 8 |
                                                  blockIdx.x << 12 | blockIdx.y << 16 | blockIdx.z << 20);
}

__global__ void by_value(std::array<int, 3> values, int scalar, int* result) {
  values[threadIdx.x] += scalar;  // each thread has its own copy
  __syncthreads();
  ptx::st_global(result + threadIdx.x, values[0] + values[1] + values[2]);
}

__global__ void throws_something() {
  throw std::runtime_error("from inside");
}

/// The order in which the threads get to a counter.
__global__ void order(int* counter, int* result) {
  ptx::st_global(result + threadIdx.x, atomicAdd(counter, 1));
}

__global__ void racy(int* result) {
  __shared__ int words[256];
  ptx::st_shared(&words[threadIdx.x], 1);
  ptx::st_global(result + blockIdx.x * 256 + threadIdx.x,
                 ptx::ld_shared(&words[(threadIdx.x * 7 + 1) % 256]));
}

/// All CTAs meet at a counter: only possible if they run at the same time.
__global__ void grid_barrier(unsigned* counter, int* result) {
  if (threadIdx.x == 0) {
    atomicAdd(counter, 1u);
    while (atomicAdd(counter, 0u) < gridDim.x) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) ptx::st_global(result + blockIdx.x, 1);
}

struct Shared {
  int words[64];
};

__global__ void dynamic_per_cta(int* result) {
  Shared& shared = ptx::dynamic_shared<Shared>();
  ptx::st_shared(&shared.words[threadIdx.x], static_cast<int>(blockIdx.x));
  __syncthreads();
  ptx::st_global(result + blockIdx.x * 64 + threadIdx.x, ptx::ld_shared(&shared.words[63 - threadIdx.x]));
}

__global__ void static_per_cta(int* result) {
  __shared__ int words[64];
  ptx::st_shared(&words[threadIdx.x], static_cast<int>(blockIdx.x));
  __syncthreads();
  ptx::st_global(result + blockIdx.x * 64 + threadIdx.x, ptx::ld_shared(&words[63 - threadIdx.x]));
}

ptx::LaunchShape shape(ptx::Extent grid, ptx::Extent block, ptx::Extent cluster = {}, int shared = 0,
                       bool co_resident = false) {
  return {grid, block, cluster, shared, co_resident};
}

}  // namespace

TEST_CASE("launch-limits: a block has at most 1024 threads") {
  CHECK(run(nothing, shape({}, {1024})).rule == "passed");
  CHECK(run(nothing, shape({}, {1, 1024})).rule == "passed");
  CHECK(run(nothing, shape({}, {1025})).rule == "launch-limits");
  CHECK(run(nothing, shape({}, {33, 32})).rule == "launch-limits");
  CHECK(run(nothing, shape({}, {1, 1, 64})).rule == "passed");
  CHECK(run(nothing, shape({}, {1, 1, 65})).rule == "launch-limits");
  CHECK(run(nothing, shape({}, {0})).rule == "launch-limits");
}

TEST_CASE("launch-limits: a CTA has at most 227 KB of shared memory") {
  CHECK(run(nothing, shape({}, {1}, {}, 227 * 1024)).rule == "passed");
  check_report(run(nothing, shape({}, {1}, {}, 227 * 1024 + 1)), "launch-limits", {"232449 bytes"});
  CHECK(run(nothing, shape({}, {1}, {}, -1)).rule == "launch-limits");
}

TEST_CASE("launch-limits: the grid") {
  CHECK(run(nothing, shape({0}, {1})).rule == "launch-limits");
  CHECK(run(nothing, shape({1, 65536}, {1})).rule == "launch-limits");
  CHECK(run(nothing, shape({1, 1, 65536}, {1})).rule == "launch-limits");
  CHECK(run(nothing, shape({1, 65535}, {1})).rule == "passed");
}

TEST_CASE("launch-limits: clusters have at most 8 CTAs, or 16 if the kernel allows it, and divide the grid") {
  CHECK(run(nothing, shape({8}, {1}, {8})).rule == "passed");
  CHECK(run(nothing, shape({16}, {1}, {16})).rule == "launch-limits");
  const auto* const kernel = reinterpret_cast<const void*>(&nothing);
  emulator::allow_unportable_cluster(kernel, true);
  CHECK(run(nothing, shape({16}, {1}, {16})).rule == "passed");
  CHECK(run(nothing, shape({32}, {1}, {32})).rule == "launch-limits");
  emulator::allow_unportable_cluster(kernel, false);
  CHECK(run(nothing, shape({16}, {1}, {16})).rule == "launch-limits");
  CHECK(run(nothing, shape({9}, {1}, {2})).rule == "launch-limits");
  CHECK(run(nothing, shape({4, 3}, {1}, {2, 3})).rule == "passed");
  CHECK(run(nothing, shape({4, 4}, {1}, {2, 3})).rule == "launch-limits");
}

TEST_CASE("launch-limits: a co-resident grid fits on the SMs") {
  emulator::Options options;
  options.sm_count = 3;
  const emulator::ScopedOptions scope(options);
  CHECK(run(nothing, shape({6}, {1024}, {}, 0, true)).rule == "passed");
  CHECK(run(nothing, shape({7}, {1024}, {}, 0, true)).rule == "launch-limits");
  CHECK(run(nothing, shape({3}, {32}, {}, 200 * 1024, true)).rule == "passed");
  CHECK(run(nothing, shape({4}, {32}, {}, 200 * 1024, true)).rule == "launch-limits");
}

TEST_CASE("only the default stream exists") {
  CHECK_THROWS_AS(ptx::launch(nothing, one_cta(1), reinterpret_cast<ptx::Stream>(8)), harness::Error);
}

TEST_CASE("every thread of every CTA runs once and knows its place") {
  const ptx::Extent grid{5, 3, 2};
  const ptx::Extent block{3, 4, 5};
  DeviceArray<unsigned> result(30 * 60);
  CHECK_PASSES(run(places, shape(grid, block), result.get()));
  const std::vector<unsigned> values = result.host();
  std::size_t i = 0;
  for (unsigned bz = 0; bz < 2; ++bz)
    for (unsigned by = 0; by < 3; ++by)
      for (unsigned bx = 0; bx < 5; ++bx)
        for (unsigned tz = 0; tz < 5; ++tz)
          for (unsigned ty = 0; ty < 4; ++ty)
            for (unsigned tx = 0; tx < 3; ++tx) {
              const unsigned expected = tx | ty << 4 | tz << 8 | bx << 12 | by << 16 | bz << 20;
              if (values[i++] != expected) FAIL("thread " << i - 1);
            }
  // In clusters, all the same.
  CHECK(run(places, shape({4, 2, 2}, block, {2, 2, 1}), result.get()).rule == "passed");
}

TEST_CASE("parameters are copied for each thread") {
  DeviceArray<int> result(3);
  CHECK_PASSES(run(by_value, one_cta(3), std::array<int, 3>{10, 20, 30}, 5, result.get()));
  CHECK(result.host() == std::vector<int>{65, 65, 65});
}

TEST_CASE("an exception inside a kernel comes out of the launch") {
  CHECK_THROWS_AS(ptx::launch(throws_something, one_cta(64), nullptr), std::runtime_error);
  CHECK(run(nothing, one_cta(64)).rule == "passed");
}

TEST_CASE("a device function called on the host says so") {
  CHECK_THROWS_AS(__syncthreads(), harness::Error);
  int word = 0;
  CHECK_THROWS_AS(ptx::st_shared(&word, 1), harness::Error);
  CHECK_THROWS_AS(ptx::ld_global(&word), harness::Error);
}

TEST_CASE("the seed decides the schedule, and nothing else does") {
  auto schedule = [](std::uint64_t seed) {
    emulator::Options options;
    options.seed = seed;
    const emulator::ScopedOptions scope(options);
    DeviceArray<int> counter(std::vector<int>{0});
    DeviceArray<int> result(64);
    REQUIRE(run(order, one_cta(64), counter.get(), result.get()).rule == "passed");
    return result.host();
  };
  std::set<std::vector<int>> different;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CHECK(schedule(seed) == schedule(seed));
    different.insert(schedule(seed));
  }
  CHECK(different.size() == 20);
}

TEST_CASE("the same seed gives the same report, whatever runs in parallel") {
  DeviceArray<int> result(32 * 256);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::set<std::string> reports;
    for (const int os_threads : {1, 2, 4, 1, 3}) {
      emulator::Options options;
      options.seed = seed;
      options.os_threads = os_threads;
      const emulator::ScopedOptions scope(options);
      const Outcome outcome = run(racy, shape({32}, {256}), result.get());
      CHECK(outcome.rule == "shared-race");
      reports.insert(outcome.report);
    }
    CHECK(reports.size() == 1);
  }
}

TEST_CASE("co-resident CTAs run at the same time") {
  DeviceArray<int> result(8);
  CHECK_PASSES([&] {
    DeviceArray<unsigned> counter(std::vector<unsigned>{0});
    return run(grid_barrier, shape({8}, {32}, {}, 0, true), counter.get(), result.get());
  }());
  for (const int value : result.host()) CHECK(value == 1);
}

TEST_CASE("livelock: a CTA of an ordinary grid cannot wait for one that has not started") {
  emulator::Options options;
  options.os_threads = 1;
  const emulator::ScopedOptions scope(options);
  DeviceArray<unsigned> counter(std::vector<unsigned>{0});
  DeviceArray<int> result(4);
  check_report(run(grid_barrier, shape({4}, {32}), counter.get(), result.get()), "livelock",
               {"threads 1-31 wait at", "3 of the 4 CTAs have not started", "thread 0 polls at"});
}

TEST_CASE("each CTA has its own shared memory") {
  DeviceArray<int> result(16 * 64);
  auto check = [&](const Outcome& outcome) {
    INFO(outcome.report);
    CHECK(outcome.rule == "passed");
    const std::vector<int> values = result.host();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<int>(i / 64)) FAIL("element " << i);
    }
  };
  under_all_schedules([&] {
    check(run(static_per_cta, shape({16}, {64}), result.get()));
    check(run(static_per_cta, shape({16}, {64}, {2}), result.get()));
    check(run(static_per_cta, shape({16}, {64}, {}, 0, true), result.get()));
    check(run(dynamic_per_cta, shape({16}, {64}, {}, sizeof(Shared)), result.get()));
    check(run(dynamic_per_cta, shape({16}, {64}, {4}, sizeof(Shared)), result.get()));
    check(run(dynamic_per_cta, shape({16}, {64}, {}, sizeof(Shared), true), result.get()));
  });
}

TEST_CASE("the device describes itself") {
  emulator::Options options;
  options.sm_count = 7;
  const emulator::ScopedOptions scope(options);
  const harness::DeviceInfo info = harness::device_info();
  CHECK(info.is_emulator);
  CHECK(info.name == "emulator");
  CHECK(info.compute_capability == 90);
  CHECK(info.sm_count == 7);
  CHECK(info.shared_bytes_per_cta == 232448);
  CHECK(info.memory_bytes > 0);
}

}  // namespace launch_test
