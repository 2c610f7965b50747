// rivals: DeepGEMM's kernels and steps of this course in one race.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "deepgemm.h"
#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/program.h"
#include "harness/cli/selection.h"
#include "harness/record/json.h"
#include "harness/timing/timing.h"
#include "harness/verify/groups.h"
#include "harness/verify/workload/workload.h"

namespace {

using rivals::Kernel;

struct Options {
  std::vector<std::string> words;
  bool check = false;
  std::string mode = "burst";
  double seconds = 10;
  int rounds = 0;
  std::uint64_t seed = 1;
  std::string groups;
  std::string json;
};

/// Whether a contestant leaves something in rows of D that belong to no group.
bool fills_rest(bool is_ours, const gemm::Variant& kernel) {
  return !is_ours && kernel.groups == gemm::GroupForm::kMasked;
}

/// What takes part at a shape. A variant of ours that chooses by shape is in every race, and `kernel` is its
/// choice.
struct Racer {
  std::string name;
  const gemm::Variant* variant = nullptr;
  const gemm::Variant* kernel = nullptr;
  std::string why{};  // of the choice
  bool is_ours() const { return name != rivals::kDeepGemm; }
  bool chooses() const { return kernel != variant; }
};

std::string label(const Racer& racer) {
  return racer.name + " " + racer.variant->name;
}

/// Those of the entries that solve the rival's problem.
std::vector<Racer> ours_at(const std::vector<harness::Entry>& entries, const gemm::Variant& rival,
                           const gemm::Shape& shape) {
  std::vector<Racer> racers;
  for (const harness::Entry& entry : entries) {
    if (!entry.variant->types.same_elements(rival.types) || entry.variant->groups != rival.groups) continue;
    harness::check_contract(*entry.step, shape);
    const harness::ResolvedVariant choice = harness::resolved(entry, shape);
    racers.push_back({entry.step->name, entry.variant, choice.variant, choice.why});
  }
  if (racers.empty())
    throw harness::Error("none of the variants that were named multiplies what DeepGEMM's kernel multiplies");
  return racers;
}

/// Those compiled for the shape; where groups have room for so many rows, their tiles must fill it.
std::vector<Racer> theirs_at(const std::vector<Kernel>& kernels, const gemm::Shape& shape, int capacity) {
  std::vector<Racer> racers;
  for (const Kernel& kernel : kernels) {
    if (kernel.configuration.n == shape.n && kernel.configuration.k == shape.k &&
        capacity % kernel.configuration.tile.m == 0)
      racers.push_back({rivals::kDeepGemm, &kernel.variant, &kernel.variant});
  }
  if (racers.empty())
    throw harness::Error(fmt::format(
        "DeepGEMM's kernels were not compiled for the N and K of {}: name this shape "
        "to tools/rivals, which compiles them{}",
        harness::to_string(shape), capacity > 0 ? "; and room for more rows must be a multiple of 64" : ""));
  return racers;
}

harness::ProblemForm form_of(const gemm::Variant& rival, const gemm::Shape& shape, const Options& options) {
  if (options.groups.empty() == rival.takes_groups())
    throw harness::Error(
        "--groups says how DeepGEMM's kernels are compiled: give it, or leave it out, to tools/rivals");
  harness::ProblemForm form;
  form.types = rival.types;
  form.saturates = false;
  form.groups = harness::parse_groups(options.groups, shape.m);
  form.capacity = harness::parse_capacity(options.groups);
  return form;
}

/// False when one computes something else than A * B^T.
bool verify(const std::vector<Racer>& racers, const gemm::Shape& shape, const harness::ProblemForm& form,
            std::uint64_t seed) {
  bool ok = true;
  for (const harness::Pattern pattern : {harness::Pattern::kExact, harness::Pattern::kNormal}) {
    harness::Workload workload(shape, pattern, seed, form);
    for (const Racer& racer : racers) {
      harness::show_progress(fmt::format("verifying {} on {}", label(racer), harness::to_string(shape)));
      workload.poison();
      gemm::prepare(*racer.kernel, workload.problem())(nullptr);
      harness::synchronize();
      if (fills_rest(racer.is_ours(), *racer.kernel)) rivals::poison_rest(workload.problem());
      const harness::CheckResult result = workload.check(racer.kernel->tile);
      if (result.ok) continue;
      harness::clear_progress();
      fmt::print("  {} is WRONG on {}: {}\n{}\n", label(racer), harness::to_string(shape), result.summary,
                 result.report);
      ok = false;
    }
  }
  harness::clear_progress();
  if (ok)
    fmt::print("{}: {} verified\n", harness::to_string(shape), harness::counted(racers.size(), "kernel"));
  std::fflush(stdout);
  return ok;
}

std::vector<harness::Contestant> contestants_of(const std::vector<Racer>& racers) {
  std::vector<harness::Contestant> contestants;
  for (const Racer& racer : racers) {
    contestants.push_back(
        {.name = racer.name,
         .variant = racer.variant->name,
         .kind = racer.is_ours() ? harness::ContestantKind::kStep : harness::ContestantKind::kBaseline,
         .prepare = [kernel = racer.kernel](const gemm::Problem& problem) {
           return gemm::prepare(*kernel, problem);
         }});
    if (fills_rest(racer.is_ours(), *racer.kernel))
      contestants.back().deliver = [](const gemm::Problem& problem, gemm::ptx::Stream) {
        rivals::poison_rest(problem);
      };
  }
  return contestants;
}

/// Of all of `racers` the `most` fastest in a few rounds, whose times nobody sees, and those that choose.
std::vector<Racer> screened(std::vector<Racer> racers, const gemm::Shape& shape,
                            harness::TimingOptions timing, std::size_t most) {
  constexpr int kScreeningRounds = 5;
  constexpr double kScreeningIdleMs = 2;
  if (racers.size() <= most) return racers;
  timing.mode = harness::TimingMode::kBurst;
  timing.rounds = kScreeningRounds;
  timing.idle_ms = kScreeningIdleMs;
  timing.baselines = false;
  timing.verified = false;
  const harness::ShapeRecord record = harness::time_shape(shape, contestants_of(racers), timing);
  harness::clear_progress();
  std::vector<std::size_t> order(racers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    return record.contestants[x].median_us < record.contestants[y].median_us;
  });
  constexpr std::size_t kShown = 5;
  std::string times;
  std::vector<Racer> fastest;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const Racer& racer = racers[order[place]];
    if (place < most || racer.chooses()) fastest.push_back(racer);
    if (place < kShown)
      times += fmt::format("{} {} {}", place == 0 ? "" : ",", label(racer),
                           harness::human_time(record.contestants[order[place]].median_us));
  }
  fmt::print("{}\n",
             harness::fitted(fmt::format("{}: {} kernels screened; the fastest in {} rounds:{}",
                                         harness::to_string(shape), racers.size(), kScreeningRounds, times)));
  return fastest;
}

