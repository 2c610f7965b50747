#include "harness/verify/epilogue/reductions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/base/problem.h"
#include "harness/verify/epilogue/auxiliary.h"
#include "harness/verify/inputs.h"
#include "rejected.h"

namespace {

using gemm::Activation;
using gemm::Auxiliary;
using gemm::Bias;
using gemm::Epilogue;
using gemm::Reduction;
using harness::AuxImage;
using harness::AuxRules;
using harness::Pattern;

const std::vector<Epilogue> kReductions{
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .reduction = Reduction::kColumnSums},
    {.alpha = -0.5F,
     .bias = Bias::kColumn,
     .activation = Activation::kRelu,
     .reduction = Reduction::kRowSums},
    {.auxiliary = Auxiliary::kMaskBackward, .reduction = Reduction::kColumnSums},
    {.activation = Activation::kGelu,
     .auxiliary = Auxiliary::kPreActivationBackward,
     .reduction = Reduction::kColumnSums},
    {.bias = Bias::kColumn, .reduction = Reduction::kAmax},
    {.alpha = 0.0625F, .reduction = Reduction::kTopKSoftmax, .top_k = 3}};
constexpr gemm::Shape kReducedShape{97, 144, 40};
constexpr gemm::TileShape kReducedTile{64, 64, 64};

std::string name_of(const Epilogue& epilogue, Pattern pattern) {
  return harness::to_string(epilogue) + ", " + to_string(pattern);
}

TEST_CASE("reductions: a flawless result of every kind and pattern is accepted") {
  for (const Epilogue& epilogue : kReductions) {
    for (const Pattern pattern :
         {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange}) {
      const AuxRules rules = harness::aux_rules(kReducedShape, pattern, 3, epilogue);
      const auto acceptance = harness::aux_acceptance(rules);
      const auto result = verify(rules, harness::correct_image(rules), acceptance, kReducedTile);
      INFO(name_of(epilogue, pattern) << "\n" << result.report);
      CHECK(result.ok);
      // Exact elements have exact sums: one result is right.
      if (gemm::is_written(epilogue.reduction) && pattern == Pattern::kExact && is_exact(pattern, epilogue))
        CHECK(acceptance.reduced.low == acceptance.reduced.high);
    }
  }
}

TEST_CASE("reductions: every damaged result is rejected by the right check, and the report says why") {
  for (const Epilogue& epilogue : kReductions) {
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
      const AuxRules rules = harness::aux_rules(kReducedShape, pattern, 3, epilogue);
      const AuxImage correct = harness::correct_image(rules);
      const auto acceptance = harness::aux_acceptance(rules);
      INFO(name_of(epilogue, pattern));
      const auto verify = [&](const AuxImage& image) {
        return harness::verify(rules, image, acceptance, kReducedTile);
      };
      check_rejected(harness::aux_faults(epilogue), pattern, correct, verify, rules, kReducedTile);
    }
  }
}

TEST_CASE("reductions: special inputs show what becomes of NaN, and a result that loses it is rejected") {
  for (const Epilogue& epilogue : kReductions) {
    const AuxRules rules = harness::aux_rules(kReducedShape, Pattern::kSpecial, 3, epilogue);
    const AuxImage correct = harness::correct_image(rules);
    const auto acceptance = harness::aux_acceptance(rules);
    const auto failed = [&](const AuxImage& image) {
      const auto result = harness::verify(rules, image, acceptance, kReducedTile);
      return result.ok ? std::string("ok") : result.failed.front();
    };
    INFO(name_of(epilogue, Pattern::kSpecial));
    CHECK(failed(correct) == "ok");
    AuxImage zeros = correct;
    std::size_t nan = 0;
    for (float& one : zeros.reduced) {
      if (!std::isnan(one)) continue;
      one = 0;
      ++nan;
    }
    if (correct.reduced.empty()) continue;
    CHECK(nan > 0);
    CHECK((nan == 1 || nan < correct.reduced.size() / 2));
    CHECK(failed(zeros) == harness::kReducedValue);
  }
}

