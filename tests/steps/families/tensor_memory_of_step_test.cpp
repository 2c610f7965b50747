// A step whose accumulators are in tensor memory: ten seeds, everything as early and as late as it may be, on
// one to six SMs, with one k-tile, one tile, and k-tiles around the number of stages; NaN and infinity.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/backend/emulator_control.h"
#include "harness/verify/workload/typed_workload.h"
#include "steps/verify_shape.h"

namespace {

struct Tiles {
  int rows, columns;
};

constexpr int kAt = 7;  // the element of K that is none of the pattern's

/// D of an exact problem in which an element of each of two rows of A is a NaN, or infinite.
std::vector<float> multiply_with(const gemm::Variant& variant, const gemm::Shape& shape, int nan_row,
                                 int infinite_row) {
  std::vector<float> d;
  if (variant.types.are_bf16()) {
    harness::Workload workload(shape, harness::Pattern::kExact, 1);
    harness::RunImage image = workload.image();
    image.a[static_cast<std::size_t>(nan_row * shape.k + kAt)] = {0x7fff};
    image.a[static_cast<std::size_t>(infinite_row * shape.k + kAt)] = {0x7f80};
    workload.restore(image);
    gemm::prepare(variant, workload.problem())(nullptr);
    harness::synchronize();
    for (const gemm::bf16 element : workload.image().d) d.push_back(gemm::to_float(element));
    return d;
  }
  harness::TypedWorkload workload(shape, variant.types, harness::Pattern::kExact, 1);
  harness::TypedImage image = workload.image();
  for (const int row : {nan_row, infinite_row})  // e4m3 has no infinity
    image.a[static_cast<std::size_t>(row * shape.k + kAt)] = 0x7f;
  workload.restore(image);
  gemm::prepare(variant, workload.problem())(nullptr);
  harness::synchronize();
  const harness::TypedImage after = workload.image();
  for (std::int64_t i = 0; i < gemm::offset(shape.m, 0, shape.n); ++i)
    d.push_back(harness::decode(variant.types.d, harness::bits_at(variant.types.d, after.d.data(), i)));
  return d;
}

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

TEST_CASE("NaN and infinity reach their rows of D, and do not spread", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    if (variant.types.a == gemm::Type::kE2m1) continue;  // has neither; its step's test has NaN in scales
    const gemm::Shape shape = ragged_shape(step, variant, {2, 2}, 2);
    const int nan_row = 5;
    const int infinite_row = variant.tile.m + 1;  // in the last tile, which is not whole
    const std::vector<float> d = multiply_with(variant, shape, nan_row, infinite_row);
    int wrong = 0;
    for (int i = 0; i < shape.m * shape.n; ++i) {
      const float value = d[static_cast<std::size_t>(i)];
      const int row = i / shape.n;
      wrong += std::isfinite(value) == (row == nan_row || row == infinite_row);
      wrong += row == nan_row && !std::isnan(value);
    }
    INFO(variant.name);
    CHECK(wrong == 0);
  }
}
