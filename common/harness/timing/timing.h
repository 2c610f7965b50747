// Racing prepared launches against each other on the GPU.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/record/record.h"
#include "harness/verify/workload/workload.h"

namespace harness {

/// One thing to race. `prepare` is called once per rotated operand set, outside the timed region.
struct Contestant {
  std::string name;
  std::string variant;
  ContestantKind kind = ContestantKind::kStep;
  std::function<gemm::Launcher(const gemm::Problem&)> prepare;
  std::optional<gemm::Epilogue> epilogue{};  // where it computes another one than the race is about
  Allowance allowance{};                     // what its results are held to
  bool dense = false;  // in a race of groups: has as many rows, and one B, in memory of its own
  // Not timed: brings what it left in a place of its own to where results are checked.
  std::function<void(const gemm::Problem&, gemm::ptx::Stream)> deliver{};
};

struct TimingOptions {
  TimingMode mode = TimingMode::kBurst;
  int rounds = 0;        // 0: until the medians are stable or the time budget is used
  double budget_s = 10;  // per shape
  double idle_ms = 15;   // burst mode, before each launch
  std::string pattern = "normal";
  std::uint64_t seed = 1;
  ProblemForm form{};     // what is computed, beyond the shape
  int layers = 0;         // of a race of chains: cuBLASLt has a chain of as many launches, too
  bool baselines = true;  // cuBLAS default, cuBLASLt best of heuristics, wgmma-only ceiling
  bool verified = true;   // false: for a first look whose times no record gets
  std::function<void(const std::string&)> progress;  // called about once a second with a short line
};

/// Times all contestants of one shape in interleaved rounds (adding the baselines that this GPU can run).
/// GPU build only; the emulator build's definition throws Error ("the emulator says
/// nothing about speed ...").
ShapeRecord time_shape(const gemm::Shape& shape, const std::vector<Contestant>& contestants,
                       const TimingOptions& options);

/// A record of this device, these libraries, this commit and this moment, without shapes.
Record new_record(const DeviceInfo& device, const TimingOptions& options);

/// "13.0.2" or "" when cuBLAS was not found.
std::string cublas_version();

}  // namespace harness
