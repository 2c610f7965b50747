#include "harness/cli/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <optional>

#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/program.h"
#include "harness/predict/autotune.h"
#include "harness/predict/budget.h"
#include "harness/record/json.h"
#include "harness/record/suite.h"
#include "harness/timing/surprises.h"
#include "harness/timing/timing.h"
#include "harness/trace/trace_run.h"
#include "harness/verify/injected_faults.h"
#include "harness/verify/workload.h"

namespace harness {
namespace {

/// A step with the variant that takes part.
struct Entry {
  const gemm::Step* step = nullptr;
  const gemm::Variant* variant = nullptr;
};

// The suite has many shapes and is to take a few minutes, verification included.
constexpr double kSuiteSeconds = 6;
constexpr double kSuiteSustainedFactor = 2;

/// --trace wants one variant and one shape.
int trace_entry(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                const TraceOptions& trace) {
  if (entries.size() != 1 || shapes.size() != 1)
    throw Error("--trace records one variant of one step at one shape; name one of each");
  return run_trace(*entries.front().step, *entries.front().variant, shapes.front(), trace);
}

/// Parses; returns an exit status when the program should end now (--help, bad flags).
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    refuse_conflicts(app);
    return std::nullopt;
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw Error(parse_sentence(app, {argv + 1, argv + argc}, error));
  }
}

gemm::Shape default_shape(const DeviceInfo& device) {
  return device.is_emulator ? gemm::Shape{200, 136, 72} : gemm::Shape{4096, 4096, 4096};
}

void print_header(const DeviceInfo& device) {
  if (device.is_emulator) {
    fmt::print("emulator: {} SMs; it checks rules and results and says nothing about speed\n",
               device.sm_count);
  } else {
    fmt::print("{}: {} SMs, compute capability {}.{}, driver {}, CUDA {}\n", device.name, device.sm_count,
               device.compute_capability / 10, device.compute_capability % 10, device.driver_version,
               device.runtime_version);
  }
}

void check_device(const gemm::Step& step, const DeviceInfo& device) {
  if (const std::string problem = step_problem(step, device); !problem.empty()) throw Error(problem);
}

void check_memory(const gemm::Shape& shape, const DeviceInfo& device) {
  const std::int64_t needed = workload_bytes(shape);
  if (needed <= device.memory_free_bytes) return;
  throw Error(fmt::format("{} needs {} of memory for A, B and D, but {} of {} are free", to_string(shape),
                          human_bytes(static_cast<double>(needed)),
                          human_bytes(static_cast<double>(device.memory_free_bytes)),
                          human_bytes(static_cast<double>(device.memory_bytes))));
}

/// What runs for this shape: for a variant that chooses, one of the others.
ResolvedVariant resolved(const Entry& entry, const gemm::Shape& shape) {
  if (entry.variant->choose == nullptr) return {entry.variant, ""};
  return resolve(*entry.step, *entry.variant, shape, device_info(), TunedChoices(autotune_file()));
}

/// A line for each entry that chooses by shape: what it chose, and why.
void print_choices(const std::vector<Entry>& entries, const gemm::Shape& shape) {
  for (const Entry& entry : entries) {
    const ResolvedVariant choice = resolved(entry, shape);
    if (choice.variant != entry.variant)
      fmt::print("  {} chose {}: {}\n", entry.step->name, choice.variant->name, choice.why);
  }
}

/// Many kernels that are checked only because they will be timed: a line for each pattern is enough.
bool is_brief(const std::vector<Entry>& entries, const Options& options, const DeviceInfo& device) {
  constexpr std::size_t kFew = 3;
  return entries.size() > kFew && !options.check && !device.is_emulator;
}

