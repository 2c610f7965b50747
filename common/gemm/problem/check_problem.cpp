#include "gemm/problem/check_problem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/problem/weights.h"

namespace gemm {

std::string violated_placement_rule(const std::vector<PlacedGroup>& groups, const Shape& shape) {
  constexpr int kUnit = 16;
  constexpr int kMostRows = 1 << 30;  // rounded up to whole tiles they are still an int
  struct Matrix {
    const char* name;
    const void* address;
    int pitch;
    int columns;
    const char* columns_name;
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const PlacedGroup& one = groups[i];
    const std::string group = "group " + std::to_string(i);
    if (one.rows < 0)
      return group + " has " + std::to_string(one.rows) + " rows: a group must have at least 0";
    if (one.rows > kMostRows)
      return group + " has " + std::to_string(one.rows) + " rows: a group must have at most " +
             std::to_string(kMostRows);
    if (one.rows == 0) continue;  // nobody looks at its addresses
    constexpr int kVector = kUnit / static_cast<int>(sizeof(bf16));
    const auto [m, n, k] = shape_of(one, shape);
    for (const auto& [name, own, most] : {std::tuple{"N", n, shape.n}, std::tuple{"K", k, shape.k}}) {
      if (own < 1 || own > most || own % kVector != 0)
        return std::string(name) + " of " + group + " is " + std::to_string(own) +
               ": it must be a multiple of 8, which is 16 bytes, and at most the problem's " +
               std::to_string(most);
    }
    for (const auto& [name, address, pitch, columns, columns_name] :
         {Matrix{"A", one.a, one.a_pitch, k, "K"}, Matrix{"B", one.b, one.b_pitch, k, "K"},
          Matrix{"D", one.d, one.d_pitch, n, "N"}}) {
      const std::string matrix = std::string(name) + " of " + group;
      const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(address) % kUnit;
      if (address == nullptr) return "the address of " + matrix + " is null, but the group has rows";
      if (past != 0)
        return matrix + " begins " + std::to_string(past) +
               " bytes after a multiple of 16: its address must be a multiple of 16";
      if (pitch < columns)
        return "a row of " + matrix + " begins " + std::to_string(pitch) +
               " elements after the previous row, but has " + columns_name + " = " + std::to_string(columns) +
               ": the pitch must be at least " + columns_name;
      if (pitch % (kUnit / static_cast<int>(sizeof(bf16))) != 0)
        return "a row of " + matrix + " begins " + std::to_string(pitch) +
               " elements after the previous row: the pitch must be a multiple of 8, which is 16 bytes";
    }
  }
  return "";
}

std::string violated_group_rule(const std::vector<GroupRows>& groups, const Shape& shape) {
  const auto group = [](std::size_t index) { return "group " + std::to_string(index); };
  int last = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto [begin, end] = groups[i];
    if (begin < 0) return group(i) + " begins at row " + std::to_string(begin) + ": rows are counted from 0";
    if (end < begin)
      return group(i) + " begins at row " + std::to_string(begin) + " and ends at row " +
             std::to_string(end) + ": a group must have at least 0 rows";
    if (begin < last)
      return group(i) + " begins at row " + std::to_string(begin) + ", but " + group(i - 1) +
             " ends at row " + std::to_string(last) + ": offsets must ascend";
    if (end > shape.m)
      return group(i) + " ends at row " + std::to_string(end) + ", but A has " + std::to_string(shape.m) +
             ": M must be the number of rows of all groups";
    last = end;
  }
  const std::int64_t rows_of_b = offset(static_cast<int>(groups.size()), 0, shape.n);
  if (rows_of_b > std::numeric_limits<int>::max())
    return "B has " + std::to_string(groups.size()) + " x " + std::to_string(shape.n) +
           " rows: a tensor map has at most 2147483647, so take fewer groups or a smaller N";
  return "";
}

std::string violated_batch_rule(const std::vector<GroupRows>& groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string group = "group " + std::to_string(i);
    const int rows = groups[i].count();
    if (rows < 1 || rows != groups[0].count())
      return group + " has " + std::to_string(rows) +
             (rows < 1 ? " rows: each product of a strided batch must have at least 1"
                       : " rows, but group 0 has " + std::to_string(groups[0].count()) +
                             ": all products of a strided batch must have as many");
    if (i > 1 && groups[i].begin - groups[i - 1].begin != groups[1].begin - groups[0].begin)
      return group + " begins " + std::to_string(groups[i].begin - groups[i - 1].begin) +
             " rows after the group before, but group 1 begins " +
             std::to_string(groups[1].begin - groups[0].begin) +
             " rows after group 0: all products of a strided batch must be at one distance";
  }
  return "";
}

