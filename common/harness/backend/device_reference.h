// What the device can do for the harness where the host would be too slow or too late. A backend that cannot
// returns false, and the harness does it on the host.
#pragma once

#include <cstddef>

#include "gemm/problem/gemm.h"

namespace harness {

struct InputRule;  // harness/verify/inputs/input_value.h; what a backend implements is below it

/// Writes input_value(rule, row, column, table) to every element of `device`, [rule.rows][rule.columns],
/// dense; `table` is a device copy of normal_quantiles() (host memory, kNormalQuantiles entries). Returns
/// when done, or false, having written nothing, when this backend cannot. The harness reads the matrix back
/// in every check and compares it with the same function on the host, so a wrong bit
/// here never goes unnoticed.
bool device_fill(gemm::bf16* device, const InputRule& rule);

/// The reference for D, computed by a plain kernel in binary64 from problem.a and problem.b (device memory;
/// problem.d is not touched): for every element, with p_k = a(i, k) * b(j, k),
///   value_host[i * n + j]  sum over k of p_k, every operation in binary64
///   norm_host[i * n + j]   sqrt(sum over k of p_k^2), to 1 % or better; nullptr when it is not wanted
/// Both are host memory, [m][n]. Returns when they are complete, or false, having written nothing, when this
/// backend cannot. The harness calls it for slabs of rows (problem.a and shape.m adjusted) of at most
/// kReferenceSlab elements, and recomputes a sample of the elements on the host.
bool device_reference(const gemm::Gemm& problem, double* value_host, float* norm_host);
/// The same for operands that were decoded to binary32 on the host (see reference.h): a_host is [m][k],
/// b_host is [n][k], host memory.
bool device_reference(const gemm::Shape& shape, const float* a_host, const float* b_host, double* value_host,
                      float* norm_host);
inline constexpr std::size_t kReferenceSlab = std::size_t{1} << 26;

/// Declares [memory, memory + bytes), a part of one allocation, off limits to kernels: a guard band. The
/// emulator reports an access as out of bounds, like one outside the allocation; host copies stay allowed.
/// The GPU cannot and returns false: there the band's contents are checked after the run.
bool device_off_limits(const void* memory, std::size_t bytes);

}  // namespace harness
