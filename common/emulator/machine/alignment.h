// What alignas(...) asks for: a number of bytes, or the alignment of a type.
#pragma once

#include <cstddef>

namespace emulator {

template <std::size_t... kBytes>
consteval std::size_t alignment() {
  std::size_t result = 1;
  ((result = kBytes > result ? kBytes : result), ...);
  return result;
}

template <typename... Types>
requires(sizeof...(Types) > 0) consteval std::size_t alignment() {
  return alignment<alignof(Types)...>();
}

}  // namespace emulator
