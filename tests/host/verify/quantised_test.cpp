// Verification of a D that is quantised: what is right is accepted, what is damaged is not, and the report
// says how.
#include "harness/verify/types/quantised.h"

#include <algorithm>
#include <string>

#include "catch.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/types/typed.h"
#include "rejected.h"

namespace quantised_test {

using gemm::Type;
using harness::Pattern;
using harness::TypedImage;
using harness::TypedRules;

constexpr gemm::Shape kShape{130, 96, 352};  // 6 blocks in a row: the second piece is half empty
constexpr gemm::TileShape kTile{128, 128, 256};

gemm::Types types() {
  return {.a = Type::kE2m1, .b = Type::kE2m1, .d = Type::kE2m1, .scaling = gemm::Scaling::kNv};
}

TEST_CASE("quantised: a flawless D of every pattern is accepted, some blocks saturate and some do not") {
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity,
                                Pattern::kArange, Pattern::kSpecial}) {
    const TypedRules rules = harness::typed_rules(kShape, types(), pattern, 3);
    const TypedImage image = harness::correct_image(rules);
    CHECK(image.d.size() == std::size_t{130} * 48 + std::size_t{2} * 2 * 512);
    const auto result = harness::verify(rules, image, harness::typed_acceptance(rules), kTile);
    INFO(to_string(pattern) << " " << result.report);
    CHECK(result.ok);
    const auto scales = image.d.begin() + 130 * 48;
    if (pattern == Pattern::kSpecial) CHECK(std::count(scales, image.d.end(), 0x7f) > 0);
    if (pattern == Pattern::kNormal) {
      const auto largest = std::count(scales, image.d.end(), 0x7e);
      CHECK(largest > 0);
      CHECK(largest < 130 * 6 / 4);
    }
  }
}

TEST_CASE("quantised: every damaged D is rejected by the right check") {
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
    const TypedRules rules = harness::typed_rules(kShape, types(), pattern, 1);
    const auto acceptance = harness::typed_acceptance(rules);
    const auto verify = [&](const TypedImage& image) {
      return harness::verify(rules, image, acceptance, kTile);
    };
    check_rejected(harness::typed_faults(types()), pattern, harness::correct_image(rules), verify, rules,
                   kTile);
  }
}

TEST_CASE("quantised: the report says what was done instead") {
  const TypedRules rules = harness::typed_rules(kShape, types(), Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const TypedImage right = harness::correct_image(rules);
  const auto scale_at = [&](TypedImage& image, int row, int block) -> std::uint8_t& {
    return image.d[harness::quantised_scale_byte(kShape, row, block)];
  };
  const auto report_with = [&](const auto& change) {
    TypedImage image = right;
    for (int row = 0; row < kShape.m; ++row) {
      for (int block = 0; block < 6; ++block) change(image, row, block);
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  TypedImage given = right;
  const auto of = [&](int row, int block) { return scale_at(given, row, std::clamp(block, 0, 5)); };
  CHECK(contains(report_with([&](TypedImage& image, int row, int block) {
                   scale_at(image, row, block) = std::max(of(row, block), of(row, block ^ 1));
                 }),
                 "the largest of 32 elements"));
  CHECK(contains(report_with([&](TypedImage& image, int row, int block) {
                   scale_at(image, row, block) = of(row, block ^ 1);
                 }),
                 "the other block of each pair"));
  const std::string halves = report_with([&](TypedImage& image, int row, int block) {
    for (int byte = 0; byte < 8; ++byte) {
      std::uint8_t& pair = image.d[static_cast<std::size_t>(row * 48 + block * 8 + byte)];
      pair = static_cast<std::uint8_t>(pair << 4 | pair >> 4);
    }
  });
  CHECK(contains(halves, "The two elements of each byte are exchanged"));
  CHECK(contains(halves, "the scale of its block: got"));
  CHECK(contains(report_with([&](TypedImage& image, int, int) {
                   image.d[harness::quantised_scale_byte(kShape, 3, 6)] = 0x7f;
                 }),
                 "1 scales of rows or blocks that D does not have"));
}

}  // namespace quantised_test
