// The kernels of one cell: step 15's, for every number of stages.
#pragma once

#include <algorithm>

#include "cell.h"
#include "kernel.cuh"  // step 15

namespace sweep {

template <int kM, int kK>
using Tiling = gemm::WgmmaTiling<kM, kTileN, kK, warpgroups_of(kM)>;

/// Tiles are taken in raster groups of 2048 rows of D, or just below, whatever their height, so that every
/// cell reuses the L2 alike.
inline constexpr int kBandRows = 2048;

template <int kM, int kK, int kStages>
gemm::Variant make_variant() {
  using T = Tiling<kM, kK>;
  static_assert(sizeof(gemm::step_15::Shared<T, kStages>) == shared_bytes(kM, kK, kStages),
                "what fits is decided with the size that the kernel has");
  static_assert(std::min(255, gemm::Roles<T>::kAtStart) == registers_at_start(kM),
                "and with the registers that it has");
  using Grid = gemm::PersistentCtas<T, gemm::step_15::Shared<T, kStages>, gemm::Roles<T>::kThreads>;
  return gemm::variant_of<gemm::step_15::tma_store_kernel<T, kStages, true>, Grid>(
      {.name = variant_name(kM, kK, kStages),
       .summary = "step 15's kernel",
       .stages = kStages,
       .traffic = gemm::wgmma_tile_traffic<T>()},
      [](const gemm::Gemm& gemm) {
        const gemm::Raster raster{gemm::RasterOrder::kGrouped, kBandRows / T::kM};
        return gemm::with_tile_maps<T>(gemm, gemm.shape, raster);
      });
}

/// Adds the variants with kStages and more stages.
template <int kM, int kK, int kStages = 2>
void add_variants(Cell& cell) {
  if constexpr (kStages <= most_stages(kM, kK)) {
    if constexpr (is_timed(kM, kK, kStages)) cell.variants.push_back(make_variant<kM, kK, kStages>());
    add_variants<kM, kK, kStages + 1>(cell);
  }
}

template <int kM, int kK>
Cell make_cell() {
  Cell cell = describe(kM, kK);
  if constexpr (fits(kM, kK)) add_variants<kM, kK>(cell);
  return cell;
}

}  // namespace sweep
