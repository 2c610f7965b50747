#include "emulator/async/tma.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "emulator/async/cp_async.h"
#include "emulator/async/descriptor_cache.h"
#include "emulator/async/global_cells.h"
#include "emulator/async/hopper.h"
#include "emulator/async/launch_control.h"
#include "emulator/async/proxy_fences.h"
#include "emulator/explore/hooks.h"
#include "emulator/explore/left_out.h"
#include "emulator/ledger/ledger.h"
#include "emulator/machine/ranks.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/causes/byte_counts.h"
#include "emulator/report/causes/groups.h"
#include "emulator/report/causes/k_tiles.h"
#include "emulator/report/causes/overwrites.h"
#include "emulator/report/causes/passed_phases.h"
#include "emulator/report/counters.h"
#include "emulator/report/event_log.h"
#include "emulator/report/report.h"
#include "emulator/timeline/timeline.h"

namespace emulator {

/// The first read of a destination that no proxy fence follows: the report, and which of two rules it breaks.
struct UnfencedRead {
  const char* rule;
  Report report;
};

namespace {

constexpr const char* kTmaSection = "PTX ISA, \"cp.async.bulk.tensor\"";
constexpr std::size_t kLogged = 8192;  // loads that are remembered after they landed
constexpr std::uint32_t kTmaAlignment = 128;
constexpr std::uint32_t kPlainAlignment = 16;  // of copies without a map

std::string coordinates_text(const Coordinates& coordinates, int rank) {
  std::string text;
  for (int i = 0; i < rank; ++i) {
    text += fmt::format("{}{}", i == 0 ? "(" : ", ", coordinates[static_cast<std::size_t>(i)]);
  }
  return text + ")";
}

/// Whether it is what plain_spec() makes: all of one row of words, from its beginning on.
bool is_plain(const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates) {
  return spec.rank == 1 && spec.element == gemm::ptx::TensorElement::kUint32 && spec.im2col.pixels == 0 &&
         spec.box[0] == spec.extent[0] && coordinates[0] == 0;
}

std::string box_text(const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates) {
  if (is_plain(spec, coordinates))
    return fmt::format("{} bytes from {}", 4 * spec.box[0],
                       name_address(reinterpret_cast<std::uintptr_t>(spec.base)));
  const Buffer* buffer = find_buffer(reinterpret_cast<std::uintptr_t>(spec.base));
  const std::string name = buffer ? buffer->name : std::string("a tensor outside all buffers");
  if (spec.im2col.pixels != 0) {
    Coordinates offsets{};
    std::copy_n(spec.im2col.offset.begin(), spec.rank - 2, offsets.begin());
    return fmt::format("column of {} pixels of {} channels from {} with offsets {} of {}", spec.im2col.pixels,
                       spec.box[0], coordinates_text(coordinates, spec.rank),
                       coordinates_text(offsets, spec.rank - 2), name);
  }
  std::string text = "box of ";
  for (int i = 0; i < spec.rank; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " x ", spec.box[static_cast<std::size_t>(i)]);
  }
  return text + fmt::format(" at {} of {}", coordinates_text(coordinates, spec.rank), name);
}

/// ", and the map ends at 2 along dimension 2": by which coordinate the box lies outside; or "".
std::string outside_text(const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates) {
  if (spec.im2col.pixels != 0) return {};
  for (auto i = static_cast<std::size_t>(spec.rank); i-- > 0;) {
    const std::int64_t first = coordinates[i];
    if (first < 0) return fmt::format(", and the coordinate along dimension {}, {}, is negative", i, first);
    if (first < static_cast<std::int64_t>(spec.extent[i])) continue;
    std::string text = fmt::format(", and the map ends at {} along dimension {}", spec.extent[i], i);
    // A matrix cut into tiles: the tile's number is the outermost coordinate.
    if (spec.rank > 2 && i + 1 == static_cast<std::size_t>(spec.rank) &&
        first == static_cast<std::int64_t>(spec.extent[i]))
      text += fmt::format(
          ": it has {0} whole tiles, and tile {0} is the incomplete one after them, which needs another map. "
          "The number of whole tiles is rounded up instead of down",
          spec.extent[i]);
    return text;
  }
  return {};
}

/// The part of a row of the box that lies inside the tensor, as bytes of the row, and where it is in memory.
struct RowSlice {
  std::uint32_t row;    // of the box: its place in shared memory is row * row_bytes
  std::uint32_t begin;  // [begin, end) of the row's bytes
  std::uint32_t end;
  std::uintptr_t address;  // of byte `begin`
};

/// Calls visit(row, address of its channel 0, is it inside the tensor) for every pixel of a copy in im2col
/// mode.
template <typename Visit>
void for_pixels(const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates, Visit visit) {
  const int images = spec.rank - 1;  // the dimension of the images
  Coordinates at = coordinates;
  for (std::uint32_t row = 0; row < spec.im2col.pixels; ++row) {
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(spec.base);
    bool inside = true;
    for (int i = 1; i <= images; ++i) {
      const auto d = static_cast<std::size_t>(i);
      const std::int64_t index = std::int64_t{at[d]} + (i < images ? spec.im2col.offset[d - 1] : 0);
      inside = inside && index >= 0 && index < static_cast<std::int64_t>(spec.extent[d]);
      address += static_cast<std::uint64_t>(index) * spec.stride_bytes[d];
    }
    visit(row, address, inside);
    // The next pixel of the bounding box, W first; behind the last one comes the next image.
    int i = 1;
    for (; i < images; ++i) {
      const auto d = static_cast<std::size_t>(i);
      at[d] += static_cast<std::int32_t>(spec.im2col.step[d - 1]);
      if (at[d] <= static_cast<std::int64_t>(spec.extent[d]) - 1 + spec.im2col.upper[d - 1]) break;
      at[d] = spec.im2col.lower[d - 1];
    }
    if (i == images) ++at[static_cast<std::size_t>(images)];
  }
}

/// Calls visit(RowSlice) for every row of the box; begin == end where the row lies outside.
template <typename Visit>
void for_rows(const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates, Visit visit) {
  const auto size = static_cast<std::uint32_t>(gemm::ptx::unit_bytes(spec));
  const std::int64_t first = std::max<std::int64_t>(0, -std::int64_t{coordinates[0]});
  const std::int64_t last = std::min<std::int64_t>(
      spec.box[0], static_cast<std::int64_t>(spec.extent[0]) - std::int64_t{coordinates[0]});
  if (spec.im2col.pixels != 0) {
    for_pixels(spec, coordinates, [&](std::uint32_t row, std::uintptr_t address, bool inside) {
      if (!inside || last <= first) {
        visit(RowSlice{row, 0, 0, 0});
        return;
      }
      visit(RowSlice{
          row, static_cast<std::uint32_t>(first) * size, static_cast<std::uint32_t>(last) * size,
          static_cast<std::uintptr_t>(address + static_cast<std::uint64_t>(first + coordinates[0]) * size)});
    });
    return;
  }
  std::uint32_t rows = 1;
  for (int i = 1; i < spec.rank; ++i) rows *= gemm::ptx::box_indices(spec, i);
  for (std::uint32_t row = 0; row < rows; ++row) {
    std::uint32_t rest = row;
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(spec.base);
    bool inside = last > first;
    for (int i = 1; i < spec.rank; ++i) {
      const auto d = static_cast<std::size_t>(i);
      const std::uint32_t indices = gemm::ptx::box_indices(spec, i);
      const std::int64_t index = std::int64_t{coordinates[d]} + rest % indices;
      rest /= indices;
      inside = inside && index >= 0 && index < static_cast<std::int64_t>(spec.extent[d]);
      address += static_cast<std::uint64_t>(index) * spec.stride_bytes[d];
    }
    if (!inside) {
      visit(RowSlice{row, 0, 0, 0});
      continue;
    }
    visit(RowSlice{
        row, static_cast<std::uint32_t>(first) * size, static_cast<std::uint32_t>(last) * size,
        static_cast<std::uintptr_t>(address + static_cast<std::uint64_t>(first + coordinates[0]) * size)});
  }
}

/// Checks one access of the copy engine to global memory, in the pieces that the history knows.
void check_row(const RowSlice& slice, Access access, Where where) {
  std::uintptr_t address = slice.address;
  const std::uintptr_t end = address + (slice.end - slice.begin);
  const bool counters = context.counters;
  context.counters = false;
  while (address < end) {
    unsigned bytes = 16;
    while (address % bytes != 0 || address + bytes > end) bytes /= 2;
    check_global(reinterpret_cast<const void*>(address), bytes, access, where);
    address += bytes;
  }
  context.counters = counters;
}

/// Which of the box's units of 16 bytes, in the order of its rows, lie outside the tensor as a whole.
std::vector<bool> clipped_units(const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates) {
  constexpr std::uint32_t kUnit = 16;
  const std::uint32_t row_bytes = box_row_bytes(spec);
  std::vector<bool> clipped(gemm::ptx::box_bytes(spec) / kUnit, true);
  for_rows(spec, coordinates, [&](const RowSlice& slice) {
    for (std::uint32_t at = slice.begin / kUnit * kUnit; at < slice.end; at += kUnit)
      clipped[(slice.row * row_bytes + at) / kUnit] = false;
  });
  return clipped;
}

/// All of the tensor, touched or not, lies in its buffer.
void check_tensor(const char* what, const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates,
                  const Buffer* buffer, Where where) {
  std::uint64_t bytes = spec.extent[0] * static_cast<std::uint64_t>(gemm::ptx::unit_bytes(spec));
  for (int i = 1; i < spec.rank; ++i) {
    const auto d = static_cast<std::size_t>(i);
    bytes += (spec.extent[d] - 1) * spec.stride_bytes[d];
  }
  const std::uintptr_t base = reinterpret_cast<std::uintptr_t>(spec.base);
  if (buffer && base >= buffer->begin && base - buffer->begin + bytes <= buffer->bytes) return;
  const bool has_map = !is_plain(spec, coordinates);
  Report report = has_map ? Report("{} uses a tensor map that describes more than its buffer", what)
                          : Report("{} copies more than its buffer has", what);
  report.at(where, running_thread()).line("copy", box_text(spec, coordinates));
  report.line(has_map ? "tensor" : "bytes", describe_address(base, bytes));
  if (has_map)
    report.rule(
        "coordinates outside the tensor are safe, but the whole tensor must be memory that has been "
        "allocated",
        "CUDA Driver API, \"cuTensorMapEncodeTiled\"");
  else
    report.rule("a copy without a tensor map clips nothing: all of its bytes must be allocated",
                "PTX ISA, \"cp.async.bulk\"");
  hopper_engine(what, where).fail("global-out-of-bounds", report);
}

/// A copy reads what another rank has written, and its thread has acquired it through the generic proxy only.
[[noreturn]] void fail_peer_proxy(const char* what, const Thread& thread, const Cell& cell, Where where) {
  const Grid& grid = thread.cta->gang->grid;
  const bool by_copy = is_agent(cell.write);
  hopper_engine(what, where)
      .fail(
          "proxy-fence",
          Report("{} reads global memory that rank {} wrote, without a proxy fence after the acquire", what,
                 ranks::rank_of_other(grid, cell.write))
              .line("copy", "{} by {}", where.text(), name_thread(thread))
              .line("written", "{} by {}", Where::from_packed(cell.write_where & ~kAtomicBit).text(),
                    by_copy ? name_agent(*thread.cta->gang, cell.write) : name_thread(grid, cell.write))
              .missing(
                  "fence.proxy.async (or .global) after the acquire of the flag and before the copy, by the "
                  "thread that issues it, or by another one and followed by a barrier")
              .rule(
                  "an acquire orders what follows it in the generic proxy, and a bulk copy reads through the "
                  "async proxy",
                  "PTX ISA, \"Async proxy\"; \"Memory Consistency Model\": Causality order"));
}

/// The global side of a load, at issue: bounds, initialisation, order.
void check_source(const char* what, const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates,
                  Where where) {
  const Thread& thread = running_thread();
  const Buffer* buffer = find_buffer(reinterpret_cast<std::uintptr_t>(spec.base));
  check_tensor(what, spec, coordinates, buffer, where);
  if (buffer->all_written && !buffer->device_written.load(std::memory_order_acquire) &&
      !running_thread().cta->gang->grid.keeps_reads)
    return;
  for_rows(spec, coordinates, [&](const RowSlice& slice) {
    const std::uint32_t bytes = slice.end - slice.begin;
    if (bytes == 0) return;
    check_row(slice, Access::kRead, where);
    Cell unfenced{};
    const Grid& grid = thread.cta->gang->grid;
    Cell of_peer{};
    for_global_cells(slice.address, bytes, [&](Cell& cell) {
      if (cell.write == 0) return;
      if (ranks::rank_of_other(grid, cell.write) >= 0) {
        if (!grid.before.covers(cell.write) && !fenced_on_the_way(thread, cell.write, false)) of_peer = cell;
        return;
      }
      if (!is_agent(cell.write) && !hopper_engine(what, where).fenced(thread, cell.write, false)) {
        unfenced = cell;
      }
    });
    if (of_peer.write != 0) fail_peer_proxy(what, thread, of_peer, where);
    if (unfenced.write != 0) {
      Report report("{} reads global memory that ordinary stores of this kernel wrote, without a proxy fence",
                    what);
      report.line("copy", "{} by {}: {}", where.text(), name_thread(thread), box_text(spec, coordinates))
          .line("written", "{} by {}", Where::from_packed(unfenced.write_where & ~kAtomicBit).text(),
                name_thread(thread.cta->gang->grid, unfenced.write))
          .rule("the thread that wrote must execute fence.proxy.async before it passes the data on",
                "PTX ISA, \"Async proxy\"; \"membar, fence\": fence.proxy.async");
      explain_fence_on_the_way(report, thread, unfenced.write, false);
      hopper_engine(what, where).fail("proxy-fence", report);
    }
  });
}

/// The global side of a load that signals one barrier: whoever has waited for `completed`, the phase of the
/// barrier that counts the bytes, knows that the source was read, and may overwrite it.
void stamp_source_reads(const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates,
                        Stamp completed) {
  const Buffer* buffer = find_buffer(reinterpret_cast<std::uintptr_t>(spec.base));
  if (buffer->all_written && !buffer->device_written.load(std::memory_order_acquire) &&
      !running_thread().cta->gang->grid.keeps_reads)
    return;
  for_rows(spec, coordinates, [&](const RowSlice& slice) {
    if (slice.begin == slice.end) return;
    for_global_cells(slice.address, slice.end - slice.begin, [&](Cell& cell) {
      if (cell.readers > 0 && cell.first.stamp == context.now) cell.first.stamp = completed;
      for (unsigned i = 0; i + 1 < cell.readers; ++i) {
        if (cell.more[i].stamp == context.now) cell.more[i].stamp = completed;
      }
    });
  });
}

}  // namespace

