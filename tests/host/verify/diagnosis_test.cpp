#include "harness/verify/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/verify/reference.h"
#include "harness/verify/verify.h"

namespace {

using gemm::bf16;
using harness::Operand;
using harness::Pattern;

constexpr gemm::Shape kDiagnosedShape{150, 170, 100};
constexpr gemm::TileShape kDiagnosedTile{64, 32, 16};

/// A correct D and everything needed to judge a damaged one.
struct Case {
  explicit Case(Pattern pattern, const gemm::Shape& of_shape = kDiagnosedShape, std::uint64_t seed = 1)
      : shape(of_shape),
        image(harness::correct_image(shape, pattern, seed)),
        acceptance(harness::host_acceptance(shape, pattern, seed)) {}

  bf16& at(int row, int column) { return image.d[static_cast<std::size_t>(row * shape.n + column)]; }
  std::string report() const { return harness::verify(image, acceptance, kDiagnosedTile).report; }
  float a(std::int64_t flat) const {
    return flat < static_cast<std::int64_t>(image.a.size())
               ? gemm::to_float(image.a[static_cast<std::size_t>(flat)])
               : 0;
  }
  float b(std::int64_t flat) const {
    return flat < static_cast<std::int64_t>(image.b.size())
               ? gemm::to_float(image.b[static_cast<std::size_t>(flat)])
               : 0;
  }
  /// D from another formula: term(row, column, k) summed over k < count, in binary32.
  void recompute(int count, const std::function<float(int, int, int)>& term) {
    for (int i = 0; i < shape.m; ++i) {
      for (int j = 0; j < shape.n; ++j) {
        float sum = 0;
        for (int k = 0; k < count; ++k) sum += term(i, j, k);
        at(i, j) = gemm::to_bf16(sum);
      }
    }
  }
  float product(int i, int j, int k) const {
    return a(static_cast<std::int64_t>(i) * shape.k + k) * b(static_cast<std::int64_t>(j) * shape.k + k);
  }
  /// D(row, column) becomes the right result of another element.
  void gather(const std::function<harness::Element(int, int)>& from) {
    const std::vector<bf16> right = image.d;
    for (int i = 0; i < shape.m; ++i) {
      for (int j = 0; j < shape.n; ++j) {
        const auto [row, column] = from(i, j);
        if (row >= 0 && row < shape.m && column >= 0 && column < shape.n)
          at(i, j) = right[static_cast<std::size_t>(row * shape.n + column)];
      }
    }
  }

