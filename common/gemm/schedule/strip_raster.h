// An order of tiles for producers in lockstep: what the SMs of a GPC ask for together is asked for once.
#pragma once

#include "gemm/schedule/divisor.h"
#include "gemm/schedule/raster.h"

namespace gemm {

// Lesson: a grid of one CTA for each SM fills an idle GPU GPC by GPC: CTAs with neighbouring numbers share a
// GPC, 16 or 18 of them. What they ask of the L2 at about the same time reaches it once. Sixteen tiles below
// each other have a column of tiles in common and nothing else; 4 x 4 tiles ask for 8 different rows and
// columns instead of 17 (where a strip ends inside a GPC, for 12). A wave is about as wide and as high as
// before, for the sake of what the L2 reads of device memory.

/// The groups of a GroupedRaster, cut into blocks of 8 columns, and those into strips of 4 rows. Inside a
/// strip the tiles go column by column. Without strips: the groups alone.
class StripRaster {
 public:
  static constexpr int kBlockColumns = 8;
  static constexpr int kStripRows = 4;

  StripRaster() = default;
  constexpr StripRaster(TileGrid grid, int group, bool strips) : groups_(grid, group) {
    if (!strips) return;
    last_block_ = (grid.n - 1) / kBlockColumns;
    last_strip_ = kStripRows * (grid.n - last_block_ * kBlockColumns);
  }

  constexpr TilePosition at(int index) const {
    if (last_block_ < 0) return groups_.at(index);
    const GroupedRaster::InGroup in = groups_.in_group(index);
    const int block = in.number / in.rows / kBlockColumns;
    int number = in.number - block * kBlockColumns * in.rows;
    const int strip = block < last_block_ ? number / (kStripRows * kBlockColumns) : number / last_strip_;
    number -= strip * (block < last_block_ ? kStripRows * kBlockColumns : int{last_strip_});
    const int rows = in.rows - strip * kStripRows;  // of this strip and those below
    const int column = rows >= kStripRows ? number / kStripRows
                       : rows == 3        ? number / 3
                                          : number >> (rows - 1);
    const int height = rows < kStripRows ? rows : kStripRows;
    return {in.first_row + strip * kStripRows + number - column * height, block * kBlockColumns + column};
  }

 private:
  GroupedRaster groups_;
  int last_block_ = -1;
  Divisor last_strip_;  // tiles of a whole strip there
};

}  // namespace gemm
