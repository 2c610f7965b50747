// The second half of an unfused baseline: what an epilogue does, as a kernel of its own. GPU build only.
#pragma once

#include <cstdint>

#include "gemm/problem/bf16.h"
#include "gemm/problem/problem.h"
#include "ptx/launch_shape.h"

namespace harness {

// All of them access 16 bytes a thread, four of them in flight or more: limited by memory. D, C and the
// auxiliary tensor must start on 16 bytes, N and the pitches be multiples of 8.

/// problem.d holds A * B^T in bf16, and gets activation(alpha * d + beta * C + bias).
void launch_elementwise(const gemm::Problem& problem, gemm::ptx::Stream stream);

/// The same where the epilogue has a tensor: alpha is 1 and there is no bias. d, or of a pre-activation that
/// is written the tensor itself, holds x.
void launch_with_tensor(const gemm::Problem& problem, gemm::ptx::Stream stream);

/// problem.d is finished: sums over its columns or rows, or its largest magnitude, in the order of arrival. D
/// is read once.
void launch_reduction(const gemm::Problem& problem, gemm::ptx::Stream stream);

/// The one of these that the epilogue needs.
void launch_second(const gemm::Problem& problem, gemm::ptx::Stream stream);

/// d[i] = the sum of part[i] over all parts, rounded once. `count` is a multiple of 8.
inline constexpr int kMostParts = 8;
struct SumParts {
  const gemm::bf16* part[kMostParts] = {};
  int parts = 0;
};
void launch_sum(const SumParts& parts, gemm::bf16* d, std::int64_t count, gemm::ptx::Stream stream);

/// wide[i] = narrow[i]
void launch_widening(const gemm::bf16* narrow, float* wide, int count, gemm::ptx::Stream stream);

}  // namespace harness
