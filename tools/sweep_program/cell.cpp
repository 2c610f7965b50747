#include "cell.h"

#include <fmt/format.h>

namespace sweep {

Cell describe(int m, int k) {
  Cell cell{.m = m, .k = k, .warpgroups = warpgroups_of(m), .most_stages = most_stages(m, k)};
  if (!registers_suffice(m)) {
    cell.limits.push_back(
        {"registers",
         fmt::format(
             "{} consumer warpgroups and the producer's warpgroup have {} threads, which start with {} / {} "
             "= {} registers each (a multiple of 8), but ptxas needs at least {} for an m64n{}",
             cell.warpgroups, threads_of(m), kRegisters, threads_of(m), registers_at_start(m),
             kFewestRegisters, kTileN)});
  }
  if (cell.most_stages < 2) {
    cell.limits.push_back(
        {"shared memory", fmt::format("two stages of 2 x ({} + {}) x {} = {} bytes, barriers and {} bytes of "
                                      "store buffers take {} bytes, but a CTA has at most {}",
                                      m, kTileN, k, stage_bytes(m, k), store_buffer_bytes(m),
                                      shared_bytes(m, k, 2), kSharedLimit)});
  }
  return cell;
}

std::string tile_name(int m, int k) {
  return fmt::format("{}x{}x{}", m, kTileN, k);
}

std::string variant_name(int m, int k, int stages) {
  return fmt::format("{}_stages{}", tile_name(m, k), stages);
}

}  // namespace sweep
