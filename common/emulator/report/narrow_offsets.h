// Offsets into global memory that a kernel computes in 32 bits, seen in its source: no check could run the
// shapes that are large enough to show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace emulator {

struct NarrowOffset {
  std::string pointer;     // "gemm.d"
  std::string expression;  // "row * n + column"
  std::string product;     // "row * n": what an int cannot hold
  int line = 0;
};

/// Those in `code`, a source without comments. A pointer is one into global memory if it is a matrix of a
/// Gemm, a kernel's parameter, called `matrix` or `workspace`, or initialised from such a one. A product is
/// too narrow if two of its factors are known only at run time and one of them is a dimension of a matrix, by
/// its name, or if it counts the elements of a run-time number of tiles. What is left to offset(), or begins
/// with a 64-bit factor, is not.
std::vector<NarrowOffset> narrow_offsets(const std::string& code);

}  // namespace emulator
