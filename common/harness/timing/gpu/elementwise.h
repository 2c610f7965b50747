// The second half of an unfused baseline: the epilogue as a kernel of its own. GPU build only.
#pragma once

#include "gemm/problem/problem.h"
#include "ptx/launch_shape.h"

namespace harness {

/// problem.d holds A * B^T in bf16, and gets activation(alpha * d + beta * C + bias). 16 bytes a thread and
/// access, four of them in flight: limited by memory. D and C must start on 16 bytes, N and the pitch of C be
/// multiples of 8.
void launch_elementwise(const gemm::Problem& problem, gemm::ptx::Stream stream);

}  // namespace harness
