// Step 18's own shapes: tiles against SMs, k-tiles against pieces, launches behind each other, and results
// that are the same bit for bit.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "catch.h"
#include "gemm/decomposition.h"
#include "harness/backend.h"
#include "harness/emulator_control.h"
#include "harness/problem.h"
#include "harness/workload.h"
#include "step_table.h"

namespace {

const gemm::Step& stream_k() {
  return harness::find_step(gemm::all_steps(), "18");
}

bool skip_without_emulator() {
  if (harness::device_info().is_emulator) return false;
  skip_test("the number of SMs and the schedule are the emulator's to choose");
  return true;
}

/// `tiles` tiles below each other, the last one ragged, and ragged in N and K.
gemm::Shape shape_of(const gemm::Variant& variant, int tiles, int k_tiles) {
  return {(tiles - 1) * variant.tile.m + 3, 40, k_tiles * variant.tile.k - 24};
}

std::vector<std::uint16_t> result_bits(const harness::Workload& workload) {
  std::vector<std::uint16_t> bits;
  for (const gemm::bf16 value : workload.image().d) bits.push_back(value.bits);
  return bits;
}

/// Launches one plan twice, D poisoned before each, and verifies both.
void verify_twice(const gemm::Variant& variant, const gemm::Shape& shape) {
  harness::Workload workload(shape, harness::Pattern::kExact, 3);
  const gemm::Launcher start = variant.prepare(workload.gemm());
  for (int launch = 1; launch <= 2; ++launch) {
    workload.poison();
    start(nullptr);
    harness::synchronize();
    const harness::CheckResult result = workload.check(variant.tile);
    INFO(variant.name << " " << harness::to_string(shape) << ", launch " << launch << ":\n" << result.report);
    CHECK(result.ok);
  }
}

}  // namespace

TEST_CASE("18_stream_k: fewer tiles than SMs, as many, one more, and fewer k-tiles than pieces; twice",
          "[emulator]") {
  if (skip_without_emulator()) return;
  for (int sms = 1; sms <= 7; ++sms) {
    harness::control_emulator({.schedule_seed = static_cast<std::uint64_t>(sms), .sm_count = sms});
    for (const gemm::Variant& variant : stream_k().variants) {
      for (const int tiles : {sms - 1, sms, sms + 1}) {
        if (tiles < 1) continue;
        INFO(sms << " SMs, " << tiles << " tiles");
        verify_twice(variant, shape_of(variant, tiles, 1 + (tiles + sms) % 3));
      }
      INFO(sms << " SMs");
      verify_twice(variant, shape_of(variant, 1, 2));        // split_k4: two pieces, not four
      verify_twice(variant, shape_of(variant, 2, 5 + sms));  // pieces that go round
    }
  }
  harness::control_emulator({});
}

TEST_CASE("18_stream_k: the hybrid has a tape and whole tiles behind it", "[emulator]") {
  if (skip_without_emulator()) return;
  constexpr int kSms = 3;
  harness::control_emulator({.sm_count = kSms});
  const gemm::Variant& hybrid = harness::find_variant(stream_k(), "hybrid");
  // Two waves and a third: K must be long for the tape to be worth it.
  constexpr int kTiles = 7;
  constexpr int kKTiles = 60;
  const gemm::Decomposition all = gemm::decompose(gemm::Split::kHybrid, kTiles, kKTiles, kSms);
  REQUIRE(all.streamed > 0);
  REQUIRE(all.streamed < kTiles);
  verify_twice(hybrid, shape_of(hybrid, kTiles, kKTiles));
  CHECK(hybrid.workspace_bytes(shape_of(hybrid, kTiles, kKTiles)) ==
        static_cast<std::int64_t>(kSms) * (128 * 256 * 4 + 2 * 4));
  CHECK(hybrid.workspace_bytes(shape_of(hybrid, kTiles, 1)) == 0);
  harness::control_emulator({});
}

TEST_CASE("18_stream_k: the same bits in every run, whoever comes first", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : stream_k().variants) {
    // A tile and a bit among five workers: up to four add to one tile.
    const gemm::Shape shape = shape_of(variant, 2, 11);
    std::vector<std::uint16_t> first;
    for (const harness::Completion completion :
         {harness::Completion::kRandom, harness::Completion::kEarliest, harness::Completion::kLatest}) {
      const int seeds = completion == harness::Completion::kRandom ? 4 : 1;
      for (int seed = 1; seed <= seeds; ++seed) {
        harness::control_emulator(
            {.schedule_seed = static_cast<std::uint64_t>(seed), .completion = completion, .sm_count = 5});
        harness::Workload workload(shape, harness::Pattern::kNormal, 8);
        const gemm::Launcher start = variant.prepare(workload.gemm());
        for (int launch = 0; launch < 2; ++launch) {
          workload.poison();
          start(nullptr);
          harness::synchronize();
          const std::vector<std::uint16_t> bits = result_bits(workload);
          if (first.empty()) {
            REQUIRE(workload.check(variant.tile).ok);
            first = bits;
          }
          INFO(variant.name << ", seed " << seed << ", launch " << launch);
          CHECK(bits == first);
        }
      }
    }
  }
  harness::control_emulator({});
}

TEST_CASE("18_stream_k: the bits do depend on where K is cut", "[emulator]") {
  // Otherwise the test above would show nothing.
  if (skip_without_emulator()) return;
  harness::control_emulator({.sm_count = 5});
  const gemm::Shape shape = shape_of(stream_k().variants.front(), 2, 11);
  std::vector<std::vector<std::uint16_t>> results;
  for (const char* name : {"data_parallel", "stream_k"}) {
    const gemm::Variant& variant = harness::find_variant(stream_k(), name);
    harness::Workload workload(shape, harness::Pattern::kNormal, 8);
    workload.poison();
    variant.prepare(workload.gemm())(nullptr);
    harness::synchronize();
    results.push_back(result_bits(workload));
  }
  CHECK(results[0] != results[1]);
  harness::control_emulator({});
}

TEST_CASE("18_stream_k: launches on two streams do not share a workspace", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Variant& variant = harness::find_variant(stream_k(), "stream_k");
  harness::Workload workload(shape_of(variant, 2, 7), harness::Pattern::kExact, 4);
  const gemm::Launcher start = variant.prepare(workload.gemm());
  int handle = 0;
  for (auto* const stream :
       {ptx::Stream{nullptr}, reinterpret_cast<ptx::Stream>(&handle), ptx::Stream{nullptr}}) {
    workload.poison();
    start(stream);
    harness::synchronize();
    CHECK(workload.check(variant.tile).ok);
  }
}

TEST_CASE("18_stream_k: launches in a row on the device give the same bits", "[device]") {
  if (stream_k().min_sm > harness::device_info().compute_capability) return;
  const bool emulated = harness::device_info().is_emulator;
  const gemm::Shape shape = emulated ? gemm::Shape{131, 40, 520} : gemm::Shape{1152, 1152, 8192};
  for (const gemm::Variant& variant : stream_k().variants) {
    harness::Workload workload(shape, harness::Pattern::kNormal, 9);
    const gemm::Launcher start = variant.prepare(workload.gemm());
    std::vector<std::uint16_t> first;
    for (int launch = 0; launch < (emulated ? 3 : 20); ++launch) {
      workload.poison();
      start(nullptr);
      harness::synchronize();
      if (first.empty()) {
        REQUIRE(workload.check(variant.tile).ok);
        first = result_bits(workload);
      }
      INFO(variant.name << ", launch " << launch);
      CHECK(result_bits(workload) == first);
    }
  }
}