/// Rows of a Markdown table: each of ours beside the fastest of theirs, within each round, so that a drift of
/// the clock cancels.
std::string rows_of(const harness::ShapeRecord& shape) {
  const harness::ContestantRecord* rival = nullptr;
  for (const harness::ContestantRecord& one : shape.contestants) {
    if (one.name == rivals::kDeepGemm && (rival == nullptr || one.median_us < rival->median_us)) rival = &one;
  }
  std::string rows;
  for (const harness::ContestantRecord& one : shape.contestants) {
    if (rival == nullptr || one.kind != harness::ContestantKind::kStep) continue;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < one.samples_us.size(); ++i)
      ratios.push_back(rival->samples_us[i] / one.samples_us[i]);
    const harness::Ratio ratio = harness::median_interval(ratios);
    rows += fmt::format("| {} | {} | {:.2f} | {} {} | {:.2f} | {} | {} |\n", harness::to_string(shape.shape),
                        rival->variant, rival->median_us, one.name, one.variant, one.median_us,
                        harness::human_ratio(ratio),
                        harness::to_string(harness::verdict_of(ratio, ratios.size())));
  }
  return rows;
}

void check_device(const Kernel& one, const harness::DeviceInfo& device) {
  const int sms = one.configuration.sms;
  if (!gemm::runs_on(gemm::Architecture::kSm90a, device.compute_capability))
    throw harness::Error(
        fmt::format("DeepGEMM's kernels were compiled for Hopper, but {} is none", device.name));
  if (sms != device.sm_count)
    throw harness::Error(
        fmt::format("DeepGEMM's kernels were compiled for {} SMs, but {} has {}: give tools/rivals --sms {}",
                    sms, device.name, device.sm_count, device.sm_count));
}

std::vector<harness::Entry> our_entries(const harness::Selection& selection,
                                        const std::vector<const gemm::Step*>& steps) {
  if (!selection.entries.empty()) return selection.entries;
  std::vector<harness::Entry> all;
  for (const gemm::Step* step : steps) {
    for (const harness::Entry& entry : harness::select_variants(*step, "all")) all.push_back(entry);
  }
  return all;
}

