// A ring of stages between a producer warp and consumer warpgroups, and the ways to get it wrong.
#include <sstream>

#include "emulator/hopper_test.h"
#include "emulator/report/counters.h"
#include "emulator/report/event_log.h"

namespace hopper_pipeline_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;

constexpr int kM = 64;  // rows of a warpgroup
constexpr int kN = 32;
constexpr int kK = 64;

enum Fault {
  kNone,
  kConsumerStartsAtPhase1,
  kProducerStartsAtPhase0,
  kEmptyCountTooHigh,
  kEmptyCountTooLow,
  kReleaseBeforeWgmmaWait,
  kNoRelease,
  kReleaseOfAnotherStage,
  kExpectTooFew,
  kExpectTooMany,
  kNoDrain,
  kPhaseNeverFlips,
  kReadsNextStage,
  kOneConsumerDoesNotWait,
};

template <int kStages, int kConsumers>
struct alignas(1024) Shared {
  bf16 a[kStages][kConsumers * kM][kK];
  bf16 b[kStages][kN][kK];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

struct Position {
  int stage = 0;
  std::uint32_t phase = 0;
  void advance(int stages, bool flips) {
    if (++stage == stages) {
      stage = 0;
      if (flips) phase ^= 1;
    }
  }
};

/// Warpgroups 0 .. kConsumers - 1 multiply, the warpgroup behind them loads.
template <int kStages, int kConsumers>
__global__ void ring(ptx::TensorMap a_map, ptx::TensorMap b_map, int k_tiles, int fault, float* out) {
  auto& shared = ptx::dynamic_shared<Shared<kStages, kConsumers>>();
  const int thread = static_cast<int>(threadIdx.x);
  const bool flips = fault != kPhaseNeverFlips;
  if (thread == 0) {
    const int extra = fault == kEmptyCountTooHigh ? 1 : fault == kEmptyCountTooLow ? -1 : 0;
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], static_cast<std::uint32_t>(kConsumers + extra));
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (thread >= 128 * kConsumers) {
    if (thread != 128 * kConsumers) return;
    Position fill{0, fault == kProducerStartsAtPhase0 ? 0u : 1u};
    for (int i = 0; i < k_tiles; ++i) {
      ptx::mbarrier_wait_parity(&shared.empty[fill.stage], fill.phase, {"producer", "empty", fill.stage, i});
      constexpr int kBytes = (kConsumers * kM + kN) * kK * 2;
      const int bytes = fault == kExpectTooFew    ? kBytes - 128
                        : fault == kExpectTooMany ? kBytes + 128
                                                  : kBytes;
      ptx::mbarrier_arrive_expect_tx(&shared.full[fill.stage], static_cast<std::uint32_t>(bytes));
      ptx::cp_async_bulk_tensor_2d(shared.a[fill.stage], &a_map, i * kK, 0, &shared.full[fill.stage]);
      ptx::cp_async_bulk_tensor_2d(shared.b[fill.stage], &b_map, i * kK, 0, &shared.full[fill.stage]);
      fill.advance(kStages, flips);
    }
    return;
  }
  const int warpgroup = thread / 128;
  float d[kN / 2];
  Position read{0, fault == kConsumerStartsAtPhase1 ? 1u : 0u};
  Position release{0, 0};
  for (int i = 0; i < k_tiles; ++i) {
    if (fault != kOneConsumerDoesNotWait || thread / 32 != 2) {
      ptx::mbarrier_wait_parity(&shared.full[read.stage], read.phase, {"consumer", "full", read.stage, i});
    }
    const int stage = fault == kReadsNextStage ? (read.stage + 1) % kStages : read.stage;
    ptx::wgmma_fence();
    for (int k = 0; k < kK; k += 16) {
      ptx::wgmma_m64nNk16_f32_bf16_ss<kN>(
          d,
          ptx::k_major_descriptor(ptx::shared_address(&shared.a[stage][warpgroup * kM][k]), Swizzle::k128B),
          ptx::k_major_descriptor(ptx::shared_address(&shared.b[stage][0][k]), Swizzle::k128B),
          i > 0 || k > 0);
    }
    ptx::wgmma_commit_group();
    if (fault == kReleaseBeforeWgmmaWait && thread % 128 == 0)
      ptx::mbarrier_arrive(&shared.empty[read.stage]);
    ptx::wgmma_wait_group<1>();
    if (i > 0 && fault != kReleaseBeforeWgmmaWait) {
      const int released = fault == kReleaseOfAnotherStage ? read.stage : release.stage;
      if (thread % 128 == 0 && fault != kNoRelease) ptx::mbarrier_arrive(&shared.empty[released]);
      release.advance(kStages, flips);
    }
    read.advance(kStages, flips);
  }
  if (fault == kNoDrain) return;
  ptx::wgmma_wait_group<0>();
  store_accumulators<kN>(out + thread / 128 * kM * kN, d);
}

