#include "harness/verify/types/weights.h"

#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "catch.h"
#include "gemm/problem/check_problem.h"
#include "gemm/problem/weights.h"
#include "harness/verify/verify.h"
#include "rejected.h"

namespace {

using gemm::Type;
using gemm::Types;
using harness::Pattern;
using harness::TypedImage;
using harness::TypedRules;

constexpr gemm::Shape kWeightShape{24, 128, 384};
constexpr gemm::TileShape kWeightTile{16, 128, 128};

Types types_with(Type weight, bool rounds = false) {
  Types types;
  types.b = weight;
  types.group = 128;
  types.rounds_weights = rounds;
  return types;
}

}  // namespace

TEST_CASE("weights: each has bits of its own, and together they fill the memory") {
  for (const Type type : {Type::kInt4, Type::kInt8, Type::kE4m3}) {
    constexpr int kRows = 192, kK = 256;
    std::set<std::int64_t> bits;
    for (int n = 0; n < kRows; ++n) {
      for (int k = 0; k < kK; ++k) {
        const gemm::WeightPlace place = gemm::weight_place(type, kRows, n, k);
        REQUIRE(place.shift % gemm::bits_of(type) == 0);
        bits.insert(place.byte * 8 + place.shift);
      }
    }
    CHECK(bits.size() == std::size_t{kRows * kK});
    CHECK(*bits.begin() == 0);
    CHECK(*bits.rbegin() == std::int64_t{kRows * kK} * gemm::bits_of(type) - gemm::bits_of(type));
  }
}

TEST_CASE("weights: a thread's 16 bytes are its fragments") {
  // Thread 5 of a block has rows 1 and 9, of K 2 and 3, 10 and 11, and the same of the slabs behind.
  for (const Type type : {Type::kInt4, Type::kInt8}) {
    for (int n : {1, 9}) {
      for (int k : {2, 3, 10, 11, 18, 19, 58, 59})
        CHECK(gemm::weight_place(type, 64, n, k).byte % 2048 / 16 == 5);
    }
  }
  // Of int4 a word is a slab, and nibble 4 is the upper half of register 0.
  CHECK(gemm::weight_place(Type::kInt4, 64, 0, 16).byte == 4);
  CHECK(gemm::weight_place(Type::kInt4, 64, 0, 1).byte == 2);
  CHECK(gemm::weight_place(Type::kInt4, 64, 8, 0).shift == 4);
  CHECK(gemm::weight_place(Type::kInt4, 128, 64, 0).byte == 2048);
  CHECK(gemm::weight_place(Type::kInt4, 128, 0, 64).byte == 4096);
  CHECK(gemm::stored_weight(Type::kInt4, 0x8) == 0);     // -8
  CHECK(gemm::stored_weight(Type::kInt4, 0x7) == 0xf);   // 7
  CHECK(gemm::stored_weight(Type::kInt8, 0xff) == 127);  // -1
  CHECK(harness::decode(Type::kInt4, 0xf) == -1);
  CHECK(harness::encode(Type::kInt4, 9) == 7);
  CHECK(harness::encode(Type::kInt4, -8) == 8);
}

TEST_CASE("weights: sums of exact patterns are exact in binary32") {
  for (const Type type : {Type::kInt4, Type::kInt8, Type::kE4m3}) {
    for (const int k : {128, 4096, 65536}) {
      const int range = harness::typed_range(types_with(type), Pattern::kExact, k);
      INFO(gemm::name_of(type) << " K " << k << " range " << range);
      CHECK(range >= 1);
      CHECK(8.0 * range * range * k < 0x1p24);  // scales differ by a factor of 8
      CHECK(harness::decode(type, harness::encode(type, static_cast<float>(range))) ==
            static_cast<float>(range));
    }
  }
}

