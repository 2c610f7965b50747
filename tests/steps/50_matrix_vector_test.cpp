// Step 50: every number of rows of A, and what a warp asks of memory, as the chapter counts it.
#include <algorithm>
#include <string>

#include "harness/backend/emulator_control.h"
#include "harness/verify/check_plan.h"
#include "verify_shape.h"

namespace {

/// What one verified launch reads of B. The lines are in the order of the source, where B comes before A.
harness::LineCount reads_of_b(const std::string& name, const gemm::Shape& shape) {
  harness::control_emulator({.counters = true});
  harness::take_emulator_counters();
  verify(step_under_test(), variant_named(name), shape, harness::Pattern::kExact, 1);
  harness::LineCount reads;
  for (const harness::LineCount& line : harness::take_emulator_counters().lines) {
    if (line.instruction == "ld_global" && reads.place.empty()) reads = line;
  }
  harness::control_emulator({});
  return reads;
}

constexpr std::uint64_t bytes_of_b(const gemm::Shape& shape) {
  return 2ull * static_cast<std::uint64_t>(shape.n) * static_cast<std::uint64_t>(shape.k);
}

}  // namespace

TEST_CASE("any number of rows of A, several of them more than a warp takes at once") {
  if (skip_where_step_cannot_run()) return;
  for (const int m : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17}) {
    for (const char* name : {"2_rows", "split_k", "m8", "lone_lanes"})
      verify(step_under_test(), variant_named(name), {m, 37, 1160}, harness::Pattern::kExact,
             static_cast<std::uint64_t>(m));
  }
}

TEST_CASE("rows shorter than a warp's first load, and one vector more than a round of loads", "[emulator]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    const int round = variant.tile.k * variant.stages;
    for (const int k : {8, 248, round - 8, round, round + 8})
      verify(step_under_test(), variant, {3, variant.tile.n + 1, std::max(8, k)}, harness::Pattern::kExact,
             2);
  }
}

TEST_CASE("B is read once for as many rows of A as a warp takes", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Shape shape{8, 64, 2048};
  CHECK(reads_of_b("m1", shape).bytes == 8 * bytes_of_b(shape));
  CHECK(reads_of_b("m2", shape).bytes == 4 * bytes_of_b(shape));
  CHECK(reads_of_b("m4", shape).bytes == 2 * bytes_of_b(shape));
  CHECK(reads_of_b("m8", shape).bytes == bytes_of_b(shape));
  CHECK(reads_of_b("2_rows", shape).bytes == bytes_of_b(shape));  // it has a kernel for 8 rows
}

TEST_CASE("the same bytes in other sectors: 16 a request for a row or for pairs of lanes, 32 for lone lanes",
          "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Shape shape{1, 256, 2048};
  const std::uint64_t requests = bytes_of_b(shape) / 512;
  for (const char* name : {"2_rows", "1_row", "split_k", "lane_pairs", "lone_lanes"}) {
    const harness::LineCount reads = reads_of_b(name, shape);
    INFO(name);
    CHECK(reads.bytes == bytes_of_b(shape));
    CHECK(reads.requests == requests);
    CHECK(reads.sectors == (name == std::string("lone_lanes") ? 32 : 16) * requests);
  }
}
