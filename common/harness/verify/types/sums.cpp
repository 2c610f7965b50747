#include "harness/verify/types/sums.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/base/problem.h"
#include "harness/verify/inputs/input_value.h"
#include "harness/verify/reference.h"
#include "harness/verify/verify.h"

namespace harness {

std::vector<double> trusted_sums(const gemm::Shape& shape, const std::vector<float>& a,
                                 const std::vector<float>& b, std::vector<float>* norm, std::uint64_t key,
                                 const std::string& what) {
  const auto elements = static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.n));
  std::vector<double> value(elements);
  if (norm != nullptr) norm->resize(elements);
  float* const norms = norm != nullptr ? norm->data() : nullptr;
  if (!device_reference(shape, a.data(), b.data(), value.data(), norms)) {
    host_reference(shape, a.data(), b.data(), value.data(), norms);
    return value;
  }
  constexpr std::uint64_t kSamples = 64;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const auto index = static_cast<std::int64_t>(random_bits(key, i) % elements);
    const float* row_a = &a[static_cast<std::size_t>(index / shape.n * shape.k)];
    const float* row_b = &b[static_cast<std::size_t>(index % shape.n * shape.k)];
    double sum = 0;
    double squares = 0;
    for (int k = 0; k < shape.k; ++k) {
      const double product = static_cast<double>(row_a[k]) * static_cast<double>(row_b[k]);
      sum += product;
      squares += product * product;
    }
    const double allowed = norm == nullptr ? 0 : accumulation_error(shape.k, std::sqrt(squares)) / 1000;
    if (std::abs(value[static_cast<std::size_t>(index)] - sum) > allowed)
      throw Error(
          fmt::format("the reference computed on the device cannot be trusted: element {} of {}, {}, is {} "
                      "there and {} on the host",
                      index, to_string(shape), what, value[static_cast<std::size_t>(index)], sum));
  }
  return value;
}

}  // namespace harness
