// What Hopper's tensor cores make of a long sum of fp8 products when nobody promotes it. Explains results;
// the reference is binary64.
#pragma once

#include <cstdint>

#include "gemm/problem/types.h"

namespace harness {

/// The products of k elements of two rows, 32 at a time: these and the accumulator are aligned to the largest
/// exponent among them, 13 bits of fraction are kept, and so are the 14 leading bits of their sum.
/// docs/verification.md, "Other types".
float fp8_chain(const gemm::Types& types, const std::uint8_t* a, const std::uint8_t* b, int k);

}  // namespace harness
