#include "harness/verify/injected_faults.h"

#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/verify/verify.h"
#include "rejected.h"

namespace {

using harness::Pattern;

TEST_CASE("every injected fault is rejected, by its own check and for its own reason") {
  const gemm::TileShape tile = GENERATE(gemm::TileShape{16, 16, 1}, gemm::TileShape{128, 64, 32},
                                        gemm::TileShape{32, 8, 16}, gemm::TileShape{64, 256, 64});
  const gemm::Shape shape = harness::injected_fault_shape({1, 8, 8}, tile);
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kUniform}) {
    const harness::RunImage correct = harness::correct_image(shape, pattern, 1);
    const harness::Acceptance acceptance = harness::host_acceptance(shape, pattern, 1);
    REQUIRE(harness::verify(correct, acceptance, tile).ok);
    const auto verify = [&](const harness::RunImage& image) {
      return harness::verify(image, acceptance, tile);
    };
    CAPTURE(tile.m, tile.n, tile.k);
    check_rejected(harness::injected_faults(), pattern, correct, verify, tile);
  }
}

TEST_CASE("the injected faults cover every check") {
  std::set<std::string> checks;
  for (const harness::InjectedFault& fault : harness::injected_faults()) checks.insert(fault.check);
  CHECK(checks == std::set<std::string>{harness::kNeverWritten, harness::kNan, harness::kInfinity,
                                        harness::kValue, harness::kGuardBefore, harness::kGuardAfter,
                                        harness::kInputA, harness::kInputB});
}

TEST_CASE("an injected fault that is accepted, or rejected for another reason, is a failure") {
  const harness::InjectedFault fault{"test", harness::kNan, "one element", false, nullptr};
  harness::CheckResult result{.ok = true, .report = "", .summary = "fine", .failed = {}};
  CHECK_FALSE(harness::judge(fault, result).ok);
  CHECK(harness::judge(fault, result).text == "ACCEPTED");
  result = {.ok = false, .report = "one element", .summary = "", .failed = {harness::kValue}};
  CHECK_FALSE(harness::judge(fault, result).ok);
  result.failed = {harness::kNan, harness::kValue};
  CHECK_FALSE(harness::judge(fault, result).ok);
  result.failed = {harness::kNan};
  CHECK(harness::judge(fault, result).ok);
  result.report = "two elements";
  CHECK_FALSE(harness::judge(fault, result).ok);
}

TEST_CASE("the shape for the injected faults obeys the contract and has ragged edges") {
  for (const gemm::TileShape& tile : {gemm::TileShape{16, 16, 1}, {128, 256, 64}, {64, 64, 16}}) {
    for (const gemm::Contract& contract : {gemm::Contract{1, 1, 1}, {1, 8, 8}, {4, 16, 32}}) {
      const gemm::Shape shape = harness::injected_fault_shape(contract, tile);
      CHECK(shape.m == shape.n);
      CHECK(shape.m > tile.m);
      CHECK(shape.n > tile.n);
      CHECK(shape.k > tile.k);
      CHECK(shape.m % contract.m_multiple == 0);
      CHECK(shape.n % contract.n_multiple == 0);
      CHECK(shape.k % contract.k_multiple == 0);
    }
  }
}

}  // namespace
