// What registers hold that wgmma is still writing, and what those hold that nobody has written.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "emulator/machine/vector_types.h"
#include "emulator/machine/where.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace emulator {

/// Signalling NaNs with this in their upper half. Moves leave them alone. Arithmetic and comparisons raise
/// the invalid exception, which is reported (float_trap.h); where it is masked they become quiet and go on.
inline constexpr std::uint32_t kPoisonedRegister = 0x7fad0000u;
inline constexpr std::uint32_t kQuietBit = 0x00400000u;

/// Not 0 in the lower half: no bf16 widened to 32 bits is poison.
constexpr std::uint32_t poison_number(std::uint64_t number) {
  return kPoisonedRegister | static_cast<std::uint32_t>(number % 0xffffu + 1);
}

constexpr bool is_poisoned(std::uint32_t bits) {
  return (bits & ~(kQuietBit | 0xffffu)) == kPoisonedRegister && (bits & 0xffffu) != 0;
}

/// What the compiler paints variables with that have no initialiser (-ftrivial-auto-var-init=pattern), in
/// kernels.
#ifdef __clang__
inline constexpr std::uint32_t kPaintedRegister = 0xffffffffu;
#else
inline constexpr std::uint32_t kPaintedRegister = 0xfefefefeu;
#endif

/// Reports the use of a value that was read from accumulators in flight.
[[noreturn]] void fail_poisoned(const char* what, std::uint32_t value, Where where);

inline void check_poison(const char* what, float value, Where where) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (is_poisoned(bits)) [[unlikely]]
    fail_poisoned(what, bits, where);
}
inline void check_poison(const char* what, const float2& value, Where where) {
  check_poison(what, value.x, where);
  check_poison(what, value.y, where);
}
inline void check_poison(const char* what, const float4& value, Where where) {
  check_poison(what, value.x, where);
  check_poison(what, value.y, where);
  check_poison(what, value.z, where);
  check_poison(what, value.w, where);
}
/// Values of other types are not looked at.
template <typename T>
inline void check_poison_of(const char* what, const T& value, Where where) {
  using Value = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Value, float> || std::is_same_v<Value, float2> ||
                std::is_same_v<Value, float4>)
    check_poison(what, value, where);
}

// The running thread's invalid exception. It is a property of the fiber: Boost.Context keeps the control word
// of each. Masked, as in every program, until wgmma takes registers of the thread. It stays unmasked behind
// the wait: the compiler may move a comparison there whose operands were read before.
#ifdef __SSE__
inline constexpr unsigned kInvalidMask = 0x80;
inline constexpr unsigned kInvalidFlag = 0x01;
inline void trap_poison() {
  _mm_setcsr(_mm_getcsr() & ~(kInvalidMask | kInvalidFlag));
}
inline void ignore_poison() {
  _mm_setcsr((_mm_getcsr() | kInvalidMask) & ~kInvalidFlag);
}

/// Arithmetic of the emulator's own, on whatever values.
class PoisonIgnored {
 public:
  PoisonIgnored() : before_(_mm_getcsr()) { ignore_poison(); }
  ~PoisonIgnored() { _mm_setcsr(before_); }
  PoisonIgnored(const PoisonIgnored&) = delete;
  PoisonIgnored& operator=(const PoisonIgnored&) = delete;

 private:
  unsigned before_;
};
#else
inline void trap_poison() {}
inline void ignore_poison() {}
struct [[maybe_unused]] PoisonIgnored {};
#endif

}  // namespace emulator
