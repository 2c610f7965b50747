#include "harness/verify/epilogue/auxiliary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/workload/auxiliary_workload.h"
#include "harness/verify/workload/workload.h"
#include "rejected.h"

namespace {

using gemm::Activation;
using gemm::Auxiliary;
using gemm::Bias;
using gemm::Epilogue;
using harness::AuxImage;
using harness::AuxRules;
using harness::Pattern;

const std::vector<Epilogue> kEpilogues{
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = Auxiliary::kResidual},
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = Auxiliary::kPreActivation},
    {.bias = Bias::kColumn, .activation = Activation::kGelu, .auxiliary = Auxiliary::kPreActivation},
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = Auxiliary::kMask},
    {.auxiliary = Auxiliary::kMaskBackward},
    {.alpha = -0.5F, .activation = Activation::kGelu, .auxiliary = Auxiliary::kPreActivationBackward},
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = Auxiliary::kGate},
    {.bias = Bias::kColumn, .activation = Activation::kSilu, .auxiliary = Auxiliary::kGate},
    {.alpha = -0.5F,
     .beta = 2,
     .bias = Bias::kColumn,
     .activation = Activation::kRelu,
     .auxiliary = Auxiliary::kPreActivation},
    {.beta = 1,
     .bias = Bias::kColumn,
     .activation = Activation::kGelu,
     .auxiliary = Auxiliary::kPreActivation}};
// In one of them N ends inside a word of a mask, in the other one with a word.
const std::vector<gemm::Shape> kShapes{{160, 144, 96}, {97, 224, 40}};
constexpr gemm::TileShape kTile{64, 64, 64};

int pitch_of(const Epilogue& epilogue, const gemm::Shape& shape) {
  return gemm::is_mask(epilogue.auxiliary) ? 256 : shape.n + 8;
}

AuxRules rules_of(const Epilogue& epilogue, const gemm::Shape& shape, Pattern pattern) {
  return harness::aux_rules(shape, pattern, 3, epilogue, pitch_of(epilogue, shape));
}

std::string name(const Epilogue& epilogue, const gemm::Shape& shape, Pattern pattern) {
  return harness::to_string(epilogue) + " " + harness::to_string(shape) + " " + to_string(pattern);
}

TEST_CASE("auxiliary: a flawless result of every epilogue and pattern is accepted") {
  for (const Epilogue& epilogue : kEpilogues) {
    for (const gemm::Shape& shape : kShapes) {
      for (const Pattern pattern :
           {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange}) {
        const AuxRules rules = rules_of(epilogue, shape, pattern);
        const auto result =
            harness::verify(rules, harness::correct_image(rules), harness::aux_acceptance(rules), kTile);
        INFO(name(epilogue, shape, pattern) << "\n" << result.report);
        CHECK(result.ok);
        const bool exact = is_exact(pattern, epilogue);
        CHECK((contains(result.summary, "bit for bit")) == exact);
      }
    }
  }
}

TEST_CASE("auxiliary: every damaged result is rejected by the right check, and the report says why") {
  for (const Epilogue& epilogue : kEpilogues) {
    for (const gemm::Shape& shape : kShapes) {
      for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
        const AuxRules rules = rules_of(epilogue, shape, pattern);
        const AuxImage correct = harness::correct_image(rules);
        const auto acceptance = harness::aux_acceptance(rules);
        INFO(name(epilogue, shape, pattern));
        const auto verify = [&](const AuxImage& image) {
          return harness::verify(rules, image, acceptance, kTile);
        };
        check_rejected(harness::aux_faults(epilogue), pattern, correct, verify, rules, kTile);
      }
    }
  }
}