/// Runs one entry on one workload: poison, launch, check. Prints a line unless all is well and `brief`;
/// prints the report and returns false on a mismatch.
bool check_entry(const Entry& entry, Workload& workload, const Options& options, const std::string& pattern,
                 bool brief, nlohmann::json& checks) {
  const gemm::Variant& variant = *resolved(entry, workload.gemm().shape).variant;
  const gemm::Launcher launcher = variant.prepare(workload.gemm());
  workload.poison();
  for (int i = 0; i < options.relaunch; ++i) launcher(nullptr);
  synchronize();
  const CheckResult result = workload.check(variant.tile);
  const std::string relaunched =
      options.relaunch > 1 ? fmt::format(" after {} launches", options.relaunch) : "";
  if (!result.ok || !brief)
    fmt::print("  {:<26} {:<25} {:<5} {}{}\n", entry.step->name, entry.variant->name,
               result.ok ? "ok" : "WRONG", result.summary, relaunched);
  if (!result.ok) fmt::print("{}\n", result.report);
  std::fflush(stdout);
  const gemm::Shape shape = workload.gemm().shape;
  checks.push_back({{"step", entry.step->name},
                    {"variant", entry.variant->name},
                    {"m", shape.m},
                    {"n", shape.n},
                    {"k", shape.k},
                    {"pattern", pattern},
                    {"launches", options.relaunch},
                    {"ok", result.ok},
                    {"summary", result.summary}});
  return result.ok;
}

bool check_all(const std::vector<Entry>& entries, const gemm::Shape& shape, const Options& options,
               const DeviceInfo& device, nlohmann::json& checks) {
  std::vector<std::string> patterns{"exact", "normal", "uniform"};
  if (options.suite) patterns = {"exact"};  // the most severe; after timing the random inputs are checked
  if (!options.pattern.empty()) patterns = {options.pattern};
  const bool brief = is_brief(entries, options, device);
  bool ok = true;
  for (const std::string& pattern : patterns) {
    Workload workload(shape, parse_pattern(pattern), options.seed);
    std::size_t good = 0;
    for (const Entry& entry : entries) {
      good += check_entry(entry, workload, options, pattern, brief, checks) ? 1 : 0;
      if (options.counters) fmt::print("\n{}\n", take_emulator_counters());
    }
    if (brief) fmt::print("  {:<7} {} of {} kernels ok\n", pattern, good, entries.size());
    ok = ok && good == entries.size();
    if (options.counters) break;  // the counts do not depend on the values
  }
  return ok;
}

/// One line about the shape that was timed last: the table comes when all of them are.
void print_timed(const Record& record) {
  const ShapeRecord& shape = record.shapes.back();
  fmt::print("timed {} {}: {} contestants, {} rounds\n", to_string(shape.shape), to_string(record.mode),
             shape.contestants.size(), shape.contestants.front().samples_us.size());
  std::fflush(stdout);
}

/// Seconds for one shape. In the suite the sustained shapes get more, because the clock has to settle first.
double time_budget(TimingMode mode, const Options& options) {
  const double seconds = options.quick ? std::min(options.seconds, 3.0) : options.seconds;
  return options.suite && mode == TimingMode::kSustained ? kSuiteSustainedFactor * seconds : seconds;
}

/// What an entry that chooses by shape chose for a shape, for the record.
void record_choice(const Entry& entry, ShapeRecord& shape) {
  const ResolvedVariant choice = resolved(entry, shape.shape);
  if (choice.variant == entry.variant) return;
  for (ContestantRecord& contestant : shape.contestants) {
    if (contestant.kind != ContestantKind::kStep || contestant.name != entry.step->name ||
        contestant.variant != entry.variant->name)
      continue;
    contestant.chosen = choice.variant->name;
    contestant.why = choice.why;
  }
}

