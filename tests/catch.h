// Catch2, version 2 (Debian 12) or 3 (Ubuntu 24.04).
#pragma once

#include <cstdio>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 does this itself
#else
#include <catch2/catch.hpp>
#endif

/// Counts the test as skipped, not as passed; the caller returns at once. Version 2 of Catch2 has no SKIP, so
/// ctest recognises this line.
inline void skip_test(const char* reason) {
  std::printf("SKIPPED: %s\n", reason);
  std::fflush(stdout);
  SUCCEED(reason);
}