TEST_CASE("top k: NaN is never taken, and what is taken beside infinity becomes NaN") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const auto share = [](double value) { return std::isnan(value) ? "nan" : value == 0 ? "0" : "share"; };
  const auto shares = [&](const std::vector<double>& row) {
    std::string text;
    for (const double one : harness::top_k_softmax(row, 2)) text += std::string(share(one)) + " ";
    std::vector<harness::Interval> intervals;
    for (const double one : row) intervals.push_back({one, one});
    std::string again;
    for (const harness::Interval& one : harness::top_k_intervals(intervals, 2))
      again += std::string(share(one.low)) + " ";
    CHECK(again == text);
    return text;
  };
  CHECK(shares({1, kNan, 3, 2}) == "0 0 share share ");
  CHECK(shares({kNan, kNan, kNan}) == "0 0 0 ");
  CHECK(shares({kNan, kNan, 1}) == "0 0 share ");
  CHECK(shares({1, kInfinite, 2, -kInfinite}) == "0 nan nan 0 ");
  CHECK(shares({-kInfinite, kInfinite, -kInfinite, kNan}) == "nan nan nan 0 ");
  CHECK(shares({kInfinite, kInfinite, kInfinite, kNan}) == "nan nan 0 0 ");
}

TEST_CASE("reductions: what an opponent rounds is right where that is allowed, and nowhere else") {
  constexpr gemm::Shape kTall{257, 144, 40};
  const auto rounded = [](float value) { return gemm::to_float(gemm::to_bf16(value)); };
  for (const Epilogue& epilogue : kReductions) {
    if (!gemm::is_sum(epilogue.reduction)) continue;
    const AuxRules rules = harness::aux_rules(kTall, Pattern::kNormal, 3, epilogue);
    const AuxImage correct = harness::correct_image(rules);
    const auto accepts = [&](const AuxImage& image, const harness::Allowance& allowance) {
      return harness::verify(rules, image, harness::aux_acceptance(rules, allowance), kReducedTile).ok;
    };
    INFO(harness::to_string(epilogue));
    AuxImage of_bf16 = correct;  // the result's type is D's
    for (float& one : of_bf16.reduced) one = rounded(one);
    CHECK_FALSE(accepts(of_bf16, {}));
    CHECK(accepts(of_bf16, {.reduction = true}));
    AuxImage of_d = correct;  // a second kernel reads D
    for (float& one : of_d.reduced) one = 0;
    const bool by_row = epilogue.reduction == Reduction::kRowSums;
    for (std::size_t i = 0; i < of_d.d.size(); ++i)
      of_d.reduced[by_row ? i / kTall.n : i % kTall.n] += gemm::to_float(of_d.d[i]);
    CHECK_FALSE(accepts(of_d, {}));
    CHECK(accepts(of_d, {.summands = true}));
    AuxImage wrong = correct;
    std::rotate(wrong.reduced.begin(), wrong.reduced.begin() + 1, wrong.reduced.end());
    CHECK_FALSE(accepts(wrong, {.summands = true, .reduction = true}));
  }
}

TEST_CASE("reductions: an e4m3 D is scaled, saturates, and the largest magnitude is not scaled") {
  const Epilogue epilogue{.bias = Bias::kColumn, .reduction = Reduction::kAmax};
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kArange}) {
    const AuxRules rules = harness::aux_rules(kReducedShape, pattern, 3, epilogue, 0, 0, gemm::Type::kE4m3);
    const AuxRules of_bf16 = harness::aux_rules(kReducedShape, pattern, 3, epilogue);
    const AuxImage correct = harness::correct_image(rules);
    const AuxImage wide = harness::correct_image(of_bf16);
    const auto acceptance = harness::aux_acceptance(rules);
    INFO(name_of(epilogue, pattern) << ", scale " << rules.d_scale);
    CHECK(harness::verify(rules, correct, acceptance, kReducedTile).ok);
    CHECK(correct.reduced == wide.reduced);
    std::size_t saturated = 0;
    for (std::size_t i = 0; i < correct.d.size(); ++i) {
      const float got = gemm::to_float(correct.d[i]);
      const float scaled = gemm::to_float(wide.d[i]) * rules.d_scale;
      saturated += std::abs(got) == 448 ? 1 : 0;
      CHECK(std::abs(got - std::clamp(scaled, -448.0F, 448.0F)) <= 0x1p-3F * std::abs(scaled) + 0x1p-9F);
    }
    if (pattern == Pattern::kNormal) CHECK((saturated > 50 && saturated < correct.d.size() / 3));
    if (pattern != Pattern::kExact && pattern != Pattern::kNormal) continue;
    const auto verify = [&](const AuxImage& image) {
      return harness::verify(rules, image, acceptance, kReducedTile);
    };
    check_rejected(harness::aux_faults(epilogue, gemm::Type::kE4m3), pattern, correct, verify, rules,
                   kReducedTile);
  }
}

