// Where an element lies, in matrices of more than 2^31 elements.
#include <cstdint>
#include <type_traits>

#include "catch.h"
#include "gemm/problem/gemm.h"
#include "harness/base/problem.h"

TEST_CASE("offset: elements beyond 2^31 are where they belong") {
  static_assert(std::is_same_v<decltype(gemm::offset(0, 0, 1)), std::int64_t>);
  struct Case {
    int row, column, columns;
    std::int64_t expected;
  };
  const Case cases[] = {
      {0, 0, 1 << 20, 0},
      {32768, 0, 65536, std::int64_t{1} << 31},            // the first that an int does not hold
      {32767, 65535, 65536, (std::int64_t{1} << 31) - 1},  // the last that it does
      {65535, 65535, 65536, (std::int64_t{1} << 32) - 1},  // the last of 65536 x 65536
      {46341, 0, 46341, 2147488281},
      {harness::kMaxDimension - 1, harness::kMaxDimension - 1, harness::kMaxDimension, 68719476735},
  };
  for (const Case& one : cases) {
    INFO(one.row << ", " << one.column << " of " << one.columns);
    CHECK(gemm::offset(one.row, one.column, one.columns) == one.expected);
    // And back.
    const std::int64_t offset = gemm::offset(one.row, one.column, one.columns);
    CHECK(offset / one.columns == one.row);
    CHECK(offset % one.columns == one.column);
  }
}
