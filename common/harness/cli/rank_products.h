// The times of products over several GPUs: how they are printed, and what a record has of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "gemm/problem/step.h"
#include "harness/timing/ranks.h"

namespace harness {

/// A line for each contestant, and the limit: how much faster than one after the other the product and the
/// copies can be, if they hide each other. `shape` is that of all ranks together.
void print_products(const gemm::Shape& shape, const std::vector<RankContestant>& contestants);

/// What a record has of such a race, in its array "gathers".
nlohmann::json products_to_json(const gemm::Step& step, const gemm::Shape& shape, int ranks,
                                const std::string& topology, const std::vector<RankContestant>& contestants);

}  // namespace harness
