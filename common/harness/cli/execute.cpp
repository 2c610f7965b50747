#include "harness/cli/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gemm/fitted/choosing.h"
#include "gemm/problem/check_problem.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/check.h"
#include "harness/cli/describe.h"
#include "harness/cli/explore.h"
#include "harness/cli/ledger.h"
#include "harness/cli/necessary.h"
#include "harness/cli/race.h"
#include "harness/predict/budget.h"
#include "harness/record/record.h"
#include "harness/timing/surprises.h"
#include "harness/timing/timing.h"
#include "harness/trace/trace_run.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/groups.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/necessary.h"
#include "harness/verify/types/typed.h"
#include "harness/verify/workload/workload.h"

namespace harness {
namespace {

/// Where every variant has its bias and its activation compiled in, the first one that has any says what the
/// opponents compute. Where their biases differ, there is one for each of them.
void choose_fixed(const std::vector<Entry>& entries, ProblemForm& form) {
  const auto fixed_of = [&](const Entry& entry) {
    return gemm::with_fixed(entry.variant->epilogues, form.epilogue);
  };
  const auto is_fixed = [](const Entry& entry) { return entry.variant->epilogues.fixed; };
  form.has_bias = std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return fixed_of(entry).bias != fixed_of(entries.front()).bias;
  });
  if (!std::all_of(entries.begin(), entries.end(), is_fixed)) return;
  const auto first = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return !fixed_of(entry).is_plain(); });
  form.epilogue = fixed_of(first == entries.end() ? entries.front() : *first);
}

/// What the flags say of the epilogue; what they leave open is what the steps compute unless asked, where all
/// of them agree. Throws Error where an entry does not compute it.
void choose_epilogue(const std::vector<Entry>& entries, Options& options, const CLI::App& app) {
  const auto given = [&app](const char* flag) { return app.get_option(flag)->count() > 0; };
  const gemm::Epilogue& shown = entries.front().step->epilogue;
  gemm::Epilogue& epilogue = options.form.epilogue;
  if (std::all_of(entries.begin(), entries.end(),
                  [&](const Entry& one) { return one.step->epilogue == shown; }))
    epilogue = shown;
  const bool alone = entries.size() == 1;
  if (!std::any_of(entries.begin(), entries.end(),
                   [](const Entry& one) { return one.variant->epilogues.source; }))
    epilogue.beta = 0;
  choose_fixed(entries, options.form);
  if (given("--alpha")) epilogue.alpha = static_cast<float>(options.alpha);
  if (given("--beta")) epilogue.beta = static_cast<float>(options.beta);
  if (given("--bias")) epilogue.bias = parse_bias(options.bias);
  if (given("--activation")) epilogue.activation = parse_activation(options.activation);
  if (given("--top-k")) {
    epilogue.top_k = options.top_k;
    if (!std::any_of(entries.begin(), entries.end(),
                     [](const Entry& one) { return needs_whole_rows(*one.variant); }))
      throw Error("--top-k is for an epilogue that takes the largest of a row: give a --variant that does");
  }
  for (const char* flag : kEpilogueFlags) options.own_epilogue = options.own_epilogue || given(flag);
  for (const char* flag : kPlaceFlags) {
    if (!given(flag)) continue;
    options.own_epilogue = true;
    const bool is_bias = std::string(flag) == "--bias-length";
    if (std::string(flag).starts_with("--aux")) {
      if (gemm::is_read(epilogue.auxiliary) || gemm::is_written(epilogue.auxiliary)) continue;
      throw Error(std::string(flag) + " says where an auxiliary tensor lies, but the epilogue has none: " +
                  "give a --variant that has one");
    }
    if (is_bias && epilogue.bias == gemm::Bias::kNone)
      throw Error(
          "--bias-length says how long the bias is, but there is none: give --bias column or --bias row");
    if (!is_bias && epilogue.beta == 0)
      throw Error(std::string(flag) + " says where C lies, but C is not read: give a --beta that is not 0");
  }
  options.form.in_place = options.in_place;
  options.form.c_pitch = options.c_pitch;
  options.form.c_offset = options.c_offset;
  options.form.bias_length = options.bias_length;
  options.form.aux_pitch = options.aux_pitch;
  options.form.aux_offset = options.aux_offset;
  options.form.types = entries.front().variant->types;
  for (const Entry& entry : entries) {
    // A race's results are held to what the least accurate of its kernels promises.
    int& promotion = options.form.types.promotion;
    const int promised = entry.variant->types.promotion;
    promotion = promised == 0 || promotion == 0 ? 0 : std::max(promotion, promised);
    // And so does its opponent, which has the weights in bf16.
    options.form.types.rounds_weights |= entry.variant->types.rounds_weights;
    options.form.has_source = options.form.has_source || entry.variant->epilogues.source;
    gemm::Epilogue asked = epilogue_of(entry, epilogue, alone);
    if (given("--bias")) asked.bias = epilogue.bias;
    if (given("--activation")) asked.activation = epilogue.activation;
    const std::string problem = epilogue_problem(*entry.step, *entry.variant, asked);
    if (!problem.empty()) throw Error(problem);
  }
}

