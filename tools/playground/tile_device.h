// One tile through TMA, and what is in shared memory afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/swizzle_mode.h"

namespace play {

inline constexpr std::uint32_t kMaxTileRows = 256;
inline constexpr std::uint32_t kMaxTilePlace = 64 * 1024;
inline constexpr std::uint32_t kTileAlignment = 128;
/// What bytes hold that no copy reached, as 16-bit elements; no element of a tile.
inline constexpr std::uint16_t kUntouched = 0xffff;

/// Loads a [rows][row_bytes / 2] tile of the 16-bit numbers 0, 1, 2, ... to `at` bytes from the start of
/// shared memory (which is 1024-byte aligned) and returns the `bytes` bytes from `begin` on, in the order of
/// their addresses.
std::vector<std::uint16_t> load_tile(std::uint32_t rows, std::uint32_t row_bytes, std::uint32_t at,
                                     std::uint32_t begin, std::uint32_t bytes, gemm::ptx::Swizzle swizzle);

}  // namespace play
