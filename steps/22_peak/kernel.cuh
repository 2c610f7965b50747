// Step 22: what the steps before taught, for every shape: a model says which tile, which way round, in which
// clusters, and whether K is cut. The kernels are in gemm/fitted/fitted_kernel.cuh and split.cuh; this file
// builds them for the tiles of tiles.h and starts the one that is chosen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "choice.h"
#include "chosen_plan.h"
#include "gemm/fitted/fetched_partials.cuh"
#include "gemm/fitted/fitted_kernel.cuh"
#include "gemm/fitted/fitted_launch.cuh"
#include "gemm/fitted/fitted_plan.h"
#include "gemm/fitted/remembered.h"
#include "gemm/problem/gemm.h"
#include "gemm/problem/small.h"
#include "gemm/problem/step.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "split.cuh"
#include "tiles.h"

namespace gemm::step_22 {

/// What the host needs of a tile's kernels. Everything else is in the plan that it gives them.
struct TileKernels {
  Variant variant;  // what they are, without how they are started
  Launcher (*prepare)(const Gemm&, const FittedPlan&);
  ptx::LaunchShape (*launch_shape)(const Shape&, const FittedPlan&);
  std::int64_t (*workspace_bytes)(const Shape&, const FittedPlan&);
  ptx::LaunchShape (*full_launch)(const ClusterShape&);  // as many CTAs as the GPU holds
};

/// Tile number kNumber of kTiles as kernels, and how they are started. They are made from the table that the
/// model reads, so that both speak of the same tile.
// ANCHOR: built
template <std::size_t kNumber>
struct Built {
  static constexpr FittedTile kTile = kTiles[kNumber];
  using T = WgmmaTiling<kTile.m, kTile.n, kTileK, kTile.warpgroups>;
  static constexpr int kGroups = kTile.groups;
  static constexpr int kBuffers = kChunkBuffers<T, kGroups * kTile.warpgroups>;
  static constexpr int kStages = kMostStages<T, kGroups * kTile.warpgroups, kBuffers>;
  /// Kernels with the same shared memory and threads, built for more or less of a plan.
  template <bool kTransposed, BuiltFor kBuiltFor>
  static constexpr auto* kKernel = fitted_kernel<T, kStages, kGroups, kTransposed, kBuiltFor>;
  // ANCHOR_END: built
  template <bool kTransposed, BuiltFor kBuiltFor>
  using Launch = FittedLaunch<kKernel<kTransposed, kBuiltFor>, T, FittedShared<T, kStages, kGroups>,
                              Roles<T, kGroups * kTile.warpgroups>::kThreads, FetchedPartials<T>>;
  /// The emulator gains nothing from narrower kernels, and its compiler would take several times as long.
  static constexpr bool kOneForAll = !ptx::kNarrowKernels && kTile.widest() != BuiltFor::kWholeTiles;
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
    if constexpr (kTile.has(BuiltFor::kClusters)) {
      if (plan.needs() == BuiltFor::kClusters)
        return Launch<kTransposed, BuiltFor::kClusters>::prepare(gemm, plan);
    }
    if constexpr (kTile.has(BuiltFor::kWholeInClusters)) {
      if (plan.needs() == BuiltFor::kWholeInClusters)
        return Launch<kTransposed, BuiltFor::kWholeInClusters>::prepare(gemm, plan);
    }
    if constexpr (kTile.has(BuiltFor::kStreamK)) {
      if (plan.needs() == BuiltFor::kStreamK)
        return Launch<kTransposed, BuiltFor::kStreamK>::prepare(gemm, plan);
    }
    return Launch<kTransposed, BuiltFor::kWholeTiles>::prepare(gemm, plan);
  }
  static const char* summary() {
    if (kGroups == 2) return "two consumer groups";
    return kTile.warpgroups == 3 ? "three warpgroups share the tile" : "two warpgroups share the tile";
  }
  static TileKernels kernels() {
    constexpr BuiltFor kWidest = kOneForAll ? BuiltFor::kAnyPlan : kTile.widest();
    return {{.name = kTile.name,
             .summary = summary(),
             .tile = {kTile.m, kTile.n, kTileK},
             .stages = kStages,
             .traffic = wgmma_tile_traffic<T>(),
             .kernel = ptx::kernel_handle(kKernel<false, kWidest>)},
            [](const Gemm& gemm, const FittedPlan& plan) { return prepare(gemm, plan); },
            [](const Shape&, const FittedPlan& plan) { return Any::launch_shape(plan); },
            Any::workspace_bytes,
            Any::full_launch};
  }
};

/// The same for a tile whose K is cut in a cluster.
template <std::size_t kNumber>
struct BuiltSplit {
  static constexpr FittedTile kTile = kTiles[kNumber];
  using T = WgmmaTiling<kTile.m, kTile.n, kTile.k, kTile.warpgroups>;
  using Launch = SplitLaunch<T>;

