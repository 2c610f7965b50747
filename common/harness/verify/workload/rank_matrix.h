// The matrices of a product over several ranks: each lies in the memory of one of them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "gemm/problem/gemm.h"
#include "harness/backend/device_reference.h"
#include "harness/backend/ranks.h"
#include "harness/verify/inputs.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {

/// Of bf16.
inline std::size_t bytes_of_matrix(int rows, int columns) {
  return static_cast<std::size_t>(gemm::offset(rows, 0, columns)) * sizeof(gemm::bf16);
}

/// Calls body(first_row, rows) for what a slab of the reference may have.
template <typename Body>
void in_slabs(int rows, int columns, const Body& body) {
  const int step = static_cast<int>(std::clamp<std::size_t>(
      kReferenceSlab / static_cast<std::size_t>(columns), 1, static_cast<std::size_t>(rows)));
  for (int row = 0; row < rows; row += step) body(row, std::min(step, rows - row));
}

/// Fills [rule.rows][rule.columns] elements of the rank's memory.
void fill_matrix(const Ranks& ranks, int rank, gemm::bf16* elements, const InputRule& rule);

/// What of them is not as the rule says.
InputDamage damage_of_matrix(const Ranks& ranks, int rank, const gemm::bf16* elements, const InputRule& rule);

}  // namespace harness
