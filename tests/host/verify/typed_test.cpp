#include "harness/verify/typed.h"

#include <cmath>
#include <set>

#include "catch.h"
#include "harness/base/problem.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"

namespace {

using gemm::Major;
using gemm::Type;
using gemm::Types;
using harness::Pattern;
using harness::TypedImage;
using harness::TypedRules;

const std::vector<Types> kTypes{{Type::kFp16, Type::kFp16, Type::kFp16},
                                {Type::kBf16, Type::kBf16, Type::kFp16},
                                {Type::kTf32, Type::kTf32, Type::kFp32},
                                {Type::kE4m3, Type::kE4m3, Type::kBf16},
                                {Type::kE4m3, Type::kE5m2, Type::kBf16},
                                {Type::kE5m2, Type::kE5m2, Type::kE5m2},
                                {Type::kE4m3, Type::kE4m3, Type::kE4m3},
                                {Type::kInt8, Type::kInt8, Type::kInt8},
                                {Type::kBf16, Type::kBf16, Type::kBf16, Major::kMn, Major::kMn},
                                {Type::kBf16, Type::kBf16, Type::kBf16, Major::kK, Major::kMn},
                                {Type::kFp16, Type::kFp16, Type::kFp16, Major::kMn, Major::kK}};
const std::vector<Pattern> kPatterns{Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity,
                                     Pattern::kArange};
constexpr gemm::Shape kShape{160, 144, 96};
constexpr gemm::TileShape kTile{128, 128, 64};

TEST_CASE("typed: the integers of the exact patterns are in the type, and sums are in the accumulator") {
  for (const Types& types : kTypes) {
    for (const int k : {16, 64, 1000, 4096, 16384, 65536}) {
      for (const Pattern pattern : {Pattern::kExact, Pattern::kArange}) {
        const int range = harness::typed_range(types, pattern, k);
        INFO(harness::to_string(types) << " K " << k << " range " << range);
        CHECK(range >= 1);
        for (const Type type : {types.a, types.b}) {
          for (int i = 0; i <= range; ++i) {
            const auto value = static_cast<float>(i);
            REQUIRE(harness::decode(type, harness::encode(type, value)) == value);
          }
        }
        if (gemm::is_fp8(types.a)) continue;
        const double largest = static_cast<double>(range) * range * k;
        CHECK(largest < (types.a == Type::kInt8 ? 0x1p31 : 0x1p24));
        if (range > 1 && !types.are_k_major() && types.d == Type::kFp16)
          CHECK(largest < 65504);  // nothing scales it
      }
    }
  }
}

TEST_CASE("typed: no partial sum of an exact pattern in fp8 reaches 8192") {
  const Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  for (const Pattern pattern : {Pattern::kExact, Pattern::kArange}) {
    for (const int k : {32, 512, 2048, 16384}) {
      const TypedRules rules = harness::typed_rules({8, 8, k}, types, pattern, 5);
      const std::vector<std::uint8_t> a = harness::typed_input(rules.a, types.a);
      const std::vector<std::uint8_t> b = harness::typed_input(rules.b, types.b);
      double largest = 0;
      bool any = false;
      for (int row = 0; row < 8; ++row) {
        for (int column = 0; column < 8; ++column) {
          double sum = 0;
          for (int i = 0; i < k; ++i) {
            sum += static_cast<double>(harness::decode(
                       types.a, harness::bits_at(types.a, a.data(), row * std::int64_t{k} + i))) *
                   static_cast<double>(harness::decode(
                       types.b, harness::bits_at(types.b, b.data(), column * std::int64_t{k} + i)));
            largest = std::max(largest, std::abs(sum));
            any = any || sum != 0;
          }
        }
      }
      INFO(to_string(pattern) << " K " << k << " largest " << largest);
      CHECK(any);
      CHECK(largest < 8192);
    }
  }
}

TEST_CASE("typed: the operands of tf32 have bits that the tensor cores do not see") {
  const Types types{Type::kTf32, Type::kTf32, Type::kFp32};
  const TypedRules rules = harness::typed_rules(kShape, types, Pattern::kNormal, 1);
  const std::vector<std::uint8_t> a = harness::typed_input(rules.a, types.a);
  int hidden = 0;
  for (std::int64_t i = 0; i < 100; ++i) hidden += (harness::bits_at(types.a, a.data(), i) & 0x1fffu) != 0;
  CHECK(hidden > 90);
}

TEST_CASE("typed: a flawless result of every type and pattern is accepted, and some of it saturates") {
  for (const Types& types : kTypes) {
    for (const Pattern pattern : kPatterns) {
      const TypedRules rules = harness::typed_rules(kShape, types, pattern, 3);
      const TypedImage image = harness::correct_image(rules);
      const auto result = harness::verify(rules, image, harness::typed_acceptance(rules), kTile);
      INFO(harness::to_string(types) << " " << to_string(pattern) << " " << result.report);
      CHECK(result.ok);
      if (pattern != Pattern::kExact || gemm::bytes_of(types.d) > 1) continue;
      std::set<std::uint8_t> values(image.d.begin(), image.d.end());
      CHECK(values.count(static_cast<std::uint8_t>(harness::encode(types.d, 1e9f))) == 1);
      CHECK(values.count(static_cast<std::uint8_t>(harness::encode(types.d, -1e9f))) == 1);
      CHECK(values.size() > 60);
    }
  }
}

TEST_CASE("typed: every damaged result is rejected by the right check") {
  for (const Types& types : kTypes) {
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
      const TypedRules rules = harness::typed_rules(kShape, types, pattern, 1);
      const TypedImage correct = harness::correct_image(rules);
      const auto acceptance = harness::typed_acceptance(rules);
      for (const harness::TypedFault& fault : harness::typed_faults()) {
        if (fault.exact_only && pattern != Pattern::kExact) continue;
        if (!harness::fits(fault, types)) continue;
        TypedImage image = correct;
        fault.damage(image, rules, kTile);
        const auto result = harness::verify(rules, image, acceptance, kTile);
        INFO(harness::to_string(types) << " " << to_string(pattern) << " " << fault.name << "\n"
                                       << result.report);
        CHECK(result.failed == std::vector<std::string>{fault.check});
      }
    }
  }
}