TEST_CASE("weights: a correct image passes, and each fault is rejected") {
  for (const Type type : {Type::kInt4, Type::kInt8, Type::kE4m3}) {
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
      const TypedRules rules = harness::typed_rules(kWeightShape, types_with(type), pattern, 4);
      const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
      const TypedImage correct = harness::correct_image(rules);
      CHECK(harness::verify(rules, correct, acceptance, kWeightTile).ok);
      const auto verify = [&](const TypedImage& image) {
        return harness::verify(rules, image, acceptance, kWeightTile);
      };
      INFO(gemm::name_of(type));
      check_rejected(harness::typed_faults(rules.types), pattern, correct, verify, rules, kWeightTile);
    }
  }
}

TEST_CASE("weights: zero points and fp16 activations, a correct image and the faults that they have") {
  for (const Type activation : {Type::kBf16, Type::kFp16}) {
    Types types = types_with(Type::kInt4);
    types.zero_points = true;
    types.a = types.d = activation;
    CHECK(!types.same_elements(types_with(Type::kInt4)));
    CHECK(harness::to_string(types).ends_with("a scale and a zero point for every 128 of K"));
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
      const TypedRules rules = harness::typed_rules(kWeightShape, types, pattern, 4);
      const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
      const TypedImage correct = harness::correct_image(rules);
      CHECK(correct.group_scales.size() == std::size_t{2} * 2 * 3 * 128);
      CHECK(harness::verify(rules, correct, acceptance, kWeightTile).ok);
      const auto verify = [&](const TypedImage& image) {
        return harness::verify(rules, image, acceptance, kWeightTile);
      };
      check_rejected(harness::typed_faults(rules.types), pattern, correct, verify, rules, kWeightTile);
    }
    const TypedRules rules = harness::typed_rules(kWeightShape, types, Pattern::kExact, 4);
    TypedImage image = harness::correct_image(rules);
    for (const harness::TypedFault& fault : harness::typed_faults(types)) {
      if (fault.name == "zero points of the next group") fault.damage(image, rules, kWeightTile);
    }
    check_text(harness::verify(rules, image, harness::typed_acceptance(rules), kWeightTile).report,
               {"the zero points of the next group, and the scales of their own"});
  }
}

TEST_CASE("weights: a report says what was done with scales and weights") {
  const TypedRules rules = harness::typed_rules(kWeightShape, types_with(Type::kInt4), Pattern::kExact, 4);
  const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
  for (const auto& [name, text] :
       {std::pair{"scales of the next group", "the scale of the next group"},
        std::pair{"weights not scaled", "without any scale"},
        std::pair{"scales overwritten", "the kernel wrote to the scales of the weights"}}) {
    TypedImage image = harness::correct_image(rules);
    for (const harness::TypedFault& fault : harness::typed_faults(rules.types)) {
      if (fault.name == name) fault.damage(image, rules, kWeightTile);
    }
    check_text(harness::verify(rules, image, acceptance, kWeightTile).report, {text});
  }
}

TEST_CASE("weights: the report names accumulators that no group begins anew") {
  const gemm::Shape shape{16, 64, 512};
  const TypedRules rules = harness::typed_rules(shape, types_with(Type::kInt4), Pattern::kExact, 4);
  const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
  // What each group gives by itself: an image in which the others are zero.
  for (const int cut : {0, 2}) {  // where another worker begins
    TypedImage image = harness::correct_image(rules);
    const std::vector<float> weights = harness::scaled_weights(image, rules);
    for (int row = 0; row < shape.m; ++row) {
      for (int n = 0; n < shape.n; ++n) {
        double sum = 0;
        double accumulator = 0;
        for (int group = 0; group < shape.k / 128; ++group) {
          const auto scale = static_cast<double>(gemm::to_float(harness::group_scale(rules, n, group)));
          if (group == cut) accumulator = 0;
          for (int k = group * 128; k < (group + 1) * 128; ++k)
            accumulator += static_cast<double>(harness::decode(
                               Type::kBf16, harness::typed_bits(rules.a, Type::kBf16, row, k))) *
                           static_cast<double>(weights[static_cast<std::size_t>(n * shape.k + k)]) / scale;
          sum += accumulator * scale;
        }
        harness::put_bits(rules.types.d, image.d.data(), row * shape.n + n,
                          harness::encode(rules.types.d, static_cast<float>(sum)));
      }
    }
    check_text(harness::verify(rules, image, acceptance, kWeightTile).report,
               {"the sums of accumulators that are not reset between groups"});
  }
}

