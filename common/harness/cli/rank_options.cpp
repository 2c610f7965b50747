#include "harness/cli/rank_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/describe.h"
#include "harness/cli/program.h"
#include "harness/cli/side_by_side.h"
#include "harness/record/json.h"
#include "harness/timing/ranks.h"

namespace harness {

void add_rank_options(CLI::App& app, RankOptions& options, const char* what, const char* sizes) {
  app.add_option(what, options.sizes, sizes);
  app.add_option("--variant", options.variant,
                 "One variant or several (a,b); --list shows them (default: all)")
      ->check(name_problem);
  app.add_option("--ranks", options.ranks, "Number of ranks, each a GPU (default: 2; emulator: 2 and 3)")
      ->check(CLI::Range(2, 8));
  app.add_option("--ctas", options.ctas, "CTAs that send, one per SM; several (4,8,16) are timed in turn")
      ->delimiter(',')
      ->check(CLI::Range(1, 128));
  app.add_option("--piece", options.pieces, "Bytes per flag; several (64KiB,1MiB) are timed in turn")
      ->delimiter(',')
      ->check(name_problem);
  app.add_flag("--check", options.check, "Only verify");
  app.add_flag("--time", options.time, "Verify, then time in interleaved rounds (needs GPUs)");
  app.add_flag("--list", options.list, "List the variants");
  app.add_flag("--describe", options.describe,
               "Print what the step and its variants are as JSON, for programs");
  app.add_flag("--quick", options.quick,
               "Give a first answer in a few seconds; on the emulator, run one schedule instead of several");
  app.add_option("--relaunch", options.relaunch, "Epochs, one after the other, before the result is checked")
      ->check(CLI::Range(2, 1000000));
  app.add_option("--delay", options.delay_us, "Let each rank be late by up to this many microseconds (GPU)")
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--seed", options.seed, "Seed of the delays, and of the order of the rounds")
      ->capture_default_str()
      ->check(seed_problem);
  app.add_option("--json", options.json, "Write the record of the run to this file")->check(file_problem);
  auto* timing = app.add_option_group("Timing (GPU)");
  timing->add_option("--rounds", options.rounds, "Number of rounds; with 0, until the medians are stable")
      ->capture_default_str()
      ->check(CLI::Range(0, 100000));
  timing->add_option("--seconds", options.seconds, "Time budget for each size")
      ->capture_default_str()
      ->check(seconds_problem);
  auto* emulator = app.add_option_group("Emulator");
  emulator
      ->add_option("--schedule-seed", options.schedule_seed,
                   "Seed of the scheduler and of the asynchronous completion")
      ->capture_default_str()
      ->check(seed_problem);
  emulator
      ->add_option("--completion", options.completion,
                   "When asynchronous operations complete: random, earliest or latest")
      ->capture_default_str()
      ->check(CLI::IsMember({"random", "earliest", "latest"}));
}

std::int64_t parse_bytes(const std::string& text) {
  constexpr std::pair<const char*, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"", 0}};
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::string unit = text.substr(digits);
  const auto* const found =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& one) { return one.first == unit; });
  constexpr std::size_t kMostDigits = 10;
  constexpr std::int64_t kMost = std::int64_t{8} << 30;  // words are counted in 32 bits, and differ
  const std::int64_t bytes = digits == 0 || digits > kMostDigits || found == std::end(kUnits)
                                 ? 0
                                 : std::stoll(text.substr(0, digits)) << found->second;
  if (bytes <= 0 || bytes > kMost)
    throw Error(fmt::format("'{}' is no size; write 64MiB, 16KiB or a number of bytes, at most 8GiB", text));
  return bytes;
}