/// --trace wants one variant and one shape.
int trace_entry(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                const Options& options) {
  if (entries.size() != 1 || shapes.size() != 1)
    throw Error("--trace records one variant of one step at one shape; name one of each");
  TraceOptions trace = options.trace;
  trace.groups = parse_groups(options.groups, shapes.front().m);
  trace.capacity = parse_capacity(options.groups);
  trace.placement = parse_placement(options.groups);
  return run_trace(*entries.front().step, *entries.front().variant, shapes.front(), trace);
}

/// One that every step takes: in step 45 N is a multiple of 64 rows of weights, and K of the 128 that share a
/// scale.
gemm::Shape default_shape(const DeviceInfo& device) {
  return device.is_emulator ? gemm::Shape{200, 192, 384} : gemm::Shape{4096, 4096, 4096};
}

void check_device(const gemm::Step& step, const DeviceInfo& device) {
  if (const std::string problem = step_problem(step, device); !problem.empty()) throw Error(problem);
}

/// Groups are rows of a shape, and every step that is named must take them; but for a step that is raced
/// against one that does: it multiplies as many rows by one B.
void check_groups(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                  const Options& options) {
  if (options.groups.empty()) return;
  const int capacity = parse_capacity(options.groups);
  if (shapes.empty()) throw Error("--groups divides the rows of A, so it needs a shape: name one, MxNxK");
  const bool is_race = options.time && std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
                         return entry.variant->takes_groups();
                       });
  for (const Entry& entry : entries) {
    if (is_race && !entry.variant->takes_groups()) continue;
    if (!entry.variant->takes_groups())
      throw Error(fmt::format("step {} multiplies all rows of A by one B: --groups is for steps 52 to 55",
                              entry.step->name));
    if (parse_placement(options.groups) != 0 && !entry.variant->takes_placed_groups())
      throw Error(fmt::format(
          "step {} takes groups that are rows of one A: leave out the @ and what follows it, or take step 54",
          entry.step->name));
    if ((parse_placement(options.groups) & kOwnSizesPlaced) != 0 &&
        entry.variant->groups != gemm::GroupForm::kPlacedSizes)
      throw Error(
          fmt::format("the variant {} takes groups of one N and one K: leave out the x at the end, or "
                      "take the variant own_sizes of step 54",
                      entry.variant->name));
    const bool is_masked = entry.variant->groups == gemm::GroupForm::kMasked;
    if (is_masked != (capacity > 0))
      throw Error(is_masked
                      ? fmt::format("step {} takes groups with room for as many rows each: append it to the "
                                    "counts, --groups 16,0,64/64",
                                    entry.step->name)
                      : fmt::format("step {} takes groups that follow one another: leave out the /{} "
                                    "after their sizes, or take step 53",
                                    entry.step->name, capacity));
  }
  for (const gemm::Shape& shape : shapes) {
    const std::vector<gemm::GroupRows> groups = parse_groups(options.groups, shape.m);
    const std::string rule = capacity > 0 ? gemm::violated_capacity_rule(groups, capacity, shape)
                                          : gemm::violated_group_rule(groups, shape);
    if (!rule.empty()) throw Error(rule);
    for (const Entry& entry : entries) {
      if (entry.variant->groups != gemm::GroupForm::kStrided) continue;
      if (const std::string batch_rule = gemm::violated_batch_rule(groups); !batch_rule.empty())
        throw Error(fmt::format("the variant {} of step {} takes a strided batch: {}", entry.variant->name,
                                entry.step->name, batch_rule));
    }
  }
}

void check_memory(const gemm::Shape& shape, ProblemForm form, const Options& options,
                  const DeviceInfo& device) {
  form.groups = parse_groups(options.groups, shape.m);
  const std::int64_t needed = workload_bytes(shape, form);
  if (needed <= device.memory_free_bytes) return;
  throw Error(fmt::format("{} needs {} of memory for {}, but {} of {} are free", to_string(shape),
                          human_bytes(static_cast<double>(needed)),
                          form.has_source ? "A, B, C and D" : "A, B and D",
                          human_bytes(static_cast<double>(device.memory_free_bytes)),
                          human_bytes(static_cast<double>(device.memory_bytes))));
}

