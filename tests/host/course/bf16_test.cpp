#include "gemm/problem/bf16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "catch.h"

namespace {

using gemm::bf16;
using gemm::to_bf16;
using gemm::to_float;

float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

TEST_CASE("every bf16 survives the way to binary32 and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 value{static_cast<std::uint16_t>(bits)};
    const bool nan = (bits & 0x7fff) > 0x7f80;
    if (nan) {
      REQUIRE(std::isnan(to_float(value)));
      REQUIRE(to_bf16(to_float(value)).bits == 0x7fff);
    } else {
      REQUIRE(to_bf16(to_float(value)).bits == bits);
    }
  }
}

TEST_CASE("conversion to bf16 picks the nearest value") {
  // Against the definition: no finite neighbour is closer, and of two that are as
  // close the even one is taken.
  for (std::uint64_t bits = 0; bits < 0x100000000; bits += 9973) {
    const float value = from_bits(static_cast<std::uint32_t>(bits));
    if (!std::isfinite(value)) continue;
    const bf16 rounded = to_bf16(value);
    if ((rounded.bits & 0x7fff) == 0x7f80) {
      REQUIRE(std::abs(value) >= 0x1.ffp127f);  // half a step above the largest finite bf16, 0x1.fep127
      continue;
    }
    const double error = std::abs(static_cast<double>(to_float(rounded)) - static_cast<double>(value));
    for (const int step : {-1, 1}) {
      const bf16 neighbour{static_cast<std::uint16_t>(rounded.bits + step)};
      if ((neighbour.bits & 0x7fff) >= 0x7f80 || (rounded.bits & 0x7fff) == 0) continue;
      const double other = std::abs(static_cast<double>(to_float(neighbour)) - static_cast<double>(value));
      REQUIRE(error <= other);
      if (error == other) {
        REQUIRE(rounded.bits % 2 == 0);
      }
    }
  }
}

TEST_CASE("conversion to bf16: ties, overflow, NaN") {
  CHECK(to_bf16(from_bits(0x3f808000)).bits == 0x3f80);  // a tie goes down to the even neighbour
  CHECK(to_bf16(from_bits(0x3f818000)).bits == 0x3f82);  // and up to it
  CHECK(to_bf16(from_bits(0x3f808001)).bits == 0x3f81);  // just above a tie
  CHECK(to_bf16(from_bits(0x3f817fff)).bits == 0x3f81);  // just below one
  CHECK(to_bf16(from_bits(0xbf808000)).bits == 0xbf80);
  CHECK(to_bf16(257.0f).bits == to_bf16(256.0f).bits);
  CHECK(to_bf16(259.0f).bits == to_bf16(260.0f).bits);
  CHECK(to_bf16(-0.0f).bits == 0x8000);
  CHECK(to_bf16(from_bits(0x00008000)).bits == 0x0000);  // half the smallest subnormal
  CHECK(to_bf16(from_bits(0x00008001)).bits == 0x0001);
  CHECK(to_bf16(from_bits(0x7f7f7fff)).bits == 0x7f7f);  // rounds to the largest finite value
  CHECK(to_bf16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(to_bf16(-std::numeric_limits<float>::infinity()).bits == 0xff80);
  for (const std::uint32_t nan : {0x7fc00000u, 0x7f800001u, 0xffffffffu, 0xff800001u})
    CHECK(to_bf16(from_bits(nan)).bits == 0x7fff);
}

static_assert(to_bf16(1.5f).bits == 0x3fc0 && to_float(bf16{0x3fc0}) == 1.5f,
              "usable in constant expressions");

}  // namespace
