#include "harness/verify/reference.h"

#include <cmath>
#include <vector>

#include "catch.h"
#include "harness/verify/inputs.h"

namespace {

using harness::Operand;
using harness::Pattern;

TEST_CASE("the reference is a triple loop") {
  const gemm::Shape shapes[] = {{1, 1, 1},     {1, 1, 300},   {7, 3, 5},     {5, 130, 1},    {130, 5, 9},
                                {33, 65, 257}, {64, 64, 256}, {65, 63, 513}, {3, 200, 1000}, {129, 70, 255}};
  for (const gemm::Shape& shape : shapes) {
    for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kUniform}) {
      CAPTURE(shape.m, shape.n, shape.k, harness::to_string(pattern));
      const auto a = harness::host_input(harness::input_rule(pattern, 5, Operand::kA, shape.m, shape.k));
      const auto b = harness::host_input(harness::input_rule(pattern, 5, Operand::kB, shape.n, shape.k));
      const auto elements = static_cast<std::size_t>(shape.m * shape.n);
      std::vector<double> value(elements, NAN);
      std::vector<float> norm(elements, NAN);
      harness::host_reference({shape, a.data(), b.data(), nullptr}, value.data(), norm.data());
      std::vector<double> value_alone(elements, NAN);
      harness::host_reference({shape, a.data(), b.data(), nullptr}, value_alone.data(), nullptr);
      CHECK(value_alone == value);
      for (int i = 0; i < shape.m; ++i) {
        for (int j = 0; j < shape.n; ++j) {
          long double sum = 0;
          long double squares = 0;
          for (int k = 0; k < shape.k; ++k) {
            const long double product =
                static_cast<long double>(gemm::to_float(a[static_cast<std::size_t>(i * shape.k + k)])) *
                static_cast<long double>(gemm::to_float(b[static_cast<std::size_t>(j * shape.k + k)]));
            sum += product;
            squares += product * product;
          }
          const auto index = static_cast<std::size_t>(i * shape.n + j);
          const auto expected_norm = static_cast<double>(std::sqrt(squares));
          if (pattern == Pattern::kExact) {
            REQUIRE(value[index] == static_cast<double>(sum));
          } else {
            REQUIRE(std::abs(value[index] - static_cast<double>(sum)) <= 1e-13 * expected_norm);
          }
          REQUIRE(std::abs(static_cast<double>(norm[index]) - expected_norm) <= 1e-6 * expected_norm);
        }
      }
    }
  }
}

}  // namespace
