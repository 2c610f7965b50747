// The reference of Run::expect_gemm, for both backends' programs.
#pragma once

#include <vector>

#include "emulate/emulate.h"

// Each program has it once.
// NOLINTNEXTLINE(misc-definitions-in-headers)
std::vector<double> emulate::detail::product(const std::vector<double>& a, const std::vector<double>& b,
                                             int m, int n, int k) {
  const auto columns = static_cast<std::size_t>(n);
  const auto depth = static_cast<std::size_t>(k);
  std::vector<double> result(static_cast<std::size_t>(m) * columns);
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::size_t x = 0; x < depth; ++x) sum += a[i * depth + x] * b[j * depth + x];
      result[i * columns + j] = sum;
    }
  }
  return result;
}
