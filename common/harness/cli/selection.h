// What a command line names: steps, variants, shapes.
#pragma once

#include <string>
#include <vector>

#include "gemm/problem/step.h"
#include "harness/predict/autotune.h"

namespace harness {

/// A step with the variant that takes part.
struct Entry {
  const gemm::Step* step = nullptr;
  const gemm::Variant* variant = nullptr;
};

struct Selection {
  std::vector<Entry> entries;
  std::vector<gemm::Shape> shapes;
};

/// The variants of a step: "" is the default, "all" every variant, "a,b" these.
std::vector<Entry> select_variants(const gemm::Step& step, const std::string& names);

/// The words of the comparison: steps ("01", "naive", "03:64" with its variants, "01-07", "all") and shapes.
Selection select_words(const std::vector<const gemm::Step*>& steps, const std::vector<std::string>& words);

/// What --suite races when no step is named: the one that chooses a variant for each shape, the last of the
/// main ladder, and the one before it to show what the last one adds. Where no step chooses, the last two.
std::vector<Entry> last_two(const std::vector<const gemm::Step*>& steps);

/// What an entry computes when `asked` is what all compute. A variant without a source beside others takes
/// part with beta = 0, to show what the source costs; one with a bias and an activation compiled in has
/// these.
gemm::Epilogue epilogue_of(const Entry& entry, const gemm::Epilogue& asked, bool alone);

/// What runs for this shape: for a variant that chooses, one of the others.
ResolvedVariant resolved(const Entry& entry, const gemm::Shape& shape);

}  // namespace harness
