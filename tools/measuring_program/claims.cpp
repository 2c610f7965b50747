#include "claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/problem.h"
#include "harness/record/json.h"

namespace measuring {
namespace {

constexpr int kSchema = 1;

double tflops(const gemm::Shape& shape, double microseconds) {
  return 2.0 * shape.m * shape.n * shape.k / microseconds * 1e-6;
}

const harness::ContestantRecord& contestant_of(const Run& run, std::size_t race, const std::string& name) {
  const auto& contestants = run.races.at(race).shapes.at(0).contestants;
  const auto found = std::find_if(contestants.begin(), contestants.end(),
                                  [&name](const auto& contestant) { return contestant.name == name; });
  if (found == contestants.end()) throw harness::Error(fmt::format("{} is missing from the race", name));
  return *found;
}

}  // namespace

double Claim::kernel_tflops() const {
  return tflops(shape, kernel_us);
}

double Claim::yardstick_tflops() const {
  return tflops(shape, yardstick_us);
}

const harness::ContestantRecord& kernel_of(const Run& run, std::size_t race) {
  return contestant_of(run, race, run.kernel);
}

const harness::ContestantRecord& yardstick_of(const Run& run, std::size_t race) {
  return contestant_of(run, race, harness::kReferenceContestant);
}

nlohmann::json to_json(const Run& run) {
  nlohmann::json claims = nlohmann::json::array();
  for (const Claim& claim : run.claims) {
    claims.push_back({{"key", claim.key},
                      {"how", claim.how},
                      {"m", claim.shape.m},
                      {"n", claim.shape.n},
                      {"k", claim.shape.k},
                      {"yardstick", claim.yardstick},
                      {"kernel_us", claim.kernel_us},
                      {"kernel_tflops", claim.kernel_tflops()},
                      {"yardstick_us", claim.yardstick_us},
                      {"yardstick_tflops", claim.yardstick_tflops()},
                      {"ratio", claim.ratio()},
                      {"against", claim.against},
                      {"conditions", claim.conditions}});
  }
  return {{"schema", kSchema},
          {"kernel", run.kernel},
          {"variant", run.variant},
          {"claims", claims},
          {"races", run.races}};
}

std::string human_table(const Run& run) {
  std::string text = harness::human_origin(run.races.at(0)) + '\n';
  text += fmt::format("{} {}, in TFLOP/s, and its speed relative to cuBLAS\n", run.kernel, run.variant);
  std::size_t width = 0;
  for (const Claim& claim : run.claims) width = std::max(width, claim.how.size());
  text += fmt::format("  {:<{}}  {:<20}  {:>7}  {:>7}  {:>7}  {}\n", "how it was timed", width, "shape",
                      "kernel", "cuBLAS", "claimed", "by this project's harness");
  for (const Claim& claim : run.claims) {
    text += fmt::format("  {:<{}}  {:<20}  {:>7.1f}  {:>7.1f}  {:>7.3f}  {}, {}\n", claim.how, width,
                        harness::to_string(claim.shape), claim.kernel_tflops(), claim.yardstick_tflops(),
                        claim.ratio(), harness::human_ratio(kernel_of(run, claim.against).to_cublaslt),
                        harness::to_string(run.races.at(claim.against).mode));
  }
  text += '\n';
  for (std::size_t i = 0; i < run.races.size(); ++i) {
    const harness::Record& race = run.races[i];
    text += fmt::format("  {:<{}}  {:<20}  {:>7.1f}  {:>7.1f}  {:>7}  {}\n",
                        fmt::format("this project, {}", harness::to_string(race.mode)), width,
                        harness::to_string(race.shapes.at(0).shape), kernel_of(run, i).tflops,
                        yardstick_of(run, i).tflops, "", harness::human_ratio(kernel_of(run, i).to_cublaslt));
  }
  return text;
}

}  // namespace measuring
