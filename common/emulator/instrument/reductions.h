// What cp.reduce.async.bulk does with an element, and where a CTA is in its cluster.
//
// PTX ISA, "cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor".
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulator/async/tensor_map.h"
#include "emulator/async/tma.h"
#include "emulator/machine/sanitizer.h"
#include "emulator/machine/vector_types.h"

namespace emulator {

enum class ReductionKind { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor };

/// For elements that C++ computes with, or that convert to float and back (bf16, half).
/// What it touches was checked when the store was issued.
template <typename T, ReductionKind kKind>
EMULATOR_NOT_INSTRUMENTED void reduce_element(void* global, const void* brought) {
  T a{};
  T b{};
  std::memcpy(&a, global, sizeof a);
  std::memcpy(&b, brought, sizeof b);
  T result = a;
  if constexpr (kKind == ReductionKind::kAdd) {
    result = static_cast<T>(a + b);
  } else if constexpr (kKind == ReductionKind::kMin) {
    result = b < a ? b : a;
  } else if constexpr (kKind == ReductionKind::kMax) {
    result = a < b ? b : a;
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (kKind == ReductionKind::kInc) {
      result = a >= b ? 0 : a + 1;
    } else if constexpr (kKind == ReductionKind::kDec) {
      result = a == 0 || a > b ? b : a - 1;
    } else if constexpr (kKind == ReductionKind::kAnd) {
      result = a & b;
    } else if constexpr (kKind == ReductionKind::kOr) {
      result = a | b;
    } else {
      result = a ^ b;
    }
  }
  std::memcpy(global, &result, sizeof result);
}

template <typename T>
Reduction reduction(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::kAdd:
      return {&reduce_element<T, ReductionKind::kAdd>, sizeof(T)};
    case ReductionKind::kMin:
      return {&reduce_element<T, ReductionKind::kMin>, sizeof(T)};
    case ReductionKind::kMax:
      return {&reduce_element<T, ReductionKind::kMax>, sizeof(T)};
    case ReductionKind::kInc:
      return {&reduce_element<T, ReductionKind::kInc>, sizeof(T)};
    case ReductionKind::kDec:
      return {&reduce_element<T, ReductionKind::kDec>, sizeof(T)};
    case ReductionKind::kAnd:
      return {&reduce_element<T, ReductionKind::kAnd>, sizeof(T)};
    case ReductionKind::kOr:
      return {&reduce_element<T, ReductionKind::kOr>, sizeof(T)};
    default:
      return {&reduce_element<T, ReductionKind::kXor>, sizeof(T)};
  }
}
/// For the elements of a tensor map.
Reduction reduction_of(const TensorMapBits& map, ReductionKind kind);

// The running thread's CTA: its place in the cluster, the cluster's extent, the cluster's place in the grid,
// and their number.
uint3 cluster_ctaid();
uint3 cluster_nctaid();
uint3 cluster_id();
uint3 cluster_count();

}  // namespace emulator
