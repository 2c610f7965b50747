#include "harness/trace/trace_run.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/backend/backend.h"
#include "harness/backend/trace_control.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/record/commit.h"
#include "harness/record/record.h"
#include "harness/timing/timing.h"
#include "harness/trace/trace_timeline.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

void print_roles(const std::vector<TraceTimeline>& all) {
  for (const TraceTimeline& timeline : all) {
    const double length = timeline.spans.back().end - timeline.spans.front().begin;
    double other = length;
    std::string parts;
    for (const auto& [name, clocks] : clocks_by_name(timeline)) {
      parts += fmt::format("  {} {:.0f} %", name, 100 * clocks / length);
      other -= clocks;
    }
    fmt::print("  CTA {:<3} {:<22} {:>7.0f} clocks:{}  other {:.0f} %\n", timeline.cta, timeline.role, length,
               parts, 100 * other / length);
  }
}

/// The busiest SM's tensor cores, which only the model knows.
void print_tensor_cores(const TraceData& data) {
  std::map<int, double> busy;
  double end = 0;
  for (const TraceRole& role : data.roles) end = std::max(end, role.end);
  for (const EngineSpan& span : data.engines) {
    end = std::max(end, span.end);  // of all CTAs, also of those that have no tracks
    if (span.kind == EngineSpan::Kind::kTensorCores) busy[span.sm] += span.end - span.begin;
  }
  for (const auto& [sm, clocks] : busy)
    fmt::print("  SM {:<4} {:<22} {:>7.0f} clocks, {:.0f} % of {:.0f}\n", sm, "tensor cores (wgmma)", clocks,
               100 * clocks / end, end);
}

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Untraced {
  double microseconds = 0;
  TimingMode mode = TimingMode::kBurst;
};

/// What the record says about the variant at this shape.
Untraced untraced_time(const std::string& path, const gemm::Variant& variant, const gemm::Shape& shape) {
  std::ifstream file(path);
  const nlohmann::json record = nlohmann::json::parse(file, nullptr, false);
  if (record.is_discarded() || !record.contains("shapes"))
    throw Error(fmt::format("'{}' is not the record of a timed run (--time --json)", path));
  for (const auto& timed : record["shapes"]) {
    if (timed.value("m", 0) != shape.m || timed.value("n", 0) != shape.n || timed.value("k", 0) != shape.k)
      continue;
    for (const auto& contestant : timed["contestants"]) {
      if (contestant.value("variant", "") != variant.name) continue;
      const bool sustained = record.value("mode", "") == "sustained";
      return {contestant["median_us"].get<double>(), sustained ? TimingMode::kSustained : TimingMode::kBurst};
    }
  }
  throw Error(fmt::format("'{}' does not time {} at {}", path, variant.name, to_string(shape)));
}

/// What is traced: the step's own form, with the groups that were asked for.
ProblemForm traced_form(const gemm::Step& step, const gemm::Variant& variant, const TraceOptions& options) {
  ProblemForm form = form_of(step, variant);
  form.groups = options.groups;
  form.capacity = options.capacity;
  form.placement = options.placement;
  return form;
}

/// Times the traced build, with every CTA recording, in the mode in which the ordinary one was timed.
void print_gpu_overhead(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
                        const TraceOptions& options) {
  Untraced untraced;
  if (!options.untraced.empty()) untraced = untraced_time(options.untraced, variant, shape);
  trace_everywhere();
  TimingOptions timing;
  timing.mode = untraced.mode;
  timing.budget_s = 3;
  timing.seed = options.seed;
  timing.baselines = false;
  timing.form = traced_form(step, variant, options);
  const ShapeRecord record =
      time_shape(shape,
                 {{step.name, variant.name, ContestantKind::kStep,
                   [&variant](const gemm::Problem& problem) { return gemm::prepare(variant, problem); }}},
                 timing);
  const double traced = record.contestants.front().median_us;
  if (options.untraced.empty()) {
    fmt::print(
        "  overhead: the traced build takes {:.1f} us; to compare it with the ordinary build, pass that "
        "build's record (--trace-untraced; tools/run does so)\n",
        traced);
    return;
  }
  fmt::print("  overhead: {:.1f} us when every CTA records, {:.1f} us in the ordinary build, {:+.1f} %\n",
             traced, untraced.microseconds, 100 * (traced / untraced.microseconds - 1));
}

}  // namespace

gemm::Shape trace_shape(const gemm::Variant& variant, int sms, bool is_emulator) {
  if (!is_emulator) return {4096, 4096, 4096};
  constexpr int kTilesOfSm = 2;
  constexpr int kDepth = 512;
  return {kTilesOfSm * sms * variant.tile.m, variant.tile.n, kDepth};
}

int run_trace(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
              const TraceOptions& options) {
  if (!can_trace()) {
    throw Error(
        "this program was built without tracing: use tools/run NN --trace FILE, or the preset gpu-trace");
  }
  check_writable(options.path);
  const DeviceInfo device = device_info();
  constexpr double kMostProducts = 1024.0 * 1024 * 1024;  // of which the emulator remembers every operation
  if (device.is_emulator && static_cast<double>(shape.m) * shape.n * shape.k > kMostProducts) {
    throw Error(fmt::format(
        "{} is too large for a timeline on the emulator; take at most as many products as 1024x1024x1024 has",
        to_string(shape)));
  }
  Workload workload(shape, Pattern::kExact, options.seed, traced_form(step, variant, options));
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  const auto launch = [&] { launcher(nullptr); };
  double untraced_seconds = 0;
  if (device.is_emulator) {
    launch();  // memory that a first launch needs is there
    untraced_seconds = seconds_of(launch);
  }
  workload.poison();
  TraceData data;
  const double traced_seconds =
      seconds_of([&] { data = record_launch(launch, options.ctas, options.ctas_per_sm); });
  const CheckResult result = workload.check(variant.tile);
  if (!result.ok) {
    fmt::print("{} {} WRONG {}\n{}\nno timeline is written for a wrong result\n", step.name, variant.name,
               result.summary, result.report);
    return kExitMismatch;
  }
  const std::vector<TraceTimeline> all = timelines(data, variant.tile.k);
  if (all.empty())
    throw Error(fmt::format("{} has nothing to trace: timelines begin with step 05", step.name));
  nlohmann::ordered_json about = about_trace(step, variant, shape, device.sm_count, data);
  if (!data.is_model) {
    about["device"] = device.name;
    about["commit"] = commit_hash();
  }
  write_text(options.path, trace_json(data, all, about));
  fmt::print("{} {}, {}: the timeline of the first {} of {} CTAs is in {}\n", step.name, variant.name,
             to_string(shape), std::min(options.ctas, data.ctas), data.ctas, options.path);
  fmt::print("  the time axis is {}\n", time_axis(data));
  print_roles(all);
  if (data.is_model) {
    print_tensor_cores(data);
    fmt::print(
        "  overhead: the launch took the emulator {:.2f} s with recording and {:.2f} s without; the times "
        "above are the model's in both cases\n",
        traced_seconds, untraced_seconds);
  } else {
    print_gpu_overhead(step, variant, shape, options);
  }
  fmt::print("  open it at https://ui.perfetto.dev\n");
  return kExitOk;
}

}  // namespace harness
