// measuring: times one kernel in ways that are common elsewhere and in this project's way, in one process.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "claims.h"
#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/program.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/timing/timing.h"
#include "harnesses.h"

const gemm::Step& step_15_tma_store();

namespace {

using measuring::Pair;
using measuring::Run;

struct Options {
  std::string shape = "4096";
  std::string in_cache = "2048x2048x512";
  std::string weak = "4096x24576x1536";
  double seconds = 8;
  std::uint64_t seed = 1;
  std::string json;
};

/// Where a race stands in Run::races.
enum RaceIndex : std::size_t { kBurst, kSustained, kInCache, kWeak };

class Measurement {
 public:
  Measurement(const Options& options, const harness::DeviceInfo& device)
      : options_(options), device_(device) {
    const gemm::Step& step = step_15_tma_store();
    const gemm::Variant& variant = step.variants.front();
    kernel_ = {step.name, variant.name, harness::ContestantKind::kStep, variant.prepare};
    run_.kernel = step.name;
    run_.variant = variant.name;
    for (const std::string& shape : {options.shape, options.in_cache, options.weak})
      harness::check_contract(step, harness::parse_shape(shape));
  }

  Run execute() {
    const gemm::Shape shape = harness::parse_shape(options_.shape);
    const gemm::Shape in_cache = harness::parse_shape(options_.in_cache);
    const gemm::Shape weak = harness::parse_shape(options_.weak);

    say("one launch");  // before anything else is launched
    const Pair first = measuring::first_launch(shape, {kernel_, harness::cublas_default()}, options_.seed);
    race(shape, harness::TimingMode::kBurst);
    race(shape, harness::TimingMode::kSustained);
    race(in_cache, harness::TimingMode::kBurst);
    race(weak, harness::TimingMode::kBurst);

    claim("first_launch", "one launch without warm-up, by the host's clock", shape, "cublas_default", first,
          kBurst);
    say("zeros");
    const auto [zeros, conditions] =
        measuring::sustained_on_zeros(shape, against_cublaslt(kSustained), options_.seconds);
    claim("zeros", "zeros as inputs, sustained", shape, harness::kReferenceContestant, zeros, kSustained);
    run_.claims.back().conditions = conditions;
    say("warm L2");
    claim("warm_l2", "a loop over the same buffers, which stay in the L2", in_cache,
          harness::kReferenceContestant,
          measuring::loops(in_cache, against_cublaslt(kInCache), options_.seed, false), kInCache);
    claim("rotated", "the same loop, buffers rotated", in_cache, harness::kReferenceContestant,
          measuring::loops(in_cache, against_cublaslt(kInCache), options_.seed, true), kInCache);
    say("one after the other");
    claim("kernel_first", "not interleaved: the kernel first, then other work, then cuBLAS", shape,
          harness::kReferenceContestant,
          measuring::one_after_the_other(shape, against_cublaslt(kBurst), options_.seed, true), kBurst);
    claim("kernel_last", "not interleaved: cuBLAS first, then other work, then the kernel", shape,
          harness::kReferenceContestant,
          measuring::one_after_the_other(shape, against_cublaslt(kBurst), options_.seed, false), kBurst);
    claim("weak_yardstick", "against cuBLAS's default algorithm only, burst", weak, "cublas_default",
          weak_yardstick(), kWeak);
    harness::clear_progress();
    return std::move(run_);
  }

 private:
  static void say(const std::string& what) { harness::show_progress("timing badly: " + what); }

  void claim(const char* key, const char* how, const gemm::Shape& shape, const char* yardstick,
             const Pair& pair, std::size_t against) {
    run_.claims.push_back({.key = key,
                           .how = how,
                           .shape = shape,
                           .yardstick = yardstick,
                           .kernel_us = pair.kernel_us,
                           .yardstick_us = pair.yardstick_us,
                           .against = against,
                           .conditions = {}});
  }

  void race(const gemm::Shape& shape, harness::TimingMode mode) {
    harness::TimingOptions timing;
    timing.mode = mode;
    timing.budget_s = options_.seconds;
    timing.seed = options_.seed;
    timing.progress = harness::show_progress;
    harness::Record record = harness::new_record(device_, timing);
    record.shapes.push_back(harness::time_shape(shape, {kernel_}, timing));
    record.rounds = static_cast<int>(record.shapes.back().contestants.front().samples_us.size());
    run_.races.push_back(std::move(record));
  }

  /// The kernel and the algorithm of cuBLASLt that won that race.
  measuring::Race against_cublaslt(std::size_t race) const {
    const std::string& winner = measuring::yardstick_of(run_, race).variant;  // "best of 8: algo 66, ..."
    const gemm::Shape& shape = run_.races.at(race).shapes.at(0).shape;
    std::vector<harness::Contestant> candidates = harness::cublaslt_candidates(shape);
    std::erase_if(candidates,
                  [&winner](const auto& candidate) { return !winner.ends_with(": " + candidate.variant); });
    if (candidates.empty()) throw harness::Error(fmt::format("cuBLASLt no longer offers '{}'", winner));
    return {kernel_, measuring::fastest(shape, candidates, options_.seed)};
  }

  Pair weak_yardstick() const {
    const auto& contestants = run_.races.at(kWeak).shapes.at(0).contestants;
    const auto found = std::find_if(contestants.begin(), contestants.end(), [](const auto& contestant) {
      return contestant.name == "cublas_default";
    });
    if (found == contestants.end()) throw harness::Error("cuBLAS's default did not run");
    return {.kernel_us = measuring::kernel_of(run_, kWeak).median_us, .yardstick_us = found->median_us};
  }

  Options options_;
  harness::DeviceInfo device_;
  harness::Contestant kernel_;
  Run run_;
};

int execute(const Options& options) {
  const harness::DeviceInfo device = harness::device_info();
  if (device.compute_capability != 90)
    throw harness::Error(fmt::format("step 15 needs compute capability 9.0, but {} has {}.{}", device.name,
                                     device.compute_capability / 10, device.compute_capability % 10));
  if (const std::string problem = harness::baselines_problem(); !problem.empty())
    throw harness::Error("without cuBLAS there is nothing to compare the kernel with: " + problem);
  if (!options.json.empty()) harness::check_writable(options.json);
  const Run run = Measurement(options, device).execute();
  fmt::print("{}", measuring::human_table(run));
  if (!options.json.empty()) harness::write_record(options.json, measuring::to_json(run));
  return harness::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Times step 15 and cuBLAS in ways that are common elsewhere, and in this project's way.",
               "measuring"};
  app.add_option("shape", options.shape, "MxNxK, or one number of three digits or more for a cube")
      ->capture_default_str();
  app.add_option("--in-cache", options.in_cache, "The shape whose buffers fit in the L2")
      ->capture_default_str();
  app.add_option("--weak", options.weak, "The shape at which the kernel is compared with cuBLAS's default")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "Time budget of each of this project's races")
      ->capture_default_str()
      ->check(harness::seconds_problem);
  app.add_option("--seed", options.seed, "Seed of the inputs")
      ->capture_default_str()
      ->check(harness::seed_problem);
  app.add_option("--json", options.json, "Write the record of the run to this file")
      ->check(harness::file_problem);
  return harness::run_program(app, argc, argv, [&] { return execute(options); });
}
