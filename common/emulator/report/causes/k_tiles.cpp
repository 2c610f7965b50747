#include "emulator/report/causes/k_tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/async/cp_async.h"
#include "emulator/async/hopper.h"
#include "emulator/memory/device_memory.h"

namespace emulator {
namespace {

constexpr std::uint64_t kElementBytes = 2;  // of A and B

bool is_operand(const Buffer* buffer) {
  return buffer && (buffer->name == "A" || buffer->name == "B");
}

/// The first and last k-tile that the threads have loaded and stored since the last barrier.
void include_stores(const Cta& cta, int& first, int& last) {
  const Grid& grid = cta.gang->grid;
  const auto include = [&](const void* address) {
    if (!address) return;
    if (const std::optional<int> k_tile = k_tile_of(grid, address)) {
      first = first < 0 ? *k_tile : std::min(first, *k_tile);
      last = std::max(last, *k_tile);
    }
  };
  for (const Thread& thread : cta.threads) {
    const bool runs = context.thread == &thread;
    include(runs ? context.first_stored : thread.first_stored);
    include(runs ? context.last_stored : thread.last_stored);
  }
}

/// The number of barriers of the CTA before the access.
std::size_t interval_of(const Cta& cta, Stamp stamp) {
  const auto behind = std::upper_bound(
      cta.intervals.begin(), cta.intervals.end(), stamp_time(stamp),
      [](std::uint32_t time, const BarrierInterval& interval) { return time < interval.end; });
  return static_cast<std::size_t>(behind - cta.intervals.begin());
}

}  // namespace

std::optional<int> k_tile_of(const Grid& grid, const void* global) {
  const Options& options = grid.options;
  if (options.k <= 0 || options.k_tile <= 0) return std::nullopt;
  const auto address = reinterpret_cast<std::uintptr_t>(global);
  const Buffer* buffer = find_buffer(address);
  if (!is_operand(buffer) || address < buffer->begin || address - buffer->begin >= buffer->bytes)
    return std::nullopt;
  if (buffer->bytes % (kElementBytes * static_cast<std::uint64_t>(options.k)) != 0) return std::nullopt;
  const std::uint64_t element = (address - buffer->begin) / kElementBytes;
  return static_cast<int>(element % static_cast<std::uint64_t>(options.k)) / options.k_tile;
}

std::optional<int> k_tile_of(const Grid& grid, const LoadRecord& load) {
  const Options& options = grid.options;
  const auto base = reinterpret_cast<std::uintptr_t>(load.spec.base);
  const Buffer* buffer = find_buffer(base);
  if (options.k <= 0 || options.k_tile <= 0 || !is_operand(buffer) || base != buffer->begin)
    return std::nullopt;
  if (load.spec.rank != 2 || load.spec.extent[0] != static_cast<std::uint64_t>(options.k))
    return std::nullopt;
  if (load.coordinates[0] < 0) return std::nullopt;
  return load.coordinates[0] / options.k_tile;
}

bool is_result(std::uintptr_t address) {
  const Buffer* buffer = find_buffer(address);
  return buffer && buffer->name == "D";
}

std::string element_text(const Grid& grid, std::uintptr_t address) {
  const Options& options = grid.options;
  const Buffer* buffer = nearest_buffer(address);
  const bool result = buffer && buffer->name == "D";
  if (!result && !is_operand(buffer)) return {};
  const std::int64_t columns = result ? options.n : options.k;
  if (columns <= 0 || buffer->bytes % (kElementBytes * static_cast<std::uint64_t>(columns)) != 0) return {};
  const std::int64_t rows = static_cast<std::int64_t>(buffer->bytes / kElementBytes) / columns;
  const std::int64_t element =
      (static_cast<std::int64_t>(address) - static_cast<std::int64_t>(buffer->begin)) /
      static_cast<std::int64_t>(kElementBytes);
  if (element < 0) return {};
  const std::int64_t row = element / columns;
  const std::int64_t column = element % columns;
  const std::string inside =
      result               ? options.tile_m > 0 && options.tile_n > 0
                                 ? fmt::format(", in tile ({}, {})", row / options.tile_m, column / options.tile_n)
                                 : ""
      : options.k_tile > 0 ? fmt::format(", in k-tile {}", column / options.k_tile)
                           : "";
  if (row < rows) return fmt::format("row {}, column {} of {}{}", row, column, buffer->name, inside);
  // One that runs along the last row gets there behind its end.
  const std::string behind =
      result || row != rows
          ? std::string()
          : fmt::format("; or, along row {}, column {}, beyond K = {}", row - 1, column + columns, columns);
  return fmt::format("row {} of {}, which has {} rows; column {}{}{}", row, buffer->name, rows, column,
                     inside, behind);
}

void end_barrier_interval(Cta& cta, const char* what, Where where) {
  BarrierInterval interval{.end = context.base, .what = what, .where = where};
  include_stores(cta, interval.first_k_tile, interval.last_k_tile);
  if (interval.first_k_tile < 0 && !cta.intervals.empty()) {
    interval.first_k_tile = cta.intervals.back().first_k_tile;
    interval.last_k_tile = cta.intervals.back().last_k_tile;
  }
  for (Thread& thread : cta.threads) thread.first_stored = thread.last_stored = nullptr;
  context.first_stored = context.last_stored = nullptr;
  cta.intervals.push_back(interval);
}

std::optional<int> k_tile_of_store(const Cta& cta, Stamp write) {
  if (write == 0 || is_agent(write) || stamp_cta(write) != cta.key) return std::nullopt;
  const std::size_t index = interval_of(cta, write);
  int first = -1;
  int last = -1;
  if (index < cta.intervals.size()) {
    first = cta.intervals[index].first_k_tile;
    last = cta.intervals[index].last_k_tile;
  } else {
    include_stores(cta, first, last);
    if (first < 0 && index > 0) {
      first = cta.intervals[index - 1].first_k_tile;
      last = cta.intervals[index - 1].last_k_tile;
    }
  }
  if (first < 0 || first != last) return std::nullopt;
  return first;
}

const BarrierInterval* last_barrier(const Cta& cta, Stamp access) {
  const std::size_t index = interval_of(cta, access);
  return index == 0 ? nullptr : &cta.intervals[index - 1];
}

std::optional<int> k_tile_held(const Cta& cta, std::uintptr_t address, Stamp write) {
  Gang& gang = *cta.gang;
  const std::uintptr_t offset = address - cta.dynamic_window.begin;
  if (is_agent(write)) {
    if (!gang.hopper || offset >= cta.dynamic_window.bytes) return std::nullopt;
    const LoadRecord* load = gang.hopper->copies.record(cta, static_cast<std::uint32_t>(offset / 16));
    return load ? k_tile_of(gang.grid, *load) : std::nullopt;
  }
  if (gang.cp_async) {
    if (const void* source = gang.cp_async->last_source(cta, address)) return k_tile_of(gang.grid, source);
  }
  return k_tile_of_store(cta, write);
}

std::string stage_text(const Cta& cta, std::uintptr_t address) {
  const std::uintptr_t offset = address - cta.dynamic_window.begin;
  if (offset >= cta.dynamic_window.bytes) return {};
  const std::string name = member_name(cta, static_cast<std::uint32_t>(offset));
  const std::size_t bracket = name.find('[');
  const std::size_t end = name.find(']');
  // stage[2].a, not a[2][5]
  if (bracket == std::string::npos || end == std::string::npos || end + 1 >= name.size() ||
      name[end + 1] != '.')
    return {};
  return fmt::format("stage {}", name.substr(bracket + 1, end - bracket - 1));
}

std::string content_text(const Thread& thread, std::uintptr_t address, Access now, Stamp held) {
  const Cta& cta = *thread.cta;
  std::string content;
  if (const std::optional<int> before = k_tile_held(cta, address, held))
    content = fmt::format("the bytes hold k-tile {}", *before);
  if (now != Access::kRead) {
    std::optional<int> next = k_tile_of_store(cta, context.now);
    if (cta.gang->cp_async && cta.gang->cp_async->issuing())
      next = k_tile_of(cta.gang->grid, cta.gang->cp_async->issuing());
    if (next) content += fmt::format("{}the write is of k-tile {}", content.empty() ? "" : ", ", *next);
  }
  if (const std::string stage = stage_text(cta, address); !stage.empty())
    content = content.empty() ? stage : stage + ": " + content;
  return content;
}

}  // namespace emulator
