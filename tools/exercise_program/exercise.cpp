#include "exercise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "emulator/machine/options.h"
#include "emulator/report/counters.h"
#include "emulator/report/event_log.h"
#include "harness/backend/backend.h"
#include "harness/backend/name_groups.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/verify/groups.h"
#include "harness/verify/workload/rank_copy.h"
#include "harness/verify/workload/rank_gather.h"
#include "harness/verify/workload/rank_scatter.h"
#include "harness/verify/workload/workload.h"

namespace exercise {
namespace {

const char* to_string(harness::Completion completion) {
  if (completion == harness::Completion::kEarliest) return "earliest";
  return completion == harness::Completion::kLatest ? "latest" : "random";
}

/// One k-tile on several ragged tiles, and more k-tiles than two rounds of the stages. Multiples of 8 where
/// the steps want them, because their tiles are.
std::vector<Run> edge_runs(const gemm::Step& step, const std::string& variant_name) {
  const gemm::Variant& variant = harness::find_variant(step, variant_name);
  if (step.gathers()) return {Run{variant.name, "2x2x2", 2}, Run{variant.name, "3x1x1", 2}};
  if (step.scatters()) return {Run{variant.name, "2x2x2", 3}, Run{variant.name, "3x1x1", 2}};
  if (step.takes_ranks()) return {Run{variant.name, "2x225x1", 3}, Run{variant.name, "3x49x2", 3}};
  const gemm::TileShape& tile = variant.tile;
  const auto inside = [](int extent, int multiple) { return gemm::ceil_div(extent, multiple) * multiple; };
  const gemm::Contract& contract = step.contract;
  const gemm::Shape few{inside(tile.m + 3, contract.m_multiple), inside(tile.n + 8, contract.n_multiple),
                        tile.k};
  const gemm::Shape many{inside(5, contract.m_multiple), inside(40, contract.n_multiple),
                         inside((2 * variant.stages + 1) * tile.k - tile.k / 2, contract.k_multiple)};
  const auto run = [&](const gemm::Shape& shape) {
    return Run{variant.name, harness::to_string(fitting_shape(variant, shape))};
  };
  return {run(few), run(many)};
}

/// What happened in the first CTA.
std::vector<nlohmann::json> parse_trace(const std::string& lines) {
  std::vector<nlohmann::json> events;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    nlohmann::json event = nlohmann::json::parse(line);
    if (event["cta"] == "(0,0,0)") events.push_back(std::move(event));
  }
  return events;
}

/// What stands behind `prefix`, or "".
std::string behind(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0 ? text.substr(prefix.size()) : "";
}

bool holds(const Rule& rule, std::int64_t value) {
  if (rule.comparison == ">=") return value >= rule.number;
  if (rule.comparison == "<=") return value <= rule.number;
  return value == rule.number;
}

/// The problem of the last run. The next run is mostly of the same one, under another schedule, and inputs
/// and reference take as long as the run itself.
struct LastProblem {
  gemm::Shape shape;
  harness::Pattern pattern;
  harness::ProblemForm form;
  harness::Workload workload;
};

std::optional<LastProblem>& last_problem() {
  static auto& problem = *new std::optional<LastProblem>;  // device memory goes before it does
  return problem;
}

harness::Workload& workload_of(const gemm::Shape& shape, harness::Pattern pattern,
                               const harness::ProblemForm& form) {
  std::optional<LastProblem>& last = last_problem();
  if (!last || last->shape != shape || last->pattern != pattern || last->form != form) {
    last.reset();
    last.emplace(LastProblem{shape, pattern, form, harness::Workload(shape, pattern, 1, form)});
  }
  return last->workload;
}

/// Whether A, B and whatever else a kernel reads are as they were.
bool inputs_are_whole(const harness::CheckResult& result) {
  return std::none_of(result.failed.begin(), result.failed.end(),
                      [](const std::string& name) { return name.rfind("input-", 0) == 0; });
}

Verdict check_rules(const gemm::Step& step, const Exercise& exercise) {
  for (const std::string& line : exercise.rules) {
    const Rule rule = parse_rule(line);
    const std::int64_t value = observe(rule, step, exercise.run);
    if (!holds(rule, value)) {
      return {{kRule, fmt::format("{}\n  the emulator counts: {} = {}; it must be {} {}", rule.sentence,
                                  rule.observed, value, rule.comparison, rule.number)},
              exercise.run,
              {}};
    }
  }
  return {{kPassed, ""}, exercise.run, {}};
}

}  // namespace

