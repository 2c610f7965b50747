// What D should be, computed slowly and simply enough to be trusted.
#pragma once

#include "gemm/problem/gemm.h"

namespace harness {

/// The contract of device_reference (device_reference.h) on the host: problem.a and problem.b are host
/// memory, problem.d is not used; value, [m][n], gets every sum accumulated in binary64 in ascending k; norm,
/// [m][n] or nullptr, gets the Euclidean norm of the products. All cores.
///
/// The product of two bf16 has at most 16 significant bits and its square 32, so both are exact in binary64
/// and only the additions round: the result is the same with and without FMA, whatever vector unit runs it.
void host_reference(const gemm::Gemm& problem, double* value, float* norm);

/// The same for operands of any type whose numbers a binary32 holds in at most 26 significant bits: a is
/// [m][k] and b is [n][k], decoded.
void host_reference(const gemm::Shape& shape, const float* a, const float* b, double* value, float* norm);

}  // namespace harness
