#include "harness/record/json.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"

namespace {

using harness::ContestantKind;
using harness::ContestantRecord;
using harness::Error;
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
  const Record again = harness::record_from_json(json);
  CHECK(again.shapes.front().epilogue == "alpha 1, beta 1");
  CHECK(again.shapes.front().contestants.at(2).epilogue == "alpha 1, beta 0");
  CHECK(harness::human_table(again).find("v: alpha 1, beta 0") != std::string::npos);
  CHECK(harness::human_table(again).find("1000x2000x500, alpha 1, beta 1, burst") != std::string::npos);
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

TEST_CASE("a record survives JSON") {
  const nlohmann::json json = full_record();
  const Record back = harness::record_from_json(nlohmann::json::parse(json.dump()));
  CHECK(nlohmann::json(back) == json);
  CHECK(back.device.memory_bytes == 150'000'000'000);
  CHECK(back.seed == 0xffffffffffffffffu);
  CHECK(back.mode == harness::TimingMode::kSustained);
  CHECK(back.shapes[1].conditions.throttle_reasons == std::vector<std::string>{"power cap", "thermal"});
  CHECK(back.shapes[0].contestants[0].samples_us == race().contestants[0].samples_us);
  CHECK(back.shapes[0].contestants[0].verdict == Verdict::kFaster);
  CHECK(back.shapes[0].contestants[3].kind == ContestantKind::kCeiling);
  CHECK(json.at("schema") == 1);
  CHECK(json.at("mode") == "sustained");
  CHECK(json.at("shapes").at(0).at("contestants").at(0).at("verdict") == "FASTER");
}

TEST_CASE("what else is in the file does not matter") {
  nlohmann::json json = full_record();
  json["checks"] = nlohmann::json::array();
  CHECK_NOTHROW(harness::record_from_json(json));
}

/// The JSON pointers of all fields, objects and arrays included; of arrays only the last element.
void collect(const nlohmann::json& json, const std::string& path, std::vector<std::string>& paths) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      const std::string here = path + "/" + key;
      paths.push_back(here);
      collect(value, here, paths);
    }
  } else if (json.is_array() && !json.empty()) {
    const std::string last = path + "/" + std::to_string(json.size() - 1);
    collect(json.back(), last, paths);
  }
}

/// "/shapes/1/m" as the errors write it: "shapes[1].m".
std::string field_name(const std::string& pointer) {
  std::string name;
  std::size_t begin = 1;
  while (begin < pointer.size()) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    const std::string part = pointer.substr(begin, end - begin);
    if (part.find_first_not_of("0123456789") == std::string::npos)
      name += "[" + part + "]";
    else
      name += (name.empty() ? "" : ".") + part;
    begin = end + 1;
  }
  return name;
}

std::string error_of(const nlohmann::json& json) {
  try {
    harness::record_from_json(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("every missing or ill-typed field of a record is named") {
  const nlohmann::json whole = full_record();
  std::vector<std::string> paths;
  collect(whole, "", paths);
  REQUIRE(paths.size() > 50);
  for (const std::string& path : paths) {
    CAPTURE(path);
    nlohmann::json missing = whole;
    const auto pointer = nlohmann::json::json_pointer(path);
    missing.at(pointer.parent_pointer()).erase(pointer.back());
    CHECK(error_of(missing) == "the record has no field '" + field_name(path) + "'");

    nlohmann::json wrong = whole;
    wrong.at(pointer) = nullptr;
    CHECK(error_of(wrong).find("the record's field '" + field_name(path) + "' must be ") == 0);
  }
}

TEST_CASE("values of a record that make no sense are refused") {
  nlohmann::json json = full_record();
  SECTION("schema") {
    json["schema"] = 2;
    CHECK(error_of(json) == "the record has schema 2; this program reads schema 1");
  }
  SECTION("mode") {
    json["mode"] = "slow";
    CHECK(error_of(json) == "the record's field 'mode' cannot be \"slow\": it would be read as \"burst\"");
  }
  SECTION("a dimension that is no int") {
    json["shapes"][0]["m"] = 1LL << 40;
    CHECK(error_of(json) ==
          "the record's field 'shapes[0].m' cannot be 1099511627776: it would be read as 0");
  }
  SECTION("a negative seed") {
    json["seed"] = -1;
    CHECK(error_of(json) == "the record's field 'seed' must be at least 0, but it is the number -1");
  }
  SECTION("a fraction of a round") {
    json["rounds"] = 1.5;
    CHECK(error_of(json).find("'rounds' must be a whole number") != std::string::npos);
  }
  SECTION("a verdict that nobody reaches") {
    json["shapes"][1]["contestants"][2]["verdict"] = "slower";
    CHECK(error_of(json) ==
          "the record's field 'shapes[1].contestants[2].verdict' cannot be \"slower\": it would be read as "
          "\"FASTER\"");
  }
  SECTION("a choice without its reason") {
    json["shapes"][0]["contestants"][0]["choice"] = {{"variant", "256x128"}};
    CHECK(error_of(json) == "the record has no field 'shapes[0].contestants[0].choice.why'");
  }
  SECTION("a sample that is text") {
    json["shapes"][1]["contestants"][0]["samples_us"][2] = "fast";
    CHECK(
        error_of(json) ==
        "the record's field 'shapes[1].contestants[0].samples_us[2]' must be a number, but it is the string "
        "\"fast\"");
  }
  SECTION("no object at all") {
    CHECK(error_of(nlohmann::json::array()) ==
          "the record's field '(top)' must be an object, but it is the array []");
  }
}

TEST_CASE("the table for the terminal") {
  const std::string table = harness::human_table(full_record());
  CAPTURE(table);
  const auto line_with = [&](const std::string& words, std::size_t from = 0) {
    const std::size_t at = table.find(words, from);
    REQUIRE(at != std::string::npos);
    const std::size_t begin = table.rfind('\n', at) + 1;
    return table.substr(begin, table.find('\n', at) - begin);
  };
  CHECK(line_with("NVIDIA H200") ==
        "NVIDIA H200, driver 580.1, CUDA 13.0, cuBLAS 13.0.2; commit abc1234-dirty");
  CHECK(line_with("sustained").find("1000x2000x500") == 0);
  const std::string step = line_with("22_peak");
  CHECK(step.find("80.00 us") != std::string::npos);
  CHECK(step.find("25.0") != std::string::npos);
  CHECK(step.find("62.5 %") != std::string::npos);
  CHECK(step.find("1.250 (1.250 to 1.250)") != std::string::npos);
  CHECK(step.find("FASTER") != std::string::npos);
  CHECK(line_with("01_naive").find("1.00 ms") != std::string::npos);
  CHECK(line_with("01_naive").find("SLOWER") != std::string::npos);
  CHECK(line_with("cublaslt_best").find("(reference)") != std::string::npos);
  CHECK(line_with("wgmma_ceiling").find("(ceiling)") != std::string::npos);
  CHECK(table.find("clock and power unknown: NVML was not found") != std::string::npos);
  CHECK(table.find("throttled by power cap, thermal") != std::string::npos);
  CHECK(table.find("7 rounds, normal inputs") != std::string::npos);

  // Columns line up: every row of a block is as wide as the name, variant and number
  // columns before the verdict.
  const std::size_t column = line_with("contestant").find("TFLOP/s") + 7;
  CHECK(line_with("22_peak").substr(column - 4, 4) == "25.0");
  CHECK(line_with("wgmma_ceiling").substr(column - 4, 4) == "40.0");
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
