// Step 19's own shapes: stream-K tiles and data-parallel tiles in both kinds of consumer groups, entries of
// the queue that are written again, launches behind each other.
#include <algorithm>
#include <cstdint>

#include "catch.h"
#include "gemm/schedule/decomposition.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "launches.h"
#include "schedules.h"

namespace {

/// All of a tile matters where partials are passed on: `tiles` tiles below each other, nearly whole.
gemm::Shape whole_tiles_of(const gemm::Variant& variant, int tiles, int k_tiles) {
  return {tiles * variant.tile.m - 5, variant.tile.n - 8, k_tiles * variant.tile.k - 24};
}

bool has_stream_k_tiles(const gemm::Variant& variant) {
  return variant.name.find("_whole") == std::string::npos;
}

}  // namespace

TEST_CASE("fewer tiles than SMs, as many, one more, and few k-tiles, twice", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (int sms = 1; sms <= 6; ++sms) {
    for (std::size_t i = 0; i < step_under_test().variants.size(); ++i) {
      const gemm::Variant& variant = step_under_test().variants[i];
      const int which = (sms + static_cast<int>(i)) % 3;
      under({static_cast<std::uint64_t>(sms), Completion::kRandom}, sms);
      INFO(sms << " SMs");
      if (which == 0) verify_twice(variant, shape_of(variant, 1, sms));
      if (which == 1) verify_twice(variant, shape_of(variant, std::max(1, sms - 1), 2));
      if (which == 2) verify_twice(variant, shape_of(variant, sms + 1, 1 + sms % 2));
    }
  }
  harness::control_emulator({});
}

TEST_CASE("stream-K tiles alone, and data-parallel tiles behind them, five launches", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  constexpr int kSms = 3;
  for (const gemm::Variant& variant : step_under_test().variants) {
    // 1 tile is for all three SMs together; of 7 tiles the last one is no whole wave.
    for (const auto& [tiles, k_tiles] : {std::pair{1, 60}, std::pair{7, 60}}) {
      const gemm::Shape shape = whole_tiles_of(variant, tiles, k_tiles);
      const gemm::Decomposition all = gemm::decompose(gemm::Split::kHybrid, tiles, k_tiles, kSms);
      REQUIRE(all.stream_k_tiles > 0);
      REQUIRE((all.stream_k_tiles < tiles) == (tiles == 7));
      int number = 0;
      for (const Schedule& schedule : kSchedules) {
        if ((number++ + tiles) % 2 != 0 && !has_stream_k_tiles(variant)) continue;
        under(schedule, kSms);
        CHECK((variant.workspace_bytes(shape) > 0) == has_stream_k_tiles(variant));
        CHECK(variant.launch_shape(shape).co_resident == has_stream_k_tiles(variant));
        verify_launches(variant, shape, number == 1 ? 5 : 2);
      }
      CHECK(variant.workspace_bytes(whole_tiles_of(variant, kSms, 2)) == 0);
      CHECK_FALSE(variant.launch_shape(whole_tiles_of(variant, kSms, 2)).co_resident);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("entries of the queue and store buffers are used again, under every schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Schedule& schedule : kSchedules) {
      // Three times as many tiles as entries, whole in M so that no store is clipped away.
      under(schedule, 1);
      verify_twice(variant, {11 * variant.tile.m + 3, 40, variant.tile.k});
    }
  }
  harness::control_emulator({});
}
