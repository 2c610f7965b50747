// Every variant of a step, on shapes that hit every edge, verified as strictly as a reader's run.
#include <algorithm>
#include <vector>

#include "steps/schedules.h"
#include "steps/verify_shape.h"

namespace {

using gemm::Shape;

constexpr int kEdges[] = {1, 7, 31, 32, 33, 64, 96, 127, 128, 129, 200, 257};
constexpr int kEdgeCount = static_cast<int>(std::size(kEdges));

/// Each edge size appears twice as M, as N and as K, in combinations spread over the cube; then the extremes.
std::vector<Shape> sampled_shapes() {
  std::vector<Shape> shapes;
  for (int i = 0; i < kEdgeCount; ++i) {
    shapes.push_back({kEdges[i], kEdges[(5 * i + 3) % kEdgeCount], kEdges[(7 * i + 1) % kEdgeCount]});
    shapes.push_back({kEdges[i], kEdges[(7 * i + 5) % kEdgeCount], kEdges[(11 * i + 4) % kEdgeCount]});
  }
  for (const Shape& extreme : {Shape{1, 1, 1}, Shape{257, 257, 1}, Shape{1500, 1, 33}, Shape{1, 1500, 33},
                               Shape{1, 1, 3000}, Shape{257, 129, 257}}) {
    shapes.push_back(extreme);
  }
  return shapes;
}

/// k-tiles in {1, S - 1, S, S + 1, 2 S + 1} of this variant, with a ragged tile in M, N and K.
std::vector<Shape> pipeline_shapes(const gemm::Step& step, const gemm::Variant& variant) {
  std::vector<Shape> shapes;
  for (const int k_tiles : k_tiles_around_stages(variant)) {
    if (k_tiles < 1) continue;
    const int k = k_tiles * variant.tile.k;
    shapes.push_back(inside_contract(step, {variant.tile.m + 3, 40, k}));
    shapes.push_back(inside_contract(step, {5, variant.tile.n + 8, k - variant.tile.k / 2}));
  }
  return shapes;
}

}  // namespace

TEST_CASE("the default variant is exact on sampled shapes", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  std::uint64_t seed = 1;
  for (const Shape& shape : sampled_shapes())
    verify(step, step.variants.front(), inside_contract(step, shape), harness::Pattern::kExact, seed++);
}

TEST_CASE("all variants are exact where edges meet", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) verify_where_edges_meet(step, variant);
}

TEST_CASE("pipelines start and drain at every number of k-tiles", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  for (const gemm::Variant& variant : step.variants) {
    if (variant.stages == 1 && &variant != &step.variants.front()) continue;
    for (const Shape& shape : pipeline_shapes(step, variant))
      verify(step, variant, shape, harness::Pattern::kExact, 7);
  }
}

TEST_CASE("random inputs stay inside the error bound", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  for (const harness::Pattern pattern : {harness::Pattern::kNormal, harness::Pattern::kUniform})
    verify(step, step.variants.front(), inside_contract(step, {129, 72, 200}), pattern, 11);
}

TEST_CASE("identity and arange inputs show every element in its place", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const gemm::Step& step = step_under_test();
  for (const harness::Pattern pattern : {harness::Pattern::kIdentity, harness::Pattern::kArange})
    verify(step, step.variants.front(), inside_contract(step, {96, 136, 72}), pattern, 1);
}

TEST_CASE("the result does not depend on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  const gemm::Variant& variant = step.variants.front();
  const Shape shape = inside_contract(step, {variant.tile.m / 2 + 1, 40, 2 * variant.tile.k + 9});
  under_schedules(6, 4, [&](std::uint64_t) { verify(step, variant, shape, harness::Pattern::kExact, 5); });
}

TEST_CASE("its contract names real limits", "[host]") {
  const gemm::Step& step = step_under_test();
  REQUIRE_FALSE(step.variants.empty());
  CHECK_NOTHROW(harness::check_contract(step, inside_contract(step, {33, 31, 7})));
  if (step.contract.k_multiple > 1)
    CHECK_THROWS_AS(harness::check_contract(step, {8, 8, step.contract.k_multiple + 1}), harness::Error);
  for (const gemm::Variant& variant : step.variants) {
    INFO(variant.name);
    CHECK_FALSE(variant.summary.empty());
    CHECK(variant.kernel != nullptr);
    const auto same_name = [&](const gemm::Variant& other) { return other.name == variant.name; };
    CHECK(std::count_if(step.variants.begin(), step.variants.end(), same_name) == 1);
  }
}