  gemm::Shape shape;
  harness::RunImage image;
  harness::Acceptance acceptance;
};

// ---- Where

std::string place_of(const std::function<bool(int, int)>& wrong) {
  Case c(Pattern::kExact);
  for (int i = 0; i < kDiagnosedShape.m; ++i) {
    for (int j = 0; j < kDiagnosedShape.n; ++j) {
      if (wrong(i, j)) c.at(i, j).bits ^= 0x40;
    }
  }
  return harness::describe_place(harness::survey(c.acceptance, c.image.d.data(), kDiagnosedTile));
}

TEST_CASE("where: the pattern is put into words") {
  const int m = kDiagnosedShape.m;
  const int n = kDiagnosedShape.n;
  CHECK(place_of([](int, int) { return true; }) == "every element of D.");
  CHECK(place_of([](int i, int j) { return i / 64 == 1 && j / 32 == 2; }) ==
        "the whole tile (1, 2) of 3 x 6 tiles and nothing else.");
  CHECK(place_of([](int i, int j) { return i / 64 == 2 && j / 32 == 5; }) ==
        "the whole tile (2, 5) of 3 x 6 tiles and nothing else. All of them are in the incomplete last tile "
        "row (22 of 64 rows) and column (10 of 32 columns).");
  CHECK(place_of([](int i, int j) { return i / 64 == 1 && j / 32 == 2 && (i != 70 || j != 70); }) ==
        "nearly the whole tile (1, 2) of 3 x 6 tiles and nothing else.");
  CHECK(place_of([](int i, int) { return i / 64 == 1; }) == "tile row 1 of 3 x 6 tiles, completely.");
  CHECK(place_of([](int i, int) { return i >= 128; }) ==
        "tile row 2 of 3 x 6 tiles, completely. All of them are in the incomplete last tile row (22 of 64 "
        "rows).");
  CHECK(place_of([](int, int j) { return j / 32 == 5 || j / 32 == 1; }) ==
        "tile columns 1, 5 of 3 x 6 tiles, completely.");
  CHECK(place_of([](int i, int j) { return i / 64 != 0 || j / 32 != 0; }) ==
        "all of the 3 x 6 tiles but (0, 0).");
  CHECK(place_of([](int i, int j) { return i / 64 == 1 && j / 32 < 3; }) ==
        "3 of the 3 x 6 tiles, each completely: (1, 0), (1, 1), (1, 2).");
  CHECK(place_of([](int i, int) { return i == 7; }) == "row 7, from end to end.");
  CHECK(place_of([](int i, int) { return i == m - 1; }) ==
        "row 149, from end to end. All of them are in the incomplete last tile row (22 of 64 rows).");
  CHECK(place_of([](int, int j) { return j % 8 == 3; }) ==
        "columns 3, 11, 19, 27 and 17 more, from end to end. The pattern repeats: columns 3 mod 8, 1 in 8.");
  CHECK(place_of([](int i, int) { return i % 16 >= 8; }) ==
        "rows 8 to 15, 24 to 31, 40 to 47, 56 to 63 and 5 more, from end to end. The pattern repeats: rows 8 "
        "to 15 mod 16, 8 in 16.");
  CHECK(place_of([](int i, int j) { return i == 77 && j == 99; }) ==
        "one element, D(77, 99); inside its tile that is (13, 3).");
  CHECK(place_of([](int i, int j) { return i % 64 < 8 && j % 32 >= 24 && i < 128; }) ==
        "640 elements in rows 0 to 7, 64 to 71 and columns 24 to 31, 56 to 63, 88 to 95, 120 to 127 and 1 "
        "more, in 10 of 3 x 6 tiles; in a tile, only rows 0 to 7, columns 24 to 31. The pattern repeats: "
        "columns "
        "24 to 31 mod 32, 8 in 32.");
  CHECK(
      place_of([](int, int j) { return j == n - 1; }) ==
      "column 169, from end to end. All of them are in the incomplete last tile column (10 of 32 columns).");
}

TEST_CASE("survey counts every kind") {
  Case c(Pattern::kNormal);
  c.at(0, 0) = harness::kPoison;
  c.at(0, 1) = {0x7fff};
  c.at(0, 2) = {0xffc0};
  c.at(149, 169) = {0xff80};
  c.at(149, 168).bits ^= 0x8000;
  const harness::Survey survey = harness::survey(c.acceptance, c.image.d.data(), kDiagnosedTile);
  CHECK(survey.wrong == 5);
  CHECK(survey.never_written == 1);
  CHECK(survey.nan == 2);
  CHECK(survey.infinity == 1);
  CHECK(survey.value == 1);
  CHECK(survey.tile_wrong.front() == 3);
  CHECK(survey.tile_wrong.back() == 2);
  CHECK(survey.column_wrong[168] == 1);
  CHECK(survey.row_wrong[0] == 3);
}

TEST_CASE("a tile larger than D, or none, is D itself") {
  Case c(Pattern::kExact, {5, 6, 7});
  c.at(4, 5).bits ^= 0x40;
  for (const gemm::TileShape& tile : {gemm::TileShape{128, 128, 32}, {0, 0, 0}}) {
    const harness::CheckResult result = harness::verify(c.image, c.acceptance, tile);
    CHECK(contains(result.report, "one element, D(4, 5)"));
  }
}

// ---- Why

TEST_CASE("why: a part of K missing, doubled, replaced, or too much") {
  const Pattern pattern = GENERATE(Pattern::kExact, Pattern::kNormal, Pattern::kUniform);
  CAPTURE(harness::to_string(pattern));
  const int k = kDiagnosedShape.k;
  SECTION("the ragged last k-tile") {
    Case c(pattern);
    c.recompute(96, [&](int i, int j, int l) { return c.product(i, j, l); });
    CHECK(contains(c.report(), "the end of K is missing: k = 96 to 99 (k-tile 6 of 0 to 6)"));
  }
  SECTION("the last slice of 16") {
    Case c(pattern, {150, 170, 96});
    c.recompute(80, [&](int i, int j, int l) { return c.product(i, j, l); });
    CHECK(contains(c.report(), "the end of K is missing: k = 80 to 95 (k-tile 5 of 0 to 5)"));
  }
  SECTION("the first k-tile") {
    Case c(pattern);
    c.recompute(k - 16, [&](int i, int j, int l) { return c.product(i, j, l + 16); });
    CHECK(contains(c.report(), "the beginning of K is missing: k = 0 to 15 (k-tile 0 of 0 to 6)"));
  }
  SECTION("the first slices of a k-tile of 64") {
    Case c(pattern, {150, 170, 200});
    c.recompute(200 - 48, [&](int i, int j, int l) { return c.product(i, j, l + 48); });
    const std::string report = harness::verify(c.image, c.acceptance, {64, 32, 64}).report;
    check_text(report, {"the beginning of K is missing: k = 0 to 47",
                        "a part of the first k-tile, which has 64 elements of K: its multiplication at k = "
                        "48 overwrites the accumulators, and so does each multiplication before it"});
    CHECK(contains(c.report(), "by k-tile 3?"));
  }
  SECTION("a k-tile in the middle") {
    Case c(pattern);
    c.recompute(k, [&](int i, int j, int l) { return l / 16 == 3 ? 0 : c.product(i, j, l); });
    CHECK(contains(c.report(), "a part of K is missing: k = 48 to 63 (k-tile 3 of 0 to 6)"));
  }
  SECTION("a k-tile twice") {
    Case c(pattern);
    c.recompute(k, [&](int i, int j, int l) { return (l / 16 == 2 ? 2 : 1) * c.product(i, j, l); });
    CHECK(contains(c.report(), "a part of K is counted twice: k = 32 to 47 (k-tile 2 of 0 to 6)"));
  }
  SECTION("a stage read too early") {
    Case c(pattern);
    c.recompute(k, [&](int i, int j, int l) { return c.product(i, j, l / 16 == 4 ? l - 32 : l); });
    CHECK(contains(c.report(), "k-tile 4 is missing and k-tile 2 is counted twice"));
  }
  SECTION("what the k-tile before left behind the end of K") {
    Case c(pattern);
    c.recompute(112, [&](int i, int j, int l) { return c.product(i, j, l < k ? l : l - 16); });
    CHECK(contains(
        c.report(),
        "columns 4 to 15 of the last, incomplete k-tile 6 (k = 100 to 111) still hold values of k-tile 5"));
  }
  SECTION("past the end of K, into the next row") {
    Case c(pattern);
    c.recompute(112, [&](int i, int j, int l) { return c.product(i, j, l); });
    CHECK(contains(c.report(), "the accumulation continues to k = 111, beyond K = 100"));
  }
}

TEST_CASE("why: right results in the wrong place") {
  const Pattern pattern = GENERATE(Pattern::kExact, Pattern::kNormal);
  CAPTURE(harness::to_string(pattern));
  SECTION("operands swapped") {
    Case c(pattern, {150, 150, 40});
    c.gather([](int i, int j) { return harness::Element{j, i}; });
    CHECK(contains(c.report(), "the operands are swapped, or D is stored transposed"));
  }
  SECTION("stored column by column") {
    Case c(pattern);
    c.gather([](int i, int j) {
      const int flat = i * kDiagnosedShape.n + j;
      return harness::Element{flat % kDiagnosedShape.m, flat / kDiagnosedShape.m};
    });
    CHECK(contains(c.report(), "as N x M instead of M x N"));
  }
  SECTION("transposed fragments") {
    Case c(pattern);
    c.gather([](int i, int j) { return harness::Element{i - i % 8 + j % 8, j - j % 8 + i % 8}; });
    CHECK(contains(c.report(), "each 8 x 8 block is transposed"));
  }
  SECTION("a part of B from the rows before") {
    Case c(pattern);
    c.gather([](int i, int j) { return harness::Element{i, j % 32 < 16 ? j : j - 16}; });
    CHECK(contains(c.report(), "D(row, column) holds the result for D(row + 0, column - 16)"));
    CHECK(contains(c.report(), "a part of B was loaded or read from 16 rows before its own"));
  }
  SECTION("off by one row") {
    Case c(pattern);
    c.gather([](int i, int j) { return harness::Element{i + 1, j}; });
    CHECK(contains(c.report(), "D(row, column) holds the result for D(row + 1, column + 0)"));
  }
  SECTION("neighbours exchanged") {
    Case c(pattern);
    c.gather([](int i, int j) { return harness::Element{i, j ^ 8}; });
    CHECK(contains(c.report(), "D(row, column) holds the result for D(row ^ 0, column ^ 8)"));
  }
  SECTION("row pitch of D is M") {
    Case c(pattern);
    c.gather([](int i, int j) {
      const int flat = i * kDiagnosedShape.n + j;
      return harness::Element{flat / kDiagnosedShape.m, flat % kDiagnosedShape.m};
    });
    CHECK(contains(c.report(),
                   "row pitch (leading dimension) of 150 elements (which is M) instead of N = 170"));
  }
}

TEST_CASE("why: operands misread") {
  const Pattern pattern = GENERATE(Pattern::kExact, Pattern::kNormal);
  CAPTURE(harness::to_string(pattern));
  const std::int64_t k = kDiagnosedShape.k;
  SECTION("A with the pitch of D") {
    Case c(pattern);
    c.recompute(kDiagnosedShape.k,
                [&](int i, int j, int l) { return c.a(i * std::int64_t{170} + l) * c.b(j * k + l); });
    CHECK(
        contains(c.report(), "A is read with a row pitch (leading dimension) of 170 = N instead of K = 100"));
  }
  SECTION("B as if it were K x N") {
    Case c(pattern);
    c.recompute(kDiagnosedShape.k,
                [&](int i, int j, int l) { return c.a(i * k + l) * c.b(l * std::int64_t{170} + j); });
    CHECK(contains(c.report(), "B is read as if it were stored K x N"));
  }
  SECTION("both with K rounded up") {
    Case c(pattern);
    c.recompute(kDiagnosedShape.k, [&](int i, int j, int l) {
      return c.a(i * std::int64_t{112} + l) * c.b(j * std::int64_t{112} + l);
    });
    CHECK(contains(c.report(),
                   "A is read with a row pitch (leading dimension) of 112, K rounded up to whole k-tiles"));
    CHECK(contains(c.report(), "and B is read with a row pitch (leading dimension) of 112"));
  }
}

TEST_CASE("why: wrong values") {
  const Pattern pattern = GENERATE(Pattern::kExact, Pattern::kNormal);
  CAPTURE(harness::to_string(pattern));
  Case c(pattern);
  SECTION("zero") {
    c.recompute(0, [](int, int, int) { return 0.0f; });
    CHECK(contains(c.report(), "they are all zero"));
  }
  SECTION("a constant") {
    c.recompute(1, [](int, int, int) { return 3.0f; });
    CHECK(contains(c.report(), "they all hold the same value, 3"));
  }
  SECTION("cut off instead of rounded") {
    for (int i = 0; i < kDiagnosedShape.m; ++i) {
      for (int j = 0; j < kDiagnosedShape.n; ++j) {
        double sum = 0;
        double norm = 0;
        harness::Inputs(c.image.a_rule, c.image.b_rule).sum(i, j, sum, norm);
        c.at(i,
             j) = {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(sum)) >> 16)};
      }
    }
    CHECK(contains(c.report(), "the low 16 bits cut off"));
  }
  SECTION("accumulated twice") {
    c.recompute(2 * kDiagnosedShape.k,
                [&](int i, int j, int l) { return c.product(i, j, l % kDiagnosedShape.k); });
    CHECK(contains(c.report(), "twice the right result"));
  }
  SECTION("negated") {
    for (bf16& value : c.image.d) value.bits ^= 0x8000;
    CHECK(contains(c.report(), "the right result with the wrong sign"));
  }
  SECTION("noise") {
    for (std::size_t i = 0; i < c.image.d.size(); ++i)
      c.image.d[i] = gemm::to_bf16(static_cast<float>(harness::random_bits(9, i) >> 40) - 8e6f);
    CHECK(contains(c.report(), "No simple mistake fits"));
    CHECK_FALSE(contains(c.report(), "Fits:"));
  }
}