Record time_all(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes, TimingMode mode,
                const Options& options, const DeviceInfo& device) {
  TimingOptions timing;
  timing.mode = mode;
  timing.rounds = options.rounds;
  timing.budget_s = time_budget(mode, options);
  timing.pattern = options.pattern.empty() ? "normal" : options.pattern;
  timing.seed = options.seed;
  timing.baselines = !options.no_baselines;
  timing.progress = show_progress;

  std::vector<Contestant> contestants;
  for (const Entry& entry : entries) {
    contestants.push_back(
        {entry.step->name, entry.variant->name, ContestantKind::kStep,
         [&entry](const gemm::Gemm& gemm) { return resolved(entry, gemm.shape).variant->prepare(gemm); }});
  }
  Record record = new_record(device, timing);
  for (const gemm::Shape& shape : shapes) {
    record.shapes.push_back(time_shape(shape, contestants, timing));
    clear_progress();
    for (const Entry& entry : entries) record_choice(entry, record.shapes.back());
    if (options.suite) print_timed(record);
    record.rounds =
        std::max(record.rounds, static_cast<int>(record.shapes.back().contestants.front().samples_us.size()));
  }
  return record;
}

std::vector<TimingMode> modes(const Options& options) {
  if (options.mode == "both") return {TimingMode::kBurst, TimingMode::kSustained};
  return {options.mode == "burst" ? TimingMode::kBurst : TimingMode::kSustained};
}

/// "out.json" -> "out_sustained.json", for the second record of --mode both.
std::string sustained_path(const std::string& path) {
  const auto dot = path.rfind(".json");
  return dot == std::string::npos ? path + "_sustained" : path.substr(0, dot) + "_sustained.json";
}

void apply_emulator_options(const Options& options, const DeviceInfo& device, const CLI::App& app) {
  if (!device.is_emulator) {
    for (const char* flag : {"--counters", "--schedule-seed", "--completion", "--sms"}) {
      if (app.get_option(flag)->count() > 0)
        throw Error(
            fmt::format("{} belongs to the emulator and this program was built for the GPU: use tools/run "
                        "--backend emulator",
                        flag));
    }
    return;
  }
  const std::map<std::string, Completion> completions{
      {"random", Completion::kRandom}, {"earliest", Completion::kEarliest}, {"latest", Completion::kLatest}};
  control_emulator({.schedule_seed = options.schedule_seed,
                    .completion = completions.at(options.completion),
                    .sm_count = options.sms,
                    .counters = options.counters});
}

void print_budgets(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                   const DeviceInfo& device) {
  // A persistent kernel asks how many CTAs fit: on the GPU that the budget assumes.
  if (device.is_emulator) control_emulator({.sm_count = documented_h200().sm_count});
  for (const Entry& entry : entries) {
    for (const gemm::Shape& shape : shapes) {
      const ResolvedVariant choice =
          resolve(*entry.step, *entry.variant, shape, device, TunedChoices(autotune_file()));
      if (!choice.why.empty())
        fmt::print("{} chose {}: {}\n", entry.step->name, choice.variant->name, choice.why);
      fmt::print("{}\n", budget_text(*entry.step, *choice.variant, shape, device));
    }
  }
}

/// The emulator takes about a second for 256 x 256 x 256 and three patterns.
void warn_if_long(const gemm::Shape& shape) {
  constexpr double kQuick = 512.0 * 512 * 512;
  if (static_cast<double>(shape.m) * shape.n * shape.k > kQuick)
    fmt::print("  this is a lot for the emulator and may take many minutes; 256x256x256 takes seconds\n");
}

/// A budget needs no device: without a usable one it is for an H200 as documented.
DeviceInfo device_or_assumption() {
  try {
    return device_info();
  } catch (const Error&) {
    return documented_h200();
  }
}

/// Prints a line for each check; false when one of them failed.
bool check_shapes(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                  const Options& options, const DeviceInfo& device, nlohmann::json& checks) {
  bool ok = true;
  for (const gemm::Shape& shape : shapes) {
    fmt::print("verifying {}\n", to_string(shape));
    print_choices(entries, shape);
    if (device.is_emulator) warn_if_long(shape);
    std::fflush(stdout);
    ok = check_all(entries, shape, options, device, checks) && ok;
  }
  return ok;
}