TEST_CASE("weights: the report says that parts of K were rounded down") {
  for (const int groups : {5, 4}) {
    const gemm::Shape shape{16, 64, groups * 128};
    const TypedRules rules = harness::typed_rules(shape, types_with(Type::kInt4), Pattern::kExact, 4);
    TypedImage image = harness::correct_image(rules);
    const std::vector<float> weights = harness::scaled_weights(image, rules);
    for (int row = 0; row < shape.m; ++row) {
      for (int n = 0; n < shape.n; ++n) {
        double sum = 0;
        for (int k = 0; k < (groups - 1) * 128; ++k)
          sum += static_cast<double>(
                     harness::decode(Type::kBf16, harness::typed_bits(rules.a, Type::kBf16, row, k))) *
                 static_cast<double>(weights[static_cast<std::size_t>(n * shape.k + k)]);
        harness::put_bits(rules.types.d, image.d.data(), row * shape.n + n,
                          harness::encode(rules.types.d, static_cast<float>(sum)));
      }
    }
    const std::string report =
        harness::verify(rules, image, harness::typed_acceptance(rules), kWeightTile).report;
    INFO(report);
    const bool said =
        contains(report, "5 groups are divided into 2 parts of 2 each, because 5 / 2 is rounded down");
    CHECK(said == (groups == 5));
  }
}

TEST_CASE("weights: the report names groups that take a neighbour's scale") {
  const gemm::Shape shape{16, 64, 1664};  // 13 groups
  const TypedRules rules = harness::typed_rules(shape, types_with(Type::kInt4), Pattern::kExact, 4);
  const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
  // Which group's scale group i takes, and what is said.
  const std::pair<std::function<int(int)>, const char*> readings[] = {
      {[](int at) { return at % 4 == 3 || at == 12 ? at : at + 1; },
       "groups 0 to 2, 4 to 6 and 8 to 10 of K (the groups are 0 to 12) use the scale of the group after "
       "them"},
      {[](int at) { return at % 2 == 0 ? at : at - 1; },
       "groups 1, 3, 5, 7, 9 and 11 of K (the groups are 0 to 12) use the scale of the group before them"},
      {[](int at) { return at == 8               ? 0
                           : at == 3 || at == 12 ? at
                                                 : at + 1; },
       "groups 0 to 2 and 4 to 11 of K (the groups are 0 to 12) use the scale of the group after them (group "
       "i uses that of group i + 1; the work tile has groups 0 to 8"}};
  for (const auto& [of, words] : readings) {
    TypedImage image = harness::correct_image(rules);
    const std::vector<float> weights = harness::scaled_weights(image, rules);
    for (int row = 0; row < shape.m; ++row) {
      for (int n = 0; n < shape.n; ++n) {
        double sum = 0;
        for (int k = 0; k < shape.k; ++k) {
          sum += static_cast<double>(
                     harness::decode(Type::kBf16, harness::typed_bits(rules.a, Type::kBf16, row, k))) *
                 static_cast<double>(weights[static_cast<std::size_t>(n * shape.k + k)]) *
                 static_cast<double>(gemm::to_float(harness::group_scale(rules, n, of(k / 128)))) /
                 static_cast<double>(gemm::to_float(harness::group_scale(rules, n, k / 128)));
        }
        harness::put_bits(rules.types.d, image.d.data(), row * shape.n + n,
                          harness::encode(rules.types.d, static_cast<float>(sum)));
      }
    }
    check_text(harness::verify(rules, image, acceptance, kWeightTile).report, {words});
  }
}

