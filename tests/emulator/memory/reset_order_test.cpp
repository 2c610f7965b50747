// A counter to which CTAs add, and which one of them sets back for the next launch.
#include "emulator/emulator_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/atomic.cuh"

namespace reset_order_test {

using namespace emulator_test;

namespace {

enum Way {
  kAddsFirst,          // and then says that it is done
  kDoneFirst,          // an addition may come behind the store
  kRelaxed,            // says so without a release
  kSeesAdditions,      // the thread that stores has seen all of them in the word itself
  kAddsBehindTheStore  // having seen it
};

/// Each CTA adds to words[0]; the last one of words[1] (or the first CTA) sets it back.
__global__ void counts(std::uint32_t* words, Way way) {
  if (way == kSeesAdditions || way == kAddsBehindTheStore) {
    if (blockIdx.x > 0) {
      ptx::red_add_relaxed_gpu(words, 1);
      if (way == kSeesAdditions) return;
      while (ptx::ld_relaxed_gpu(words) < 100) {
      }
      ptx::red_add_relaxed_gpu(words, 1);
      return;
    }
    while (ptx::ld_relaxed_gpu(words) + 1 < gridDim.x) {
    }
    ptx::st_relaxed_gpu(words, way == kSeesAdditions ? 0 : 100);
    return;
  }
  if (way != kDoneFirst) ptx::red_add_relaxed_gpu(words, 1);
  const std::uint32_t done =
      way == kRelaxed ? atomicAdd(words + 1, 1u) : ptx::atom_add_acq_rel_gpu(words + 1, 1);
  if (way == kDoneFirst) ptx::red_add_relaxed_gpu(words, 1);
  if (done + 1 == gridDim.x) ptx::st_relaxed_gpu(words, 0);
}

}  // namespace

TEST_CASE("reset-order: a counter is set back behind every addition, or behind some, under every schedule") {
  const ptx::LaunchShape four{.grid = {4}, .block = {1}, .co_resident = true};
  DeviceArray<std::uint32_t> words(32);
  for (int seed = 1; seed <= 8; ++seed) {
    emulator::Options options;
    options.seed = static_cast<std::uint64_t>(seed);
    const emulator::ScopedOptions scope(options);
    const auto outcome_of = [&](Way way) {
      words.fill(0);
      return run(counts, four, words.get(), way);
    };
    for (const Way way : {kAddsFirst, kSeesAdditions, kAddsBehindTheStore}) {
      const auto outcome = outcome_of(way);
      INFO("seed " << seed << ", way " << way << '\n' << outcome.report);
      CHECK(outcome.rule == "passed");
    }
    CHECK(words.host()[0] == 103);
    for (const Way way : {kDoneFirst, kRelaxed}) {
      check_report(outcome_of(way), "reset-order",
                   {"red_add_relaxed_gpu at", "st_relaxed_gpu at", "--allow reset-order"});
    }
    const emulator::ScopedCourseRule off(emulator::CourseRule::kResetOrder, false);
    CHECK(outcome_of(kDoneFirst).rule == "passed");
  }
}

}  // namespace reset_order_test
