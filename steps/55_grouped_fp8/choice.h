// Which of two tiles suits groups whose sizes the host knows: the one whose waves take fewer clocks.
#pragma once

#include <algorithm>

#include "gemm/launch/groups.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/problem/types.h"
#include "gemm/tile/byte_tile.cuh"
#include "ptx/launch.cuh"

namespace gemm::step_55 {

/// The clocks of a k-tile in all waves, with step 46's two limits: the tensor cores, and the copies.
// ANCHOR: limit
template <typename T>
double limit_clocks(const Problem& problem) {
  constexpr double kMultiplied = 4096;  // multiply-adds per clock and SM
  constexpr double kCopied = 50;        // bytes per clock and SM
  const int waves = ceil_div(count_tiles<T>(problem), ptx::this_card().sms);
  return waves * std::max(T::kM * T::kN * kScaleBlock / kMultiplied, (T::kM + T::kN) * kRowBytes / kCopied);
}
// ANCHOR_END: limit

/// A variant that takes the narrow tiles where their waves take fewer clocks, and otherwise the wide ones.
template <typename WideT, typename NarrowT>
Variant whichever_suits(const Variant& wide, const Variant& narrow) {
  Variant either = wide;
  either.name = "auto";
  either.summary = "whichever of the next two suits the groups";
  either.prepare = [wide, narrow](const Problem& problem) {
    const bool takes_narrow = limit_clocks<NarrowT>(problem) < limit_clocks<WideT>(problem);
    return (takes_narrow ? narrow : wide).prepare(problem);
  };
  return either;
}

}  // namespace gemm::step_55
