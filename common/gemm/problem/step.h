// What a step tells the harness about itself. A kernel.cuh ends by defining one `const Step kStep`.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/weights.h"
#include "ptx/launch_shape.h"

namespace gemm {

/// Which sizes a step computes. The harness refuses every other size with a sentence that names the rule.
struct Contract {
  int m_multiple = 1;
  int n_multiple = 1;
  int k_multiple = 1;
};

/// The unit that does the multiplications; its peak is the ceiling of the prediction in --budget.
enum class MathUnit { kFma, kMmaSync, kWgmma, kTcgen05 };

/// The architecture that a step's kernels are compiled for, and with it the GPUs that run it. CMake and the
/// scripts read `.architecture = Architecture::k...` in kernel.cuh. PTX ISA, "PTX Module Directives:
/// .target": what is special to an architecture with the suffix a exists in that one only, not in newer ones.
enum class Architecture {
  kSm80,    // compute capability 8.0 and every newer one
  kSm90a,   // 9.0 only: Hopper
  kSm100a,  // 10.0 only: Blackwell
};

/// Whether a GPU of this compute capability (major * 10 + minor) runs kernels for this architecture.
constexpr bool runs_on(Architecture architecture, int compute_capability) {
  switch (architecture) {
    case Architecture::kSm80:
      return compute_capability >= 80;
    case Architecture::kSm90a:
      return compute_capability == 90;
    case Architecture::kSm100a:
      return compute_capability == 100;
  }
  return false;
}

/// What one multiply-add (m*n*k of them in a problem) costs the memory system, derived from the tile sizes.
struct Traffic {
  double lsu_instructions_per_fma = 0;  // load/store instructions of one thread (LDG, LDS, STS), per FMA
  double shared_bytes_per_fma = 0;      // bytes through shared memory
  double global_bytes_per_fma = 0;      // bytes requested from L2
};

/// Starts one prepared multiplication on a stream. May be called any number of times.
using Launcher = std::function<void(ptx::Stream)>;

/// What a variant that chooses by shape has chosen.
struct Choice {
  std::string variant;  // the name of another one of the step
  std::string why;      // a sentence or two
};

/// One selectable configuration of a step (`--variant name`).
struct Variant {
  std::string name;
  std::string summary;  // one line: what differs
  TileShape tile;
  int stages = 1;
  Traffic traffic;
  const void* kernel = nullptr;  // for registers, static shared memory and occupancy
  ptx::LaunchShape (*launch_shape)(const Shape&) = nullptr;
  Launcher (*prepare)(const Gemm&) = nullptr;               // validates, makes tensor maps and workspace
  std::int64_t (*workspace_bytes)(const Shape&) = nullptr;  // device memory that it keeps for each stream
  double (*busiest_tiles)(const Shape&) = nullptr;  // of one CTA, in tiles; where CTAs get parts of tiles
  Choice (*choose)(const Shape&) = nullptr;  // for a variant that stands for whichever of the others suits
  EpilogueSupport epilogues{};               // of a step with an epilogue; then prepare() is
  Launcher (*prepare_problem)(const Problem&) = nullptr;  // this with the plain one
  Types types{};             // of the operands and of D; other than bf16: only prepare_problem is called
  bool groups = false;       // takes rows in groups
  bool masked = false;       // of one capacity, with their counts in device memory
  bool placed = false;       // anywhere in memory, as a table in device memory says, and rows of A as well
  bool needs_known = false;  // of such groups only those that the host knows
  int layers = 0;            // of a chain of launches, each of which computes as many columns of D; 0: none
};

/// Whether a row of D must lie in one tile.
inline bool needs_whole_rows(const Variant& variant) {
  return variant.epilogues.reduction == Reduction::kTopKSoftmax;
}
/// The shape, or where a row of D must lie in one tile, that of its last column of tiles. Where D's elements
/// are bytes, N is rounded up to what TMA takes.
inline Shape fitting_shape(const Variant& variant, Shape shape) {
  if (needs_whole_rows(variant) && shape.n > variant.tile.n)
    shape.n = shape.n % variant.tile.n == 0 ? variant.tile.n : shape.n % variant.tile.n;
  constexpr int kVector = 16;  // bytes; a row of D is whole ones
  if (bytes_of(variant.types.d) == 1) shape.n = ceil_div(shape.n, kVector) * kVector;
  return shape;
}

/// Throws std::invalid_argument where the auxiliary tensor is not what its epilogue needs.
inline void check_auxiliary(const Problem& problem) {
  const Auxiliary auxiliary = problem.epilogue.auxiliary;
  const int n = problem.shape.n;
  if (auxiliary == Auxiliary::kGate && n % 16 != 0)
    throw std::invalid_argument("a gate makes one column of D of two, and N is " + std::to_string(n) +
                                ": N must be a multiple of 16, so that rows of D are whole vectors of 16 "
                                "bytes");
  if (!is_read(auxiliary) && !is_written(auxiliary)) return;
  if (problem.auxiliary == nullptr)
    throw std::invalid_argument("the epilogue has an auxiliary tensor, and its address is null");
  if (problem.auxiliary_pitch < n)
    throw std::invalid_argument("a row of the auxiliary tensor begins " +
                                std::to_string(problem.auxiliary_pitch) +
                                " elements behind the one before, and has N = " + std::to_string(n) +
                                ": the pitch must be at least N");
  if (!is_mask(auxiliary)) return;
  if (problem.auxiliary_pitch % 128 != 0)
    throw std::invalid_argument("a row of the bit mask begins " + std::to_string(problem.auxiliary_pitch) +
                                " bits behind the one before: that must be a multiple of 128");
  if (reinterpret_cast<std::uintptr_t>(problem.auxiliary) % 16 != 0)
    throw std::invalid_argument("the bit mask begins " +
                                std::to_string(reinterpret_cast<std::uintptr_t>(problem.auxiliary) % 16) +
                                " bytes behind a multiple of 16: its address must be a multiple of 16");
}

/// Throws std::invalid_argument where operands have other types than the variant's, or lie another way round.
inline void check_types(const Variant& variant, const Types& types) {
  const Types& own = variant.types;
  for (const auto& [operand, type, major] :
       {std::tuple{'A', types.a, types.major_a}, std::tuple{'B', types.b, types.major_b}}) {
    if (major == Major::kK || can_be_mn_major(type)) continue;
    throw std::invalid_argument(
        std::string(1, operand) + " is " + name_of(type) + " and " + (operand == 'A' ? "M" : "N") +
        "-major, and the tensor cores read only 16-bit operands so: transpose it first, "
        "so that K is contiguous");
  }
  if (types.has_weights() != own.has_weights())
    throw std::invalid_argument(
        "the variant " + variant.name + " takes " +
        (own.has_weights() ? "weights with a scale for every "
                           : "no weights with scales, and the problem has one for every ") +
        std::to_string(own.has_weights() ? own.group : types.group) + " elements of K" +
        (own.has_weights() ? ", and the problem has none" : ": step 45 takes those"));
  if (types.group != own.group)
    throw std::invalid_argument(
        "the variant " + variant.name + " takes a scale for every " + std::to_string(own.group) +
        " elements of K, and the problem has one for every " + std::to_string(types.group) +
        ": quantise the weights in groups of " + std::to_string(own.group));
  if (types.a != own.a || types.b != own.b || types.d != own.d)
    throw std::invalid_argument(
        "the variant " + variant.name + " multiplies " + name_of(own.a) + " by " + name_of(own.b) + " to " +
        name_of(own.d) + ", and the problem is " + name_of(types.a) + " by " + name_of(types.b) + " to " +
        name_of(types.d) + ": step " + (own.has_weights() ? "45" : "42") + " has a variant for each type");
  const auto majors = [](const Types& of) {
    return std::string("A ") + (of.major_a == Major::kK ? "K" : "M") + "-major and B " +
           (of.major_b == Major::kK ? "K" : "N") + "-major";
  };
  if (types.major_a != own.major_a || types.major_b != own.major_b)
    throw std::invalid_argument("the variant " + variant.name + " takes " + majors(own) +
                                ", and the problem has " + majors(types) +
                                ": step 40 has a variant for each layout");
  if (types.have_blocks() && !own.have_blocks())
    throw std::invalid_argument("the variant " + variant.name +
                                " takes one scale for each matrix, and the problem has scales of blocks: "
                                "step 44 takes those");
  if (!types.have_blocks() && own.have_blocks())
    throw std::invalid_argument("the variant " + variant.name +
                                " takes scales of blocks, and the problem has one for each matrix: steps 42 "
                                "and 43 take those");
}

/// Throws std::invalid_argument where the scales of blocks are not where TMA can load them from.
inline void check_scales(const Problem& problem) {
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
                                  " bytes behind a multiple of 16: their address must be a multiple of 16");
    if (pitch < needed)
      throw std::invalid_argument("a row of " + of + " begins " + std::to_string(pitch) +
                                  " floats behind the one before, and has " + std::to_string(needed) +
                                  ": the pitch must be at least that");
    if (pitch % 4 != 0)
      throw std::invalid_argument("a row of " + of + " begins " + std::to_string(pitch) +
                                  " floats behind the one before: that must be a multiple of 4");
  }
}

