// Random shapes, and what a race over them adds up to.
#include "harness/record/population.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "catch.h"
#include "harness/record/json.h"
#include "harness/record/record.h"

namespace harness {
namespace {

bool same(const gemm::Shape& one, const gemm::Shape& other) {
  return one.m == other.m && one.n == other.n && one.k == other.k;
}

ContestantRecord contestant(const std::string& name, const std::string& variant, double us) {
  return {.name = name,
          .variant = variant,
          .kind = name == kReferenceContestant ? ContestantKind::kBaseline : ContestantKind::kStep,
          .samples_us = std::vector<double>(9, us)};
}

/// auto, another variant and cuBLASLt, in microseconds.
ShapeRecord raced(const gemm::Shape& shape, double chosen, double other, double cublaslt) {
  ShapeRecord record{.shape = shape,
                     .contestants = {contestant("22_peak", "auto", chosen),
                                     contestant("22_peak", "128x128_ping_pong", other),
                                     contestant(kReferenceContestant, "best of 8", cublaslt)},
                     .conditions = {}};
  derive(record);
  return record;
}

TEST_CASE("population: shapes are legal, different, and the same for the same seed") {
  const std::vector<gemm::Shape> shapes = population_shapes(300, 7);
  REQUIRE(shapes.size() == 300);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto [m, n, k] = shapes[i];
    INFO(m << " x " << n << " x " << k);
    CHECK((m >= 1 && m <= 16384));
    CHECK((n >= 64 && n <= 16384 && n % 8 == 0));
    CHECK((k >= 64 && k <= 16384 && k % 8 == 0));
    const double flop = 2.0 * m * n * k;
    CHECK((flop >= 2e9 && flop <= 3e12));
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(same(shapes[i], shapes[j]));
  }
  const std::vector<gemm::Shape> again = population_shapes(300, 7);
  CHECK(std::equal(shapes.begin(), shapes.end(), again.begin(), same));
  const std::vector<gemm::Shape> fewer = population_shapes(20, 7);
  CHECK(std::equal(fewer.begin(), fewer.end(), shapes.begin(), same));
  CHECK_FALSE(same(population_shapes(1, 8).front(), shapes.front()));
}

TEST_CASE("population: half of N and K are multiples of 64, and small M are as frequent as large") {
  const std::vector<gemm::Shape> shapes = population_shapes(2000, 3);
  const auto share = [&](auto is) {
    return static_cast<double>(std::count_if(shapes.begin(), shapes.end(), is)) / 2000;
  };
  // An eighth of the other half are multiples of 64 by chance.
  CHECK(std::abs(share([](const gemm::Shape& s) { return s.n % 64 == 0; }) - 0.56) < 0.06);
  CHECK(std::abs(share([](const gemm::Shape& s) { return s.k % 64 == 0; }) - 0.56) < 0.06);
  CHECK(share([](const gemm::Shape& s) { return s.m < 256; }) > 0.15);
  CHECK(share([](const gemm::Shape& s) { return s.m > 4096; }) > 0.15);
}

TEST_CASE("population: the table of DeepGEMM has 18 shapes") {
  REQUIRE(deepgemm_shapes().size() == 18);
  CHECK(same(deepgemm_shapes().front(), {64, 2112, 7168}));
  CHECK(same(deepgemm_shapes().back(), {4096, 7168, 2048}));
}

TEST_CASE("population: the grid has 1000 shapes, and a seed decides which of them come first") {
  std::vector<gemm::Shape> all = grid_shapes(kGridShapes, 7);
  REQUIRE(all.size() == kGridShapes);
  const std::vector<gemm::Shape> sample = grid_shapes(60, 7);
  REQUIRE(sample.size() == 60);
  CHECK(std::equal(sample.begin(), sample.end(), all.begin(), same));
  const std::vector<gemm::Shape> other = grid_shapes(60, 8);
  CHECK_FALSE(std::equal(sample.begin(), sample.end(), other.begin(), same));
  const auto key = [](const gemm::Shape& s) { return std::tuple(s.m, s.n, s.k); };
  std::sort(all.begin(), all.end(), [&](const auto& one, const auto& two) { return key(one) < key(two); });
  CHECK(std::adjacent_find(all.begin(), all.end(), same) == all.end());
  for (const gemm::Shape& shape : all) {
    for (const int size : {shape.m, shape.n, shape.k})
      CHECK(std::find(kGridSizes.begin(), kGridSizes.end(), size) != kGridSizes.end());
  }
}

TEST_CASE("population: a distribution has mean, tenths and ends") {
  std::vector<double> values;
  for (int i = 1; i <= 20; ++i) values.push_back(i);
  const Distribution all = distribution(values);
  CHECK(all.lowest == 1);
  CHECK(all.lowest_tenth == 3);
  CHECK(all.highest_tenth == 18);
  CHECK(all.highest == 20);
  CHECK(all.count == 20);
  CHECK(std::abs(distribution({0.5, 2}).geometric_mean - 1) < 1e-12);
  CHECK_THROWS(distribution({}));
  CHECK_THROWS(distribution({1, 0}));
}

TEST_CASE("population: the summary compares with cuBLASLt and with the step's fastest variant") {
  Record record;
  record.shapes = {raced({128, 128, 128}, 10, 8, 5), raced({128, 136, 128}, 10, 12, 20),
                   raced({128, 128, 136}, 10, 10, 10)};
  const PopulationSummary summary = summarize_population(record, "22_peak", "auto");
  CHECK(std::abs(summary.speed.geometric_mean - 1) < 1e-9);  // 0.5, 2, 1
  CHECK(summary.speed.lowest == 0.5);
  CHECK(summary.regret.highest == 1.25);
  CHECK(summary.regret.lowest == 1);
  CHECK(std::abs(summary.best.lowest - 0.625) < 1e-9);
  CHECK(summary.off_sectors.count == 2);
  CHECK(std::abs(summary.off_sectors.geometric_mean - std::sqrt(2.0)) < 1e-9);
  CHECK(contains(human_table(summary), "over 3 shapes"));
  CHECK(summarize_population(record, "21_other", "auto").speed.count == 0);
}

TEST_CASE("population: another step counts where it ran") {
  Record record;
  record.shapes = {raced({128, 128, 128}, 10, 8, 5), raced({4096, 4096, 4096}, 10, 12, 20)};
  record.shapes[0].contestants.insert(record.shapes[0].contestants.begin() + 1,
                                      contestant("23_small", "auto", 4));
  derive(record.shapes[0]);
  const PopulationSummary summary = summarize_population(record, "22_peak", "auto");
  CHECK(std::abs(summary.speed.geometric_mean - 1) < 1e-9);  // 0.5, 2
  CHECK(std::abs(summary.handed_over.lowest - 1.25) < 1e-9);
  CHECK(summary.handed_over.count == 2);
  CHECK(summary.handed_over_small.count == 1);
  CHECK(contains(human_table(summary), "the same below 10 GFLOP"));
}

TEST_CASE("population: what --autotune would remember is a row of its own, whoever ran it") {
  Record record;
  record.shapes = {raced({1000, 1000, 500}, 10, 8, 5), raced({1000, 1000, 50000}, 10, 8, 20)};
  for (ShapeRecord& shape : record.shapes) shape.contestants.front().chosen = "64x64";
  CHECK(summarize_population(record, "22_peak", "auto").tuned.count == 0);
  record.shapes[0].tuned = "128x128_ping_pong";  // a contestant of its own
  record.shapes[1].tuned = "64x64";              // what `auto` chose
  const PopulationSummary summary = summarize_population(record, "22_peak", "auto");
  CHECK(summary.tuned.count == 2);
  CHECK(std::abs(summary.tuned.lowest - 0.625) < 1e-9);
  CHECK(std::abs(summary.tuned.highest - 2) < 1e-9);
  // 1 GFLOP is above the first bound, 100 GFLOP above the third.
  CHECK(summary.by_work[1].count == 1);
  CHECK(summary.by_work[3].count == 1);
  CHECK(contains(human_table(summary), "below 10 GFLOP, 1 shapes"));
}

TEST_CASE("population: a shape that was measured comes back from its record as it was") {
  ShapeRecord shape = raced({128, 136, 128}, 10, 12, 20);
  shape.contestants.front().chosen = "64x64";
  shape.contestants.front().why = "because";
  shape.tuned = "64x64";
  const nlohmann::json json = shape;
  CHECK(nlohmann::json(json.get<ShapeRecord>()) == json);
}

}  // namespace
}  // namespace harness
