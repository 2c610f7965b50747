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

/// As step 15 prepares its own tiles, and with operands in panels of 32 when the k-tile is no deeper.
template <typename T, int kStages>
gemm::Launcher prepare(const gemm::Gemm& gemm) {
  const auto [m, n, k] = gemm.shape;
  const gemm::Raster raster{gemm::RasterOrder::kGrouped, kBandRows / T::kM};
  return [shape = gemm.shape, raster, a_map = gemm::operand_map<T::kPanelK>(gemm.a, m, k, T::kM),
          b_map = gemm::operand_map<T::kPanelK>(gemm.b, n, k, T::kN),
          d_map = gemm::operand_map(gemm.d, m, n, 64),
          launch = gemm::step_15::launch_shape<T, kStages, true>(gemm.shape)](gemm::ptx::Stream stream) {
    gemm::ptx::launch(gemm::step_15::tma_store_kernel<T, kStages, true>, launch, stream, shape, raster, a_map,
                      b_map, d_map);
  };
}

template <int kM, int kK, int kStages>
gemm::Variant make_variant() {
  using T = Tiling<kM, kK>;
  static_assert(sizeof(gemm::step_15::Shared<T, kStages>) == shared_bytes(kM, kK, kStages),
                "what fits is decided with the size that the kernel has");
  static_assert(std::min(255, gemm::Roles<T>::kAtStart) == registers_at_start(kM),
                "and with the registers that it has");
  return {.name = variant_name(kM, kK, kStages),
          .summary = "step 15's kernel",
          .tile = {kM, kTileN, kK},
          .stages = kStages,
          .traffic = gemm::wgmma_tile_traffic<T>(),
          .kernel = gemm::ptx::kernel_handle(gemm::step_15::tma_store_kernel<T, kStages, true>),
          .launch_shape = gemm::step_15::launch_shape<T, kStages, true>,
          .prepare = prepare<T, kStages>};
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