TEST_CASE("auxiliary: a NaN of C must be a NaN in the outputs, any of them, and an infinity an infinity") {
  const AuxRules rules = rules_of(kEpilogues.back(), kShapes[0], Pattern::kExact);
  const auto acceptance = harness::aux_acceptance(rules);
  const AuxImage right = harness::correct_image(rules);
  const auto verify_with = [&](std::uint16_t from, std::uint16_t to) {
    AuxImage image = right;
    const auto element =
        std::find_if(image.d.begin(), image.d.end(), [&](gemm::bf16 one) { return one.bits == from; });
    REQUIRE(element != image.d.end());
    element->bits = to;
    return harness::verify(rules, image, acceptance, kTile);
  };
  CHECK(verify_with(0x7fff, 0x7fc1).ok);
  CHECK(verify_with(0x7fff, 0x7f80).failed == std::vector<std::string>{harness::kValue});
  CHECK(verify_with(0x7fff, 0xffff).failed == std::vector<std::string>{harness::kNeverWritten});
  CHECK(verify_with(0x7f80, 0x7f7f).failed == std::vector<std::string>{harness::kValue});
  CHECK(verify_with(0x7f80, 0x7fff).failed == std::vector<std::string>{harness::kValue});
  // GELU of the negative one is 0 times infinity.
  CHECK(std::none_of(right.d.begin(), right.d.end(), [](gemm::bf16 one) { return one.bits == 0xff80; }));
}

