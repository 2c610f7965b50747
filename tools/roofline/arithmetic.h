// What measurements of arithmetic rates have in common.
#pragma once

#include <functional>
#include <string>

#include "bench.h"

namespace roofline {

/// A probe with three figures: FLOP per clock and SM (at most `most_per_clock`), TFLOP/s of all SMs, and the
/// SM clock. `run` makes each SM execute `flop_per_sm` operations.
Probe arithmetic_probe(const Bench& bench, const std::string& name, const std::string& what,
                       const nlohmann::json& parameters, double flop_per_sm, double most_per_clock,
                       std::function<LaunchTime()> run);

}  // namespace roofline
