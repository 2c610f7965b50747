#include "harness/cli/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "harness/backend/emulator_control.h"
#include "harness/backend/name_groups.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/describe.h"
#include "harness/cli/page_data.h"
#include "harness/cli/side_by_side.h"
#include "harness/record/report_parts.h"
#include "harness/trace/trace_timeline.h"
#include "harness/verify/check_plan.h"
#include "harness/verify/groups.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

nlohmann::json to_json(const LineCount& line) {
  return {{"place", line.place},           {"instruction", line.instruction},
          {"requests", line.requests},     {"bytes", line.bytes},
          {"sectors", line.sectors},       {"ideal_sectors", line.ideal_sectors},
          {"wavefronts", line.wavefronts}, {"ideal_wavefronts", line.ideal_wavefronts}};
}

void add_error(nlohmann::json& check, const CheckResult& result) {
  if (!result.error) return;
  check["error_rms"] = result.error->rms;
  check["error_largest"] = result.error->largest;
  check["error_bound"] = result.error->bound;
}

std::vector<std::string> patterns_of(const Options& options) {
  if (!options.pattern.empty()) return {options.pattern};
  if (options.counters) return {"exact"};  // the counts do not depend on the values
  if (!options.suite.empty())
    return {"exact"};  // the most severe; after timing the random inputs are checked
  return {"exact", "normal", "uniform"};
}

const char* completion_name(Completion completion) {
  if (completion == Completion::kEarliest) return "earliest";
  return completion == Completion::kLatest ? "latest" : "random";
}

Schedule schedule_of(const Options& options) {
  if (options.completion == "random") return {options.schedule_seed, Completion::kRandom};
  return {options.schedule_seed,
          options.completion == "earliest" ? Completion::kEarliest : Completion::kLatest};
}

/// A check, for the page about it.
struct Told {
  const Entry& entry;
  gemm::Shape shape;
  std::string pattern;
  int launches;
  int sms;
  Schedule schedule;
};

/// Runs the check; where it is the first that breaks a rule or has a wrong result, and --html-data names a
/// file, once more for that.
CheckResult check_and_tell(const Options& options, const Told& told,
                           const std::function<CheckResult()>& check) {
  if (options.html_data.empty() || runs_beside()) return check();
  const auto write = [&](const std::string& rule, const std::string& text) {
    static bool is_written = false;
    if (std::exchange(is_written, true)) return;
    const gemm::Variant& variant = *resolved(told.entry, told.shape).variant;
    const nlohmann::ordered_json about = {
        {"step", told.entry.step->name},
        {"variant", variant.name},
        {"shape", to_string(told.shape)},
        {"inputs", told.pattern},
        {"launches", fmt::format("{}", told.launches)},
        {"SMs", fmt::format("{}", told.sms)},
        {"schedule",
         fmt::format(
             "seed {}, asynchronous operations complete {}", told.schedule.seed,
             told.schedule.completion == Completion::kRandom
                 ? "as the seed decides"
                 : fmt::format("as {} as allowed",
                               told.schedule.completion == Completion::kEarliest ? "early" : "late"))}};
    write_page_data(
        options.html_data, report_parts(rule, text, {}), about, [&] { check(); }, variant.tile.k,
        [&](const TraceData& data) {
          return about_trace(*told.entry.step, variant, told.shape, told.sms, data);
        });
  };
  CheckResult result;
  try {
    result = check();
  } catch (const EmulatorReport& report) {
    write(report.rule(), report.what());
    throw;
  }
  if (!result.ok) write("wrong-result", fmt::format("wrong result: {}\n{}", result.summary, result.report));
  return result;
}

/// All checks of a run, one after the other.
class Checks {
 public:
  Checks(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes, const Options& options,
         const DeviceInfo& device, nlohmann::json& record)
      : entries_(entries), options_(options), patterns_(patterns_of(options)), record_(record) {
    constexpr std::size_t kFew = 3;
    // Many kernels that are checked only because they will be timed: a line for each pattern is enough.
    is_brief_ = entries.size() > kFew && !options.check && !device.is_emulator;
    total_ = entries.size() * shapes.size() * patterns_.size();
    for (const Entry& entry : entries) {
      step_width_ = std::max(step_width_, entry.step->name.size());
      variant_width_ = std::max(variant_width_, entry.variant->name.size());
    }
  }

