// Is this D the product of these inputs? A pure function of host memory: Workload feeds it from the device,
// the tests and the injected faults from vectors. The whole argument, with sources, is
// in docs/verification.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/verify/inputs.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {

/// How a hint begins that guesses why whole tiles are never written.
inline constexpr const char* kNoBlockStored = "No block stored these tiles";
inline constexpr const char* kNoMistakeFits = "  No simple mistake fits";
inline constexpr const char* kNanHint = "  Hint: something that enters these accumulators is NaN";

/// Names of the checks, as they appear in reports and in CheckResult::failed.
inline constexpr const char* kNeverWritten =
    "never-written";                        // the poison from before the run is still there
inline constexpr const char* kNan = "nan";  // a NaN that the kernel computed
inline constexpr const char* kInfinity = "infinity";
inline constexpr const char* kValue = "value";               // finite, but not what A * B^T gives
inline constexpr const char* kGuardBefore = "guard-before";  // bytes in front of D were written
inline constexpr const char* kGuardAfter = "guard-after";    // bytes behind D were written
inline constexpr const char* kGuardRows = "guard-rows";      // rows of D of no group were written
inline constexpr const char* kOtherBits = "other-bits";      // than under another schedule
inline constexpr const char* kInputA = "input-a";            // A was written
inline constexpr const char* kInputB = "input-b";
inline constexpr const char* kInputC = "input-c";
inline constexpr const char* kInputBias = "input-bias";

/// The outcome of one check.
/// How far sums are from the exact ones, in units of the Euclidean norm of their products.
struct SumError {
  double rms = 0;
  double largest = 0;
  double bound = 0;  // of the largest
};

struct CheckResult {
  bool ok = false;
  /// Empty when ok, otherwise several lines: which checks failed, how many elements, the first mismatches
  /// (row, column, tile, expected, got), the pattern they form, and what would explain them.
  std::string report;
  std::string summary;              // one line, also when ok: "exact: all 65536 elements match bit for bit"
  std::vector<std::string> failed;  // names of the checks, in the order of the report
  std::optional<SumError> error{};  // of a D in binary32 and random inputs
};

/// D is filled with this byte before a run. As bf16 it is the NaN 0xffff; conversion instructions make no
/// other NaN than 0x7fff (PTX ISA, "cvt"), so a poisoned element that survives the run was never written.
inline constexpr std::uint8_t kPoisonByte = 0xff;
inline constexpr gemm::bf16 kPoison{kPoisonByte << 8 | kPoisonByte};

/// The bytes in front of D and behind it that no kernel may touch. A multiple of
/// every alignment that D needs.
inline constexpr std::size_t kGuardBytes = std::size_t{64} * 1024;

/// The byte at `index` of a guard band: bf16 NaNs that are neither the poison nor 0x7fff and that differ from
/// their neighbours, so that no fill and no copy by one element leaves the band as it was.
constexpr std::uint8_t guard_byte(std::size_t index) {
  return index % 2 == 0 ? static_cast<std::uint8_t>(0x81 + index / 2 % 126) : 0x7f;
}
std::vector<std::uint8_t> guard_band();

/// How far the binary32 accumulator of a correct kernel can be from the exact sum of k products whose
/// Euclidean norm is `norm`:
///
///     E = g / (1 - g) * min(sqrt(k), 9) * norm,     g = 3 (k + 2) 2^-24.
///
/// Every addition of every kernel considered (FMA chain, tensor core, split-K) errs by at most a few units of
/// 2^-24 times the largest number that takes part in it, at most 3 units per product altogether. Those
/// numbers are partial sums: never larger than sqrt(k) * norm (Cauchy-Schwarz), and for inputs with random
/// signs almost never larger than 9 * norm (Hoeffding), whatever the order. See docs/verification.md.
double accumulation_error(int k, double norm);

/// The bf16 values that a correct kernel may store, per element. Rounding is monotonic: an accumulator within
/// E of the sum s is rounded to something between the roundings of s - E and s + E. With exact inputs E is 0
/// and one value is left.
struct Acceptance {
  gemm::Shape shape;
  Pattern pattern = Pattern::kExact;
  std::vector<gemm::bf16> low;      // [m][n]
  std::vector<gemm::bf16> high;     // [m][n]; empty for exact patterns: the same as low
  std::vector<gemm::bf16> nearest;  // [m][n]: s, rounded; empty for exact patterns: the same as low
  double largest_bound = 0;         // the largest E
};

/// Room for every element, to be filled by accept_rows.
Acceptance make_acceptance(const gemm::Shape& shape, Pattern pattern, const gemm::Epilogue& epilogue = {});

/// Fills rows [first_row, first_row + rows) from the reference: value and norm are [rows][n] (see
/// device_reference.h); norm is not read for exact patterns. All cores.
void accept_rows(Acceptance& acceptance, int first_row, int rows, const double* value, const float* norm);