namespace {

const char* kind_of(const LoadRecord& load) {
  if (load.reduces) return load.remote ? "a red.async" : "a cp.reduce.async.bulk";
  return load.remote ? "an st.async" : load.request ? "a response to try_cancel" : "a load";
}

}  // namespace

std::string describe_load(const Grid& grid, const LoadRecord& load) {
  if (load.remote) return fmt::format("{} bytes from registers", load.bytes);
  if (load.request) return "the response to a clusterlaunchcontrol.try_cancel";
  const std::optional<int> k_tile = k_tile_of(grid, load);
  if (!k_tile) return box_text(load.spec, load.coordinates);
  const int last = (grid.options.k - 1) / grid.options.k_tile;
  return fmt::format("{}, k-tile {}{}", box_text(load.spec, load.coordinates), *k_tile,
                     *k_tile > last ? fmt::format(", after the last one, {}", last) : "");
}

namespace {

std::uint32_t use_box(const char* what, const Cta& cta, const void* shared,
                      const gemm::ptx::TensorMapSpec& spec, std::uint32_t alignment, Where where) {
  HopperEngine& engine = hopper_engine(what, where);
  const Thread& thread = running_thread();
  const std::optional<std::uint32_t> found = shared_offset(cta, shared, where);
  const std::uint32_t bytes = box_footprint(spec);
  if (!found || shared_room(cta, *found) < bytes) {
    engine.fail(
        "shared-out-of-bounds",
        Report("{}: the box does not fit in shared memory", what)
            .at(where, thread)
            .line("box",
                  found
                      ? fmt::format("{} bytes of which {} fit, at {} in {}", bytes, shared_room(cta, *found),
                                    name_shared_offset(cta, *found), describe_room(cta, *found))
                      : fmt::format("{} bytes at an address outside this CTA's shared memory", bytes))
            .rule("the whole box must lie in shared memory, inside the array that holds it", kTmaSection));
  }
  const std::uint32_t offset = *found;
  if (offset % alignment != 0) {
    engine.fail("tma-alignment",
                Report("{}: the tile in shared memory is misaligned", what)
                    .at(where, thread)
                    .line("tile", "{}: {} bytes off a multiple of {}", name_shared_offset(cta, offset),
                          offset % alignment, alignment)
                    .rule(fmt::format("the address in shared memory must be a multiple of {}", alignment),
                          kTmaSection));
  }
  note_swizzle_start(what, cta, offset, gemm::ptx::span_bytes(spec.swizzle),
                     spec.swizzle != gemm::ptx::Swizzle::kNone, where);
  return offset;
}

}  // namespace

gemm::ptx::TensorMapSpec CopyEngine::plain_spec(const char* what, const void* global, std::uint32_t bytes,
                                                Where where) {
  constexpr std::uint32_t kUnit = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(global);
  if (bytes == 0 || bytes % kUnit != 0 || address % kUnit != 0) {
    engine_.fail(
        "tma-alignment",
        Report("{} copies {} bytes, {}", what, bytes, describe_address(address, bytes))
            .at(where, running_thread())
            .rule("both addresses and the size must be multiples of 16", "PTX ISA, \"cp.async.bulk\""));
  }
  if (bytes > kMaxSharedBytes) {
    engine_.fail(
        "shared-out-of-bounds",
        Report("{} copies {} bytes, but shared memory has {}", what, bytes, kMaxSharedBytes)
            .at(where, running_thread())
            .rule("everything that is copied must lie in shared memory", "PTX ISA, \"cp.async.bulk\""));
  }
  gemm::ptx::TensorMapSpec spec;
  spec.base = global;
  spec.rank = 1;
  spec.element = gemm::ptx::TensorElement::kUint32;
  spec.extent[0] = bytes / 4;
  spec.box[0] = bytes / 4;
  spec.swizzle = gemm::ptx::Swizzle::kNone;
  return spec;
}

void CopyEngine::load_plain(void* shared, const void* global, std::uint32_t bytes, void* barrier, Where where,
                            std::uint32_t ctas, bool multicast, const char* what) {
  const std::int32_t at[] = {0};
  load(what, shared, encode_tensor_map(plain_spec(what, global, bytes, where)), at, 1, barrier, ctas,
       multicast, where, kPlainAlignment);
}

namespace {

/// A prefetch reads nothing that the program sees, so that only the course asks where it points.
void check_prefetched(const char* what, const void* global, std::uint32_t bytes, Where where) {
  const auto address = reinterpret_cast<std::uintptr_t>(global);
  const Buffer* const buffer = find_buffer(address);
  const bool inside = buffer != nullptr && address >= buffer->begin && buffer->bytes >= bytes &&
                      address - buffer->begin <= buffer->bytes - bytes;
  if (inside || !course_rule_on(CourseRule::kPrefetchBounds)) return;
  fail("prefetch-bounds", Report("{} prefetches memory that has not been allocated", what)
                              .at(where, running_thread())
                              .line("address", describe_address(address, bytes))
                              .rule("a prefetch must be of memory that has been allocated",
                                    "PTX ISA, \"prefetch, prefetchu\"; \"cp.async.bulk.prefetch\"")
                              .course_rule(CourseRule::kPrefetchBounds)
                              .str());
}

}  // namespace

void prefetch_global(const char* what, const void* global, Where where) {
  const Thread& thread = this_thread(what, where);
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  check_prefetched(what, global, 1, where);
}

void prefetch_uniform(const char* what, const void* pointer, Where where) {
  const Thread& thread = this_thread(what, where);
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1);
  // Nothing happens where the address is one of constant, local or shared memory.
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address - device_space.begin < device_space.slots << kSlotLog2)
    check_prefetched(what, pointer, 1, where);
}

void CopyEngine::prefetch_plain(const void* global, std::uint32_t bytes, Where where) {
  constexpr const char* kWhat = "cp_async_bulk_prefetch_l2";
  constexpr std::uint32_t kUnit = 16;
  const auto address = reinterpret_cast<std::uintptr_t>(global);
  if (context.counters) count_instruction(kWhat, where, 1, 1);
  if (bytes % kUnit != 0 || address % kUnit != 0) {
    engine_.fail(
        "tma-alignment",
        Report("{} prefetches {} bytes, {}", kWhat, bytes, describe_address(address, bytes))
            .at(where, running_thread())
            .rule("the address and the size must be multiples of 16", "PTX ISA, \"cp.async.bulk.prefetch\""));
  }
  check_prefetched(kWhat, global, bytes, where);
}

void CopyEngine::prefetch(const char* what, const TensorMapBits& map, const std::int32_t* coordinates,
                          int rank, Where where) {
  if (context.counters) count_instruction(what, where, 1, 1);
  const gemm::ptx::TensorMapSpec spec = use_tensor_map(what, map, rank, where);
  check_coordinates(what, spec, coordinates, where);
  Coordinates at{};
  std::copy_n(coordinates, rank, at.begin());
  check_tensor(what, spec, at, find_buffer(reinterpret_cast<std::uintptr_t>(spec.base)), where);
}

void CopyEngine::store_plain(const char* what, void* global, const void* shared, std::uint32_t bytes,
                             const Reduction& reduction, Where where) {
  const std::int32_t at[] = {0};
  store(what, encode_tensor_map(plain_spec(what, global, bytes, where)), at, 1, shared, where, reduction,
        kPlainAlignment);
}

void CopyEngine::copy_to_cluster(std::uint32_t to, const void* from, std::uint32_t bytes,
                                 std::uint32_t barrier, Where where, const Reduction& reduction) {
  const char* const what = reduction.apply ? "cp_reduce_async_bulk" : "cp_async_bulk";
  Thread& thread = this_thread(what, where);
  Cta& target = engine_.cluster_cta(what, to, where);
  LoadRecord record;
  record.spec = plain_spec(what, reinterpret_cast<const void*>(std::uintptr_t{to & 0xfffff0u}), bytes, where);
  record.offset = to & 0xffffffu;
  record.bytes = bytes;
  record.issuer = thread.stamp();
  record.where = where;
  record.activity = engine_.thread(thread).activity;
  record.reduces = reduction.apply != nullptr;
  if (record.offset % kPlainAlignment != 0 || shared_room(target, record.offset) < bytes ||
      &engine_.cluster_cta(what, barrier, where) != &target) {
    engine_.fail("cluster-address",
                 Report("{} copies {} bytes into another CTA's shared memory", what, bytes)
                     .at(where, thread)
                     .line("to", "{}, mbarrier {:#x}", name_shared_offset(target, record.offset), barrier)
                     .rule("the destination must be a multiple of 16 and lie in one array, and its mbarrier "
                           "must be in the same CTA",
                           "PTX ISA, \"cp.async.bulk\""));
  }
  Mbarrier& signalled = use_mbarrier(what, target, barrier & 0xffffffu, true, where);
  if (target.exited == target.thread_count)
    fail_remote_exit(engine_, target, {thread.stamp(), where, &signalled});
  engine_.touches_remote(thread, signalled, where);
  if (context.counters) count_instruction(what, where, 1, 1, bytes);
  // The source is read until the phase of the destination's barrier is complete.
  Store source{.thread = &thread,
               .cta = thread.cta,
               .group = 0,
               .spec = record.spec,
               .coordinates = {},
               .offset = use_box(what, *thread.cta, from, record.spec, kPlainAlignment, where),
               .bytes = bytes,
               .where = where};
  const Stamp reads = agent_stamp(target, signalled.agent, static_cast<std::uint32_t>(signalled.phase) + 1);
  std::vector<unsigned char> snapshot(bytes);
  for_box_chunks(record.spec, source.offset, [&](std::uint32_t place, std::uint32_t byte) {
    Line& line = shared_line(*thread.cta, place);
    for (unsigned i = 0; i < cells_of(line); ++i) {
      check_source_cell(what, thread, source, line, i, false);
      add_async_reader(line.cells()[i], reads, where, thread);
    }
    line.set_slow(true);
    std::memcpy(snapshot.data() + byte, shared_bytes(*thread.cta, place), 16);
  });
  start_load(what, thread, target, signalled, record, std::move(snapshot), reduction);
  ++engine_.gang.progress;
}

LoadRecord CopyEngine::record_of(const char* what, void* shared, const TensorMapBits& map,
                                 const std::int32_t* coordinates, int rank, Where where,
                                 std::uint32_t alignment, const std::uint16_t* im2col_offsets) {
  const Thread& thread = running_thread();
  LoadRecord record;
  record.spec = use_tensor_map(what, map, rank, where, im2col_offsets != nullptr);
  if (im2col_offsets) std::copy_n(im2col_offsets, rank - 2, record.spec.im2col.offset.begin());
  check_coordinates(what, record.spec, coordinates, where);
  std::copy_n(coordinates, rank, record.coordinates.begin());
  record.offset = use_box(what, *thread.cta, shared, record.spec, alignment, where);
  record.bytes = gemm::ptx::box_bytes(record.spec);
  if (context.counters) count_instruction(what, where, 1, 1, record.bytes);
  record.issuer = thread.stamp();
  record.where = where;
  record.activity = engine_.thread(thread).activity;
  return record;
}

