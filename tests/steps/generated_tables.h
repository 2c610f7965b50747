// Tables of a page that a test writes: each stands between two comments, of which the first says what it is
// of.
#pragma once

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "catch.h"

/// Compares each table of the page at `path` with table_of(match of its first comment, the table as it is).
/// With GEMM_STEPS_UPDATE_PAGES in the environment, writes the page with the new tables instead. `marker`:
/// the first comment; `end`: the second. There must be at least one, and none may have a cell that is still
/// to be written.
template <typename TableOf>
void check_or_write_tables(const std::string& path, const std::string& marker, const std::string& end_marker,
                           const TableOf& table_of) {
  std::stringstream stream;
  stream << std::ifstream(path).rdbuf();
  const std::string text = stream.str();
  const bool update = std::getenv("GEMM_STEPS_UPDATE_PAGES") != nullptr;
  std::string renewed;
  std::size_t done = 0;
  const std::regex first(marker + "\n\n?");
  for (auto match = std::sregex_iterator(text.begin(), text.end(), first); match != std::sregex_iterator();
       ++match) {
    INFO(match->str());
    const auto begin = static_cast<std::size_t>(match->position() + match->length());
    const std::size_t end = text.find("\n" + end_marker, begin);
    REQUIRE(end != std::string::npos);
    const std::string old = text.substr(begin, end - begin);
    const std::string table = table_of(*match, old);
    if (!update) CHECK(old == table);
    if (!update) CHECK(table.find("TODO") == std::string::npos);
    renewed += text.substr(done, begin - done) + table;
    done = end;
  }
  REQUIRE(done > 0);
  renewed += text.substr(done);
  if (update && renewed != text) std::ofstream(path) << renewed;
}
