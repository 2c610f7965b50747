#include "harness/record/json.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"
#include "table.h"

namespace {

using harness::ContestantKind;
using harness::ContestantRecord;
using harness::Record;
using harness::ShapeRecord;
using harness::Verdict;

ContestantRecord contestant(const std::string& name, ContestantKind kind, std::vector<double> samples) {
  ContestantRecord record;
  record.name = name;
  record.variant = "v";
  record.kind = kind;
  record.samples_us = std::move(samples);
  return record;
}

ShapeRecord race() {
  ShapeRecord shape;
  shape.shape = {1000, 2000, 500};  // 2e9 FLOP
  shape.rotated_buffers = 4;
  // The clock falls by half in the middle of the run; within each round the step needs 4/5 of the time.
  shape.contestants = {
      contestant("22_peak", ContestantKind::kStep, {80, 80, 80, 160, 160, 160, 80}),
      contestant("cublaslt_best", ContestantKind::kBaseline, {100, 100, 100, 200, 200, 200, 100}),
      contestant("01_naive", ContestantKind::kStep, {1000, 1000, 1000, 1000, 1000, 1000, 1000}),
      contestant("wgmma_ceiling", ContestantKind::kCeiling, {50, 50, 50, 50, 50, 50, 50}),
      contestant("07_even", ContestantKind::kStep, {90, 110, 90, 220, 180, 220, 100}),
  };
  return shape;
}

TEST_CASE("json: a race with an epilogue says so, and which contestant computes another one") {
  Record record;
  record.shapes = {race()};
  harness::derive(record.shapes.front());
  CHECK_FALSE(nlohmann::json(record).at("shapes").at(0).contains("epilogue"));
  record.shapes.front().epilogue = "alpha 1, beta 1";
  record.shapes.front().contestants.at(2).epilogue = "alpha 1, beta 0";
  const nlohmann::json json = record;
  CHECK(json.at("shapes").at(0).at("epilogue") == "alpha 1, beta 1");
  CHECK_FALSE(json.at("shapes").at(0).at("contestants").at(0).contains("epilogue"));
  CHECK(json.at("shapes").at(0).at("contestants").at(2).at("epilogue") == "alpha 1, beta 0");
  CHECK(harness::human_table(record).find("v: alpha 1, beta 0") != std::string::npos);
  CHECK(harness::human_table(record).find("1000x2000x500, alpha 1, beta 1, burst") != std::string::npos);
}

TEST_CASE("derive: medians, rates, ratios round by round, shares, verdicts") {
  ShapeRecord shape = race();
  harness::derive(shape);
  const ContestantRecord& step = shape.contestants[0];
  CHECK(step.median_us == 80);
  CHECK(step.q1_us == 80);
  CHECK(step.q3_us == 160);
  CHECK(step.tflops == Approx(25));  // 2e9 FLOP in 80 us
  CHECK(step.to_cublaslt.median == 1.25);
  CHECK(step.to_cublaslt.low == 1.25);  // the drift cancels
  CHECK(step.to_cublaslt.high == 1.25);
  CHECK(step.ceiling_share == Approx(0.625));
  CHECK(step.verdict == Verdict::kFaster);
  CHECK(shape.contestants[1].to_cublaslt.median == 1);
  CHECK(shape.contestants[1].verdict == Verdict::kAmbiguous);
  CHECK(shape.contestants[2].verdict == Verdict::kSlower);
  CHECK(shape.contestants[2].to_cublaslt.low == Approx(0.1));
  CHECK(shape.contestants[2].to_cublaslt.high == Approx(0.2));
  CHECK(shape.contestants[3].ceiling_share == 1);
  CHECK(shape.contestants[4].verdict == Verdict::kAmbiguous);
  CHECK(shape.contestants[4].to_cublaslt.median == 1);
}

TEST_CASE("derive without baseline and ceiling") {
  ShapeRecord shape = race();
  shape.contestants = {shape.contestants[0]};
  shape.contestants[0].verdict = Verdict::kFaster;  // stale values must go
  shape.contestants[0].to_cublaslt = {9, 9, 9};
  harness::derive(shape);
  CHECK(shape.contestants[0].median_us == 80);
  CHECK(shape.contestants[0].to_cublaslt.median == 0);
  CHECK(shape.contestants[0].ceiling_share == 0);
  CHECK(shape.contestants[0].verdict == Verdict::kAmbiguous);
}

TEST_CASE("derive refuses samples that do not belong together") {
  ShapeRecord shape = race();
  SECTION("lengths differ") {
    shape.contestants[2].samples_us.pop_back();
  }
  SECTION("no samples") {
    for (ContestantRecord& each : shape.contestants) each.samples_us.clear();
  }
  SECTION("zero") {
    shape.contestants[1].samples_us[3] = 0;
  }
  SECTION("NaN") {
    shape.contestants[1].samples_us[3] = NAN;
  }
  SECTION("infinite") {
    shape.contestants[1].samples_us[3] = INFINITY;
  }
  CHECK_THROWS_AS(harness::derive(shape), std::invalid_argument);
}

Record full_record() {
  Record record;
  record.device = {.name = "NVIDIA H200",
                   .is_emulator = false,
                   .compute_capability = 90,
                   .sm_count = 132,
                   .max_threads_per_sm = 2048,
                   .max_ctas_per_sm = 32,
                   .registers_per_sm = 65536,
                   .shared_bytes_per_sm = 233472,
                   .shared_bytes_per_cta = 232448,
                   .reserved_shared_bytes = 1024,
                   .l2_bytes = 60 << 20,
                   .memory_bytes = 150'000'000'000,
                   .memory_free_bytes = 149'000'000'000,
                   .clock_hz = 1.98e9,
                   .memory_bytes_per_second = 4.8e12,
                   .driver_version = "580.1",
                   .runtime_version = "13.0"};
  record.cublas_version = "13.0.2";
  record.commit = "abc1234-dirty";
  record.date = "2025-01-02T03:04:05Z";
  record.seed = 0xffffffffffffffffu;
  record.pattern = "normal";
  record.mode = harness::TimingMode::kSustained;
  record.idle_ms = 0.1;
  record.rounds = 7;
  record.shapes = {race(), race()};
  record.shapes[1].conditions = {.sm_clock_mhz_min = 1500,
                                 .sm_clock_mhz_median = 1700.5,
                                 .sm_clock_mhz_max = 1980,
                                 .power_w_median = 650,
                                 .power_w_max = 701.25,
                                 .temperature_c_max = 61,
                                 .throttle_reasons = {"power cap", "thermal"}};
  for (ShapeRecord& shape : record.shapes) harness::derive(shape);
  return record;
}

TEST_CASE("a record is written as JSON") {
  const nlohmann::json json = nlohmann::json::parse(nlohmann::json(full_record()).dump());
  CHECK(json.at("schema") == 1);
  CHECK(json.at("mode") == "sustained");
  CHECK(json.at("seed") == 0xffffffffffffffffu);
  CHECK(json.at("device").at("memory_bytes") == 150'000'000'000);
  CHECK(json.at("shapes").at(1).at("conditions").at("throttle_reasons") ==
        nlohmann::json({"power cap", "thermal"}));
  const nlohmann::json& contestants = json.at("shapes").at(0).at("contestants");
  CHECK(contestants.at(0).at("samples_us") == race().contestants[0].samples_us);
  CHECK(contestants.at(0).at("verdict") == "FASTER");
  CHECK(contestants.at(3).at("kind") == "ceiling");
}

TEST_CASE("the table for the terminal") {
  const std::string table = harness::human_table(full_record());
  CAPTURE(table);
  CHECK(line_with(table, "NVIDIA H200") ==
        "NVIDIA H200, driver 580.1, CUDA 13.0, cuBLAS 13.0.2; commit abc1234-dirty");
  CHECK(line_with(table, "sustained").find("1000x2000x500") == 0);
  const std::string step = line_with(table, "22_peak");
  CHECK(step.find("80.00 us") != std::string::npos);
  CHECK(step.find("25.0") != std::string::npos);
  CHECK(step.find("62.5 %") != std::string::npos);
  CHECK(step.find("1.250 (1.250 to 1.250)") != std::string::npos);
  CHECK(step.find("FASTER") != std::string::npos);
  CHECK(line_with(table, "01_naive").find("1.00 ms") != std::string::npos);
  CHECK(line_with(table, "01_naive").find("SLOWER") != std::string::npos);
  CHECK(line_with(table, "cublaslt_best").find("(reference)") != std::string::npos);
  CHECK(line_with(table, "wgmma_ceiling").find("(ceiling)") != std::string::npos);
  CHECK(table.find("clock and power unknown: NVML was not found") != std::string::npos);
  CHECK(table.find("throttled by power cap, thermal") != std::string::npos);
  CHECK(table.find("7 rounds, normal inputs") != std::string::npos);

  // Columns line up: every row of a block is as wide as the name, variant and number
  // columns before the verdict.
  const std::size_t column = line_with(table, "contestant").find("TFLOP/s") + 7;
  CHECK(line_with(table, "22_peak").substr(column - 4, 4) == "25.0");
  CHECK(line_with(table, "wgmma_ceiling").substr(column - 4, 4) == "40.0");
}

TEST_CASE("a long description of cuBLASLt's algorithm has a line of its own and does not shift the columns") {
  Record record = full_record();
  for (ContestantRecord& each : record.shapes[0].contestants) {
    if (each.name == "cublaslt_best") each.variant = "best of 8: algo 66, 176x128, cluster 1x2, split-k 2";
  }
  const std::string table = harness::human_table(record);
  INFO(table);
  const auto row = [&](const std::string& start) {
    const std::size_t at = table.find("  " + start);
    REQUIRE(at != std::string::npos);
    return table.substr(at, table.find('\n', at) - at);
  };
  const std::string reference = row("cublaslt_best");
  CHECK(reference.find("best of 8  ") != std::string::npos);
  CHECK(reference.find("algo") == std::string::npos);
  CHECK(reference.find("(reference)") == row("contestant").find("verdict"));
  CHECK(table.find("\n  cublaslt_best: best of 8: algo 66, 176x128, cluster 1x2, split-k 2\n") !=
        std::string::npos);
}

TEST_CASE("the table says why there is no verdict") {
  Record record = full_record();
  record.shapes.resize(1);
  SECTION("no cuBLASLt") {
    record.shapes[0].contestants = {record.shapes[0].contestants[0]};
    harness::derive(record.shapes[0]);
    const std::string table = harness::human_table(record);
    CHECK(table.find("cuBLASLt did not run") != std::string::npos);
    CHECK(table.find("verdict\n") == std::string::npos);
  }
  SECTION("too few rounds") {
    for (ContestantRecord& each : record.shapes[0].contestants) each.samples_us.resize(3);
    harness::derive(record.shapes[0]);
    CHECK(harness::human_table(record).find("fewer than 6 rounds") != std::string::npos);
  }
  SECTION("one round is one") {
    for (ContestantRecord& each : record.shapes[0].contestants) each.samples_us.resize(1);
    record.shapes[0].rotated_buffers = 1;
    harness::derive(record.shapes[0]);
    const std::string table = harness::human_table(record);
    INFO(table);
    CHECK(table.find("\n  1 round, normal inputs with seed ") != std::string::npos);
    CHECK(table.find(", 1 operand set in rotation\n") != std::string::npos);
  }
}

}  // namespace