namespace {

/// What is wrong with a mask of ranks, and which would be right as far as that is known.
std::string missing_bits(std::uint32_t ctas, std::size_t cluster, std::size_t rank) {
  if (ctas == 0) return "at least one bit: otherwise no CTA gets the bytes";
  std::string outside;
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    if (bit >= cluster && (ctas >> bit & 1)) outside += fmt::format("{}{}", outside.empty() ? "" : ", ", bit);
  }
  const std::uint32_t all = (1u << cluster) - 1;
  return fmt::format(
      "a CTA for bit{} {}: the cluster's ranks are 0 to {}, and the mask for all of them is {:#x}{}. The "
      "ranks in a row are as far apart as a column has CTAs, and the ranks in a column are 1 apart",
      outside.size() == 1 ? "" : "s", outside, cluster - 1, all,
      (ctas >> rank & 1) == 0
          ? fmt::format("; the issuer's own bit, {}, is not set, so the issuer gets none of its own bytes",
                        rank)
          : std::string());
}

/// Notes a map whose rows do not lie as those of the matrix do that it covers.
void note_unlikely_map(const char* what, const Thread& thread, const gemm::ptx::TensorMapSpec& spec,
                       Where where) {
  const auto element = static_cast<std::uint64_t>(gemm::ptx::element_bytes(spec.element));
  const std::uint64_t row = spec.extent[0] * element;
  if (spec.rank != 2 || spec.stride_bytes[1] == row) return;
  const Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(spec.base));
  if (!buffer || buffer->begin != reinterpret_cast<std::uintptr_t>(spec.base)) return;
  const bool whole = buffer->bytes == row * spec.extent[1];  // without anything between the rows
  const bool overlap = spec.stride_bytes[1] < row && spec.extent[1] > 1;
  if (!whole && !overlap) return;
  const std::string map = fmt::format(
      "the map for {} has {} columns and {} rows, and its rows begin {} bytes ({} elements) apart",
      buffer->name, spec.extent[0], spec.extent[1], spec.stride_bytes[1], spec.stride_bytes[1] / element);
  const std::string columns =
      whole ? fmt::format(
                  ", but {} is exactly as large as all of them without gaps, so its rows cannot begin {} "
                  "bytes apart. One of the three numbers belongs to another matrix",
                  buffer->name, spec.stride_bytes[1])
            : std::string(", which is less than the length of a row, so rows overlap");
  note_map_fault(fmt::format(
      "{}{} ({} at {} by {}). The extents and the strides must be those of the same matrix", map,
      whole && spec.stride_bytes[1] == spec.extent[1] * element
          ? fmt::format(
                ": the two extents are exchanged. {} has rows of {} elements, and the innermost extent, the "
                "length of a row, must come first: {{{}, {}}}. As it is, {} from {} on are loaded as zeros",
                buffer->name, spec.extent[1], spec.extent[1], spec.extent[0],
                spec.extent[0] > spec.extent[1] ? "rows" : "columns",
                std::min(spec.extent[0], spec.extent[1]))
          : columns,
      what, where.text(), name_thread(thread)));
}

/// Notes a map of a whole operand whose two extents are exchanged, as far as these coordinates say.
void note_exchanged_extents(const char* what, const Thread& thread, const LoadRecord& record,
                            std::int64_t far) {
  const gemm::ptx::TensorMapSpec& spec = record.spec;
  const Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(spec.base));
  if (!buffer || (buffer->name != "A" && buffer->name != "B") ||
      buffer->begin != reinterpret_cast<std::uintptr_t>(spec.base))
    return;
  const auto element = static_cast<std::uint64_t>(gemm::ptx::element_bytes(spec.element));
  const std::uint64_t row = spec.extent[0] * element;
  const auto k = static_cast<std::uint64_t>(thread.cta->gang->grid.options.k);
  const auto reaches = [&](int coordinate, std::uint64_t extent) {
    return record.coordinates[coordinate] < static_cast<std::int64_t>(extent) + far;
  };
  if (spec.extent[0] == spec.extent[1] || spec.stride_bytes[1] != row ||
      buffer->bytes != row * spec.extent[1] || !reaches(0, spec.extent[1]) || !reaches(1, spec.extent[0]))
    return;
  const bool k_first = spec.extent[0] == k;
  if (!k_first && spec.extent[1] != k) return;
  // No tile of K begins behind its end, whichever way it is read.
  if (static_cast<std::uint64_t>(std::max(record.coordinates[k_first ? 1 : 0], 0)) >= k) return;
  note_map_fault(fmt::format(
      "the map for {} has the extents {{{}, {}}} and rows {} bytes apart, which is the {} layout ({} rows of "
      "{} elements); the coordinates of {} at {} by {}, {}, are those for the {} layout, with the extents "
      "{{{}, {}}} and rows {} bytes apart. Rows and K are exchanged in one of the two: in the map, with its "
      "pitch, where {} is {}",
      buffer->name, spec.extent[0], spec.extent[1], spec.stride_bytes[1], k_first ? "K-major" : "MN-major",
      spec.extent[1], spec.extent[0], what, record.where.text(), name_thread(thread),
      box_text(spec, record.coordinates), k_first ? "MN-major" : "K-major", spec.extent[1], spec.extent[0],
      spec.extent[1] * element, buffer->name, k_first ? "MN-major" : "K-major"));
}

/// Notes a load of nothing but zeros that no edge of a tile explains.
void note_far_load(const char* what, const Thread& thread, const TensorMapBits& map,
                   const LoadRecord& record) {
  const Options& options = thread.cta->gang->grid.options;
  if (record.remote || record.spec.rank != 2 || options.tile_n == 0) return;
  note_unlikely_map(what, thread, record.spec, record.where);
  const Buffer* const buffer = find_buffer(reinterpret_cast<std::uintptr_t>(record.spec.base));
  const auto extent = [&](int i) { return static_cast<std::int64_t>(record.spec.extent[i]); };
  // Of operands and results tiles may lie outside, where clusters are cut or K ends.
  const bool of_table = buffer && buffer->name != "A" && buffer->name != "B" && buffer->name != "D";
  if (of_table && record.spec.box[1] == 1 && record.coordinates[0] >= 0 &&
      record.coordinates[0] < extent(0) && record.coordinates[1] >= extent(1)) {
    note_outside_row(what,
                     fmt::format("{}, but the map has {} rows there",
                                 box_text(record.spec, record.coordinates), extent(1)),
                     thread, record.where);
    return;
  }
  const std::int64_t far = std::max({options.tile_m, options.tile_n, options.k_tile});
  for (int i = 0; i < 2; ++i) {
    if (record.coordinates[i] < static_cast<std::int64_t>(record.spec.extent[i]) + far) continue;
    note_exchanged_extents(what, thread, record, far);
    const std::string set = describe_replaced(map, MapField::kGlobalDim, static_cast<unsigned>(i));
    note_outside_load(what,
                      fmt::format("{}, but the map has {} {} there{}{}",
                                  box_text(record.spec, record.coordinates), record.spec.extent[i],
                                  i == 0 ? "columns" : "rows", set.empty() ? "" : ", as set by ", set),
                      thread, record.where);
    return;
  }
}

}  // namespace

void CopyEngine::load(const char* what, void* shared, const TensorMapBits& map,
                      const std::int32_t* coordinates, int rank, void* barrier, std::uint32_t ctas,
                      bool multicast, Where where, std::uint32_t alignment,
                      const std::uint16_t* im2col_offsets) {
  Thread& thread = this_thread(what, where);
  LoadRecord record = record_of(what, shared, map, coordinates, rank, where, alignment, im2col_offsets);
  record.ctas = multicast ? ctas : 0;
  // What lies in no shared memory is no mbarrier either.
  const std::uint32_t barrier_offset = shared_offset(*thread.cta, barrier, where).value_or(0xffffffu);
  const HopperCta& own = engine_.cta(*thread.cta);
  if (!multicast) ctas = 1u << thread.cta->rank_in_cluster;
  if (ctas == 0 || ctas >> own.cluster.size() != 0) {
    engine_.fail("multicast-mask",
                 Report("{} sends to CTAs {:#x} of a cluster of {}", what, ctas, own.cluster.size())
                     .at(where, thread)
                     .line("load", "{}; the issuer has rank {}", describe_load(engine_.gang.grid, record),
                           thread.cta->rank_in_cluster)
                     .missing(missing_bits(ctas, own.cluster.size(), thread.cta->rank_in_cluster))
                     .rule("every bit that is set in the mask must be the rank of a CTA in the cluster, and "
                           "at least one must be set",
                           kTmaSection));
  }
  check_source(what, record.spec, record.coordinates, where);
  std::vector<const Mbarrier*> all_signalled;
  for (std::uint32_t rank_of_target = 0; rank_of_target < own.cluster.size(); ++rank_of_target) {
    if (!(ctas >> rank_of_target & 1)) continue;
    Cta& target = *own.cluster[rank_of_target];
    Mbarrier& signalled = use_mbarrier(what, target, barrier_offset, true, where);
    if (target.exited == target.thread_count) fail_remote_exit(engine_, target, {thread.stamp(), where});
    all_signalled.push_back(&signalled);
    if (ctas == 1u << rank_of_target) {
      const Stamp completed =
          agent_stamp(target, signalled.agent, static_cast<std::uint32_t>(signalled.phase) + 1);
      stamp_source_reads(record.spec, record.coordinates, completed);
      note_map_use(map, completed, where);
    }
    note_far_load(what, thread, map, record);
    start_load(what, thread, target, signalled, record);
  }
  if (timeline_on()) log_load(all_signalled, record.bytes, where);
  ++engine_.gang.progress;
}

void CopyEngine::load_of_pair(const char* what, void* shared, const TensorMapBits& map,
                              const std::int32_t* coordinates, int rank, std::uint32_t barrier, Where where) {
  Thread& thread = this_thread(what, where);
  LoadRecord record = record_of(what, shared, map, coordinates, rank, where, kTmaAlignment);
  Cta& holder = engine_.cluster_cta(what, barrier, where);
  if (holder.rank_in_cluster / 2 != thread.cta->rank_in_cluster / 2) {
    engine_.fail("pair-barrier",
                 Report("{} signals an mbarrier of a CTA that is not a peer of this one", what)
                     .at(where, thread)
                     .line("mbarrier", "{}, rank {} of the cluster; the tile is for rank {}",
                           name_shared_offset(holder, barrier & 0xffffffu), holder.rank_in_cluster,
                           thread.cta->rank_in_cluster)
                     .rule("with .cta_group::2, the mbarrier must be in the shared memory of the CTA that "
                           "the tile is for, or of that CTA's peer; without it, in the former",
                           kTmaSection));
  }
  Mbarrier& signalled = use_mbarrier(what, holder, barrier & 0xffffffu, true, where);
  engine_.touches_remote(thread, signalled, where);
  record.peer = &holder != thread.cta;
  if (record.peer && !signalled.peer_agent) {
    HopperCta& state = engine_.cta(holder);
    signalled.peer_agent = state.add_agent(AgentKind::kLoads, state.agents[signalled.agent].object);
  }
  check_source(what, record.spec, record.coordinates, where);
  const Stamp completed = agent_stamp(holder, agent_of(signalled, record.brings()),
                                      static_cast<std::uint32_t>(signalled.phase) + 1);
  stamp_source_reads(record.spec, record.coordinates, completed);
  note_map_use(map, completed, where);
  note_far_load(what, thread, map, record);
  start_load(what, thread, *thread.cta, signalled, record);
  if (timeline_on()) log_load({&signalled}, record.bytes, where);
  ++engine_.gang.progress;
}

void CopyEngine::store_remote(const RemoteStore& store, Where where) {
  const char* const what = store.what;
  const bool reduces = store.reduction.apply != nullptr;
  Thread& thread = this_thread(what, where);
  Cta& target = engine_.cluster_cta(what, store.address, where, store.bytes);
  const std::uint32_t offset = store.address & 0xffffffu;
  const auto refuse = [&](const std::string& headline, const char* rule) {
    engine_.fail("cluster-address",
                 Report("{}: {}", what, headline)
                     .at(where, thread)
                     .line("address", "{:#x}; mbarrier {:#x}", store.address, store.barrier)
                     .rule(rule, reduces ? "PTX ISA, \"red.async\"" : "PTX ISA, \"st.async\""));
  };
  if (engine_.cta(target).cluster.size() == 1)
    refuse("the cluster has one CTA", "the number of CTAs in the cluster must be greater than one");
  if (&engine_.cluster_cta(what, store.barrier, where) != &target) {
    refuse("the mbarrier is not in the CTA that is stored to",
           "the mbarrier must be in the shared memory of the CTA that contains the destination");
  }
  if (reduces && &target == thread.cta) {  // st.async may go there
    refuse("the destination is in the CTA of the executing thread",
           "the destination must be in a different CTA of the cluster from the executing thread");
  }
  Mbarrier& signalled = use_mbarrier(what, target, store.barrier & 0xffffffu, true, where);
  if (target.exited == target.thread_count)
    fail_remote_exit(engine_, target, {thread.stamp(), where, &signalled});
  if (context.counters) count_instruction(what, where, thread.lane() == 0, 1, store.bytes);
  if (!signalled.remote_agent) {
    HopperCta& state = engine_.cta(target);
    signalled.remote_agent = state.add_agent(AgentKind::kRemote, state.agents[signalled.agent].object);
  }
  LoadRecord record;
  record.spec.rank = 1;
  record.spec.element = gemm::ptx::TensorElement::kUint32;
  record.spec.extent[0] = store.bytes / 4;
  record.spec.box[0] = store.bytes / 4;
  record.spec.swizzle = gemm::ptx::Swizzle::kNone;
  record.offset = offset;
  record.bytes = store.bytes;
  record.remote = true;
  record.reduces = reduces;
  record.issuer = thread.stamp();
  record.where = where;
  record.activity = engine_.thread(thread).activity;
  start_remote(store, thread, target, signalled, record);
  ++engine_.gang.progress;
}

