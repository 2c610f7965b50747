#include "harness/cli/explore.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string>

#include "harness/backend/emulator_control.h"
#include "harness/backend/explore_control.h"
#include "harness/backend/name_groups.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/describe.h"
#include "harness/verify/groups.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

constexpr int kExploredKTiles = 5;

std::string schedule_file(const Options& options) {
  if (!options.replay.empty()) return options.replay;
  if (!options.schedule_file.empty()) return options.schedule_file;
  constexpr const char* kName = "failing.schedule";
  return std::filesystem::is_directory("build") ? std::string("build/") + kName : kName;
}

/// The flags on which the launch depends, each with a blank before it.
std::string flags_of(const Options& options) {
  const Options usual;
  std::string text;
  const auto add = [&](const char* flag, const auto& value, const auto& otherwise) {
    if (value != otherwise) text += fmt::format(" {} {}", flag, value);
  };
  add("--pattern", options.pattern, usual.pattern);
  add("--seed", options.seed, usual.seed);
  add("--sms", options.sms, usual.sms);
  add("--elect", options.elect, usual.elect);
  add("--groups", options.groups, usual.groups);
  add("--allow", fmt::format("{}", fmt::join(options.allow, ",")), std::string());
  add("--strict", fmt::format("{}", fmt::join(options.strict, ",")), std::string());
  if (!options.without.empty()) text += fmt::format(" --without '{}'", options.without);
  return text;
}

}  // namespace

bool explores(const Options& options) {
  return options.explore || options.shrink || !options.replay.empty();
}

gemm::Shape explored_shape(const gemm::Variant& variant) {
  return {variant.tile.m, variant.tile.n, kExploredKTiles * variant.tile.k};
}

int run_exploration(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                    const Options& options, bool has_seconds) {
  const char* const flag = options.explore ? "--explore" : options.shrink ? "--shrink" : "--replay";
  if (entries.size() != 1 || shapes.size() != 1)
    throw Error(fmt::format("{} is for one variant of one step at one shape; name one of each", flag));
  const Entry& entry = entries.front();
  const gemm::Shape shape = shapes.front();
  const std::string pattern = options.pattern.empty() ? "exact" : options.pattern;
  ProblemForm form = options.form;
  form.types = entry.variant->types;
  form.groups = parse_groups(options.groups, shape.m);
  form.capacity = parse_capacity(options.groups);
  form.placement = parse_placement(options.groups);
  const gemm::Epilogue epilogue = epilogue_of(entry, options.form.epilogue, true);
  form.epilogue = epilogue;
  Workload workload(shape, parse_pattern(pattern), options.seed, form);
  const gemm::Variant& variant = *resolved(entry, shape).variant;
  const auto run = [&] {
    name_tiles(shape, variant.tile);
    name_groups(workload.problem(epilogue));
    const gemm::Launcher launcher = gemm::prepare(variant, workload.problem(epilogue));
    workload.poison();
    launcher(nullptr);
    synchronize();
    const CheckResult result = workload.check(variant.tile, epilogue);
    return ScheduleResult{result.ok, result.ok ? "" : "wrong-result", result.report};
  };
  ScheduleRequest request{.output = {check_writable, write_text, fitted, show_progress, clear_progress}};
  request.subject = fmt::format("{} {}, {}, {}, seed {}", entry.step->name, entry.variant->name,
                                to_string(shape), pattern, options.seed);
  if (has_seconds) request.seconds = options.seconds;
  request.file = schedule_file(options);
  request.replay_command =
      fmt::format("tools/run {} {} --variant {} --backend emulator{} --replay {}", entry.step->name,
                  to_string(shape), entry.variant->name, flags_of(options), request.file);
  request.events = options.events;
  if (options.explore) return explore_schedules(request, run);
  return options.shrink ? shrink_schedule(request, run) : replay_schedule(request, run);
}

}  // namespace harness
