#include "harness/cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/describe.h"
#include "harness/cli/execute.h"
#include "harness/cli/program.h"
#include "harness/cli/ranks.h"
#include "harness/cli/selection.h"
#include "harness/cli/steps.h"
#include "harness/record/population.h"
#include "harness/record/suite.h"

namespace harness {
namespace {

// The suite has many shapes and is to take a few minutes, verification included.
constexpr double kSuiteSeconds = 6;
constexpr double kPopulationSeconds = 2;

/// --list and --describe show every variant, so nothing but steps can be named beside them.
int show_steps(const std::vector<const gemm::Step*>& steps, const std::vector<gemm::Shape>& shapes,
               const Options& options) {
  if (!shapes.empty())
    throw Error(fmt::format("{} the variants, whatever the shape: leave out {}",
                            options.list ? "--list lists" : "--describe describes",
                            to_string(shapes.front())));
  if (options.list) {
    print_variants(steps);
  } else {
    print_descriptions(steps);
  }
  return kExitOk;
}

int run_step(int argc, char** argv, const gemm::Step& step) {
  return guarded([&] {
    Options options;
    CLI::App app{fmt::format("{}: {}", step.name, step.title), step.name};
    app.add_option("shape", options.positional,
                   "MxNxK, or one number of three digits or more for a cube (default: a small one that shows "
                   "edges; 4096 on a GPU)");
    app.add_option("--variant", options.variant, "One variant, several (a,b) or all; --list shows them")
        ->check(name_problem);
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    refuse_conflicts(app);
    Selection selection;
    for (const std::string& word : options.positional) selection.shapes.push_back(parse_shape(word));
    if (options.list || options.describe) return show_steps({&step}, selection.shapes, options);
    selection.entries = select_variants(step, options.variant);
    return execute(selection, options, app);
  });
}

/// The shapes of the suite, each once; the suite has its own shapes and modes. Sets the time that it takes by
/// default.
std::vector<gemm::Shape> suite_shapes(const std::vector<gemm::Shape>& named, Options& options,
                                      const CLI::App& app) {
  if (!named.empty())
    throw Error(fmt::format("--suite has its own shapes: leave out {}, or leave out --suite",
                            to_string(named.front())));
  for (const char* flag : {"--mode", "--inject-faults", "--counters"}) {
    if (app.get_option(flag)->count() > 0)
      throw Error(fmt::format(
          "--suite times its shapes in burst and in sustained mode: leave out {}, or leave out --suite",
          flag));
  }
  if (app.get_option("--seconds")->count() == 0) options.seconds = kSuiteSeconds;
  if (!options.check && !options.budget) options.time = true;
  return options.suite == "deepgemm" ? deepgemm_shapes()
                                     : suite_burst_shapes();  // the sustained ones are among them
}

/// Random shapes for --population, which races what chooses by shape.
std::vector<gemm::Shape> random_shapes(const Selection& selection, Options& options, const CLI::App& app) {
  if (!selection.shapes.empty())
    throw Error(fmt::format("{0} has its own shapes: leave out {1}, or leave out {0}",
                            options.suite == kGrid ? "--suite grid" : "--population",
                            to_string(selection.shapes.front())));
  if (!options.suite.empty() && options.suite != kGrid)
    throw Error("--population goes with --suite grid, or with no suite: leave one of them out");
  if (options.suite == kGrid && options.population > kGridShapes)
    throw Error(
        fmt::format("--population {} is too many: the grid has {} shapes", options.population, kGridShapes));
  for (const char* flag : {"--mode", "--inject-faults", "--counters", "--check", "--autotune"}) {
    if (app.get_option(flag)->count() > 0)
      throw Error(fmt::format(
          "--population times its shapes in burst mode: leave out {}, or leave out --population", flag));
  }
  if (selection.entries.size() != 1 || selection.entries.front().variant->choose == nullptr)
    throw Error("--population races the variant 'auto' of one step that has one: 22_peak");
  if (app.get_option("--seconds")->count() == 0) options.seconds = kPopulationSeconds;
  options.time = !options.budget;
  return options.suite == kGrid ? grid_shapes(options.population, options.seed)
                                : population_shapes(options.population, options.seed);
}

/// Behind the entry that is raced, each step that it says is faster at one of the shapes.
void add_faster_steps(Selection& selection, const std::vector<const gemm::Step*>& steps) {
  const gemm::Variant& chooser = *selection.entries.front().variant;
  for (const gemm::Step* step : steps) {
    if (std::any_of(selection.shapes.begin(), selection.shapes.end(), [&](const gemm::Shape& shape) {
          return chooser.choose(shape).faster_step == step->name;
        }))
      selection.entries.push_back(select_variants(*step, "").front());
  }
}

/// The steps that were named, each once; all of them when none was.
std::vector<const gemm::Step*> steps_of(const Selection& selection,
                                        const std::vector<const gemm::Step*>& all) {
  std::vector<const gemm::Step*> named;
  for (const Entry& entry : selection.entries) {
    if (std::find(named.begin(), named.end(), entry.step) == named.end()) named.push_back(entry.step);
  }
  return named.empty() ? all : named;
}

int run_comparison(int argc, char** argv, const std::vector<const gemm::Step*>& steps) {
  return guarded([&] {
    Options options;
    CLI::App app{"Runs several steps in one process, interleaved, so that their times can be compared.",
                 "compare"};
    app.add_option("steps_and_shapes", options.positional,
                   "Steps (01 03:64 18_stream_k, 01-07, all) and shapes (4096, 4096x1024x512): one or two "
                   "digits, or a name, mean a step; three digits or more, or MxNxK, mean a shape");
    app.add_option("--suite", options.suite,
                   "Time a fixed set of public shapes, by default with the last two steps of the main "
                   "ladder: 'public' (twelve in burst mode and two in sustained mode) or 'deepgemm' (the 18 "
                   "of DeepGEMM's table); a shape takes 6 seconds, or 12 in sustained mode. 'grid' is a "
                   "population of the 1000 shapes whose M, N and K are of 64, 128 and so on to 16384: "
                   "--population says how many, --json FILE goes on where FILE ends")
        ->expected(0, 1)
        ->default_str("public")
        ->check(CLI::IsMember({"public", "deepgemm", kGrid}));
    app.add_option("--population", options.population,
                   "Time this many random legal shapes, drawn with --seed: the variant 'auto' of the main "
                   "ladder's last step races its fastest variants (all are screened first) and cuBLASLt; a "
                   "shape takes 2 seconds")
        ->check(CLI::Range(1, 10000));
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    refuse_conflicts(app);
    Selection selection = select_words(steps, options.positional);
    if (options.list || options.describe)
      return show_steps(steps_of(selection, steps), selection.shapes, options);
    if (options.suite == kGrid && options.population == 0) options.population = kGridShapes;
    if (options.population > 0) {
      if (selection.entries.empty()) selection.entries = {last_two(steps).back()};
      selection.shapes = random_shapes(selection, options, app);
      add_faster_steps(selection, steps);
    }
    if (app.get_option("--suite")->count() > 0 && options.suite != kGrid) {
      if (options.suite.empty()) options.suite = "public";
      if (selection.entries.empty()) selection.entries = last_two(steps);
      selection.shapes = suite_shapes(selection.shapes, options, app);
    }
    if (selection.entries.empty())
      throw Error("name the steps to compare, for example: tools/compare 01 02 03, or: tools/compare all");
    return execute(selection, options, app);
  });
}

}  // namespace

int run(int argc, char** argv, const std::vector<const gemm::Step*>& steps) {
  if (steps.size() > 1) return run_comparison(argc, argv, steps);
  const gemm::Step& step = *steps.front();
  return step.takes_ranks() ? run_rank_step(argc, argv, step) : run_step(argc, argv, step);
}

int run_steps(int argc, char** argv, const gemm::Step& (*const accessors[])(), unsigned long count) {
  std::vector<const gemm::Step*> steps;
  const int status = guarded([&] {
    for (unsigned long i = 0; i < count; ++i) steps.push_back(&accessors[i]());  // throws for a wrong name
    return kExitOk;
  });
  return status == kExitOk ? run(argc, argv, steps) : status;
}

}  // namespace harness
