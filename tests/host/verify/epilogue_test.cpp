#include "harness/verify/epilogue/epilogue.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/base/problem.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/workload/workload.h"
#include "rejected.h"

namespace {

using gemm::Activation;
using gemm::Bias;
using gemm::Epilogue;
using harness::Pattern;

constexpr gemm::TileShape kTileOfEpilogues{128, 96, 32};

/// One of each kind, and what is unusual.
std::vector<Epilogue> some_epilogues() {
  return {{1, 1, Bias::kNone, Activation::kNone},
          {2, -0.5F, Bias::kColumn, Activation::kRelu},
          {1, 0, Bias::kRow, Activation::kGelu},
          {-0.5F, 2, Bias::kRow, Activation::kNone},
          {1, 0.3F, Bias::kNone, Activation::kNone},
          {0.25F, 0, Bias::kColumn, Activation::kSilu},
          {1, 1, Bias::kColumn, Activation::kGeluErf},
          {0, 1, Bias::kNone, Activation::kNone},
          {-0.5F, 0, Bias::kColumn, Activation::kLeakyRelu}};
}

double activated_one(Activation activation, double x) {
  return harness::epilogue_value({1, 0, Bias::kNone, activation}, x, 0, 0);
}

TEST_CASE("epilogue: the reference has the published values") {
  CHECK(harness::epilogue_value({2, -0.5F, Bias::kColumn, Activation::kNone}, 3, 4, 5) == 9);
  CHECK(harness::epilogue_value({2, -0.5F, Bias::kColumn, Activation::kRelu}, -3, 4, 5) == 0);
  CHECK(activated_one(Activation::kGelu, 1) == Approx(0.841192).epsilon(1e-6));
  CHECK(activated_one(Activation::kGeluErf, 1) == Approx(0.841345).epsilon(1e-6));
  CHECK(activated_one(Activation::kGeluErf, -2) == Approx(-0.0455003).epsilon(1e-6));
  CHECK(activated_one(Activation::kSilu, 1) == Approx(0.731059).epsilon(1e-6));
  CHECK(activated_one(Activation::kSilu, -3) == Approx(-0.142278).epsilon(1e-5));
  CHECK(activated_one(Activation::kLeakyRelu, -3) == -3.0 / 64);
  CHECK(activated_one(Activation::kLeakyRelu, 3) == 3);
}

TEST_CASE("epilogue: with beta = 0 a NaN in C does not matter") {
  const double value = harness::epilogue_value({}, 3, std::nan(""), 0);
  CHECK(value == 3);
  const harness::Interval interval = harness::accepted_results({}, 3, 0.5, std::nan(""), 0);
  CHECK(interval.low < 2.51);
  CHECK(interval.high > 3.49);
}

TEST_CASE("epilogue: the interval holds every result of an accumulator within the error") {
  for (const Epilogue& epilogue : some_epilogues()) {
    for (double sum = -6; sum <= 6; sum += 0.37) {
      for (const double error : {0.0, 0.01, 1.0}) {
        const harness::Interval interval = harness::accepted_results(epilogue, sum, error, 0.75, -0.25);
        for (int i = -8; i <= 8; ++i) {
          const double value = harness::epilogue_value(epilogue, sum + error * i / 8, 0.75, -0.25);
          CAPTURE(harness::to_string(epilogue), sum, error, i, value);
          CHECK(interval.low <= value);
          CHECK(value <= interval.high);
        }
        // And not much more: another activation or another C is outside.
        CHECK(interval.high - interval.low <=
              4 * (std::abs(epilogue.alpha) * error + 0.001 * (10 + std::abs(sum))));
      }
    }
  }
}

TEST_CASE("epilogue: a bound is as wide as the instructions' documented errors, and no wider") {
  const auto width = [](Activation activation, double x) {
    const harness::Interval interval = harness::accepted_results({1, 0, Bias::kNone, activation}, x, 0, 0, 0);
    return interval.high - interval.low;
  };
  for (const double x : {-12.0, -6.0, -2.0, -0.7, 0.4, 1.0, 3.0, 9.0}) {
    const double rounding =
        2 * 5 * 0x1p-24 * std::abs(x);  // of the operations before, where f' is up to 1.13
    CAPTURE(x);
    CHECK(width(Activation::kGelu, x) >= std::abs(x) * 0x1p-11);
    CHECK(width(Activation::kGelu, x) <= 1.003 * std::abs(x) * 0x1p-11 + 1.2 * rounding);
    CHECK(width(Activation::kGeluErf, x) >= std::abs(x) * 1.5e-7);
    CHECK(width(Activation::kGeluErf, x) <= std::abs(x) * 3e-6 + 1.2 * rounding);
    const double silu = std::abs(activated_one(Activation::kSilu, x));
    CHECK(width(Activation::kSilu, x) >= silu * 5 * 0x1p-23);
    CHECK(width(Activation::kSilu, x) <= silu * 2 * (std::abs(x) + 7) * 0x1p-23 + 1.2 * rounding);
  }
  // The two forms of GELU are told apart by the bound of the exact one, and not by that of the form with
  // tanh.
  const double x = -2.7;
  const double between =
      std::abs(activated_one(Activation::kGelu, x) - activated_one(Activation::kGeluErf, x));
  CHECK(between > 20 * width(Activation::kGeluErf, x));
  CHECK(between < width(Activation::kGelu, x));
  // Where e^-x is infinite in binary32, SiLU may be zero.
  const harness::Interval flushed =
      harness::accepted_results({1, 0, Bias::kNone, Activation::kSilu}, -89, 0, 0, 0);
  CHECK(flushed.high >= 0);
  CHECK(flushed.high < 1e-35);
}

TEST_CASE("epilogue: exact numbers stay exact in binary32, and C is as large as the sums") {
  for (const Epilogue& epilogue : some_epilogues()) {
    for (const int k : {1, 8, 72, 512, 1536, 8192, 28672, 262144}) {
      CAPTURE(harness::to_string(epilogue), k);
      if (!harness::is_exact(Pattern::kExact, epilogue)) continue;
      const auto [range, shift] = harness::exact_numbers(k, epilogue);
      REQUIRE(range >= 1);
      const double addend = std::ldexp(256.0, shift);
      const double largest =
          std::abs(epilogue.alpha) * double{1} * range * range * k + (std::abs(epilogue.beta) + 1) * addend;
      CHECK(largest < 0x1p24);
      CHECK(std::abs(epilogue.alpha) * 4 == std::floor(std::abs(epilogue.alpha) * 4));
      const double deviation = std::abs(epilogue.alpha) * range * range / 3.0 * std::sqrt(k);
      if (epilogue.beta != 0 && deviation > 256) CHECK(std::abs(epilogue.beta) * addend > 0.9 * deviation);
    }
  }
  for (const int k : {1, 100, 8192}) CHECK(harness::exact_numbers(k, {}).range == harness::exact_range(k));
}

TEST_CASE("epilogue: sums of the exact pattern do not round, whatever the order of the additions") {
  const gemm::Shape shape{33, 40, 200};
  for (const Epilogue& epilogue : some_epilogues()) {
    if (!harness::is_exact(Pattern::kExact, epilogue)) continue;
    const harness::RunImage image = harness::correct_image(shape, Pattern::kExact, 3, epilogue);
    const harness::InputRules rules = image.rules();
    for (int row = 0; row < shape.m; row += 3) {
      for (int column = 0; column < shape.n; column += 3) {
        float forwards = 0;
        float backwards = 0;
        const auto product = [&](int k) {
          return gemm::to_float(image.a[static_cast<std::size_t>(row * shape.k + k)]) *
                 gemm::to_float(image.b[static_cast<std::size_t>(column * shape.k + k)]);
        };
        for (int k = 0; k < shape.k; ++k) forwards += product(k);
        for (int k = shape.k; k-- > 0;) backwards += product(k);
        CHECK(forwards == backwards);
        const auto c = static_cast<float>(harness::source_at(rules, row, column));
        const auto bias = static_cast<float>(harness::bias_at(rules, row, column));
        const float one = (epilogue.alpha * forwards + epilogue.beta * c) + bias;
        const float other = epilogue.alpha * backwards + (bias + epilogue.beta * c);
        CHECK(one == other);
        const float clipped = epilogue.activation == Activation::kRelu                   ? std::max(one, 0.0F)
                              : epilogue.activation == Activation::kLeakyRelu && one < 0 ? one / 64
                                                                                         : one;
        const auto index = static_cast<std::size_t>(row * shape.n + column);
        CHECK(gemm::to_float(image.d[index]) == gemm::to_float(gemm::to_bf16(clipped)));
      }
    }
  }
}

TEST_CASE("epilogue: every injected fault is rejected, by its own check and for its own reason") {
  const gemm::Shape shape = harness::injected_fault_shape({1, 8, 8}, kTileOfEpilogues);
  std::set<std::string> checks;
  for (const Epilogue& epilogue : some_epilogues()) {
    if (epilogue.alpha == 0) continue;  // C alone: some damage is none
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
      const harness::RunImage correct = harness::correct_image(shape, pattern, 1, epilogue);
      const harness::Acceptance acceptance = harness::host_acceptance(shape, pattern, 1, epilogue);
      const harness::CheckResult undamaged = harness::verify(correct, acceptance, kTileOfEpilogues);
      INFO(undamaged.report);
      REQUIRE(undamaged.ok);
      std::vector<harness::InjectedFault> faults = harness::epilogue_faults(epilogue);
      for (const harness::InjectedFault& fault : harness::faults_of_any_result()) faults.push_back(fault);
      for (const harness::InjectedFault& fault : faults) checks.insert(fault.check);
      const auto verify = [&](const harness::RunImage& image) {
        return harness::verify(image, acceptance, kTileOfEpilogues);
      };
      INFO(harness::to_string(epilogue));
      check_rejected(faults, pattern, correct, verify, kTileOfEpilogues);
    }
  }
  CHECK(checks == std::set<std::string>{harness::kValue, harness::kNeverWritten, harness::kNan,
                                        harness::kInfinity, harness::kGuardBefore, harness::kGuardAfter,
                                        harness::kInputA, harness::kInputB, harness::kInputC,
                                        harness::kInputBias});
}

