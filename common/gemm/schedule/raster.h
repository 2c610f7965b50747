// The order in which the tiles of D are multiplied: what is in flight together should share rows of A and B,
// so that the L2 has them.
#pragma once

#include "gemm/problem/gemm.h"
#include "gemm/schedule/divisor.h"

namespace gemm {

/// D in tiles, or in groups of tiles.
struct TileGrid {
  int m = 0;
  int n = 0;
  constexpr int count() const { return m * n; }
};

/// The tiles of a D of this shape.
template <typename T>
constexpr TileGrid tile_grid(const Shape& shape) {
  return {ceil_div(shape.m, T::kM), ceil_div(shape.n, T::kN)};
}

/// A tile's place in the grid.
struct TilePosition {
  int m = 0;
  int n = 0;
  bool operator==(const TilePosition&) const = default;
};

enum class RasterOrder {
  kAlongN,   // row by row
  kAlongM,   // column by column
  kGrouped,  // raster groups of `group` rows, each column by column; the last group may be lower
  kHilbert,  // along a Hilbert curve, generalised to rectangles
};

struct Raster {
  RasterOrder order = RasterOrder::kAlongN;
  int group = 1;  // rows of a raster group, for kGrouped
};

namespace raster_detail {

struct Vector {
  int m = 0;
  int n = 0;
};
constexpr Vector operator+(Vector a, Vector b) {
  return {a.m + b.m, a.n + b.n};
}
constexpr Vector operator-(Vector a, Vector b) {
  return {a.m - b.m, a.n - b.n};
}
constexpr int length(Vector v) {  // of a vector along one axis
  const int sum = v.m + v.n;
  return sum < 0 ? -sum : sum;
}
constexpr Vector unit(Vector v) {
  return {(v.m > 0) - (v.m < 0), (v.n > 0) - (v.n < 0)};
}
constexpr Vector half(Vector v) {
  return {v.m / 2, v.n / 2};
}

/// Place number `index` on the curve that fills the rectangle spanned by `along` and `across`, and goes from
/// the corner `at` to the other end of `along`. A rectangle is cut into two along its length, or into three
/// (across, along, back), until one row is left; lengths are cut even where they can be, so that neighbours
/// on the curve are neighbours in the grid wherever the sizes allow it.
constexpr TilePosition on_hilbert_curve(int index, Vector at, Vector along, Vector across) {
  while (true) {
    const int width = length(along);
    const int height = length(across);
    if (height == 1 || width == 1) {
      const Vector step = height == 1 ? unit(along) : unit(across);
      return {at.m + index * step.m, at.n + index * step.n};
    }
    Vector first = half(along);
    if (2 * width > 3 * height) {  // long: one half after the other
      if (length(first) % 2 != 0 && width > 2) first = first + unit(along);
      const int before = length(first) * height;
      if (index < before) {
        along = first;
      } else {
        index -= before;
        at = at + first;
        along = along - first;
      }
      continue;
    }
    Vector low = half(across);
    if (length(low) % 2 != 0 && height > 2) low = low + unit(across);
    const int up = length(low) * length(first);
    const int over = width * (height - length(low));
    if (index < up) {  // up on the near side
      along = low;
      across = first;
    } else if (index < up + over) {  // over to the far side
      index -= up;
      at = at + low;
      across = across - low;
    } else {  // and down again
      index -= up + over;
      at = at + (along - unit(along)) + (low - unit(low));
      const Vector back = first - along;
      along = Vector{} - low;
      across = back;
    }
  }
}

}  // namespace raster_detail

/// The tile that is number `index`, 0 to grid.count() - 1, in this order. Every tile has one number.
constexpr TilePosition tile_at(int index, TileGrid grid, Raster raster) {
  switch (raster.order) {
    case RasterOrder::kAlongM:
      return {index % grid.m, index / grid.m};
    case RasterOrder::kGrouped: {
      const int group = index / (raster.group * grid.n);
      const int first = group * raster.group;
      const int rows = grid.m - first < raster.group ? grid.m - first : raster.group;
      const int inside = index - first * grid.n;
      return {first + inside % rows, inside / rows};
    }
    case RasterOrder::kHilbert:
      return grid.n >= grid.m ? raster_detail::on_hilbert_curve(index, {}, {0, grid.n}, {grid.m, 0})
                              : raster_detail::on_hilbert_curve(index, {}, {grid.m, 0}, {0, grid.n});
    default:
      return {index / grid.n, index % grid.n};
  }
}

/// tile_at for groups, prepared by the host: no divisions are left for the kernel.
class GroupedRaster {
 public:
  GroupedRaster() = default;
  constexpr GroupedRaster(TileGrid grid, int group)
      : rows_(group), tiles_(group * grid.n), whole_(grid.m / group), last_rows_(grid.m % group) {}

  /// A tile's group, and its number there.
  struct InGroup {
    int first_row;
    Divisor rows;
    int number;
  };
  constexpr InGroup in_group(int index) const {
    const int group = index / tiles_;
    return {group * rows_, group < whole_ ? rows_ : last_rows_, index % tiles_};
  }
  constexpr TilePosition at(int index) const {
    const InGroup in = in_group(index);
    return {in.first_row + in.number % in.rows, in.number / in.rows};
  }

 private:
  Divisor rows_;       // of a group
  Divisor tiles_;      // of a group
  int whole_ = 0;      // groups
  Divisor last_rows_;  // of the group below them
};

}  // namespace gemm