TEST_CASE(
    "auxiliary: the report says that units of 16 bytes stand in each other's place, by which swizzles") {
  const Epilogue epilogue{
      .bias = Bias::kColumn, .activation = Activation::kSilu, .auxiliary = Auxiliary::kGate};
  const AuxRules rules = rules_of(epilogue, {160, 256, 96}, Pattern::kNormal);
  const auto acceptance = harness::aux_acceptance(rules);
  const AuxImage right = harness::correct_image(rules);
  const auto report_with = [&](auto unit_of) {
    AuxImage image = right;
    const int columns = rules.columns_of_d();
    for (int row = 0; row < 160; ++row) {
      for (int column = 0; column < columns; ++column)
        image.d[static_cast<std::size_t>(row * columns + column)] =
            right.d[static_cast<std::size_t>(row * columns + 8 * unit_of(row, column / 8) + column % 8)];
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  CHECK(report_with([](int, int unit) { return unit; }).empty());
  const std::string other = report_with([](int row, int unit) { return unit ^ (row % 4) ^ (row / 2 % 4); });
  check_text(other, {"In row 1, unit u holds what belongs to unit u ^ 1",
                     "exclusive-or with row / 2 % 4 (the 64-byte swizzle) and the other side with row % 4"});
  // Not by a rule of rows: each row its own order.
  const std::string chance = report_with([](int, int unit) { return unit / 8 * 8 + (unit % 8 * 3 + 1) % 8; });
  CHECK_FALSE(contains(chance, "units of 16 bytes"));
}

TEST_CASE("auxiliary: the report says that words of a mask were not cleared, and which pitch was taken") {
  const AuxRules rules = rules_of(kEpilogues[3], {160, 256, 96}, Pattern::kExact);
  const auto acceptance = harness::aux_acceptance(rules);
  const AuxImage right = harness::correct_image(rules);
  constexpr gemm::TileShape kWide{64, 128, 64};
  // Words with those in front of them in the same tile, or in any.
  const auto report_with = [&](std::size_t words_of_tile) {
    AuxImage image = right;
    for (std::size_t word = 0; word < image.tensor.size() / 4; ++word) {
      for (std::size_t before = 2; before <= word % words_of_tile; before += 2) {
        for (std::size_t i = 0; i < 4; ++i)
          image.tensor[4 * word + i] =
              static_cast<std::uint8_t>(image.tensor[4 * word + i] | right.tensor[4 * (word - before) + i]);
      }
    }
    return harness::verify(rules, image, acceptance, kWide).report;
  };
  INFO(report_with(4));
  CHECK(contains(report_with(4), "Clear the words for every 64 columns"));
  CHECK_FALSE(contains(report_with(8), "Clear the words"));

  // Of subtiles of 64 x 64 of a tile of 128 x 128, row by row of subtiles, or against their order.
  const auto words_of = [&](bool forwards) {
    AuxImage image = right;
    constexpr std::size_t kWords = 8;  // of a row
    for (std::size_t word = 0; word < image.tensor.size() / 4; ++word) {
      const std::size_t row = word / kWords;
      const std::size_t column = word % kWords;
      for (std::size_t from = 0; from < image.tensor.size() / 4; ++from) {
        const std::size_t of_row = from / kWords;
        const std::size_t of_column = from % kWords;
        const auto order = [](std::size_t r, std::size_t c) { return r / 64 % 2 * 2 + c / 2 % 2; };
        const bool earlier = order(of_row, of_column) < order(row, column);
        if (of_row / 128 != row / 128 || of_row % 64 != row % 64 || of_column / 4 != column / 4 ||
            of_column % 2 != column % 2 || order(of_row, of_column) == order(row, column) ||
            earlier != forwards)
          continue;
        for (std::size_t i = 0; i < 4; ++i)
          image.tensor[4 * word + i] =
              static_cast<std::uint8_t>(image.tensor[4 * word + i] | right.tensor[4 * from + i]);
      }
    }
    return harness::verify(rules, image, acceptance, {128, 128, 64}).report;
  };
  INFO(words_of(true));
  CHECK(contains(words_of(true), "Clear the words for every subtile"));
  CHECK_FALSE(contains(words_of(false), "Clear the words"));

  const AuxRules stored = rules_of(kEpilogues[1], kShapes[0], Pattern::kExact);
  AuxImage packed = harness::correct_image(stored);
  const auto n = static_cast<std::size_t>(stored.shape().n);
  const auto pitch = static_cast<std::size_t>(stored.pitch);
  for (std::size_t row = 1; row < static_cast<std::size_t>(stored.shape().m); ++row)
    std::copy_n(packed.tensor.begin() + static_cast<std::ptrdiff_t>(2 * row * pitch), 2 * n,
                packed.tensor.begin() + static_cast<std::ptrdiff_t>(2 * row * n));
  check_text(harness::verify(stored, packed, harness::aux_acceptance(stored), kTile).report,
             {"stored with the row pitch of D instead of its own"});
}

TEST_CASE("auxiliary: the report says which subtile of the tensor each subtile of D got") {
  const Epilogue epilogue{.auxiliary = Auxiliary::kResidual};
  const AuxRules rules = rules_of(epilogue, {300, 392, 40}, Pattern::kExact);
  const auto acceptance = harness::aux_acceptance(rules);
  const AuxImage right = harness::correct_image(rules);
  const harness::Inputs inputs(rules.base);
  const auto residual = [&](int row, int column) {
    if (row >= 300 || column >= 392) return 0.0;
    gemm::bf16 value;
    std::memcpy(&value, &right.tensor[2 * static_cast<std::size_t>(row * rules.pitch + column)], 2);
    return static_cast<double>(gemm::to_float(value));
  };
  // `from(i, j)`: the subtile of a tile of 128 x 192 that subtile (i, j) gets.
  const auto report_with = [&](auto from) {
    AuxImage image = right;
    for (int row = 0; row < 300; ++row) {
      for (int column = 0; column < 392; ++column) {
        const auto [i, j] = from(row % 128 / 64, column % 192 / 64);
        const double added =
            residual(row / 128 * 128 + i * 64 + row % 64, column / 192 * 192 + j * 64 + column % 64);
        double sum = 0;
        double norm = 0;
        inputs.sum(row, column, sum, norm);
        image.d[static_cast<std::size_t>(row * 392 + column)] =
            gemm::to_bf16(static_cast<float>(sum + added));
      }
    }
    return harness::verify(rules, image, acceptance, {128, 192, 64}).report;
  };
  CHECK(report_with([](int i, int j) { return std::pair(i, j); }).empty());
  const std::string exchanged = report_with([](int i, int j) { return std::pair(j, i); });
  check_text(exchanged, {"(0, 1) used that of (1, 0), (0, 2) used that of (2, 0), (1, 0) used that of (0, 1)",
                         "The row and the column of the subtile are exchanged"});
  const std::string next = report_with([](int i, int j) { return std::pair(i, (j + 1) % 3); });
  check_text(next, {"(0, 0) used that of (0, 1), (0, 1) used that of (0, 2), (0, 2) used that of (0, 0)"},
             {"exchanged"});
  // No subtiles: every row takes that of another one.
  CHECK_FALSE(contains(report_with([](int i, int j) { return std::pair(i + 7, j); }), "Subtiles of"));
}

TEST_CASE("auxiliary: the reference of single elements, computed by hand") {
  const gemm::Shape shape{16, 16, 8};
  for (const Epilogue& epilogue : kEpilogues) {
    const AuxRules rules = rules_of(epilogue, shape, Pattern::kExact);
    const AuxImage image = harness::correct_image(rules);
    const harness::Inputs inputs(rules.base);
    const auto x = [&](int row, int column) {
      double sum = 0;
      double norm = 0;
      inputs.sum(row, column, sum, norm);
      const double source =
          epilogue.beta == 0 ? 0 : static_cast<double>(epilogue.beta) * source_at(rules.base, row, column);
      return static_cast<double>(epilogue.alpha) * sum + source + bias_at(rules.base, row, column);
    };
    const auto relu = [](double value) { return value > 0 ? value : 0; };
    const auto element = [&](int row, int column) {
      const std::size_t byte = 2 * static_cast<std::size_t>(row * rules.pitch + column);
      const auto bits =
          static_cast<unsigned>(image.tensor[byte]) | static_cast<unsigned>(image.tensor[byte + 1]) << 8;
      return static_cast<double>(gemm::to_float(gemm::bf16{static_cast<std::uint16_t>(bits)}));
    };
    const auto bf16 = [](double value) {
      return static_cast<double>(gemm::to_float(gemm::to_bf16(static_cast<float>(value))));
    };
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < rules.columns_of_d(); ++column) {
        const double d = static_cast<double>(
            gemm::to_float(image.d[static_cast<std::size_t>(row * rules.columns_of_d() + column)]));
        INFO(harness::to_string(epilogue) << " " << row << " " << column);
        if (!std::isfinite(source_at(rules.base, row, column))) continue;
        switch (epilogue.auxiliary) {
          case Auxiliary::kResidual:
            CHECK(d == bf16(relu(x(row, column)) + element(row, column)));
            break;
          case Auxiliary::kPreActivation:
            CHECK(element(row, column) == bf16(x(row, column)));
            if (epilogue.activation == Activation::kRelu) CHECK(d == bf16(relu(x(row, column))));
            break;
          case Auxiliary::kMask:
            CHECK(harness::mask_bit(image.tensor.data(), rules.pitch, row, column) == (x(row, column) > 0));
            break;
          case Auxiliary::kMaskBackward:
            CHECK(d == (harness::mask_bit(image.tensor.data(), rules.pitch, row, column)
                            ? bf16(x(row, column))
                            : 0));
            break;
          case Auxiliary::kGate:
            if (epilogue.activation == Activation::kRelu)
              CHECK(d == bf16(relu(x(row, 2 * column)) * x(row, 2 * column + 1)));
            break;
          default: {
            const double z = element(row, column);
            constexpr double kStep = 1e-5;
            const auto gelu = [](double at) {
              return harness::epilogue_value({.activation = Activation::kGelu}, at, 0, 0);
            };
            const double slope = (gelu(z + kStep) - gelu(z - kStep)) / (2 * kStep);
            CHECK(d == Approx(x(row, column) * slope).epsilon(0.005).margin(1e-6));
          }
        }
      }
    }
  }
}

