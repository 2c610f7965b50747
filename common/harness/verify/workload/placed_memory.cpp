#include "harness/verify/workload/placed_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "harness/backend/backend.h"
#include "harness/verify/groups.h"
#include "harness/verify/inputs/input_value.h"
#include "harness/verify/verify.h"

namespace harness {
namespace {

constexpr std::int64_t kGapRows = 160;  // more than a tile of any step with groups has
constexpr std::int64_t kGapRowsOfB = 3;
constexpr int kUnit = 8;  // elements: 16 bytes
constexpr std::uint64_t kPitches = 3;

std::size_t bytes_of(std::int64_t elements) {
  return static_cast<std::size_t>(elements) * sizeof(gemm::bf16);
}

std::vector<gemm::bf16> read_elements(const gemm::bf16* device, std::int64_t elements) {
  std::vector<gemm::bf16> host(static_cast<std::size_t>(elements));
  copy_to_host(host.data(), device, bytes_of(elements));
  return host;
}

}  // namespace

PlacedMemory::Arena PlacedMemory::make_arena(const char* name, int columns, std::vector<int> width,
                                             std::vector<int> rows, std::int64_t gap_rows,
                                             std::uint64_t key) const {
  Arena arena;
  arena.name = name;
  arena.columns = columns;
  arena.width = std::move(width);
  arena.rows = std::move(rows);
  arena.gap_rows = gap_rows;
  for (std::size_t i = 0; i < arena.rows.size(); ++i)
    arena.pitch.push_back(gemm::ceil_div(arena.width[i], kUnit) * kUnit +
                          kUnit * static_cast<int>(random_bits(~key, i) % kPitches));
  place(arena, key);
  arena.memory = std::make_unique<DeviceBuffer>(bytes_of(arena.elements), name);
  return arena;
}

/// Gap, group, gap, group, ..., gap, in random order.
void PlacedMemory::place(Arena& arena, std::uint64_t key) {
  std::vector<std::size_t> order(arena.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_bits(key, i) % i]);
  arena.begin.assign(arena.rows.size(), 0);
  const std::int64_t gap = arena.gap_rows * (*std::max_element(arena.pitch.begin(), arena.pitch.end()));
  std::int64_t at = gap;
  for (const std::size_t group : order) {
    arena.begin[group] = at;
    at += std::int64_t{arena.rows[group]} * arena.pitch[group] + gap;
  }
  arena.elements = at;
}

PlacedMemory::PlacedMemory(const gemm::Shape& shape, const std::vector<gemm::GroupRows>& groups,
                           std::uint64_t seed)
    : shape_(shape),
      rows_(groups),
      own_sizes_((seed & kOwnSizesPlaced) != 0),
      table_(groups.size() * sizeof(gemm::PlacedGroup), "groups") {
  std::vector<int> rows, n, k;
  const auto drawn = [&](int most, std::uint64_t key) {  // a multiple of what TMA steps over
    const auto units = static_cast<std::uint64_t>(std::max(1, most / kUnit));
    return std::min(most, kUnit * static_cast<int>(1 + random_bits(mix64(seed), key) % units));
  };
  for (const gemm::GroupRows& group : groups) {
    rows.push_back(group.count());
    const std::uint64_t key = 2 * sizes_.size();
    sizes_.push_back(own_sizes_ ? gemm::GroupSize{drawn(shape.n, key), drawn(shape.k, key + 1)}
                                : gemm::GroupSize{shape.n, shape.k});
    n.push_back(sizes_.back().n);
    k.push_back(sizes_.back().k);
  }
  a_ = make_arena("A", shape.k, k, rows, kGapRows, mix64(seed ^ 0xa));
  b_ = make_arena("B", shape.k, k, n, kGapRowsOfB, mix64(seed ^ 0xb));
  d_ = make_arena("D", shape.n, n, rows, kGapRows, mix64(seed ^ 0xd));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    a_.first_dense.push_back(groups[i].begin);
    b_.first_dense.push_back(static_cast<std::int64_t>(i) * shape.n);
    d_.first_dense.push_back(groups[i].begin);
  }
  write_table();
}

void PlacedMemory::move(std::uint64_t seed) {
  place(a_, mix64(seed ^ 0xa));
  place(b_, mix64(seed ^ 0xb));
  place(d_, mix64(seed ^ 0xd));
  write_table();
}

void PlacedMemory::write_table() {
  groups_.clear();
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    gemm::PlacedGroup group;
    if (a_.rows[i] > 0)
      group = {a_.memory->elements() + a_.begin[i],
               b_.memory->elements() + b_.begin[i],
               d_.memory->elements() + d_.begin[i],
               a_.rows[i],
               a_.pitch[i],
               b_.pitch[i],
               d_.pitch[i],
               own_sizes_ ? sizes_[i] : gemm::GroupSize{}};
    groups_.push_back(group);
  }
  copy_to_device(table_.bytes(), groups_.data(), groups_.size() * sizeof(gemm::PlacedGroup));
}

