// Which plans are timed for step 22's model to learn from.
#include "candidates.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "22_peak/chosen_plan.h"
#include "catch.h"
#include "harness/base/problem.h"
#include "harness/record/population.h"

namespace {

using fit::Candidate;
using gemm::Shape;
using gemm::step_22::kTiles;

std::vector<Shape> some_shapes() {
  std::vector<Shape> shapes = harness::population_shapes(6, 5);
  const std::vector<Shape> weights = fit::weight_shapes(6, 5);
  shapes.insert(shapes.end(), weights.begin(), weights.end());
  return shapes;
}

TEST_CASE("what the model would choose is timed first, and no plan twice") {
  for (const Shape& shape : some_shapes()) {
    INFO(harness::to_string(shape));
    const std::vector<Candidate> all = fit::candidates(shape, gemm::kH200);
    const gemm::step_22::Plan best = gemm::step_22::choose(shape, gemm::kH200);
    REQUIRE(!all.empty());
    CHECK(all.front().tile == best.tile);
    CHECK(all.front().us == best.us * best.doubt);
    std::set<std::string> lines;
    for (const Candidate& candidate : all) lines.insert(fit::to_line(candidate));
    CHECK(lines.size() == all.size());
    CHECK(all.size() <= 27);
  }
}

TEST_CASE("kinds of plans that the model thinks little of are timed, too") {
  std::size_t of_other_kinds = 0;
  for (const Shape& shape : some_shapes()) {
    const std::vector<Candidate> all = fit::candidates(shape, gemm::kH200);
    of_other_kinds += all.size() > 15;
    for (const Candidate& candidate : all) CHECK(candidate.us <= 1.2 * all.front().us);
  }
  CHECK(of_other_kinds > 6);
}

TEST_CASE("a line of a plan can be read again") {
  for (const Shape& shape : some_shapes()) {
    for (const Candidate& candidate : fit::candidates(shape, gemm::kH200)) {
      std::istringstream line(fit::to_line(candidate));
      std::string name;
      gemm::FittedPlan plan;
      line >> name >> plan.transposed >> plan.cluster.m >> plan.cluster.n >> plan.stream_k_tiles >>
          plan.workers >> plan.lockstep >> plan.parts;
      REQUIRE(line);
      CHECK(gemm::step_22::number_of(name) == candidate.tile);
      CHECK(plan.transposed == candidate.plan.transposed);
      CHECK(plan.cluster.m == candidate.plan.cluster.m);
      CHECK(plan.cluster.n == candidate.plan.cluster.n);
      CHECK(plan.stream_k_tiles == candidate.plan.stream_k_tiles);
      CHECK(plan.workers == candidate.plan.workers);
      CHECK(plan.lockstep == candidate.plan.lockstep);
      CHECK(plan.parts == candidate.plan.parts);
    }
  }
}

TEST_CASE("layers of weights are legal, and the same for the same seed") {
  const std::vector<Shape> shapes = fit::weight_shapes(200, 9);
  CHECK(shapes.size() == 200);
  for (const Shape& shape : shapes) {
    INFO(harness::to_string(shape));
    CHECK(shape.m >= 16);
    CHECK(shape.m <= 256);
    CHECK(shape.n % 64 == 0);
    CHECK(shape.n >= 1984);
    CHECK(shape.n <= 49152);
    CHECK(shape.k % 64 == 0);
    CHECK(shape.k >= 448);
    CHECK(shape.k <= 16384);
  }
  const auto same = [](const Shape& one, const Shape& other) {
    return one.m == other.m && one.n == other.n && one.k == other.k;
  };
  const std::vector<Shape> again = fit::weight_shapes(200, 9);
  CHECK(std::equal(shapes.begin(), shapes.end(), again.begin(), same));
  const std::vector<Shape> others = fit::weight_shapes(200, 10);
  CHECK(!std::equal(shapes.begin(), shapes.end(), others.begin(), same));
}

}  // namespace
