// What the tests of steps 77 and 78 share: a NaN among the scales that the tensor cores multiply with.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/typed_workload.h"
#include "harness/verify/workload/workload.h"
#include "ptx/tcgen05_scaled_descriptor.h"

/// The scale of a row of A or B, and of a block of K in it.
struct ScalePosition {
  int row = 0;
  int block = 0;
};

/// Puts the byte `nan` in the place of one scale of A and, in another run, of one of B. Returns how many
/// elements of D are NaN outside the row or column of that scale, or are none in it. `piece_k`: elements of K
/// that a piece of scales is for.
inline int misplaced_nans(const gemm::Variant& variant, const gemm::Shape& shape, int piece_k,
                          std::uint8_t nan, ScalePosition of_a, ScalePosition of_b) {
  harness::TypedWorkload workload(shape, variant.types, harness::Pattern::kExact, 1);
  const gemm::Problem problem = workload.problem();
  const auto with_nan = [&](const std::uint8_t* scales, ScalePosition at) {
    const int wide = gemm::ceil_div(shape.k, piece_k);
    const std::uint8_t* const scale =
        scales + (at.row / 128 * wide + at.block / 4) * 512 + gemm::ptx::scale_offset(at.row, at.block);
    std::uint8_t right = 0;
    harness::copy_to_host(&right, scale, 1);
    harness::copy_to_device(const_cast<std::uint8_t*>(scale), &nan, 1);
    workload.poison();
    gemm::prepare(variant, problem)(nullptr);
    harness::synchronize();
    harness::copy_to_device(const_cast<std::uint8_t*>(scale), &right, 1);
    return workload.image().d;
  };
  const std::vector<std::uint8_t> of_row = with_nan(problem.mx_scales_a, of_a);
  const std::vector<std::uint8_t> of_column = with_nan(problem.mx_scales_b, of_b);
  int wrong = 0;
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      const std::int64_t index = gemm::offset(row, column, shape.n);
      const auto is_nan = [&](const std::vector<std::uint8_t>& d) {
        return std::isnan(
            harness::decode(variant.types.d, harness::bits_at(variant.types.d, d.data(), index)));
      };
      wrong += is_nan(of_row) != (row == of_a.row);
      wrong += is_nan(of_column) != (column == of_b.row);
    }
  }
  return wrong;
}