/// The shapes in one mode or both: a table and a record for each.
void time_modes(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                const Options& options, const DeviceInfo& device, const nlohmann::json& checks) {
  for (const TimingMode mode : modes(options)) {
    const Record record = time_all(entries, shapes, mode, options, device);
    fmt::print("\n{}", human_table(record));
    std::fflush(stdout);
    if (options.json.empty()) continue;
    nlohmann::json json = record;
    json["checks"] = checks;
    write_json(mode == modes(options).front() ? options.json : sustained_path(options.json), json);
  }
}

/// Both modes over the suite's shapes: one table and one record.
void time_suite(const std::vector<Entry>& entries, const Options& options, const DeviceInfo& device,
                const nlohmann::json& checks) {
  const SuiteRecord suite{
      .burst = time_all(entries, suite_burst_shapes(), TimingMode::kBurst, options, device),
      .sustained = time_all(entries, suite_sustained_shapes(), TimingMode::kSustained, options, device)};
  fmt::print("\n{}", human_table(suite));
  std::fflush(stdout);
  if (options.json.empty()) return;
  nlohmann::json json = suite;
  json["checks"] = checks;
  write_json(options.json, json);
}

/// Races the variants of every step that chooses by shape, and remembers the fastest for each shape.
void autotune(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
              const Options& options, const DeviceInfo& device) {
  TunedChoices tuned(autotune_file());
  TimingOptions timing;
  timing.budget_s = std::min(options.seconds, 3.0);
  timing.seed = options.seed;
  timing.baselines = false;
  timing.progress = show_progress;
  const Record record = new_record(device, timing);
  for (const Entry& entry : entries) {
    if (entry.variant->choose == nullptr) continue;
    std::vector<Contestant> contestants;
    for (const gemm::Variant& variant : entry.step->variants) {
      if (variant.choose == nullptr)
        contestants.push_back({entry.step->name, variant.name, ContestantKind::kStep, variant.prepare});
    }
    for (const gemm::Shape& shape : shapes) {
      const ShapeRecord race = time_shape(shape, contestants, timing);
      clear_progress();
      const auto fastest = std::min_element(
          race.contestants.begin(), race.contestants.end(),
          [](const auto& one, const auto& other) { return one.median_us < other.median_us; });
      const std::string by_model = entry.variant->choose(shape).variant;
      fmt::print("autotune {} {}: {} takes {}", entry.step->name, to_string(shape), fastest->variant,
                 human_time(fastest->median_us));
      for (const ContestantRecord& one : race.contestants) {
        if (one.variant == by_model && &one != &*fastest)
          fmt::print("; the model would have chosen {}, {}", by_model, human_time(one.median_us));
      }
      fmt::print("\n");
      std::fflush(stdout);
      tuned.remember(device, entry.step->name, shape,
                     {fastest->variant, fastest->median_us, record.date, record.commit});
    }
  }
  tuned.save();
  fmt::print("remembered in {}\n", tuned.file().string());
}

/// --autotune is for a GPU and for steps that choose.
void check_autotune(const std::vector<Entry>& entries, const DeviceInfo& device) {
  if (device.is_emulator)
    throw Error("--autotune needs a GPU: the emulator checks rules and results and says nothing about speed");
  if (std::none_of(entries.begin(), entries.end(),
                   [](const Entry& entry) { return entry.variant->choose != nullptr; }))
    throw Error("--autotune is for the variant 'auto' of a step that has one: 19_peak");
}

