// Relaxed accesses of two words: what orders them, and what does not.
#include "emulator/emulator_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/atomic.cuh"

namespace relaxed_order_test {

using namespace emulator_test;

namespace {

enum Fences { kNone = 0, kWriter = 1, kReader = 2, kBoth = 3 };

/// CTA 0 stores a value and then a flag; CTA 1 polls the flag and loads the value. `words` holds nothing yet
/// but the flag.
__global__ void passes(std::uint32_t* words, std::uint32_t* flag, int fences, std::uint32_t* out) {
  if (blockIdx.x == 0) {
    ptx::st_relaxed_gpu(words, 7);
    if (fences & kWriter) __threadfence();
    ptx::st_relaxed_gpu(flag, 1);
    return;
  }
  while (ptx::ld_relaxed_gpu(flag) == 0) {
  }
  if (fences & kReader) __threadfence();
  ptx::st_global(out, ptx::ld_relaxed_gpu(words));
}

/// CTA 0 counts two words up; CTA 1 looks through both with one load, until each is there.
__global__ void looks_through(std::uint32_t* words) {
  if (blockIdx.x == 0) {
    ptx::st_relaxed_gpu(words, 1);
    ptx::st_relaxed_gpu(words + 32, 1);
    return;
  }
  for (int i = 1; i >= 0; --i) {
    while (ptx::ld_relaxed_gpu(words + 32 * i) == 0) {
    }
  }
}

const ptx::LaunchShape kTwo{.grid = {2}, .block = {1}, .co_resident = true};

}  // namespace

TEST_CASE("relaxed-order: a value behind a flag, with one fence, none and both") {
  DeviceArray<std::uint32_t> flag(32);
  DeviceArray<std::uint32_t> out(32);
  const auto outcome_of = [&](Fences fences) {
    DeviceArray<std::uint32_t> words(32);
    words.fill(0);
    flag.fill(0);
    return run(passes, kTwo, words.get(), flag.get(), static_cast<int>(fences), out.get());
  };
  for (const Fences fences : {kNone, kWriter, kReader}) {
    check_report(outcome_of(fences), "relaxed-order",
                 {"a release by the storing thread", "--allow relaxed-order"});
  }
  CHECK(outcome_of(kBoth).rule == "passed");
  CHECK(out.host()[0] == 7);
  const emulator::ScopedCourseRule off(emulator::CourseRule::kRelaxedOrder, false);
  CHECK(outcome_of(kNone).rule == "passed");
}

TEST_CASE("relaxed-order: one load in a loop over words may see them in any order") {
  DeviceArray<std::uint32_t> words(64);
  words.fill(0);
  CHECK(run(looks_through, kTwo, words.get()).rule == "passed");
}

TEST_CASE("co-residency: without the rule CTAs start in the order of their numbers") {
  const emulator::ScopedCourseRule off(emulator::CourseRule::kCoResidency, false);
  DeviceArray<std::uint32_t> words(32);
  for (int seed = 1; seed <= 4; ++seed) {
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(seed);
    options.sm_count = 1;
    const emulator::ScopedOptions scope(options);
    words.fill(0);
    // Each CTA waits for the one before it; more of them than the SM holds.
    const auto chain = [](std::uint32_t* word) {
      if (threadIdx.x != 0) return;
      while (ptx::ld_acquire_gpu(word) != blockIdx.x) {
      }
      ptx::st_release_gpu(word, blockIdx.x + 1);
    };
    CHECK(run(+chain, ptx::LaunchShape{.grid = {40}, .block = {32}, .cluster = {}}, words.get()).rule ==
          "passed");
    CHECK(words.host()[0] == 40);
  }
}

}  // namespace relaxed_order_test