/// Throws std::invalid_argument where groups that lie anywhere are not as the variant takes them.
inline void check_placed_groups(const Variant& variant, const Problem& problem) {
  if (!variant.placed)
    throw std::invalid_argument("the variant " + variant.name +
                                " takes groups that are rows of one A, and the problem's lie anywhere in "
                                "memory: step 54 takes those");
  if (problem.placed_count < 1)
    throw std::invalid_argument("the table has " + std::to_string(problem.placed_count) +
                                " groups that lie anywhere: it must have at least 1");
  if (!problem.groups.empty() || problem.capacity != 0)
    throw std::invalid_argument(
        "groups lie anywhere in memory, or are rows of one A, and the problem says both: leave one out");
  if (!problem.known.empty() && static_cast<int>(problem.known.size()) != problem.placed_count)
    throw std::invalid_argument("the host knows " + std::to_string(problem.known.size()) +
                                " groups, and the table has " + std::to_string(problem.placed_count) +
                                ": it must know all of them, or none");
  if (problem.known.empty() && variant.needs_known)
    throw std::invalid_argument(
        "the variant " + variant.name +
        " has tensor maps that the host makes, and the host does not know the groups: "
        "take a variant that changes its maps on the device");
  const std::string rule = violated_placement_rule(problem.known, problem.shape);
  if (!rule.empty()) throw std::invalid_argument(rule);
}

