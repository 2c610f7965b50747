// What a step tells the harness about itself. A kernel.cuh ends by defining one `const Step kStep`.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/ranks.h"
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
/// scripts find it in steps/steps.json, which the programs write. PTX ISA, "PTX Module Directives:
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
  std::string variant;                   // the name of another one of the step
  std::string why;                       // a sentence or two
  double host_us = 0;                    // processor time that choosing took
  std::vector<std::string> promising{};  // it and the next ones that a model would take; empty: no model
  std::string faster_step{};             // another step that is known to be faster at this shape, by its name
};

/// In which form a variant takes rows in groups.
enum class GroupForm {
  kNone,         // all rows are multiplied by one B
  kRows,         // rows of one A, one group behind the other
  kStrided,      // the same, all of one size and at one distance: a strided batch
  kMasked,       // of one capacity, with their counts in device memory
  kPlaced,       // anywhere in memory, as a table in device memory says, and rows of one A as well
  kPlacedKnown,  // the same, where the host knows the table
  kPlacedSizes,  // as kPlaced, and each group may have an N and a K of its own
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
  std::function<Launcher(const Problem&)> prepare;          // makes tensor maps and workspace
  std::int64_t (*workspace_bytes)(const Shape&) = nullptr;  // device memory that it keeps for each stream
  double (*busiest_tiles)(const Shape&) = nullptr;  // of one CTA, in tiles; where CTAs get parts of tiles
  Choice (*choose)(const Shape&) = nullptr;  // for a variant that stands for whichever of the others suits
  EpilogueSupport epilogues{};               // beside the plain epilogue
  Types types{};                             // of the operands and of D
  GroupForm groups = GroupForm::kNone;
  int layers = 0;  // of a chain of launches, each of which computes as many columns of D; 0: none
  std::function<RankLauncher(const PeerCopy&)> prepare_ranks{};     // instead of prepare: needs several GPUs
  std::function<RankLauncher(const GatherGemm&)> prepare_gather{};  // the same of a product over them
  std::function<RankLauncher(const ScatterGemm&)>
      prepare_scatter{};        // of one whose sums are spread over them
  bool by_copy_engine = false;  // of the first two: no SM copies

  bool takes_groups() const { return groups != GroupForm::kNone; }
  bool takes_placed_groups() const {
    return groups == GroupForm::kPlaced || groups == GroupForm::kPlacedKnown ||
           groups == GroupForm::kPlacedSizes;
  }
};

/// Whether a row of D must lie in one tile.
inline bool needs_whole_rows(const Variant& variant) {
  return variant.epilogues.reduction == Reduction::kTopKSoftmax;
}
/// The shape, or where a row of D must lie in one tile, that of its last column of tiles. Where D's elements
/// are bytes or less, N is rounded up to what TMA takes.
inline Shape fitting_shape(const Variant& variant, Shape shape) {
  if (needs_whole_rows(variant) && shape.n > variant.tile.n)
    shape.n = shape.n % variant.tile.n == 0 ? variant.tile.n : shape.n % variant.tile.n;
  constexpr int kVectorBits = 128;  // a row of D is whole ones
  if (const int bits = bits_of(variant.types.d); bits <= 8)
    shape.n = ceil_div(shape.n, kVectorBits / bits) * (kVectorBits / bits);
  return shape;
}

/// Prepares a problem whose epilogue the variant computes. Throws std::invalid_argument where C, the bias or
/// an auxiliary tensor is not as long as D needs it, another epilogue is compiled in, or its groups are not
/// rows of A in ascending order; what TMA refuses of an address is said by make_tensor_map.
Launcher prepare(const Variant& variant, const Problem& problem);  // check_problem.cpp

struct Step {
  std::string name;       // the folder: "01_naive"
  std::string title;      // the one new idea
  std::string builds_on;  // the step whose kernel it continues, "15_tma_store"; empty: the step before it
  MathUnit unit = MathUnit::kFma;
  Architecture architecture = Architecture::kSm80;
  Contract contract;
  Epilogue epilogue;              // that it computes unless another one is asked for
  std::vector<Variant> variants;  // the first is the default

  /// Whether it is about several GPUs. It has no place in a comparison of kernels of one GPU.
  bool takes_ranks() const {
    return gathers() || scatters() || (!variants.empty() && variants.front().prepare_ranks != nullptr);
  }
  /// Whether it multiplies there.
  bool gathers() const { return !variants.empty() && variants.front().prepare_gather != nullptr; }
  bool scatters() const { return !variants.empty() && variants.front().prepare_scatter != nullptr; }
};

/// The step that a folder's kernel.cuh defines. One that was copied and still has the name of another would
/// run under it.
inline const Step& step_of_folder(const Step& step, const std::string& folder) {
  if (step.name == folder) return step;
  throw std::runtime_error("steps/" + folder + "/kernel.cuh says that its name is '" + step.name +
                           "'; the name in kStep must be the folder's, '" + folder + "'");
}

}  // namespace gemm
