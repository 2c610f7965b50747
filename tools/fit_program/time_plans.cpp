// time_plans: times plans of step 22 on random shapes, for tools/fit_choice.py to learn from. Nothing is
// verified: most of the time would go there, and whether plans are right is what the tests are for.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "candidates.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/program.h"
#include "harness/record/population.h"
#include "harness/timing/timing.h"
#include "plans.h"
#include "ptx/card.h"

namespace {

using fit::Candidate;
using gemm::Shape;

struct Options {
  int shapes = 0;
  std::uint64_t seed = 0;
  int most_rows = 0;
  double least_gflop = 0;
  bool weights = false;
  int rounds = 6;
};

/// The shapes that are asked for.
std::vector<Shape> shapes_of(const Options& options) {
  constexpr int kMostShapes = 20000;  // of which those asked for are picked
  if (options.weights) return fit::weight_shapes(options.shapes, options.seed);
  std::vector<Shape> shapes = harness::population_shapes(kMostShapes, options.seed);
  std::erase_if(shapes, [&options](const Shape& shape) {
    return (options.most_rows > 0 && std::min(shape.m, shape.n) > options.most_rows) ||
           2e-9 * shape.m * shape.n * shape.k < options.least_gflop;
  });
  if (shapes.size() > static_cast<std::size_t>(options.shapes))
    shapes.resize(static_cast<std::size_t>(options.shapes));
  return shapes;
}

void time_plans(const Options& options) {
  const gemm::Card card = fit::card();
  harness::TimingOptions timing;
  timing.rounds = options.rounds;
  timing.idle_ms = 3;
  timing.baselines = false;
  timing.verified = false;
  timing.progress = harness::show_progress;
  for (const Shape& shape : shapes_of(options)) {
    const std::vector<Candidate> chosen = fit::candidates(shape, card);
    std::vector<harness::Contestant> contestants;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      contestants.push_back({"22_peak", std::to_string(i), harness::ContestantKind::kStep,
                             [&chosen, i](const gemm::Gemm& gemm) {
                               return fit::prepare(chosen[i].tile, gemm, chosen[i].plan);
                             }});
    }
    const harness::ShapeRecord raced = harness::time_shape(shape, contestants, timing);
    harness::clear_progress();
    for (const auto& one : raced.contestants) {
      const Candidate& candidate = chosen[static_cast<std::size_t>(std::stoi(one.variant))];
      fmt::print("{} {} {} {} {:.3f}\n", shape.m, shape.n, shape.k, fit::to_line(candidate), one.median_us);
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Times plans of step 22 on random shapes. Each line of the output has shape, tile, plan and "
      "microseconds, in the form that tools/fit_choice.py reads.",
      "time_plans"};
  app.add_option("--shapes", options.shapes, "Number of shapes")->required()->check(CLI::Range(1, 20000));
  app.add_option("--seed", options.seed, "Seed of the shapes; choose one that no race reports")
      ->required()
      ->check(harness::seed_problem);
  auto* const weights = app.add_flag("--weights", options.weights,
                                     "Instead of the population, draw shapes with few rows and a layer of "
                                     "weights: M from 16 to 256, N up to 49152 and K up to 16384");
  app.add_option("--most-rows", options.most_rows,
                 "Only time shapes whose M or N is at most this; 0 means all")
      ->capture_default_str()
      ->excludes(weights)
      ->check(CLI::Range(0, 16384));
  app.add_option("--least-gflop", options.least_gflop, "Only time shapes with at least this much work")
      ->capture_default_str()
      ->excludes(weights)
      ->check(CLI::Range(0.0, 3000.0));
  app.add_option("--rounds", options.rounds, "Number of launches of each plan")
      ->capture_default_str()
      ->check(CLI::Range(3, 1000));
  return harness::run_program(app, argc, argv, [&] {
    const harness::DeviceInfo device = harness::device_info();
    if (!gemm::runs_on(gemm::Architecture::kSm90a, device.compute_capability))
      throw harness::Error(
          fmt::format("the plans are for kernels that need compute capability 9.0, but {} has {}.{}",
                      device.name, device.compute_capability / 10, device.compute_capability % 10));
    time_plans(options);
    return harness::kExitOk;
  });
}
