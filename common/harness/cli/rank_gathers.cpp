#include "harness/cli/rank_gathers.h"

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
#include "harness/cli/rank_options.h"
#include "harness/cli/rank_products.h"
#include "harness/cli/selection.h"
#include "harness/record/json.h"
#include "harness/timing/ranks.h"
#include "harness/verify/workload/rank_gather.h"

namespace harness {
namespace {

constexpr const char* kGatherFooter =
    R"(Each rank has M / ranks rows of A and makes N / ranks columns of D. Without an action, the result is verified, and GPUs then time it. A check needs no GPU (--backend emulator).

Examples
  tools/run 61 --check --backend emulator        2 and 3 ranks, several schedules
  tools/run 61 --variant all                     on two GPUs: verify, then time against copies and cuBLASLt
  tools/run 61 4096 --variant copy_engine --piece 1MiB,4MiB,16MiB
                                                 in pieces of which size
  tools/run 61 8192 --variant sms --ctas 4,8,16  from how many SMs
  tools/run 61 4096 --check --relaunch 1000 --delay 50
                                                 ranks that are late by up to 50 us

Exit status: 0 verified, 1 wrong result, 2 bad input or no usable machine, 3 the emulator found a broken rule, 4 a GPU did not finish in time.)";

constexpr int kUsualCtas = 8;
constexpr std::int64_t kUsualPiece = std::int64_t{4} << 20;

/// As many whole blocks of rows as about so many bytes have.
int rows_of_piece(std::int64_t bytes, const gemm::Shape& shape) {
  const std::int64_t block = gemm::offset(gemm::kGatherRows, 0, shape.k) * 2;
  return static_cast<int>(std::clamp<std::int64_t>(bytes / block, 1, shape.m / gemm::kGatherRows)) *
         gemm::kGatherRows;
}

std::int64_t bytes_of_piece(int rows, const gemm::Shape& shape) {
  return gemm::offset(rows, 0, shape.k) * 2;
}

std::vector<int> piece_rows_of(const RankOptions& options, const gemm::Shape& shape) {
  std::vector<int> rows;
  for (const std::string& text : options.pieces) rows.push_back(rows_of_piece(parse_bytes(text), shape));
  if (rows.empty()) rows.push_back(rows_of_piece(kUsualPiece, shape));
  return rows;
}

std::string what_ranks_do(const RankGatherForm& form) {
  return fmt::format("{} ranks, {}: each has {} rows of A and makes {} columns of D", form.ranks,
                     to_string(form.shape), form.shape.m / form.ranks, form.shape.n / form.ranks);
}

/// The cases, with what the command line says instead.
std::vector<GatherCase> emulated_cases(const RankOptions& options) {
  std::vector<GatherCase> cases = gather_cases();
  if (!options.sizes.empty()) {
    cases.clear();
    for (const std::string& text : options.sizes)
      cases.push_back({.form = {.shape = parse_shape(text)}, .why = "as asked for"});
  }
  for (GatherCase& one : cases) {
    if (options.ranks > 0) {
      if (options.sizes.empty()) {  // as many rows and columns for each
        one.form.shape.m = one.form.shape.m / one.form.ranks * options.ranks;
        one.form.shape.n = one.form.shape.n / one.form.ranks * options.ranks;
      }
      one.form.ranks = options.ranks;
    }
    if (!options.ctas.empty()) one.ctas = options.ctas.front();
    if (!options.pieces.empty()) one.piece_rows = piece_rows_of(options, one.form.shape).front();
    check_gather(one.form);
  }
  return cases;
}

bool check_emulated_gathers(const std::vector<Entry>& entries, const RankOptions& options) {
  const int epochs = emulated_epochs(options);
  const std::vector<GatherCase> cases = emulated_cases(options);
  for (const GatherCase& one : cases) refuse_large(one.form.shape, epochs);
  std::vector<EmulatedCase> emulated;
  for (const GatherCase& one : cases) {
    emulated.push_back(
        {fmt::format("{}, in pieces of {} rows: {}", what_ranks_do(one.form), one.piece_rows, one.why),
         [&one](const gemm::Variant& variant, int count) { return check_gather_case(variant, one, count); },
         one.once});
  }
  return check_cases(emulated, entries, options);
}

std::vector<RankContestant> gather_contestants(RankGather& gather, const std::vector<Entry>& entries,
                                               const RankOptions& options) {
  const gemm::Shape& shape = gather.form().shape;
  std::vector<RankContestant> contestants;
  for (const Entry& entry : entries) {
    const bool by_engine = entry.variant->by_copy_engine;
    const std::vector<int> ctas = by_engine              ? std::vector<int>{0}
                                  : options.ctas.empty() ? std::vector<int>{kUsualCtas}
                                                         : options.ctas;
    for (const int rows : piece_rows_of(options, shape)) {
      for (const int count : ctas)
        contestants.push_back(
            {.variant = entry.variant->name,
             .piece_bytes = bytes_of_piece(rows, shape),
             .ctas = count,
             .launcher = entry.variant->prepare_gather(gather.problem(rows, std::max(count, 1)))});
    }
  }
  for (RankContestant& opponent : gather_opponents(gather)) contestants.push_back(std::move(opponent));
  return contestants;
}

bool run_gathers_on_gpus(const std::vector<Entry>& entries, const RankOptions& options,
                         const DeviceInfo& device) {
  const std::vector<std::string> sizes =
      options.sizes.empty() ? std::vector<std::string>{"8192", "4096", "4096x28672x8192"} : options.sizes;
  const TimingOptions timing = rank_timing(options);
  nlohmann::json record = rank_record(device, timing, "gathers");
  for (const std::string& text : sizes) {
    const RankGatherForm form{.ranks = options.ranks > 0 ? options.ranks : 2,
                              .shape = parse_shape(text),
                              .pattern = Pattern::kNormal,
                              .seed = options.seed};
    RankGather gather(form, entries.front().variant->tile);
    const std::string topology = gather.ranks().topology();
    fmt::print("{}\n", fitted(fmt::format("{}; {}", what_ranks_do(form), topology)));
    const int epochs = options.relaunch > 0 ? options.relaunch : 4;
    for (const Entry& entry : entries) {
      gather.load(entry.variant->kernel);
      const int rows = piece_rows_of(options, form.shape).front();
      const int ctas = options.ctas.empty() ? kUsualCtas : options.ctas.front();
      const CheckResult result = gather.run(entry.variant->prepare_gather(gather.problem(rows, ctas)), epochs,
                                            RankRun::Readers::kApart, delays_of(options));
      if (!print_rank_check(entry, result, fmt::format("{} epochs", epochs))) return false;
    }
    if (options.check) continue;
    std::vector<RankContestant> contestants = gather_contestants(gather, entries, options);
    time_ranks(gather, contestants, timing);
    clear_progress();
    print_products(form.shape, contestants);
    record["gathers"].push_back(
        products_to_json(*entries.front().step, form.shape, form.ranks, topology, contestants));
    if (!options.json.empty()) write_json(options.json, record);  // what is measured stays
  }
  if (!options.json.empty()) write_record(options.json, record);
  return true;
}

}  // namespace

int run_gather_step(int argc, char** argv, const gemm::Step& step) {
  return guarded([&] {
    RankOptions options;
    CLI::App app{fmt::format("{}: {}", step.name, step.title), step.name};
    app.footer(kGatherFooter);
    add_rank_options(app, options, "sizes",
                     "MxNxK of all ranks together, or 4096 for that cube (default: 8192, 4096 and "
                     "4096x28672x8192 on GPUs, small ones on the emulator)");
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return execute_rank_step(step, options, check_emulated_gathers, run_gathers_on_gpus);
  });
}

}  // namespace harness
