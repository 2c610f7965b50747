// CTAs that wait for each other in a launch that is not cooperative.
#include <atomic>
#include <chrono>
#include <thread>

#include "emulator/emulator_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/atomic.cuh"

namespace co_residency_test {

using namespace emulator_test;
using emulator::CourseRule;
using emulator::ScopedCourseRule;

namespace {

/// What the kernel's CTAs tell each other behind the emulator's back, so that the wait is one.
std::atomic<int> asked{0};

constexpr int kQuestions = 8;

void wait_until_asked() {
  for (int i = 0; i < 20'000 && asked < kQuestions; ++i) {
    __nanosleep(1);
    std::this_thread::sleep_for(std::chrono::microseconds(500));  // the other CTA's OS thread may be late
  }
}

enum Roles { kByNumber, kByTicket };

/// One CTA raises a flag, the other waits for it.
__global__ void waits(std::uint32_t* words, int roles, int acquires) {
  std::uint32_t* const flag = words;
  std::uint32_t* const tickets = words + 32;
  const bool raises = roles == kByTicket ? atomicAdd(tickets, 1u) == 0 : blockIdx.x == 0;
  if (raises) {
    wait_until_asked();
    ptx::st_release_gpu(flag, 1);
    return;
  }
  while ((acquires != 0 ? ptx::ld_acquire_gpu(flag) : ptx::ld_relaxed_gpu(flag)) == 0) ++asked;
}

/// The same with a read-modify-write that asks.
__global__ void waits_by_add(std::uint32_t* words) {
  if (blockIdx.x == 0) {
    wait_until_asked();
    ptx::st_release_gpu(words, 1);
    return;
  }
  while (atomicAdd(words, 0u) == 0) ++asked;
}

/// Takes tickets until there are none, and the CTA that ends last sums up. No CTA waits.
__global__ void takes_tickets(std::uint32_t* words, int tickets, std::uint32_t* done) {
  while (atomicAdd(words, 1u) < static_cast<std::uint32_t>(tickets)) {
  }
  __threadfence();
  if (atomicAdd(words + 32, 1u) == gridDim.x - 1) ptx::st_global(done, 1u);
}

/// Looks into a word in between, and goes on in any case.
__global__ void looks_now_and_then(std::uint32_t* words, std::uint32_t* mine) {
  for (int i = 0; i < 50; ++i) {
    ptx::ld_relaxed_gpu(words);
    ++asked;
    ptx::st_release_gpu(mine + 32 * blockIdx.x, static_cast<std::uint32_t>(i));
    ptx::st_release_gpu(mine + 32 * blockIdx.x, static_cast<std::uint32_t>(i + 1));
    if (blockIdx.x == 0 && i == 25) ptx::st_relaxed_gpu(words, 1);
  }
}

/// A lock that each CTA takes and gives back: its holder has started.
__global__ void takes_a_lock(std::uint32_t* words) {
  for (int i = 0; i < 4; ++i) {
    while (atomicCAS(words, 0u, 1u) != 0) {
    }
    __threadfence();
    for (int pause = 0; pause < 20; ++pause) __nanosleep(1);
    __threadfence();
    atomicExch(words, 0u);
  }
}

const ptx::LaunchShape kTwo{.grid = {2}, .block = {1}, .cluster = {}};
const ptx::LaunchShape kTwoTogether{.grid = {2}, .block = {1}, .co_resident = true};

template <typename Body>
void at_once(Body body) {
  for (int seed = 1; seed <= 8; ++seed) {
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(seed);
    options.os_threads = 2;
    const emulator::ScopedOptions scope(options);
    INFO("seed " << seed);
    asked = 0;
    body();
  }
}

}  // namespace

TEST_CASE("co-residency: a CTA waits for another one, and the launch is not cooperative") {
  DeviceArray<std::uint32_t> words(64);
  const auto outcome_of = [&](const ptx::LaunchShape& shape, Roles roles, int acquires) {
    words.fill(0);
    return run(waits, shape, words.get(), static_cast<int>(roles), acquires);
  };
  for (const int acquires : {0, 1}) {
    at_once([&] {
      check_report(outcome_of(kTwo, kByNumber, acquires), "co-residency",
                   {"it held 0 until CTA (0,0,0) changed it to 1", "co_resident", "--allow co-residency"});
    });
    at_once([&] { CHECK(outcome_of(kTwoTogether, kByNumber, acquires).rule == "passed"); });
    at_once([&] {
      const ScopedCourseRule off(CourseRule::kCoResidency, false);
      CHECK(outcome_of(kTwo, kByNumber, acquires).rule == "passed");
    });
    // Whoever took an earlier ticket is there.
    at_once([&] { CHECK(outcome_of(kTwo, kByTicket, acquires).rule == "passed"); });
  }
  at_once([&] {
    words.fill(0);
    CHECK(run(waits_by_add, kTwo, words.get()).rule == "co-residency");
  });
}

TEST_CASE(
    "co-residency: tickets, locks and a look now and then are no waits for a CTA that may not have started") {
  DeviceArray<std::uint32_t> words(64);
  DeviceArray<std::uint32_t> mine(32 * 4);
  const ptx::LaunchShape four{.grid = {4}, .block = {1}, .cluster = {}};
  at_once([&] {
    words.fill(0);
    mine.fill(0);
    CHECK(run(takes_tickets, four, words.get(), 40, mine.get()).rule == "passed");
    words.fill(0);
    CHECK(run(takes_a_lock, four, words.get()).rule == "passed");
    words.fill(0);
    CHECK(run(looks_now_and_then, four, words.get(), mine.get()).rule == "passed");
  });
}

}  // namespace co_residency_test