TEST_CASE("epilogue: names are read, and what is unknown is refused with the nearest") {
  CHECK(harness::parse_activation("gelu_erf") == Activation::kGeluErf);
  CHECK(harness::parse_bias("row") == Bias::kRow);
  CHECK_THROWS_WITH(
      harness::parse_activation("rleu"),
      "unknown activation 'rleu'; did you mean 'relu'? Known: none, relu, leaky_relu, gelu, gelu_erf, silu");
  CHECK_THROWS_WITH(harness::parse_bias("colum"),
                    "unknown bias 'colum'; did you mean 'column'? Known: none, column, row");
}

TEST_CASE("epilogue: a bias or a C of the wrong length is refused in a sentence") {
  gemm::Variant variant;
  variant.prepare = [](const gemm::Problem&) -> gemm::Launcher { return nullptr; };
  gemm::Problem problem(gemm::Gemm{{8, 16, 8}, nullptr, nullptr, nullptr});
  problem.epilogue.bias = Bias::kColumn;
  problem.bias_length = 8;
  CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                    "the bias has 8 elements, and D has 16 columns: it must have one for each");
  problem.bias_length = 16;
  CHECK_NOTHROW(gemm::prepare(variant, problem));
  problem.epilogue.bias = Bias::kRow;
  CHECK_THROWS_WITH(gemm::prepare(variant, problem),
                    "the bias has 16 elements, and D has 8 rows: it must have one for each");
  problem.epilogue = {1, 1, Bias::kNone, Activation::kNone};
  problem.c_pitch = 8;
  CHECK_THROWS_WITH(
      gemm::prepare(variant, problem),
      "a row of C begins 8 elements after the one before, and has N = 16: the pitch must be at least N");
}