std::string violated_capacity_rule(const std::vector<GroupRows>& groups, int capacity, const Shape& shape) {
  if (capacity < 1)
    return "groups have room for " + std::to_string(capacity) + " rows each: the capacity must be at least 1";
  if (shape.m % capacity != 0)
    return "groups have room for " + std::to_string(capacity) + " rows each, but A has " +
           std::to_string(shape.m) + ": M must be a multiple of the capacity";
  const int count = shape.m / capacity;
  if (!groups.empty() && static_cast<int>(groups.size()) != count)
    return "there are " + std::to_string(groups.size()) + " groups, but A has room for " +
           std::to_string(count) + ": M must be the number of groups times the capacity";
  for (int i = 0; i < static_cast<int>(groups.size()); ++i) {
    const auto& [begin, end] = groups[static_cast<std::size_t>(i)];
    if (begin != i * capacity)
      return "group " + std::to_string(i) + " begins at row " + std::to_string(begin) +
             ", but its room begins at row " + std::to_string(i * capacity) +
             ": group g must begin at row g times the capacity";
    if (end - begin < 0 || end - begin > capacity)
      return "group " + std::to_string(i) + " has " + std::to_string(end - begin) + " rows, but room for " +
             std::to_string(capacity) + ": a count must be from 0 to the capacity";
  }
  return violated_group_rule(std::vector<GroupRows>(static_cast<std::size_t>(count)), shape);
}

std::string violated_weight_rule(const Shape& shape, int group) {
  if (shape.k % group != 0)
    return "the weights have a scale for every " + std::to_string(group) + " elements of K, but K is " +
           std::to_string(shape.k) + ": K must be a multiple of " + std::to_string(group) +
           ", so that the last group is whole";
  if (shape.n % kWeightRows != 0)
    return "weights are packed in blocks of " + std::to_string(kWeightRows) + " rows, but N is " +
           std::to_string(shape.n) + ": N must be a multiple of " + std::to_string(kWeightRows);
  return "";
}

std::string violated_quantised_rule(const Shape& shape, const Types& types) {
  constexpr int kVector = 32;  // elements in 16 bytes
  if (!types.quantise_d() || shape.n % kVector == 0) return "";
  return "D has two elements in a byte, and N is " + std::to_string(shape.n) +
         ": N must be a multiple of 32, so that a row of D is whole vectors of 16 bytes and whole blocks";
}

