// What an epilogue reduces: sums over rows and columns of D, its largest magnitude, the top k of its rows.
// Reference, bounds and checks; auxiliary.h calls them. docs/verification.md, "Reductions".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "harness/verify/epilogue/epilogue.h"

namespace harness {

/// Names of the checks of what a reduction writes.
inline constexpr const char* kReducedNeverWritten = "reduction-never-written";
inline constexpr const char* kReducedNan = "reduction-nan";
inline constexpr const char* kReducedValue = "reduction-value";
inline constexpr const char* kReducedGuardBefore = "reduction-guard-before";
inline constexpr const char* kReducedGuardAfter = "reduction-guard-after";

/// How far a binary32 sum of so many numbers, added in any order, may be from their exact sum; `magnitude` is
/// the sum of their magnitudes, u = 2^-24:
///
///     min(terms, 9 sqrt(terms)) u magnitude + terms 2^-125
///
/// The first is the bound of every order: each of terms - 1 additions is off by at most u of its result,
/// which is at most the magnitude (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
/// section 4.2). The second holds where the errors are independent and centred, except with probability 2
/// exp(-81/2) (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci.
/// Comput. 41, 2019).
double summation_error(std::int64_t terms, double magnitude);

/// An element's v: exactly, as far as binary64 goes; how far a correct kernel's is off because of its
/// accumulator, of which errors are independent; and how far because of functions, of which they need not be.
struct Uncertain {
  double value = 0;
  double independent = 0;
  double systematic = 0;
};

inline constexpr int kReducedPart = 64;  // columns of a subtile

/// What may be stored.
struct ReducedAcceptance {
  std::vector<float> low;
  std::vector<float> high;
  std::int64_t exact = 0;  // of these, how many have one value
  // What mistakes give, for reports: sums of D's rounded elements, and with rows outside of D.
  std::vector<double> of_rounded;
  std::vector<double> of_padding;  // of one row outside of D
  std::vector<double> parts;       // of a row's sum, those of kReducedPart columns each: [row][part]
};

// The sum of elements that are exact is one number whatever the order, if no partial sum is rounded: if it is
// a multiple of `unit` and the sum of the magnitudes is below 2^24 units. Otherwise a sum is off by at most
//     min(9 |e|, sum of e) + sum of s + summation_error
// where e are the elements' independent errors and |e| is their Euclidean norm (Hoeffding, as in
// accumulation_error), and s are the systematic ones. The largest magnitude lies between the largest lower
// and the largest upper end of all magnitudes.
class ReducedReference {
 public:
  ReducedReference(gemm::Reduction reduction, const gemm::Shape& shape);
  /// Elements of one row of D may be added by one thread, and others by others, where `is_by_row`.
  bool is_by_row() const { return reduction_ == gemm::Reduction::kRowSums; }
  void add(int row, int column, const Uncertain& element);
  /// What a kernel has in a row below the last one of D.
  void add_padding(int column, double value);
  void merge(const ReducedReference& other);
  /// `is_exact`: the elements are, and multiples of `unit`.
  ReducedAcceptance acceptance(bool is_exact, double unit) const;
  /// The values that a flawless kernel would write, and those of mistakes.
  std::vector<float> values() const;

 private:
  std::size_t index(int row, int column) const;
  gemm::Reduction reduction_;
  std::int64_t terms_;
  std::vector<double> value_;
  std::vector<double> magnitude_;
  std::vector<double> independent_;
  std::vector<double> squares_;
  std::vector<double> systematic_;  // of a maximum: the largest upper end
  std::vector<double> of_rounded_;
  std::vector<double> of_padding_;
  std::size_t parts_of_row_ = 0;
  std::vector<double> parts_;  // sums of rows, where there are not too many
};

/// Adds what is wrong with `got` to `failed` and `text`. The last tiles have `padding` rows outside of D.
void check_reduced(gemm::Reduction reduction, const ReducedAcceptance& acceptance, int padding,
                   const std::vector<float>& got, std::vector<std::string>& failed, std::string& text,
                   int tile_columns = 0);

/// What a kernel could get wrong.
enum class TopKMistake { kNone, kOneMore, kSumOfAll, kTiesFromTheEnd, kTiesOnce };

/// The softmax of the k largest of a row, and 0 for the others; of equal ones the lower columns are taken. A
/// NaN is not among them, and where the largest is infinite, what is taken becomes NaN. Where fewer than k
/// are larger than minus infinity, all that are not are taken.
std::vector<double> top_k_softmax(const std::vector<double>& row, int k,
                                  TopKMistake mistake = TopKMistake::kNone);

/// Where a correct kernel's lies, if each element is inside of its interval. An element that may be among the
/// k and may be not may be 0, too. For those that are, the softmax is 1 / (1 + sum of e^(x_i - x_j)) over the
/// other k - 1: least where x_j is low and the largest others are high. It is off by
///     (4 d + k + 12) 2^-23 of itself and 2^-125
/// where d is how far the element is below the largest: ex2.approx's 2.5 * 2^-23 (PTX ISA, "ex2"), twice, the
/// rounding of its argument d log2(e), whose half units in the last place e^x multiplies by d, twice, k
/// additions, and rcp.approx's 2^-23 ("rcp"). d counts up to 88, behind which e^-d is 0 there.
std::vector<Interval> top_k_intervals(const std::vector<Interval>& row, int k);

}  // namespace harness