TEST_CASE("epilogue: what a variant computes, and what is nearest") {
  gemm::Step step;
  step.name = "99_test";
  step.variants.resize(2);
  step.variants[0].name = "plain";
  step.variants[1].name = "full";
  step.variants[1].epilogues = {true, true, {Bias::kColumn}, {Activation::kRelu}};
  const Epilogue wanted{1, 1, Bias::kNone, Activation::kRelu};
  CHECK(harness::epilogue_problem(step, step.variants[1], wanted).empty());
  CHECK(harness::epilogue_problem(step, step.variants[0], wanted) ==
        "99_test plain does not compute beta = 1 and the activation relu; its variant full does; the nearest "
        "epilogue that it has is alpha 1, beta 0");
  CHECK(harness::epilogue_problem(step, step.variants[1], {1, 1, Bias::kRow, Activation::kSilu}) ==
        "99_test full does not compute a bias by row and the activation silu; the nearest epilogue that it "
        "has is alpha 1, beta 1, bias column, relu");
}

TEST_CASE("epilogue: what is compiled in is always there, and nothing else is") {
  gemm::Step step;
  step.name = "99_test";
  step.variants.resize(3);
  const char* names[] = {"bias_relu", "row_bias", "identity"};
  const Epilogue computed[] = {{1, 0, Bias::kColumn, Activation::kRelu}, {1, 0, Bias::kRow}, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    step.variants[i].name = names[i];
    step.variants[i].epilogues = gemm::only(computed[i], i != 2);
    CHECK(harness::computes(step.variants[i], computed[i]));
    CHECK(harness::form_of(step, step.variants[i]).epilogue == computed[i]);
    CHECK(harness::fullest_epilogue(step.variants[i].epilogues).bias == computed[i].bias);
    for (std::size_t j = 0; j < 3; ++j) CHECK(harness::computes(step.variants[i], computed[j]) == (i == j));
  }
  CHECK(
      harness::epilogue_problem(step, step.variants[0], {}) ==
      "99_test bias_relu does not compute an epilogue without a bias and an epilogue without an activation; "
      "its variant identity does; the nearest epilogue that it has is alpha 1, beta 0, bias column, relu");
  CHECK(harness::epilogue_problem(step, step.variants[0], {1, 0, Bias::kColumn, Activation::kSilu}) ==
        "99_test bias_relu does not compute the activation silu; the nearest epilogue that it has is alpha "
        "1, beta 0, bias column, relu");
  CHECK(harness::epilogue_problem(step, step.variants[2], {2, 0, Bias::kRow}) ==
        "99_test identity does not compute alpha = 2 and a bias by row; its variant row_bias does; the "
        "nearest epilogue that it has is alpha 1, beta 0");
  gemm::Problem plain(gemm::Gemm{{8, 16, 8}, nullptr, nullptr, nullptr});
  CHECK_THROWS_WITH(
      gemm::prepare(step.variants[0], plain),
      "the variant bias_relu has its bias and its activation compiled in, and the problem has others");
}

