#include "harness/verify/types/typed.h"

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"
#include "rejected.h"

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
const std::vector<Pattern> kPatterns{Pattern::kExact,    Pattern::kNormal, Pattern::kUniform,
                                     Pattern::kIdentity, Pattern::kArange, Pattern::kSpecial};
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
      const auto verify = [&](const TypedImage& image) {
        return harness::verify(rules, image, acceptance, kTile);
      };
      INFO(harness::to_string(types));
      check_rejected(harness::typed_faults(types), pattern, correct, verify, rules, kTile);
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
  for (const harness::TypedFault& fault : harness::typed_faults(types)) {
    if (fault.name == "A read the other way round") fault.damage(image, rules, kTile);
  }
  const auto result = harness::verify(rules, image, harness::typed_acceptance(rules), kTile);
  CHECK(contains(result.report, "each 64 x 64 block of A transposed"));
}

TEST_CASE("typed: the report says which rows of ldmatrix are exchanged") {
  const Types types{Type::kBf16, Type::kBf16, Type::kBf16, Major::kMn, Major::kK};
  const gemm::Shape shape{48, 40, 40};
  const TypedRules rules = harness::typed_rules(shape, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const auto element = [&](const harness::InputRule& rule, Type type, int row, int k) {
    return row < rule.rows && k < rule.columns
               ? harness::decode(type, harness::typed_bits(rule, type, row, k))
               : 0;
  };
  // `from`: the row and the k that stand in the place of others in A.
  const auto report_with = [&](auto from) {
    TypedImage image = harness::correct_image(rules);
    for (int row = 0; row < shape.m; ++row) {
      for (int column = 0; column < shape.n; ++column) {
        float sum = 0;
        for (int k = 0; k < 48; ++k) {
          const auto [of_row, of_k] = from(row, k);
          sum += element(rules.a, types.a, of_row, of_k) * element(rules.b, types.b, column, k);
        }
        harness::put_bits(types.d, image.d.data(), gemm::offset(row, column, shape.n),
                          harness::encode(types.d, sum * rules.scale()));
      }
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  CHECK(report_with([](int row, int k) { return std::pair{row, k}; }).empty());
  const std::string exchanged = report_with([](int row, int k) {
    return std::pair{(row & ~8) | (k & 8), (k & ~8) | (row & 8)};
  });
  check_text(
      exchanged,
      {"the 8 x 8 blocks at (rows 0-7, k 8-15) and (rows 8-15, k 0-7) of each 16 x 16 block of A exchanged"});
  CHECK(contains(report_with([](int row, int k) {
                   return std::pair{row, k ^ 8};
                 }),
                 "k 0-7 and k 8-15 of every 16 exchanged in A"));
  CHECK_FALSE(contains(report_with([](int row, int k) { return std::pair{row ^ 4, k}; }), "These are"));
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
  CHECK(contains(report_with(rules.scale()), "every scale applied twice"));
  CHECK(contains(report_with(1 / rules.scales[2]), "without the scale of D"));
  CHECK_FALSE(contains(report_with(3), "These are"));
}

TEST_CASE("typed: the report says that k-tiles begin too close, or that one is there twice") {
  const bool promotes = GENERATE(false, true);
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  if (promotes) types.promotion = 128;
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
  CHECK(contains(report_with({0, 32, 64, 96, 128}), "begin 32 elements apart instead of 64"));
  CHECK(contains(report_with({0, 32, 64, 96, 128}), "k from 192 on is never read"));
  CHECK(contains(report_with({0, 64, 64, 192, 256}), "k-tile 2 is missing and k-tile 1 is counted twice"));
  CHECK(contains(report_with({0, 64, 128, 192}), "k-tile 4 is missing ("));
  CHECK((contains(report_with({0, 64, 128, 192}),
                  "after the last whole 128 elements of K were not promoted")) == promotes);
  CHECK_FALSE(contains(report_with({0, 64, 192, 256}), "promoted"));
  CHECK_FALSE(contains(report_with({8, 72, 128, 200, 256}), "These are"));
}

TEST_CASE("typed: the report says that the slabs of a tile begin at another distance") {
  const Major major = GENERATE(Major::kK, Major::kMn);
  const Types types{Type::kBf16, Type::kBf16, Type::kBf16, major, Major::kMn};
  const gemm::Shape shape{40, 48, 168};
  const TypedRules rules = harness::typed_rules(shape, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const auto element = [&](const harness::InputRule& rule, int row, int k) {
    return k < shape.k ? harness::decode(types.a, harness::typed_bits(rule, types.a, row, k)) : 0;
  };
  // Slab i of A begins at of_a[i] in every k-tile, that of B at of_b[i].
  const auto report_with = [&](const std::vector<int>& of_a, const std::vector<int>& of_b) {
    TypedImage image = harness::correct_image(rules);
    for (int i = 0; i < shape.m * shape.n; ++i) {
      float sum = 0;
      for (int tile = 0; tile < shape.k; tile += 64) {
        for (std::size_t slab = 0; slab < 4; ++slab) {
          for (int k = 0; k < 16; ++k)
            sum += element(rules.a, i / shape.n, tile + of_a[slab] + k) *
                   element(rules.b, i % shape.n, tile + of_b[slab] + k);
        }
      }
      harness::put_bits(types.d, image.d.data(), i, harness::encode(types.d, sum * rules.scale()));
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  const std::vector<int> right{0, 16, 32, 48};
  CHECK(report_with(right, right).empty());
  check_text(report_with({0, 8, 16, 24}, {0, 8, 16, 24}),
             {"the slabs of 16 elements along K of A and B begin 8 elements apart instead of 16: k 40 to 63 "
              "of each k-tile is never read, and k 8 to 31 is read more than once"});
  CHECK(contains(report_with(right, {0, 0, 0, 0}), "of B begin 0 elements apart instead of 16: k 16 to 63"));
  CHECK(contains(report_with({0, 4, 8, 12}, right), "of A begin 4 elements apart"));
  CHECK_FALSE(contains(report_with({0, 8, 32, 40}, right), "slabs of 16"));
  // The last of three k-tiles is incomplete.
  TypedImage image = harness::correct_image(rules);
  for (int i = 0; i < shape.m * shape.n; ++i) {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += element(rules.a, i / shape.n, k) * element(rules.b, i % shape.n, k);
    harness::put_bits(types.d, image.d.data(), i, harness::encode(types.d, sum * rules.scale()));
  }
  check_text(harness::verify(rules, image, acceptance, kTile).report,
             {"k-tile 2 is missing (the k-tiles are 0 to 2). It is the incomplete one: K = 168 is 2 whole "
              "k-tiles of 64 and 40 more"});
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
  CHECK(contains(report_with(0), "packed into 16 bits"));
  CHECK_FALSE(contains(report_with(2), "packed into 16 bits"));
}

TEST_CASE("typed: scales of blocks keep exact sums exact, and random ones times an element are binary32") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.promotion = 128;
  types.scaling = gemm::Scaling::kBlocks;
  CHECK(harness::to_string(types) == "e4m3 x e4m3 -> bf16, blocks of 128 with scales");
  for (const int k : {16, 400, 16384}) {
    const TypedRules rules = harness::typed_rules({16, 144, k}, types, Pattern::kExact, 3);
    CHECK(rules.scale() == 1);
    CHECK(rules.blocks_a.size() == static_cast<std::size_t>(16 * rules.blocks_of_k()));
    CHECK(rules.blocks_b.size() == static_cast<std::size_t>(2 * rules.blocks_of_k()));
    std::set<float> products;
    for (int row = 0; row < 16; ++row) {
      for (int i = 0; i < k; i += 128)
        products.insert(rules.block_scale(harness::Operand::kA, row, i) *
                        rules.block_scale(harness::Operand::kB, 8 * row, i));
    }
    CHECK(*products.begin() >= 0.125f);
    CHECK(*products.rbegin() <= 2);
    // All sums are multiples of 1/8, and 2^24 of these are more than any sum.
    CHECK(16.0 * rules.a.range * rules.b.range * k < 0x1p24);
    CHECK(rules.a.range * rules.b.range * std::min(k, 128) < 0x1p14);
  }
  const TypedRules rules = harness::typed_rules({16, 144, 400}, types, Pattern::kNormal, 3);
  std::set<float> different(rules.blocks_a.begin(), rules.blocks_a.end());
  CHECK(different.size() == rules.blocks_a.size());
  int rounded = 0;
  for (const float scale : rules.blocks_b) {
    for (std::uint32_t bits = 0; bits < 127; ++bits) {
      const float element = harness::decode(Type::kE4m3, bits);
      rounded +=
          static_cast<double>(element * scale) != static_cast<double>(element) * static_cast<double>(scale);
    }
  }
  CHECK(rounded == 0);
}

TEST_CASE("typed: the report says to which side results were rounded") {
  constexpr gemm::Shape kLong{64, 72, 1104};
  const Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  const TypedRules rules = harness::typed_rules(kLong, types, Pattern::kExact, 1);
  TypedRules unrounded = rules;
  unrounded.types.d = Type::kFp32;
  const auto acceptance = harness::typed_acceptance(rules);
  const TypedImage exact = harness::correct_image(unrounded);
  // Toward zero; `off`: of what is rounded, every second one is also off by so many numbers of bf16.
  const auto report_with = [&](std::uint32_t off) {
    TypedImage image = harness::correct_image(rules);
    for (int i = 0; i < kLong.m * kLong.n; ++i) {
      const std::uint32_t bits = harness::bits_at(Type::kFp32, exact.d.data(), i);
      const bool fits = (bits & 0xffff) == 0;
      harness::put_bits(Type::kBf16, image.d.data(), i, (bits >> 16) - (fits || i % 2 == 0 ? 0 : off));
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  INFO(report_with(0));
  CHECK(contains(report_with(0),
                 "toward zero: the results are computed correctly, but they are rounded toward zero"));
  CHECK_FALSE(contains(report_with(1), "rounded toward zero"));
}

TEST_CASE("typed: the report says that promoted accumulators run on") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.promotion = 128;
  constexpr gemm::Shape kPromoted{32, 160, 512};
  constexpr gemm::TileShape kWide{64, 128, 128};
  const TypedRules rules = harness::typed_rules(kPromoted, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const auto element = [&](const harness::InputRule& rule, int row, int k) {
    return static_cast<double>(harness::decode(Type::kE4m3, harness::typed_bits(rule, Type::kE4m3, row, k)));
  };
  // `width`: of the parts of a tile that use the same accumulators; `begins`: they are begun anew each time,
  // or for the first k-tile of each part.
  const auto report_with = [&](int width, bool begins, bool each_begins = false) {
    TypedImage image = harness::correct_image(rules);
    for (int row = 0; row < kPromoted.m; ++row) {
      for (int column = 0; column < kPromoted.n; ++column) {
        double sum = 0;
        double accumulator = 0;
        const int first = column / kWide.n * kWide.n + column % kWide.n % width;
        for (int k0 = 0; k0 < kPromoted.k; k0 += 128) {
          for (int other = first; other < (column / kWide.n + 1) * kWide.n; other += width) {
            if (begins || (each_begins && k0 == 0)) accumulator = 0;
            for (int k = k0; other < kPromoted.n && k < k0 + 128; ++k)
              accumulator += element(rules.a, row, k) * element(rules.b, other, k);
            if (other == column) sum += accumulator;
          }
        }
        harness::put_bits(Type::kBf16, image.d.data(), row * kPromoted.n + column,
                          harness::encode(Type::kBf16, static_cast<float>(sum) * rules.scale()));
      }
    }
    return harness::verify(rules, image, acceptance, kWide).report;
  };
  CHECK_FALSE(contains(report_with(128, true), "not reset"));
  check_text(report_with(128, false), {"also contains everything that was promoted before. The first"});
  for (const bool each_begins : {false, true}) {
    check_text(report_with(64, false, each_begins),
               {"columns 64 to the right or left in the tile, which use the same"});
  }
}

TEST_CASE("typed: the report says which registers of a fragment are wrong") {
  const Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  const TypedRules rules = harness::typed_rules(kShape, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const auto report_with = [&](const auto& wrong) {
    TypedImage image = harness::correct_image(rules);
    for (int i = 0; i < kShape.m * kShape.n; ++i) {
      if (wrong(i / kShape.n % 16 / 8, i % kShape.n % 2))
        harness::put_bits(Type::kBf16, image.d.data(), i,
                          harness::bits_at(Type::kBf16, image.d.data(), i) ^ 0x40);
    }
    return harness::verify(rules, image, acceptance, kTile).report;
  };
  const std::string crossed = report_with([](int half, int odd) { return half != odd; });
  check_text(crossed, {"the odd columns of rows 0 to 7 of each 16 and the even columns of rows 8 to 15"});
  CHECK_FALSE(contains(report_with([](int, int odd) { return odd == 1; }), "of each 16"));
}

TEST_CASE("typed: wrong scales of blocks are rejected, and the report says which were taken") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.promotion = 128;
  types.scaling = gemm::Scaling::kBlocks;
  constexpr gemm::Shape kBlocks{72, 144, 400};
  const std::map<std::string, std::string> said{
      {"scales of blocks not applied", "the sums without any scale"},
      {"A's scales of other rows", "A's scales of the row 8 below or above"}};
  std::size_t damaged = 0;
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
    const TypedRules rules = harness::typed_rules(kBlocks, types, pattern, 1);
    const TypedImage correct = harness::correct_image(rules);
    const auto acceptance = harness::typed_acceptance(rules);
    CHECK(harness::verify(rules, correct, acceptance, kTile).ok);
    std::vector<harness::TypedFault> faults = harness::typed_faults(types);
    for (harness::TypedFault& fault : faults) {
      damaged += fault.shows_in(pattern) && contains(fault.name, "scale") ? 1 : 0;
      if (const auto words = said.find(fault.name); words != said.end()) fault.phrase = words->second;
    }
    const auto verify = [&](const TypedImage& image) {
      return harness::verify(rules, image, acceptance, kTile);
    };
    check_rejected(faults, pattern, correct, verify, rules, kTile);
  }
  CHECK(damaged == 6);  // 5 in the exact pattern, the NaN in both
  // A bound of scaled sums is hardly wider than that of promoted ones.
  Types plain = types;
  plain.scaling = gemm::Scaling::kTensor;
  CHECK(harness::typed_error(types, 4096, 1) > harness::typed_error(plain, 4096, 1));
  CHECK(harness::typed_error(types, 4096, 1) < 1.001 * harness::typed_error(plain, 4096, 1));
}

TEST_CASE(
    "typed: groups with scales of blocks are checked one by one, and the report names the other group") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.promotion = 128;
  types.scaling = gemm::Scaling::kBlocks;
  const std::vector<gemm::GroupRows> groups{{0, 20}, {20, 45}, {47, 47}, {47, 72}};
  constexpr gemm::Shape kGroups{72, 136, 400};
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kSpecial}) {
    const TypedRules rules = harness::typed_rules(kGroups, types, pattern, 1, true, groups);
    CHECK(rules.shape() == kGroups);
    const TypedImage correct = harness::correct_image(rules);
    const auto acceptance = harness::typed_acceptance(rules);
    CHECK(harness::verify(rules, correct, acceptance, kTile).ok);
    if (pattern == Pattern::kSpecial) continue;
    const auto verify = [&](const TypedImage& image) {
      return harness::verify(rules, image, acceptance, kTile);
    };
    check_rejected(harness::typed_group_faults(), pattern, correct, verify, rules, kTile);
  }
  // N ends inside a block, and each group's scales begin with one.
  const TypedRules rules = harness::typed_rules(kGroups, types, Pattern::kExact, 1, true, groups);
  CHECK(rules.blocks_b.size() == std::size_t{4 * 2 * 4});
  CHECK(rules.block_scale(harness::Operand::kB, 136, 0) == rules.blocks_b[2 * 4]);
  TypedRules other = rules;
  for (std::size_t i = 0; i < other.blocks_b.size(); ++i) other.blocks_b[i] = rules.blocks_b[i % 8];
  TypedImage image = harness::correct_image(rules);
  image.d = harness::correct_image(other).d;
  const auto result = harness::verify(rules, image, harness::typed_acceptance(rules), kTile);
  CHECK(contains(result.report, "the B of the group itself and the scales of the B of group 0"));
}

TEST_CASE("typed: the report names scales of the tile before, and accumulators that run on") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.promotion = 128;
  types.scaling = gemm::Scaling::kBlocks;
  const gemm::TileShape tile{128, 256, 128};
  const TypedRules rules = harness::typed_rules({40, 640, 400}, types, Pattern::kExact, 1);
  const auto acceptance = harness::typed_acceptance(rules);
  const int blocks = rules.blocks_of_k();
  const auto at = [&](int row, int block) { return static_cast<std::size_t>(row / 128 * blocks + block); };
  // Not rules of its own: an image that was made with other scales.
  const auto report_of = [&](const TypedRules& other) {
    return harness::verify(rules, harness::correct_image(other), acceptance, tile).report;
  };
  TypedRules before = rules;
  TypedRules sum = rules;
  for (int block = 0; block < blocks; ++block) {
    for (int row = 256; row < 640; row += 128)
      before.blocks_b[at(row, block)] = rules.blocks_b[at(row - 256, block)];
  }
  check_text(report_of(before),
             {"B's scales of another tile: columns 256 to 511 use those of columns 0 to 255",
              "columns 512 to 639 use those of columns 256 to 511"});
  // With A's scales all 1 an accumulator that runs on has the sum of B's scales from its block on.
  TypedRules plain = rules;
  std::fill(plain.blocks_a.begin(), plain.blocks_a.end(), 1.0f);
  sum = plain;
  for (int row = 0; row < 640; row += 128) {
    for (int block = blocks - 2; block >= 0; --block)
      sum.blocks_b[at(row, block)] += sum.blocks_b[at(row, block + 1)];
  }
  check_text(
      harness::verify(plain, harness::correct_image(sum), harness::typed_acceptance(plain), tile).report,
      {"the sums of accumulators that are not reset between blocks"});
}

TEST_CASE("typed: the report says from which block of K on scales are those of a neighbour") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.promotion = 128;
  types.scaling = gemm::Scaling::kBlocks;
  const gemm::TileShape tile{128, 256, 128};
  // With many blocks two k-tiles of thousands fit a few rounded sums by chance.
  TypedRules rules = harness::typed_rules({86, 160, 4432}, types, Pattern::kExact, 1);
  const int blocks = rules.blocks_of_k();
  // No block has the scale of a neighbour.
  for (std::size_t i = 0; i < rules.blocks_b.size(); ++i)
    rules.blocks_b[i] = static_cast<float>(1 << i % static_cast<std::size_t>(blocks) % 3) / 2;
  for (std::size_t i = 0; i < rules.blocks_a.size(); ++i)
    rules.blocks_a[i] = static_cast<float>(1 << (i / 86 + i % 86 / 7) % 3) / 2;
  const auto acceptance = harness::typed_acceptance(rules);
  const auto report_with = [&](bool of_a, auto&& taken) {
    TypedRules other = rules;
    auto& scales = of_a ? other.blocks_a : other.blocks_b;
    const auto& right = of_a ? rules.blocks_a : rules.blocks_b;
    const std::size_t rows = scales.size() / static_cast<std::size_t>(blocks);
    for (std::size_t row = 0; row < rows; ++row) {
      for (int block = 0; block < blocks; ++block) {
        // A's scales: [block][row]. B's: [128 rows][block].
        const auto at = [&](int which) {
          return of_a ? static_cast<std::size_t>(which) * rows + row
                      : row * static_cast<std::size_t>(blocks) + static_cast<std::size_t>(which);
        };
        scales[at(block)] = right[at(taken(block))];
      }
    }
    return harness::verify(rules, harness::correct_image(other), acceptance, tile).report;
  };
  const std::string behind = report_with(false, [](int block) { return block < 32 ? block : block - 1; });
  check_text(behind, {"from block 32 of K (k = 4096; the blocks are 0 to 34), the scale of B is that of the "
                      "previous block; before it, the scale is right"});
  const std::string until = report_with(true, [](int block) { return block < 7 ? block + 1 : block; });
  check_text(until, {"up to block 6 of K (k = 768;", "the scale of A is that of the next block"});
  const std::string once = report_with(false, [](int block) { return block % 32; });
  check_text(once, {"the scale of B for block 32 of K and for all later blocks (from k = 4096 on; the blocks "
                    "are 0 to 34) is that of the block 32 before"});
  // What is no neighbour's scale is no missing k-tile either.
  const std::string far = report_with(false, [&](int block) { return (block * 7 + 3) % 35; });
  check_text(far, {}, {"These are"});
}

TEST_CASE("typed: a workload has rows of scales that TMA can load, NaN between them") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.promotion = 128;
  types.scaling = gemm::Scaling::kBlocks;
  harness::TypedWorkload workload({70, 144, 272}, types, Pattern::kExact, 1);
  const gemm::Problem problem = workload.problem();
  CHECK(problem.scales == nullptr);
  CHECK(problem.scales_a_pitch == 72);
  CHECK(problem.scales_b_pitch == 4);
  std::vector<float> row(72);
  harness::copy_to_host(row.data(), problem.scales_a + 72, 72 * sizeof(float));
  CHECK(row[69] == workload.rules().block_scale(harness::Operand::kA, 69, 128));
  CHECK(std::isnan(row[70]));
  CHECK(std::isnan(row[71]));
}

