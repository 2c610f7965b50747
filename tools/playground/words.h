// Numbers and lists, as people type them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace play {

/// A whole number, decimal or 0x…, of at most `most`. Throws harness::Error: "`what` is 'text'; it must be
/// …".
std::uint64_t parse_number(const std::string& what, const std::string& text, std::uint64_t most);

/// The parts of a comma-separated list; blanks around them are dropped.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace play