  static TileKernels kernels() {
    return {{.name = kTile.name,
             .summary = "K is cut in a cluster",
             .tile = {kTile.m, kTile.n, kTile.k},
             .stages = Launch::kStages,
             .traffic = wgmma_tile_traffic<T>(),
             .kernel = ptx::kernel_handle(Launch::template kKernel<false, false>)},
            Launch::prepare,
            Launch::launch_shape,
            [](const Shape&, const FittedPlan&) { return std::int64_t{0}; },
            Launch::full_launch};
  }
};

/// get() is not inline, so that a build can compile the kernels of each tile in another translation unit
/// (cmake/GemmSteps.cmake).
template <std::size_t kNumber>
struct KernelsOf {
  static TileKernels get();
};
template <std::size_t kNumber>
TileKernels KernelsOf<kNumber>::get() {
  return std::conditional_t<kTiles[kNumber].split, BuiltSplit<kNumber>, Built<kNumber>>::kernels();
}

/// The kernels of all tiles, in the order of kTiles.
inline const std::vector<TileKernels>& kernels() {
  static const std::vector<TileKernels> all = []<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    return std::vector<TileKernels>{KernelsOf<kNumbers>::get()...};
  }
  (std::make_index_sequence<kTiles.size()>());
  return all;
}
inline const TileKernels& kernels_of(const Plan& plan) {
  const auto same = [&](const TileKernels& one) { return one.variant.name == kTiles[plan.tile].name; };
  return *std::find_if(kernels().begin(), kernels().end(), same);
}

/// This card, and how many clusters it holds: all kernels fill an SM, so any of them will do to ask.
inline Card card() {
  static Remembered<Card, Card> cards;
  const Card asked = ptx::this_card();
  return cards.find_or(asked, [&asked] {
    Card card = asked;
    for (const int log2_ctas : {1, 2, 3}) {
      const ClusterShape cluster{1 << log2_ctas, 1};
      const auto ctas = static_cast<int>(kernels().front().full_launch(cluster).grid.x);
      card.clusters[static_cast<std::size_t>(log2_ctas) - 1] =
          card.sms < cluster.ctas() ? 0 : ctas / cluster.ctas();
    }
    return card;
  });
}

/// The plan for a shape, of this tile or of whichever suits it.
template <std::size_t kNumber = kTiles.size()>
Plan plan_of(const Shape& shape) {
  return plan_for({shape, card(), kNumber});
}

/// The same with whole tiles in lockstep, whatever the model says. There no CTA waits for partials.
template <std::size_t kNumber>
Plan plan_in_lockstep(const Shape& shape) {
  Plan plan = plan_of<kNumber>(shape);
  plan.plan.lockstep = kLockstepPeriod;
  plan.plan.stream_k_tiles = plan.plan.workers = 0;
  plan.decomposition = decomposition_of(kTiles[kNumber], shape, plan.plan, card());
  return plan;
}

/// `variant`, started as kPlan says of a shape.
template <auto kPlan>
Variant planned(Variant variant) {
  variant.launch_shape = [](const Shape& shape) {
    const Plan plan = kPlan(shape);
    return kernels_of(plan).launch_shape(shape, plan.plan);
  };
  variant.prepare = [](const Gemm& gemm) {
    const Plan plan = kPlan(gemm.shape);
    return kernels_of(plan).prepare(gemm, plan.plan);
  };
  variant.workspace_bytes = [](const Shape& shape) {
    const Plan plan = kPlan(shape);
    return kernels_of(plan).workspace_bytes(shape, plan.plan);
  };
  variant.busiest_tiles = [](const Shape& shape) {
    const Plan plan = kPlan(shape);
    return static_cast<double>(busiest_k_tiles(plan.decomposition)) / ceil_div(shape.k, kTiles[plan.tile].k);
  };
  return variant;
}

/// The largest tile in lockstep at any shape. gains_in_lockstep says where `auto` has one.
template <std::size_t kNumber = number_of("128x256")>
Variant in_lockstep() {
  Variant variant = planned<plan_in_lockstep<kNumber>>(KernelsOf<kNumber>::get().variant);
  variant.name = "128x256_lockstep";
  variant.summary += ", in lockstep";
  return variant;
}

/// The tiles, and before them a variant that stands for the one that is predicted to be fastest.
inline std::vector<Variant> variants() {
  std::vector<Variant> all = []<std::size_t... kNumbers>(std::index_sequence<kNumbers...>) {
    return std::vector<Variant>{planned<plan_of<kNumbers>>(KernelsOf<kNumbers>::get().variant)...};
  }
  (std::make_index_sequence<kTiles.size()>());
  Variant by_shape = planned<plan_of<>>(all.front());
  by_shape.name = "auto";
  by_shape.summary = "the one below that suits the shape";
  by_shape.choose = [](const Shape& shape) {
    const Plan plan = plan_of(shape);
    Choice choice{kTiles[plan.tile].name, explain(plan), plan.host_us};
    if (is_small(shape, card().sms)) choice.faster_step = "23_small";
    for (const std::size_t tile : plan.tiles) choice.promising.emplace_back(kTiles[tile].name);
    return choice;
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
