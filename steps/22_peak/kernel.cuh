// Step 22: what the steps before taught, in one kernel for every shape: which tile, which way round, in which
// clusters, cut along K or not, a model says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "choice.h"
#include "gemm/fitted/fetched_partials.cuh"
#include "gemm/fitted/fitted_kernel.cuh"
#include "gemm/fitted/fitted_launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "split.cuh"

namespace gemm::step_22 {

inline Card card();

/// Tile number kNumber of kTiles as a kernel, and how it is started. The kernel is made from the table that
/// the model reads, so that both speak of the same tile. kLockstep: k-tiles between two barriers of all
/// producers, whatever the model says.
template <std::size_t kNumber, int kLockstep = 0>
struct Built {
  static constexpr FittedTile kTile = kTiles[kNumber];
  using T = WgmmaTiling<kTile.m, kTile.n, kTileK, kTile.warpgroups>;
  static constexpr int kGroups = kTile.groups;
  static constexpr int kBuffers = kChunkBuffers<T, kGroups * kTile.warpgroups>;
  static constexpr int kStages = kMostStages<T, kGroups * kTile.warpgroups, kBuffers>;
  /// Kernels with the same shared memory and threads, built for more or less of a plan.
  template <bool kTransposed, BuiltFor kBuiltFor>
  static constexpr auto* kKernel = fitted_kernel<T, kStages, kGroups, kTransposed, kBuiltFor>;
  template <bool kTransposed, BuiltFor kBuiltFor>
  using Launch = FittedLaunch<kKernel<kTransposed, kBuiltFor>, T, FittedShared<T, kStages, kGroups>,
                              Roles<T, kGroups * kTile.warpgroups>::kThreads, FetchedPartials<T>>;
  /// The emulator gains nothing from narrower kernels, and its compiler would take several times as long.
  static constexpr bool kOneForAll = !ptx::kNarrowKernels && kTile.built_for == BuiltFor::kClusters;
  using Any = Launch<false, kOneForAll ? BuiltFor::kAnyPlan : BuiltFor::kWholeTiles>;

  static Launcher prepare(const Gemm& gemm, const FittedPlan& plan) {
    if constexpr (kOneForAll) {
      return Any::prepare(gemm, plan);
    } else {
      return plan.transposed ? prepare<true>(gemm, plan) : prepare<false>(gemm, plan);
    }
  }
  /// With the kernel that is built for what the plan needs, and for no more.
  template <bool kTransposed>
  static Launcher prepare(const Gemm& gemm, const FittedPlan& plan) {
    if constexpr (kTile.built_for >= BuiltFor::kClusters) {
      if (plan.needs() == BuiltFor::kClusters)
        return Launch<kTransposed, BuiltFor::kClusters>::prepare(gemm, plan);
      if (plan.needs() == BuiltFor::kWholeInClusters)
        return Launch<kTransposed, BuiltFor::kWholeInClusters>::prepare(gemm, plan);
    }
    if constexpr (kTile.built_for >= BuiltFor::kStreamK) {
      if (plan.needs() == BuiltFor::kStreamK)
        return Launch<kTransposed, BuiltFor::kStreamK>::prepare(gemm, plan);
    }
    return Launch<kTransposed, BuiltFor::kWholeTiles>::prepare(gemm, plan);
  }
  /// The best plan for this tile. In lockstep no CTA waits for partials: its tiles are whole ones.
  static FittedPlan plan(const Shape& shape) {
    FittedPlan best = best_plan(kNumber, shape, card()).plan;
    if (kLockstep > 0) {
      best.lockstep = kLockstep;
      best.stream_k_tiles = best.workers = 0;
    }
    return best;
  }
  static const char* summary() {
    if (kGroups == 2) return "two consumer groups";
    return kTile.warpgroups == 3 ? "three warpgroups share the tile" : "two warpgroups share the tile";
  }
  static Variant variant() {
    return {
        .name = kTile.name,
        .summary = summary(),
        .tile = {kTile.m, kTile.n, kTileK},
        .stages = kStages,
        .traffic = wgmma_tile_traffic<T>(),
        .kernel = ptx::kernel_handle(kKernel < false, kOneForAll ? BuiltFor::kAnyPlan : kTile.built_for >),
        .launch_shape = [](const Shape& shape) { return Any::launch_shape(plan(shape)); },
        .prepare = [](const Gemm& gemm) { return prepare(gemm, plan(gemm.shape)); },
        .workspace_bytes = [](const Shape& shape) { return Any::workspace_bytes(shape, plan(shape)); },
        .busiest_tiles =
            [](const Shape& shape) {
              return busiest_k_tiles(Any::decomposition(shape, plan(shape))) / ceil_div(shape.k, kTileK);
            }};
  }
};

/// The same of a tile whose K is cut in a cluster.
template <std::size_t kNumber>
struct BuiltSplit {
  static constexpr FittedTile kTile = kTiles[kNumber];
  using T = WgmmaTiling<kTile.m, kTile.n, kTile.k, kTile.warpgroups>;
  using Launch = SplitLaunch<T>;