/// GELU's derivative as a kernel computes it, in binary32.
float slope_in_binary32(float z, float exponential_off, float reciprocal_off) {
  const float clamped = std::min(std::max(z, -10.0F), 10.0F);
  const float square = clamped * clamped;
  const float inner = clamped * std::fma(0.0713548162F, square, 1.5957691216F);
  const float exponential = std::exp2(-1.4426950409F * inner) * exponential_off;
  const float s = 1 / (1 + exponential) * reciprocal_off;
  const float bend = clamped * std::fma(0.2140644488F, square, 1.5957691216F);
  return std::fma(bend * s, exponential * s, s);
}

TEST_CASE("auxiliary: the bound of GELU's derivative holds what a kernel may compute, and little more") {
  for (int i = -4000; i <= 4000; ++i) {
    const float z = static_cast<float>(i) / 200;
    for (const float off : {-1.0F, 0.0F, 1.0F}) {
      const double got =
          static_cast<double>(slope_in_binary32(z, 1 + off * 2.5F * 0x1p-23F, 1 - off * 0x1p-23F));
      const double right = harness::gelu_derivative(static_cast<double>(z));
      const double allowed = harness::gelu_derivative_error(static_cast<double>(z));
      INFO("z = " << z << ", off " << off << ": " << got << " for " << right << ", allowed " << allowed);
      REQUIRE(std::abs(got - right) <= allowed);
      REQUIRE(allowed < 2e-4);
    }
  }
  // Far out it is 0 and 1, and nothing overflows.
  CHECK(harness::gelu_derivative(-1e30) == 0);
  CHECK(harness::gelu_derivative(1e30) == 1);
  CHECK(harness::gelu_derivative_error(1e30) < 1e-4);
  CHECK(harness::gelu_derivative_error(-1e30) < 1e-4);
}