void apply_emulator_options(const Options& options, const DeviceInfo& device, const CLI::App& app) {
  if (!device.is_emulator) {
    for (const char* flag : {"--counters", "--ledger", "--schedule-seed", "--completion", "--elect", "--sms",
                             "--allow", "--strict", "--trace-ctas-per-sm", "--explore", "--shrink",
                             "--replay", "--schedule", "--html-data", "--necessary", "--without"}) {
      if (app.get_option(flag)->count() > 0)
        throw Error(
            fmt::format("{} belongs to the emulator, but this program was built for the GPU: use tools/run "
                        "--backend emulator",
                        flag));
    }
    return;
  }
  const std::map<std::string, Completion> completions{
      {"random", Completion::kRandom}, {"earliest", Completion::kEarliest}, {"latest", Completion::kLatest}};
  switch_course_rules(options.allow, options.strict);
  elect_lowest_lane(options.elect == "lowest");
  control_emulator({.schedule_seed = options.schedule_seed,
                    .completion = completions.at(options.completion),
                    .sm_count = options.sms,
                    .counters = options.counters});
}

/// Whether steps that choose by shape ask the learned correction.
void choose_by(const std::vector<Entry>& entries, const Options& options) {
  if (!options.by_arithmetic) return;
  const auto chooses = [](const Entry& entry) { return entry.step->variants.front().choose != nullptr; };
  if (std::none_of(entries.begin(), entries.end(), chooses))
    throw Error(fmt::format(
        "--by-arithmetic is for a step that chooses by shape, as 22_peak does, but {} has only one plan",
        entries.front().step->name));
  gemm::choosing = gemm::Choosing::kByArithmetic;
}

/// A budget needs no device: without a usable one it is for an H200 as documented.
DeviceInfo device_or_assumption() {
  try {
    return device_info();
  } catch (const Error&) {
    return documented_h200();
  }
}

/// --autotune is for a GPU and for steps that choose.
void check_autotune(const std::vector<Entry>& entries, const DeviceInfo& device) {
  if (device.is_emulator)
    throw Error("--autotune needs a GPU: the emulator checks rules and results and says nothing about speed");
  if (std::none_of(entries.begin(), entries.end(),
                   [](const Entry& entry) { return entry.variant->choose != nullptr; }))
    throw Error("--autotune is for the variant 'auto' of a step that has one: 22_peak");
}

/// Flags that say how to time, where nothing is timed.
void refuse_timing_options(const CLI::App& app, const DeviceInfo& device, bool planned) {
  for (const std::string flag : {"--mode", "--rounds", "--seconds", "--quick", "--no-baselines"}) {
    if (flag == "--quick" && planned) continue;  // one seed
    if (app.get_option(flag)->count() > 0)
      throw Error(fmt::format(
          "{} says how to time, but nothing is timed: {}", flag,
          device.is_emulator ? "the emulator says nothing about speed" : "add --time, or leave it out"));
  }
}

/// The injected faults of every entry; the worst exit status.
int inject_all(const std::vector<Entry>& entries) {
  int status = kExitOk;
  for (const Entry& entry : entries)
    status = std::max(status, run_injected_faults(*entry.step, *entry.variant));
  return status;
}

/// What this machine or these steps cannot do, before anything runs.
void refuse_impossible(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                       const Options& options, const DeviceInfo& device) {
  if (!options.suite.empty() && device.is_emulator)
    throw Error("--suite needs a GPU: its shapes are too large for the emulator");
  if (options.population > 0 && device.is_emulator)
    throw Error("--population needs a GPU: its shapes are too large for the emulator");
  for (const std::string& file : {options.json, options.html_data})
    if (!file.empty()) check_writable(file);
  for (const Entry& entry : entries) check_device(*entry.step, device);
  for (const gemm::Shape& shape : shapes) check_memory(shape, options.form, options, device);
  if (!options.pattern.empty()) parse_pattern(options.pattern);
  if (options.time && device.is_emulator)
    throw Error("--time needs a GPU: the emulator checks rules and results and says nothing about speed");
  if (options.autotune) check_autotune(entries, device);
}

/// A race is about one problem, and has to say what its opponents compute.
void refuse_several_tensors(const std::vector<Entry>& entries) {
  const auto tensors_of = [](const Entry& entry) {
    return std::pair(entry.variant->epilogues.auxiliary, entry.variant->epilogues.reduction);
  };
  for (const Entry& entry : entries) {
    if (tensors_of(entry) == tensors_of(entries.front())) continue;
    throw Error(
        fmt::format("{} and {} have different tensors in their epilogues, but a race is about one problem: "
                    "name variants with the same tensors",
                    entries.front().variant->name, entry.variant->name));
  }
}

