// Groups that lie anywhere in memory, as step 54 knows them, and the tensor maps that the host makes of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "gemm/launch/groups.cuh"
#include "gemm/launch/launch.cuh"
#include "gemm/problem/gemm.h"
#include "gemm/problem/groups.h"
#include "gemm/problem/problem.h"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/core.cuh"
#include "ptx/launch_shape.h"
#include "ptx/memory.cuh"
#include "ptx/tensor_map.h"

namespace gemm::step_54 {

/// What a kernel knows of groups that lie anywhere.
struct PlacedGroups {
  const PlacedGroup* groups;  // [count], in device memory
  int count;

  __device__ __forceinline__ GroupRows rows(int group) const {
    return {0, std::max(ptx::ld_global(&groups[group].rows), 0)};
  }
};

/// The same for groups that have an N and a K of their own.
struct SizedGroups : PlacedGroups {
  Shape shape;  // the problem's, for groups that have no N or K of their own

  __device__ __forceinline__ GroupSize own(int group) const {
    const GroupSize size = ptx::ld_global(&groups[group].own);
    return {size.n != 0 ? size.n : shape.n, size.k != 0 ? size.k : shape.k};
  }
};

/// The tensor maps of a group.
struct GroupMaps {
  ptx::TensorMap a;
  ptx::TensorMap b;
  ptx::TensorMap d;
};
static_assert(sizeof(GroupMaps) == std::size_t{3} * 128,
              "a tensor map is 128 bytes, and begins at a multiple of that");

/// The groups of a problem, where its memory is: those that the host knows, or rows of one A.
inline std::vector<PlacedGroup> known_groups(const Problem& problem) {
  if (problem.placed != nullptr) return problem.known;
  const auto [m, n, k] = problem.shape;
  std::vector<PlacedGroup> placed;
  for (const GroupRows& rows : groups_of(problem)) {
    const auto index = static_cast<int>(placed.size());
    placed.push_back({problem.a + offset(rows.begin, 0, k), problem.b + offset(index * n, 0, k),
                      problem.d + offset(rows.begin, 0, n), rows.count(), k, k, n});
  }
  return placed;
}

/// What the kernel gets: the groups and, if they may have sizes of their own, the shape of the problem.
template <typename Groups>
Groups groups_of(const PlacedGroups& placed, const Shape& shape) {
  if constexpr (std::is_same_v<Groups, SizedGroups>) {
    return {placed, shape};
  } else {
    return placed;
  }
}

/// The argument: the problem's own table, or one of groups that are rows of one A.
template <typename Groups>
auto table_of(const Problem& problem) {
  const std::vector<PlacedGroup> known = known_groups(problem);
  const bool has_own = problem.placed != nullptr;
  return [copy = device_copy(has_own ? std::vector<PlacedGroup>{} : known), own = problem.placed,
          count = has_own ? problem.placed_count : static_cast<int>(known.size()),
          shape = problem.shape](ptx::Stream) {
    return groups_of<Groups>({own != nullptr ? own : copy.get(), count}, shape);
  };
}

/// The maps of a group. TMA clips at its last row.
template <typename T>
GroupMaps maps_of(const PlacedGroup& group, const Shape& shape) {
  constexpr ptx::Swizzle kSwizzle = kPanelSwizzle<T::kPanelK>;
  const auto map = [](const bf16* base, int rows, int columns, int pitch, int box_rows, int box_columns,
                      ptx::Swizzle swizzle) {
    auto spec = ptx::matrix_spec(base, rows, columns, box_rows, box_columns, swizzle);
    spec.stride_bytes[1] = static_cast<std::uint64_t>(pitch) * sizeof(bf16);
    return ptx::make_tensor_map(spec);
  };
  return {map(group.a, group.rows, shape.k, group.a_pitch, T::kM, T::kPanelK, kSwizzle),
          map(group.b, shape.n, shape.k, group.b_pitch, T::kN, T::kPanelK, kSwizzle),
          map(group.d, group.rows, shape.n, group.d_pitch, 64, 64, ptx::Swizzle::k128B)};
}

/// The maps to copy and change: each has one row somewhere in device memory, and nobody reads it.
template <typename T>
GroupMaps pattern_of(const Shape& shape, const void* device_memory) {
  auto* const somewhere = reinterpret_cast<bf16*>(reinterpret_cast<std::uintptr_t>(device_memory) / 16 * 16);
  return maps_of<T>({somewhere, somewhere, somewhere, 1, shape.k, shape.k, shape.n}, shape);
}

/// The argument: kMaps slots for each CTA, whose maps it changes in turn, or if kMaps is 0, the maps that the
/// host makes for each group.
template <typename T, int kMaps>
auto maps_of_ctas(const Problem& problem, const ptx::LaunchShape& launch) {
  std::vector<GroupMaps> made;
  if (kMaps == 0) {
    for (const PlacedGroup& group : known_groups(problem))
      made.push_back(group.rows > 0 ? maps_of<T>(group, problem.shape) : GroupMaps{});
  }
  const auto bytes = static_cast<std::int64_t>(sizeof(GroupMaps) * launch.grid.x * kMaps);
  return [of_the_host = device_copy(made), memory = StreamMemory(bytes)](ptx::Stream stream) {
    return kMaps == 0 ? const_cast<GroupMaps*>(of_the_host.get()) : static_cast<GroupMaps*>(memory(stream));
  };
}

}  // namespace gemm::step_54
