// The one way in which steps start their kernels. A step says its grid, which decides for a shape how many
// CTAs there are, and a function that makes the kernel's arguments, tensor maps among them, of a problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/problem.h"
#include "gemm/problem/step.h"
#include "ptx/launch.cuh"
#include "ptx/workspace.h"

namespace gemm {

/// What a grid decides for a shape. A grid may decide more, and derive its plan from this one: the harness
/// hears of `workspace_bytes` and `busiest_tiles` where there are such members (Variant).
struct LaunchPlan {
  ptx::LaunchShape launch;
};

/// A grid is a struct with a Tile, of kM x kN x kK, and with plan(kernel, shape). Where not the shape but the
/// groups of a problem say how many tiles there are, it also has plan(kernel, problem).
template <typename Grid>
auto plan_problem(const void* kernel, const Problem& problem) {
  if constexpr (requires { Grid::plan(kernel, problem); }) {
    return Grid::plan(kernel, problem);
  } else {
    return Grid::plan(kernel, problem.shape);
  }
}

/// An argument of which each stream has its own: device memory, zeroed before it is used the first time.
class StreamMemory {
 public:
  explicit StreamMemory(std::int64_t bytes)
      : memory_(std::make_shared<ptx::Workspace>(static_cast<std::size_t>(bytes))) {}
  void* operator()(ptx::Stream stream) const { return memory_->of(stream); }

 private:
  std::shared_ptr<ptx::Workspace> memory_;
};

/// A copy of `elements` in device memory, which lives as long as the pointer.
template <typename Element>
std::shared_ptr<const Element> device_copy(const std::vector<Element>& elements) {
  const auto copy = std::make_shared<ptx::DeviceCopy>(elements.data(), elements.size() * sizeof(Element));
  return {copy, static_cast<const Element*>(copy->memory())};
}

/// An argument as a launch on `stream` takes it: what depends on the stream is a function of it.
template <typename Argument>
decltype(auto) argument_of(const Argument& argument, ptx::Stream stream) {
  if constexpr (std::is_invocable_v<const Argument&, ptx::Stream>) {
    return argument(stream);
  } else {
    return (argument);
  }
}

/// The arguments of a kernel that takes the multiplication and nothing else.
struct GemmAlone {
  std::tuple<Gemm> operator()(const Gemm& gemm) const { return gemm; }
};

/// Decides and makes once what every launch of kKernel needs for this problem. arguments(problem), or
/// arguments(problem, plan), returns a tuple of what the kernel takes, in its order.
template <auto kKernel, typename Grid, typename Arguments = GemmAlone>
Launcher prepare_kernel(const Problem& problem, const Arguments& arguments = {}) {
  const auto plan = plan_problem<Grid>(ptx::kernel_handle(kKernel), problem);
  if (plan.launch.grid.count() == 0) return [](ptx::Stream) {};  // no group has a row
  const auto make = [&] {
    if constexpr (std::is_invocable_v<const Arguments&, const Problem&, decltype(plan)>) {
      return arguments(problem, plan);
    } else {
      return arguments(problem);
    }
  };
  return [launch = plan.launch, made = make()](ptx::Stream stream) {
    const auto start = [&](const auto&... each) {
      // ANCHOR: launch
      ptx::launch(kKernel, launch, stream, argument_of(each, stream)...);
      // ANCHOR_END: launch
    };
    std::apply(start, made);
  };
}

/// A variant whose kernel is kKernel. Given are its name, summary, stages and traffic, and what differs from
/// the rule: another tile than the grid's, or types, epilogues and groups that the kernel takes.
template <auto kKernel, typename Grid, typename Arguments = GemmAlone>
Variant variant_of(Variant given, const Arguments& arguments = {}) {
  using Tile = typename Grid::Tile;
  using Plan = decltype(Grid::plan(nullptr, Shape{}));
  static constexpr auto kPlan = [](const Shape& shape) {
    return Grid::plan(ptx::kernel_handle(kKernel), shape);
  };
  if (given.tile.m == 0) given.tile = {Tile::kM, Tile::kN, Tile::kK};
  given.kernel = ptx::kernel_handle(kKernel);
  given.launch_shape = [](const Shape& shape) { return kPlan(shape).launch; };
  given.prepare = [arguments](const Problem& problem) {
    return prepare_kernel<kKernel, Grid>(problem, arguments);
  };
  if constexpr (requires(Plan one) { one.workspace_bytes; })
    given.workspace_bytes = [](const Shape& shape) { return kPlan(shape).workspace_bytes; };
  if constexpr (requires(Plan one) { one.busiest_tiles; })
    given.busiest_tiles = [](const Shape& shape) { return kPlan(shape).busiest_tiles; };
  return given;
}

}  // namespace gemm
