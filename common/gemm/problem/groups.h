// A problem in groups, as the experts of a mixture have it: rows of A and D that lie behind each other, and a
// B for each group.
#pragma once

#include "gemm/problem/gemm.h"

namespace gemm {

/// Rows [begin, end) of A and of D are a group's; none, where begin is end. Rows between two groups belong to
/// none: nobody writes them.
struct alignas(8) GroupRows {
  int begin = 0;
  int end = 0;
  constexpr int count() const { return end - begin; }
  bool operator==(const GroupRows&) const = default;
};

/// N and K of a group, where they are its own; 0: those of the problem.
struct alignas(8) GroupSize {
  int n = 0;
  int k = 0;
  bool operator==(const GroupSize&) const = default;
};

/// A group that lies anywhere in memory. Pitches: elements from one row to the next.
struct alignas(8) PlacedGroup {
  const bf16* a = nullptr;  // [rows][a_pitch], the first K of each row
  const bf16* b = nullptr;  // [N][b_pitch], the first K of each row
  bf16* d = nullptr;        // [rows][d_pitch], the first N of each row
  int rows = 0;
  int a_pitch = 0;
  int b_pitch = 0;
  int d_pitch = 0;
  GroupSize own{};
};

/// The problem of a group: with `rows` rows, and an N and a K of its own where it has them.
constexpr Shape shape_of(const PlacedGroup& group, const Shape& shape) {
  return {group.rows, group.own.n != 0 ? group.own.n : shape.n, group.own.k != 0 ? group.own.k : shape.k};
}

}  // namespace gemm