/// Throws std::invalid_argument where weights cannot be packed, or scaled in whole groups.
inline void check_weights(const Problem& problem) {
  if (!problem.types.has_weights()) return;
  const std::string rule = violated_weight_rule(problem.shape, problem.types.group);
  if (!rule.empty()) throw std::invalid_argument(rule);
  if (problem.group_scales == nullptr)
    throw std::invalid_argument(
        "weights have a scale for each row and group, and the address of the scales is null");
}

/// Throws std::invalid_argument where the groups are not rows of A as the variant takes them.
inline void check_groups(const Variant& variant, const Problem& problem) {
  if (problem.placed != nullptr) return check_placed_groups(variant, problem);
  if (problem.capacity != 0 && !variant.masked)
    throw std::invalid_argument(
        "the variant " + variant.name +
        " takes no counts from device memory, and the problem's groups have room for " +
        std::to_string(problem.capacity) + " rows each: step 53 takes those");
  if (problem.capacity == 0 && variant.masked && !problem.groups.empty())
    throw std::invalid_argument("the variant " + variant.name +
                                " reads the counts of its groups from device memory, and the problem has no "
                                "capacity: step 52 takes groups that lie one behind the other");
  if (!problem.groups.empty() && !variant.groups)
    throw std::invalid_argument("the variant " + variant.name +
                                " multiplies all rows of A by one B, and the problem has " +
                                std::to_string(problem.groups.size()) + " groups: step 52 takes groups");
  const std::string rule = problem.capacity != 0
                               ? violated_capacity_rule(problem.groups, problem.capacity, problem.shape)
                               : violated_group_rule(problem.groups, problem.shape);
  if (!rule.empty()) throw std::invalid_argument(rule);
  if (problem.capacity != 0 && problem.counts == nullptr)
    throw std::invalid_argument(
        "groups of one capacity have their counts in device memory, and the address "
        "of the counts is null");
}

