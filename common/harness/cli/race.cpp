#include "harness/cli/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/predict/autotune.h"
#include "harness/record/json.h"
#include "harness/record/population.h"
#include "harness/record/suite.h"
#include "harness/timing/timing.h"
#include "harness/verify/groups.h"

namespace harness {
namespace {

constexpr double kSuiteSustainedFactor = 2;

/// One line about the shape that was timed last: the table comes when all of them are.
void print_timed(const Record& record) {
  const ShapeRecord& shape = record.shapes.back();
  fmt::print("timed {} {}: {}, {}\n", to_string(shape.shape), to_string(record.mode),
             counted(shape.contestants.size(), "contestant"),
             counted(shape.contestants.front().samples_us.size(), "round"));
  std::fflush(stdout);
}

/// Seconds for one shape. In the suite the sustained shapes get more, because the clock has to settle first.
double time_budget(TimingMode mode, const Options& options) {
  const double seconds = options.quick ? std::min(options.seconds, 3.0) : options.seconds;
  return options.suite == "public" && mode == TimingMode::kSustained ? kSuiteSustainedFactor * seconds
                                                                     : seconds;
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

/// `keep` gets the record after each shape: what is measured stays, however the run ends.
Record time_all(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes, TimingMode mode,
                const Options& options, const DeviceInfo& device,
                const std::function<void(const Record&)>& keep) {
  TimingOptions timing;
  timing.mode = mode;
  timing.rounds = options.rounds;
  timing.budget_s = time_budget(mode, options);
  timing.pattern = options.pattern.empty() ? "normal" : options.pattern;
  timing.seed = options.seed;
  timing.baselines = !options.no_baselines;
  timing.progress = show_progress;
  timing.form = options.form;

  std::vector<Contestant> contestants;
  for (const Entry& entry : entries) {
    timing.layers = std::max(timing.layers, entry.variant->layers);
    contestants.push_back({.name = entry.step->name,
                           .variant = entry.variant->name,
                           .kind = ContestantKind::kStep,
                           .prepare =
                               [&entry](const gemm::Problem& problem) {
                                 return gemm::prepare(*resolved(entry, problem.shape).variant, problem);
                               },
                           .epilogue = epilogue_of(entry, options.form.epilogue, entries.size() == 1),
                           .dense = !options.groups.empty() && !entry.variant->takes_groups()});
  }
  Record record = new_record(device, timing);
  for (const gemm::Shape& shape : shapes) {
    timing.form.groups = parse_groups(options.groups, shape.m);
    timing.form.capacity = parse_capacity(options.groups);
    if (parse_placement(options.groups) != 0)
      throw Error(fmt::format(
          "{} places groups anywhere, but a race is about rows of one A: leave out the @ and what follows it",
          options.groups));
    record.shapes.push_back(time_shape(shape, contestants, timing));
    if (!options.groups.empty()) record.shapes.back().epilogue = "groups " + options.groups;
    clear_progress();
    for (const Entry& entry : entries) record_choice(entry, record.shapes.back());
    if (!options.suite.empty()) print_timed(record);
    record.rounds =
        std::max(record.rounds, static_cast<int>(record.shapes.back().contestants.front().samples_us.size()));
    keep(record);
  }
  return record;
}

void sort_by_time(ShapeRecord& shape) {
  std::stable_sort(shape.contestants.begin(), shape.contestants.end(),
                   [](const auto& one, const auto& other) { return one.median_us < other.median_us; });
}

/// What is worth a measurement: the choices that the model of `chooser` finds promising; without a model,
/// all.
std::vector<std::string> promising(const gemm::Step& step, const gemm::Variant& chooser,
                                   const gemm::Shape& shape) {
  std::vector<std::string> names = chooser.choose(shape).promising;
  if (!names.empty()) return names;
  for (const gemm::Variant& variant : step.variants) {
    if (variant.choose == nullptr) names.push_back(variant.name);
  }
  return names;
}

/// A short race of what is promising. The first contestant of what is returned is to be taken: the fastest
/// one, or what the model chose, if that is about as fast. What they computed is verified.
ShapeRecord race_promising(const gemm::Step& step, const gemm::Variant& chooser, const gemm::Shape& shape,
                           TimingOptions timing) {
  constexpr double kAsFast = 1.01;  // where nine launches of a few microseconds decide, noise would otherwise
  timing.rounds = 9;
  timing.idle_ms = 2;
  timing.baselines = false;
  std::vector<Contestant> contestants;
  for (const std::string& name : promising(step, chooser, shape))
    contestants.push_back({step.name, name, ContestantKind::kStep, find_variant(step, name).prepare});
  ShapeRecord race = time_shape(shape, contestants, timing);
  clear_progress();
  sort_by_time(race);
  auto& raced = race.contestants;
  const std::string by_model = chooser.choose(shape).variant;
  const auto chosen =
      std::find_if(raced.begin(), raced.end(), [&](const auto& one) { return one.variant == by_model; });
  if (chosen != raced.end() && chosen->median_us < kAsFast * raced.front().median_us)
    std::rotate(raced.begin(), chosen, chosen + 1);
  return race;
}

/// Whether what a file holds was measured by the same race, as far as it got.
bool is_part_of(const nlohmann::json& held, const nlohmann::json& wanted) {
  for (const char* key : {"schema", "commit", "pattern", "mode", "population_seed", "population_of"}) {
    if (held.value(key, nlohmann::json()) != wanted.value(key, nlohmann::json())) return false;
  }
  return held.value("device", nlohmann::json::object()).value("name", "") == wanted["device"]["name"];
}

/// The shapes that `path` holds of this race, if it was cut off.
std::vector<ShapeRecord> measured_before(const std::string& path, const nlohmann::json& race) {
  std::ifstream file(path);
  const nlohmann::json held = nlohmann::json::parse(file, nullptr, false);
  if (!held.is_object() || !is_part_of(held, race)) return {};
  return held.value("shapes", std::vector<ShapeRecord>{});
}

/// Writes a record or a suite where --json asks for it.
template <typename Measured>
void write_measured(const std::string& path, const Measured& measured, const nlohmann::json& checks) {
  if (path.empty()) return;
  nlohmann::json json = measured;
  json["checks"] = checks;
  write_record(path, json);
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

}  // namespace

void time_modes(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                const Options& options, const DeviceInfo& device, const nlohmann::json& checks) {
  for (const TimingMode mode : modes(options)) {
    const bool first = mode == modes(options).front();
    const std::string path = options.json.empty() || first ? options.json : sustained_path(options.json);
    const Record record = time_all(entries, shapes, mode, options, device,
                                   [&](const Record& so_far) { write_measured(path, so_far, checks); });
    fmt::print("\n{}", human_table(record));
    std::fflush(stdout);
  }
}

void time_suite(const std::vector<Entry>& entries, const Options& options, const DeviceInfo& device,
                const nlohmann::json& checks) {
  // Until the first sustained shape is there, the file holds the burst shapes as a record of their own.
  SuiteRecord suite;
  suite.burst = time_all(entries, suite_burst_shapes(), TimingMode::kBurst, options, device,
                         [&](const Record& so_far) { write_measured(options.json, so_far, checks); });
  suite.sustained = time_all(entries, suite_sustained_shapes(), TimingMode::kSustained, options, device,
                             [&](const Record& so_far) {
                               suite.sustained = so_far;
                               write_measured(options.json, suite, checks);
                             });
  fmt::print("\n{}", human_table(suite));
  std::fflush(stdout);
}

void time_population(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                     const Options& options, const DeviceInfo& device) {
  const Entry& entry = entries.front();
  constexpr int kScreeningRounds = 3;
  constexpr double kScreeningIdleMs = 2;
  constexpr std::size_t kFinalists = 3;
  TimingOptions timing;
  timing.rounds = options.rounds;
  timing.budget_s = options.seconds;
  timing.pattern = options.pattern.empty() ? "normal" : options.pattern;
  timing.seed = options.seed;
  timing.progress = show_progress;
  TimingOptions screening = timing;
  screening.rounds = kScreeningRounds;
  screening.idle_ms = kScreeningIdleMs;
  screening.baselines = false;
  screening.verified = false;  // the finalists are, and no other time is kept

  const gemm::Step& step = *entry.step;
  std::vector<Contestant> all;
  for (const gemm::Variant& variant : step.variants) {
    if (variant.choose == nullptr)
      all.push_back({step.name, variant.name, ContestantKind::kStep, variant.prepare});
  }
  Record record = new_record(device, timing);
  const auto as_json = [&] {
    nlohmann::json json = record;
    json["population_seed"] = options.seed;
    if (!options.suite.empty()) json["population_of"] = options.suite;
    return json;
  };
  if (!options.json.empty()) record.shapes = measured_before(options.json, as_json());
  if (!record.shapes.empty())
    fmt::print("{} holds {} of these shapes; the race goes on\n", options.json, record.shapes.size());
  for (std::size_t i = record.shapes.size(); i < shapes.size(); ++i) {
    const gemm::Shape& shape = shapes[i];
    ShapeRecord screened = time_shape(shape, all, screening);
    sort_by_time(screened);
    const std::string tuned = race_promising(step, *entry.variant, shape, timing).contestants.front().variant;
    const std::string by_model = resolved(entry, shape).variant->name;
    std::vector<std::string> names;
    for (const ContestantRecord& one : screened.contestants) {
      if (names.size() < kFinalists) names.push_back(one.variant);
    }
    // What the model chose is there as `auto` anyway.
    if (tuned != by_model && std::find(names.begin(), names.end(), tuned) == names.end())
      names.push_back(tuned);
    std::vector<Contestant> finalists{
        {step.name, entry.variant->name, ContestantKind::kStep,
         [&entry](const gemm::Gemm& gemm) { return resolved(entry, gemm.shape).variant->prepare(gemm); }}};
    for (const std::string& name : names)
      finalists.push_back({step.name, name, ContestantKind::kStep, find_variant(step, name).prepare});
    for (const Entry& other : entries) {
      if (other.step->name == entry.variant->choose(shape).faster_step)
        finalists.push_back({other.step->name, other.variant->name, ContestantKind::kStep,
                             [&other](const gemm::Problem& problem) {
                               return resolved(other, problem.shape).variant->prepare(problem);
                             }});
    }
    record.shapes.push_back(time_shape(shape, finalists, timing));
    clear_progress();
    ShapeRecord& raced = record.shapes.back();
    raced.tuned = tuned;
    record_choice(entry, raced);
    record.rounds = std::max(record.rounds, static_cast<int>(raced.contestants.front().samples_us.size()));
    const ContestantRecord& chosen = raced.contestants.front();
    fmt::print("{:>18}  {:>10}  {:.3f} x cuBLASLt, {}; --autotune takes {}, the screening {}\n",
               to_string(shape), human_time(chosen.median_us), chosen.to_cublaslt.median, chosen.chosen,
               tuned, names.front());
    std::fflush(stdout);
    if (!options.json.empty()) write_record(options.json, as_json());  // what is measured so far is kept
  }
  fmt::print("\n{}\n{}", human_origin(record),
             human_table(summarize_population(record, step.name, entry.variant->name)));
}

void autotune(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
              const Options& options, const DeviceInfo& device) {
  TunedChoices tuned(autotune_file());
  TimingOptions timing;
  timing.seed = options.seed;
  timing.progress = show_progress;
  const Record record = new_record(device, timing);
  for (const Entry& entry : entries) {
    if (entry.variant->choose == nullptr) continue;
    for (const gemm::Shape& shape : shapes) {
      const ShapeRecord race = race_promising(*entry.step, *entry.variant, shape, timing);
      const ContestantRecord& taken = race.contestants.front();
      const std::string by_model = entry.variant->choose(shape).variant;
      fmt::print("autotune {} {}: {} takes {}", entry.step->name, to_string(shape), taken.variant,
                 human_time(taken.median_us));
      if (taken.variant == by_model) fmt::print("; the model chooses it, too");
      for (const ContestantRecord& one : race.contestants) {
        if (one.variant == by_model && &one != &taken)
          fmt::print("; the model would have chosen {}, {}", by_model, human_time(one.median_us));
      }
      fmt::print("\n");
      std::fflush(stdout);
      tuned.remember(device, entry.step->name, shape,
                     {taken.variant, taken.median_us, record.date, record.commit});
    }
  }
  tuned.save();
  fmt::print("remembered in {}\n", tuned.file().string());
}

}  // namespace harness
