// Weights: the part of typed.h that is about a B of 4 or 8 bits with a scale for each row and group of K.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/bf16.h"
#include "harness/verify/types/typed.h"

namespace harness {

/// Of row n and of a group of K. Exact patterns: a power of two, 1/4 to 2, so that no product is rounded;
/// others: any bf16 from 1/16 to 3/16.
gemm::bf16 group_scale(const TypedRules& rules, int n, int group);

/// B as it lies in memory, packed; and its scales, [K / group][N], with zero points where it has them.
std::vector<std::uint8_t> weight_input(const TypedRules& rules);
std::vector<std::uint8_t> scale_input(const TypedRules& rules);

/// The weights of an image times their scales, [n][k]. Exact: a product has 16 bits at most.
std::vector<float> scaled_weights(const TypedImage& image, const TypedRules& rules);

/// The same of the rules, rounded to the type of A: what a kernel multiplies that takes nothing else.
std::vector<std::uint8_t> wide_weights(const TypedRules& rules);

/// What would explain wrong values of an exact pattern at these places of D, or "".
std::string explain_weights(const TypedRules& rules, const std::vector<std::size_t>& samples,
                            const std::uint8_t* d);

}  // namespace harness
