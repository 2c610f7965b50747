// The reference of Run::expect_gemm, for both backends' programs.
#pragma once

#include <algorithm>
#include <vector>

#include "own_kernel/emulate.h"

// Each program has it once.
// NOLINTNEXTLINE(misc-definitions-in-headers)
std::vector<double> emulate::detail::product(const std::vector<double>& a, const std::vector<double>& b,
                                             int m, int n, int k) {
  const auto columns = static_cast<std::size_t>(n);
  const auto depth = static_cast<std::size_t>(k);
  std::vector<double> result(static_cast<std::size_t>(m) * columns);
  // Several columns at once: one sum alone waits for each of its additions.
  constexpr std::size_t kColumns = 8;
  std::vector<double> part(depth * kColumns);  // of B, [x][column]
  for (std::size_t j = 0; j < columns; j += kColumns) {
    const std::size_t count = std::min(kColumns, columns - j);
    for (std::size_t x = 0; x < depth; ++x) {
      for (std::size_t l = 0; l < count; ++l) part[x * kColumns + l] = b[(j + l) * depth + x];
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) {
      double sums[kColumns] = {};
      for (std::size_t x = 0; x < depth; ++x) {
        for (std::size_t l = 0; l < kColumns; ++l) sums[l] += a[i * depth + x] * part[x * kColumns + l];
      }
      for (std::size_t l = 0; l < count; ++l) result[i * columns + j + l] = sums[l];
    }
  }
  return result;
}
