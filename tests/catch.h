// Catch2, version 2 (Debian 12) or 3 (Ubuntu 24.04).
#pragma once

#include <cstdio>
#include <string>
#include <vector>

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

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What a text says, and what it does not.
inline void check_text(const std::string& text, const std::vector<std::string>& says,
                       const std::vector<std::string>& lacks = {}) {
  INFO(text);
  for (const std::string& part : says) {
    INFO("says: " << part);
    CHECK(contains(text, part));
  }
  for (const std::string& part : lacks) {
    INFO("does not say: " << part);
    CHECK_FALSE(contains(text, part));
  }
}

/// Counts the test as skipped, not as passed; the caller returns at once. Version 2 of Catch2 has no SKIP, so
/// ctest recognises this line.
inline void skip_test(const char* reason) {
  std::printf("SKIPPED: %s\n", reason);
  std::fflush(stdout);
  SUCCEED(reason);
}