/// Throws std::invalid_argument where what a reduction writes has not the length that it needs, or a row of D
/// is not inside of one tile where all of it must be.
inline void check_reduction(const Problem& problem, const TileShape& tile) {
  const Reduction reduction = problem.epilogue.reduction;
  const auto [m, n, k] = problem.shape;
  if (reduction == Reduction::kTopKSoftmax) {
    if (n > tile.n)
      throw std::invalid_argument("the largest of a row are found where one tile holds the row: N is " +
                                  std::to_string(n) + " and must be at most the tile's " +
                                  std::to_string(tile.n) + " columns");
    if (problem.epilogue.top_k < 1 || problem.epilogue.top_k > n)
      throw std::invalid_argument("the top " + std::to_string(problem.epilogue.top_k) + " of rows of N = " +
                                  std::to_string(n) + " elements were asked for: k must be from 1 to N");
  }
  if (!is_written(reduction)) return;
  const int needed = reduced_elements(reduction, problem.shape);
  if (problem.reduced == nullptr)
    throw std::invalid_argument("the epilogue has a reduction, and the address of its result is null");
  if (reinterpret_cast<std::uintptr_t>(problem.reduced) % sizeof(float) != 0)
    throw std::invalid_argument("the result of the reduction is fp32: its address must be a multiple of 4");
  if (problem.reduced_length != needed)
    throw std::invalid_argument("the result of the reduction has " + std::to_string(problem.reduced_length) +
                                " elements: it must have " + std::to_string(needed) +
                                (reduction == Reduction::kColumnSums ? ", one for each column of D"
                                 : reduction == Reduction::kRowSums  ? ", one for each row of D"
                                                                     : ""));
}

/// Prepares a problem whose epilogue the variant computes. Throws std::invalid_argument where C, the bias or
/// an auxiliary tensor is not as long as D needs it, another epilogue is compiled in, or its groups are not
/// rows of A in ascending order; what TMA refuses of an address is said by make_tensor_map.
inline Launcher prepare(const Variant& variant, const Problem& problem) {
  if (!(with_fixed(variant.epilogues, problem.epilogue) == problem.epilogue))
    throw std::invalid_argument("the variant " + variant.name +
                                " has its bias and its activation compiled in, and the problem has others");
  check_auxiliary(problem);
  check_types(variant, problem.types);
  check_scales(problem);
  check_weights(problem);
  check_groups(variant, problem);
  check_reduction(problem, variant.tile);
  const Bias bias = problem.epilogue.bias;
  const int needed = bias == Bias::kRow ? problem.shape.m : problem.shape.n;
  if (bias != Bias::kNone && problem.bias_length != needed)
    throw std::invalid_argument("the bias has " + std::to_string(problem.bias_length) +
                                " elements, and D has " + std::to_string(needed) +
                                (bias == Bias::kRow ? " rows" : " columns") + ": it must have one for each");
  if (problem.epilogue.beta != 0 && problem.c_pitch < problem.shape.n)
    throw std::invalid_argument("a row of C begins " + std::to_string(problem.c_pitch) +
                                " elements behind the one before, and has N = " +
                                std::to_string(problem.shape.n) + ": the pitch must be at least N");
  return variant.prepare_problem != nullptr ? variant.prepare_problem(problem) : variant.prepare(problem);
}

struct Step {
  std::string name;       // the folder: "01_naive"
  std::string title;      // the one new idea
  std::string builds_on;  // the step whose kernel it continues, "15_tma_store"; empty: the step before it
  MathUnit unit = MathUnit::kFma;
  Architecture architecture = Architecture::kSm80;
  Contract contract;
  Epilogue epilogue;              // that it computes unless another one is asked for
  std::vector<Variant> variants;  // the first is the default
};

/// The step that a folder's kernel.cuh defines. One that was copied and still has the name of another would
/// run under it.
inline const Step& step_of_folder(const Step& step, const std::string& folder) {
  if (step.name == folder) return step;
  throw std::runtime_error("steps/" + folder + "/kernel.cuh says that its name is '" + step.name +
                           "'; the name in kStep must be the folder's, '" + folder + "'");
}

}  // namespace gemm
