// What the quantiser makes of 16 numbers: the scale, and each element.
#include "gemm/epilogue/quantised_store.cuh"

#include <array>
#include <cmath>
#include <limits>

#include "catch.h"

namespace quantised_store_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Values = std::array<float, 16>;

struct Stored {
  unsigned scale;
  std::array<unsigned, 16> elements;
};

Stored stored(const Values& values) {
  const gemm::QuantisedBlock block = gemm::quantise(values.data());
  Stored result{block.scale, {}};
  for (unsigned i = 0; i < 16; ++i) result.elements[i] = block.elements[i / 8] >> 4 * (i % 8) & 0xf;
  return result;
}

TEST_CASE("a block's largest magnitude becomes 6, and the lower column is in the lower half of a byte") {
  const Stored of = stored({6, -6, 4, 3, 2, 1.5f, 1, 0.5f, 0, -0.5f, -1, -1.5f, -2, -3, -4, 5.5f});
  CHECK(of.scale == 0x38);  // 1
  // 5.5 is nearer to 6 than to 4.
  CHECK(of.elements == std::array<unsigned, 16>{7, 0xf, 6, 5, 4, 3, 2, 1, 0, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 7});
}

TEST_CASE("elements are rounded to the nearest, ties to even, after a multiplication with 1 / scale") {
  const Stored of = stored(
      {6, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -0.25f, -0.75f, 0.26f, 0.74f, 2.6f, 3.4f, 5.1f, 4.9f});
  CHECK(of.elements == std::array<unsigned, 16>{7, 0, 2, 2, 4, 4, 6, 6, 8, 0xa, 1, 1, 5, 5, 7, 6});
}

TEST_CASE("elements are divided by the scale as rounded") {
  // 6.3 / 6 = 1.05 becomes 1, and 6.3 stays 6; 6.45 / 6 = 1.075 becomes 1.125, and 2.8 / 1.125 < 2.5 <
  // 2.8 / 1.075.
  CHECK(stored({6.3f}).scale == 0x38);
  const Stored of = stored({6.45f, 2.8f});
  CHECK(of.scale == 0x39);
  CHECK(of.elements[1] == 4);
  CHECK(of.elements[0] == 7);
}

TEST_CASE("zeros, a block that is too small, saturation, infinities and NaN") {
  const Stored zeros = stored({0, -0.0f});
  CHECK(zeros.scale == 0);
  CHECK(zeros.elements[0] == 0);
  CHECK(zeros.elements[2] == 0);

  // At most 6 * 2^-10: the scale is a tie, or less, and becomes 0.
  const Stored small = stored({0x1.8p-8f, -0x1.8p-8f});
  CHECK(small.scale == 0);
  CHECK(small.elements[0] == 0);
  CHECK((small.elements[1] & 7) == 0);
  CHECK(stored({0x1.9p-8f}).scale == 1);
  CHECK(stored({0x1.9p-8f}).elements[0] == 5);  // 3.125 times 2^-9, nearest to 3

  const Stored large = stored({1e6f, 448, -2688});
  CHECK(large.scale == 0x7e);
  CHECK(large.elements[0] == 7);
  CHECK(large.elements[1] == 2);
  CHECK(large.elements[2] == 0xf);

  const Stored infinite = stored({-kInfinity, 1344});
  CHECK(infinite.scale == 0x7e);
  CHECK(infinite.elements[0] == 0xf);
  CHECK(infinite.elements[1] == 5);

  for (const float nan : {std::nanf(""), -std::nanf("")}) {
    const Stored of = stored({1, nan, kInfinity});
    CHECK(of.scale == 0x7f);
    CHECK(of.elements[0] == 7);
  }
  Values last{};
  last[15] = std::nanf("");
  CHECK(stored(last).scale == 0x7f);
}

}  // namespace quantised_store_test
