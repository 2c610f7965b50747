// Step 23: parts of K that are shorter than others or have no k-tile at all, and what is chosen.
#include "23_small/choice.h"

#include <cstddef>
#include <cstdint>

#include "gemm/problem/small.h"
#include "verify_shape.h"

using gemm::Shape;
using gemm::step_23::Cost;
using gemm::step_23::fastest;
using gemm::step_23::kCosts;
using gemm::step_23::predicted_us;

TEST_CASE("fewer k-tiles than parts, as many, and one more than a ring takes") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const int k : {8, 64, 72, 136, 264, 512, 584})
      verify(step_under_test(), variant, {65, variant.tile.n + 8, k}, harness::Pattern::kExact,
             static_cast<std::uint64_t>(k));
  }
}

TEST_CASE("the tile with the shortest predicted time is chosen, and launched") {
  constexpr int kSms = 132;
  for (const Shape& shape :
       {Shape{64, 64, 64}, Shape{512, 256, 2048}, Shape{64, 64, 16384}, Shape{4096, 128, 64}}) {
    const auto chosen = static_cast<std::size_t>(fastest(shape, kSms));
    for (const Cost& cost : kCosts)
      CHECK(predicted_us(kCosts[chosen], shape, kSms) <= predicted_us(cost, shape, kSms));
  }
  // One k-tile cannot be cut, and a long K is cut as often as SMs are left.
  CHECK(kCosts[static_cast<std::size_t>(fastest({64, 64, 64}, kSms))].parts == 1);
  CHECK(kCosts[static_cast<std::size_t>(fastest({64, 64, 16384}, kSms))].parts == 8);
  for (std::size_t i = 0; i < kCosts.size(); ++i) {
    const gemm::Variant& variant = step_under_test().variants[i + 1];  // the first one chooses
    const Shape shape{200, 200, 1000};
    CHECK(variant.tile.n == kCosts[i].tile_n);
    CHECK(variant.launch_shape(shape).grid.count() == ctas(kCosts[i], shape));
  }
}

TEST_CASE("a problem is small as long as no SM gets more than 16 k-tiles of one tile") {
  constexpr int kSms = 132;
  CHECK(gemm::is_small({64, 64, 64}, kSms));
  CHECK(gemm::is_small({64, 64, 8 * 16 * 64}, kSms));
  CHECK_FALSE(gemm::is_small({64, 64, 8 * 16 * 64 + 8}, kSms));
  CHECK(gemm::is_small({64 * 132, 64, 16 * 64}, kSms));
  CHECK_FALSE(gemm::is_small({64 * 133, 64, 64}, kSms));
  CHECK_FALSE(gemm::is_small({16384, 16384, 64}, kSms));
}
