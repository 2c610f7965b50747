// Catch2, version 2 (Debian 12) or 3 (Ubuntu 24.04).
#pragma once

#include <cstdio>
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 does this itself
#else
#include <catch2/catch.hpp>
#endif

/// Matches text with `part` in it; the two versions of Catch2 name it differently.
inline auto has_text(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

/// Counts the test as skipped, not as passed; the caller returns at once. Version 2 of Catch2 has no SKIP, so
/// ctest recognises this line.
inline void skip_test(const char* reason) {
  std::printf("SKIPPED: %s\n", reason);
  std::fflush(stdout);
  SUCCEED(reason);
}
