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

/// A group that lies anywhere in memory. Pitches: elements from one row to the next.
struct alignas(8) PlacedGroup {
  const bf16* a = nullptr;  // [rows][a_pitch], the first K of each row
  const bf16* b = nullptr;  // [N][b_pitch], the first K of each row
  bf16* d = nullptr;        // [rows][d_pitch], the first N of each row
  int rows = 0;
  int a_pitch = 0;
  int b_pitch = 0;
  int d_pitch = 0;
};

}  // namespace gemm
