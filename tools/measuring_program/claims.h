// What each way of timing would have claimed, and what this project's harness measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/record/record.h"

namespace measuring {

/// One way of timing: the numbers that somebody who timed so would publish. They have no interval: such
/// harnesses make none.
struct Claim {
  std::string key;  // "first_launch"
  std::string how;  // what is done, for a table
  gemm::Shape shape;
  std::string yardstick;  // "cublas_default" or "cublaslt_best"
  double kernel_us = 0;
  double yardstick_us = 0;
  std::size_t against = 0;         // the race that measures the same honestly, in Run::races
  harness::Conditions conditions;  // zeros where the timed part is too short to see the clock

  double kernel_tflops() const;
  double yardstick_tflops() const;
  /// Speed relative to the yardstick.
  double ratio() const { return yardstick_us / kernel_us; }
};

struct Run {
  std::string kernel;  // "15_tma_store"
  std::string variant;
  std::vector<Claim> claims;
  std::vector<harness::Record> races;  // one shape each, by this project's harness
};

/// What the harness of this project says about the kernel in that race; throws harness::Error when the kernel
/// or cuBLASLt is missing from it.
const harness::ContestantRecord& kernel_of(const Run& run, std::size_t race);
const harness::ContestantRecord& yardstick_of(const Run& run, std::size_t race);

nlohmann::json to_json(const Run& run);
/// For the terminal: a row for each claim, with what it should have said, then the races.
std::string human_table(const Run& run);

}  // namespace measuring
