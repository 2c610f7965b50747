// --time, --suite and --autotune: kernels raced against each other and cuBLAS, and what is kept of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/cli/cli_options.h"
#include "harness/cli/selection.h"

namespace harness {

/// The shapes in one mode or both: a table and a record for each. `checks` goes into the record.
void time_modes(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                const Options& options, const DeviceInfo& device, const nlohmann::json& checks);

/// Both modes over the suite's shapes: one table and one record.
void time_suite(const std::vector<Entry>& entries, const Options& options, const DeviceInfo& device,
                const nlohmann::json& checks);

/// Random shapes in burst: of each a short screening of all of the step's variants, then the fastest few, the
/// variant that chooses, and cuBLASLt. One record, with what it adds up to on the terminal. The first entry
/// is raced; the others are raced beside it where it says that they are faster (Choice::faster_step).
void time_population(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                     const Options& options, const DeviceInfo& device);

/// Races the variants of every step that chooses by shape, and remembers the fastest for each shape.
void autotune(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
              const Options& options, const DeviceInfo& device);

}  // namespace harness