namespace {

/// Throws std::invalid_argument where the auxiliary tensor is not what its epilogue needs.
void check_auxiliary(const Problem& problem) {
  const Auxiliary auxiliary = problem.epilogue.auxiliary;
  const int n = problem.shape.n;
  if (auxiliary == Auxiliary::kGate && n % 16 != 0)
    throw std::invalid_argument("a gate makes one column of D from two, but N is " + std::to_string(n) +
                                ": N must be a multiple of 16, so that rows of D are whole vectors of 16 "
                                "bytes");
  if (!is_read(auxiliary) && !is_written(auxiliary)) return;
  if (problem.auxiliary == nullptr)
    throw std::invalid_argument("the epilogue has an auxiliary tensor, but its address is null");
  if (problem.auxiliary_pitch < n)
    throw std::invalid_argument("a row of the auxiliary tensor begins " +
                                std::to_string(problem.auxiliary_pitch) +
                                " elements after the previous row, but has N = " + std::to_string(n) +
                                ": the pitch must be at least N");
  if (!is_mask(auxiliary)) return;
  if (problem.auxiliary_pitch % 128 != 0)
    throw std::invalid_argument("a row of the bit mask begins " + std::to_string(problem.auxiliary_pitch) +
                                " bits after the previous row: that must be a multiple of 128");
  if (reinterpret_cast<std::uintptr_t>(problem.auxiliary) % 16 != 0)
    throw std::invalid_argument("the bit mask begins " +
                                std::to_string(reinterpret_cast<std::uintptr_t>(problem.auxiliary) % 16) +
                                " bytes after a multiple of 16: its address must be a multiple of 16");
}

/// Throws std::invalid_argument where groups that lie anywhere are not as the variant takes them.
void check_placed_groups(const Variant& variant, const Problem& problem) {
  if (!variant.takes_placed_groups())
    throw std::invalid_argument("the variant " + variant.name +
                                " takes groups that are rows of one A, but the problem's groups lie anywhere "
                                "in memory: step 54 takes such groups");
  if (problem.placed_count < 1)
    throw std::invalid_argument("the table has " + std::to_string(problem.placed_count) +
                                " groups that lie anywhere: it must have at least 1");
  if (!problem.groups.empty() || problem.capacity != 0)
    throw std::invalid_argument(
        "groups lie anywhere in memory, or are rows of one A, but the problem says both: leave one out");
  if (!problem.known.empty() && static_cast<int>(problem.known.size()) != problem.placed_count)
    throw std::invalid_argument("the host knows " + std::to_string(problem.known.size()) +
                                " groups, but the table has " + std::to_string(problem.placed_count) +
                                ": it must know either all of them or none");
  if (problem.known.empty() && variant.groups == GroupForm::kPlacedKnown)
    throw std::invalid_argument("the variant " + variant.name +
                                " has tensor maps that the host makes, but the host does not know the "
                                "groups: take a variant that changes its maps on the device");
  const bool own_sizes = std::any_of(problem.known.begin(), problem.known.end(),
                                     [](const PlacedGroup& group) { return group.own != GroupSize{}; });
  if (own_sizes && variant.groups != GroupForm::kPlacedSizes)
    throw std::invalid_argument("the variant " + variant.name +
                                " takes groups of one N and one K, but groups have their own: step 54 has a "
                                "variant for such groups");
  const std::string rule = violated_placement_rule(problem.known, problem.shape);
  if (!rule.empty()) throw std::invalid_argument(rule);
}

/// Throws std::invalid_argument where weights cannot be packed, or scaled in whole groups.
void check_weights(const Problem& problem) {
  if (!problem.types.has_weights()) return;
  const std::string rule = violated_weight_rule(problem.shape, problem.types.group);
  if (!rule.empty()) throw std::invalid_argument(rule);
  if (problem.group_scales == nullptr)
    throw std::invalid_argument(
        "weights have a scale for each row and group, but the address of the scales is null");
}

/// Throws std::invalid_argument where the groups are not rows of A as the variant takes them.
void check_groups(const Variant& variant, const Problem& problem) {
  if (problem.placed != nullptr) return check_placed_groups(variant, problem);
  if (problem.capacity != 0 && variant.groups != GroupForm::kMasked)
    throw std::invalid_argument(
        "the variant " + variant.name +
        " takes no counts from device memory, but the problem's groups have room for " +
        std::to_string(problem.capacity) + " rows each: step 53 takes such groups");
  if (problem.capacity == 0 && variant.groups == GroupForm::kMasked && !problem.groups.empty())
    throw std::invalid_argument("the variant " + variant.name +
                                " reads the counts of its groups from device memory, but the problem has no "
                                "capacity: step 52 takes groups that follow one another");
  if (!problem.groups.empty() && !variant.takes_groups())
    throw std::invalid_argument("the variant " + variant.name +
                                " multiplies all rows of A by one B, but the problem has " +
                                std::to_string(problem.groups.size()) + " groups: step 52 takes groups");
  const std::string rule = problem.capacity != 0
                               ? violated_capacity_rule(problem.groups, problem.capacity, problem.shape)
                               : violated_group_rule(problem.groups, problem.shape);
  if (!rule.empty()) throw std::invalid_argument(rule);
  if (variant.groups == GroupForm::kStrided) {
    const std::string batch_rule = violated_batch_rule(problem.groups);
    if (!batch_rule.empty()) throw std::invalid_argument(batch_rule);
  }
  if (problem.capacity != 0 && problem.counts == nullptr)
    throw std::invalid_argument(
        "groups of one capacity have their counts in device memory, but the address of the counts is null");
}

/// Throws std::invalid_argument where what a reduction writes has not the length that it needs, or a row of D
/// is not inside of one tile where all of it must be.
void check_reduction(const Problem& problem, const TileShape& tile) {
  const Reduction reduction = problem.epilogue.reduction;
  const auto [m, n, k] = problem.shape;
  if (reduction == Reduction::kTopKSoftmax) {
    if (n > tile.n)
      throw std::invalid_argument(
          "the largest elements of a row are found only if one tile holds the row: N is " +
          std::to_string(n) + " but must be at most the tile's " + std::to_string(tile.n) + " columns");
    if (problem.epilogue.top_k < 1 || problem.epilogue.top_k > n)
      throw std::invalid_argument("the top " + std::to_string(problem.epilogue.top_k) + " of rows of N = " +
                                  std::to_string(n) + " elements were requested: k must be from 1 to N");
  }
  if (!is_written(reduction)) return;
  const int needed = reduced_elements(reduction, problem.shape);
  if (problem.reduced == nullptr)
    throw std::invalid_argument("the epilogue has a reduction, but the address of its result is null");
  if (reinterpret_cast<std::uintptr_t>(problem.reduced) % sizeof(float) != 0)
    throw std::invalid_argument("the result of the reduction is fp32: its address must be a multiple of 4");
  if (problem.reduced_length != needed)
    throw std::invalid_argument("the result of the reduction has " + std::to_string(problem.reduced_length) +
                                " elements: it must have " + std::to_string(needed) +
                                (reduction == Reduction::kColumnSums ? ", one for each column of D"
                                 : reduction == Reduction::kRowSums  ? ", one for each row of D"
                                                                     : ""));
}

}  // namespace