TEST_CASE("reductions: sums of single columns and rows, computed by hand") {
  for (const Epilogue& epilogue : kReductions) {
    if (epilogue.auxiliary != Auxiliary::kNone || epilogue.reduction == Reduction::kTopKSoftmax) continue;
    const AuxRules rules = harness::aux_rules({16, 24, 8}, Pattern::kExact, 3, epilogue);
    const AuxImage image = harness::correct_image(rules);
    const harness::Inputs inputs(rules.base);
    std::vector<double> columns(24);
    std::vector<double> rows(16);
    double largest = 0;
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 24; ++column) {
        double sum = 0;
        double norm = 0;
        inputs.sum(row, column, sum, norm);
        const double x = static_cast<double>(epilogue.alpha) * sum + bias_at(rules.base, row, column);
        const double v = epilogue.activation == Activation::kRelu && x < 0 ? 0 : x;
        columns[static_cast<std::size_t>(column)] += v;
        rows[static_cast<std::size_t>(row)] += v;
        largest = std::max(largest, std::abs(v));
      }
    }
    std::vector<float> expected{static_cast<float>(largest)};
    if (epilogue.reduction == Reduction::kColumnSums) expected = {columns.begin(), columns.end()};
    if (epilogue.reduction == Reduction::kRowSums) expected = {rows.begin(), rows.end()};
    CHECK(image.reduced == expected);
  }
}

TEST_CASE("reductions: results that stand in the place of others are recognised") {
  harness::ReducedAcceptance right;
  std::vector<float> sums;
  for (int i = 0; i < 40; ++i) sums.push_back(static_cast<float>((i * 37 + 5) % 101 - 50));
  right.low = right.high = sums;
  right.of_rounded.assign(sums.begin(), sums.end());
  right.of_padding.assign(sums.size(), 0);
  const auto explain = [&](const std::vector<float>& got) {
    std::vector<std::string> failed;
    std::string text;
    harness::check_reduced(Reduction::kColumnSums, right, 0, got, failed, text);
    INFO(text);
    return text;
  };
  CHECK(explain(sums).empty());
  std::vector<float> of_tile = sums;
  for (std::size_t i = 16; i < 40; ++i) of_tile[i] = sums[i % 16];
  CHECK(contains(explain(of_tile), "These are the right results of the first 16 columns"));
  std::vector<float> shifted = sums;
  for (std::size_t i = 8; i < 20; ++i) shifted[i] = sums[i + 3];
  CHECK(contains(explain(shifted), "each belongs to the column that lies 3 further on"));
  std::vector<float> other = sums;
  for (std::size_t i = 8; i < 20; ++i) other[i] = 1000 + static_cast<float>(i * i);
  CHECK(contains(explain(other), "Where: columns 8 to 19, all of them. No simple mistake fits."));
}

TEST_CASE("reductions: results that have changed places inside a period are recognised") {
  harness::ReducedAcceptance right;
  std::vector<float> sums;
  for (int i = 0; i < 72; ++i) sums.push_back(static_cast<float>((i * i * 37 + 5) % 1009));
  right.low = right.high = sums;
  right.of_rounded.assign(sums.begin(), sums.end());
  right.of_padding.assign(sums.size(), 0);
  const auto explain = [&](const std::function<std::size_t(std::size_t)>& from) {
    std::vector<float> got;
    for (std::size_t i = 0; i < sums.size(); ++i) got.push_back(sums[std::min(from(i), sums.size() - 1)]);
    std::vector<std::string> failed;
    std::string text;
    harness::check_reduced(Reduction::kColumnSums, right, 0, got, failed, text);
    return text;
  };
  const std::string bits = explain(
      [](std::size_t i) { return i >= 64 ? i : (i & ~std::size_t{9}) | (i & 1) << 3 | (i >> 3 & 1); });
  check_text(bits, {"in each 16 columns, these have changed places: 1 and 8, 3 and 10, 5 and 12, 7 and 14. "
                    "For each place, bits 0 and 3 of its number are exchanged"});
  const std::string mask = explain([](std::size_t i) { return i ^ 4; });
  check_text(mask, {"in each 8 columns, these have changed places: 0 and 4, 1 and 5",
                    "combined with 4 by exclusive-or"});
  const std::string turned = explain([](std::size_t i) { return i / 4 * 4 + (i + 1) % 4; });
  check_text(turned, {"in each 4 columns, 0 has the result of 1, 1 has the result of 2"});
  CHECK(
      contains(explain([](std::size_t i) { return i == 3   ? 8
                                                  : i == 8 ? 3
                                                           : i; }), "No simple mistake fits"));
}

