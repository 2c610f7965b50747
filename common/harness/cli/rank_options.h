// The command line of the steps that are about several GPUs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/cli/selection.h"
#include "harness/timing/timing.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/rank_run.h"

namespace harness {

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

/// What all of these steps take. `what`: the positional words, and `sizes` what they are.
void add_rank_options(CLI::App& app, RankOptions& options, const char* what, const char* sizes);

/// "64MiB", "16KiB", "4096".
std::int64_t parse_bytes(const std::string& text);
std::string size_text(std::int64_t bytes);

/// How often a check on the emulator launches each variant under one schedule.
int emulated_epochs(const RankOptions& options);

/// Throws Error where a product of all ranks is too much for the emulator.
void refuse_large(const gemm::Shape& shape, int epochs);

/// A case of a check on the emulator: the line above its variants, and the check of one of them under the
/// schedule that control_emulator() has set.
struct EmulatedCase {
  std::string title;
  std::function<CheckResult(const gemm::Variant& variant, int epochs)> check;
  bool once = false;  // a large one: under one schedule, and where CTAs copy
};

/// Checks all variants in all cases under several schedules, up to the first that is wrong; returns whether
/// none is.
bool check_cases(const std::vector<EmulatedCase>& cases, const std::vector<Entry>& entries,
                 const RankOptions& options);

/// Delays that the seed draws, or none.
RankRun::Delay delays_of(const RankOptions& options);

/// A line for a variant that was checked, and the report where it is wrong.
bool print_rank_check(const Entry& entry, const CheckResult& result, const std::string& how);

/// How the times of a run are taken, and the head of its record; `what` is the array that gets them.
TimingOptions rank_timing(const RankOptions& options);
nlohmann::json rank_record(const DeviceInfo& device, const TimingOptions& timing, const char* what);

/// Lists, describes, checks or times; returns the exit status. Both functions return whether all was right.
using RankCheck = std::function<bool(const std::vector<Entry>& entries, const RankOptions& options)>;
using RankRace = std::function<bool(const std::vector<Entry>& entries, const RankOptions& options,
                                    const DeviceInfo& device)>;
int execute_rank_step(const gemm::Step& step, const RankOptions& options, const RankCheck& check_emulated,
                      const RankRace& run_on_gpus);

}  // namespace harness