TEST_CASE("typed: an MN-major operand holds the K-major one's elements, transposed, and nothing is scaled") {
  const Types mn{Type::kBf16, Type::kBf16, Type::kBf16, Major::kMn, Major::kMn};
  CHECK(harness::to_string(mn) == "bf16 x bf16 -> bf16, A M-major, B N-major");
  const TypedRules rules = harness::typed_rules(kShape, mn, Pattern::kNormal, 3);
  CHECK(rules.scale() == 1);
  const std::vector<std::uint8_t> turned = harness::typed_input(rules.a, mn.a, Major::kMn);
  const std::vector<std::uint8_t> straight = harness::typed_input(rules.a, mn.a);
  int wrong = 0;
  for (int row = 0; row < kShape.m; ++row) {
    for (int k = 0; k < kShape.k; ++k)
      wrong += harness::bits_at(mn.a, turned.data(), k * kShape.m + row) !=
               harness::bits_at(mn.a, straight.data(), row * kShape.k + k);
  }
  CHECK(wrong == 0);
  CHECK(turned != straight);
}

TEST_CASE("typed: the report says when a tile was read the other way round") {
  const Types types{Type::kBf16, Type::kBf16, Type::kBf16, Major::kMn, Major::kK};
  const gemm::Shape shape{64, 72, 64};  // a block of A
  const TypedRules rules = harness::typed_rules(shape, types, Pattern::kExact, 1);
  TypedImage image = harness::correct_image(rules);
  for (const harness::TypedFault& fault : harness::typed_faults()) {
    if (fault.name == "A read the other way round") fault.damage(image, rules, kTile);
  }
  const auto result = harness::verify(rules, image, harness::typed_acceptance(rules), kTile);
  CHECK(result.report.find("each block of 64 x 64 elements of A transposed") != std::string::npos);
}

