// A step whose CTAs work on several tiles: any number of them, on any number of SMs.
#include <vector>

#include "harness/backend/emulator_control.h"
#include "steps/verify_shape.h"

namespace {

/// D of `rows` x `columns` tiles, the last ones not whole.
gemm::Shape tiles_shape(const gemm::Step& step, const gemm::Variant& variant, int rows, int columns,
                        int k_tiles) {
  return inside_contract(step,
                         {rows * variant.tile.m - variant.tile.m / 2 + 1,
                          columns * variant.tile.n - variant.tile.n / 2 - 8, k_tiles * variant.tile.k - 8});
}

}  // namespace

TEST_CASE("any number of tiles on any number of SMs", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  for (int sms = 1; sms <= 5; ++sms) {
    harness::control_emulator({.schedule_seed = static_cast<std::uint64_t>(sms), .sm_count = sms});
    const gemm::Variant& variant = step.variants.front();
    // One tile, fewer than SMs, as many, one more than a wave, an odd number in several waves.
    std::vector<int> counts{1, sms - 1, sms, sms + 1, 2 * sms + 1};
    if (sms == 5) counts.back() = 3;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const int tiles = counts[i];
      if (tiles < 1) continue;
      const int k_tiles = 1 + static_cast<int>(i) % 3;
      const bool upright = (static_cast<int>(i) + sms) % 2 == 0;
      INFO(sms << " SMs, " << tiles << " tiles");
      verify(step, variant, tiles_shape(step, variant, upright ? tiles : 1, upright ? 1 : tiles, k_tiles),
             harness::Pattern::kExact, 3);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("every variant on an odd number of tiles in both directions", "[emulator]") {
  if (skip_without_emulator()) return;
  // Clusters hang over both edges, and every raster has a ragged end.
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    for (const int sms : {2, 3}) {
      harness::control_emulator({.sm_count = sms});
      INFO(sms << " SMs, 3 x 3 tiles");
      verify(step, variant, tiles_shape(step, variant, 3, 3, sms), harness::Pattern::kExact, 4);
    }
  }
  harness::control_emulator({});
}

TEST_CASE("a ring that wraps between tiles, under every schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  const gemm::Variant& variant = step.variants.front();
  for (const harness::Completion completion :
       {harness::Completion::kEarliest, harness::Completion::kLatest, harness::Completion::kRandom}) {
    // A CTA, or a cluster, works on several tiles whose k-tiles are no multiple of the stages.
    const int k_tiles = variant.stages % 3 == 0 ? 4 : 3;
    harness::control_emulator({.schedule_seed = 9, .completion = completion, .sm_count = 2});
    verify(step, variant, tiles_shape(step, variant, 2, 5, k_tiles), harness::Pattern::kExact, 6);
  }
  harness::control_emulator({});
}
