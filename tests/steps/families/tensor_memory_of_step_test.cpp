// A step whose accumulators are in tensor memory: ten seeds, everything as early and as late as it may be, on
// one to six SMs, with one k-tile, one tile, and k-tiles around the number of stages.
#include <algorithm>
#include <vector>

#include "harness/backend/emulator_control.h"
#include "steps/verify_shape.h"

namespace {

struct Tiles {
  int rows, columns;
};

/// D of so many tiles, of which the last row and column are not whole.
gemm::Shape ragged_shape(const gemm::Step& step, const gemm::Variant& variant, Tiles tiles, int k_tiles) {
  return inside_contract(step,
                         {(tiles.rows - 1) * variant.tile.m + 3, (tiles.columns - 1) * variant.tile.n + 40,
                          k_tiles * variant.tile.k - (k_tiles % 2 == 0 ? 24 : 0)});
}

}  // namespace

TEST_CASE("tiles, k-tiles, SMs and schedules in every mixture", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  constexpr Tiles kTiles[] = {{1, 1}, {2, 1}, {1, 3}, {3, 2}, {7, 1}, {2, 4}, {5, 1}};
  for (const gemm::Variant& variant : step.variants) {
    const int stages = std::max(2, variant.stages);
    std::size_t run = 0;
    for (std::uint64_t schedule = 0; schedule < 12; ++schedule) {
      const harness::Completion completion = schedule == 10   ? harness::Completion::kEarliest
                                             : schedule == 11 ? harness::Completion::kLatest
                                                              : harness::Completion::kRandom;
      for (const int k_tiles : {1, stages - 1, stages, stages + 1, 2 * stages + 1}) {
        const int sms = 1 + static_cast<int>(run % 6);
        const Tiles tiles = kTiles[run++ % std::size(kTiles)];
        harness::control_emulator({.schedule_seed = schedule, .completion = completion, .sm_count = sms});
        INFO("seed " << schedule << ", completion " << static_cast<int>(completion) << ", " << sms << " SMs");
        verify(step, variant, ragged_shape(step, variant, tiles, k_tiles), harness::Pattern::kExact,
               schedule);
      }
    }
  }
  harness::control_emulator({});
}