int execute(const Options& options) {
  constexpr std::size_t kFinalistsOfOurs = 2;
  constexpr std::size_t kFinalistsOfTheirs = 3;
  const std::vector<Kernel> kernels = rivals::deepgemm_kernels();
  const std::vector<const gemm::Step*> steps = rivals::our_steps();
  const harness::Selection selection = harness::select_words(steps, options.words);
  if (selection.shapes.empty() || kernels.empty())
    throw harness::Error("name a shape, MxNxK, for which DeepGEMM's kernels were compiled");
  const std::vector<harness::Entry> entries = our_entries(selection, steps);
  const gemm::Variant& rival = kernels.front().variant;
  const harness::DeviceInfo device = harness::device_info();
  check_device(kernels.front(), device);
  if (!options.json.empty()) harness::check_writable(options.json);

  harness::TimingOptions timing;
  timing.mode = options.mode == "burst" ? harness::TimingMode::kBurst : harness::TimingMode::kSustained;
  timing.rounds = options.rounds;
  timing.budget_s = options.seconds;
  timing.seed = options.seed;
  timing.progress = harness::show_progress;
  harness::Record record = harness::new_record(device, timing);
  std::string summary =
      "| M x N x K | DeepGEMM's fastest | us | ours | us | speed / DeepGEMM | verdict |\n"
      "| --- | --- | ---: | --- | ---: | --- | --- |\n";
  for (const gemm::Shape& shape : selection.shapes) {
    std::vector<Racer> theirs = theirs_at(kernels, shape, harness::parse_capacity(options.groups));
    std::vector<Racer> ours = ours_at(entries, rival, shape);
    timing.form = form_of(rival, shape, options);
    if (!options.check) {
      theirs = screened(theirs, shape, timing, kFinalistsOfTheirs);
      ours = screened(ours, shape, timing, kFinalistsOfOurs);
    }
    std::vector<Racer> racers = ours;
    racers.insert(racers.end(), theirs.begin(), theirs.end());
    if (!verify(racers, shape, timing.form, options.seed)) {
      fmt::print("FAILED: no time is shown for a wrong result\n");
      return harness::kExitMismatch;
    }
    if (options.check) continue;
    record.shapes.push_back(harness::time_shape(shape, contestants_of(racers), timing));
    harness::clear_progress();
    if (!options.groups.empty()) record.shapes.back().epilogue = "groups " + options.groups;
    for (std::size_t i = 0; i < racers.size(); ++i) {
      if (!racers[i].chooses()) continue;
      record.shapes.back().contestants[i].chosen = racers[i].kernel->name;
      record.shapes.back().contestants[i].why = racers[i].why;
    }
    record.rounds =
        std::max(record.rounds, static_cast<int>(record.shapes.back().contestants.front().samples_us.size()));
    summary += rows_of(record.shapes.back());
    if (options.json.empty()) continue;
    nlohmann::json json = record;  // what is measured so far is kept
    json["rival"] = {{"name", rivals::kDeepGemm}, {"commit", rivals::kCheckoutCommit}};
    harness::write_record(options.json, json);
  }
  if (!options.check) fmt::print("\n{}\n{}", harness::human_table(record), summary);
  return harness::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{
      fmt::format("Races DeepGEMM's kernels, compiled from {}, against steps of this course and cuBLASLt.",
                  rivals::kCheckout),
      "rivals"};
  app.add_option(
      "steps_and_shapes", options.words,
      "Steps (44 46:auto; default: every variant of every step that was linked) and shapes, MxNxK");
  app.add_flag("--check", options.check, "Only verify, every kernel");
  app.add_option("--mode", options.mode, "burst or sustained")
      ->capture_default_str()
      ->check(CLI::IsMember({"burst", "sustained"}));
  app.add_option("--seconds", options.seconds, "Time budget for each shape")
      ->capture_default_str()
      ->check(harness::seconds_problem);
  app.add_option("--rounds", options.rounds, "Number of rounds; with 0, until the medians are stable")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  app.add_option("--seed", options.seed, "Seed of the inputs")
      ->capture_default_str()
      ->check(harness::seed_problem);
  app.add_option("--groups", options.groups,
                 "Rows in groups, each with a B: sizes, 8192,8192, or 8:equal; multiples of 128 rows. With "
                 "/64 each has room for 64 rows, and the counts are on the device")
      ->check(harness::name_problem);
  app.add_option("--json", options.json, "Write the record of the run to this file")
      ->check(harness::file_problem);
  return harness::run_program(app, argc, argv, [&] { return execute(options); });
}
