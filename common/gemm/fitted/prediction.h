// A fitted tile, and what a model says of it with a plan on a shape.
#pragma once

#include <cstddef>

#include "gemm/fitted/fitted_plan.h"
#include "gemm/problem/gemm.h"
#include "gemm/schedule/decomposition.h"

namespace gemm {

/// Kinds of plans that a tile has kernels for, each either way round. A tile whose K is cut in a cluster has
/// whole tiles only; where it shares loads it is one in clusters.
enum KindsOfPlans : unsigned {
  kWhole = 1U << static_cast<unsigned>(BuiltFor::kWholeTiles),
  kStreamK = 1U << static_cast<unsigned>(BuiltFor::kStreamK),
  kWholeInClusters = 1U << static_cast<unsigned>(BuiltFor::kWholeInClusters),
  kStreamKInClusters = 1U << static_cast<unsigned>(BuiltFor::kClusters),
};

/// A tile that kernels are built for: rows, columns, consumer groups, and warpgroups that share the tile.
struct FittedTile {
  const char* name;
  int m, n;
  int groups;
  int warpgroups;
  unsigned kinds;      // of KindsOfPlans
  int k = 64;          // of a k-tile
  bool split = false;  // its K is cut in a cluster

  /// Whether there is a kernel that does what a plan needs and no more.
  constexpr bool has(BuiltFor kind) const { return (kinds >> static_cast<unsigned>(kind) & 1U) != 0; }
  /// The kernel that can do the most.
  constexpr BuiltFor widest() const {
    for (const BuiltFor kind : {BuiltFor::kClusters, BuiltFor::kWholeInClusters, BuiltFor::kStreamK}) {
      if (has(kind)) return kind;
    }
    return BuiltFor::kWholeTiles;
  }
};

/// The matrix that tiles lie in: D, or D transposed.
struct TileMatrix {
  int rows;
  int columns;

  constexpr TileMatrix(const Shape& shape, const FittedPlan& plan)
      : rows(plan.transposed ? shape.n : shape.m), columns(plan.transposed ? shape.m : shape.n) {}
};

/// A tile on a shape with a plan.
struct Prediction {
  std::size_t tile = 0;  // its number
  FittedPlan plan;
  Decomposition decomposition;
  double us = 0;         // 0: no prediction
  double doubt = 1;      // what the plan must be better by
  double math_us = 0;    // the tensor cores of the busiest SM
  double bytes_us = 0;   // the bytes that reach it, and those that it asks for
  double dram_us = 0;    // every byte once, at the card's bandwidth
  double reduce_us = 0;  // partials

  /// What predictions are compared by.
  constexpr double weighed_us() const { return us * doubt; }
};

/// Whether the first is to be chosen. A prediction whose time is 0 is none.
constexpr bool better(const Prediction& one, const Prediction& other) {
  return one.us > 0 && (other.us == 0 || one.weighed_us() < other.weighed_us());
}

}  // namespace gemm