TEST_CASE("epilogue: one workload serves epilogues with different biases", "[device]") {
  try {
    harness::device_info();
  } catch (const harness::Error& error) {
    skip_test(error.what());
    return;
  }
  const gemm::Shape shape{24, 40, 16};
  harness::Workload workload(shape, Pattern::kExact, 1,
                             {.epilogue = {1, 0, Bias::kColumn, Activation::kRelu}, .has_bias = true});
  const harness::InputRules rules =
      harness::input_rules(shape, Pattern::kExact, 1, {1, 0, Bias::kColumn, Activation::kRelu}, 0, 40);
  for (const Epilogue& epilogue :
       {Epilogue{1, 0, Bias::kRow}, {2, 0, Bias::kColumn, Activation::kRelu}, {}}) {
    CAPTURE(harness::to_string(epilogue));
    workload.poison();
    const gemm::Problem problem = workload.problem(epilogue);
    if (epilogue.bias != Bias::kNone)
      CHECK(problem.bias_length == (epilogue.bias == Bias::kRow ? shape.m : shape.n));
    harness::InputRules computed = rules;
    computed.epilogue = epilogue;
    const harness::Inputs inputs(computed);
    std::vector<gemm::bf16> d;
    for (int row = 0; row < shape.m; ++row) {
      for (int column = 0; column < shape.n; ++column) {
        double sum = 0;
        double norm = 0;
        inputs.sum(row, column, sum, norm);
        d.push_back(gemm::to_bf16(static_cast<float>(inputs.result(row, column, sum))));
      }
    }
    harness::copy_to_device(problem.d, d.data(), d.size() * sizeof(gemm::bf16));
    const harness::CheckResult right = workload.check(kTileOfEpilogues, epilogue);
    INFO(right.report);
    CHECK(right.ok);
  }
  CHECK_FALSE(workload.check(kTileOfEpilogues).ok);  // the last D is of another epilogue
}