template <int kStages, int kConsumers>
Outcome run_ring(int k_tiles, int fault) {
  const auto rows = static_cast<std::size_t>(kConsumers * kM);
  const auto k = static_cast<std::size_t>(k_tiles * kK);
  const std::vector<bf16> a = arange(rows * k, 1);
  const std::vector<bf16> b = arange(kN * k, 2);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(rows * kN);
  auto map = [&](const bf16* matrix, int box) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, box, k_tiles * kK, box, kK, Swizzle::k128B));
  };
  Outcome outcome =
      run(ring<kStages, kConsumers>, one_cta(128 * (kConsumers + 1), sizeof(Shared<kStages, kConsumers>)),
          map(device_a.get(), kConsumers * kM), map(device_b.get(), kN), k_tiles, fault, out.get());
  if (outcome.rule == "passed") {
    CHECK(count_wrong(out.host(), a, b, k) == 0);
  }
  return outcome;
}

}  // namespace

TEST_CASE("ring: k-tiles of 1, S - 1, S, S + 1, 2 S + 1") {
  for (const int k_tiles : {1, 2, 3, 4, 7}) CHECK_PASSES(run_ring<3, 1>(k_tiles, kNone));
  for (const int k_tiles : {1, 2, 3, 5}) CHECK_PASSES(run_ring<2, 2>(k_tiles, kNone));
}

TEST_CASE("ring: the consumer starts at phase 1") {
  // It multiplies what is on its way, or what has not been loaded yet, or waits for a phase that is long
  // over.
  const Rules rules{"load-not-waited", "wgmma-operand-uninitialised", "load-overwrites", "deadlock"};
  CHECK_BREAKS_ONE_OF(rules, run_ring<3, 1>(5, kConsumerStartsAtPhase1));
  const Outcome outcome = run_ring<3, 1>(1, kConsumerStartsAtPhase1);
  INFO(outcome.report);
  CHECK((contains(outcome.report, "for parity 1 of mbarrier full[0] (shared + 0x9000) passed at once") ||
         contains(outcome.report, "it has never waited for the first phase")));
  CHECK(contains(outcome.report, "consumer of k-tile 0, stage 0"));
}

TEST_CASE("ring: the producer starts at phase 0") {
  CHECK_BREAKS("deadlock", run_ring<3, 1>(5, kProducerStartsAtPhase0));
  check_report(run_ring<3, 1>(5, kProducerStartsAtPhase0), "deadlock",
               {"as producer of k-tile 0, stage 0, for the phase of parity 0 of mbarrier empty[0]",
                "1 of 1 arrivals is missing"});
}

TEST_CASE("ring: counts off by one") {
  CHECK_BREAKS("deadlock", run_ring<3, 2>(5, kEmptyCountTooHigh));
  const Rules rules{"load-overwrites", "load-not-waited", "mbarrier-arrivals", "deadlock"};
  CHECK_BREAKS_ONE_OF(rules, run_ring<3, 2>(7, kEmptyCountTooLow));
}

TEST_CASE("ring: a stage is released before wgmma has read it") {
  CHECK_BREAKS("load-overwrites", run_ring<2, 1>(5, kReleaseBeforeWgmmaWait));
  emulator::Options options;
  options.k = 5 * kK;
  options.k_tile = kK;
  const emulator::ScopedOptions scope(options);
  check_report(
      run_ring<2, 1>(5, kReleaseBeforeWgmmaWait), "load-overwrites",
      {"producer of k-tile", "wgmma", "consumer of k-tile", "a[0]", "these arrivals ended phase 0 there",
       "thread 0 of CTA (0,0,0) at ", "k-tile 2 is being loaded, the bytes hold k-tile 0",
       "warpgroup 0 of CTA (0,0,0) arrived before its wgmma had completed"});
}