TEST_CASE("reductions: the report says how often the subtiles of a tile were counted") {
  const gemm::Shape shape{6, 320, 16};
  harness::ReducedReference reference(Reduction::kRowSums, shape);
  const auto value = [](int row, int column) { return (row * 131 + column * 37) % 61 - 25; };
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column)
      reference.add(row, column, {static_cast<double>(value(row, column))});
  }
  const harness::ReducedAcceptance right = reference.acceptance(true, 1);
  const auto explain = [&](const std::vector<int>& times) {
    std::vector<float> got;
    for (int row = 0; row < shape.m; ++row) {
      int sum = 0;
      for (int column = 0; column < shape.n; ++column)
        sum += times[static_cast<std::size_t>(column / 64) % 3] * value(row, column);
      got.push_back(static_cast<float>(sum));
    }
    std::vector<std::string> failed;
    std::string text;
    harness::check_reduced(Reduction::kRowSums, right, 0, got, failed, text, 192);
    return text;
  };
  CHECK(explain({1, 1, 1}).empty());
  INFO(explain({3, 2, 1}));
  CHECK(contains(explain({3, 2, 1}),
                 "count 3, 2, 1 times: a thread adds what it has summed up so far after every subtile"));
  CHECK(contains(explain({1, 0, 1}), "count 1, 0, 1 times: one of them is missing"));
  CHECK_FALSE(contains(explain({7, 1, 1}), "subtiles of 64 columns"));
}

TEST_CASE("reductions: the bound of a sum holds for bad orders, and is not many times too large") {
  // Increasing, decreasing and alternating magnitudes, one after the other.
  for (const int count : {2, 100, 5000}) {
    for (const int kind : {0, 1, 2}) {
      float sum = 0;
      double exact = 0;
      double magnitude = 0;
      for (int i = 0; i < count; ++i) {
        const double size = kind == 1 ? 1.0 / (1 + i) : 1 + 0.37 * i;
        const auto one = static_cast<float>(kind == 2 && i % 2 == 1 ? -size : size);
        sum += one;
        exact += static_cast<double>(one);
        magnitude += std::abs(static_cast<double>(one));
      }
      CHECK(std::abs(static_cast<double>(sum) - exact) <= harness::summation_error(count, magnitude));
    }
  }
  CHECK(harness::summation_error(4096, 1) < 1.0 / 4096);  // one element of 4096 equal ones shows
}

TEST_CASE("reductions: the softmax of a row, ties and ends included") {
  const std::vector<double> row{1, 3, 3, 2, 3};
  const auto close = [](double a, double b) { return std::abs(a - b) < 1e-12; };
  const std::vector<double> two = harness::top_k_softmax(row, 2);
  CHECK((close(two[1], 0.5) && close(two[2], 0.5) && two[4] == 0 && two[0] == 0));
  const std::vector<double> from_the_end =
      harness::top_k_softmax(row, 2, harness::TopKMistake::kTiesFromTheEnd);
  CHECK((from_the_end[1] == 0 && close(from_the_end[4], 0.5)));
  // 3 and 2 are the two largest values, and four elements get a share of their sum.
  const std::vector<double> once = harness::top_k_softmax(row, 2, harness::TopKMistake::kTiesOnce);
  const double share = 1 / (1 + std::exp(-1.0));
  CHECK((close(once[1], share) && close(once[2], share) && close(once[4], share)));
  CHECK((close(once[3], 1 - share) && once[0] == 0));
  const std::vector<double> all = harness::top_k_softmax(row, 5);
  double sum = 0;
  for (const double one : all) sum += one;
  CHECK(close(sum, 1));
  // Certain members, certain others, and one of two that may be the second.
  const std::vector<harness::Interval> uncertain{{5, 5}, {1, 2}, {1.5, 1.7}, {0, 0.5}};
  const auto accepted = harness::top_k_intervals(uncertain, 2);
  CHECK(accepted[0].low > 0.9);
  CHECK((accepted[1].low == 0 && accepted[1].high > 0));
  CHECK((accepted[2].low == 0 && accepted[2].high > 0));
  CHECK((accepted[3].low == 0 && accepted[3].high == 0));
}

}  // namespace