TEST_CASE("auxiliary: what two kernels round in between is right where that is allowed, and nowhere else") {
  const gemm::Shape shape{97, 224, 40};
  for (const Epilogue& epilogue : kEpilogues) {
    if (epilogue.auxiliary == Auxiliary::kGate || epilogue.activation == Activation::kRelu) continue;
    if (!gemm::is_written(epilogue.auxiliary) && epilogue.auxiliary != Auxiliary::kPreActivationBackward)
      continue;
    const AuxRules rules = harness::aux_rules(shape, Pattern::kUniform, 3, epilogue);
    AuxImage image = harness::correct_image(rules);
    Epilogue linear = epilogue;  // x alone, rounded: what the first kernel leaves
    linear.activation = Activation::kNone;
    linear.auxiliary = Auxiliary::kNone;
    AuxRules of_x = rules;
    of_x.base.epilogue = linear;
    const AuxImage x = harness::correct_image(of_x);
    for (std::size_t i = 0; i < image.d.size(); ++i) {
      const auto value = static_cast<double>(gemm::to_float(x.d[i]));
      double to = 0;
      if (epilogue.auxiliary == Auxiliary::kPreActivation) {
        to = harness::epilogue_value({.activation = epilogue.activation}, value, 0, 0);
      } else {
        gemm::bf16 z;
        std::memcpy(&z, &image.tensor[2 * i], sizeof z);
        to = value * harness::gelu_derivative(static_cast<double>(gemm::to_float(z)));
      }
      image.d[i] = gemm::to_bf16(static_cast<float>(to));
    }
    INFO(harness::to_string(epilogue));
    const auto accepts = [&](const harness::Allowance& allowance) {
      return harness::verify(rules, image, harness::aux_acceptance(rules, allowance), kTile).ok;
    };
    CHECK(accepts({.product = true}));
    CHECK_FALSE(accepts({}));
    image.d.front() = gemm::to_bf16(1.1F * gemm::to_float(image.d.front()) + 0.1F);
    CHECK_FALSE(accepts({.product = true}));
  }
}

TEST_CASE(
    "auxiliary: what lies between the rows of a mask may be written where that is allowed, no other bit") {
  const gemm::Shape shape{160, 144, 96};
  const AuxRules rules = rules_of(kEpilogues[3], shape, Pattern::kNormal);
  const AuxImage right = harness::correct_image(rules);
  const std::size_t row = static_cast<std::size_t>(rules.pitch) / 8;  // in bytes
  // With bits [column, column + 8) of row 5 turned round.
  const auto failed = [&](int column, const harness::Allowance& allowance) {
    AuxImage image = right;
    std::uint8_t& byte = image.tensor[5 * row + static_cast<std::size_t>(column) / 8];
    byte = static_cast<std::uint8_t>(~byte);
    return harness::verify(rules, image, harness::aux_acceptance(rules, allowance), kTile).failed;
  };
  for (const int column : {144, 160, rules.pitch - 8}) {  // in the last word, behind it, at the row's end
    INFO(column);
    CHECK(failed(column, {}) == std::vector<std::string>{harness::kAuxPadding});
    CHECK(failed(column, {.padding = true}).empty());
  }
  CHECK_FALSE(failed(136, {.padding = true}).empty());
}

TEST_CASE("auxiliary: contestants with less share the inputs, and one that needs more is refused") {
  const Epilogue whole{.bias = Bias::kColumn, .reduction = gemm::Reduction::kAmax};
  harness::Workload workload({40, 48, 40}, Pattern::kExact, 1, {.epilogue = whole});
  CHECK(workload.problem().epilogue == whole);
  CHECK(workload.problem(Epilogue{}).epilogue.is_plain());
  workload.auxiliary().restore(harness::correct_image(workload.auxiliary().rules()));
  CHECK(workload.check(kTile).ok);
  CHECK_FALSE(workload.check(kTile, Epilogue{}).ok);  // D has the bias
  Epilogue more = whole;
  more.reduction = gemm::Reduction::kRowSums;
  CHECK_THROWS_WITH(workload.problem(more), has_text("time the two one after the other"));
  more = {.bias = Bias::kColumn, .auxiliary = Auxiliary::kResidual};
  CHECK_THROWS_WITH(workload.problem(more), has_text("needs others"));
}

