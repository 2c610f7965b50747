#include "harness/mutants.h"

#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/verify.h"

namespace {

using harness::Pattern;

TEST_CASE("every mutant is rejected, by its own check and for its own reason") {
  const gemm::TileShape tile = GENERATE(gemm::TileShape{16, 16, 1}, gemm::TileShape{128, 64, 32},
                                        gemm::TileShape{32, 8, 16}, gemm::TileShape{64, 256, 64});
  const gemm::Shape shape = harness::mutant_shape({1, 8, 8}, tile);
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal, Pattern::kUniform}) {
    const harness::RunImage correct = harness::correct_image(shape, pattern, 1);
    const harness::Acceptance acceptance = harness::host_acceptance(shape, pattern, 1);
    REQUIRE(harness::verify(correct, acceptance, tile).ok);
    for (const harness::Mutant& mutant : harness::mutants()) {
      if (mutant.exact_only && pattern != Pattern::kExact) continue;
      harness::RunImage damaged = correct;
      mutant.damage(damaged, tile);
      const harness::CheckResult result = harness::verify(damaged, acceptance, tile);
      const harness::Judgement judgement = harness::judge(mutant, result);
      CAPTURE(mutant.name, harness::to_string(pattern), tile.m, tile.n, tile.k, judgement.text,
              result.report);
      CHECK_FALSE(result.ok);
      CHECK(result.failed == std::vector<std::string>{mutant.check});
      CHECK(judgement.ok);
    }
  }
}

TEST_CASE("the mutants cover every check") {
  std::set<std::string> checks;
  for (const harness::Mutant& mutant : harness::mutants()) checks.insert(mutant.check);
  CHECK(checks == std::set<std::string>{harness::kNeverWritten, harness::kNan, harness::kInfinity,
                                        harness::kValue, harness::kGuardBefore, harness::kGuardAfter,
                                        harness::kInputA, harness::kInputB});
}

TEST_CASE("a mutant that is accepted, or rejected for another reason, is a failure") {
  const harness::Mutant mutant{"test", harness::kNan, "one element", false, nullptr};
  harness::CheckResult result{.ok = true, .report = "", .summary = "fine", .failed = {}};
  CHECK_FALSE(harness::judge(mutant, result).ok);
  CHECK(harness::judge(mutant, result).text == "ACCEPTED");
  result = {.ok = false, .report = "one element", .summary = "", .failed = {harness::kValue}};
  CHECK_FALSE(harness::judge(mutant, result).ok);
  result.failed = {harness::kNan, harness::kValue};
  CHECK_FALSE(harness::judge(mutant, result).ok);
  result.failed = {harness::kNan};
  CHECK(harness::judge(mutant, result).ok);
  result.report = "two elements";
  CHECK_FALSE(harness::judge(mutant, result).ok);
}

TEST_CASE("the shape for the mutants obeys the contract and has ragged edges") {
  for (const gemm::TileShape& tile : {gemm::TileShape{16, 16, 1}, {128, 256, 64}, {64, 64, 16}}) {
    for (const gemm::Contract& contract : {gemm::Contract{1, 1, 1}, {1, 8, 8}, {4, 16, 32}}) {
      const gemm::Shape shape = harness::mutant_shape(contract, tile);
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
