// Verification of a D that is quantised: two e2m1 in a byte, and a ue4m3 scale for every 16 elements of a
// row. docs/verification-types.md, "A quantised D".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/verify/types/typed.h"

namespace harness {

/// Such a D's elements, [m][n / 2], and behind them its scales, as the next product reads them: pieces of 512
/// bytes for 128 rows and 4 blocks.
std::size_t quantised_bytes(const gemm::Shape& shape);
std::size_t quantised_scales_begin(const gemm::Shape& shape);
std::size_t quantised_scale_byte(const gemm::Shape& shape, int row, int block);

/// What a correct kernel stores for these values, [m][n], of which D is rounded.
std::vector<std::uint8_t> quantised(const gemm::Shape& shape, const std::vector<float>& values);

/// The scale of 16 elements: the byte in memory, and the lowest and the highest that it may be.
struct BlockScale {
  std::uint8_t got = 0;
  std::uint8_t low = 0;
  std::uint8_t high = 0;
  bool is_right() const { return low <= got && got <= high; }
};

/// What may be stored where values are from acceptance.low to .high, given the scales in memory.
struct QuantisedAcceptance {
  std::vector<BlockScale> scales;  // [m][n / 16]
  TypedAcceptance elements;        // decoded, without the scale
  std::int64_t stray = 0;          // scales of rows and blocks that D does not have, and that are not 0
};
QuantisedAcceptance quantised_acceptance(const gemm::Shape& shape, const TypedAcceptance& values,
                                         const std::vector<std::uint8_t>& d);

/// What was done instead, where values are known: or "". `wrong`: elements.
std::string explain_quantised(const QuantisedAcceptance& acceptance, const TypedAcceptance& values,
                              const std::vector<std::size_t>& wrong, const std::vector<std::uint8_t>& d);

}  // namespace harness
