#include "gemm/problem/types.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "catch.h"

namespace {

using gemm::e4m3;
using gemm::e5m2;
using gemm::fp16;
using gemm::to_float;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A format by its definition: (-1)^sign * 2^(exponent - bias) * 1.fraction, or 0.fraction at exponent 0.
double defined(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = (bits & ((1u << fraction_bits) - 1)) / std::ldexp(1.0, fraction_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return (bits >> (exponent_bits + fraction_bits) & 1u) != 0 ? -magnitude : magnitude;
}

/// What of a format the tests need to know.
template <typename T>
struct Format {
  int exponent_bits;
  int fraction_bits;
  std::uint32_t largest;  // bits of the largest number
  std::uint32_t nan;
  T (*from)(float);
};

/// Every number, every tie between neighbours, and the binary32 numbers next to each.
template <typename T>
void check_rounding(const Format<T>& format) {
  const std::uint32_t sign = 1u << (format.exponent_bits + format.fraction_bits);
  const auto value = [&](std::uint32_t bits) {
    return static_cast<float>(defined(bits, format.exponent_bits, format.fraction_bits));
  };
  for (std::uint32_t bits = 0; bits <= format.largest; ++bits) {
    const float here = value(bits);
    REQUIRE(to_float(T{static_cast<decltype(T::bits)>(bits)}) == here);
    REQUIRE(to_float(T{static_cast<decltype(T::bits)>(bits | sign)}) == -here);
    const float next = bits < format.largest ? value(bits + 1) : here + (here - value(bits - 1));
    const float tie = here / 2 + next / 2;
    const std::uint32_t above = std::min(bits + 1, format.largest);
    const auto same = [&](float from, std::uint32_t expected) {
      INFO("from " << from << " bits " << bits);
      REQUIRE(format.from(from).bits == expected);
      REQUIRE(format.from(-from).bits == (expected | sign));
    };
    same(here, bits);
    same(std::nextafter(tie, 0.0f), bits);
    same(tie, bits % 2 == 0 ? bits : above);
    same(std::nextafter(tie, kInfinity), above);
    same(std::nextafter(next, 0.0f), above);
  }
  for (const float large : {1e30f, std::numeric_limits<float>::max(), kInfinity}) {
    CHECK(format.from(large).bits == format.largest);
    CHECK(format.from(-large).bits == (format.largest | sign));
  }
  CHECK(format.from(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(format.from(-std::numeric_limits<float>::min()).bits == sign);
  CHECK(format.from(kNan).bits == format.nan);
  CHECK(std::isnan(to_float(T{static_cast<decltype(T::bits)>(format.nan)})));
}

TEST_CASE("fp16, e4m3 and e5m2: every number, every tie, and what lies next to them") {
  check_rounding<fp16>({5, 10, 0x7bff, 0x7fff, gemm::to_fp16});
  check_rounding<e4m3>({4, 3, 0x7e, 0x7f, gemm::to_e4m3});
  check_rounding<e5m2>({5, 2, 0x7b, 0x7f, gemm::to_e5m2});
}

TEST_CASE("the ends of the formats") {
  CHECK(to_float(fp16{0x7bff}) == 65504);
  CHECK(to_float(fp16{0x0001}) == 0x1p-24f);
  CHECK(to_float(fp16{0xfc00}) == -kInfinity);
  CHECK(to_float(e4m3{0x7e}) == 448);
  CHECK(to_float(e4m3{0x01}) == 0x1p-9f);
  CHECK(std::isnan(to_float(e4m3{0xff})));
  CHECK(to_float(e5m2{0x7b}) == 57344);
  CHECK(to_float(e5m2{0x01}) == 0x1p-16f);
  CHECK(to_float(e5m2{0x7c}) == kInfinity);
  CHECK(std::isnan(to_float(e5m2{0xfd})));
  CHECK(std::signbit(to_float(e4m3{0x80})));
}

TEST_CASE("e2m1, e2m3 and e3m2: all numbers, which come back, and saturation") {
  const auto check = [](auto from, auto to, int bits, std::vector<float> positive) {
    using T = decltype(to(0.0f));
    REQUIRE(positive.size() == 1u << (bits - 1));
    for (unsigned code = 0; code < positive.size(); ++code) {
      const unsigned sign = 1u << (bits - 1);
      CHECK(from(T{static_cast<std::uint8_t>(code)}) == positive[code]);
      CHECK(from(T{static_cast<std::uint8_t>(code | sign)}) == -positive[code]);
      CHECK(to(positive[code]).bits == code);
      CHECK(to(-positive[code]).bits == (code | sign));
      if (code + 1 < positive.size())
        CHECK(to((positive[code] + positive[code + 1]) / 2).bits == code + code % 2);  // ties to even
    }
    CHECK(to(1000.0f).bits == positive.size() - 1);
    CHECK(to(kNan).bits == positive.size() - 1);
  };
  check([](gemm::e2m1 x) { return to_float(x); }, gemm::to_e2m1, 4, {0, 0.5f, 1, 1.5f, 2, 3, 4, 6});
  std::vector<float> e2m3;
  for (int i = 0; i < 8; ++i) e2m3.push_back(static_cast<float>(i) / 8);
  for (const float unit : {1.0f, 2.0f, 4.0f})
    for (int i = 0; i < 8; ++i) e2m3.push_back(unit * (1 + static_cast<float>(i) / 8));
  check([](gemm::e2m3 x) { return to_float(x); }, gemm::to_e2m3, 6, e2m3);
  std::vector<float> e3m2;
  for (int i = 0; i < 4; ++i) e3m2.push_back(static_cast<float>(i) / 16);
  for (int exponent = -2; exponent <= 4; ++exponent)
    for (int i = 0; i < 4; ++i) e3m2.push_back(std::ldexp(1 + static_cast<float>(i) / 4, exponent));
  check([](gemm::e3m2 x) { return to_float(x); }, gemm::to_e3m2, 6, e3m2);
}

TEST_CASE("ue8m0 is a power of two, ue4m3 an e4m3 without a sign") {
  for (unsigned code = 0; code < 255; ++code)
    CHECK(to_float(gemm::ue8m0{static_cast<std::uint8_t>(code)}) ==
          std::ldexp(1.0f, static_cast<int>(code) - 127));
  CHECK(std::isnan(to_float(gemm::ue8m0{255})));
  CHECK(to_float(gemm::ue4m3{0x7e}) == 448);
  CHECK(to_float(gemm::ue4m3{0xb8}) == 1);
  CHECK(std::isnan(to_float(gemm::ue4m3{0x7f})));
}

TEST_CASE("tf32 is a binary32 without the last 13 bits of its fraction, cut off") {
  for (const std::uint32_t bits : {0x3f801fffu, 0x3f803fffu, 0xbf80ffffu, 0x00001fffu, 0x7f7fffffu}) {
    CHECK(std::bit_cast<std::uint32_t>(to_float(gemm::tf32{bits})) == (bits & ~0x1fffu));
  }
  CHECK(to_float(gemm::tf32{std::bit_cast<std::uint32_t>(1.0f + 0x1p-10f)}) == 1.0f + 0x1p-10f);
  CHECK(to_float(gemm::tf32{std::bit_cast<std::uint32_t>(1.0f + 0x1.fp-11f)}) == 1.0f);
}

TEST_CASE("int8: the nearest integer, ties to even, and both ends") {
  for (int twice = -300; twice <= 300; ++twice) {
    const float value = static_cast<float>(twice) / 2;
    const double nearest = std::nearbyint(static_cast<double>(value));
    CHECK(gemm::to_int8(value) == std::clamp(nearest, -128.0, 127.0));
    CHECK(gemm::to_int8(std::nextafter(value, kInfinity)) ==
          std::clamp(std::nearbyint(static_cast<double>(std::nextafter(value, kInfinity))), -128.0, 127.0));
    CHECK(gemm::to_int8(std::nextafter(value, -kInfinity)) ==
          std::clamp(std::nearbyint(static_cast<double>(std::nextafter(value, -kInfinity))), -128.0, 127.0));
  }
  CHECK(gemm::to_int8(kInfinity) == 127);
  CHECK(gemm::to_int8(-1e30f) == -128);
  CHECK(gemm::to_int8(kNan) == 0);
}

static_assert(gemm::to_e4m3(1.5f).bits == 0x3c && to_float(e4m3{0x3c}) == 1.5f,
              "usable in constant expressions");

}  // namespace
