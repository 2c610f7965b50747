// A * B^T in binary64 from operands on the host, computed wherever that is fastest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"

namespace harness {

/// The sums, [m][n], and where `norm` is wanted the Euclidean norms of their products. A device that computes
/// them is not believed blindly: samples, chosen by `key`, are computed again. Throws Error where they
/// differ; `what` says there what is multiplied.
std::vector<double> trusted_sums(const gemm::Shape& shape, const std::vector<float>& a,
                                 const std::vector<float>& b, std::vector<float>* norm, std::uint64_t key,
                                 const std::string& what);

}  // namespace harness