const gemm::PlacedGroup* PlacedMemory::table() const {
  return reinterpret_cast<const gemm::PlacedGroup*>(table_.bytes());
}

std::vector<gemm::bf16> PlacedMemory::scattered(const Arena& arena, const std::vector<gemm::bf16>& dense) {
  std::vector<gemm::bf16> all(static_cast<std::size_t>(arena.elements), kPoison);
  for (std::size_t i = 0; i < arena.rows.size(); ++i) {
    for (std::int64_t row = 0; row < arena.rows[i]; ++row)
      std::copy_n(dense.begin() + (arena.first_dense[i] + row) * arena.columns, arena.width[i],
                  all.begin() + arena.begin[i] + row * arena.pitch[i]);
  }
  return all;
}

void PlacedMemory::load(const gemm::bf16* a, const gemm::bf16* b) {
  const auto rows_of_b = static_cast<int>(rows_.size()) * shape_.n;
  for (auto& [arena, dense, rows] : {std::tuple{&a_, a, shape_.m}, std::tuple{&b_, b, rows_of_b}}) {
    arena->expected = scattered(*arena, read_elements(dense, gemm::offset(rows, 0, shape_.k)));
    copy_to_device(arena->memory->bytes(), arena->expected.data(), bytes_of(arena->elements));
  }
}

void PlacedMemory::poison_d() {
  fill_device(d_.memory->bytes(), kPoisonByte, bytes_of(d_.elements));
}

void PlacedMemory::scatter(const gemm::bf16* d) {
  const std::vector<gemm::bf16> all = scattered(d_, read_elements(d, gemm::offset(shape_.m, 0, shape_.n)));
  copy_to_device(d_.memory->bytes(), all.data(), bytes_of(d_.elements));
}

/// "row 41, column 3 of group 2, which has 40 rows of 264"
std::string PlacedMemory::describe(const Arena& arena, std::int64_t element) {
  std::size_t nearest = 0;
  std::int64_t least = arena.elements;
  for (std::size_t i = 0; i < arena.begin.size(); ++i) {
    const std::int64_t distance = element - arena.begin[i];
    if (distance >= 0 && distance < least) {
      least = distance;
      nearest = i;
    }
  }
  if (least == arena.elements) return "before all groups";
  const int pitch = arena.pitch[nearest];
  return fmt::format("row {}, column {} of group {}, which has {} rows of {} columns", least / pitch,
                     least % pitch, nearest, arena.rows[nearest], arena.width[nearest]);
}

std::string PlacedMemory::unclipped(const Arena& d, const std::vector<gemm::bf16>& all) {
  constexpr std::int64_t kMostRows = 256;
  std::vector<std::int64_t> ends;  // of each group: behind the last row that was written
  for (std::size_t i = 0; i < d.rows.size(); ++i) {
    std::int64_t end = d.rows[i];
    const auto is_written = [&](std::int64_t row) {
      const std::int64_t element = d.begin[i] + row * d.pitch[i];
      return element < static_cast<std::int64_t>(all.size()) &&
             all[static_cast<std::size_t>(element)].bits != kPoison.bits;
    };
    while (end < d.rows[i] + kMostRows && is_written(end)) ++end;
    ends.push_back(end);
  }
  for (const std::int64_t box : {8, 16, 32, 64, 128, 256}) {
    bool fits = false;
    for (std::size_t i = 0; i < d.rows.size(); ++i) fits = fits || ends[i] > d.rows[i];
    for (std::size_t i = 0; i < d.rows.size(); ++i)
      fits = fits && (d.rows[i] == 0 || ends[i] == (d.rows[i] + box - 1) / box * box);
    if (!fits) continue;
    return fmt::format(
        ". After the last row of every group, rows up to the next multiple of {} were written, because "
        "nothing clips the boxes of {} rows. A store is clipped where its tensor map ends, so the map of a "
        "group's D must have exactly the group's rows, not a rounded-up number; and a thread that stores its "
        "rows itself must test whether they are in the group",
        box, box);
  }
  return "";
}

std::string PlacedMemory::gather(gemm::bf16* d) const {
  std::vector<gemm::bf16> all = read_elements(d_.memory->elements(), d_.elements);
  const std::int64_t dense_elements = gemm::offset(shape_.m, 0, shape_.n);
  std::vector<gemm::bf16> dense = read_elements(d, dense_elements);
  for (std::size_t i = 0; i < d_.rows.size(); ++i) {
    for (std::int64_t row = 0; row < d_.rows[i]; ++row) {
      const auto from = all.begin() + d_.begin[i] + row * d_.pitch[i];
      const auto to = dense.begin() + (d_.first_dense[i] + row) * d_.columns;
      std::fill_n(to, d_.columns, gemm::bf16{});
      std::copy_n(from, d_.width[i], to);
      std::fill_n(from, d_.width[i], kPoison);
    }
  }
  copy_to_device(d, dense.data(), bytes_of(dense_elements));
  std::int64_t count = 0;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < d_.elements; ++i) {
    if (all[static_cast<std::size_t>(i)].bits != kPoison.bits && count++ == 0) first = i;
  }
  if (count == 0) return "";
  return fmt::format("{}: {} element{} of D outside all groups {} written; the first would be {}{}",
                     kGuardRows, count, count == 1 ? "" : "s", count == 1 ? "was" : "were",
                     describe(d_, first), unclipped(d_, all));
}