TEST_CASE("epilogue: a workload has C, the bias and D in the forms that are asked for", "[device]") {
  try {
    harness::device_info();
  } catch (const harness::Error& error) {
    skip_test(error.what());
    return;
  }
  const gemm::Shape shape{70, 48, 40};
  for (const harness::ProblemForm& form : {harness::ProblemForm{.epilogue = {1, 1}},
                                           {.epilogue = {1, 1}, .in_place = true},
                                           {.epilogue = {2, -0.5F, Bias::kRow}, .c_pitch = 64, .c_offset = 8},
                                           {.epilogue = {}, .has_source = true}}) {
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kIdentity}) {
      harness::Workload workload(shape, pattern, 2, form);
      workload.poison();
      const gemm::Problem problem = workload.problem();
      CHECK((problem.c == problem.d) == form.in_place);
      CHECK(problem.c != nullptr);
      const harness::InputRules rules =
          harness::input_rules(shape, pattern, 2, form.epilogue, form.c_pitch, form.bias_length);
      const std::vector<gemm::bf16> a = harness::host_input(rules.a);
      const std::vector<gemm::bf16> b = harness::host_input(rules.b);
      const harness::Inputs inputs(rules);
      std::vector<gemm::bf16> d;
      for (int row = 0; row < shape.m; ++row) {
        for (int column = 0; column < shape.n; ++column) {
          double sum = 0;
          double norm = 0;
          inputs.sum(row, column, sum, norm);
          d.push_back(gemm::to_bf16(static_cast<float>(inputs.result(row, column, sum))));
        }
      }
      harness::copy_to_device(problem.d, d.data(), d.size() * sizeof(gemm::bf16));
      const harness::CheckResult right = workload.check(kTileOfEpilogues);
      INFO(right.report);
      CHECK(right.ok);
      // C as it was, or the bias: what a kernel writes there is found.
      if (form.in_place || form.epilogue.beta == 0) continue;
      const gemm::bf16 other{0x4242};
      harness::copy_to_device(const_cast<gemm::bf16*>(problem.c) + 5, &other, sizeof other);
      CHECK(workload.check(kTileOfEpilogues).failed == std::vector<std::string>{harness::kInputC});
      CHECK(workload.check(kTileOfEpilogues).ok);  // and is put right again
    }
  }
}

TEST_CASE("epilogue: a C that beta = 0 makes unreadable is checked, too", "[device]") {
  try {
    harness::device_info();
  } catch (const harness::Error& error) {
    skip_test(error.what());
    return;
  }
  harness::Workload workload({16, 16, 16}, Pattern::kExact, 1, {.epilogue = {}, .has_source = true});
  const gemm::bf16 zero{0};
  harness::copy_to_device(const_cast<gemm::bf16*>(workload.problem().c), &zero, sizeof zero);
  const std::vector<std::string> failed = workload.check(kTileOfEpilogues).failed;
  CHECK(std::find(failed.begin(), failed.end(), harness::kInputC) != failed.end());
}

}  // namespace
