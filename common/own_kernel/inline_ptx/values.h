// Registers of inline PTX as C++ values: the types of the PTX ISA and what passes between them. tools/emulate
// translates the asm statements of a kernel's file into calls of these headers.
//
// PTX ISA, "State Spaces, Types, and Variables"; GCC and nvcc, inline assembly: constraints.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace inline_ptx {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using u128 = unsigned __int128;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f16 = __half;
using bf16 = __nv_bfloat16;

/// f16x2, bf16x2, f32x2: the first element in the lower bits.
template <typename T>
struct alignas(2 * sizeof(T)) Pair {
  T low, high;
};
struct e4m3x2 {
  u8 low, high;
};
struct e5m2x2 {
  u8 low, high;
};

template <typename T>
inline constexpr bool kIsNarrow = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <typename T>
inline constexpr bool kIsPair = false;
template <typename T>
inline constexpr bool kIsPair<Pair<T>> = true;

/// The bits of a value, in as many as 128, or the number that a pointer or an enumeration is. By value: an
/// array is its address, and a pointer loses its __restrict__.
template <typename V>
[[gnu::always_inline]] inline auto number_of(V value) {
  if constexpr (std::is_pointer_v<V>) {
    return static_cast<u64>(reinterpret_cast<std::uintptr_t>(value));
  } else if constexpr (std::is_integral_v<V> || std::is_same_v<V, u128>) {
    return value;
  } else if constexpr (std::is_enum_v<V>) {
    return static_cast<std::underlying_type_t<V>>(value);
  } else {
    using Bits = std::conditional_t<
        sizeof(V) == 1, u8,
        std::conditional_t<
            sizeof(V) == 2, u16,
            std::conditional_t<sizeof(V) == 4, u32, std::conditional_t<sizeof(V) == 8, u64, u128>>>>;
    static_assert(sizeof(V) == sizeof(Bits), "an operand of inline PTX has 1, 2, 4, 8 or 16 bytes");
    Bits bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
}

/// What the operand is when an instruction takes it for a T: its bits where the sizes agree, or its number.
template <typename T, typename V>
[[gnu::always_inline]] inline T as(V value) {
  if constexpr (std::is_same_v<T, V>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return number_of(value) != 0;
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, u128>) {
    return static_cast<T>(number_of(value));
  } else if constexpr (sizeof(T) == sizeof(V)) {
    T result;
    std::memcpy(static_cast<void*>(&result), &value, sizeof result);
    return result;
  } else if constexpr (std::is_floating_point_v<V> || std::is_integral_v<V>) {  // a literal
    return static_cast<T>(value);
  } else {
    const auto bits = number_of(value);
    static_assert(sizeof bits >= sizeof(T), "the register is narrower than what the instruction reads");
    T result;
    std::memcpy(static_cast<void*>(&result), &bits, sizeof result);
    return result;
  }
}

/// What an instruction writes into an operand.
template <typename V>
V unqualified(V value);
template <typename D, typename V>
[[gnu::always_inline]] inline void set(D&& destination, const V& value) {
  using Plain = decltype(unqualified(destination));
  if constexpr (std::is_pointer_v<Plain>) {
    destination = reinterpret_cast<Plain>(static_cast<std::uintptr_t>(as<u64>(value)));
  } else {
    destination = as<Plain>(value);
  }
}

/// An operand "n": a number, or an enumerator.
template <typename V>
constexpr s64 immediate(const V& value) {
  return static_cast<s64>(value);
}

}  // namespace inline_ptx