  static FittedPlan plan(const Shape& shape) { return best_plan(kNumber, shape, card()).plan; }
  static Launcher prepare(const Gemm& gemm, const FittedPlan& plan) { return Launch::prepare(gemm, plan); }
  static Variant variant() {
    return {.name = kTile.name,
            .summary = "K is cut in a cluster",
            .tile = {kTile.m, kTile.n, kTile.k},
            .stages = Launch::kStages,
            .traffic = wgmma_tile_traffic<T>(),
            .kernel = ptx::kernel_handle(Launch::template kKernel<false, false>),
            .launch_shape = [](const Shape& shape) { return Launch::launch_shape(shape, plan(shape)); },
            .prepare = [](const Gemm& gemm) { return Launch::prepare(gemm, plan(gemm.shape)); },
            .workspace_bytes = [](const Shape&) { return std::int64_t{0}; },
            .busiest_tiles =
                [](const Shape& shape) {
                  const int k_tiles = ceil_div(shape.k, kTile.k);
                  return static_cast<double>(ceil_div(k_tiles, plan(shape).parts)) / k_tiles;
                }};
  }
};

template <std::size_t kNumber>
using BuiltTile = std::conditional_t<kTiles[kNumber].split, BuiltSplit<kNumber>, Built<kNumber>>;

/// This card, and how many clusters it holds: all kernels fill an SM, so any of them will do to ask.
inline Card card() {
  thread_local Card known{.sms = 0};
  Card found = ptx::this_card();
  if (found.sms == known.sms) return known;
  for (const int log2_ctas : {1, 2, 3}) {
    const ClusterShape cluster{1 << log2_ctas, 1};
    const unsigned ctas = Built<0>::Any::full_launch(cluster).grid.x;
    found.clusters[static_cast<std::size_t>(log2_ctas) - 1] =
        found.sms < cluster.ctas() ? 0 : static_cast<int>(ctas) / cluster.ctas();
  }
  return known = found;
}

/// A variant for every tile, in the order of kTiles.
inline const std::vector<Variant>& tiles() {
  static const std::vector<Variant> all = []<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    return std::vector<Variant>{BuiltTile<kNumbers>::variant()...};
  }
  (std::make_index_sequence<kTiles.size()>());
  return all;
}

inline const Variant& chosen(const Shape& shape) {
  return tiles()[choose(shape, card()).tile];
}

/// The largest tile in lockstep at any shape. gains_in_lockstep says where `auto` has one.
template <std::size_t kNumber = number_of("128x256")>
Variant in_lockstep() {
  Variant variant = Built<kNumber, kLockstepPeriod>::variant();
  variant.name = "128x256_lockstep";
  variant.summary += ", in lockstep";
  return variant;
}

/// The tiles, and before them a variant that stands for the one that is predicted to be fastest.
inline std::vector<Variant> variants() {
  std::vector<Variant> all = tiles();
  Variant by_shape = all.front();
  by_shape.name = "auto";
  by_shape.summary = "the one below that suits the shape";
  by_shape.launch_shape = [](const Shape& shape) { return chosen(shape).launch_shape(shape); };
  by_shape.prepare = [](const Gemm& gemm) { return chosen(gemm.shape).prepare(gemm); };
  by_shape.workspace_bytes = [](const Shape& shape) { return chosen(shape).workspace_bytes(shape); };
  by_shape.busiest_tiles = [](const Shape& shape) { return chosen(shape).busiest_tiles(shape); };
  by_shape.choose = [](const Shape& shape) {
    const Prediction best = choose(shape, card());
    return Choice{kTiles[best.tile].name, explain(best, shape, card())};
  };
  all.insert(all.begin(), by_shape);
  all.push_back(in_lockstep());
  return all;
}

inline const Step kStep{.name = "22_peak",
                        .title = "everything together, and the configuration that suits the shape",
                        .unit = MathUnit::kWgmma,
                        .architecture = Architecture::kSm90a,
                        .contract = {.n_multiple = 8, .k_multiple = 8},
                        .variants = variants()};

}  // namespace gemm::step_22
