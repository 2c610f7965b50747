// Approximate instructions: never farther off than the PTX ISA documents, and off by something else with
// every seed, so that no kernel can rely on the bits.
#include "ptx/math.cuh"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "emulator/emulator_test.h"

using namespace emulator_test;

namespace math_test {

enum Function { kTanh, kEx2, kRcp, kMax };

__global__ void apply(Function function, const float* in, float* out, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) {
    const float x = ptx::ld_global(in + i);
    const float y = function == kTanh  ? ptx::tanh_approx_f32(x)
                    : function == kEx2 ? ptx::ex2_approx_ftz_f32(x)
                    : function == kRcp ? ptx::rcp_approx_ftz_f32(x)
                                       : ptx::max_nan_f32(x, 0.0f);
    ptx::st_global(out + i, y);
  }
}

std::vector<float> applied(Function function, const std::vector<float>& in, std::uint64_t seed = 1) {
  emulator::Options options;
  options.seed = seed;
  const emulator::ScopedOptions scope(options);
  const DeviceArray<float> input(in, "in");
  const DeviceArray<float> output(std::vector<float>(in.size()), "out");
  require_passes(run(apply, one_cta(32), function, input.get(), output.get(), static_cast<int>(in.size())));
  return output.host();
}

std::vector<float> some_values() {
  std::vector<float> values;
  for (float size = 1e-6F; size < 90; size *= 1.07F) {
    values.push_back(size);
    values.push_back(-size);
  }
  return values;
}

/// The distance from one to the other in units of the last place of `to`.
double ulps(double from, float to) {
  const double unit = std::nextafter(std::abs(to), std::numeric_limits<float>::infinity()) - std::abs(to);
  return std::abs(from - static_cast<double>(to)) / unit;
}

TEST_CASE("approximations are never farther off than documented") {
  const std::vector<float> in = some_values();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<float> tanh = applied(kTanh, in, seed);
    const std::vector<float> ex2 = applied(kEx2, in, seed);
    const std::vector<float> rcp = applied(kRcp, in, seed);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto x = static_cast<double>(in[i]);
      CAPTURE(seed, x);
      CHECK(std::abs(static_cast<double>(tanh[i]) / std::tanh(x) - 1) <= 0x1p-11);
      CHECK(ulps(static_cast<double>(ex2[i]), static_cast<float>(std::exp2(x))) <= 2);
      CHECK(ulps(1 / x, rcp[i]) <= 1);
    }
  }
}

TEST_CASE("approximations use most of what is documented, and differ from seed to seed") {
  const std::vector<float> in = some_values();
  double tanh_off = 0;
  double ex2_off = 0;
  std::set<float> of_one_operand;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<float> tanh = applied(kTanh, in, seed);
    const std::vector<float> ex2 = applied(kEx2, in, seed);
    of_one_operand.insert(tanh[100]);
    CHECK(applied(kTanh, in, seed) == tanh);  // the same seed, the same result
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto x = static_cast<double>(in[i]);
      tanh_off = std::max(tanh_off, std::abs(static_cast<double>(tanh[i]) / std::tanh(x) - 1));
      ex2_off = std::max(ex2_off, ulps(static_cast<double>(ex2[i]), static_cast<float>(std::exp2(x))));
    }
  }
  CHECK(tanh_off > 0.9 * 0x1p-11);
  CHECK(ex2_off == 2);
  CHECK(of_one_operand.size() > 10);
}

TEST_CASE("approximations of what the tables list are exact") {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> in{-infinity, -0.0F, 0.0F, infinity, nan};
  const std::vector<float> tanh = applied(kTanh, in);
  CHECK(tanh[0] == -1);
  CHECK((tanh[1] == 0 && std::signbit(tanh[1])));
  CHECK((tanh[2] == 0 && !std::signbit(tanh[2])));
  CHECK(tanh[3] == 1);
  CHECK(std::isnan(tanh[4]));
  const std::vector<float> ex2 = applied(kEx2, in);
  CHECK((ex2[0] == 0 && ex2[1] == 1 && ex2[2] == 1 && ex2[3] == infinity && std::isnan(ex2[4])));
  const std::vector<float> rcp = applied(kRcp, in);
  CHECK((rcp[0] == 0 && std::signbit(rcp[0]) && rcp[1] == -infinity && rcp[2] == infinity && rcp[3] == 0));
  CHECK(std::isnan(rcp[4]));
  // Subnormal numbers are flushed: operands and results.
  CHECK(applied(kRcp, {0x1p-140F})[0] == infinity);
  CHECK(applied(kRcp, {0x1p127F})[0] == 0);
  CHECK(applied(kEx2, {-130})[0] == 0);
  const std::vector<float> larger = applied(kMax, {-1, 2, nan});
  CHECK((larger[0] == 0 && larger[1] == 2 && std::isnan(larger[2])));
}

