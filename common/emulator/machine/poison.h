// What registers hold that wgmma is still writing.
#pragma once

#include <bit>
#include <cstdint>

#include "emulator/machine/where.h"

namespace emulator {

/// Quiet NaNs with this in their upper half; arithmetic hands them on.
inline constexpr std::uint32_t kPoisonedRegister = 0x7fed0000u;

inline bool is_poisoned(std::uint32_t bits) {
  return (bits & 0xffff0000u) == kPoisonedRegister;
}

/// Reports the use of a value that was read from accumulators in flight.
[[noreturn]] void fail_poisoned(const char* what, std::uint32_t value, Where where);

inline void check_poison(const char* what, float value, Where where) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (is_poisoned(bits)) [[unlikely]]
    fail_poisoned(what, bits, where);
}

}  // namespace emulator