// ---- Layouts, slices, coordinates, accumulators: each mistake has its sentence, and no other one's.

constexpr gemm::Shape kLarge{192, 256, 200};
constexpr gemm::TileShape kLargeTile{64, 128, 64};

/// The beginnings of the sentences below; a report holds its own and none of the others.
const std::vector<std::string> kSentences{
    "in each row of D, units of 8 columns are exchanged",
    "in the rows of A",
    "in the rows of B",
    "the k16 slices of",
    "the k16 slice 2 (k = 32 to 47) is skipped",
    "the k16 slice 1 (k = 16 to 31) is multiplied twice",
    "is skipped, and slice",
    "loaded with exchanged coordinates",
    "stored with exchanged coordinates",
    "holds its own result plus that of tile",
    "holds the result of tile",
    "were never initialised",
    "the right result plus",
    "No simple mistake fits",
    "a part of K",
    "the end of K",
    "the beginning of K",
    "D(row, column) holds",
    "leading dimension",
    "the 8 x 8 blocks at",
    "of every 16 are exchanged",
    "each 8 x 8 block of",
    "groups of 8 rows of",
    "multiplied at the wrong k",
};

void check_only(Case& c, const std::vector<std::string>& wanted) {
  const std::string report = harness::verify(c.image, c.acceptance, kLargeTile).report;
  INFO(report);
  for (const std::string& sentence : kSentences) {
    CAPTURE(sentence);
    const bool expected = std::any_of(wanted.begin(), wanted.end(),
                                      [&](const std::string& words) { return contains(words, sentence); });
    CHECK(contains(report, sentence) == expected);
  }
  for (const std::string& words : wanted) CHECK(contains(report, words));
}

