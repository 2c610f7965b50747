// The second kernel of the unfused baseline, against the reference.
#include "harness/timing/gpu/elementwise.h"

#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/verify/workload/workload.h"

namespace {

using gemm::Activation;
using gemm::Bias;

constexpr gemm::Epilogue kEpilogues[] = {
    {1, 1, Bias::kNone, Activation::kNone},        {-0.5F, 2, Bias::kColumn, Activation::kRelu},
    {1, 0, Bias::kRow, Activation::kSilu},         {1, 0, Bias::kColumn, Activation::kGelu},
    {1, 0, Bias::kColumn, Activation::kLeakyRelu}, {1, 0.5F, Bias::kNone, Activation::kGeluErf}};

TEST_CASE("the elementwise kernel computes every epilogue", "[device]") {
  const gemm::Shape shape{301, 1032, 136};
  for (const gemm::Epilogue& epilogue : kEpilogues) {
    harness::Workload workload(shape, harness::Pattern::kNormal, 1, {.epilogue = epilogue, .c_pitch = 1040});
    workload.poison();
    const gemm::Problem problem = workload.problem();
    harness::cublas_default().prepare(problem)(nullptr);
    harness::launch_elementwise(problem, nullptr);
    harness::synchronize();
    const harness::CheckResult result = workload.check({128, 128, 64}, epilogue, {.product = true});
    INFO(result.report);
    CHECK(result.ok);
  }
}

TEST_CASE("cuBLASLt computes the epilogues that it is said to have", "[device]") {
  if (!harness::baselines_problem().empty()) {
    skip_test(harness::baselines_problem().c_str());
    return;
  }
  const gemm::Shape shape{512, 1024, 256};
  for (const gemm::Epilogue& epilogue : kEpilogues) {
    if (!harness::cublaslt_has(epilogue)) continue;
    const harness::ProblemForm form{.epilogue = epilogue};
    harness::Workload workload(shape, harness::Pattern::kNormal, 1, form);
    const auto candidates = harness::cublaslt_candidates(shape, form);
    REQUIRE_FALSE(candidates.empty());
    workload.poison();
    candidates.front().prepare(workload.problem())(nullptr);
    harness::synchronize();
    const harness::CheckResult result = workload.check({128, 128, 64});
    INFO(result.report);
    CHECK(result.ok);
  }
}

}  // namespace
