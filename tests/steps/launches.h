// What the tests of single steps share: shapes by tiles and k-tiles, and launches behind each other.
#pragma once

#include "verify_shape.h"

/// `tiles` tiles below each other, the last one ragged, and ragged in N and K.
inline gemm::Shape shape_of(const gemm::Variant& variant, int tiles, int k_tiles) {
  return {(tiles - 1) * variant.tile.m + 3, 40, k_tiles * variant.tile.k - 24};
}

/// Launches one plan several times, D poisoned before each, and verifies every time.
inline void verify_launches(const gemm::Variant& variant, const gemm::Shape& shape, int launches) {
  harness::Workload workload(shape, harness::Pattern::kExact, 3,
                             harness::form_of(step_under_test(), variant));
  const gemm::Launcher start = gemm::prepare(variant, workload.problem());
  for (int launch = 1; launch <= launches; ++launch) {
    workload.poison();
    start(nullptr);
    harness::synchronize();
    const harness::CheckResult result = workload.check(variant.tile);
    INFO(variant.name << " " << harness::to_string(shape) << ", launch " << launch << ":\n" << result.report);
    CHECK(result.ok);
  }
}

inline void verify_twice(const gemm::Variant& variant, const gemm::Shape& shape) {
  verify_launches(variant, shape, 2);
}