/// Flags that say how to time, where nothing is timed.
void refuse_timing_options(const CLI::App& app, const DeviceInfo& device) {
  for (const char* flag : {"--mode", "--rounds", "--seconds", "--quick", "--no-baselines"}) {
    if (app.get_option(flag)->count() > 0)
      throw Error(fmt::format(
          "{} says how to time, and nothing is timed: {}", flag,
          device.is_emulator ? "the emulator says nothing about speed" : "take --time, or leave it out"));
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
  if (options.suite && device.is_emulator)
    throw Error("--suite needs a GPU: its shapes are too large for the emulator");
  if (!options.json.empty()) check_writable(options.json);
  for (const Entry& entry : entries) check_device(*entry.step, device);
  for (const gemm::Shape& shape : shapes) check_memory(shape, device);
  if (!options.pattern.empty()) parse_pattern(options.pattern);
  if (options.time && device.is_emulator)
    throw Error("--time needs a GPU: the emulator checks rules and results and says nothing about speed");
  if (options.autotune) check_autotune(entries, device);
}

int execute(const std::vector<Entry>& entries, std::vector<gemm::Shape> shapes, Options options,
            const CLI::App& app) {
  const DeviceInfo device = options.budget ? device_or_assumption() : device_info();
  apply_emulator_options(options, device, app);
  if (options.inject_faults && !shapes.empty() && !options.budget)
    throw Error(fmt::format(
        "--inject-faults takes a shape of its own, one that every kind of damage fits: leave out {}",
        to_string(shapes.front())));
  if (shapes.empty() && !options.trace.path.empty())
    shapes.push_back(trace_shape(*entries.front().variant, options.sms, device.is_emulator));
  if (shapes.empty()) shapes.push_back(default_shape(device));
  for (const gemm::Shape& shape : shapes) {
    for (const Entry& entry : entries) check_contract(*entry.step, shape);
  }
  if (options.budget) {
    print_budgets(entries, shapes, device);
    return kExitOk;
  }
  refuse_impossible(entries, shapes, options, device);
  const bool time =
      options.time || (!options.check && !options.inject_faults && !options.counters && !device.is_emulator);
  if (!time && !options.autotune) refuse_timing_options(app, device);
  if (time && !options.time) options.quick = true;

  print_header(device_info());  // with the number of SMs that was asked for
  if (!options.trace.path.empty()) return trace_entry(entries, shapes, options.trace);
  if (options.autotune) autotune(entries, shapes, options, device);
  if (options.inject_faults) return inject_all(entries);

  nlohmann::json checks = nlohmann::json::array();
  const bool ok = check_shapes(entries, shapes, options, device, checks);
  if (!ok) fmt::print("FAILED: no time is shown for a wrong result\n");
  if (!ok || !time) {
    if (!options.json.empty()) write_json(options.json, {{"schema", 1}, {"checks", checks}});
    return ok ? kExitOk : kExitMismatch;
  }
  // time_shape() verifies what the timed launches left behind: no time is shown for a wrong result.
  if (options.suite) {
    time_suite(entries, options, device, checks);
  } else {
    time_modes(entries, shapes, options, device, checks);
  }
  return kExitOk;
}

void print_variants(const std::vector<const gemm::Step*>& steps) {
  for (const gemm::Step* step : steps) {
    fmt::print("{}: {}\n", step->name, step->title);
    for (const gemm::Variant& variant : step->variants) {
      fmt::print("  {:<16} {}{}\n", variant.name, variant.summary,
                 &variant == &step->variants.front() ? " (default)" : "");
    }
  }
}

/// "" -> the default, "all" -> every variant, "a,b" -> these.
std::vector<Entry> select_variants(const gemm::Step& step, const std::string& names) {
  std::vector<Entry> entries;
  if (names == "all") {
    for (const gemm::Variant& variant : step.variants) entries.push_back({&step, &variant});
    return entries;
  }
  std::size_t begin = 0;
  while (begin <= names.size()) {
    const std::size_t comma = std::min(names.find(',', begin), names.size());
    if (comma == begin && !names.empty())
      throw Error(fmt::format("the list of variants '{}' has an empty name in it; write a or a,b", names));
    entries.push_back({&step, &find_variant(step, names.substr(begin, comma - begin))});
    begin = comma + 1;
  }
  return entries;
}

bool looks_like_shape(const std::string& word) {
  return word.find_first_not_of("0123456789xX-+.") == std::string::npos &&
         word.find_first_of("xX") != std::string::npos;
}

int run_step(int argc, char** argv, const gemm::Step& step) {
  return guarded([&] {
    Options options;
    CLI::App app{fmt::format("{}: {}", step.name, step.title), step.name};
    app.add_option("shape", options.positional,
                   "MxNxK, or one number for a cube (default: a small one that shows edges; 4096 on a GPU)");
    app.add_option("--variant", options.variant, "One variant, several (a,b) or all; --list shows them");
    add_options(app, options);
    if (const auto status = parse(app, argc, argv)) return *status;
    if (options.list) {
      print_variants({&step});
      return kExitOk;
    }
    std::vector<gemm::Shape> shapes;
    for (const std::string& word : options.positional) shapes.push_back(parse_shape(word));
    return execute(select_variants(step, options.variant), shapes, options, app);
  });
}

/// What --suite races when no step is named: the last one, and the one before it to show what the last one
/// adds.
std::vector<Entry> last_two(const std::vector<const gemm::Step*>& steps) {
  std::vector<Entry> entries;
  for (std::size_t i = steps.size() - std::min<std::size_t>(2, steps.size()); i < steps.size(); ++i)
    entries.push_back({steps[i], &steps[i]->variants.front()});
  return entries;
}

/// The step that a word of the comparison names. A small number that names none may have been meant as a
/// cube.
const gemm::Step& named_step(const std::vector<const gemm::Step*>& steps, std::string_view word) {
  try {
    return find_step(steps, word);
  } catch (const Error& error) {
    if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos) throw;
    throw Error(fmt::format("{} (a cube of that size is {}x{}x{})", error.what(), word, word, word));
  }
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
          "--suite times its shapes in burst and two of them sustained: {} does not go with it", flag));
  }
  if (app.get_option("--seconds")->count() == 0) options.seconds = kSuiteSeconds;
  if (!options.check && !options.budget) options.time = true;
  return suite_burst_shapes();  // the sustained ones are among them
}

