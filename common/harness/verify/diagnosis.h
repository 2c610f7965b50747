// From wrong elements to the likely bug: which mistake would have produced exactly them.
#pragma once

#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/verify/inputs.h"
#include "harness/verify/survey.h"
#include "harness/verify/verify.h"

namespace harness {

/// Sentences, best first, each about a mistake that gives what is in D at (nearly) all of `samples`, which
/// are wrong elements of the kind Wrong::kValue. Empty when nothing fits.
std::vector<std::string> explain(const Acceptance& acceptance, const gemm::bf16* d, const Inputs& inputs,
                                 const gemm::TileShape& tile, const std::vector<Element>& samples);

}  // namespace harness