  bool run(const gemm::Shape& shape) {
    bool ok = true;
    for (const std::string& pattern : patterns_) {
      std::optional<Workload> workload;
      bool was_dense = false;
      ProblemForm form = options_.form;
      form.groups = parse_groups(options_.groups, shape.m);
      form.capacity = parse_capacity(options_.groups);
      form.placement = parse_placement(options_.groups);
      std::size_t good = 0;
      for (const Entry& entry : entries_) {
        const gemm::Epilogue epilogue = epilogue_of(entry, options_.form.epilogue, entries_.size() == 1);
        // Kernels with other types, or with more than a bias and an activation, have another problem.
        const bool is_dense = !options_.groups.empty() && !entry.variant->takes_groups();
        const bool is_other = form.types != entry.variant->types || form.epilogue.has_more() ||
                              epilogue.has_more() || is_dense != was_dense;
        was_dense = is_dense;
        if (!workload || is_other) {
          if (is_other) form.epilogue = epilogue;
          form.types = entry.variant->types;
          workload.reset();
          workload.emplace(shape, parse_pattern(pattern), options_.seed,
                           is_dense ? without_groups(form) : form);
        }
        good += check(entry, *workload, pattern) ? 1 : 0;
      }
      if (is_brief_) fmt::print("  {:<7} {} of {} ok\n", pattern, good, counted(entries_.size(), "kernel"));
      ok = ok && good == entries_.size();
    }
    return ok;
  }

 private:
  /// Poison, launch, check. Prints a line unless all is well and brief; the report on a mismatch.
  bool check(const Entry& entry, Workload& workload, const std::string& pattern) {
    const gemm::Shape shape = workload.gemm().shape;
    const gemm::Epilogue epilogue = epilogue_of(entry, options_.form.epilogue, entries_.size() == 1);
    const Told told{entry, shape, pattern, options_.relaunch, options_.sms, schedule_of(options_)};
    const CheckResult result = check_and_tell(options_, told, [&] {
      const Progress progress(fmt::format("checking {} of {}: {} {}, {}, {}", ++number_, total_,
                                          entry.step->name, entry.variant->name, pattern, to_string(shape)));
      const gemm::Variant& variant = *resolved(entry, shape).variant;
      name_tiles(workload.gemm().shape, variant.tile);
      name_groups(workload.problem(epilogue));
      const gemm::Launcher launcher = gemm::prepare(variant, workload.problem(epilogue));
      workload.poison();
      for (int i = 0; i < options_.relaunch; ++i) launcher(nullptr);
      synchronize();
      return workload.check(variant.tile, epilogue);
    });
    print(entry, epilogue, result);
    record_.push_back({{"step", entry.step->name},
                       {"variant", entry.variant->name},
                       {"m", shape.m},
                       {"n", shape.n},
                       {"k", shape.k},
                       {"pattern", pattern},
                       {"launches", options_.relaunch},
                       {"ok", result.ok},
                       {"summary", result.summary}});
    add_error(record_.back(), result);
    if (!epilogue.is_plain()) record_.back()["epilogue"] = harness::to_string(epilogue);
    if (!options_.groups.empty() && entry.variant->takes_groups()) record_.back()["groups"] = options_.groups;
    if (options_.counters) {
      const EmulatorCounters counters = take_emulator_counters();
      fmt::print("\n{}\n", fitted_table(counters.table));
      nlohmann::json& lines = record_.back()["counters"] = nlohmann::json::array();
      for (const LineCount& line : counters.lines) lines.push_back(to_json(line));
    }
    return result.ok;
  }