int run_comparison(int argc, char** argv, const std::vector<const gemm::Step*>& steps) {
  return guarded([&] {
    Options options;
    CLI::App app{"Runs several steps in one process, interleaved, so that their times can be compared.",
                 "compare"};
    app.add_option("steps_and_shapes", options.positional,
                   "Steps (01 03:64 18_stream_k, or all) and shapes (4096x4096x4096)");
    app.add_flag(
        "--suite", options.suite,
        "The fixed set of public shapes, burst and sustained; by default of the last two steps, with 6 "
        "seconds for each shape and twice that where sustained");
    add_options(app, options);
    if (const auto status = parse(app, argc, argv)) return *status;
    if (options.list) {
      print_variants(steps);
      return kExitOk;
    }
    std::vector<Entry> entries;
    std::vector<gemm::Shape> shapes;
    for (const std::string& word : options.positional) {
      // A bare number is a step when a step has it ("01"), a cube otherwise ("4096").
      if (looks_like_shape(word) ||
          (word.size() > 2 && word.find_first_not_of("0123456789") == std::string::npos)) {
        shapes.push_back(parse_shape(word));
      } else if (word == "all") {
        for (const gemm::Step* step : steps) entries.push_back({step, &step->variants.front()});
      } else {
        const std::size_t colon = std::min(word.find(':'), word.size());
        const gemm::Step& step = named_step(steps, word.substr(0, colon));
        const std::string variants = colon < word.size() ? word.substr(colon + 1) : "";
        for (const Entry& entry : select_variants(step, variants)) entries.push_back(entry);
      }
    }
    if (options.suite) {
      if (entries.empty()) entries = last_two(steps);
      shapes = suite_shapes(shapes, options, app);
    }
    if (entries.empty())
      throw Error("name the steps to compare, for example: tools/compare 01 02 03, or: tools/compare all");
    return execute(entries, shapes, options, app);
  });
}

}  // namespace

int run(int argc, char** argv, const std::vector<const gemm::Step*>& steps) {
  return steps.size() == 1 ? run_step(argc, argv, *steps.front()) : run_comparison(argc, argv, steps);
}

}  // namespace harness
