// Included before every source of the build for WebAssembly: std::bit_cast, which the C++ library of
// Emscripten 3.1.6 does not have.
#pragma once

#include <bit>
#include <version>

#ifndef __cpp_lib_bit_cast
namespace std {
template <typename To, typename From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif
