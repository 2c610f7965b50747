// Reading sizes and names from the command line, and refusing what a step does not compute.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/backend/backend.h"

namespace harness {

/// Larger dimensions are refused: grids put one tile row per blockIdx.y, which ends at 65535.
inline constexpr int kMaxDimension = 262144;

/// The one rule for the words of every command line: MxNxK, or a number of three digits or more, is a shape;
/// one or two digits, or a name, are a step.
bool is_shape(std::string_view word);

/// Reads "MxNxK" or "N" (a cube, of three digits or more). Throws Error for anything else: not a number,
/// zero, negative, above kMaxDimension, what is_shape() calls a step.
gemm::Shape parse_shape(const std::string& text);
std::string to_string(const gemm::Shape& shape);

/// Throws Error naming the rule when `step` does not compute `shape`.
void check_contract(const gemm::Step& step, const gemm::Shape& shape);

/// "", or why this device cannot run this step.
std::string step_problem(const gemm::Step& step, const DeviceInfo& device);
/// "", or, on a GPU, that nobody has recorded the step on one, and how to.
std::string record_wanted(const gemm::Step& step, const DeviceInfo& device);

/// "9.0"
std::string compute_capability(const DeviceInfo& device);

/// The candidate with the smallest edit distance to `word`, or "" when none is close (more than half the
/// letters differ).
std::string nearest_match(std::string_view word, const std::vector<std::string>& candidates);

/// The steps that a word names: one by number or name, a range of numbers ("01-07"), or "all". Throws Error
/// when there is none.
std::vector<const gemm::Step*> find_steps(const std::vector<const gemm::Step*>& steps, std::string_view word);

/// Finds a step by "01", "1", "01_naive" or "naive". Throws Error with the nearest match and the list.
const gemm::Step& find_step(const std::vector<const gemm::Step*>& steps, std::string_view name);

/// Finds a variant by name; "" is the default (the first). Throws Error with the nearest match and the list.
const gemm::Variant& find_variant(const gemm::Step& step, std::string_view name);

/// "1.5 GB", with three significant digits.
std::string human_bytes(double bytes);

}  // namespace harness
