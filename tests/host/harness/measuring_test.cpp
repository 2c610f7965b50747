// What tools/measuring writes and prints; how it times is seen on a GPU.
#include <string>
#include <vector>

#include "catch.h"
#include "claims.h"
#include "harness/record/json.h"
#include "table.h"

namespace {

using harness::ContestantKind;
using harness::ContestantRecord;
using harness::Record;
using harness::ShapeRecord;
using measuring::Claim;
using measuring::Run;

ContestantRecord contestant(const std::string& name, ContestantKind kind, double us) {
  ContestantRecord record;
  record.name = name;
  record.kind = kind;
  record.samples_us.assign(7, us);
  return record;
}

Record race(harness::TimingMode mode, double kernel_us, double yardstick_us) {
  Record record;
  record.device.name = "Test GPU";
  record.commit = "abc1234";
  record.pattern = "normal";
  record.mode = mode;
  ShapeRecord shape;
  shape.shape = {1000, 2000, 500};  // 2e9 FLOP
  shape.contestants = {contestant("15_tma_store", ContestantKind::kStep, kernel_us),
                       contestant("cublaslt_best", ContestantKind::kBaseline, yardstick_us)};
  harness::derive(shape);
  record.shapes = {shape};
  return record;
}

Run made_up() {
  Run run{.kernel = "15_tma_store", .variant = "128x256", .claims = {}, .races = {}};
  run.races = {race(harness::TimingMode::kBurst, 5, 4), race(harness::TimingMode::kSustained, 6, 6)};
  run.claims.push_back({.key = "first_launch",
                        .how = "one launch",
                        .shape = {1000, 2000, 500},
                        .yardstick = "cublas_default",
                        .kernel_us = 50,
                        .yardstick_us = 100,
                        .against = 0,
                        .conditions = {}});
  run.claims.push_back({.key = "zeros",
                        .how = "zeros as inputs",
                        .shape = {1000, 2000, 500},
                        .yardstick = "cublaslt_best",
                        .kernel_us = 4,
                        .yardstick_us = 5,
                        .against = 1,
                        .conditions = {.sm_clock_mhz_median = 1980, .power_w_median = 400}});
  return run;
}

TEST_CASE("a claim: rates and ratio from its two times") {
  const Run run = made_up();
  CHECK(run.claims[0].ratio() == Approx(2));
  CHECK(run.claims[0].kernel_tflops() == Approx(40));  // 2e9 FLOP in 50 us
  CHECK(run.claims[0].yardstick_tflops() == Approx(20));
}

TEST_CASE("the record of claims names what each is held against") {
  const nlohmann::json json = measuring::to_json(made_up());
  CHECK(json.at("schema") == 1);
  CHECK(json.at("kernel") == "15_tma_store");
  REQUIRE(json.at("claims").size() == 2);
  const nlohmann::json& zeros = json.at("claims").at(1);
  CHECK(zeros.at("key") == "zeros");
  CHECK(zeros.at("ratio").get<double>() == Approx(1.25));
  CHECK(zeros.at("kernel_tflops").get<double>() == Approx(500));
  CHECK(zeros.at("against") == 1);
  CHECK(zeros.at("conditions").at("power_w_median") == 400);
  // The races are whole records.
  REQUIRE(json.at("races").size() == 2);
  const nlohmann::json& race = json.at("races").at(1);
  CHECK(race.at("mode") == "sustained");
  const nlohmann::json& contestant = race.at("shapes").at(0).at("contestants").at(0);
  CHECK(contestant.at("to_cublaslt").at("median").get<double>() == Approx(1));
}

TEST_CASE("the table of claims shows what was claimed beside what this project measures") {
  const std::string table = measuring::human_table(made_up());
  CAPTURE(table);
  CHECK(contains(line_with(table, "one launch"), "2.000  0.800 (0.800 to 0.800), burst"));
  CHECK(contains(line_with(table, "zeros as inputs"), "1.250  1.000 (1.000 to 1.000), sustained"));
  CHECK(contains(line_with(table, "this project, burst"), "400.0    500.0"));
}

TEST_CASE("a race without the kernel or without cuBLASLt is refused") {
  Run run = made_up();
  run.races[0].shapes[0].contestants.pop_back();
  CHECK_THROWS_AS(measuring::yardstick_of(run, 0), harness::Error);
  run.kernel = "16_other";
  CHECK_THROWS_AS(measuring::kernel_of(run, 1), harness::Error);
}

}  // namespace
