// The inputs and the reference that the GPU computes for the harness, against the host's.
#include "harness/verify/reference.h"

#include <chrono>
#include <cmath>
#include <vector>

#include "device.h"
#include "harness/backend/device_reference.h"
#include "harness/verify/inputs.h"
#include "harness/verify/types/typed.h"

namespace harness {
namespace {

using gpu_test::DeviceArray;

TEST_CASE("device_fill: the same bits as input_value, all patterns, odd shapes") {
  if (gpu_test::skip_without_gpu()) return;
  for (const Pattern pattern :
       {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange}) {
    for (const Operand operand : {Operand::kA, Operand::kB}) {
      for (const gemm::Shape& size : {gemm::Shape{1, 0, 1}, {7, 0, 257}, {300, 0, 1000}, {5000, 0, 3}}) {
        const InputRule rule = input_rule(pattern, 3, operand, size.m, size.k);
        const auto expected = host_input(rule);
        const DeviceArray<gemm::bf16> device(expected.size());
        REQUIRE(device_fill(device.get(), rule));
        const auto result = device.read();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) wrong += result[i].bits != expected[i].bits ? 1 : 0;
        INFO(to_string(pattern) << ", " << size.m << " x " << size.k);
        CHECK(wrong == 0);
      }
    }
  }
}

/// Both references of one problem; `with_norm` asks for norms.
void compare(Pattern pattern, const gemm::Shape& shape, bool with_norm) {
  const auto a = host_input(input_rule(pattern, 5, Operand::kA, shape.m, shape.k));
  const auto b = host_input(input_rule(pattern, 5, Operand::kB, shape.n, shape.k));
  const DeviceArray<gemm::bf16> device_a(a);
  const DeviceArray<gemm::bf16> device_b(b);
  const auto elements = static_cast<std::size_t>(shape.m) * static_cast<std::size_t>(shape.n);
  std::vector<double> value(elements, -1);
  std::vector<double> expected_value(elements, -2);
  std::vector<float> norm(elements, -1);
  std::vector<float> expected_norm(elements, -2);
  REQUIRE(device_reference({shape, device_a.get(), device_b.get(), nullptr}, value.data(),
                           with_norm ? norm.data() : nullptr));
  host_reference({shape, a.data(), b.data(), nullptr}, expected_value.data(), expected_norm.data());
  std::size_t wrong_values = 0;
  std::size_t wrong_norms = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    // Products are exact in binary64 and both add in ascending k: not a bit may differ.
    wrong_values += value[i] == expected_value[i] ? 0 : 1;
    if (with_norm) wrong_norms += std::abs(norm[i] - expected_norm[i]) <= 0.01f * expected_norm[i] ? 0 : 1;
  }
  INFO(to_string(pattern) << ", " << shape.m << " x " << shape.n << " x " << shape.k);
  CHECK(wrong_values == 0);
  CHECK(wrong_norms == 0);
  if (!with_norm) CHECK(norm.front() == -1);
}

TEST_CASE("device_reference: the same bits as the host's reference, norms to 1 %") {
  if (gpu_test::skip_without_gpu()) return;
  for (const gemm::Shape& shape : {gemm::Shape{1, 1, 1},
                                   {7, 31, 5},
                                   {128, 64, 16},
                                   {129, 65, 17},
                                   {200, 257, 96},
                                   {1, 300, 1000},
                                   {300, 1, 1000},
                                   {257, 129, 4097}}) {
    compare(Pattern::kNormal, shape, true);
    compare(Pattern::kExact, shape, false);
  }
  compare(Pattern::kUniform, {130, 70, 333}, true);
  compare(Pattern::kIdentity, {130, 70, 333}, true);
}

TEST_CASE("device_reference: problems that need several launches") {
  if (gpu_test::skip_without_gpu()) return;
  compare(Pattern::kNormal, {600, 65536, 3}, true);
}

TEST_CASE("device_reference: 16384 cubed in at most 3 seconds", "[slow]") {
  if (gpu_test::skip_without_hopper()) return;
  constexpr int kSize = 16384;
  constexpr int kRows = 4096;  // a quarter, as one slab of the harness
  constexpr auto kSlabElements = static_cast<std::size_t>(kRows) * kSize;
  const InputRule a_rule = input_rule(Pattern::kNormal, 1, Operand::kA, kRows, kSize);
  const InputRule b_rule = input_rule(Pattern::kNormal, 1, Operand::kB, kSize, kSize);
  const DeviceArray<gemm::bf16> a(kSlabElements);
  const DeviceArray<gemm::bf16> b(static_cast<std::size_t>(kSize) * kSize);
  REQUIRE(device_fill(a.get(), a_rule));
  REQUIRE(device_fill(b.get(), b_rule));
  std::vector<double> value(kSlabElements);
  std::vector<float> norm(kSlabElements);
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(device_reference({{kRows, kSize, kSize}, a.get(), b.get(), nullptr}, value.data(), norm.data()));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  INFO("a quarter took " << elapsed.count() << " s");
  CHECK(elapsed.count() * 4 <= 3);
}

TEST_CASE("device_reference: operands of other types, decoded, as on the host") {
  if (gpu_test::skip_without_gpu()) return;
  const gemm::Shape shape{130, 72, 333};
  const gemm::Types types{gemm::Type::kTf32, gemm::Type::kTf32, gemm::Type::kFp32};
  const TypedRules rules = typed_rules(shape, types, Pattern::kExact, 3);
  const auto decoded = [](const InputRule& rule, gemm::Type type) {
    const std::vector<std::uint8_t> matrix = typed_input(rule, type);
    std::vector<float> values(matrix.size() / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = decode(type, bits_at(type, matrix.data(), static_cast<std::int64_t>(i)));
    return values;
  };
  const std::vector<float> a = decoded(rules.a, types.a);
  const std::vector<float> b = decoded(rules.b, types.b);
  const auto elements = static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.n));
  std::vector<double> expected(elements);
  std::vector<double> value(elements);
  std::vector<float> norm(elements);
  host_reference(shape, a.data(), b.data(), expected.data(), nullptr);
  REQUIRE(device_reference(shape, a.data(), b.data(), value.data(), norm.data()));
  CHECK(value == expected);
}

}  // namespace
}  // namespace harness
