// The whole of --trace: records one launch, writes its timeline, says what it shows and what recording cost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/groups.h"
#include "gemm/problem/step.h"

namespace harness {

struct TraceOptions {
  std::string path;
  int ctas = 4;            // recorded: the first ones of the grid
  int ctas_per_sm = 0;     // in the model: that an SM holds at once; 0: as many as the launch promises
  std::uint64_t seed = 1;  // of the inputs
  std::vector<gemm::GroupRows> groups{};  // of rows, where the problem has them
  int capacity = 0;                       // rows that each has room for
  std::uint64_t placement = 0;            // the seed that places them anywhere
  std::string untraced;  // GPU: the record (--json) of the same kernel without tracing, to compare with
};

/// What a trace shows unless a shape is given: a few tiles for every SM, few k-tiles.
gemm::Shape trace_shape(const gemm::Variant& variant, int sms, bool is_emulator);

/// Returns the exit status.
int run_trace(const gemm::Step& step, const gemm::Variant& variant, const gemm::Shape& shape,
              const TraceOptions& options);

}  // namespace harness