  void print(const Entry& entry, const gemm::Epilogue& epilogue, const CheckResult& result) const {
    std::string relaunched =
        options_.relaunch > 1 ? fmt::format(" after {} launches", options_.relaunch) : "";
    if (entry.step->epilogue.beta != 0 || !epilogue.is_plain())
      relaunched += "; " + harness::to_string(epilogue);
    if (!result.ok || !is_brief_)
      fmt::print("{}\n", fitted(fmt::format("  {:<{}}  {:<{}}  {:<5}  {}{}", entry.step->name, step_width_,
                                            entry.variant->name, variant_width_, result.ok ? "ok" : "WRONG",
                                            result.summary, relaunched)));
    if (!result.ok) fmt::print("{}\n", result.report);
    std::fflush(stdout);
  }

  const std::vector<Entry>& entries_;
  const Options& options_;
  std::vector<std::string> patterns_;
  nlohmann::json& record_;
  bool is_brief_ = false;
  std::size_t total_ = 0;
  std::size_t number_ = 0;  // of the check that runs
  std::size_t step_width_ = 0;
  std::size_t variant_width_ = 0;
};

/// "seeds 1 to 4, earliest, latest"
std::string describe(const std::vector<Schedule>& schedules) {
  std::vector<std::uint64_t> seeds;
  std::string others;
  for (const Schedule& schedule : schedules) {
    if (schedule.completion == Completion::kRandom) {
      seeds.push_back(schedule.seed);
      continue;
    }
    others +=
        fmt::format("{}{}", seeds.empty() && others.empty() ? "" : ", ",
                    schedule.cta_order == CtaOrder::kAscending    ? "CTAs one by one"
                    : schedule.cta_order == CtaOrder::kDescending ? "backwards"
                                                                  : completion_name(schedule.completion));
  }
  if (seeds.empty()) return others;
  if (seeds.size() == 1) return fmt::format("seed {}{}", seeds.front(), others);
  return fmt::format("seeds {} to {}{}", seeds.front(), seeds.back(), others);
}

/// One entry under the schedules of its plan.
class PlannedCheck {
 public:
  PlannedCheck(const Entry& entry, const Options& options, int sms, bool brief)
      : entry_(entry), options_(options) {
    cases_ = plan_check(*entry.step, *entry.variant, options.schedule_seed, options.quick);
    if (brief) cases_ = plan_brief_check(*entry.step, *entry.variant, options.schedule_seed, options.quick);
    for (CheckCase& one : cases_) {
      if (sms > 0) one.sms = sms;
      if (options.own_epilogue) {
        one.epilogue = gemm::with_fixed(entry.variant->epilogues, options.form.epilogue);
        one.in_place = options.form.in_place;
        one.c_pitch = one.aux_pitch = 0;
      }
      if (options.completion != "random") one.schedules = {schedule_of(options)};
    }
  }

  std::size_t count() const { return cases_.size(); }

