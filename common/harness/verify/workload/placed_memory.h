// The memory of groups that lie anywhere: in an order, with gaps and with pitches that a seed draws.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "harness/verify/workload/device_buffer.h"

namespace harness {

/// Owns A, B and D of each group on the device, and the table of where they are. Gaps are poison: in front of
/// each group of A and of D, and behind it, there are more rows than a tile has.
class PlacedMemory {
 public:
  /// The same for the same seed. Groups without rows have no addresses. With kOwnSizesPlaced in the seed each
  /// group has an N and a K of its own: the first columns of a dense D, and the first rows and columns of a
  /// dense B, are its. Nothing is written beside them; in a dense D there are zeros.
  PlacedMemory(const gemm::Shape& shape, const std::vector<gemm::GroupRows>& groups, std::uint64_t seed);

  /// Puts the groups into another order, and into the table.
  void move(std::uint64_t seed);
  /// Copies the groups' rows of dense A and B on the device, and poisons the rest.
  void load(const gemm::bf16* a, const gemm::bf16* b);
  void poison_d();
  /// Copies the groups' rows to dense D on the device. Returns what was written beside them, a sentence, or
  /// "".
  std::string gather(gemm::bf16* d) const;
  /// The other way round, for injected faults.
  void scatter(const gemm::bf16* d);
  /// Whether dense D, of an exact pattern, is what A or B gives if its rows are read with another pitch: a
  /// sentence, or "".
  std::string explain_pitch(const std::vector<gemm::bf16>& d) const;
  /// What was written to A or B, a sentence, or "".
  std::string changed_input(bool of_b) const;

  const gemm::PlacedGroup* table() const;  // in device memory
  const std::vector<gemm::PlacedGroup>& groups() const { return groups_; }
  bool has_own_sizes() const { return own_sizes_; }
  gemm::GroupSize size_of(int group) const { return sizes_[static_cast<std::size_t>(group)]; }

 private:
  struct Arena {
    std::string name;
    int columns = 0;                        // of the dense matrix
    std::vector<int> width;                 // columns of each group
    std::vector<int> rows;                  // of each group
    std::vector<int> pitch;                 // of each group
    std::int64_t gap_rows = 0;              // between two groups
    std::vector<std::int64_t> begin;        // of each group, in elements
    std::vector<std::int64_t> first_dense;  // row of the dense matrix
    std::int64_t elements = 0;
    std::unique_ptr<DeviceBuffer> memory;
    std::vector<gemm::bf16> expected;  // of an input
  };
  Arena make_arena(const char* name, int columns, std::vector<int> width, std::vector<int> rows,
                   std::int64_t gap_rows, std::uint64_t key) const;
  static void place(Arena& arena, std::uint64_t key);
  static std::vector<gemm::bf16> scattered(const Arena& arena, const std::vector<gemm::bf16>& dense);
  static std::string describe(const Arena& arena, std::int64_t element);
  /// What was written behind the groups' last rows, if that is whole boxes: ". Behind ...", or "".
  static std::string unclipped(const Arena& d, const std::vector<gemm::bf16>& all);
  void write_table();

  gemm::Shape shape_;
  std::vector<gemm::GroupRows> rows_;
  bool own_sizes_;
  std::vector<gemm::GroupSize> sizes_;  // of each group
  Arena a_, b_, d_;
  std::vector<gemm::PlacedGroup> groups_;
  DeviceBuffer table_;
};

/// At most so many elements are in PlacedMemory.
std::int64_t placed_elements(const gemm::Shape& shape, int groups);

}  // namespace harness