void check_types(const Variant& variant, const Types& types) {
  const Types& own = variant.types;
  for (const auto& [operand, type, major] :
       {std::tuple{'A', types.a, types.major_a}, std::tuple{'B', types.b, types.major_b}}) {
    if (major == Major::kK || can_be_mn_major(type)) continue;
    throw std::invalid_argument(std::string(1, operand) + " is " + name_of(type) + " and " +
                                (operand == 'A' ? "M" : "N") +
                                "-major, but the tensor cores read only 16-bit operands in that layout: "
                                "transpose it first, so that K is contiguous");
  }
  if (types.has_weights() != own.has_weights())
    throw std::invalid_argument(
        "the variant " + variant.name + " takes " +
        (own.has_weights() ? "weights with a scale for every "
                           : "no weights with scales, but the problem has one for every ") +
        std::to_string(own.has_weights() ? own.group : types.group) + " elements of K" +
        (own.has_weights() ? ", but the problem has none" : ": step 45 takes such weights"));
  if (types.group != own.group)
    throw std::invalid_argument(
        "the variant " + variant.name + " takes a scale for every " + std::to_string(own.group) +
        " elements of K, but the problem has one for every " + std::to_string(types.group) +
        ": quantise the weights in groups of " + std::to_string(own.group));
  if (types.zero_points != own.zero_points)
    throw std::invalid_argument("the variant " + variant.name + " takes weights " +
                                (own.zero_points
                                     ? "with a zero point for each scale, but the problem has none"
                                     : "without zero points, but the problem has one for each scale") +
                                ": step 45 has variants for both");
  if (types.a != own.a || types.b != own.b || types.d != own.d)
    throw std::invalid_argument(
        "the variant " + variant.name + " multiplies " + name_of(own.a) + " by " + name_of(own.b) + " to " +
        name_of(own.d) + ", but the problem is " + name_of(types.a) + " by " + name_of(types.b) + " to " +
        name_of(types.d) + ": step " + (own.has_weights() ? "45" : "42") + " has a variant for each type");
  if (types.are_nv() != own.are_nv())
    throw std::invalid_argument(
        "the variant " + variant.name + " takes " +
        (own.are_nv() ? "a ue4m3 scale for every 16 elements of K, but the problem has none: step 42 takes "
                        "one scale for each matrix"
                      : "no ue4m3 scales, but the problem has one for every 16 elements of K: step 78 takes "
                        "such scales"));
  const auto majors = [](const Types& of) {
    return std::string("A ") + (of.major_a == Major::kK ? "K" : "M") + "-major and B " +
           (of.major_b == Major::kK ? "K" : "N") + "-major";
  };
  if (types.major_a != own.major_a || types.major_b != own.major_b)
    throw std::invalid_argument("the variant " + variant.name + " takes " + majors(own) +
                                ", but the problem has " + majors(types) +
                                ": step 40 has a variant for each layout");
  if (types.are_mx() != own.are_mx())
    throw std::invalid_argument(
        "the variant " + variant.name + " takes " +
        (own.are_mx()
             ? "a ue8m0 scale for every 32 elements of K, but the problem has none: step 42 takes one "
               "scale for each matrix"
             : "no ue8m0 scales, but the problem has one for every 32 elements of K: step 77 takes "
               "such scales"));
  if (types.have_blocks() && !own.have_blocks())
    throw std::invalid_argument(
        "the variant " + variant.name +
        " takes one scale for each matrix, but the problem has scales of blocks: step 44 takes such scales");
  if (!types.have_blocks() && own.have_blocks())
    throw std::invalid_argument(
        "the variant " + variant.name +
        " takes scales of blocks, but the problem has one for each matrix: steps 42 and 43 take such scales");
}