  bool run(std::size_t i, nlohmann::json& record) const {
    std::vector<CheckInputs> inputs = cases_[i].inputs;
    if (!options_.pattern.empty()) inputs = {{parse_pattern(options_.pattern), cases_[i].schedules.size()}};
    const bool has_epilogue = entry_.variant->epilogues.source || !cases_[i].epilogue.is_plain();
    fmt::print("{}\n", fitted(fmt::format("{} {}, {}: {}{}{}", entry_.step->name, entry_.variant->name,
                                          harness::to_string(cases_[i].shape), cases_[i].why,
                                          has_epilogue ? "; " + harness::to_string(cases_[i].epilogue) : "",
                                          cases_[i].in_place ? ", D in place of C" : pitches(cases_[i]))));
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](const CheckInputs& one) { return run(cases_[i], one, record); });
  }

 private:
  static std::string pitches(const CheckCase& one) {
    return (one.c_pitch > 0 ? fmt::format(", rows of C {} apart", one.c_pitch) : "") +
           (one.aux_pitch > 0 ? fmt::format(", rows of the auxiliary tensor {} apart", one.aux_pitch) : "");
  }

  bool run(const CheckCase& one, const CheckInputs& inputs, nlohmann::json& record) const {
    const std::string pattern = to_string(inputs.pattern);
    std::vector<Schedule> schedules = one.schedules;
    schedules.resize(std::min(schedules.size(), inputs.schedules));
    if (inputs.same_bits && options_.completion == "random") {
      const std::vector<Schedule> others = schedules_of_bits(one, schedules.front());
      schedules.insert(schedules.end(), others.begin(), others.end());
    }
    const auto begin = std::chrono::steady_clock::now();
    Workload workload(one.shape, inputs.pattern, options_.seed, form_of(one, *entry_.variant, options_.form));
    CheckResult result;
    std::vector<Schedule> done;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      const Progress progress(fmt::format("checking {} {}, {}, {}: schedule {} of {}", entry_.step->name,
                                          entry_.variant->name, harness::to_string(one.shape), pattern, i + 1,
                                          schedules.size()));
      done.push_back(schedules[i]);
      control_emulator({.schedule_seed = done.back().seed,
                        .completion = done.back().completion,
                        .cta_order = done.back().cta_order,
                        .sm_count = one.sms,
                        .launch_seconds = 60});
      const int launches = std::max(one.launches, options_.relaunch);
      result = check_and_tell(options_, {entry_, one.shape, pattern, launches, one.sms, done.back()},
                              [&] { return check(workload, launches); });
      if (!result.ok) break;
      const std::uint64_t now = inputs.same_bits ? workload.hash_of_results() : 0;
      if (i == 0) bits = now;
      if (now != bits) {
        result = other_bits(schedules.front(), schedules[i]);
        break;
      }
    }
    if (result.ok && inputs.in_streams) check_streams(one, pattern, workload, result);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    print(one, pattern, result, done, seconds.count(), record);
    return result.ok;
  }

  static CheckResult other_bits(const Schedule& one, const Schedule& other) {
    return {.ok = false,
            .report = fmt::format(
                "wrong: every run must give the same bits, because the chapter promises a fixed order of all "
                "additions. Both runs are within the bound, but their last bits differ: something is added "
                "in the order in which CTAs, warps or copies finish. One run has {}, the other has {}.\n",
                describe({one}), describe({other})),
            .summary = fmt::format("failed {}: other bits than with {}", kOtherBits, describe({one})),
            .failed = {kOtherBits}};
  }

  CheckResult check(Workload& workload, int launches) const {
    const gemm::Variant& variant = *resolved(entry_, workload.gemm().shape).variant;
    name_tiles(workload.gemm().shape, variant.tile);
    name_groups(workload.problem());
    const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
    return launch_and_check(workload, launcher, launches, variant.tile);
  }

  void check_streams(const CheckCase& one, const std::string& pattern, Workload& workload,
                     CheckResult& result) const {
    const gemm::Variant& variant = *resolved(entry_, workload.gemm().shape).variant;
    const Schedule& schedule = one.schedules.front();
    control_emulator({.schedule_seed = schedule.seed, .sm_count = one.sms, .launch_seconds = 60});
    name_tiles(workload.gemm().shape, variant.tile);
    name_groups(workload.problem());
    const CheckResult streams =
        check_and_tell(options_, {entry_, one.shape, pattern, 3, one.sms, schedule},
                       [&] { return launch_in_streams(workload, variant, variant.tile); });
    if (streams.ok) {
      result.summary += "; two streams share nothing";
    } else {
      result = streams;
    }
  }

  void print(const CheckCase& one, const std::string& pattern, const CheckResult& result,
             const std::vector<Schedule>& done, double seconds, nlohmann::json& record) const {
    fmt::print("{}\n", fitted(fmt::format("  {:<5}  {}; {} in {:.1f} s", result.ok ? "ok" : "WRONG",
                                          result.summary, describe(done), seconds)));
    if (!result.ok) fmt::print("{}\n", result.report);
    std::fflush(stdout);
    record.push_back({{"step", entry_.step->name},
                      {"variant", entry_.variant->name},
                      {"m", one.shape.m},
                      {"n", one.shape.n},
                      {"k", one.shape.k},
                      {"pattern", pattern},
                      {"launches", std::max(one.launches, options_.relaunch)},
                      {"sms", one.sms},
                      {"schedules", done.size()},
                      {"ok", result.ok},
                      {"summary", result.summary}});
    add_error(record.back(), result);
    if (!one.epilogue.is_plain()) record.back()["epilogue"] = harness::to_string(one.epilogue);
    if (!one.groups.empty()) record.back()["groups"] = harness::to_string(one.groups);
  }

  Entry entry_;
  const Options& options_;
  std::vector<CheckCase> cases_;
};

