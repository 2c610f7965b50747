#include "harness/record/json.h"

#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/base/problem.h"
#include "table.h"

namespace {

using harness::ContestantKind;
using harness::ContestantRecord;
using harness::Ratio;
using harness::Record;
using harness::ShapeRecord;
using harness::SuiteRecord;
using harness::SuiteSummary;
using harness::TimingMode;

ContestantRecord contestant(const std::string& name, const std::string& variant, ContestantKind kind,
                            double median) {
  ContestantRecord record;
  record.name = name;
  record.variant = variant;
  record.kind = kind;
  record.samples_us.assign(9, median);
  return record;
}

/// cuBLASLt needs 100 us; the steps' speeds relative to it are given.
ShapeRecord shape_of(const gemm::Shape& shape, double speed_18, double speed_19,
                     const std::string& algorithm) {
  ShapeRecord record;
  record.shape = shape;
  record.rotated_buffers = 2;
  record.contestants = {contestant("18_stream_k", "256x128", ContestantKind::kStep, 100 / speed_18),
                        contestant("22_peak", "auto", ContestantKind::kStep, 100 / speed_19),
                        contestant("cublaslt_best", algorithm, ContestantKind::kBaseline, 100),
                        contestant("cublas_default", "", ContestantKind::kBaseline, 125),
                        contestant("wgmma_ceiling", "", ContestantKind::kCeiling, 80)};
  harness::derive(record);
  return record;
}

SuiteRecord small_suite() {
  SuiteRecord suite;
  suite.burst.device.name = "Test GPU";
  suite.burst.pattern = "normal";
  suite.burst.commit = "abc1234";
  suite.burst.mode = TimingMode::kBurst;
  suite.burst.idle_ms = 15;
  suite.burst.shapes = {shape_of({1024, 1024, 1024}, 0.5, 1.25, "algorithm 1"),
                        shape_of({16, 8192, 8192}, 2, 1.25, "algorithm 2")};
  suite.sustained = suite.burst;
  suite.sustained.mode = TimingMode::kSustained;
  suite.sustained.idle_ms = 0;
  suite.sustained.shapes = {shape_of({8192, 8192, 8192}, 1.5, 1.0 / 1.6, "algorithm 3")};
  return suite;
}

TEST_CASE("the suite is twelve shapes in burst and two sustained, which every step from 04 on computes") {
  CHECK(harness::suite_burst_shapes().size() == 12);
  CHECK(harness::suite_sustained_shapes().size() == 2);
  std::set<std::string> names;
  for (const gemm::Shape& shape : harness::suite_burst_shapes()) {
    names.insert(harness::to_string(shape));
    CHECK(shape.n % 8 == 0);
    CHECK(shape.k % 8 == 0);
  }
  CHECK(names.size() == 12);
  // What is timed sustained was verified with the burst shapes.
  for (const gemm::Shape& shape : harness::suite_sustained_shapes())
    CHECK(names.count(harness::to_string(shape)) == 1);
}

TEST_CASE("the geometric mean by hand") {
  const Ratio mean = harness::geometric_mean({{0.5, 0.5, 0.5}, {2, 2, 2}});
  CHECK(mean.median == Approx(1));
  CHECK(mean.low == Approx(1));
  CHECK(mean.high == Approx(1));
  CHECK(harness::geometric_mean({{1.1, 1.0, 1.3}}).median == Approx(1.1));
  CHECK(harness::geometric_mean({{1.1, 1.0, 1.3}}).low == Approx(1.0));
  CHECK(harness::geometric_mean({{1.1, 1.0, 1.3}}).high == Approx(1.3));
  // Four of the same width: half as wide, each side on its own.
  const Ratio one{1, std::exp(-0.02), std::exp(0.04)};
  const Ratio four = harness::geometric_mean({one, one, one, one});
  CHECK(four.median == Approx(1));
  CHECK(four.low == Approx(std::exp(-0.01)));
  CHECK(four.high == Approx(std::exp(0.02)));
  CHECK_THROWS_AS(harness::geometric_mean({}), std::invalid_argument);
  CHECK_THROWS_AS(harness::geometric_mean({{1, 1, 1}, {0, 0, 0}}), std::invalid_argument);
  CHECK_THROWS_AS(harness::geometric_mean({{NAN, 1, 1}}), std::invalid_argument);
}

TEST_CASE("means over the burst shapes, worst over both modes") {
  const std::vector<SuiteSummary> summaries = harness::summarize(small_suite());
  REQUIRE(summaries.size() == 3);  // neither cuBLASLt, which is the reference, nor the ceiling
  const SuiteSummary& first = summaries[0];
  CHECK(first.name == "18_stream_k");
  CHECK(first.variant == "256x128");
  CHECK(first.geometric_mean.median == Approx(1));  // of 0.5 and 2, not of 1.5
  CHECK(first.burst_shapes == 2);
  CHECK(first.worst.median == Approx(0.5));
  CHECK(first.worst_shape.k == 1024);
  CHECK(first.worst_mode == TimingMode::kBurst);
  const SuiteSummary& second = summaries[1];
  CHECK(second.geometric_mean.median == Approx(1.25));
  CHECK(second.worst.median == Approx(1 / 1.6));
  CHECK(second.worst_shape.m == 8192);
  CHECK(second.worst_mode == TimingMode::kSustained);
  CHECK(summaries[2].name == "cublas_default");
  CHECK(summaries[2].geometric_mean.median == Approx(0.8));
}

TEST_CASE("a shape without a contestant or without the reference does not count, and the table says so") {
  SuiteRecord suite = small_suite();
  SECTION("cuBLAS's default could not run one shape") {
    suite.burst.shapes[1].contestants.erase(suite.burst.shapes[1].contestants.begin() + 3);
    const SuiteSummary summary = harness::summarize(suite)[2];
    CHECK(summary.burst_shapes == 1);
    CHECK(summary.geometric_mean.median == Approx(0.8));
    check_text(harness::human_table(suite), {"mean of only 1 of 2 shapes", "did not run"});
  }
  SECTION("cuBLASLt nowhere") {
    for (Record* record : {&suite.burst, &suite.sustained}) {
      for (ShapeRecord& shape : record->shapes) {
        shape.contestants.erase(shape.contestants.begin() + 2);
        harness::derive(shape);
      }
    }
    CHECK(harness::summarize(suite).empty());
    CHECK(contains(harness::human_table(suite), "no ratios and no means"));
  }
}

TEST_CASE("the suite's record is written as JSON, with a summary") {
  const nlohmann::json json = small_suite();
  CHECK(json.at("schema") == 1);
  CHECK(json.at("burst").at("mode") == "burst");
  CHECK(json.at("sustained").at("mode") == "sustained");
  const nlohmann::json& summary = json.at("summary").at(1);
  CHECK(summary.at("name") == "22_peak");
  CHECK(summary.at("geometric_mean").at("median").get<double>() == Approx(1.25));
  CHECK(summary.at("worst").at("high").get<double>() == Approx(1 / 1.6));
  CHECK(summary.at("worst_at") ==
        nlohmann::json({{"m", 8192}, {"n", 8192}, {"k", 8192}, {"mode", "sustained"}}));
  const nlohmann::json& contestant = json.at("sustained").at("shapes").at(0).at("contestants").at(1);
  CHECK(contestant.at("to_cublaslt").at("median").get<double>() == Approx(1 / 1.6));
}

TEST_CASE("what a variant chose is in the record and the table") {
  SuiteRecord suite = small_suite();
  suite.burst.shapes[0].contestants[1].chosen = "128x192_ping_pong";
  suite.burst.shapes[0].contestants[1].why = "fewest clocks";
  const nlohmann::json json = suite;
  const nlohmann::json& contestants = json.at("burst").at("shapes").at(0).at("contestants");
  CHECK(contestants.at(1).at("choice") ==
        nlohmann::json({{"variant", "128x192_ping_pong"}, {"why", "fewest clocks"}}));
  CHECK_FALSE(contestants.at(0).contains("choice"));
  CHECK(contains(harness::human_table(suite), "FASTER, chose 128x192_ping_pong\n"));
}

TEST_CASE("the suite's table for the terminal") {
  const std::string table = harness::human_table(small_suite());
  CAPTURE(table);
  CHECK(table.find("Test GPU") == 0);
  check_text(line_with(table, "1024x1024x1024 burst", "22_peak auto\n"),
             {"80.00 us", "100.0 %", "1.250 (1.250 to 1.250)", "FASTER"});
  CHECK(contains(line_with(table, "8192x8192x8192 sustained", "22_peak auto\n"), "SLOWER"));
  CHECK(contains(line_with(table, "1024x1024x1024 burst", "wgmma_ceiling\n"), "(ceiling)"));
  CHECK(contains(line_with(table, "18_stream_k 256x128", "geometric mean"), "1.000 (1.000 to 1.000)"));
  CHECK(contains(line_with(table, "18_stream_k 256x128", "geometric mean"), "at 1024x1024x1024 burst"));
  CHECK(line_with(table, "22_peak auto", "geometric mean")
            .find("0.625 (0.625 to 0.625) at 8192x8192x8192 sustained") != std::string::npos);
  CHECK_FALSE(contains(table, "fewer than 6 rounds"));
}

TEST_CASE("the suite's table says when the rounds are too few") {
  SuiteRecord suite = small_suite();
  for (ContestantRecord& each : suite.burst.shapes[1].contestants) each.samples_us.resize(3);
  harness::derive(suite.burst.shapes[1]);
  CHECK(contains(harness::human_table(suite), "fewer than 6 rounds"));
}

}  // namespace