TEST_CASE("weights: the report names groups that are loaded from behind the end of a work tile") {
  const gemm::Shape shape{16, 64, 896};  // 7 groups
  const TypedRules rules = harness::typed_rules(shape, types_with(Type::kInt4), Pattern::kExact, 4);
  const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
  // For the group that is due: the group of A, of the weights, and of the scales.
  struct Taken {
    int a, b, scale;
  };
  const auto report_with = [&](const std::function<Taken(int)>& taken) {
    TypedImage image = harness::correct_image(rules);
    const std::vector<float> weights = harness::scaled_weights(image, rules);
    for (int row = 0; row < shape.m; ++row) {
      for (int n = 0; n < shape.n; ++n) {
        double sum = 0;
        for (int due = 0; due < 7; ++due) {
          const auto [a, b, scale] = taken(due);
          if (a >= 7 || b >= 7 || scale >= 7) continue;
          for (int k = 0; k < 128; ++k)
            sum += static_cast<double>(harness::decode(
                       Type::kBf16, harness::typed_bits(rules.a, Type::kBf16, row, a * 128 + k))) *
                   static_cast<double>(weights[static_cast<std::size_t>(n * shape.k + b * 128 + k)]) /
                   static_cast<double>(gemm::to_float(harness::group_scale(rules, n, b))) *
                   static_cast<double>(gemm::to_float(harness::group_scale(rules, n, scale)));
        }
        harness::put_bits(rules.types.d, image.d.data(), row * shape.n + n,
                          harness::encode(rules.types.d, static_cast<float>(sum)));
      }
    }
    return harness::verify(rules, image, acceptance, kWeightTile).report;
  };
  // The work tile has groups 1 to 4 and begins with 3: 1 and 2 come last.
  const auto wrong = [](int due) { return due == 1 || due == 2 ? due + 4 : due; };
  const std::string both = report_with([&](int due) { return Taken{wrong(due), wrong(due), due}; });
  check_text(both,
             {"groups 1 to 2 of K (the groups are 0 to 6) use the weights and activations of groups 5 to 6",
              "has groups 1 to 4 and begins with group 3"});
  CHECK(contains(report_with([&](int due) {
                   return Taken{due, wrong(due), due};
                 }),
                 "use the weights of groups 5 to 6"));
  CHECK(contains(report_with([&](int due) {
                   return Taken{due, due, wrong(due)};
                 }),
                 "use the scales of groups 5"));
  CHECK_FALSE(contains(report_with([&](int due) {
                         return Taken{due == 1 ? 6 : due == 2 ? 5 : due, due, due};
                       }),
                       "These are"));
}

TEST_CASE("weights: the bound allows for weights rounded to bf16 where that is promised") {
  CHECK(harness::typed_error(types_with(Type::kInt4), 1024, 1) == harness::accumulation_error(1024, 1));
  CHECK(harness::typed_error(types_with(Type::kInt4, true), 1024, 1) ==
        harness::accumulation_error(1024, 1) + 9 * 0x1p-9);
  // 7 times the scale 147 / 128 is as far from a bf16 as that: half of 2^-4, of about 8.
  constexpr float kProduct = 7 * 147.0F / 128;
  const float off = std::abs(gemm::to_float(gemm::to_bf16(kProduct)) - kProduct) / kProduct;
  CHECK(off > 0x1p-9F);
  CHECK(off <= 0x1p-8F);
  // In the root mean square it is less than 2^-9, over all weights and all significands of a scale.
  for (const int largest : {7, 127}) {
    double errors = 0;
    double squares = 0;
    for (int weight = 1; weight <= largest; ++weight) {
      for (int significand = 128; significand < 256; ++significand) {
        const float product = static_cast<float>(weight * significand) / 128;
        const double error = gemm::to_float(gemm::to_bf16(product)) - product;
        errors += error * error;
        squares += static_cast<double>(product) * product;
      }
    }
    CHECK(std::sqrt(errors / squares) < 0x1p-9);
  }
  CHECK(types_with(Type::kInt4).same_elements(types_with(Type::kInt4, true)));
}

TEST_CASE("weights: sizes that cannot be packed or scaled are named") {
  CHECK(gemm::violated_weight_rule({1, 64, 128}, 128).empty());
  CHECK(contains(gemm::violated_weight_rule({1, 64, 192}, 128), "K must be a multiple of 128"));
  CHECK(contains(gemm::violated_weight_rule({1, 96, 128}, 128), "N must be a multiple of 64"));
}
