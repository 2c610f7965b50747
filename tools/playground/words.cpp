#include "words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "harness/backend/backend.h"

namespace play {

std::uint64_t parse_number(const std::string& what, const std::string& text, std::uint64_t most) {
  const bool hexadecimal = text.rfind("0x", 0) == 0 || text.rfind("0X", 0) == 0;
  const char* const begin = text.data() + (hexadecimal ? 2 : 0);
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [parsed, status] = std::from_chars(begin, end, value, hexadecimal ? 16 : 10);
  if (begin == end || parsed != end || status != std::errc() || value > most) {
    throw harness::Error(fmt::format(
        "{} is '{}'; it must be a whole number from 0 to {}, in decimal or as 0x...", what, text, most));
  }
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::size_t first = text.find_first_not_of(" \t\r\n", begin);
    if (first >= end) {
      parts.emplace_back();
    } else {
      const std::size_t last = text.find_last_not_of(" \t\r\n", end - 1);
      parts.push_back(text.substr(first, last - first + 1));
    }
    begin = end + 1;
  }
  return parts;
}

}  // namespace play