std::vector<Schedule> schedules() {
  std::vector<Schedule> all;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) all.push_back({seed, harness::Completion::kRandom});
  all.push_back({1, harness::Completion::kEarliest});
  all.push_back({1, harness::Completion::kLatest});
  return all;
}

std::vector<Schedule> schedules_that_show(const std::string& what) {
  std::vector<Schedule> all = schedules();
  if (what == kMismatch) all.erase(all.begin() + 1, all.end() - 2);
  return all;
}

std::vector<Schedule> few_schedules_that_show(const std::string& what) {
  std::vector<Schedule> few = schedules_that_show(what);
  if (few.size() > 3) few.erase(few.begin() + 1, few.end() - 2);
  return few;
}

Outcome run_once(const gemm::Step& step, const Run& run, const Schedule& schedule) {
  harness::control_emulator({.schedule_seed = schedule.seed,
                             .completion = schedule.completion,
                             .cta_order = schedule.cta_order,
                             .sm_count = run.sms});
  try {
    const gemm::Variant& variant = harness::find_variant(step, run.variant);
    if (step.takes_ranks()) {
      const gemm::Shape shape = harness::parse_shape(run.shape);
      const harness::CheckResult result =
          step.gathers()    ? harness::check_gather_case(variant, harness::gather_case(shape), run.launches)
          : step.scatters() ? harness::check_scatter_case(variant, harness::scatter_case(shape), run.launches)
                            : harness::check_rank_case(variant, harness::rank_case(shape), run.launches);
      return {result.ok ? kPassed : kMismatch, result.report, 0};
    }
    harness::ProblemForm form = run.form.value_or(harness::form_of(step, variant));
    if (!run.groups.empty()) {
      form.groups = harness::parse_groups(run.groups, harness::parse_shape(run.shape).m);
      form.capacity = harness::parse_capacity(run.groups);
      form.placement = harness::parse_placement(run.groups);
    }
    // GELU and SiLU of the exact pattern's large integers are these integers, or 0.
    // But beside a tensor that is written, C has NaN and infinities among them.
    const bool exact = is_exact(harness::Pattern::kExact, form.epilogue) ||
                       (form.epilogue.beta != 0 && form.epilogue.has_more());
    const harness::Pattern usual = exact ? harness::Pattern::kExact : harness::Pattern::kNormal;
    harness::Workload& workload =
        workload_of(harness::parse_shape(run.shape),
                    run.pattern.empty() ? usual : harness::parse_pattern(run.pattern), form);
    harness::name_tiles(workload.gemm().shape, variant.tile);
    harness::name_groups(workload.problem());
    const harness::CheckResult result =
        run.in_streams ? harness::launch_in_streams(workload, variant, variant.tile)
                       : harness::launch_and_check(workload, gemm::prepare(variant, workload.problem()),
                                                   run.launches, variant.tile);
    if (!inputs_are_whole(result)) last_problem().reset();
    return {result.ok ? kPassed : kMismatch, result.report, workload.hash_of_results()};
  } catch (const harness::EmulatorReport& error) {
    last_problem().reset();
    return {error.rule(), error.what(), 0};
  } catch (const harness::Error& error) {
    last_problem().reset();
    return {kRefused, error.what(), 0};
  }
}

Rule parse_rule(const std::string& line) {
  static const std::regex form("([A-Za-z_0-9 ]+) (>=|<=|==) ([0-9]+): (.+)");
  std::smatch match;
  if (!std::regex_match(line, match, form))
    throw harness::Error(fmt::format("'{}' is not a rule: OBSERVED >= NUMBER: SENTENCE", line));
  return {match[1], match[2], std::stoll(match[3]), match[4]};
}

