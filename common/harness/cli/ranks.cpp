#include "harness/cli/ranks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/ranks.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/describe.h"
#include "harness/cli/program.h"
#include "harness/cli/selection.h"
#include "harness/record/json.h"
#include "harness/timing/ranks.h"
#include "harness/verify/workload/rank_copy.h"

namespace harness {
namespace {

constexpr const char* kRankFooter =
    R"(Without an action, the result is verified, and GPUs then time it. A check needs no GPU (--backend emulator).

Examples
  tools/run 60 --check --backend emulator       2 and 3 ranks, several schedules
  tools/run 60 --variant all                    on two GPUs: verify, then time against the copy engine
  tools/run 60 64MiB --ctas 4,8,16,32           from how many SMs
  tools/run 60 64MiB --piece 64KiB,1MiB,16MiB   in pieces of which size
  tools/run 60 1MiB --check --relaunch 1000 --delay 50
                                                ranks that are late by up to 50 us

Exit status: 0 verified, 1 wrong result, 2 bad input or no usable machine, 3 the emulator found a broken rule, 4 a GPU did not finish in time.)";

struct RankOptions {
  std::vector<std::string> sizes;
  std::string variant;
  int ranks = 0;  // 0: as it comes
  std::vector<int> ctas;
  std::vector<std::string> pieces;
  bool one_way = false;
  bool check = false;
  bool time = false;
  bool list = false;
  bool describe = false;
  bool quick = false;
  int relaunch = 0;
  double delay_us = 0;
  std::uint64_t seed = 1;
  int rounds = 0;
  double seconds = 10;
  std::string json;
  std::uint64_t schedule_seed = 1;
  std::string completion = "random";
};

void add_rank_options(CLI::App& app, RankOptions& options) {
  app.footer(kRankFooter);
  app.add_option(
      "bytes", options.sizes,
      "How much each rank sends: 64MiB, 16KiB, 1048576 (default: 64MiB and 512MiB on GPUs, little on "
      "the emulator)");
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
  app.add_flag("--one-way", options.one_way, "Only rank 0 sends");
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

/// "64MiB", "16KiB", "4096".
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

std::int64_t parse_multiple(const std::string& text, int multiple, const char* what) {
  const std::int64_t bytes = parse_bytes(text);
  if (bytes % multiple != 0)
    throw Error(fmt::format("{} is {} bytes, but must be a multiple of {}", what, bytes, multiple));
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

std::vector<std::int64_t> piece_sizes(const RankOptions& options, std::int64_t usual) {
  std::vector<std::int64_t> pieces;
  for (const std::string& text : options.pieces)
    pieces.push_back(parse_multiple(text, gemm::kCopyChunkBytes, "a piece"));
  if (pieces.empty()) pieces.push_back(usual);
  return pieces;
}

std::string direction(const RankCopyForm& form) {
  return fmt::format("{} ranks, {}", form.ranks,
                     form.one_way ? "rank 0 sends" : "each sends to the next one");
}

bool print(const Entry& entry, const CheckResult& result, const std::string& how) {
  fmt::print("{}\n", fitted(fmt::format("  {:<12} {:<5}  {}; {}", entry.variant->name,
                                        result.ok ? "ok" : "WRONG", result.summary, how)));
  if (!result.ok) fmt::print("{}", result.report);
  std::fflush(stdout);
  return result.ok;
}

/// The cases, with what the command line says instead.
std::vector<RankCase> cases_of(const RankOptions& options) {
  std::vector<RankCase> cases = rank_cases();
  for (RankCase& one : cases) {
    if (options.ranks > 0) one.form.ranks = options.ranks;
    if (!options.ctas.empty()) one.ctas = options.ctas.front();
    if (!options.pieces.empty()) one.piece_bytes = piece_sizes(options, one.piece_bytes).front();
    one.form.one_way = options.one_way;
  }
  if (options.sizes.empty()) return cases;
  cases.resize(options.sizes.size(), cases.front());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i] = cases.front();
    cases[i].form.bytes = parse_multiple(options.sizes[i], gemm::kCopyRowBytes, "what a rank sends");
    cases[i].why = "as asked for";
  }
  return cases;
}

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

bool check_emulated(const std::vector<Entry>& entries, const RankOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{2} << 20;
  const int epochs = options.relaunch > 0 ? options.relaunch : 3;
  const std::vector<RankCase> cases = cases_of(options);
  for (const RankCase& one : cases) {
    if (one.form.bytes * epochs > kMost)
      throw Error(fmt::format("{} in {} are too much for the emulator, which copies at most {} per rank",
                              size_text(one.form.bytes), counted(static_cast<std::size_t>(epochs), "epoch"),
                              size_text(kMost)));
  }
  for (const RankCase& one : cases) {
    fmt::print("{}\n", fitted(fmt::format("{}, {} in pieces of {}, {} per rank: {}", direction(one.form),
                                          size_text(one.form.bytes), size_text(one.piece_bytes),
                                          counted(static_cast<std::size_t>(one.ctas), "CTA"), one.why)));
    for (const Entry& entry : entries) {
      CheckResult result;
      std::size_t done = 0;
      for (const EmulatorControl& schedule : schedules_of(options)) {
        control_emulator(schedule);
        result = check_rank_case(*entry.variant, one, epochs);
        ++done;
        if (!result.ok) break;
      }
      if (!print(entry, result, fmt::format("{} epochs, {}", epochs, counted(done, "schedule"))))
        return false;
    }
  }
  return true;
}

RankCopyForm form_on_gpus(const RankOptions& options, std::int64_t bytes) {
  constexpr int kReaderCtas = 8;
  return {.ranks = options.ranks > 0 ? options.ranks : 2,
          .bytes = bytes,
          .reader_ctas = kReaderCtas,
          .one_way = options.one_way};
}

nlohmann::json to_json(const RankContestant& contestant) {
  return {{"name", "60_peer_copy"},
          {"variant", contestant.variant},
          {"ctas", contestant.ctas},
          {"piece_bytes", contestant.piece_bytes},
          {"median_us", contestant.median_us},
          {"q1_us", contestant.q1_us},
          {"q3_us", contestant.q3_us},
          {"gigabytes_per_second", contestant.gigabytes_per_second},
          {"to_copy_engine", contestant.to_engine},
          {"verdict", contestant.verdict},
          {"samples_us", contestant.samples_us}};
}

void print_times(const std::vector<RankContestant>& contestants) {
  fmt::print("  {:<12}  {:>4}  {:>8}  {:>10}  {:>6}  {:>7}  {}\n", "variant", "CTAs", "piece", "median",
             "IQR", "GB/s", "speed / copy engine");
  for (const RankContestant& one : contestants) {
    const bool is_engine = one.ctas == 0;
    fmt::print("  {:<12}  {:>4}  {:>8}  {:>10}  {:>4.1f} %  {:>7.1f}  {}\n", one.variant,
               is_engine ? "-" : fmt::format("{}", one.ctas), is_engine ? "-" : size_text(one.piece_bytes),
               human_time(one.median_us), 100 * (one.q3_us - one.q1_us) / one.median_us,
               one.gigabytes_per_second,
               is_engine ? "1 (reference)"
                         : fmt::format("{}  {}", human_ratio(one.to_engine), to_string(one.verdict)));
  }
  std::fflush(stdout);
}

/// Every variant from every number of CTAs, in pieces of every size; the copy engine knows neither.
std::vector<RankContestant> contestants_of(const RankCopy& copy, const std::vector<Entry>& entries,
                                           const RankOptions& options) {
  constexpr std::int64_t kUsualPiece = 1 << 20;
  const std::vector<int> ctas = options.ctas.empty() ? std::vector<int>{16} : options.ctas;
  std::vector<RankContestant> contestants;
  const auto add = [&](const gemm::Variant& variant, std::int64_t piece, int count) {
    contestants.push_back({.variant = variant.name,
                           .piece_bytes = piece,
                           .ctas = count,
                           .launcher = variant.prepare_ranks(copy.problem(piece, std::max(count, 1)))});
  };
  for (const Entry& entry : entries) {
    for (const std::int64_t piece : piece_sizes(options, kUsualPiece)) {
      for (const int count : ctas) {
        if (!entry.variant->by_copy_engine) add(*entry.variant, piece, count);
      }
    }
  }
  const std::vector<gemm::Variant>& all = entries.front().step->variants;
  const auto engine =
      std::find_if(all.begin(), all.end(), [](const auto& one) { return one.by_copy_engine; });
  if (engine != all.end()) add(*engine, piece_sizes(options, kUsualPiece).front(), 0);
  return contestants;
}

/// Delays that the seed draws, or none.
RankCopy::Delay delays_of(const RankOptions& options) {
  if (options.delay_us == 0) return {};
  return [random = std::mt19937_64(options.seed), most = options.delay_us](int,
                                                                           gemm::ptx::Stream stream) mutable {
    delay_rank(stream, std::uniform_real_distribution<double>(0, most)(random));
  };
}

bool run_on_gpus(const std::vector<Entry>& entries, const RankOptions& options, const DeviceInfo& device) {
  const std::vector<std::string> sizes =
      options.sizes.empty() ? std::vector<std::string>{"64MiB", "512MiB"} : options.sizes;
  TimingOptions timing;
  timing.rounds = options.rounds;
  timing.budget_s = options.quick ? std::min(options.seconds, 3.0) : options.seconds;
  timing.seed = options.seed;
  timing.progress = show_progress;
  const Record about = new_record(device, timing);
  nlohmann::json record = {{"schema", kRecordSchema},  {"device", device},
                           {"commit", about.commit},   {"date", about.date},
                           {"seed", options.seed},     {"mode", about.mode},
                           {"idle_ms", about.idle_ms}, {"copies", nlohmann::json::array()}};
  for (const std::string& text : sizes) {
    const std::int64_t bytes = parse_multiple(text, gemm::kCopyRowBytes, "what a rank sends");
    const RankCopyForm form = form_on_gpus(options, bytes);
    RankCopy copy(form);
    const std::string topology = copy.ranks().topology();
    fmt::print("{}\n", fitted(fmt::format("{}, {} each; {}", direction(form), size_text(bytes), topology)));
    const int epochs = options.relaunch > 0 ? options.relaunch : 4;
    for (const Entry& entry : entries) {
      const std::int64_t piece = piece_sizes(options, 1 << 20).front();
      const int ctas = options.ctas.empty() ? 16 : options.ctas.front();
      const CheckResult result = copy.run(entry.variant->prepare_ranks(copy.problem(piece, ctas)), epochs,
                                          RankCopy::Readers::kApart, delays_of(options));
      if (!print(entry, result, fmt::format("{} epochs", epochs))) return false;
    }
    if (options.check) continue;
    std::vector<RankContestant> contestants = contestants_of(copy, entries, options);
    time_ranks(copy, contestants, timing);
    clear_progress();
    print_times(contestants);
    nlohmann::json timed = {{"bytes", bytes},
                            {"ranks", form.ranks},
                            {"one_way", form.one_way},
                            {"topology", topology},
                            {"rounds", contestants.front().samples_us.size()},
                            {"contestants", nlohmann::json::array()}};
    for (const RankContestant& one : contestants) timed["contestants"].push_back(to_json(one));
    record["copies"].push_back(timed);
    if (!options.json.empty()) write_json(options.json, record);  // what is measured stays
  }
  if (!options.json.empty()) write_record(options.json, record);
  return true;
}

int execute_ranks(const gemm::Step& step, const RankOptions& options) {
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

}  // namespace

int run_rank_step(int argc, char** argv, const gemm::Step& step) {
  return guarded([&] {
    RankOptions options;
    CLI::App app{fmt::format("{}: {}", step.name, step.title), step.name};
    add_rank_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    if (options.check && options.time)
      throw Error("--check only verifies and --time times: leave one of them out");
    return execute_ranks(step, options);
  });
}

}  // namespace harness