/// Multiply-adds a second that one core emulates of a step's kernel, with all checks: measured at 512 x 512 x
/// 512 on a core of a server of 2023, halved.
double emulated_rate(gemm::MathUnit unit) {
  switch (unit) {
    case gemm::MathUnit::kFma:
      return 5e7;
    case gemm::MathUnit::kMmaSync:
      return 8e7;
    case gemm::MathUnit::kWgmma:
    case gemm::MathUnit::kTcgen05:
      return 8e8;
  }
  return 5e7;
}

void warn_if_long(const std::vector<Entry>& entries, const gemm::Shape& shape, const Options& options) {
  constexpr double kPatience = 30;
  double seconds = 0;
  for (const Entry& entry : entries) {
    seconds += static_cast<double>(shape.m) * shape.n * shape.k / emulated_rate(entry.step->unit) *
               options.relaunch * (options.pattern.empty() ? 3 : 1);
  }
  if (seconds < kPatience) return;
  const std::string about =
      seconds < 120 ? fmt::format("{:.0f} seconds", seconds) : fmt::format("{:.0f} minutes", seconds / 60);
  fmt::print("{}\n",
             fitted(fmt::format("  this is a lot for the emulator: up to about {} on one core", about)));
}

}  // namespace

bool check_shapes(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                  const Options& options, const DeviceInfo& device, nlohmann::json& checks) {
  Checks all(entries, shapes, options, device, checks);
  bool ok = true;
  for (const gemm::Shape& shape : shapes) {
    fmt::print("verifying {}\n", to_string(shape));
    print_choices(entries, shape);
    if (device.is_emulator) warn_if_long(entries, shape, options);
    std::fflush(stdout);
    ok = all.run(shape) && ok;
  }
  return ok;
}

bool check_planned(const std::vector<Entry>& entries, const Options& options, int sms,
                   nlohmann::json& checks) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<PlannedCheck> plans;
  for (const Entry& entry : entries) plans.emplace_back(entry, options, sms, false);
  // The others of a step whose default variant was meant: what is broken in them only must not pass.
  for (const Entry& entry : options.variant.empty() ? entries : std::vector<Entry>{}) {
    for (const gemm::Variant& other : entry.step->variants) {
      if (&other != entry.variant) plans.emplace_back(Entry{entry.step, &other}, options, sms, true);
    }
  }
  struct Place {
    const PlannedCheck* plan;
    std::size_t number;
    std::size_t
        after_failure;  // the next entry's first case, or the end: then the others are not worth a look
  };
  std::vector<Place> cases;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::size_t end = cases.size() + plans[i].count();
    for (std::size_t number = 0; number < plans[i].count(); ++number)
      cases.push_back({&plans[i], number, i + 1 < entries.size() ? end : std::string::npos});
  }
  const auto run = [&](std::size_t i, nlohmann::json& record) {
    return cases[i].plan->run(cases[i].number, record);
  };
  const auto after_failure = [&](std::size_t i) { return std::min(cases[i].after_failure, cases.size()); };
  const bool ok = run_side_by_side(cases.size(), side_by_side_processes(), run, after_failure, checks);
  std::int64_t launches = 0;
  for (const nlohmann::json& one : checks)
    launches += one.value("schedules", std::int64_t{1}) * one.value("launches", std::int64_t{1});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{} verified launches in {:.1f} s\n", launches, seconds.count());
  return ok;
}

}  // namespace harness