std::int64_t observe(const Rule& rule, const gemm::Step& step, const Run& run) {
  const gemm::Variant& variant = harness::find_variant(step, run.variant);
  harness::control_emulator({.sm_count = run.sms});
  emulator::Options options = emulator::options();
  options.os_threads = 1;  // an event log has one order
  options.counters = true;
  const emulator::ScopedOptions scope(options);
  const gemm::Shape shape = harness::parse_shape(run.shape);
  if (rule.observed == "ctas") {
    const gemm::ptx::LaunchShape launch = variant.launch_shape(shape);
    return static_cast<std::int64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
  }
  harness::ProblemForm form = harness::form_of(step, variant);
  form.groups = harness::parse_groups(run.groups, shape.m);
  form.capacity = harness::parse_capacity(run.groups);
  form.placement = harness::parse_placement(run.groups);
  last_problem().reset();  // the reports and the log name buffers: there is one of each
  harness::Workload workload(shape, harness::Pattern::kExact, 1, form);
  workload.poison();
  emulator::reset_counters();
  std::ostringstream lines;
  emulator::EventLog::begin(lines);
  try {
    gemm::prepare(variant, workload.problem())(nullptr);
    harness::synchronize();
  } catch (...) {
    emulator::EventLog::end();
    throw;
  }
  emulator::EventLog::end();
  const emulator::Counters counters = emulator::counters();
  emulator::reset_counters();

  const std::vector<nlohmann::json> events = parse_trace(lines.str());
  const std::size_t before = rule.observed.find(" before ");
  if (before != std::string::npos) {
    std::int64_t count = 0;
    for (const nlohmann::json& event : events) {
      if (event["event"] == rule.observed.substr(before + 8)) break;
      if (event["event"] == rule.observed.substr(0, before)) ++count;
    }
    return count;
  }
  if (const std::string name = behind(rule.observed, "warp of "); !name.empty()) {
    for (const nlohmann::json& event : events) {
      if (event["event"] == name) return event["warp"];
    }
    return -1;
  }
  if (const std::string name = behind(rule.observed, "bytes of "); !name.empty())
    return static_cast<std::int64_t>(counters.total(name).bytes);
  if (const std::string name = behind(rule.observed, "wavefronts of "); !name.empty())
    return static_cast<std::int64_t>(counters.total(name).wavefronts);
  return static_cast<std::int64_t>(counters.instructions(rule.observed));
}

Verdict check(const gemm::Step& step, const Exercise& exercise) {
  int runs = 0;
  for (const Schedule& schedule : schedules()) {
    const Outcome outcome = run_once(step, exercise.run, schedule);
    ++runs;
    if (outcome.what != kPassed) return {outcome, exercise.run, schedule, runs};
  }
  std::vector<Run> edges = edge_runs(step, exercise.run.variant);
  for (const Run& run : edge_runs(step, "")) {
    if (run.variant != exercise.run.variant) edges.push_back(run);
  }
  for (const Run& run : edges) {
    for (const Schedule& schedule :
         {Schedule{1, harness::Completion::kRandom}, Schedule{2, harness::Completion::kLatest}}) {
      const Outcome outcome = run_once(step, run, schedule);
      ++runs;
      if (outcome.what != kPassed) return {outcome, run, schedule, runs};
    }
  }
  Verdict verdict = check_rules(step, exercise);
  verdict.runs = runs;
  return verdict;
}

int run_program(const gemm::Step& step, const Exercise& exercise) {
  try {
    const Verdict verdict = check(step, exercise);
    const std::string& what = verdict.outcome.what;
    if (what == kPassed) {
      fmt::print("solved: the result is right in {} runs, bit for bit", verdict.runs);
      if (!exercise.rules.empty())
        fmt::print(", and the kernel meets the other requirements of the exercise");
      fmt::print("\ntools/exercise {} {} solution compares it with the step's kernel.\n", exercise.step,
                 exercise.name);
      return harness::kExitOk;
    }
    if (what == kRule) {
      fmt::print("the result is right in {} runs, but {}\n", verdict.runs, verdict.outcome.report);
    } else {
      fmt::print("{} {}, schedule seed {}, completion {}{}{}\n\n{}\n", verdict.run.variant, verdict.run.shape,
                 verdict.schedule.seed, to_string(verdict.schedule.completion),
                 verdict.run.sms == 4 ? "" : fmt::format(", {} SMs", verdict.run.sms),
                 (verdict.run.launches == 1 ? "" : fmt::format(", {} launches", verdict.run.launches)) +
                     (verdict.run.groups.empty() ? "" : ", groups " + verdict.run.groups),
                 verdict.outcome.report);
    }
    fmt::print("\nnot solved yet: {}. tools/exercise {} {} hint helps.\n",
               what == kMismatch  ? "the result is wrong"
               : what == kRule    ? "the result is right, but the exercise requires more"
               : what == kRefused ? "the kernel cannot be launched"
                                  : fmt::format("the emulator reports {}", what),
               exercise.step, exercise.name);
    return what == kMismatch || what == kRule ? harness::kExitMismatch
           : what == kRefused                 ? harness::kExitUsage
                                              : harness::kExitEmulator;
  } catch (const harness::Error& error) {
    harness::complain(fmt::format("error: {}\n", error.what()));
    return harness::kExitUsage;
  }
}

}  // namespace exercise