TEST_CASE("typed: the report says what a wrong scale was") {
  const Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  const TypedRules rules = harness::typed_rules(kShape, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const auto report_with = [&](float factor) {
    TypedRules other = rules;
    other.scales[2] *= factor;
    TypedImage image = harness::correct_image(rules);
    image.d = harness::correct_image(other).d;
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  CHECK(report_with(rules.scale()).find("every scale applied twice") != std::string::npos);
  CHECK(report_with(1 / rules.scales[2]).find("without the scale of D") != std::string::npos);
  CHECK(report_with(3).find("These are") == std::string::npos);
}

TEST_CASE("typed: the report says that k-tiles begin too close, or that one is there twice") {
  const Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  const TypedRules rules = harness::typed_rules({40, 48, 320}, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const TypedImage right = harness::correct_image(rules);
  // k-tile i from k = begins[i].
  const auto report_with = [&](const std::vector<int>& begins) {
    TypedImage image = right;
    for (std::int64_t i = 0; i < 40 * 48; ++i) {
      double sum = 0;
      for (const int begin : begins) {
        for (int k = begin; k < std::min(begin + 64, 320); ++k)
          sum += static_cast<double>(
                     harness::decode(types.a, harness::bits_at(types.a, right.a.data(), i / 48 * 320 + k))) *
                 static_cast<double>(
                     harness::decode(types.b, harness::bits_at(types.b, right.b.data(), i % 48 * 320 + k)));
      }
      harness::put_bits(types.d, image.d.data(), i,
                        harness::encode(types.d, static_cast<float>(sum) * rules.scale()));
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  CHECK(report_with({0, 64, 128, 192, 256}).empty());
  CHECK(report_with({0, 32, 64, 96, 128}).find("begin 32 elements apart instead of 64") != std::string::npos);
  CHECK(report_with({0, 32, 64, 96, 128}).find("k from 192 on is never read") != std::string::npos);
  CHECK(report_with({0, 64, 64, 192, 256}).find("k-tile 2 is missing and k-tile 1 is there twice") !=
        std::string::npos);
  CHECK(report_with({0, 64, 128, 192}).find("k-tile 4 is missing (") != std::string::npos);
  CHECK(report_with({8, 72, 128, 200, 256}).find("These are") == std::string::npos);
}

TEST_CASE("typed: the report says that pairs were packed with a sign") {
  const Types types{Type::kInt8, Type::kInt8, Type::kInt8};
  const TypedRules rules = harness::typed_rules(kShape, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const TypedImage right = harness::correct_image(rules);
  // `moved`: by one pair too many.
  const auto report_with = [&](std::size_t moved) {
    TypedImage image = right;
    const auto columns = static_cast<std::size_t>(kShape.n);
    for (std::size_t i = 1; i < image.d.size(); ++i) {
      if (i % columns % 2 == 1 && static_cast<gemm::int8>(right.d[i - 1]) < 0 && i + moved < image.d.size())
        image.d[i + moved] = 0xff;
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  INFO(report_with(0));
  CHECK(report_with(0).find("packed into 16 bits") != std::string::npos);
  CHECK(report_with(2).find("packed into 16 bits") == std::string::npos);
}

TEST_CASE("typed: NaN, infinity and what was never written are told apart") {
  const Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  const TypedRules rules = harness::typed_rules(kShape, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const auto failed = [&](std::uint32_t bits) {
    TypedImage image = harness::correct_image(rules);
    harness::put_bits(types.d, image.d.data(), 77, bits);
    return harness::verify(rules, image, acceptance, kTile).failed;
  };
  CHECK(failed(0x7fff) == std::vector<std::string>{harness::kNan});
  CHECK(failed(0xff80) == std::vector<std::string>{harness::kInfinity});
  CHECK(failed(0xffff) == std::vector<std::string>{harness::kNeverWritten});
}

TEST_CASE("typed: a workload on the device is poisoned, checked and given other inputs") {
  const Types types{Type::kInt8, Type::kInt8, Type::kInt8};
  harness::Workload workload(kShape, Pattern::kExact, 4, {.epilogue = {}, .types = types});
  CHECK(workload.check(kTile).failed == std::vector<std::string>{harness::kNeverWritten});
  CHECK(workload.problem().types == types);
  TypedImage image = workload.typed().image();
  image.d = harness::correct_image(harness::typed_rules(kShape, types, Pattern::kExact, 4)).d;
  workload.typed().restore(image);
  CHECK(workload.check(kTile).ok);
  workload.use_inputs(5);
  CHECK_FALSE(workload.check(kTile).ok);
  image.before[3] ^= 1;
  workload.typed().restore(image);
  CHECK(workload.seed() == 5);
  CHECK_THROWS_AS(harness::Workload(kShape, Pattern::kExact, 4, {.epilogue = {.alpha = 2}, .types = types}),
                  harness::Error);
}

TEST_CASE("typed: bounds grow with K, and int8 has none") {
  const Types fp8{Type::kE4m3, Type::kE4m3, Type::kBf16};
  const Types int8{Type::kInt8, Type::kInt8, Type::kInt8};
  CHECK(harness::typed_error(int8, 4096, 1) == 0);
  CHECK(harness::typed_error(fp8, 4096, 1) > harness::typed_error(fp8, 1024, 1));
  CHECK(harness::typed_error(fp8, 1024, 1) > 200 * harness::accumulation_error(1024, 1));
  CHECK(harness::typed_error({Type::kFp16, Type::kFp16, Type::kFp16}, 512, 2) ==
        harness::accumulation_error(512, 2));
}

}  // namespace
