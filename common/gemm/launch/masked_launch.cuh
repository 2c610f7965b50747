// How the host starts a persistent kernel for groups whose sizes only the device knows.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "gemm/epilogue/store_tile.cuh"
#include "gemm/launch/persistent_launch.cuh"
#include "gemm/launch/tile_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "ptx/launch.cuh"
#include "ptx/workspace.h"

namespace gemm {

/// Group g has room for `capacity` rows, from row g * capacity on, and counts[g] of them are its.
struct MaskedGroups {
  const int* counts;  // [count], in device memory
  int count;
  int capacity;
};

/// As many tiles as there would be if every group were full: no launch has more. Throws
/// std::invalid_argument where an int cannot count them.
template <typename T>
int most_tiles(const MaskedGroups& groups, int n) {
  const std::int64_t tiles =
      std::int64_t{groups.count} * ceil_div(groups.capacity, T::kM) * ceil_div(n, T::kN);
  constexpr int kMost = std::numeric_limits<int>::max() / 2;  // a CTA counts on, past the last one
  if (tiles > kMost)
    throw std::invalid_argument("the groups have room for " + std::to_string(tiles) +
                                " tiles: the kernel counts to " + std::to_string(kMost));
  return static_cast<int>(tiles);
}

/// How the host starts kKernel(gemm, raster, groups, a_map, b_map, d_map), persistent: with a CTA for every
/// SM, because the host does not know how many tiles there are.
template <auto kKernel, typename T, typename Shared, int kThreads, RasterOrder kOrder, int kGroup>
struct MaskedLaunch {
  static ptx::LaunchShape launch_of(int tiles) {
    return persistent_launch<kKernel>({.block = {kThreads}, .shared_bytes = kSharedBytes<Shared>}, tiles);
  }
  static ptx::LaunchShape launch_shape(const Shape& shape) {  // of one group
    return launch_of(tile_grid<T>(shape).count());
  }
  static Launcher prepare_problem(const Problem& problem) {
    const auto [m, n, k] = problem.shape;
    MaskedGroups groups{problem.counts, 1, m};
    std::shared_ptr<ptx::DeviceCopy> all_rows;  // the count of the one group of a problem without any
    if (problem.capacity != 0) {
      groups.count = m / problem.capacity;
      groups.capacity = problem.capacity;
    } else {
      all_rows = std::make_shared<ptx::DeviceCopy>(&m, sizeof m);
      groups.counts = static_cast<const int*>(all_rows->memory());
    }
    return [gemm = static_cast<const Gemm&>(problem), groups, all_rows,
            a_map = operand_map<T>(problem.a, m, k, T::kWarpgroupM),
            b_map = operand_map<T>(problem.b, groups.count * n, k, T::kN, ptx::L2Promotion::k256B),
            d_map = store_map(problem.d, m, n),
            launch = launch_of(most_tiles<T>(groups, n))](ptx::Stream stream) {
      ptx::launch(kKernel, launch, stream, gemm, Raster{kOrder, kGroup}, groups, a_map, b_map, d_map);
    };
  }
  static Launcher prepare(const Gemm& gemm) { return prepare_problem(gemm); }
  static Variant variant(Variant given) {
    given.groups = true;
    given.masked = true;
    given.prepare_problem = prepare_problem;
    return complete_variant<kKernel, T, MaskedLaunch>(given);
  }
};

}  // namespace gemm
