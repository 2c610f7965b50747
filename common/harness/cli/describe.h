// Actions that run no kernel, and the lines that say what will run.
#pragma once

#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/cli/selection.h"

namespace harness {

/// The device, in a line.
void print_header(const DeviceInfo& device);

/// For each entry that chooses by shape: what it chose, and why.
void print_choices(const std::vector<Entry>& entries, const gemm::Shape& shape);

/// --list
void print_variants(const std::vector<const gemm::Step*>& steps);

/// --describe: what each step says of itself, for programs: a JSON array with a line for each.
void print_descriptions(const std::vector<const gemm::Step*>& steps);

/// --budget, for the GPU of this architecture if one is named (--gpu)
void print_budgets(const std::vector<Entry>& entries, const std::vector<gemm::Shape>& shapes,
                   const DeviceInfo& device, const std::string& architecture);

}  // namespace harness
