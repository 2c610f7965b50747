// That damaged results are rejected.
#pragma once

#include "catch.h"
#include "harness/verify/injected_faults.h"

/// Damages a correct image in each of these ways: verify(image) must reject it by the fault's own check and
/// for its own reason. `arguments` are those of Fault::damage after the image.
template <typename Faults, typename Image, typename Verify, typename... Arguments>
void check_rejected(const Faults& faults, harness::Pattern pattern, const Image& correct,
                    const Verify& verify, const Arguments&... arguments) {
  const auto check = [&](const auto& fault, const Image& damaged) {
    const harness::CheckResult result = verify(damaged);
    INFO(harness::to_string(pattern) << ", " << fault.name << "\n" << result.report);
    CHECK(harness::judge(fault, result).text == "rejected by " + fault.check);
  };
  harness::for_each_fault(faults, pattern, correct, check, arguments...);
}