namespace {

/// Calls visit(line, index) for the cells of shared memory that an st.async or a red.async writes: a part of
/// one line.
template <typename Visit>
void for_remote_cells(const Cta& target, const LoadRecord& record, Visit visit) {
  Line& line =
      refined_shared_line(target, record.offset, static_cast<unsigned>(std::countr_zero(record.bytes)));
  const unsigned granule = line.granule_log2();
  for (unsigned i = 0; i < record.bytes >> granule; ++i) visit(line, (record.offset % 16 >> granule) + i);
}

}  // namespace

void CopyEngine::start_remote(const RemoteStore& store, Thread& thread, Cta& target, Mbarrier& barrier,
                              LoadRecord record) {
  record.barrier = &barrier;
  record.phase = barrier.phase;
  record.serial = next_serial_++;
  const std::uint32_t id = kHopperPending | (record.serial & (kHopperPending - 1));
  for_remote_cells(target, record, [&](Line& line, unsigned index) {
    std::optional<UnfencedRead> unfenced;  // of the generic proxy, as the store: never
    check_destination(store.what, thread, target, record, line, index, unfenced);
    line.cells()[index].pending = id;
    line.set_slow(true);
  });
  register_load(store.what, thread, target, barrier, record);
  const auto* const first = static_cast<const unsigned char*>(store.value);
  loads_.push_back({.id = id,
                    .target = &target,
                    .barrier = &barrier,
                    .what = record,
                    .snapshot = {first, first + store.bytes},
                    .reduction = store.reduction});
  if (engine_.earliest()) {
    const Load load = std::move(loads_.back());
    loads_.pop_back();
    land(load);
  } else if (!record.reduces) {
    std::memset(shared_bytes(target, record.offset), 0xff, record.bytes);
  }
}

/// Of several reductions of the same bytes the others may still be under way: one of them, or 0.
std::uint32_t CopyEngine::other_reduction(const Load& load) const {
  std::uint32_t found = 0;
  for (const Load& other : loads_) {
    if (other.what.reduces && other.target == load.target &&
        other.what.offset < load.what.offset + load.what.bytes &&
        load.what.offset < other.what.offset + other.what.bytes)
      found = other.id;
  }
  return found;
}

/// cp.reduce.async.bulk into the shared memory of a CTA of the cluster.
void CopyEngine::land_reduction(const Load& load) {
  const LoadRecord& record = load.what;
  for (std::uint32_t at = 0; at < record.bytes; at += load.reduction.bytes)
    load.reduction.apply(shared_bytes(*load.target, record.offset + at), load.snapshot.data() + at);
  const Stamp stamp = agent_stamp(*load.barrier->cta, agent_of(*load.barrier, record.brings()),
                                  static_cast<std::uint32_t>(load.barrier->phase) + 1);
  HopperCta& state = engine_.cta(*load.target);
  for_box_chunks(record.spec, record.offset, [&](std::uint32_t place, std::uint32_t) {
    Line& line = shared_line(*load.target, place);
    const unsigned cells = cells_of(line);
    for (Cell* cell = line.cells(); cell < line.cells() + cells; ++cell) {
      cell->pending = other_reduction(load);
      cell->write = stamp;
      cell->write_where = record.where.packed() | kAtomicBit;
      cell->readers = 0;
    }
    state.load_of_line[place / 16] = record.serial;
  });
  mbarrier_complete_tx(*load.barrier, record.bytes, record.brings());
}

void CopyEngine::land_remote(const Load& load) {
  const LoadRecord& record = load.what;
  unsigned char* const memory = shared_bytes(*load.target, record.offset);
  if (record.reduces) {
    load.reduction.apply(memory, load.snapshot.data());
  } else {
    std::memcpy(memory, load.snapshot.data(), record.bytes);
  }
  const Stamp stamp = agent_stamp(*load.target, *load.barrier->remote_agent,
                                  static_cast<std::uint32_t>(load.barrier->phase) + 1);
  const std::uint32_t pending = record.reduces ? other_reduction(load) : 0;
  for_remote_cells(*load.target, record, [&](Line& line, unsigned index) {
    Cell& cell = line.cells()[index];
    cell.pending = pending;
    cell.write = stamp;
    cell.write_where = record.where.packed() | (record.reduces ? kAtomicBit : 0);
    cell.readers = 0;
  });
  engine_.cta(*load.target).load_of_line[record.offset / 16] = record.serial;
  mbarrier_complete_tx(*load.barrier, record.bytes, Brings::kStore);
}

const CopyEngine::Load* CopyEngine::find_load(std::uint32_t id) const {
  const auto found =
      std::find_if(loads_.begin(), loads_.end(), [&](const Load& load) { return load.id == id; });
  return found == loads_.end() ? nullptr : &*found;
}

namespace {

void tell_ledger(const Cta& target, const Mbarrier& barrier, const LoadRecord& load) {
  ledger_load(target, barrier, load);
  if (load.remote) return ledger_load_bytes(target, barrier, load, load.offset);
  for_box_chunks(load.spec, load.offset, [&](std::uint32_t place, std::uint32_t) {
    ledger_load_bytes(target, barrier, load, place);
  });
}

}  // namespace

void CopyEngine::register_load(const char* what, const Thread& thread, Cta& target, Mbarrier& barrier,
                               const LoadRecord& record) {
  log_.push_back(record);
  if (log_.size() > kLogged) log_.pop_front();
  if (explore::is_on()) explore::issued(explore::ActorKind::kLoad, record.serial, thread);
  barrier.issued += record.bytes;
  ++barrier.loads;
  barrier.last_load = record.where;
  barrier.loaded_phases = barrier.phase + 1;
  if (ledger_on()) tell_ledger(target, barrier, record);
  if (EventLog::on()) {
    EventLog::write({.event = what,
                     .cta = &target,
                     .thread = &thread,
                     .barrier = &barrier,
                     .bytes = record.bytes,
                     .where = record.where});
  }
}

void CopyEngine::start_load(const char* what, Thread& thread, Cta& target, Mbarrier& barrier,
                            LoadRecord record, std::vector<unsigned char> snapshot,
                            const Reduction& reduction) {
  record.barrier = &barrier;
  record.phase = barrier.phase;
  record.serial = next_serial_++;
  const std::uint32_t id = kHopperPending | (record.serial & (kHopperPending - 1));
  // Most of the box was written, and read last, by the same instructions.
  Stamp checked_write = 0;
  std::array<Stamp, 2> checked_readers{};
  std::uint32_t unread = 0;  // lines that were written and not read since
  std::uint32_t first_unread = 0;
  std::optional<UnfencedRead> unfenced_read;
  for_box_chunks(record.spec, record.offset, [&](std::uint32_t place, std::uint32_t) {
    Line& line = shared_line(target, place);
    Cell& whole = line.whole;
    if (whole.readers == 0 && whole.write != 0 && line.granule_log2() == Line::kWholeLog2) [[unlikely]] {
      if (unread++ == 0) first_unread = place;
    }
    if (line.granule_log2() == Line::kWholeLog2 && whole.pending == 0 && checked_write != 0 &&
        whole.write == checked_write && whole.readers <= 2 &&
        (whole.readers < 1 || whole.first.stamp == checked_readers[0]) &&
        (whole.readers < 2 || whole.more[0].stamp == checked_readers[1])) [[likely]] {
      whole.pending = id;
    } else {
      const unsigned cells = cells_of(line);
      for (unsigned i = 0; i < cells; ++i) {
        check_destination(what, thread, target, record, line, i, unfenced_read);
        line.cells()[i].pending = id;
      }
      if (cells == 1) {
        checked_write = whole.write;
        if (whole.readers > 0) checked_readers[0] = whole.first.stamp;
        if (whole.readers > 1) checked_readers[1] = whole.more[0].stamp;
      }
    }
    line.set_slow(true);
  });
  if (unfenced_read) [[unlikely]]
    engine_.fail(unfenced_read->rule, unfenced_read->report);
  constexpr std::uint32_t kWorthANote = 8;  // of a box: less may be padding, or scales
  if (unread * 16 * kWorthANote >= record.bytes) [[unlikely]] {
    if (const LoadRecord* const before = this->record(target, first_unread / 16))
      note_unread(target, first_unread, unread * 16, describe_load(engine_.gang.grid, *before));
  }
  register_load(what, thread, target, barrier, record);
  loads_.push_back({.id = id,
                    .target = &target,
                    .barrier = &barrier,
                    .what = record,
                    .snapshot = std::move(snapshot),
                    .reduction = reduction});
  if (engine_.earliest()) {
    const Load load = std::move(loads_.back());
    loads_.pop_back();
    land(load);
  } else if (!record.reduces) {
    unsigned char* memory = shared_base(target, record.offset);
    for_box_chunks(record.spec, record.offset,
                   [&](std::uint32_t place, std::uint32_t) { std::memset(memory + place, 0xff, 16); });
  }
}

