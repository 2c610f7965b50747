// What a step's machine code must look like: steps/NN_name/expect.json.
//
// {
//   "step": "03_register_tile",
//   "every_variant": [expectation, ...],
//   "families": {"split": [expectation, ...]},     optional: for the variants that name this "family"
//   "variants": {
//     "128": {"k_tiles_per_iteration": 1, "expect": [expectation, ...]},
//     ...                                          every variant of the step must be named
//   }
// }
//
// "k_tiles_per_iteration" is checked: the multiply-adds of the main loop over all threads of the block must
// be those of that many tiles. "derived" instead of a number takes whatever whole number the code gives (the
// compiler may unroll), and "none" is for a step without a product. "math_threads" says how many threads
// multiply when not all do.
//
// An expectation is one object with one of these keys, its bound, and "why": where the number comes from.
//   {"count": PATTERN, BOUND}               how often PATTERN occurs; also "per_k_tile": N, times k-tiles per
//   iteration
//   {"every": PATTERN, "is": PATTERN}       every instruction of the first kind is of the second; at least
//   one is
//   {"order": "first LDGSTS < first HMMA"}  positions: first or last, and a pattern
//   {"covered": LOAD, "by": MATH, "min": N} at least N MATH issue between each LOAD and what waits for it
//   first,
//                                           counted around the loop
//   {"gap": MATH, "max_cycles": N}          between one MATH and the next, in address order, nothing waits,
//                                           synchronises or branches, and issuing takes at most N cycles: the
//                                           sum of the stalls from the one up to the other
//   {"registers": BOUND} {"spill_bytes": BOUND} {"stack_bytes": BOUND} {"shared_bytes": BOUND}
//   {"same_mix": "plain"}                   the kernel has as many of every opcode as that variant's
//   {"target": "sm_90a"}                    what the cubin was built for
//   {"forbid_note": "(C75"}                 text that no message of ptxas may contain
// count, every, order and gap look at the main loop unless "in" says "kernel", "before_loop" or "after_loop";
// count and every can be narrowed by "between": [position, position] (exclusive). PATTERN: see OpcodePattern.
// BOUND: "exact": N, "min": N, "max": N (count) or an object with them (resources).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "view/kernel_view.h"

namespace sass {

/// Where a check failed.
struct Violation {
  std::string variant;
  std::string expected;
  std::string found;
  std::string why;
  std::vector<std::string> lines;  // the instructions at fault
};

/// The file, every line of every violation, in the words of a test report.
std::string to_string(const Violation& violation);

struct Bound {
  std::optional<int> exact, min, max;
  bool admits(int value) const;
  std::string text() const;  // "exactly 4", "at least 4", "at most 4", "4 to 8"
};

struct Position {
  bool first = true;
  std::optional<OpcodePattern> pattern;
  std::string text() const;
};

enum class Region { kMainLoop, kKernel, kBeforeLoop, kAfterLoop };

struct Expectation {
  std::string kind;  // the key that names it
  std::string why;
  Region region = Region::kMainLoop;
  std::optional<OpcodePattern> pattern;  // count, every, covered, gap
  std::optional<OpcodePattern> other;    // is, by
  Bound bound;
  std::optional<int> per_k_tile;
  int max_cycles = 0;                // gap
  std::optional<Position> from, to;  // between, or the two sides of order
  std::string text;                  // target, forbid_note, same_mix
};

struct VariantExpectations {
  std::string variant;
  std::optional<int> k_tiles;     // nothing: derived
  int math_threads = 0;           // 0: all
  std::vector<Expectation> list;  // those of every variant first
};

struct ExpectationFile {
  std::string step;
  std::vector<VariantExpectations> variants;
};

/// The keys that name an expectation, for the tests: each must be seen failing.
/// "k_tiles_per_iteration" included.
const std::vector<std::string>& expectation_kinds();

/// Throws harness::Error that names the place ("steps/01_naive/expect.json: variants/16x16, expectation 2:
/// ...") and what is wrong: an unknown key, no "why", no bound, an opcode that does not exist, an expectation
/// that cannot fail.
ExpectationFile parse_expectations(const std::string& json, const std::string& name);

/// Checks one variant; "same_mix" needs the other one as well and is checked with all variants.
std::vector<Violation> check(const KernelView& view, const VariantExpectations& expectations);

/// Checks all variants of a step. Throws harness::Error when the file does not name the step's variants.
std::vector<Violation> check(const StepBinary& binary, const ExpectationFile& file);

}  // namespace sass
