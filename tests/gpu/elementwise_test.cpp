// cuBLASLt with an epilogue of its own, and followed by a second kernel, against the reference.
#include "harness/timing/gpu/elementwise.h"

#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/timing/gpu/baselines.h"
#include "harness/verify/epilogue/epilogue.h"
#include "harness/verify/workload/workload.h"

namespace {

using gemm::Activation;
using gemm::Auxiliary;
using gemm::Bias;
using gemm::Reduction;

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

constexpr gemm::Epilogue kWithMore[] = {
    // Those of step 32.
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = Auxiliary::kResidual},
    {.alpha = 0.5F,
     .bias = Bias::kColumn,
     .activation = Activation::kGelu,
     .auxiliary = Auxiliary::kPreActivation},
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = Auxiliary::kPreActivation},
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .auxiliary = Auxiliary::kMask},
    {.auxiliary = Auxiliary::kMaskBackward},
    {.activation = Activation::kGelu, .auxiliary = Auxiliary::kPreActivationBackward},
    // Those of step 33.
    {.alpha = 0.5F, .auxiliary = Auxiliary::kMaskBackward, .reduction = Reduction::kColumnSums},
    {.activation = Activation::kGelu,
     .auxiliary = Auxiliary::kPreActivationBackward,
     .reduction = Reduction::kColumnSums},
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .reduction = Reduction::kColumnSums},
    {.bias = Bias::kColumn, .activation = Activation::kRelu, .reduction = Reduction::kRowSums},
    {.bias = Bias::kColumn, .reduction = Reduction::kAmax}};
constexpr gemm::Shape kOfOpponents{768, 1040, 256};  // N ends inside a word of a mask

/// What the first of the proposals computes.
void check_opponent(const std::vector<harness::Contestant>& candidates, const harness::ProblemForm& form) {
  INFO(harness::to_string(form.epilogue));
  REQUIRE_FALSE(candidates.empty());
  const harness::Contestant& opponent = candidates.front();
  INFO(opponent.name << ", " << opponent.variant);
  harness::Workload workload(kOfOpponents, harness::Pattern::kNormal, 1, form);
  const gemm::Problem problem = workload.problem();
  const gemm::Launcher launcher = opponent.prepare(problem);
  for (int launch = 0; launch < 2; ++launch) {  // the second one adds to nothing of the first
    workload.poison();
    launcher(nullptr);
    if (opponent.deliver) opponent.deliver(problem, nullptr);
    const harness::CheckResult result = workload.check({128, 128, 64}, form.epilogue, opponent.allowance);
    INFO(result.report);
    CHECK(result.ok);
  }
}

TEST_CASE("cuBLASLt computes gradients, masks and pre-activations as steps 32 and 33 define them",
          "[device]") {
  if (!harness::baselines_problem().empty()) {
    skip_test(harness::baselines_problem().c_str());
    return;
  }
  int fused = 0;
  for (const gemm::Epilogue& epilogue : kWithMore) {
    if (!harness::cublaslt_has(epilogue)) continue;
    const harness::ProblemForm form{.epilogue = epilogue};
    check_opponent(harness::cublaslt_candidates(kOfOpponents, form), form);
    ++fused;
  }
  CHECK(fused == 6);
}

TEST_CASE("cuBLASLt and one more kernel compute what steps 32 and 33 do", "[device]") {
  if (!harness::baselines_problem().empty()) {
    skip_test(harness::baselines_problem().c_str());
    return;
  }
  for (const gemm::Epilogue& epilogue : kWithMore) {
    CHECK(harness::unfused_has(epilogue));
    const harness::ProblemForm form{.epilogue = epilogue};
    check_opponent(harness::cublaslt_unfused_candidates(kOfOpponents, form), form);
  }
}

}  // namespace