void CopyEngine::check_destination(const char* what, const Thread& thread, const Cta& target,
                                   const LoadRecord& load, const Line& line, unsigned index,
                                   std::optional<UnfencedRead>& unfenced) {
  const Cell& cell = line.cells()[index];
  const auto offset = [&] { return line_offset(target, line) + (index << line.granule_log2()); };
  auto begin_report = [&](const std::string& headline) {
    Report report("{} {}", kind_of(load), headline);
    report.line("bytes", name_shared_offset(target, offset()))
        .line(load.reduces  ? "red"
              : load.remote ? "store"
                            : "load",
              "{} at {} by {}: {}", what, load.where.text(), name_thread(thread),
              describe_load(engine_.gang.grid, load))
        .line("signals", name_mbarrier(*load.barrier));
    return report;
  };
  if (cell.pending != 0) {
    const Load* const other = load.reduces ? find_load(cell.pending) : nullptr;
    if (other == nullptr || !other->what.reduces) {  // two reductions are atomics
      const Load* const first = cell.pending & kHopperPending ? find_load(cell.pending) : nullptr;
      if (first != nullptr &&
          !one_warp_one_place(thread, load.where, first->what.issuer, first->what.where)) {
        Report report = begin_report("overwrites bytes that another copy is still writing");
        if (explain_two_copies(report, thread, load, target, first->what))
          engine_.fail("load-not-waited", report.rule("two copies in one phase must write different bytes, "
                                                      "and every CTA must get each part of a tile once",
                                                      "PTX ISA, \"cp.async.bulk.tensor\""));
      }
      if (cell.pending & kHopperPending)
        fail_touched(cell.pending, name_shared_offset(target, offset()), Access::kWrite, load.where);
      thread.cta->gang->cp_async->fail_touched(cell.pending, name_shared_offset(target, offset()),
                                               Access::kWrite, load.where);
    }
  }
  if (load.reduces && cell.write == 0) {
    engine_.fail("shared-uninitialised",
                 begin_report("reduces bytes that have never been written")
                     .rule("a reduction reads the existing value, so that value must be written, followed by "
                           "a barrier of the cluster, before the first red.async",
                           "PTX ISA, \"red.async\""));
  }
  auto fail_overwrite = [&](const char* verb, const char* label, Stamp stamp, std::uint64_t where) {
    Report report = begin_report(fmt::format("overwrites bytes that may {}", verb));
    report.line(label, "{} by {}", Where::from_packed(where & ~kAtomicBit).text(),
                is_agent(stamp) ? name_agent(engine_.gang, stamp) : name_thread(engine_.gang.grid, stamp));
    const HopperCta& state = engine_.cta(target);
    if (cell.write == 0 && !is_agent(stamp) && !load.remote &&
        explain_read_before_copy(report, target, *load.barrier, stamp,
                                 Where::from_packed(where & ~kAtomicBit))) {
      add_wait_notes(report, thread);
      engine_.fail(
          "load-overwrites",
          report.rule("a load is visible to a thread only after its own successful wait on the mbarrier "
                      "that the load signals, or after a barrier with a thread that waited",
                      "PTX ISA, \"cp.async.bulk.tensor\", \"mbarrier.try_wait\""));
    }
    explain_overwrite(report, thread, load, target,
                      state.load_of_line[offset() / 16] == 0 ? nullptr : record(target, offset() / 16), stamp,
                      Where::from_packed(where & ~kAtomicBit));
    add_wait_notes(report, thread);
    if (load.remote) {
      report.rule(
          "a thread may store to bytes only when no other thread still reads or writes them and the storing "
          "thread knows it: through a barrier of the cluster, or an mbarrier that it waits for",
          load.reduces ? "PTX ISA, \"Memory Consistency Model\"; \"red.async\""
                       : "PTX ISA, \"Memory Consistency Model\"; \"st.async\"");
      engine_.fail("load-overwrites", report);
    }
    report.rule(
        "a stage may be filled again only when all its readers have finished and the thread that issues the "
        "load knows it: wgmma through wgmma.wait_group, and threads that read it by arriving at the mbarrier "
        "(or barrier) that this thread waits for",
        "PTX ISA, \"Memory Consistency Model\"; \"wgmma.wait_group\"");
    engine_.fail("load-overwrites", report);
  };
  const bool both_atomic = load.reduces && (cell.write_where & kAtomicBit) != 0;
  if (cell.write != 0 && !both_atomic) {
    if (!(load.reduces ? knows(thread, cell.write) : knows_over(thread, cell.write)))
      fail_overwrite(
          is_agent(cell.write) ? "not have been read since another load wrote them" : "still be written",
          "writer", cell.write, cell.write_where);
    if (!load.remote && !engine_.by_async_proxy(cell.write)) {  // st.async is of the generic proxy
      if (!engine_.fenced(thread, cell.write, true)) {
        Report report = begin_report("overwrites bytes that ordinary stores wrote, without a proxy fence");
        report.line("written", "{} by {}", Where::from_packed(cell.write_where & ~kAtomicBit).text(),
                    name_thread(engine_.gang.grid, cell.write));
        report.rule(
            "the thread that wrote must execute fence.proxy.async before the barrier that leads to the copy",
            "PTX ISA, \"Async proxy\"; \"membar, fence\": fence.proxy.async");
        explain_fence_on_the_way(report, thread, cell.write, true);
        engine_.fail("proxy-fence", report);
      }
    }
  }
  for (unsigned i = 0; i < cell.readers; ++i) {
    const Reader& reader = i == 0 ? cell.first : cell.more[i - 1];
    if (!knows_over(thread, reader.stamp))
      fail_overwrite("still be read", "reader", reader.stamp, reader.where & ~kAtomicBit);
    const CourseRule rule = load.request ? CourseRule::kLaunchControlFence : CourseRule::kProxyFenceAfterRead;
    if (load.remote || is_agent(reader.stamp) || !course_rule_on(rule)) continue;
    if (load.request ? engine_.fenced(thread, reader.stamp, true) : engine_.read_fenced(thread, reader.stamp))
      continue;
    if (unfenced) continue;
    const bool on_the_way = !load.request && fenced_on_the_way(thread, reader.stamp, true);
    if (on_the_way && !course_rule_on(CourseRule::kProxyFenceByReader)) continue;
    Report report =
        begin_report(load.request ? "overwrites one that was read, without a proxy fence after the read"
                                  : "overwrites bytes that ordinary loads read, without a proxy fence");
    report.line("read", "{} by {}", Where::from_packed(reader.where & ~kAtomicBit).text(),
                name_thread(engine_.gang.grid, reader.stamp));
    if (on_the_way) name_fence_on_the_way(report, thread, reader.stamp);
    if (!load.request && engine_.fence_after(reader.stamp, true) != 0)
      report.line("fence",
                  "it has executed one since, but only after it had signalled to the loading thread that it "
                  "had read");
    report.missing("fence_proxy_async by {} after its read, before it releases the bytes",
                   name_thread(engine_.gang.grid, reader.stamp));
    if (load.request) {
      report.rule(
          "a response is read through the generic proxy and written through the async proxy, so a proxy "
          "fence must come between the read and the next request",
          "PTX ISA, \"clusterlaunchcontrol.try_cancel\", Examples; \"Async proxy\"");
      engine_.fail("launch-control-fence", report.course_rule(rule));
    }
    report.rule(
        "accesses to the same bytes through two proxies need a proxy fence between them, because the arrival "
        "may overtake a load that is still in flight",
        "PTX ISA, \"Async proxy\"; \"Memory Consistency Model\": Causality order");
    unfenced = on_the_way ? UnfencedRead{"proxy-fence-by-reader",
                                         report.course_rule(CourseRule::kProxyFenceByReader)}
                          : UnfencedRead{"proxy-fence-after-read", report.course_rule(rule)};
  }
}

void CopyEngine::land(const Load& load) {
  if (explore::is_recording()) explore::completes(explore::ActorKind::kLoad, load.what.serial);
  if (load.what.remote) return land_remote(load);
  if (load.what.reduces) return land_reduction(load);
  LoadRecord record = load.what;
  if (!load.snapshot.empty()) record.spec.base = load.snapshot.data();
  unsigned char response[16];
  if (record.request) {
    engine_.launch_control->answer(*record.request, response);
    record.spec.base = response;
  }
  const std::uint32_t row_bytes = record.row_bytes();
  const std::uint32_t pitch = box_row_pitch(record.spec);
  unsigned char* memory = shared_base(*load.target, record.offset);
  for_rows(record.spec, record.coordinates, [&](const RowSlice& slice) {
    for (std::uint32_t at = 0; at < row_bytes; at += 16) {
      unsigned char* chunk =
          memory + gemm::ptx::swizzled(record.offset + slice.row * pitch + at, record.spec.swizzle);
      const std::uint32_t begin = std::max(at, slice.begin);
      const std::uint32_t end = std::min(at + 16, slice.end);
      if (end - begin == 16) [[likely]] {
        std::memcpy(chunk, reinterpret_cast<const void*>(slice.address + (begin - slice.begin)), 16);
      } else if (begin < end) {
        if (end - begin < 16) std::memset(chunk, 0, 16);
        std::memcpy(chunk + (begin - at),
                    reinterpret_cast<const void*>(slice.address + (begin - slice.begin)), end - begin);
      } else {
        std::memset(chunk, 0, 16);
      }
    }
  });
  const Stamp stamp = agent_stamp(*load.barrier->cta, agent_of(*load.barrier, record.brings()),
                                  static_cast<std::uint32_t>(load.barrier->phase) + 1);
  if (record.request) record.request->answers.push_back({load.target, stamp});
  HopperCta& state = engine_.cta(*load.target);
  const bool alone = engine_.gang.ctas.size() == 1;
  for_box_chunks(record.spec, record.offset, [&](std::uint32_t place, std::uint32_t) {
    Line& line = shared_line(*load.target, place);
    const unsigned cells = cells_of(line);
    Cell* const begin = line.cells();
    for (Cell* cell = begin; cell < begin + cells; ++cell) {
      cell->pending = 0;
      cell->write = stamp;
      cell->write_where = record.where.packed();
      cell->readers = 0;
    }
    if (alone) line.set_slow(false);
    state.load_of_line[place / 16] = record.serial;
  });
  mbarrier_complete_tx(*load.barrier, record.bytes, record.brings());
}

void CopyEngine::arrive_with_copies(const char* what, Mbarrier& barrier, Where where) {
  Thread& thread = running_thread();
  HopperCta& state = engine_.cta(*thread.cta);
  if (!barrier.copies_agent) {
    barrier.copies_agent = state.add_agent(AgentKind::kCopies, state.agents[barrier.agent].object);
  }
  CopiesArrive arrival{.id = kHopperPending | (next_serial_ & (kHopperPending - 1)),
                       .thread = &thread,
                       .barrier = &barrier,
                       .where = where};
  // The log is indexed by serial.
  log_.push_back({.serial = next_serial_++, .where = where, .barrier = &barrier});
  if (log_.size() > kLogged) log_.pop_front();
  if (engine_.gang.cp_async) arrival.copies = engine_.gang.cp_async->hand_over();
  for (const CpAsyncEngine::Handed& copy : arrival.copies) mark_pending(copy.shared, copy.bytes, arrival.id);
  if (ledger_on()) {
    for (const CpAsyncEngine::Handed& copy : arrival.copies) ledger_copied(thread, copy.shared, copy.bytes);
  }
  mbarrier_expect_late_arrival(what, barrier, where);
  if (explore::is_on()) explore::issued(explore::ActorKind::kCopies, arrival.id, thread);
  arrivals_.push_back(std::move(arrival));
  ++engine_.gang.progress;
  if (engine_.earliest()) land_arrival(arrivals_.size() - 1);
}

void CopyEngine::land_arrival(std::size_t index) {
  // The arrival comes when all earlier copies of its thread are there, also those of earlier arrivals.
  for (std::size_t i = 0; i < index; ++i) {
    if (arrivals_[i].thread == arrivals_[index].thread) {
      index = i;
      break;
    }
  }
  const CopiesArrive arrival = std::move(arrivals_[index]);
  if (explore::is_recording()) explore::completes(explore::ActorKind::kCopies, arrival.id);
  arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(index));
  Mbarrier& barrier = *arrival.barrier;
  Cta& cta = *barrier.cta;
  const Stamp stamp = agent_stamp(cta, *barrier.copies_agent, static_cast<std::uint32_t>(barrier.phase) + 1);
  std::uint64_t last_group = 0;
  for (const CpAsyncEngine::Handed& copy : arrival.copies) {
    unsigned char* shared = own_bytes(cta, copy.shared);
    std::memcpy(shared, copy.global, copy.source_bytes);
    std::memset(shared + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
    mark_copied(copy.shared, copy.bytes, arrival.id, *arrival.thread, stamp, copy.where);
    last_group = std::max(last_group, copy.group);
  }
  std::vector<Landed>& landed = landed_[arrival.thread];
  std::erase_if(landed, [&](const Landed& old) { return old.stamp >> 32 == stamp >> 32; });
  landed.push_back({last_group, stamp});
  std::vector<Stamp> stamps;
  for (const Landed& copies : landed) stamps.push_back(copies.stamp);
  mbarrier_arrive_late("cp_async_mbarrier_arrive_noinc", barrier, stamps, arrival.where);
}

void CopyEngine::finish_handed(Thread& thread, std::uint64_t group) {
  for (std::size_t i = 0; i < arrivals_.size();) {
    const CopiesArrive& arrival = arrivals_[i];
    const bool waited =
        arrival.thread == &thread && std::any_of(arrival.copies.begin(), arrival.copies.end(),
                                                 [&](const auto& copy) { return copy.group <= group; });
    if (!waited) {
      ++i;
      continue;
    }
    land_arrival(i);
    i = 0;
  }
  const auto found = landed_.find(&thread);
  if (found == landed_.end()) return;
  for (const Landed& copies : found->second) {
    if (copies.group <= group) thread.clock.add(copies.stamp);
  }
}

const LoadRecord* CopyEngine::record(const Cta& cta, std::uint32_t line) const {
  const std::uint32_t serial = engine_.cta(cta).load_of_line[line];
  if (serial == 0 || log_.empty() || serial < log_.front().serial) return nullptr;
  return &log_[serial - log_.front().serial];
}

const LoadRecord* CopyEngine::latest_load(const Mbarrier& barrier) const {
  const auto found = std::find_if(log_.rbegin(), log_.rend(), [&](const LoadRecord& load) {
    return load.barrier == &barrier && load.bytes > 0;
  });
  return found == log_.rend() ? nullptr : &*found;
}

const LoadRecord* CopyEngine::load_of_phase(const Mbarrier& barrier, std::uint64_t phase) const {
  const auto found = std::find_if(log_.rbegin(), log_.rend(), [&](const LoadRecord& load) {
    return load.barrier == &barrier && load.bytes > 0 && load.phase == phase;
  });
  return found == log_.rend() ? nullptr : &*found;
}

std::vector<const Cta*> CopyEngine::targets_of(Stamp issuer) const {
  std::vector<const Cta*> targets;
  for (const LoadRecord& load : log_) {
    if (load.issuer >> 32 != issuer >> 32 || load.bytes == 0) continue;
    const Cta* const target = load.barrier->cta;
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
  }
  return targets;
}

std::optional<int> CopyEngine::latest_k_tile_of(Stamp issuer) const {
  const auto found = std::find_if(log_.rbegin(), log_.rend(), [&](const LoadRecord& load) {
    return load.issuer >> 32 == issuer >> 32 && load.bytes > 0;
  });
  return found == log_.rend() ? std::nullopt : k_tile_of(engine_.gang.grid, *found);
}

