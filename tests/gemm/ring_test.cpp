// Ring's methods, one by one: a producer and two consumers that do nothing but pass k-tiles on, and what the
// emulator says when one of them calls a method too early, too often or with a state that is wrong.
#include "gemm/pipeline/ring.cuh"

#include <set>

#include "emulator/explore/search.h"
#include "emulator/hopper_test.h"
#include "gemm/tile/tma_tile.cuh"

namespace ring_test {

using namespace emulator_test;

namespace {

using T = gemm::WgmmaTiling<64, 8, 64, 1>;
constexpr int kStages = 3;
constexpr int kReaders = 2;
using Ring = gemm::Ring<T, kStages>;
using State = gemm::PipelineState<kStages>;

enum Variation {
  kAsItShouldBe,
  kTriesFirst,  // consumer_wait only where consumer_try_wait says no
  // Wrong from the start:
  kInitCountsOneMore,
  kInitCountsOneLess,
  // Wrong with k-tile 1, the first in stage 1:
  kAcquiresTooLate,  // the phase that the release of the k-tile will end
  kWaitsTooEarly,    // for the phase before the first, which counts as complete
  kTriesTooEarly,
  kReleasesBeforeItReads,
  kReleasesTwice,
  kReleasesAnotherStage,
  kNeverReleases,
  // Wrong with the second k-tile in stage 1:
  kAcquiresTooEarly,
  kWaitsTooLate,
};

__device__ State other_phase_if(bool wrong, State state) {
  if (wrong) state.phase ^= 1;
  return state;
}

/// Thread 0 loads. Threads 32 and 64 read the corner of every k-tile of A and write it to out[0][k_tiles],
/// out[1][k_tiles].
__global__ void pass_on(ptx::TensorMap a_map, ptx::TensorMap b_map, int k_tiles, int variation, bf16* out) {
  auto& ring = ptx::dynamic_shared<Ring>();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    ring.init(kReaders + (variation == kInitCountsOneMore) - (variation == kInitCountsOneLess));
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (thread % 32 != 0) return;
  State here{0, thread == 0 ? 1u : 0u};
  for (int i = 0; i < k_tiles; ++i) {
    const auto is_wrong = [&](Variation wrong) {
      return variation == wrong && i == (wrong >= kAcquiresTooEarly ? 1 + kStages : 1);
    };
    if (thread == 0) {
      const bool wrong = is_wrong(kAcquiresTooLate) || is_wrong(kAcquiresTooEarly);
      ring.producer_acquire(other_phase_if(wrong, here), i);
      gemm::load_tiles<T>(ring.stage[here.stage], &ring.full[here.stage], &a_map, &b_map, 0, 0, i * T::kK);
    } else {
      const bool wrong = is_wrong(kWaitsTooEarly) || is_wrong(kWaitsTooLate);
      if (is_wrong(kTriesTooEarly)) {
        while (!ring.consumer_try_wait(other_phase_if(true, here))) {
        }
      } else if (variation != kTriesFirst || !ring.consumer_try_wait(here)) {
        ring.consumer_wait(other_phase_if(wrong, here), i);
      }
      State released = here;
      if (is_wrong(kReleasesAnotherStage)) released.advance();
      if (is_wrong(kReleasesBeforeItReads)) ring.consumer_release(released);
      ptx::st_global(out + (thread / 32 - 1) * k_tiles + i,
                     ptx::ld_shared(&ring.stage[here.stage].a[0][0][0]));
      ptx::fence_proxy_async_shared_cta();
      if (!is_wrong(kReleasesBeforeItReads) && !is_wrong(kNeverReleases)) ring.consumer_release(released);
      if (is_wrong(kReleasesTwice)) ring.consumer_release(released);
    }
    here.advance();
  }
}

Outcome run_ring(int k_tiles, Variation variation) {
  const auto k = static_cast<std::size_t>(k_tiles * T::kK);
  const std::vector<bf16> a = arange(T::kM * k);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(arange(T::kN * k), "B");
  DeviceArray<bf16> out(static_cast<std::size_t>(kReaders * k_tiles));
  Outcome outcome = run(pass_on, one_cta(32 * (1 + kReaders), sizeof(Ring)),
                        gemm::operand_map<T>(device_a.get(), T::kM, k_tiles * T::kK, T::kM),
                        gemm::operand_map<T>(device_b.get(), T::kN, k_tiles * T::kK, T::kN), k_tiles,
                        static_cast<int>(variation), out.get());
  if (outcome.rule == "passed") {
    int right = 0;
    const std::vector<bf16> host = out.host();
    for (int i = 0; i < kReaders * k_tiles; ++i) {
      const bf16 corner = a[static_cast<std::size_t>(i % k_tiles * T::kK)];
      right += gemm::to_float(host[static_cast<std::size_t>(i)]) == gemm::to_float(corner);
    }
    CHECK(right == kReaders * k_tiles);
  }
  return outcome;
}

// What is met first where k-tiles are read or overwritten that somebody else still works on.
const Rules kScheduleDecides{"load-not-waited", "load-overwrites", "mbarrier-arrivals", "deadlock"};

constexpr int kThreeRounds = 3 * kStages + 2;

/// Under every schedule one of these rules is reported, and the report has these words.
void check_reported(Variation variation, const Rules& rules, const std::string& words) {
  under_all_schedules([&] {
    const Outcome outcome = run_ring(kThreeRounds, variation);
    INFO(outcome.report);
    CHECK(rules.count(outcome.rule) == 1);
    std::string text = outcome.report;  // without its line breaks
    std::replace(text.begin(), text.end(), '\n', ' ');
    while (contains(text, "  ")) text.replace(text.find("  "), 2, " ");
    CHECK(contains(text, words));
  });
}

}  // namespace

TEST_CASE("ring methods: k-tiles go round in order") {
  for (const Variation variation : {kAsItShouldBe, kTriesFirst}) {
    for (const int k_tiles : {1, kStages - 1, kStages, kStages + 1, kThreeRounds})
      CHECK_PASSES(run_ring(k_tiles, variation));
  }
}

TEST_CASE("ring methods: a state that advances by several k-tiles is where one after the other leads") {
  for (int from = 0; from < 2 * kStages; ++from) {
    for (int k_tiles = 0; k_tiles <= 4 * kStages; ++k_tiles) {
      State one{from % kStages, static_cast<std::uint32_t>(from / kStages)};
      State several = one;
      several.advance(k_tiles);
      for (int i = 0; i < k_tiles; ++i) one.advance();
      CHECK(several.stage == one.stage);
      CHECK(several.phase == one.phase);
    }
  }
}

TEST_CASE("ring methods: init with a count that is not that of the readers") {
  check_reported(kInitCountsOneMore, {"deadlock"},
                 "as producer of k-tile 3, stage 0, for the phase of parity 0 of mbarrier empty[0]");
  check_reported(kInitCountsOneMore, {"deadlock"}, "1 of 3 arrivals is missing");
  check_reported(kInitCountsOneLess, kScheduleDecides, "stage");
}

TEST_CASE("ring methods: producer_acquire with the phase of another round") {
  check_reported(kAcquiresTooLate, {"deadlock"},
                 "as producer of k-tile 1, stage 1, for the phase of parity 0 of mbarrier empty[1]");
  check_reported(kAcquiresTooEarly, {"load-overwrites", "mbarrier-arrivals", "deadlock"},
                 "producer of k-tile 4, stage 1");
}

TEST_CASE("ring methods: consumer_wait and consumer_try_wait with the phase of another round") {
  check_reported(kWaitsTooEarly, kScheduleDecides, "[1]");
  check_reported(kTriesTooEarly, kScheduleDecides, "[1]");
  check_reported(kWaitsTooLate, kScheduleDecides, "[1]");
}

TEST_CASE("ring methods: consumer_release before the stage has been read") {
  check_reported(kReleasesBeforeItReads, {"load-not-waited", "load-overwrites"}, "stage[1].a[0][0]");
}

TEST_CASE("ring methods: consumer_release twice, of another stage, never") {
  check_reported(kReleasesTwice, kScheduleDecides, "stage");
  check_reported(kReleasesAnotherStage, kScheduleDecides, "stage");
  check_reported(kNeverReleases, {"deadlock"},
                 "as producer of k-tile 4, stage 1, for the phase of parity 0 of mbarrier empty[1]");
  check_reported(kNeverReleases, {"deadlock"},
                 "as consumer of k-tile 4, stage 1, for the phase of parity 1 of mbarrier full[1]");
  check_reported(kNeverReleases, {"deadlock"}, "2 of 2 arrivals are missing");
}

TEST_CASE("ring methods: the search for schedules finds each mistake within 40 steps, as seeds do") {
  constexpr int kOneRoundAndTwo = kStages + 2;
  for (int variation = kAsItShouldBe; variation <= kWaitsTooLate; ++variation) {
    INFO("variation " << variation);
    const auto once = [&] { return run_ring(kOneRoundAndTwo, static_cast<Variation>(variation)); };
    std::set<std::string> by_seeds;
    under_schedules(20, [&] { by_seeds.insert(once().rule); });
    by_seeds.erase("passed");
    emulator::explore::Limits limits;
    limits.seconds = 20;
    limits.seconds_after_failure = 1;
    const emulator::explore::Found found = search(
        [&] {
          const Outcome outcome = once();
          return emulator::explore::Outcome{outcome.rule == "passed", outcome.rule, outcome.report};
        },
        limits);
    CHECK(found.shortest.has_value() == !by_seeds.empty());
    if (!found.shortest) {
      CHECK(found.end == emulator::explore::End::kAll);
      continue;
    }
    CHECK(found.shortest->steps.size() <= 40);
    CHECK(found.end == emulator::explore::End::kAll);
    for (const std::string& rule : by_seeds) {
      INFO("seeds find " << rule);
      CHECK(found.rules.count(rule) == 1);
    }
  }
}

}  // namespace ring_test