std::string size_text(std::int64_t bytes) {
  constexpr std::pair<const char*, int> kUnits[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  for (const auto& [unit, shift] : kUnits) {
    if (bytes >= std::int64_t{1} << shift && bytes % (std::int64_t{1} << shift) == 0)
      return fmt::format("{} {}", bytes >> shift, unit);
  }
  return fmt::format("{} bytes", bytes);
}

int emulated_epochs(const RankOptions& options) {
  return options.relaunch > 0 ? options.relaunch : 3;
}

void refuse_large(const gemm::Shape& shape, int epochs) {
  constexpr double kMost = 2e9;  // multiply-adds
  if (1.0 * shape.m * shape.n * shape.k * epochs > kMost)
    throw Error(fmt::format("{} in {} is too much for the emulator", to_string(shape),
                            counted(static_cast<std::size_t>(epochs), "epoch")));
}

namespace {

std::vector<EmulatorControl> schedules_of(const RankOptions& options) {
  const auto one = [](std::uint64_t seed, Completion completion) {
    return EmulatorControl{.schedule_seed = seed, .completion = completion, .launch_seconds = 60};
  };
  const std::uint64_t seed = options.schedule_seed;
  if (options.completion == "earliest") return {one(seed, Completion::kEarliest)};
  if (options.completion == "latest") return {one(seed, Completion::kLatest)};
  if (options.quick) return {one(seed, Completion::kRandom)};
  return {one(seed, Completion::kRandom), one(seed + 1, Completion::kRandom),
          one(seed, Completion::kEarliest), one(seed, Completion::kLatest)};
}

bool check_variant(const EmulatedCase& one, const Entry& entry, const RankOptions& options) {
  if (one.once && entry.variant->by_copy_engine) return true;
  const int epochs = emulated_epochs(options);
  CheckResult result;
  std::size_t done = 0;
  for (const EmulatorControl& schedule : schedules_of(options)) {
    control_emulator(schedule);
    result = one.check(*entry.variant, epochs);
    ++done;
    if (!result.ok || one.once) break;
  }
  return print_rank_check(entry, result, fmt::format("{} epochs, {}", epochs, counted(done, "schedule")));
}

}  // namespace

bool check_cases(const std::vector<EmulatedCase>& cases, const std::vector<Entry>& entries,
                 const RankOptions& options) {
  const std::size_t count = cases.size() * entries.size();
  const auto check = [&](std::size_t i, nlohmann::json&) {
    const EmulatedCase& one = cases[i / entries.size()];
    const std::size_t entry = i % entries.size();
    if (entry == 0) fmt::print("{}\n", fitted(one.title));
    return check_variant(one, entries[entry], options);
  };
  nlohmann::json nothing;
  return run_side_by_side(
      count, side_by_side_processes(), check, [&](std::size_t) { return count; }, nothing);
}

RankRun::Delay delays_of(const RankOptions& options) {
  if (options.delay_us == 0) return {};
  return [random = std::mt19937_64(options.seed), most = options.delay_us](int,
                                                                           gemm::ptx::Stream stream) mutable {
    delay_rank(stream, std::uniform_real_distribution<double>(0, most)(random));
  };
}

bool print_rank_check(const Entry& entry, const CheckResult& result, const std::string& how) {
  fmt::print("{}\n", fitted(fmt::format("  {:<12} {:<5}  {}; {}", entry.variant->name,
                                        result.ok ? "ok" : "WRONG", result.summary, how)));
  if (!result.ok) fmt::print("{}", result.report);
  std::fflush(stdout);
  return result.ok;
}

TimingOptions rank_timing(const RankOptions& options) {
  TimingOptions timing;
  timing.rounds = options.rounds;
  timing.budget_s = options.quick ? std::min(options.seconds, 3.0) : options.seconds;
  timing.seed = options.seed;
  timing.progress = show_progress;
  return timing;
}

nlohmann::json rank_record(const DeviceInfo& device, const TimingOptions& timing, const char* what) {
  const Record about = new_record(device, timing);
  return {{"schema", kRecordSchema},  {"device", device},
          {"commit", about.commit},   {"date", about.date},
          {"seed", timing.seed},      {"mode", about.mode},
          {"idle_ms", about.idle_ms}, {what, nlohmann::json::array()}};
}

int execute_rank_step(const gemm::Step& step, const RankOptions& options, const RankCheck& check_emulated,
                      const RankRace& run_on_gpus) {
  if (options.check && options.time)
    throw Error("--check only verifies and --time times: leave one of them out");
  if (options.list || options.describe) {
    options.list ? print_variants({&step}) : print_descriptions({&step});
    return kExitOk;
  }
  const std::vector<Entry> entries = select_variants(step, options.variant.empty() ? "all" : options.variant);
  const DeviceInfo device = device_info();
  if (options.time && device.is_emulator)
    throw Error("--time needs GPUs: the emulator checks rules and results and says nothing about speed");
  if (options.delay_us > 0 && device.is_emulator)
    throw Error(
        "--delay is for GPUs: on the emulator the schedule delays ranks, and --schedule-seed names it");
  if (const std::string problem = step_problem(step, device); !problem.empty()) throw Error(problem);
  if (!options.json.empty()) check_writable(options.json);
  print_header(device);
  const bool ok =
      device.is_emulator ? check_emulated(entries, options) : run_on_gpus(entries, options, device);
  if (!ok) fmt::print("FAILED: no time is shown for a wrong result\n");
  return ok ? kExitOk : kExitMismatch;
}

}  // namespace harness