void CopyEngine::fail_touched(std::uint32_t operation, const std::string& bytes, Access access, Where where) {
  const Thread& thread = running_thread();
  for (const CopiesArrive& arrival : arrivals_) {
    if (arrival.id != operation) continue;
    Report report("bytes are accessed that a cp.async is still writing");
    report.line("bytes", bytes)
        .line("copy", "handed over at {} by {}", arrival.where.text(), name_thread(*arrival.thread))
        .line("signals", "{}, {}", name_mbarrier(*arrival.barrier), describe_mbarrier(*arrival.barrier))
        .line("touched", "{} by {}", where.text(), name_thread(thread));
    add_wait_notes(report, thread);
    engine_.fail("load-not-waited",
                 report.rule("copies that arrive at an mbarrier are complete when their phase is complete",
                             "PTX ISA, \"cp.async.mbarrier.arrive\""));
  }
  const auto found =
      std::find_if(loads_.begin(), loads_.end(), [&](const Load& load) { return load.id == operation; });
  const LoadRecord& load = found->what;
  const bool read = access == Access::kRead;
  Report report("a thread {} bytes that {} is still writing", read ? "reads" : "writes to", kind_of(load));
  report.line("bytes", bytes)
      .line(load.reduces  ? "red"
            : load.remote ? "store"
                          : "load",
            "{} by {}: {}", load.where.text(), name_thread(engine_.gang.grid, load.issuer),
            describe_load(engine_.gang.grid, load))
      .line("signals", "{}, {}", name_mbarrier(*load.barrier), describe_mbarrier(*load.barrier))
      .line(read ? "read" : "write", "{} by {}", where.text(), name_thread(thread));
  if (!explain_too_large_box(report, load, bytes) &&
      (read || !explain_two_issuers(report, thread, where, load)))
    explain_missing_wait(report, thread, *load.barrier, load.phase);
  add_wait_notes(report, thread);
  if (load.remote) {
    engine_.fail("load-not-waited",
                 report.rule("the bytes are visible to a thread when it has waited, with acquire at cluster "
                             "scope, for the phase of the mbarrier that the store signals",
                             load.reduces ? "PTX ISA, \"red.async\", \"mbarrier.try_wait\""
                                          : "PTX ISA, \"st.async\", \"mbarrier.try_wait\""));
  }
  report.rule(
      "the tile is complete when the phase of the mbarrier that the load signals is complete: wait for that "
      "phase's parity (0 for the first phase) before accessing it",
      "PTX ISA, \"cp.async.bulk.tensor\", \"mbarrier.try_wait\"");
  engine_.fail("load-not-waited", report);
}

