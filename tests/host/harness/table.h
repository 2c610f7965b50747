// Looking into the tables that are printed on the terminal.
#pragma once

#include <string>

#include "catch.h"

/// The line that has `words`, the first one below `after`.
inline std::string line_with(const std::string& table, const std::string& words,
                             const std::string& after = "") {
  const std::size_t from = table.find(after);
  REQUIRE(from != std::string::npos);
  const std::size_t at = table.find(words, from);
  REQUIRE(at != std::string::npos);
  const std::size_t begin = table.rfind('\n', at) + 1;
  return table.substr(begin, table.find('\n', at) - begin);
}
