// time_plans: times plans of step 22 on random shapes, for tools/fit_choice.py to learn from. Nothing is
// verified: most of the time would go there, and a plan that is slow but wrong was found by tests before.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "choice.h"
#include "gemm/fitted/fitted_plan.h"
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

using gemm::FittedPlan;
using gemm::Shape;
using gemm::step_22::kTiles;

struct Options {
  int shapes = 0;
  std::uint64_t seed = 0;
  int most_rows = 0;
  double least_gflop = 0;
  bool weights = false;
  int rounds = 6;
};

/// `count` shapes of a layer of weights with few rows before it: M from 16 to 256, N and K multiples of 64, N
/// from 2048 to 49152 and K from 512 to 16384, all log-uniform.
std::vector<Shape> weight_shapes(int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto log_uniform = [&random](double low, double high) {
    const double share = static_cast<double>(random()) / static_cast<double>(std::mt19937_64::max());
    return low * std::pow(high / low, share);
  };
  std::vector<Shape> shapes;
  for (int i = 0; i < count; ++i) {
    const int m = static_cast<int>(log_uniform(16, 256));
    const int n = static_cast<int>(log_uniform(2048, 49152) / 64) * 64;
    const int k = static_cast<int>(log_uniform(512, 16384) / 64) * 64;
    shapes.push_back({m, n, k});
  }
  return shapes;
}

/// The shapes that are asked for.
std::vector<Shape> shapes_of(const Options& options) {
  constexpr int kMostShapes = 100000;  // of which those asked for are picked
  if (options.weights) return weight_shapes(options.shapes, options.seed);
  std::vector<Shape> shapes = harness::population_shapes(kMostShapes, options.seed);
  std::erase_if(shapes, [&options](const Shape& shape) {
    return (options.most_rows > 0 && std::min(shape.m, shape.n) > options.most_rows) ||
           2e-9 * shape.m * shape.n * shape.k < options.least_gflop;
  });
  if (shapes.size() > static_cast<std::size_t>(options.shapes))
    shapes.resize(static_cast<std::size_t>(options.shapes));
  return shapes;
}

/// A tile with a plan, and what the model expects of it.
struct Candidate {
  std::size_t tile = 0;
  FittedPlan plan;
  double us = 0;
};

bool same(const Candidate& one, const Candidate& other) {
  const FittedPlan& a = one.plan;
  const FittedPlan& b = other.plan;
  return one.tile == other.tile && a.transposed == b.transposed && a.cluster.m == b.cluster.m &&
         a.cluster.n == b.cluster.n && a.stream_k_tiles == b.stream_k_tiles && a.workers == b.workers &&
         a.lockstep == b.lockstep && a.parts == b.parts;
}

/// Adds the `most` most promising of `from` that are not in `to`, at most two of a tile, and none that takes
/// `within` times as long as the best of them.
void add_best(std::vector<Candidate>& to, std::vector<Candidate> from, std::size_t most, double within) {
  constexpr int kMostOfTile = 2;
  std::sort(from.begin(), from.end(), [](const auto& one, const auto& other) { return one.us < other.us; });
  std::array<int, kTiles.size()> of_tile{};
  std::size_t added = 0;
  for (const Candidate& candidate : from) {
    if (added >= most || candidate.us > within * from.front().us) return;
    if (of_tile[candidate.tile] >= kMostOfTile) continue;
    ++of_tile[candidate.tile];
    if (std::any_of(to.begin(), to.end(), [&](const Candidate& known) { return same(known, candidate); }))
      continue;
    to.push_back(candidate);
    ++added;
  }
}

/// The plans that are worth a measurement: those that the model thinks most of, and beside them some of each
/// kind that it may think too little of. For these the arithmetic has half a say.
std::vector<Candidate> candidates(const Shape& shape, const gemm::Card& card) {
  std::vector<Candidate> all;
  std::vector<Candidate> one_sided;
  std::vector<Candidate> two_sided;
  std::vector<Candidate> split;
  for (std::size_t tile = 0; tile < kTiles.size(); ++tile) {
    for (const FittedPlan& plan : gemm::step_22::plans_of(kTiles[tile], shape, card)) {
      const gemm::step_22::Prediction arithmetic =
          gemm::step_22::predict_by_arithmetic(tile, shape, plan, card);
      const double us = gemm::step_22::predict(tile, shape, plan, card).us * arithmetic.doubt;
      const Candidate mixed{tile, plan, std::sqrt(us * arithmetic.us * arithmetic.doubt)};
      all.push_back({tile, plan, us});
      if (plan.cluster.ctas() == 1 && plan.parts == 1) continue;
      if (kTiles[tile].split) {
        split.push_back(mixed);
      } else {
        (plan.cluster.m == 1 || plan.cluster.n == 1 ? one_sided : two_sided).push_back(mixed);
      }
    }
  }
  std::vector<Candidate> chosen;
  add_best(chosen, all, 15, 1.2);
  const double best = chosen.front().us;
  for (auto* const some : {&one_sided, &two_sided, &split}) {
    std::erase_if(*some, [best](const Candidate& candidate) { return candidate.us > 1.2 * best; });
    add_best(chosen, *some, 4, 1.15);
  }
  return chosen;
}

/// As steps/22_peak/choice.h's features read it.
std::string to_line(const Candidate& candidate) {
  const FittedPlan& plan = candidate.plan;
  return fmt::format("{} {:d} {} {} {} {} {} {}", kTiles[candidate.tile].name, plan.transposed,
                     plan.cluster.m, plan.cluster.n, plan.stream_k_tiles, plan.workers, plan.lockstep,
                     plan.parts);
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
    const std::vector<Candidate> chosen = candidates(shape, card);
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
      fmt::print("{} {} {} {} {:.3f}\n", shape.m, shape.n, shape.k, to_line(candidate), one.median_us);
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Times plans of step 22 on random shapes. Each line says shape, tile, plan and microseconds, as "
      "tools/fit_choice.py reads them.",
      "time_plans"};
  app.add_option("--shapes", options.shapes, "How many shapes of the population")
      ->required()
      ->check(CLI::Range(1, 100000));
  app.add_option("--seed", options.seed, "Seed of the population, one that no race reports")
      ->required()
      ->check(harness::seed_problem);
  app.add_flag("--weights", options.weights,
               "Few rows and a layer of weights: M from 16 to 256, N to 49152 and K to 16384");
  app.add_option("--most-rows", options.most_rows, "Only shapes whose M or N is at most this; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 16384));
  app.add_option("--least-gflop", options.least_gflop, "Only shapes with at least as much work")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3000.0));
  app.add_option("--rounds", options.rounds, "Launches of each plan")
      ->capture_default_str()
      ->check(CLI::Range(3, 1000));
  return harness::run_program(app, argc, argv, [&] {
    const harness::DeviceInfo device = harness::device_info();
    if (!gemm::runs_on(gemm::Architecture::kSm90a, device.compute_capability))
      throw harness::Error(
          fmt::format("the plans are of kernels for compute capability 9.0, but {} has {}.{}", device.name,
                      device.compute_capability / 10, device.compute_capability % 10));
    time_plans(options);
    return harness::kExitOk;
  });
}