namespace {

/// A store whose box reaches out of the tile of D that it begins in.
struct WideStore {
  std::uint32_t cta = 0;  // key
  gemm::ptx::TensorMapSpec spec;
  Coordinates coordinates{};
  Where where;
  int columns = 0;  // that lie in the next tile
  int rows = 0;
  int tile_row = 0;
  int tile_column = 0;
};
/// The latest of a launch, of all gangs.
struct WideStores {
  std::mutex mutex;
  std::uint64_t launch = 0;
  std::vector<WideStore> stores;
};
WideStores& wide_stores() {
  static WideStores stores;
  return stores;
}

void note_wide_store(const Thread& thread, const gemm::ptx::TensorMapSpec& spec,
                     const Coordinates& coordinates, Where where) {
  constexpr std::size_t kMost = 4096;
  const Grid& grid = thread.cta->gang->grid;
  const Options& options = grid.options;
  const auto base = reinterpret_cast<std::uintptr_t>(spec.base);
  if (options.n <= 0 || options.tile_m <= 0 || options.tile_n <= 0 || !is_result(base)) return;
  const Buffer* const buffer = find_buffer(base);
  if (!buffer) return;
  std::int64_t first_row = -1;
  std::int64_t last_row = 0;
  std::int64_t first_column = 0;
  std::int64_t last_column = 0;
  for_rows(spec, coordinates, [&](const RowSlice& slice) {
    if (slice.begin == slice.end) return;
    const int size = gemm::ptx::element_bytes(spec.element);
    const auto element = static_cast<std::int64_t>(slice.address - buffer->begin) / size;
    const std::int64_t row = element / options.n;
    if (first_row < 0) {
      first_row = row;
      first_column = element % options.n;
      last_column = first_column + (slice.end - slice.begin) / size - 1;
    }
    last_row = row;
  });
  if (first_row < 0) return;
  WideStore wide{.cta = thread.cta->key, .spec = spec, .coordinates = coordinates, .where = where};
  wide.tile_row = static_cast<int>(first_row / options.tile_m);
  wide.tile_column = static_cast<int>(first_column / options.tile_n);
  wide.columns = static_cast<int>(
      std::max<std::int64_t>(0, last_column + 1 - std::int64_t{wide.tile_column + 1} * options.tile_n));
  wide.rows = static_cast<int>(
      std::max<std::int64_t>(0, last_row + 1 - std::int64_t{wide.tile_row + 1} * options.tile_m));
  if (wide.columns == 0 && wide.rows == 0) return;
  WideStores& all = wide_stores();
  const std::lock_guard lock(all.mutex);
  if (all.launch != grid.launch) {
    all.stores.clear();
    all.launch = grid.launch;
  }
  if (all.stores.size() < kMost) all.stores.push_back(wide);
}

/// The latest bulk stores of a launch, of all gangs.
struct IssuedStore {
  std::uint32_t cta = 0;  // key
  gemm::ptx::TensorMapSpec spec;
  Coordinates coordinates{};
  Where where;
};
struct IssuedStores {
  std::mutex mutex;
  std::uint64_t launch = 0;
  std::deque<IssuedStore> stores;
};
IssuedStores& issued_stores() {
  static IssuedStores stores;
  return stores;
}

void note_issued_store(const Thread& thread, const gemm::ptx::TensorMapSpec& spec,
                       const Coordinates& coordinates, Where where) {
  constexpr std::size_t kMost = 4096;
  const Grid& grid = thread.cta->gang->grid;
  IssuedStores& all = issued_stores();
  const std::lock_guard lock(all.mutex);
  if (all.launch != grid.launch) all.stores.clear();
  all.launch = grid.launch;
  all.stores.push_back({thread.cta->key, spec, coordinates, where});
  if (all.stores.size() > kMost) all.stores.pop_front();
}

/// Whether `address` lies in a part of D that a box wider than its tile has written: says so.
bool explain_wide_store(Report& report, const Thread& thread, std::uintptr_t address) {
  const Grid& grid = thread.cta->gang->grid;
  WideStores& all = wide_stores();
  const std::lock_guard lock(all.mutex);
  const Buffer* const buffer = find_buffer(address);
  if (all.launch != grid.launch || !buffer || grid.options.n <= 0) return false;
  for (const WideStore& wide : all.stores) {
    bool covers = false;
    const auto element =
        static_cast<std::int64_t>(address - buffer->begin) / gemm::ptx::element_bytes(wide.spec.element);
    // Its own tile it may write.
    if (element / grid.options.n / grid.options.tile_m == wide.tile_row &&
        element % grid.options.n / grid.options.tile_n == wide.tile_column)
      continue;
    for_rows(wide.spec, wide.coordinates, [&](const RowSlice& slice) {
      covers = covers || address - slice.address < slice.end - slice.begin;
    });
    if (!covers) continue;
    const bool columns = wide.columns > 0;
    report.line("wide",
                "{} of CTA {}: {} begins in tile ({}, {}) of D, which is {} x {}, and reaches {} {} into the "
                "next one",
                wide.where.text(), name_cta(grid, wide.cta), box_text(wide.spec, wide.coordinates),
                wide.tile_row, wide.tile_column, grid.options.tile_m, grid.options.tile_n,
                columns ? wide.columns : wide.rows, columns ? "columns" : "rows");
    report.missing(
        "a box that ends with its tile: {} {} fewer, or a tensor map that clips there (with a dimension for "
        "tiles, each as wide as a tile)",
        columns ? wide.columns : wide.rows, columns ? "columns" : "rows");
    return true;
  }
  return false;
}

/// Two boxes of one matrix have some of their rows in common: which, and that the upper one reaches too far.
/// False where they are not such.
bool explain_common_rows(Report& report, const gemm::ptx::TensorMapSpec& one, const Coordinates& first,
                         const gemm::ptx::TensorMapSpec& other, const Coordinates& second) {
  if (one.rank != 2 || other.rank != 2 || one.base != other.base || first[0] != second[0] ||
      first[1] == second[1])
    return false;
  const auto end = [](const gemm::ptx::TensorMapSpec& spec, const Coordinates& at) {
    return at[1] + static_cast<std::int32_t>(spec.box[1]);
  };
  const std::int32_t begin = std::max(first[1], second[1]);
  const std::int32_t common = std::min(end(one, first), end(other, second)) - begin;
  if (common <= 0) return false;
  report.line("overlap", "one box has rows {} to {}, the other one rows {} to {}: rows {} to {} are in both",
              first[1], end(one, first) - 1, second[1], end(other, second) - 1, begin, begin + common - 1);
  report.missing(
      "an end of the upper box at row {}: it reaches {} row{} too far. TMA clips only at the end of the "
      "tensor, so if a group (or a part of D) ends within a box, its last rows must be stored by threads, "
      "each of which tests its row, or through a map that ends there",
      begin - 1, common, common == 1 ? "" : "s");
  return true;
}

/// Whether a store has bytes at `address`.
bool covers(const IssuedStore& store, std::uintptr_t address) {
  bool found = false;
  for_rows(store.spec, store.coordinates, [&](const RowSlice& slice) {
    found = found || address - slice.address < slice.end - slice.begin;
  });
  return found;
}

/// The same of a box of a CTA that may run elsewhere, one that has written at `address`.
bool explain_common_rows(Report& report, const Thread& thread, std::uint32_t key,
                         const gemm::ptx::TensorMapSpec& spec, const Coordinates& coordinates,
                         std::uintptr_t address) {
  const Grid& grid = thread.cta->gang->grid;
  IssuedStores& all = issued_stores();
  const std::lock_guard lock(all.mutex);
  for (auto store = all.stores.rbegin(); all.launch == grid.launch && store != all.stores.rend(); ++store) {
    if (store->cta != key) continue;
    if (covers(*store, address) &&
        explain_common_rows(report, store->spec, store->coordinates, spec, coordinates))
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::pair<std::int64_t, std::int64_t>> rows_of_box(const Grid& grid, std::uint32_t key,
                                                                 std::uintptr_t address) {
  IssuedStores& all = issued_stores();
  const std::lock_guard lock(all.mutex);
  for (auto store = all.stores.rbegin(); all.launch == grid.launch && store != all.stores.rend(); ++store) {
    if (store->cta != key || store->spec.rank != 2 || !covers(*store, address)) continue;
    const std::int64_t first = store->coordinates[1];
    return std::pair(first, first + static_cast<std::int64_t>(store->spec.box[1]) - 1);
  }
  return std::nullopt;
}

bool explain_two_owners(Report& report, const Thread& thread, Stamp writes, std::uintptr_t address) {
  const Grid& grid = thread.cta->gang->grid;
  const std::uint32_t key = stamp_cta(writes) & (kAgentKey - 1);
  if (key == thread.cta->key) return false;
  if (const std::string element = element_text(grid, address); !element.empty())
    report.line("element", element);
  {
    IssuedStores& all = issued_stores();
    const std::lock_guard lock(all.mutex);
    for (auto store = all.stores.rbegin(); all.launch == grid.launch && store != all.stores.rend(); ++store) {
      if (store->cta != key) continue;
      if (!covers(*store, address)) continue;
      const std::string rows =
          store->spec.rank == 2
              ? fmt::format(", so rows {} to {}", store->coordinates[1],
                            store->coordinates[1] + static_cast<std::int64_t>(store->spec.box[1]) - 1)
              : std::string();
      report.line("store", "{} of CTA {}: {}{}", store->where.text(), name_cta(grid, key),
                  box_text(store->spec, store->coordinates), rows);
      break;
    }
  }
  if (explain_groups(report, grid, address, key, thread.cta->key)) return true;
  report.missing(
      "one owner: CTA {}, with a bulk store, and CTA {}, with its threads, both store this element. A box "
      "that extends past the last row (or column) of its own tile or group writes those of the next one, "
      "because TMA clips only at the end of the tensor",
      name_cta(grid, key), text(thread.cta->id));
  return true;
}

namespace {

/// Waits for k-tiles that the thread has passed.
std::uint32_t k_tiles_waited_for(const HopperThread& thread) {
  std::uint32_t count = 0;
  for (const LastWait& wait : thread.waits) {
    if (wait.activity.role && std::string_view(wait.activity.barrier) == "full") count += wait.count;
  }
  return count;
}

}  // namespace

BulkStores& CopyEngine::stores_of(Thread& thread) {
  BulkStores& stores = engine_.thread(thread).stores;
  if (!stores.has_agents) {
    HopperCta& cta = engine_.cta(*thread.cta);
    stores.read_agent = cta.add_agent(AgentKind::kStoreReads, thread.index);
    stores.write_agent = cta.add_agent(AgentKind::kStoreWrites, thread.index);
    stores.has_agents = true;
  }
  return stores;
}

void CopyEngine::store(const char* what, const TensorMapBits& map, const std::int32_t* coordinates, int rank,
                       const void* shared, Where where, const Reduction& reduction, std::uint32_t alignment) {
  Thread& thread = this_thread(what, where);
  Store store{.thread = &thread, .cta = thread.cta, .where = where, .reduction = reduction};
  store.spec = use_tensor_map(what, map, rank, where);
  check_coordinates(what, store.spec, coordinates, where);
  check_store(what, store.spec, coordinates, where);
  std::copy_n(coordinates, rank, store.coordinates.begin());
  store.offset = use_box(what, *thread.cta, shared, store.spec, alignment, where);
  store.bytes = gemm::ptx::box_bytes(store.spec);
  if (context.counters) count_instruction(what, where, 1, 1, store.bytes);
  BulkStores& stores = stores_of(thread);
  store.group = stores.committed + 1;
  ++stores.uncommitted;

  const Stamp reads = agent_stamp(*thread.cta, stores.read_agent, static_cast<std::uint32_t>(store.group));
  const Stamp writes = agent_stamp(*thread.cta, stores.write_agent, static_cast<std::uint32_t>(store.group));
  note_map_use(map, reads, where);
  const std::vector<bool> clipped = clipped_units(store.spec, store.coordinates);
  for_box_chunks(store.spec, store.offset, [&](std::uint32_t place, std::uint32_t byte) {
    Line& line = shared_line(*thread.cta, place);
    const unsigned cells = cells_of(line);
    for (unsigned i = 0; i < cells; ++i) {
      check_source_cell(what, thread, store, line, i, clipped[byte / 16]);
      add_async_reader(line.cells()[i], reads, where, thread);
    }
    if (ledger_on()) ledger_engine_reads(thread, LedgerReader::kStore, store.group, *thread.cta, place);
  });
  check_tensor(what, store.spec, store.coordinates,
               find_buffer(reinterpret_cast<std::uintptr_t>(store.spec.base)), where);
  // The destination is written from now on, by a store that no thread has waited for. What a CTA on another
  // OS thread finds there it can name.
  note_wide_store(thread, store.spec, store.coordinates, where);
  note_issued_store(thread, store.spec, store.coordinates, where);
  storing_ = &store;
  context.writes_as = writes;
  bool moves = false;
  for_rows(store.spec, store.coordinates, [&](const RowSlice& slice) {
    if (slice.begin == slice.end) return;
    moves = true;
    // Reductions are relaxed atomics, so that two of them are no race.
    check_row(slice, reduction.apply ? Access::kAtomic : Access::kWrite, where);
  });
  context.writes_as = 0;
  storing_ = nullptr;
  note_unlikely_map(what, thread, store.spec, where);
  // What lies beside the last tile's columns or rows of D, and within a tile, is no loss.
  const Options& options = engine_.gang.grid.options;
  const auto beside = [](std::int64_t at, std::int64_t end, int tile) {
    return at >= end && at - end < tile;
  };
  const bool edge = rank == 2 && (beside(store.coordinates[0], options.n, options.tile_n) ||
                                  beside(store.coordinates[1],
                                         static_cast<std::int64_t>(store.spec.extent[1]), options.tile_m));
  if (!moves && !edge)
    note_outside_store(what,
                       box_text(store.spec, store.coordinates) + outside_text(store.spec, store.coordinates),
                       thread, where);
  store_log_.push_back({writes, &thread, store.spec, store.coordinates, where, store.offset,
                        k_tiles_waited_for(engine_.thread(thread))});
  if (store_log_.size() > kLogged) store_log_.pop_front();
  ++engine_.gang.progress;
  if (timeline_on()) log_alone(OperationKind::kBulkStore, 0, store.bytes, false, where);
  stores_.push_back(std::move(store));
  if (engine_.earliest()) {
    while (!step(stores_.back())) {
    }
    stores_.pop_back();
  }
}

void CopyEngine::explain_stores(Report& report, const Thread& thread, Stamp writes,
                                std::uintptr_t address) const {
  const StoreRecord* first = nullptr;
  for (const StoreRecord& record : store_log_) {
    if (record.writes != writes) continue;
    for_rows(record.spec, record.coordinates, [&](const RowSlice& slice) {
      if (address - slice.address < slice.end - slice.begin) first = &record;
    });
  }
  if (!storing_ && explain_two_owners(report, thread, writes, address)) return;
  if (!first && storing_) {  // by a CTA that runs elsewhere
    report.line("store", "{}: {}", storing_->where.text(), box_text(storing_->spec, storing_->coordinates));
    if (explain_wide_store(report, thread, address)) return;
    const std::uint32_t key = stamp_cta(writes) & (kAgentKey - 1);
    if (explain_common_rows(report, thread, key, storing_->spec, storing_->coordinates, address)) return;
    report.missing(
        "CTA {} and CTA {} both store into this box: each part of D must have one owner, so a work tile must "
        "go to only one CTA",
        name_cta(engine_.gang.grid, key), text(thread.cta->id));
  }
  if (!first) return;
  report.line("store", "{}: {}", first->where.text(), box_text(first->spec, first->coordinates));
  if (!storing_) return;
  report.line("store", "{}: {}", storing_->where.text(), box_text(storing_->spec, storing_->coordinates));
  const bool same_box = first->coordinates == storing_->coordinates;
  if (first->thread == &thread) {
    if (same_box && first->spec.base == storing_->spec.base &&
        first->where.packed() == storing_->where.packed())
      report.missing(
          "a separate box for each tile: {} stores this one for two of its tiles, and the other tile's box "
          "is not stored at all. The coordinates, or the tensor map's contents, are still those of the "
          "earlier tile",
          name_thread(thread));
    return;
  }
  if (explain_wide_store(report, thread, address)) return;
  const Cta& one = *first->thread->cta;
  const Cta& other = *thread.cta;
  if (&one != &other &&
      explain_common_rows(report, first->spec, first->coordinates, storing_->spec, storing_->coordinates))
    return;
  std::string who = fmt::format("CTA {} and CTA {}", text(one.id), text(other.id));
  if (&one == &other) {
    who = fmt::format("warpgroup {} and warpgroup {} of CTA {}", first->thread->index / kWarpgroupSize,
                      thread.index / kWarpgroupSize, text(one.id));
    if (first->thread->index / kWarpgroupSize == thread.index / kWarpgroupSize) {
      who = fmt::format("warp {} and warp {} of CTA {}", first->thread->warp(), thread.warp(), text(one.id));
    }
  }
  report.missing(
      "{} store {}: each part of D must have one owner, so a work tile must go to only one CTA (and, if "
      "warpgroups take tiles separately, to only one warpgroup)",
      who, same_box ? "the same tile of D" : "overlapping tiles of D");
}

namespace {

/// Whether both are in one file, and `one` is in an earlier line. A plain access has its line only in its
/// text.
bool comes_before(Where one, Where other) {
  const std::string texts[] = {one.text(), other.text()};
  const std::size_t colons[] = {texts[0].rfind(':'), texts[1].rfind(':')};
  if (colons[0] == std::string::npos || texts[0].compare(0, colons[0], texts[1], 0, colons[1]) != 0)
    return false;
  return std::atoi(texts[0].c_str() + colons[0] + 1) < std::atoi(texts[1].c_str() + colons[1] + 1);
}

}  // namespace

void CopyEngine::check_source_cell(const char* what, const Thread& thread, const Store& store,
                                   const Line& line, unsigned index, bool clipped) {
  const Cell& cell = line.cells()[index];
  if (clipped && cell.write == 0 && cell.pending == 0) return;  // nothing of it reaches the tensor
  const auto offset = [&] { return line_offset(*thread.cta, line) + (index << line.granule_log2()); };
  if (cell.pending != 0) {
    if (cell.pending & kHopperPending)
      fail_touched(cell.pending, name_shared_offset(*thread.cta, offset()), Access::kRead, store.where);
    thread.cta->gang->cp_async->fail_touched(cell.pending, name_shared_offset(*thread.cta, offset()),
                                             Access::kRead, store.where);
  }
  auto begin_report = [&](const std::string& headline) {
    Report report(headline);
    report.line("bytes", name_shared_offset(*thread.cta, offset()))
        .line("store", "{} at {} by {}: {}", what, store.where.text(), name_thread(thread),
              box_text(store.spec, store.coordinates));
    return report;
  };
  if (cell.write == 0) {
    engine_.fail("shared-uninitialised",
                 begin_report("a bulk store reads shared memory that has never been written")
                     .rule("shared memory has arbitrary contents when a CTA starts",
                           "CUDA C++ Programming Guide, \"__shared__\""));
  }
  const Where written = Where::from_packed(cell.write_where & ~kAtomicBit);
  if (!knows(thread, cell.write)) {
    if (is_agent(cell.write)) {
      fail_async_race("shared", name_shared_offset(*thread.cta, offset()),
                      reinterpret_cast<std::uintptr_t>(shared_bytes(*thread.cta, offset())), Access::kRead,
                      store.where, thread, Access::kWrite, cell.write, written);
    }
    Report report = begin_report("nothing orders a write of shared memory and the bulk store that reads it");
    report.line("written", "{} by {}", written.text(), name_thread(engine_.gang.grid, cell.write));
    // If a barrier that comes before the store precedes a write further up in the source, the write is of the
    // next iteration.
    const bool own = stamp_cta(cell.write) == thread.cta->key;
    const BarrierInterval* barrier = own ? last_barrier(*thread.cta, cell.write) : nullptr;
    const bool next_round =
        barrier && comes_before(written, barrier->where) && comes_before(barrier->where, store.where);
    if (next_round) {
      report
          .missing(
              "a barrier between the store at {} and the write at {} in the next iteration; the write "
              "already "
              "follows the barrier at {}, which comes before the store",
              store.where.text(), written.text(), barrier->where.text())
          .rule(
              "before the bytes are reused, the thread that issued the store must wait with "
              "cp.async.bulk.wait_group.read, and a barrier must follow",
              "PTX ISA, \"cp.async.bulk.wait_group\"");
    } else {
      report
          .missing("a barrier between the write at {} and the store at {}", written.text(),
                   store.where.text())
          .rule(
              "every writer must execute fence.proxy.async, then a barrier must follow, and then one "
              "thread stores",
              "PTX ISA, \"Async proxy\"; \"Memory Consistency Model\"");
    }
    engine_.fail("store-source-race", report);
  }
  if (!engine_.by_async_proxy(cell.write) && !engine_.fenced(thread, cell.write, true)) {
    Report report =
        begin_report("a bulk store reads bytes that ordinary stores wrote, without a proxy fence");
    report.line("written", "{} by {}", written.text(), name_thread(engine_.gang.grid, cell.write))
        .missing("fence.proxy.async by {} after its write, before the barrier",
                 name_thread(engine_.gang.grid, cell.write))
        .rule(
            "the thread that wrote must execute fence.proxy.async before the barrier that leads to the store",
            "PTX ISA, \"Async proxy\"; \"membar, fence\": fence.proxy.async");
    explain_fence_on_the_way(report, thread, cell.write, true);
    engine_.fail("proxy-fence", report);
  }
}

bool CopyEngine::step(Store& store) {
  const std::uint32_t row_bytes = box_row_bytes(store.spec);
  if (!store.read) {
    store.data.resize(store.bytes);
    const unsigned char* memory = shared_base(*store.cta, store.offset);
    for_box_chunks(store.spec, store.offset, [&](std::uint32_t place, std::uint32_t byte) {
      std::memcpy(store.data.data() + byte, memory + place, 16);
    });
    store.read = true;
    return false;
  }
  for_rows(store.spec, store.coordinates, [&](const RowSlice& slice) {
    if (slice.begin == slice.end) return;
    const unsigned char* brought = store.data.data() + std::size_t{slice.row} * row_bytes + slice.begin;
    if (!store.reduction.apply) {
      std::memcpy(reinterpret_cast<void*>(slice.address), brought, slice.end - slice.begin);
      return;
    }
    static std::mutex mutex;  // of all OS threads
    const std::lock_guard lock(mutex);
    for (std::uint32_t at = 0; at < slice.end - slice.begin; at += store.reduction.bytes)
      store.reduction.apply(reinterpret_cast<void*>(slice.address + at), brought + at);
  });
  return true;
}

void CopyEngine::commit(Where where) {
  Thread& thread = this_thread("cp_async_bulk_commit_group", where);
  if (is_left_out("cp_async_bulk_commit_group", where)) return;
  if (context.counters) count_instruction("cp_async_bulk_commit_group", where, 1, 1);
  BulkStores& stores = engine_.thread(thread).stores;
  ++stores.committed;
  if (timeline_on()) log_alone(OperationKind::kBulkCommit, 0, 0, false, where);
  stores.uncommitted = 0;
}

void CopyEngine::wait(std::uint64_t pending_groups, bool read_only, Where where) {
  Thread& thread = this_thread("cp_async_bulk_wait_group", where);
  if (is_left_out(read_only ? "cp_async_bulk_wait_group_read" : "cp_async_bulk_wait_group", where,
                  pending_groups))
    return;
  if (context.counters) {
    count_instruction(read_only ? "cp_async_bulk_wait_group_read" : "cp_async_bulk_wait_group", where, 1, 1);
  }
  BulkStores& stores = engine_.thread(thread).stores;
  ++stores.waits;
  stores.waited = where;
  stores.at_wait = stores.committed;
  stores.left = pending_groups;
  stores.waited_read = read_only;
  const std::uint64_t target = stores.committed > pending_groups ? stores.committed - pending_groups : 0;
  if (timeline_on())
    log_alone(OperationKind::kBulkWait, static_cast<std::uint32_t>(pending_groups), 0, read_only, where);
  if (ledger_on()) {
    ledger_group_wait(read_only ? "cp.async.bulk.wait_group.read" : "cp.async.bulk.wait_group",
                      pending_groups, where);
  }
  engine_.gang.yield();
  for (std::size_t i = 0; i < stores_.size();) {
    Store& store = stores_[i];
    if (store.thread != &thread || store.group > target || (read_only && store.read)) {
      ++i;
      continue;
    }
    if (step(store)) {
      stores_.erase(stores_.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (read_only) {
      ++i;
    }
  }
  stores.read = std::max(stores.read, target);
  if (!read_only) stores.written = std::max(stores.written, target);
  if (ledger_on()) ledger_engine_done(thread, LedgerReader::kStore, target);
  if (!stores.has_agents) return;
  thread.clock.add(agent_stamp(*thread.cta, stores.read_agent, static_cast<std::uint32_t>(stores.read)));
  thread.clock.add(agent_stamp(*thread.cta, stores.write_agent, static_cast<std::uint32_t>(stores.written)));
}

std::string CopyEngine::explain_unread(Report& report, const Thread& owner, std::uint64_t group) const {
  const HopperThread& state = engine_.thread(owner);
  const BulkStores& stores = state.stores;
  const Grid& grid = engine_.gang.grid;
  const std::string name = name_thread(grid, owner.stamp());
  for (const StoreRecord& record : store_log_) {
    if (record.thread != &owner || stamp_time(record.writes) != group) continue;
    const std::uint32_t since = k_tiles_waited_for(state) - record.k_tiles;
    report.line("store", "group {} of its thread: {} at {}{}", group,
                box_text(record.spec, record.coordinates), record.where.text(),
                since == 0 ? ""
                           : fmt::format(", of an earlier tile: the thread has waited for {} k-tile{} since",
                                         since, since == 1 ? "" : "s"));
    break;
  }
  std::string plain = fmt::format("cp.async.bulk.wait_group.read by {}", name);
  if (stores.waits == 0) return plain;
  const std::string wait = fmt::format("cp.async.bulk.wait_group{}<{}> at {}",
                                       stores.waited_read ? ".read" : "", stores.left, stores.waited.text());
  if (group > stores.at_wait) {
    report.line("waited",
                "{} by {}, before it committed group {}: the wait covers the groups of earlier stores", wait,
                name, group);
    return plain + ", after the commit of the group";
  }
  if (stores.read >= group) {
    report.line("waited", "{} by {}, its latest wait, covers group {} by now", wait, name, group);
    return plain;
  }
  const std::uint64_t first = stores.at_wait - std::min(stores.left, stores.at_wait) + 1;
  report.line("waited", "{} by {}, when it had committed {} group{}: it leaves {} in flight", wait, name,
              stores.at_wait, stores.at_wait == 1 ? "" : "s",
              first == stores.at_wait ? fmt::format("group {}", first)
                                      : fmt::format("groups {} to {}", first, stores.at_wait));
  const auto& threads = engine_.cta(*owner.cta).threads;
  const std::size_t begin = std::size_t{owner.index} / kWarpgroupSize * kWarpgroupSize;
  for (std::size_t i = begin; i < std::min(threads.size(), begin + kWarpgroupSize); ++i) {
    if (i == owner.index || threads[i].stores.committed == 0) continue;
    report.line("groups",
                "{} has committed {} of its own: groups are counted per thread, so a wait leaves that many "
                "stores in flight for each thread that stores",
                name_thread(grid, owner.cta->threads[i].stamp()), threads[i].stores.committed);
    break;
  }
  // The first of its group, with the box of a store that the group before took: it came behind that commit.
  const StoreRecord* before = nullptr;
  const StoreRecord* late = nullptr;
  const StoreRecord* next = nullptr;
  for (const StoreRecord& record : store_log_) {
    if (record.thread != &owner) continue;
    if (stamp_time(record.writes) + 1 == group) before = &record;
    if (stamp_time(record.writes) != group) continue;
    (late == nullptr ? late : next) = &record;
  }
  const auto same_box = [](const StoreRecord& one, const StoreRecord& other) {
    return one.coordinates == other.coordinates && one.spec.base != other.spec.base;
  };
  if (before != nullptr && late != nullptr &&
      group - 1 <= stores.at_wait - std::min(stores.left, stores.at_wait) && same_box(*before, *late) &&
      (next == nullptr || !same_box(*late, *next))) {
    report.line("behind",
                "the store at {} came after the commit that covers the store of the same box at {}, so it is "
                "in group {}, with the stores of the next box, and the very last store is in no group",
                late->where.text(), before->where.text(), group);
    return fmt::format(
        "the store at {} before that commit, together with the store at {}: the wait at {} then covers both. "
        "That wait",
        late->where.text(), before->where.text(), stores.waited.text());
  }
  return fmt::format(
      "cp.async.bulk.wait_group.read<{}> by {} instead of wait_group{}<{}>, which leaves this store in "
      "flight",
      stores.at_wait - group, name, stores.waited_read ? ".read" : "", stores.left);
}

void CopyEngine::explain_unwaited_stores(Report& report, const Thread& thread) const {
  const BulkStores& stores = engine_.thread(thread).stores;
  Where last;
  for (const StoreRecord& record : store_log_) {
    if (record.thread != &thread || stamp_time(record.writes) <= stores.read) continue;
    report.line("store", "{}: {} from {}", record.where.text(), box_text(record.spec, record.coordinates),
                name_shared_offset(*thread.cta, record.offset));
    last = record.where;
  }
  const auto& threads = engine_.cta(*thread.cta).threads;
  const std::size_t first = std::size_t{thread.index} / kWarpgroupSize * kWarpgroupSize;
  for (std::size_t i = first; i < std::min(threads.size(), first + kWarpgroupSize); ++i) {
    const BulkStores& other = threads[i].stores;
    if (i == thread.index || other.waits == 0 || other.committed > 0) continue;
    report.line(
        "waited",
        "{} waits for bulk groups at {} but has committed none: a wait covers only its own thread's groups",
        name_thread(thread.cta->threads[i]), other.waited.text());
    break;
  }
  if (stores.waits > 0) {
    report.line("last", "its own latest wait, at {}, covered {} of its {} groups", stores.waited.text(),
                stores.read, stores.committed);
  }
  report.missing(
      "{}cp.async.bulk.wait_group.read<0> (or wait_group<0>) by thread {} itself, after {} and before it "
      "returns",
      stores.uncommitted > 0 ? "cp.async.bulk.commit_group, and " : "", thread.index,
      last.line() == 0 ? "its last store" : "its last store at " + last.text());
}

void CopyEngine::thread_exits(Thread& thread) {
  const BulkStores& stores = engine_.thread(thread).stores;
  if ((stores.uncommitted > 0 || stores.read < stores.committed) &&
      course_rule_on(CourseRule::kExitInFlight)) {
    Report report("a thread returns while its bulk stores may still be reading shared memory");
    report.line("by", name_thread(thread))
        .line("groups", "{} committed, {} waited for, {} stores not committed", stores.committed, stores.read,
              stores.uncommitted);
    explain_unwaited_stores(report, thread);
    engine_.fail("exit-in-flight",
                 report
                     .rule("the issuing thread must wait with cp.async.bulk.wait_group.read (or wait_group) "
                           "before its CTA's shared memory passes to the next CTA",
                           "PTX ISA, \"cp.async.bulk.wait_group\"")
                     .course_rule(CourseRule::kExitInFlight));
  }
  // What has been issued is written in any case: the end of the kernel waits for it.
  std::erase_if(stores_, [&](Store& store) {
    if (store.thread != &thread) return false;
    while (!step(store)) {
    }
    return true;
  });
}

void CopyEngine::complete_one(Random& random) {
  const std::size_t chosen = random.below(static_cast<std::uint32_t>(pending()));
  if (chosen < loads_.size()) {
    const Load load = loads_[chosen];
    loads_[chosen] = loads_.back();
    loads_.pop_back();
    land(load);
    return;
  }
  if (chosen >= loads_.size() + stores_.size()) {
    land_arrival(chosen - loads_.size() - stores_.size());
    return;
  }
  const std::size_t store = chosen - loads_.size();
  if (step(stores_[store])) {
    stores_[store] = std::move(stores_.back());
    stores_.pop_back();
  }
}

void CopyEngine::arrivals_under_way(std::vector<explore::UnderWay>& all) const {
  for (const Load& load : loads_)
    all.push_back(
        {explore::ActorKind::kLoad, load.what.serial, load.barrier, 0, load.what.bytes, load.what.where});
  std::vector<const Thread*> threads;  // whose arrivals come one after the other
  for (const CopiesArrive& arrival : arrivals_) {
    if (std::find(threads.begin(), threads.end(), arrival.thread) != threads.end()) continue;
    threads.push_back(arrival.thread);
    all.push_back({explore::ActorKind::kCopies, arrival.id, arrival.barrier, 1, 0, arrival.where});
  }
}

void CopyEngine::complete(const explore::UnderWay& one) {
  if (one.kind == explore::ActorKind::kLoad) {
    const auto found = std::find_if(loads_.begin(), loads_.end(),
                                    [&](const Load& load) { return load.what.serial == one.id; });
    const Load load = std::move(*found);
    loads_.erase(found);
    land(load);
    return;
  }
  const auto found = std::find_if(arrivals_.begin(), arrivals_.end(),
                                  [&](const CopiesArrive& arrival) { return arrival.id == one.id; });
  land_arrival(static_cast<std::size_t>(found - arrivals_.begin()));
}

std::string CopyEngine::describe() const {
  std::string text;
  if (!loads_.empty()) text = fmt::format("{} loads are in flight", loads_.size());
  if (!stores_.empty())
    text += fmt::format("{}{} bulk stores are in flight", text.empty() ? "" : ", ", stores_.size());
  if (!arrivals_.empty()) {
    text += fmt::format("{}{} arrivals with cp.async copies are in flight", text.empty() ? "" : ", ",
                        arrivals_.size());
  }
  return text;
}

void CopyEngine::cta_exits(Cta& cta) {
  if (!course_rule_on(CourseRule::kExitInFlight)) {
    // Whatever still comes finds the memory as the CTA left it.
    std::erase_if(loads_, [&](const Load& load) { return load.target == &cta; });
    return;
  }
  for (const Load& load : loads_) {
    if (load.target != &cta || !load.what.peer) continue;
    engine_.fail(
        "exit-in-flight",
        Report("a CTA ends while a load into its shared memory is in flight")
            .line("load", "{}: {}", load.what.where.text(), describe_load(engine_.gang.grid, load.what))
            .line("signals", name_mbarrier(*load.barrier) + ", in the other CTA of the pair")
            .line("last", "{} returns", name_thread(running_thread()))
            .missing("a barrier of the cluster after the peer's wait for this load")
            .rule("shared memory belongs to the next CTA when this one ends", kTmaSection)
            .course_rule(CourseRule::kExitInFlight));
  }
  const HopperCta& state = engine_.cta(cta);
  for (const auto& barrier : state.barriers) {
    if (!barrier->live) continue;
    const bool unseen = barrier->loaded_phases > barrier->observed_phases;
    if (!unseen && barrier->tx == 0) continue;
    Report report(unseen ? "a CTA ends without having waited for a load into its shared memory"
                         : "a CTA ends while an mbarrier still expects bytes");
    report.line("barrier", "{}, {}", name_mbarrier(*barrier), describe_mbarrier(*barrier));
    if (unseen) {
      const LoadRecord* load = latest_load(*barrier);
      report.line("load", "{}, in phase {}{}", barrier->last_load.text(), barrier->loaded_phases - 1,
                  load ? ": " + describe_load(engine_.gang.grid, *load) : "");
      report.missing(
          "a wait for phase {} (parity {}) of {}: no thread waits for this copy, or there is one copy too "
          "many",
          barrier->loaded_phases - 1, (barrier->loaded_phases - 1) & 1, name_mbarrier(*barrier));
    }
    for (const Mbarrier::Event& event : barrier->events) {
      if (event.kind != Mbarrier::Event::kArrive) {
        report.line("expected", "{} bytes at {} by {}", event.bytes, event.where.text(),
                    name_thread(engine_.gang.grid, event.stamp));
      }
    }
    report.line("last", "{} returns", name_thread(running_thread()));
    engine_.fail("exit-in-flight",
                 report
                     .rule("when this CTA ends, its shared memory belongs to the next one: wait for every "
                           "load that was issued, and expect only bytes that a copy delivers",
                           kTmaSection)
                     .course_rule(CourseRule::kExitInFlight));
  }
}

}  // namespace emulator
