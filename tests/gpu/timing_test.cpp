// Timing on a real GPU: not the numbers, but that they mean what they say.
#include "harness/timing/timing.h"

#include <algorithm>

#include "device.h"
#include "harness/predict/budget.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/timing/gpu/ceiling.h"
#include "harness/timing/gpu/delay.h"
#include "harness/timing/gpu/nvml.h"
#include "step_table.h"

namespace harness {
namespace {

const gemm::Step& step(const std::string& number) {
  for (const gemm::Step* candidate : gemm::all_steps()) {
    if (candidate->name.rfind(number, 0) == 0) return *candidate;
  }
  throw Error("there is no step " + number);
}

Contestant contestant(const gemm::Step& step) {
  return {step.name, step.variants.front().name, ContestantKind::kStep, step.variants.front().prepare};
}

/// A launch of known length. It computes nothing, so it calls itself a ceiling.
Contestant delay(double microseconds) {
  return {.name = "delay",
          .variant = "",
          .kind = ContestantKind::kCeiling,
          .prepare = [microseconds](const gemm::Gemm&) -> gemm::Launcher {
            return [microseconds](gemm::ptx::Stream stream) { launch_delay(stream, microseconds); };
          }};
}

TEST_CASE("timing: a launch of known length is measured as long as it is, in both modes") {
  if (gpu_test::skip_without_gpu()) return;
  for (const TimingMode mode : {TimingMode::kBurst, TimingMode::kSustained}) {
    for (const double microseconds : {20.0, 500.0}) {
      TimingOptions options;
      options.mode = mode;
      options.rounds = 7;
      options.budget_s = 2;
      options.baselines = false;
      const ShapeRecord record = time_shape({64, 64, 64}, {delay(microseconds)}, options);
      REQUIRE(record.contestants.size() == 1);
      REQUIRE(record.contestants[0].samples_us.size() == 7);
      // A launch itself takes 2 to 5 us, the timer that the delay reads ticks every 32 ns to 1 us.
      CHECK(record.contestants[0].median_us > microseconds - 2);
      CHECK(record.contestants[0].median_us < microseconds + 12);
    }
  }
}

TEST_CASE("timing: the same contestant twice is as fast as itself") {
  if (gpu_test::skip_without_gpu()) return;
  const Contestant one = contestant(step("03"));
  TimingOptions options;
  options.rounds = 25;
  options.baselines = false;
  const ShapeRecord record = time_shape({1024, 1024, 1024}, {one, one}, options);
  REQUIRE(record.contestants.size() == 2);
  CHECK(record.contestants[0].median_us == Approx(record.contestants[1].median_us).epsilon(0.02));
  CHECK(record.rotated_buffers >= 2);
}

TEST_CASE("timing: faster is faster, and quadruple work takes about four times as long") {
  if (gpu_test::skip_without_gpu()) return;
  TimingOptions options;
  options.rounds = 9;
  options.baselines = false;
  const Contestant slow = contestant(step("01"));
  const Contestant fast = contestant(step("03"));
  const ShapeRecord small = time_shape({2048, 2048, 1024}, {slow, fast}, options);
  const ShapeRecord large = time_shape({2048, 2048, 4096}, {slow, fast}, options);
  CHECK(small.contestants[0].median_us > small.contestants[1].median_us);
  const double ratio = large.contestants[1].median_us / small.contestants[1].median_us;
  CHECK(ratio > 3.3);
  CHECK(ratio < 4.7);
}

TEST_CASE("timing: no time for a result that is wrong") {
  if (gpu_test::skip_without_gpu()) return;
  const Contestant idle{
      .name = "idle",
      .variant = "",
      .kind = ContestantKind::kStep,
      .prepare = [](const gemm::Gemm&) -> gemm::Launcher { return [](gemm::ptx::Stream) {}; }};
  TimingOptions options;
  options.rounds = 1;
  options.baselines = false;
  try {
    time_shape({128, 128, 128}, {idle}, options);
    FAIL("a contestant that computes nothing got a time");
  } catch (const Error& error) {
    check_text(error.what(), {"wrongly", "never-written"});
  }
}

TEST_CASE("timing: cuBLAS, cuBLASLt's best and the ceiling are raced and verified") {
  if (gpu_test::skip_without_hopper()) return;
  if (const std::string problem = baselines_problem(); !problem.empty()) return skip_test(problem.c_str());
  TimingOptions options;
  options.budget_s = 3;
  const ShapeRecord record = time_shape({1000, 2048, 520}, {contestant(step("03"))}, options);
  REQUIRE(record.contestants.size() == 4);
  CHECK(record.contestants[0].name == "03_register_tile");
  CHECK(record.contestants[1].name == "cublaslt_best");
  CHECK(contains(record.contestants[1].variant, "best of"));
  CHECK(record.contestants[2].name == "cublas_default");
  CHECK(record.contestants[3].name == "wgmma_ceiling");
  CHECK(record.contestants[0].verdict == Verdict::kSlower);
  CHECK(record.contestants[1].to_cublaslt.median == Approx(1));
  CHECK(record.contestants[0].ceiling_share > 0);
  CHECK(record.contestants[0].ceiling_share < 0.2);
  CHECK_FALSE(cublas_version().empty());
  if (record.conditions.sm_clock_mhz_median > 0) {  // NVML is there
    CHECK(record.conditions.sm_clock_mhz_max < 3000);
    CHECK(record.conditions.power_w_max > 20);
    const Card card = nvml_card();
    CHECK(card.power_limit_w > 20);
    CHECK(card.power_limit_w < 5000);
    CHECK(card.default_power_limit_w > 20);
    CHECK(card.default_power_limit_w < 5000);
  }
}

TEST_CASE("timing: with an epilogue of cuBLASLt's its first choice is raced, too") {
  if (gpu_test::skip_without_hopper()) return;
  if (const std::string problem = baselines_problem(); !problem.empty()) return skip_test(problem.c_str());
  TimingOptions options;
  options.budget_s = 3;
  options.form.epilogue.beta = 1;
  const gemm::Variant& variant = step("30").variants.front();
  const Contestant with_c{
      .name = step("30").name, .variant = variant.name, .prepare = [&](const gemm::Problem& problem) {
        return gemm::prepare(variant, problem);
      }};
  const ShapeRecord record = time_shape({1000, 2048, 520}, {with_c}, options);
  REQUIRE(record.contestants.size() == 5);
  CHECK(record.contestants[1].name == "cublaslt_best");
  CHECK(record.contestants[2].name == "cublaslt_first");
  CHECK_FALSE(contains(record.contestants[2].variant, "best of"));
  CHECK(record.contestants[2].to_cublaslt.median < 1.05);
  CHECK(record.contestants[3].name == "cublaslt_unfused");
  CHECK(record.contestants[4].name == "wgmma_ceiling");
}

TEST_CASE("ceilings: between half and all of what is documented") {
  if (gpu_test::skip_without_gpu()) return;
  const DeviceInfo device = device_info();
  for (const gemm::MathUnit unit : {gemm::MathUnit::kFma, gemm::MathUnit::kMmaSync, gemm::MathUnit::kWgmma}) {
    if (!has_math_unit(unit)) continue;
    const double share = measure_peak(unit) / peaks(unit, device).flop;
    INFO("unit " << static_cast<int>(unit));
    CHECK(share > 0.5);
    // mma.sync's rate on Hopper is not documented: the budget's figure was measured.
    CHECK(share < (unit == gemm::MathUnit::kMmaSync ? 1.25 : 1.02));
  }
}

}  // namespace
}  // namespace harness
