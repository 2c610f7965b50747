// Step 40: every layout at every kind of edge, with exact and random inputs, and under many schedules.
#include <string>
#include <vector>

#include "catch.h"
#include "harness/base/problem.h"
#include "launches.h"
#include "schedules.h"
#include "verify_shape.h"

namespace {

using gemm::Major;
using harness::Pattern;

gemm::Problem problem_of(gemm::Types types) {
  gemm::Problem problem;
  problem.types = types;
  return problem;
}

}  // namespace

TEST_CASE("each layout is exact at every kind of edge", "[device]") {
  if (skip_where_step_cannot_run()) return;
  // One unit of 16 bytes each way, less than a panel, a panel and a bit, two tiles and a bit; a slab that is
  // begun.
  for (const gemm::Shape& shape : {gemm::Shape{8, 8, 8}, {56, 264, 72}, {136, 184, 24}, {264, 520, 136}}) {
    for (const gemm::Variant& variant : step_under_test().variants)
      verify(step_under_test(), variant, shape, Pattern::kExact, 1);
  }
}

TEST_CASE("random numbers of each layout stay inside their bound, and identity and arange are exact",
          "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    for (const Pattern pattern : {Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange})
      verify(step_under_test(), variant, {136, 272, 104}, pattern, 2);
  }
}

TEST_CASE("D of no layout depends on the schedule", "[emulator]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    if (variant.types.are_k_major()) continue;  // step 15's
    under_schedules(10, 2, [&](std::uint64_t seed) {
      verify(step_under_test(), variant, {264, 136, 328}, Pattern::kExact, seed);
    });
  }
}

TEST_CASE("a plan sees the inputs of now, launch after launch", "[device]") {
  if (skip_where_step_cannot_run()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    verify_relaunched(variant, {136, 288, 144});
  }
}

TEST_CASE(
    "operands that lie another way round are refused, and the sentence names the step that takes them") {
  using gemm::Type;
  const gemm::Variant& nn = harness::find_variant(step_under_test(), "nn");
  CHECK_THROWS_WITH(gemm::prepare(nn, problem_of({.major_b = Major::kMn})),
                    "the variant nn takes A M-major and B K-major, and the problem has A K-major and B "
                    "N-major: step 40 has a "
                    "variant for each layout");
  CHECK_THROWS_WITH(gemm::prepare(nn, problem_of({Type::kFp16, Type::kFp16, Type::kFp16, Major::kMn})),
                    "the variant nn multiplies bf16 by bf16 to bf16, and the problem is fp16 by fp16 to "
                    "fp16: step 42 has a "
                    "variant for each type");
  CHECK_THROWS_WITH(
      gemm::prepare(nn, problem_of({Type::kE4m3, Type::kE4m3, Type::kBf16, Major::kK, Major::kMn})),
      "B is e4m3 and N-major, and the tensor cores read only 16-bit operands so: transpose it first, so that "
      "K is "
      "contiguous");
  CHECK_THROWS_WITH(gemm::prepare(nn, problem_of({Type::kTf32, Type::kTf32, Type::kFp32, Major::kMn})),
                    "A is tf32 and M-major, and the tensor cores read only 16-bit operands so: transpose it "
                    "first, so that K is "
                    "contiguous");
}