TEST_CASE("ring: no release, or that of another stage") {
  CHECK_BREAKS("deadlock", run_ring<2, 1>(5, kNoRelease));
  const Rules rules{"load-overwrites", "deadlock"};
  CHECK_BREAKS_ONE_OF(rules, run_ring<3, 1>(7, kReleaseOfAnotherStage));
}

TEST_CASE("ring: wrong byte counts") {
  CHECK_BREAKS("expect-tx-small", run_ring<3, 1>(5, kExpectTooFew));
  CHECK_BREAKS("deadlock", run_ring<3, 1>(5, kExpectTooMany));
  check_report(run_ring<3, 1>(5, kExpectTooMany), "deadlock", {"128 of 12416 expected bytes are missing"});
}

TEST_CASE("ring: the last group is not awaited") {
  CHECK_BREAKS("exit-in-flight", run_ring<3, 1>(5, kNoDrain));
}

TEST_CASE("ring: the phase bit never flips") {
  const Rules rules{"load-overwrites", "load-not-waited", "mbarrier-arrivals", "deadlock"};
  CHECK_BREAKS_ONE_OF(rules, run_ring<2, 1>(5, kPhaseNeverFlips));
}

TEST_CASE("ring: off by one stage") {
  const Rules rules{"load-not-waited", "wgmma-operand-uninitialised", "load-overwrites"};
  CHECK_BREAKS_ONE_OF(rules, run_ring<3, 1>(5, kReadsNextStage));
}

TEST_CASE("ring: one warp of the consumer does not wait") {
  const Rules rules{"load-not-waited", "wgmma-operand-uninitialised", "deadlock"};
  CHECK_BREAKS_ONE_OF(rules, run_ring<3, 1>(5, kOneConsumerDoesNotWait));
}

TEST_CASE("counters: what the engines moved") {
  emulator::Options options;
  options.counters = true;
  const emulator::ScopedOptions scope(options);
  emulator::reset_counters();
  CHECK(run_ring<2, 1>(3, kNone).rule == "passed");
  const emulator::Counters counters = emulator::counters();
  CHECK(counters.total("cp_async_bulk_tensor_2d").requests == 6);
  CHECK(counters.total("cp_async_bulk_tensor_2d").bytes == 3 * (kM + kN) * kK * 2);
  CHECK(counters.total("wgmma_m64nNk16_f32_bf16_ss").requests == 3 * 4);
  CHECK(counters.total("wgmma_m64nNk16_f32_bf16_ss").bytes == 3 * (kM + kN) * kK * 2);
  CHECK(counters.total("mbarrier_arrive_expect_tx").requests == 3);
}

TEST_CASE("the event log says what happened to each barrier") {
  emulator::Options options;
  options.os_threads = 1;
  const emulator::ScopedOptions scope(options);
  std::ostringstream lines;
  emulator::EventLog::begin(lines);
  const Outcome outcome = run_ring<2, 1>(3, kNone);
  emulator::EventLog::end();
  CHECK(outcome.rule == "passed");
  const std::string text = lines.str();
  for (const char* part : {"\"event\":\"mbarrier_init\"", "\"event\":\"mbarrier_arrive_expect_tx\"",
                           "\"event\":\"complete_tx\"", "\"event\":\"phase\"", "\"event\":\"wgmma\"",
                           "\"barrier\":\"mbarrier full[0]", "hopper_pipeline_test.cpp:"}) {
    INFO(part);
    CHECK(contains(text, part));
  }
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("\"event\":\"phase\"", at)) != std::string::npos; ++at) ++count;
  CHECK(count == 3 + 2);  // three k-tiles filled, two released
  run_ring<2, 1>(1, kNone);
  CHECK(lines.str() == text);
}

}  // namespace hopper_pipeline_test
