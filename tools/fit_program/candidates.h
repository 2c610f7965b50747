// Which shapes and plans of step 22 are worth a measurement, for its model to learn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gemm/fitted/fitted_plan.h"
#include "gemm/problem/gemm.h"
#include "ptx/card.h"

namespace fit {

/// A tile of step 22 with a plan, and how many microseconds the model expects of it, doubts included.
struct Candidate {
  std::size_t tile = 0;
  gemm::FittedPlan plan;
  double us = 0;
};

/// The plans of a shape that are worth a measurement: those that the model thinks most of, and beside them
/// some of each kind that it may think too little of. For these the arithmetic has half a say.
std::vector<Candidate> candidates(const gemm::Shape& shape, const gemm::Card& card);

/// Tile and plan as the lines of docs/results/plans_h200.txt.bz2 have them.
std::string to_line(const Candidate& candidate);

/// `count` shapes of a layer of weights with few rows before it: M from 16 to 256, N and K multiples of 64, N
/// from 2048 to 49152 and K from 512 to 16384, all log-uniform.
std::vector<gemm::Shape> weight_shapes(int count, std::uint64_t seed);

}  // namespace fit