TEST_CASE("auxiliary: of a mask both bits are right where the sign cannot be known, and only there") {
  const AuxRules rules = rules_of(kEpilogues[3], {300, 304, 512}, Pattern::kNormal);
  const auto bits = harness::aux_acceptance(rules).bits;
  std::int64_t either = 0;
  for (const std::uint8_t one : bits) {
    REQUIRE(one > 0);
    either += one == 3;
  }
  CHECK(either > 0);
  CHECK(either < static_cast<std::int64_t>(bits.size()) / 100);
}

TEST_CASE("auxiliary: a problem whose tensor cannot be right is refused in one sentence") {
  gemm::Variant variant;
  variant.name = "mine";
  variant.prepare = [](const gemm::Problem&) { return gemm::Launcher(); };
  gemm::Problem problem;
  problem.shape = {64, 144, 32};
  alignas(16) std::uint32_t memory[64] = {};
  problem.auxiliary = memory;
  const auto prepare = [&](Auxiliary auxiliary) {
    variant.epilogues = gemm::only({.auxiliary = auxiliary}, false);
    problem.epilogue.auxiliary = auxiliary;
    return gemm::prepare(variant, problem);
  };
  problem.auxiliary_pitch = 128;
  CHECK_THROWS_WITH(prepare(Auxiliary::kResidual),
                    "a row of the auxiliary tensor begins 128 elements after the previous row, but has N = "
                    "144: the pitch must be at least N");
  problem.auxiliary_pitch = 160;
  CHECK_NOTHROW(prepare(Auxiliary::kResidual));
  CHECK_THROWS_WITH(
      prepare(Auxiliary::kMask),
      "a row of the bit mask begins 160 bits after the previous row: that must be a multiple of 128");
  problem.auxiliary_pitch = 256;
  CHECK_NOTHROW(prepare(Auxiliary::kMask));
  problem.auxiliary = reinterpret_cast<std::uint8_t*>(memory) + 4;
  CHECK_THROWS_WITH(
      prepare(Auxiliary::kMaskBackward),
      "the bit mask begins 4 bytes after a multiple of 16: its address must be a multiple of 16");
  problem.auxiliary = nullptr;
  CHECK_THROWS_WITH(prepare(Auxiliary::kPreActivation),
                    "the epilogue has an auxiliary tensor, but its address is null");
  CHECK_NOTHROW(prepare(Auxiliary::kGate));
  problem.shape.n = 136;
  CHECK_THROWS_WITH(prepare(Auxiliary::kGate),
                    "a gate makes one column of D from two, but N is 136: N must be a multiple of 16, so "
                    "that rows of D are whole vectors of 16 bytes");
  CHECK_THROWS_WITH(harness::Workload({8, 9, 8}, Pattern::kExact, 1, {.epilogue = kEpilogues[6]}),
                    "a gate makes one column of D from two, but N is 9: N must be even");
}

TEST_CASE("auxiliary: a variant computes its own tensor only") {
  gemm::Variant variant;
  variant.epilogues = gemm::only(kEpilogues[0], true);
  CHECK(harness::computes(variant, kEpilogues[0]));
  CHECK_FALSE(harness::computes(variant, kEpilogues[3]));
  Epilogue without = kEpilogues[0];
  without.auxiliary = Auxiliary::kNone;
  CHECK_FALSE(harness::computes(variant, without));
  gemm::Variant plain;
  CHECK_FALSE(harness::computes(plain, {.auxiliary = Auxiliary::kGate}));
  gemm::Step step;
  step.name = "99_mine";
  variant.name = "mine";
  CHECK(harness::epilogue_problem(step, variant, without) ==
        "99_mine mine does not compute an epilogue without its residual; the nearest epilogue that it has is "
        "alpha 1, beta 0, bias column, relu, residual");
}

}  // namespace