std::string PlacedMemory::explain_pitch(const std::vector<gemm::bf16>& d) const {
  if (own_sizes_) return "";   // it is not asked which columns a dense matrix would have
  constexpr int kSamples = 4;  // rows, and columns, of a group
  const auto value = [](const Arena& arena, std::int64_t at) {
    const bool inside = at >= 0 && at < static_cast<std::int64_t>(arena.expected.size());
    return inside ? gemm::to_float(arena.expected[static_cast<std::size_t>(at)]) : 0.0f;
  };
  // Of A and B: what their rows are taken to be apart, in each group.
  const auto pitches_of = [&](int which, std::size_t group) {
    return which == 0   ? a_.pitch[group]
           : which == 1 ? b_.pitch[group]
           : which == 2 ? d_.pitch[group]
                        : shape_.k;
  };
  static constexpr const char* kNames[] = {"A", "B", "D", "a matrix of K columns without gaps"};
  for (const auto& [of_a, of_b] : {std::pair(0, 0), std::pair(0, 2), std::pair(0, 3), std::pair(1, 1),
                                   std::pair(2, 1), std::pair(3, 1)}) {
    bool fits = true;
    bool shows = false;  // some element is right with this pitch alone
    std::string groups;
    for (std::size_t i = 0; i < a_.rows.size() && fits; ++i) {
      const int pitch_a = pitches_of(of_a, i);
      const int pitch_b = pitches_of(of_b, i);
      if (a_.rows[i] == 0) continue;
      const bool same = pitch_a == a_.pitch[i] && pitch_b == b_.pitch[i];
      if (!same) groups += fmt::format("{}{}", groups.empty() ? "" : ", ", i);
      for (int r = 0; r < kSamples && fits; ++r) {
        for (int c = 0; c < kSamples && fits; ++c) {
          const int row = r * (a_.rows[i] - 1) / (kSamples - 1);
          const int column = c * (shape_.n - 1) / (kSamples - 1);
          float sum = 0;
          for (int k = 0; k < shape_.k; ++k)
            sum += value(a_, a_.begin[i] + std::int64_t{row} * pitch_a + k) *
                   value(b_, b_.begin[i] + std::int64_t{column} * pitch_b + k);
          const gemm::bf16 got =
              d[static_cast<std::size_t>(gemm::offset(rows_[i].begin + row, column, shape_.n))];
          const bool is_nan = std::isnan(gemm::to_float(got));
          fits = std::isnan(sum) ? is_nan : got.bits == gemm::to_bf16(sum).bits;
          shows = shows || (!same && (row > 0 || column > 0) && !is_nan);
        }
      }
    }
    if (!fits || !shows || groups.empty()) continue;
    const bool is_a = of_a != 0;
    return fmt::format(
        "{0} of group{1} {2} {3} read as if its rows were as far apart as those of {4}: its tensor map (or "
        "its address) has that pitch instead of {0}'s own. A group for which both pitches are the same is "
        "right. The memory between the rows holds NaN",
        is_a ? "A" : "B", groups.find(',') == std::string::npos ? "" : "s", groups,
        groups.find(',') == std::string::npos ? "is" : "are", kNames[is_a ? of_a : of_b]);
  }
  return "";
}

std::string PlacedMemory::changed_input(bool of_b) const {
  const Arena& arena = of_b ? b_ : a_;
  const std::vector<gemm::bf16> now = read_elements(arena.memory->elements(), arena.elements);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i].bits == arena.expected[i].bits) continue;
    return fmt::format("{}: the kernel wrote to its input {}, first to {}", of_b ? kInputB : kInputA,
                       arena.name, describe(arena, static_cast<std::int64_t>(i)));
  }
  return "";
}

std::int64_t placed_elements(const gemm::Shape& shape, int groups) {
  const std::int64_t widest = kUnit * (static_cast<std::int64_t>(kPitches) + 1);
  const std::int64_t k = shape.k + widest;
  const std::int64_t n = shape.n + widest;
  const std::int64_t gaps = std::int64_t{groups} + 1;
  return (shape.m + gaps * kGapRows) * (k + n) + (std::int64_t{groups} * shape.n + gaps * kGapRowsOfB) * k;
}

}  // namespace harness