/// A race is about one problem.
void refuse_several_types(const std::vector<Entry>& entries) {
  const gemm::Variant& first = *entries.front().variant;
  for (const Entry& entry : entries) {
    if (entry.variant->types.same_elements(first.types)) continue;
    throw Error(fmt::format(
        "{} multiplies {} and {} multiplies {}, but a race is about one problem: name variants of one type",
        first.name, to_string(first.types), entry.variant->name, to_string(entry.variant->types)));
  }
}

}  // namespace

int execute(const Selection& selection, Options options, const CLI::App& app) {
  const std::vector<Entry>& entries = selection.entries;
  std::vector<gemm::Shape> shapes = selection.shapes;
  const DeviceInfo device = options.budget ? device_or_assumption() : device_info();
  choose_epilogue(entries, options, app);
  choose_by(entries, options);
  apply_emulator_options(options, device, app);
  if (options.inject_faults && !shapes.empty())
    throw Error(fmt::format(
        "--inject-faults uses a shape of its own, to which every kind of damage applies: leave out {}",
        to_string(shapes.front())));
  if (shapes.empty() && (options.ledger || !options.trace.path.empty()))
    shapes.push_back(trace_shape(*entries.front().variant, options.sms, device.is_emulator));
  if (shapes.empty() && explores(options)) shapes.push_back(explored_shape(*entries.front().variant));
  // Without a shape the emulator checks what exercises each variant.
  check_groups(entries, shapes, options);
  const bool planned = shapes.empty() && device.is_emulator && !options.budget && !options.counters;
  if (shapes.empty() && !planned) shapes.push_back(default_shape(device));
  for (const gemm::Shape& shape : shapes) {
    for (const Entry& entry : entries) check_contract(*entry.step, shape);
  }
  if (options.budget) {
    print_budgets(entries, shapes, device, options.gpu);
    return kExitOk;
  }
  refuse_impossible(entries, shapes, options, device);
  const bool time =
      options.time || (!options.check && !options.inject_faults && !options.counters && !device.is_emulator);
  if (!time && !options.autotune && !explores(options) && !options.necessary)
    refuse_timing_options(app, device, planned);
  if (time && options.form.types.has_weights()) options.form.types.rounds_weights = true;
  if (time) refuse_several_types(entries);
  if (time) refuse_several_tensors(entries);
  if (time && !options.time) options.quick = true;
  options.form.saturates = !time;  // what is raced can be right in every contestant

  if (!options.without.empty()) {
    if (entries.size() != 1) throw Error("--without is for one variant of one step; name one");
    leave_out_named(ordering_statements(*entries.front().step, *entries.front().variant), options.without);
    apply_emulator_options(options, device, app);
  }
  print_header(device_info());  // with the number of SMs that was asked for
  if (options.necessary) return run_necessary(entries, options, app.get_option("--seconds")->count() > 0);
  if (!options.trace.path.empty()) return trace_entry(entries, shapes, options);
  if (options.ledger) {
    if (entries.size() != 1 || shapes.size() != 1)
      throw Error("--ledger is for one variant of one step at one shape; name one of each");
    return run_ledger(*entries.front().step, *entries.front().variant, shapes.front(), options);
  }
  if (options.autotune) autotune(entries, shapes, options, device);
  if (options.inject_faults) return inject_all(entries);
  if (explores(options))
    return run_exploration(entries, shapes, options, app.get_option("--seconds")->count() > 0);

  if (options.population > 0) {  // every contestant is verified after its launches
    time_population(entries, shapes, options, device);
    return kExitOk;
  }
  nlohmann::json checks = nlohmann::json::array();
  const int sms = app.get_option("--sms")->count() > 0 ? options.sms : 0;
  const bool ok = planned ? check_planned(entries, options, sms, checks)
                          : check_shapes(entries, shapes, options, device, checks);
  if (!ok) fmt::print("FAILED: no time is shown for a wrong result\n");
  if (const std::string wanted = record_wanted(*entries.front().step, device); ok && !wanted.empty())
    fmt::print("{}\n", wanted);
  if (!ok || !time) {
    if (!options.json.empty()) {
      const Record about = new_record(device, {});
      write_record(options.json, {{"schema", kRecordSchema},
                                  {"device", {{"name", device.name}}},
                                  {"commit", about.commit},
                                  {"date", about.date},
                                  {"checks", checks}});
    }
    return ok ? kExitOk : kExitMismatch;
  }
  // time_shape() verifies what the timed launches left behind: no time is shown for a wrong result.
  if (options.suite == "public") {
    time_suite(entries, options, device, checks);
  } else {
    time_modes(entries, shapes, options, device, checks);
  }
  return kExitOk;
}

}  // namespace harness
