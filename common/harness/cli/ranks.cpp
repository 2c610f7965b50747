#include "harness/cli/ranks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/backend/ranks.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/cli/program.h"
#include "harness/cli/rank_gathers.h"
#include "harness/cli/rank_options.h"
#include "harness/cli/rank_scatters.h"
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

std::int64_t parse_multiple(const std::string& text, int multiple, const char* what) {
  const std::int64_t bytes = parse_bytes(text);
  if (bytes % multiple != 0)
    throw Error(fmt::format("{} is {} bytes, but must be a multiple of {}", what, bytes, multiple));
  return bytes;
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

bool check_emulated(const std::vector<Entry>& entries, const RankOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{2} << 20;
  const int epochs = emulated_epochs(options);
  const std::vector<RankCase> cases = cases_of(options);
  for (const RankCase& one : cases) {
    if (one.form.bytes * epochs > kMost)
      throw Error(fmt::format("{} in {} are too much for the emulator, which copies at most {} per rank",
                              size_text(one.form.bytes), counted(static_cast<std::size_t>(epochs), "epoch"),
                              size_text(kMost)));
  }
  std::vector<EmulatedCase> emulated;
  for (const RankCase& one : cases) {
    emulated.push_back(
        {fmt::format("{}, {} in pieces of {}, {} per rank: {}", direction(one.form),
                     size_text(one.form.bytes), size_text(one.piece_bytes),
                     counted(static_cast<std::size_t>(one.ctas), "CTA"), one.why),
         [&one](const gemm::Variant& variant, int count) { return check_rank_case(variant, one, count); }});
  }
  return check_cases(emulated, entries, options);
}

RankCopyForm form_on_gpus(const RankOptions& options, std::int64_t bytes) {
  constexpr int kReaderCtas = 8;
  return {.ranks = options.ranks > 0 ? options.ranks : 2,
          .bytes = bytes,
          .reader_ctas = kReaderCtas,
          .one_way = options.one_way};
}

double gigabytes_per_second(std::int64_t bytes, const RankContestant& contestant) {
  return static_cast<double>(bytes) / contestant.median_us * 1e-3;
}

nlohmann::json to_json(std::int64_t bytes, const RankContestant& contestant) {
  return {{"name", "60_peer_copy"},
          {"variant", contestant.variant},
          {"ctas", contestant.ctas},
          {"piece_bytes", contestant.piece_bytes},
          {"median_us", contestant.median_us},
          {"q1_us", contestant.q1_us},
          {"q3_us", contestant.q3_us},
          {"gigabytes_per_second", gigabytes_per_second(bytes, contestant)},
          {"to_copy_engine", contestant.to_reference},
          {"verdict", contestant.verdict},
          {"samples_us", contestant.samples_us}};
}

void print_times(std::int64_t bytes, const std::vector<RankContestant>& contestants) {
  fmt::print("  {:<12}  {:>4}  {:>8}  {:>10}  {:>6}  {:>7}  {}\n", "variant", "CTAs", "piece", "median",
             "IQR", "GB/s", "speed / copy engine");
  for (const RankContestant& one : contestants) {
    const bool is_engine = one.is_reference;
    fmt::print("  {:<12}  {:>4}  {:>8}  {:>10}  {:>4.1f} %  {:>7.1f}  {}\n", one.variant,
               is_engine ? "-" : fmt::format("{}", one.ctas), is_engine ? "-" : size_text(one.piece_bytes),
               human_time(one.median_us), 100 * (one.q3_us - one.q1_us) / one.median_us,
               gigabytes_per_second(bytes, one),
               is_engine ? "1 (reference)"
                         : fmt::format("{}  {}", human_ratio(one.to_reference), to_string(one.verdict)));
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
                           .is_reference = count == 0,
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

bool run_on_gpus(const std::vector<Entry>& entries, const RankOptions& options, const DeviceInfo& device) {
  const std::vector<std::string> sizes =
      options.sizes.empty() ? std::vector<std::string>{"64MiB", "512MiB"} : options.sizes;
  const TimingOptions timing = rank_timing(options);
  nlohmann::json record = rank_record(device, timing, "copies");
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
                                          RankRun::Readers::kApart, delays_of(options));
      if (!print_rank_check(entry, result, fmt::format("{} epochs", epochs))) return false;
    }
    if (options.check) continue;
    std::vector<RankContestant> contestants = contestants_of(copy, entries, options);
    time_ranks(copy, contestants, timing);
    clear_progress();
    print_times(bytes, contestants);
    nlohmann::json timed = {{"bytes", bytes},
                            {"ranks", form.ranks},
                            {"one_way", form.one_way},
                            {"topology", topology},
                            {"rounds", contestants.front().samples_us.size()},
                            {"contestants", nlohmann::json::array()}};
    for (const RankContestant& one : contestants) timed["contestants"].push_back(to_json(bytes, one));
    record["copies"].push_back(timed);
    if (!options.json.empty()) write_json(options.json, record);  // what is measured stays
  }
  if (!options.json.empty()) write_record(options.json, record);
  return true;
}

}  // namespace

int run_rank_step(int argc, char** argv, const gemm::Step& step) {
  if (step.gathers()) return run_gather_step(argc, argv, step);
  if (step.scatters()) return run_scatter_step(argc, argv, step);
  return guarded([&] {
    RankOptions options;
    CLI::App app{fmt::format("{}: {}", step.name, step.title), step.name};
    app.footer(kRankFooter);
    add_rank_options(app, options, "bytes",
                     "How much each rank sends: 64MiB, 16KiB, 1048576 (default: 64MiB and 512MiB on GPUs, "
                     "little on the emulator)");
    app.add_flag("--one-way", options.one_way, "Only rank 0 sends");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return execute_rank_step(step, options, check_emulated, run_on_gpus);
  });
}

}  // namespace harness
