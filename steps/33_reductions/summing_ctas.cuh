// How step 33's kernels are started: with zeros where atomics add, or with a workspace for the partials of
// tiles whose sums are added in a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "gemm/epilogue/epilogue_place.cuh"
#include "gemm/launch/grids.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "nodes.cuh"
#include "ptx/workspace.h"

namespace gemm::step_33 {

/// How the sums of tiles become those of D.
enum class Combine { kAtomic, kOrdered };

/// Persistent CTAs. Those that sum in a fixed order have a workspace.
template <typename T, typename Shared, int kThreads, Reduction kReduction, Combine kCombine>
struct SummingCtas : PersistentCtas<T, Shared, kThreads> {
  static constexpr bool kColumns = kReduction == Reduction::kColumnSums;
  static constexpr bool kHasWorkspace = is_sum(kReduction) && kCombine == Combine::kOrdered;
  using Plan = std::conditional_t<kHasWorkspace, WorkspacePlan, LaunchPlan>;

  static std::size_t partials_of(const Shape& shape) {
    return static_cast<std::size_t>(clustered_ctas<T>(shape)) *
           static_cast<std::size_t>(kColumns ? T::kN : T::kM);
  }
  static Plan plan(const void* kernel, const Shape& shape) {
    const LaunchPlan plan = PersistentCtas<T, Shared, kThreads>::plan(kernel, shape);
    if constexpr (kHasWorkspace) {
      const int counters = kColumns ? ceil_div(shape.n, T::kN) : ceil_div(shape.m, T::kM);
      const std::size_t words = partials_of(shape) + static_cast<std::size_t>(counters);
      return {plan, static_cast<std::int64_t>(words * sizeof(float))};
    } else {
      return plan;
    }
  }
  /// As a function of the stream: what the launches of a stream share, and what each sets to zero.
  static auto arguments(const Problem& problem, const Plan& plan) {
    ReductionArguments given{tree_arguments(problem), problem.reduced, nullptr, nullptr,
                             problem.epilogue.top_k,  nullptr};
    if (problem.types.d == Type::kE4m3) {
      if (problem.scales == nullptr)
        throw std::invalid_argument("D is e4m3 and has a scale, but the address of the scales is null");
      given.d_scale = problem.scales + 2;
    }
    if constexpr (kHasWorkspace) {
      return [given, partials = partials_of(problem.shape),
              memory = StreamMemory(plan.workspace_bytes)](ptx::Stream stream) {
        ReductionArguments arguments = given;
        arguments.partials = static_cast<float*>(memory(stream));
        arguments.counters = reinterpret_cast<std::uint32_t*>(arguments.partials + partials);
        return arguments;
      };
    } else {
      return [given, elements = reduced_elements(kReduction, problem.shape)](ptx::Stream stream) {
        if (elements > 0)
          ptx::set_zero(given.result, static_cast<std::size_t>(elements) * sizeof(float), stream);
        return given;
      };
    }
  }
};

}  // namespace gemm::step_33