int swizzle_unit(int bytes, int row) {
  return bytes == 128 ? row % 8 : bytes == 64 ? row / 2 % 4 : row / 4 % 2;
}

TEST_CASE("why: swizzles, slices, coordinates and accumulators each have their own sentence", "[slow]") {
  const Pattern pattern = GENERATE(Pattern::kExact, Pattern::kNormal);
  CAPTURE(harness::to_string(pattern));
  Case c(pattern, kLarge);
  const auto a = [&](int row, int k) {
    return row < kLarge.m && k < kLarge.k ? c.a(static_cast<std::int64_t>(row) * kLarge.k + k) : 0;
  };
  const auto b = [&](int row, int k) {
    return row < kLarge.n && k < kLarge.k ? c.b(static_cast<std::int64_t>(row) * kLarge.k + k) : 0;
  };
  const std::vector<bf16> right = c.image.d;
  SECTION("a tile of D written with a swizzle and stored without") {
    const int bytes = GENERATE(128, 64, 32);
    c.gather([&](int i, int j) { return harness::Element{i, j ^ (8 * swizzle_unit(bytes, i))}; });
    check_only(c, {"in each row of D, units of 8 columns are exchanged, depending on the row: only one side "
                   "applies the " +
                   std::to_string(bytes) + "-byte swizzle"});
  }
  SECTION("a tile of D written with one swizzle and stored with another") {
    c.gather([](int i, int j) {
      return harness::Element{i, j ^ (8 * (swizzle_unit(128, i) ^ swizzle_unit(64, i)))};
    });
    check_only(c, {"in each row of D, units of 8 columns are exchanged, depending on the row: one side "
                   "applies the 128-byte swizzle and the other the 64-byte swizzle"});
  }
  SECTION("A read without the swizzle that it was written with") {
    c.recompute(256, [&](int i, int j, int k) { return a(i, k ^ (8 * swizzle_unit(128, i))) * b(j, k); });
    check_only(c, {"in the rows of A, only one side applies the 128-byte swizzle"});
  }
  SECTION("both read without it") {
    c.recompute(256, [&](int i, int j, int k) {
      return a(i, k ^ (8 * swizzle_unit(64, i))) * b(j, k ^ (8 * swizzle_unit(64, j)));
    });
    check_only(c, {"in the rows of A, only one side applies the 64-byte swizzle",
                   "in the rows of B, only one side applies the 64-byte swizzle"});
  }
  SECTION("overlapping slices of A") {
    c.recompute(256,
                [&](int i, int j, int k) { return a(i, k / 64 * 64 + k % 64 / 16 * 8 + k % 16) * b(j, k); });
    check_only(c, {"the k16 slices of A begin 8 elements apart instead of 16, so they overlap"});
  }
  SECTION("slices of both that never advance") {
    c.recompute(256,
                [&](int i, int j, int k) { return a(i, k / 64 * 64 + k % 16) * b(j, k / 64 * 64 + k % 16); });
    check_only(c,
               {"the k16 slices of A begin 0 elements apart", "the k16 slices of B begin 0 elements apart"});
  }
  SECTION("a slice skipped in every k-tile") {
    c.recompute(kLarge.k, [&](int i, int j, int k) { return k % 64 / 16 == 2 ? 0 : a(i, k) * b(j, k); });
    check_only(c, {"the k16 slice 2 (k = 32 to 47) is skipped"});
  }
  SECTION("a slice twice in every k-tile") {
    c.recompute(kLarge.k,
                [&](int i, int j, int k) { return (k % 64 / 16 == 1 ? 2 : 1) * a(i, k) * b(j, k); });
    check_only(c, {"the k16 slice 1 (k = 16 to 31) is multiplied twice"});
  }
  SECTION("a slice of B replaced") {
    c.recompute(256, [&](int i, int j, int k) { return a(i, k) * b(j, k % 64 / 16 == 3 ? k - 16 : k); });
    check_only(c, {"the k16 slice 3 of B is skipped, and slice 2 is used twice"});
  }
  SECTION("fragments of B exchanged") {
    c.recompute(208,
                [&](int i, int j, int k) { return a(i, k) * b((j & ~8) | (k & 8), (k & ~8) | (j & 8)); });
    check_only(c,
               {"in each 16 x 16 block of B, the 8 x 8 blocks at (rows 0-7, k 8-15) and (rows 8-15, k 0-7)"});
  }
  SECTION("fragments of A exchanged along K, and those of B transposed") {
    c.recompute(208,
                [&](int i, int j, int k) { return a(i, k ^ 8) * b((j & ~7) | (k & 7), (k & ~7) | (j & 7)); });
    check_only(c,
               {"in A, k 0-7 and k 8-15 of every 16 are exchanged", "each 8 x 8 block of B is transposed"});
  }
  SECTION("groups of 8 rows at half their distance") {
    c.recompute(kLarge.k, [&](int i, int j, int k) {
      return a(i / 64 * 64 + i % 64 / 8 * 4 + i % 8, k) * b(j / 128 * 128 + j % 128 / 8 * 4 + j % 8, k);
    });
    check_only(c, {"groups of 8 rows of A are read 4 rows apart instead of 8, and groups of 8 rows of B are "
                   "read 4 rows apart"});
  }
  SECTION("groups of 8 rows of B that are all the first") {
    c.recompute(kLarge.k, [&](int i, int j, int k) { return a(i, k) * b(j / 128 * 128 + j % 8, k); });
    check_only(c, {"groups of 8 rows of B are read 0 rows apart instead of 8"});
  }
  SECTION("one tile that goes on behind its range of k-tiles") {
    for (int i = 64; i < 128; ++i) {
      for (int j = 128; j < 256; ++j) {
        float sum = 0;
        for (int k = 128; k < kLarge.k; ++k) sum += 2 * a(i, k) * b(j, k);
        c.at(i, j) = gemm::to_bf16(sum);
      }
    }
    check_only(c, {"in tile (1, 1), k-tiles 0 to 1 are missing, and k-tiles 2 to 3 are counted twice: a part "
                   "of the tile is multiplied at the wrong k"});
  }
  SECTION("A loaded with exchanged coordinates") {
    c.recompute(kLarge.k,
                [&](int i, int j, int k) { return a(k / 64 * 64 + i % 64, i / 64 * 64 + k % 64) * b(j, k); });
    check_only(c, {"A is loaded with exchanged coordinates"});
  }
  SECTION("tiles of D stored with exchanged coordinates") {
    std::fill(c.image.d.begin(), c.image.d.end(), harness::kPoison);
    for (int i = 0; i < kLarge.m; ++i) {
      for (int j = 0; j < kLarge.n; ++j) {
        const int row = j / 128 * 128 + i % 64;
        const int column = i / 64 * 64 + j % 128;
        if (row < kLarge.m && column < kLarge.n)
          c.at(row, column) = right[static_cast<std::size_t>(i * kLarge.n + j)];
      }
    }
    check_only(c, {"stored with exchanged coordinates"});
  }
  SECTION("the previous tile's accumulators") {
    const harness::Inputs inputs(c.image.a_rule, c.image.b_rule);
    for (int i = 64; i < 128; ++i) {
      for (int j = 128; j < 256; ++j) {
        float sum = 0;
        for (int k = 0; k < kLarge.k; ++k) sum += a(i, k) * b(j, k) + a(i - 64, k) * b(j, k);
        c.at(i, j) = gemm::to_bf16(sum);
      }
    }
    check_only(
        c, {"tile (1, 1) holds its own result plus that of tile (0, 1): the accumulators were not zeroed"});
  }
  SECTION("another tile's result") {
    for (int i = 128; i < 192; ++i) {
      for (int j = 0; j < 128; ++j)
        c.at(i, j) = right[static_cast<std::size_t>((i - 64) * kLarge.n + j + 128)];
    }
    check_only(c, {"tile (2, 0) holds the result of tile (1, 1)"});
  }
  SECTION("accumulators of any bits") {
    for (bf16& value : c.image.d) value = gemm::to_bf16(-1.69e38f);
    check_only(c, {"the accumulators were never initialised"});
  }
  SECTION("accumulators that start elsewhere") {
    c.recompute(kLarge.k, [&](int i, int j, int k) { return a(i, k) * b(j, k) + (k == 0 ? 4096.0f : 0.0f); });
    check_only(c, {"the right result plus"});
  }
}

TEST_CASE("hints for elements that were never written") {
  Case c(Pattern::kExact);
  SECTION("nothing") {
    std::fill(c.image.d.begin(), c.image.d.end(), harness::kPoison);
    CHECK(contains(c.report(), "Nothing was stored at all"));
  }
  SECTION("a tile") {
    for (int i = 64; i < 128; ++i) {
      for (int j = 0; j < 32; ++j) c.at(i, j) = harness::kPoison;
    }
    CHECK(contains(c.report(), "No block stored these tiles"));
  }
  SECTION("some columns") {
    for (int i = 0; i < kDiagnosedShape.m; ++i) c.at(i, 4) = harness::kPoison;
    CHECK(contains(c.report(), "skipped these elements"));
  }
}

}  // namespace