void check_scales(const Problem& problem) {
  if (problem.types.have_scale_pieces()) {
    for (const auto& [operand, scales] :
         {std::tuple{"A", problem.mx_scales_a}, std::tuple{"B", problem.mx_scales_b},
          std::tuple{"D", problem.types.quantise_d() ? problem.mx_scales_d : problem.mx_scales_b}}) {
      const std::string of = std::string("the scales of ") + operand;
      if (scales == nullptr) throw std::invalid_argument(of + " have the address null");
      const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(scales) % 16;
      if (past != 0)
        throw std::invalid_argument(of + " begin " + std::to_string(past) +
                                    " bytes after a multiple of 16: their address must be a multiple of 16");
    }
  }
  if (problem.types.are_nv() && problem.scales == nullptr)
    throw std::invalid_argument("A, B and D have a scale each, but the address of the three scales is null");
  if (!problem.types.have_blocks()) return;
  const auto [m, n, k] = problem.shape;
  const int blocks = ceil_div(k, kScaleBlock);
  for (const auto& [operand, scales, pitch, needed] :
       {std::tuple{"A", problem.scales_a, problem.scales_a_pitch, m},
        std::tuple{"B", problem.scales_b, problem.scales_b_pitch, blocks}}) {
    const std::string of = std::string("the scales of ") + operand;
    if (scales == nullptr) throw std::invalid_argument(of + " have the address null");
    if (reinterpret_cast<std::uintptr_t>(scales) % 16 != 0)
      throw std::invalid_argument(of + " begin " +
                                  std::to_string(reinterpret_cast<std::uintptr_t>(scales) % 16) +
                                  " bytes after a multiple of 16: their address must be a multiple of 16");
    if (pitch < needed)
      throw std::invalid_argument("a row of " + of + " begins " + std::to_string(pitch) +
                                  " floats after the previous row, but has " + std::to_string(needed) +
                                  ": the pitch must be at least that");
    if (pitch % 4 != 0)
      throw std::invalid_argument("a row of " + of + " begins " + std::to_string(pitch) +
                                  " floats after the previous row: that must be a multiple of 4");
  }
}

Launcher prepare(const Variant& variant, const Problem& problem) {
  if (!(with_fixed(variant.epilogues, problem.epilogue) == problem.epilogue))
    throw std::invalid_argument("the variant " + variant.name +
                                " has its bias and its activation compiled in, but the problem has others");
  check_auxiliary(problem);
  check_types(variant, problem.types);
  check_scales(problem);
  const std::string quantised_rule = violated_quantised_rule(problem.shape, problem.types);
  if (!quantised_rule.empty()) throw std::invalid_argument(quantised_rule);
  check_weights(problem);
  check_groups(variant, problem);
  check_reduction(problem, variant.tile);
  const Bias bias = problem.epilogue.bias;
  const int needed = bias == Bias::kRow ? problem.shape.m : problem.shape.n;
  if (bias != Bias::kNone && problem.bias_length != needed)
    throw std::invalid_argument("the bias has " + std::to_string(problem.bias_length) +
                                " elements, but D has " + std::to_string(needed) +
                                (bias == Bias::kRow ? " rows" : " columns") + ": it must have one for each");
  if (bias == Bias::kColumn && reinterpret_cast<std::uintptr_t>(problem.bias) % 4 != 0)  // two at a time
    throw std::invalid_argument(
        "the bias begins 2 bytes after a multiple of 4: its address must be a multiple of 4");
  if (problem.epilogue.beta != 0 && problem.c_pitch < problem.shape.n)
    throw std::invalid_argument("a row of C begins " + std::to_string(problem.c_pitch) +
                                " elements after the previous row, but has N = " +
                                std::to_string(problem.shape.n) + ": the pitch must be at least N");
  return variant.prepare(problem);
}

}  // namespace gemm