/// What an opponent rounds, or approximates, that a kernel with a fused epilogue does not.
struct Allowance {
  bool product =
      false;  // two kernels: alpha * A * B^T, with or without the bias, goes through memory in bf16
  bool summands = false;   // what is reduced may be D's elements, after they were rounded
  bool reduction = false;  // what is reduced is rounded to bf16
  bool slope = false;      // the derivative of GELU may be made of an approximate tanh
  bool padding = false;    // what lies between the rows of a mask may be written
  bool operator==(const Allowance&) const = default;
};

/// The same with the epilogue of the rules. `through_bf16`: the sum was rounded to bf16 before the epilogue,
/// as two kernels do it that pass D through memory.
void accept_rows(Acceptance& acceptance, const InputRules& rules, bool through_bf16, int first_row, int rows,
                 const double* value, const float* norm);

/// True when low <= got <= high as numbers: false for every NaN and infinity; +0 and -0 are equal (which of
/// them a zero sum is depends on whether the accumulator started as +0, and PTX does not say).
constexpr bool accepted(gemm::bf16 low, gemm::bf16 high, gemm::bf16 got) {
  const float value = gemm::to_float(got);
  return gemm::to_float(low) <= value && value <= gemm::to_float(high);
}

/// Collects what is wrong with one run.
class Verification {
 public:
  /// `a` and `b` are the rules of the inputs; `tile` only helps to locate the damage.
  Verification(const InputRule& a, const InputRule& b, const gemm::TileShape& tile);
  Verification(const InputRules& rules, const gemm::TileShape& tile);

  /// A sentence from elsewhere about what may have made D wrong; said where D is wrong.
  void add_clue(std::string clue) { clue_ = std::move(clue); }
  /// D as it is after the run, [m][n].
  void check_values(const Acceptance& acceptance, const gemm::bf16* d);
  /// The kGuardBytes in front of D (`before`) or behind it.
  void check_guard(const std::uint8_t* band, bool before);
  /// What compare_input found in A, B, C or the bias.
  void check_input(Operand operand, const InputDamage& damage);

  CheckResult result() const;

 private:
  /// D without its rows of no group, which are checked here and become 0, as the reference has them.
  std::vector<gemm::bf16> check_guard_rows(const gemm::bf16* d);

  InputRules rules_;
  gemm::Shape shape_;
  gemm::TileShape tile_;
  std::vector<std::string> failed_;
  std::string report_;
  std::string success_;
  std::string clue_;
  std::int64_t wrong_ = 0;
};

/// Everything that one run could have touched, on the host.
struct RunImage {
  InputRule a_rule;
  InputRule b_rule;
  std::vector<gemm::bf16> a;         // [m][k]
  std::vector<gemm::bf16> b;         // [n][k]; of each group
  std::vector<std::uint8_t> before;  // kGuardBytes
  std::vector<gemm::bf16> d;         // [m][n]
  std::vector<std::uint8_t> after;   // kGuardBytes
  gemm::Epilogue epilogue;           // and what only an epilogue has:
  InputRule c_rule;
  InputRule bias_rule;
  std::vector<gemm::bf16> c;     // [m][c_rule.columns]
  std::vector<gemm::bf16> bias;  // [bias_rule.columns]
  std::vector<gemm::GroupRows> groups;

  gemm::Shape shape() const { return rules().shape(); }
  InputRules rules() const { return {a_rule, b_rule, epilogue, c_rule, bias_rule, groups}; }
};

/// The image a flawless run leaves behind; D comes from the host reference.
RunImage correct_image(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const gemm::Epilogue& epilogue = {});

/// The same of a problem in groups: rows of no group are poison.
RunImage correct_image(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                       const std::vector<gemm::GroupRows>& groups);

/// The host reference of the image's own rules.
Acceptance host_acceptance(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                           const gemm::Epilogue& epilogue = {});

Acceptance host_acceptance(const gemm::Shape& shape, Pattern pattern, std::uint64_t seed,
                           const std::vector<gemm::GroupRows>& groups);

/// Host and device references of a problem in groups are made of those of its groups: calls body(group, row,
/// rows) for what each group has of the rows [first_row, first_row + rows), group 0 where there are none.
template <typename Body>
void for_groups(const std::vector<gemm::GroupRows>& groups, int first_row, int rows, const Body& body) {
  if (groups.empty()) return body(0, first_row, rows);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const int begin = std::max(groups[i].begin, first_row);
    const int end = std::min(groups[i].end, first_row + rows);
    if (begin < end) body(static_cast<int>(i), begin, end - begin);
  }
}

/// All checks of one image.
CheckResult verify(const RunImage& image, const Acceptance& acceptance, const gemm::TileShape& tile);

}  // namespace harness