TEST_CASE("typed: ue8m0 scales keep exact sums exact, and wrong ones are rejected and named") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kFp32};
  types.scaling = gemm::Scaling::kMx;
  constexpr gemm::Shape kMx{72, 72, 400};
  const TypedRules rules = harness::typed_rules(kMx, types, Pattern::kExact, 1);
  const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
  const auto verify = [&](const TypedImage& image, const TypedRules& of) {
    return harness::verify(of, image, acceptance, kTile);
  };
  const TypedImage correct = harness::correct_image(rules);
  CHECK(verify(correct, rules).ok);
  std::map<std::string, std::string> reports;
  for (const harness::TypedFault& fault : harness::typed_faults(types)) {
    INFO(fault.name);
    TypedImage image = correct;
    fault.damage(image, rules, kTile);
    const harness::CheckResult result = verify(image, rules);
    CHECK_FALSE(result.ok);
    reports[fault.name] = result.report;
  }
  CHECK(contains(reports["scales of blocks not applied"], "the sums without any scale"));
  CHECK(contains(reports["A's scales of the first of four blocks"],
                 "the scale factor ID of A must be 0, 1, 2"));
  CHECK(contains(reports["the scales of A and of B exchanged"], "the scales of A and of B exchanged"));
}

TEST_CASE("typed: ue8m0 scales lie in pieces as the tensor cores want them, and what is no scale is NaN") {
  Types types{Type::kE4m3, Type::kE4m3, Type::kBf16};
  types.scaling = gemm::Scaling::kMx;
  const harness::TypedWorkload workload({130, 40, 160}, types, Pattern::kNormal, 3);
  const gemm::Problem problem = workload.problem();
  const TypedRules& rules = workload.rules();
  std::vector<std::uint8_t> pieces(std::size_t{2} * 2 * 512);
  harness::copy_to_host(pieces.data(), problem.mx_scales_a, pieces.size());
  int wrong = 0;
  for (int row = 0; row < 256; ++row) {
    for (int block = 0; block < 8; ++block) {
      const std::uint8_t bits = pieces[static_cast<std::size_t>(
          (row / 128 * 2 + block / 4) * 512 + row % 32 * 16 + row / 32 % 4 * 4 + block % 4)];
      if (row >= 130) {
        wrong += bits != 0xff;
      } else if (block >= 5) {
        wrong += bits == 0xff;
      } else {
        wrong +=
            gemm::to_float(gemm::ue8m0{bits}) != rules.block_scale(harness::Operand::kA, row, 32 * block);
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("typed: nvfp4 has two elements in a byte and two levels of scales, and mistakes are named") {
  Types types{Type::kE2m1, Type::kE2m1, Type::kFp32};
  types.scaling = gemm::Scaling::kNv;
  constexpr gemm::Shape kNv{72, 72, 544};
  const TypedRules rules = harness::typed_rules(kNv, types, Pattern::kExact, 1);
  const harness::TypedAcceptance acceptance = harness::typed_acceptance(rules);
  const TypedImage correct = harness::correct_image(rules);
  CHECK(correct.a.size() == std::size_t{72} * 544 / 2);
  CHECK(harness::verify(rules, correct, acceptance, kTile).ok);
  std::map<std::string, std::string> reports;
  for (const harness::TypedFault& fault : harness::typed_faults(types)) {
    INFO(fault.name);
    TypedImage image = correct;
    fault.damage(image, rules, kTile);
    const harness::CheckResult result = harness::verify(rules, image, acceptance, kTile);
    CHECK_FALSE(result.ok);
    reports[fault.name] = result.report;
  }
  CHECK(contains(reports["scales of blocks not applied"], "the sums without any scale of a block"));
  CHECK(contains(reports["scales not applied"], "the sums without the scales of the tensors"));
  CHECK(contains(reports["scales applied twice"], "the scales of the tensors applied twice"));
  CHECK(contains(reports["the scales of A and of B exchanged"], "the scales of A and of B exchanged"));
  CHECK(contains(reports["A's scales of the first instruction of a k-tile"],
                 "A's scales of the first 64 elements of each k-tile"));
  CHECK(contains(reports["the nibbles of A exchanged"], "the two elements in each byte of A exchanged"));
}

TEST_CASE("typed: nvfp4's element of the lower K is the lower half of its byte, and its scales are ue4m3") {
  Types types{Type::kE2m1, Type::kE2m1, Type::kBf16};
  types.scaling = gemm::Scaling::kNv;
  const harness::TypedWorkload workload({130, 40, 96}, types, Pattern::kNormal, 3);
  const gemm::Problem problem = workload.problem();
  const TypedRules& rules = workload.rules();
  const std::vector<std::uint8_t> a = workload.image().a;
  std::vector<std::uint8_t> pieces(std::size_t{2} * 2 * 512);
  harness::copy_to_host(pieces.data(), problem.mx_scales_a, pieces.size());
  int wrong = 0;
  std::set<unsigned> elements;
  std::set<unsigned> scales;
  for (int row = 0; row < 256; ++row) {
    for (int k = 0; k < 96 && row < 130; ++k) {
      const unsigned byte = a[static_cast<std::size_t>(row * 48 + k / 2)];
      const unsigned bits = k % 2 == 0 ? byte & 0xf : byte >> 4;
      wrong += bits != harness::typed_bits(rules.a, types.a, row, k);
      elements.insert(bits);
    }
    for (int block = 0; block < 8; ++block) {
      const std::uint8_t bits = pieces[static_cast<std::size_t>(
          (row / 128 * 2 + block / 4) * 512 + row % 32 * 16 + row / 32 % 4 * 4 + block % 4)];
      if (row >= 130) {
        wrong += bits != 0xff;
      } else if (block >= 6) {
        wrong += bits != 0;
      } else {
        wrong +=
            gemm::to_float(gemm::ue4m3{bits}) != rules.block_scale(harness::Operand::kA, row, 16 * block);
        scales.insert(bits);
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(elements.size() == 16);
  CHECK(scales.size() == 64);
}

TEST_CASE("typed: in a race no fp16 overflows, elsewhere some saturate") {
  const Types types{Type::kFp16, Type::kFp16, Type::kFp16};
  for (const bool saturates : {true, false}) {
    const TypedRules rules = harness::typed_rules({64, 64, 2048}, types, Pattern::kNormal, 1, saturates);
    const TypedImage image = harness::correct_image(rules);
    int largest = 0;
    for (std::int64_t i = 0; i < 64 * 64; ++i)
      largest += (harness::bits_at(types.d, image.d.data(), i) & 0x7fffu) == 0x7bffu;
    INFO(saturates);
    CHECK((largest > 0) == saturates);
  }
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