__global__ void combine(const std::uint32_t* in, std::uint32_t* out, int count) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += 32) {
    const std::uint32_t a = ptx::ld_global(in + 3 * i);
    const std::uint32_t b = ptx::ld_global(in + 3 * i + 1);
    const std::uint32_t c = ptx::ld_global(in + 3 * i + 2);
    ptx::st_global(out + 2 * i, ptx::fma_rn_bf16x2(a, b, c));
    ptx::st_global(out + 2 * i + 1, ptx::lop3_and_or(a, b, c));
  }
}

TEST_CASE("math: an FMA of bf16 rounds once, each half by itself, and lop3 is (a & b) | c") {
  const std::vector<std::uint32_t> in{
      0x43054308, 0x3f803f80, 0xc308c308,  // 133 - 136 and 136 - 136
      0x430f4301, 0x41804180, 0xc510c510,  // 16 * 143 - 2304 and 16 * 129 - 2304
      0x00100008, 0x7b807b80, 0x00000000,  // subnormal times 2^120
      0x3f813f81, 0x3f813f81, 0x2e802f80,  // 1.0078125 squared, and a little more or less
      0x3f813f81, 0x3f813f81, 0xae80af80};
  const std::vector<std::uint32_t> expected{0xc0400000, (0x43054308u & 0x3f803f80u) | 0xc308c308u,
                                            0xc180c370, (0x430f4301u & 0x41804180u) | 0xc510c510u,
                                            0x3b003a80, 0x00100008u & 0x7b807b80u,
                                            0x3f823f82, (0x3f813f81u & 0x3f813f81u) | 0x2e802f80u,
                                            0x3f823f82, (0x3f813f81u & 0x3f813f81u) | 0xae80af80u};
  const DeviceArray<std::uint32_t> input(in, "in");
  const DeviceArray<std::uint32_t> output(std::vector<std::uint32_t>(expected.size()), "out");
  require_passes(run(combine, one_cta(32), input.get(), output.get(), static_cast<int>(expected.size() / 2)));
  CHECK(output.host() == expected);
  // A tie, and what lies a little above and below it: 0x3f80 (1) + 2^-8, which lies between two bf16.
  CHECK(emulator::fma_bf16(0x3b80, 0x3f80, 0x3f80) == 0x3f80);  // to even
  CHECK(emulator::fma_bf16(0x3b80, 0x3f81, 0x3f80) == 0x3f81);
  CHECK(emulator::fma_bf16(0x3b80, 0x3f7f, 0x3f80) == 0x3f80);
  CHECK(emulator::fma_bf16(0x3f80, 0x3f80, 0x0001) == 0x3f80);  // far below: nothing
  CHECK(emulator::fma_bf16(0x7f80, 0x3f80, 0x3f80) == 0x7f80);  // infinity
  CHECK((emulator::fma_bf16(0x7f80, 0x0000, 0x3f80) & 0x7fffu) > 0x7f80u);
}

__global__ void combine_fp16(const std::uint32_t* in, std::uint32_t* out) {
  if (threadIdx.x == 0)
    ptx::st_global(out,
                   ptx::fma_rn_f16x2(ptx::ld_global(in), ptx::ld_global(in + 1), ptx::ld_global(in + 2)));
}

TEST_CASE("math: an FMA of fp16 rounds once, keeps subnormal numbers, and overflows to infinity") {
  // 5 * 2^-24 times 2^15, minus 1/64, and 13 * 2^-20 times 2^11 minus 1/64.
  const DeviceArray<std::uint32_t> input({0x000d0005, 0x78007800, 0xa400a400}, "in");
  const DeviceArray<std::uint32_t> output(std::vector<std::uint32_t>(1), "out");
  require_passes(run(combine_fp16, one_cta(32), input.get(), output.get()));
  CHECK(output.host().front() == 0x2100'9e00u);                // 5/512 and -3/512
  CHECK(emulator::fma_f16(0x1000, 0x3c00, 0x3c00) == 0x3c00);  // 1 + 2^-11, a tie: to even
  CHECK(emulator::fma_f16(0x1000, 0x3c01, 0x3c00) == 0x3c01);  // and a little more
  CHECK(emulator::fma_f16(0x0001, 0x3c00, 0x0001) == 0x0002);  // subnormal
  CHECK(emulator::fma_f16(0x7bff, 0x3c00, 0x4b80) == 0x7bff);  // 65504 + 15
  CHECK(emulator::fma_f16(0x7bff, 0x3c00, 0x4c00) == 0x7c00);  // 65504 + 16
  CHECK(emulator::fma_f16(0xfbff, 0x4000, 0x0000) == 0xfc00);
  CHECK((emulator::fma_f16(0x7c00, 0x0000, 0x3c00) & 0x7fffu) > 0x7c00u);
}

}  // namespace math_test
