#include "harness/cli/rank_scatters.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/ranks.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/program.h"
#include "harness/cli/rank_options.h"
#include "harness/cli/rank_products.h"
#include "harness/cli/selection.h"
#include "harness/record/json.h"
#include "harness/timing/ranks.h"
#include "harness/verify/workload/rank_scatter.h"

namespace harness {
namespace {

constexpr const char* kScatterFooter =
    R"(Each rank multiplies K / ranks columns of A and B, and gets M / ranks rows of the sum of all products. Without an action, the result is verified, and GPUs then time it. A check needs no GPU (--backend emulator).

Examples
  tools/run 62 --check --backend emulator        2, 3 and 4 ranks, several schedules
  tools/run 62 --variant all                     on two GPUs: verify, then time against copies and cuBLASLt
  tools/run 62 4096 --variant bf16,flag_at_once  what it is worth to raise a flag later
  tools/run 62 4096 --check --relaunch 1000 --delay 50
                                                 ranks that are late by up to 50 us

Exit status: 0 verified, 1 wrong result, 2 bad input or no usable machine, 3 the emulator found a broken rule, 4 a GPU did not finish in time.)";

void check_scatter_options(const RankOptions& options) {
  if (!options.ctas.empty() || !options.pieces.empty())
    throw Error(
        "--ctas and --piece are of steps 60 and 61: here every CTA multiplies, and every tile has a flag");
}

std::string what_ranks_add(const RankScatterForm& form) {
  return fmt::format("{} ranks, {}: each multiplies {} columns of A and B and gets {} rows of D", form.ranks,
                     to_string(form.shape), form.shape.k / form.ranks, form.shape.m / form.ranks);
}

/// The cases, with what the command line says instead.
std::vector<ScatterCase> emulated_scatters(const RankOptions& options) {
  std::vector<ScatterCase> cases = scatter_cases();
  if (!options.sizes.empty()) {
    cases.clear();
    for (const std::string& text : options.sizes)
      cases.push_back({.form = {.shape = parse_shape(text)}, .why = "as asked for"});
  }
  for (ScatterCase& one : cases) {
    if (options.ranks > 0) {
      if (options.sizes.empty()) {  // as many rows and as much of K for each
        one.form.shape.m = one.form.shape.m / one.form.ranks * options.ranks;
        one.form.shape.k = one.form.shape.k / one.form.ranks * options.ranks;
      }
      one.form.ranks = options.ranks;
    }
    check_scatter(one.form);
  }
  return cases;
}

bool check_emulated_scatters(const std::vector<Entry>& entries, const RankOptions& options) {
  check_scatter_options(options);
  const int epochs = emulated_epochs(options);
  const std::vector<ScatterCase> cases = emulated_scatters(options);
  for (const ScatterCase& one : cases) refuse_large(one.form.shape, epochs);
  std::vector<EmulatedCase> emulated;
  for (const ScatterCase& one : cases) {
    emulated.push_back({fmt::format("{}: {}", what_ranks_add(one.form), one.why),
                        [&one](const gemm::Variant& variant, int count) {
                          return check_scatter_case(variant, one, count);
                        }});
  }
  return check_cases(emulated, entries, options);
}

bool run_scatters_on_gpus(const std::vector<Entry>& entries, const RankOptions& options,
                          const DeviceInfo& device) {
  check_scatter_options(options);
  const std::vector<std::string> sizes =
      options.sizes.empty() ? std::vector<std::string>{"8192", "4096", "4096x28672x8192"} : options.sizes;
  const TimingOptions timing = rank_timing(options);
  nlohmann::json record = rank_record(device, timing, "gathers");
  for (const std::string& text : sizes) {
    const RankScatterForm form{.ranks = options.ranks > 0 ? options.ranks : 2,
                               .shape = parse_shape(text),
                               .pattern = Pattern::kNormal,
                               .seed = options.seed};
    RankScatter scatter(form);
    const std::string topology = scatter.ranks().topology();
    fmt::print("{}\n", fitted(fmt::format("{}; {}", what_ranks_add(form), topology)));
    const int epochs = options.relaunch > 0 ? options.relaunch : 4;
    for (const Entry& entry : entries) {
      scatter.load(entry.variant->kernel);
      const CheckResult result = scatter.run(entry.variant->prepare_scatter(scatter.problem()), epochs,
                                             RankRun::Readers::kApart, delays_of(options));
      if (!print_rank_check(entry, result, fmt::format("{} epochs", epochs))) return false;
    }
    if (options.check) continue;
    std::vector<RankContestant> contestants;
    for (const Entry& entry : entries)
      contestants.push_back(
          {.variant = entry.variant->name, .launcher = entry.variant->prepare_scatter(scatter.problem())});
    for (RankContestant& opponent : scatter_opponents(scatter)) contestants.push_back(std::move(opponent));
    time_ranks(scatter, contestants, timing);
    clear_progress();
    print_products(form.shape, contestants);
    record["gathers"].push_back(
        products_to_json(*entries.front().step, form.shape, form.ranks, topology, contestants));
    if (!options.json.empty()) write_json(options.json, record);  // what is measured stays
  }
  if (!options.json.empty()) write_record(options.json, record);
  return true;
}

}  // namespace

int run_scatter_step(int argc, char** argv, const gemm::Step& step) {
  return guarded([&] {
    RankOptions options;
    CLI::App app{fmt::format("{}: {}", step.name, step.title), step.name};
    app.footer(kScatterFooter);
    add_rank_options(app, options, "sizes",
                     "MxNxK of all ranks together, or 4096 for that cube (default: 8192, 4096 and "
                     "4096x28672x8192 on GPUs, small ones on the emulator)");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return execute_rank_step(step, options, check_emulated_scatters, run_scatters_on_gpus);
  });
}

}  // namespace harness
