#include "emulator/report/causes/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/machine/machine.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/report.h"

namespace emulator {
namespace {

struct Groups {
  std::vector<gemm::GroupRows> rows;
  int capacity = 0;
  const int* counts = nullptr;
};
Groups& groups() {
  static Groups now;
  return now;
}

std::string rows_text(const gemm::GroupRows& rows) {
  return fmt::format("rows {} to {}", rows.begin, rows.end - 1);
}

/// The count on the device, as it is.
int count_of(int group) {
  const Groups& now = groups();
  const int* const count = now.counts + group;
  const Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(count));
  return buffer == nullptr ? 0 : *count;
}

/// The groups' rows: those that the host named, or those that the counts on the device say.
std::vector<gemm::GroupRows> rows_now() {
  const Groups& now = groups();
  std::vector<gemm::GroupRows> rows = now.rows;
  for (std::size_t group = 0; now.capacity > 0 && now.counts != nullptr && group < rows.size(); ++group) {
    const int begin = static_cast<int>(group) * now.capacity;
    rows[group] = {begin, begin + std::clamp(count_of(static_cast<int>(group)), 0, now.capacity)};
  }
  return rows;
}

}  // namespace

void note_groups(const std::vector<gemm::GroupRows>& rows, int capacity, const int* counts) {
  groups() = {rows, capacity, counts};
}

bool explain_groups(Report& report, const Grid& grid, std::uintptr_t address, std::uint32_t one,
                    std::uint32_t other) {
  const Groups& now = groups();
  const Buffer* const d = find_buffer(address);
  const int columns = grid.options.n;
  if (now.rows.size() < 2 || d == nullptr || !is_result(address) || columns <= 0 || grid.options.tile_m <= 0)
    return false;
  const std::vector<gemm::GroupRows> rows = rows_now();
  const auto row = static_cast<std::int64_t>((address - d->begin) / 2) / columns;
  const auto group_at = [&](std::int64_t at) {
    for (std::size_t group = 0; group < rows.size(); ++group) {
      if (rows[group].begin <= at && at < rows[group].end) return static_cast<int>(group);
    }
    return -1;
  };
  const int mine = group_at(row);
  if (mine < 0) return false;
  const gemm::GroupRows own = rows[static_cast<std::size_t>(mine)];
  // A group before it whose rows would reach here, by its count.
  for (int group = 0; now.capacity > 0 && now.counts != nullptr && group < mine; ++group) {
    const int count = count_of(group);
    if (count <= now.capacity || group * static_cast<std::int64_t>(now.capacity) + count <= row) continue;
    report.line("group",
                "row {} belongs to group {} ({}); group {} has the count {} on the device, and room for {} "
                "rows, {} to {}",
                row, mine, rows_text(own), group, count, now.capacity, group * now.capacity,
                (group + 1) * now.capacity - 1);
    report.missing(
        "the capacity as an upper bound of the count: group {} was given rows up to {} by its count, {}, so "
        "it also stores rows of group {}. A count above the capacity, {}, must be treated as the capacity",
        group, group * now.capacity + count - 1, count, mine, now.capacity);
    return true;
  }
  // A box that begins in another group.
  for (const std::uint32_t key : {other, one}) {
    const auto box = rows_of_box(grid, key, address);
    if (!box) continue;
    const int from = group_at(box->first);
    if (from < 0 || from == mine) continue;
    const gemm::GroupRows theirs = rows[static_cast<std::size_t>(from)];
    const std::int64_t tile =
        theirs.begin + (box->first - theirs.begin) / grid.options.tile_m * grid.options.tile_m;
    report.line("group",
                "row {} belongs to group {} ({}). CTA {} stores a box of rows {} to {} for group {} ({}), in "
                "its tile of rows {} to {}",
                row, mine, rows_text(own), name_cta(grid, key), box->first, box->second, from,
                rows_text(theirs), tile, tile + grid.options.tile_m - 1);
    report.missing(
        "an end of that store at row {}, the last row of group {}: {} of its {} rows lie beyond it. TMA "
        "clips only at the end of the tensor, so a box that is only partly in the group must be stored by "
        "threads, each of which tests its own row",
        theirs.end - 1, from, box->second - theirs.end + 1, box->second - box->first + 1);
    return true;
  }
  return false;
}

}  // namespace emulator
