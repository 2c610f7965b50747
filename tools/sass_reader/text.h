// Small helpers on text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sass {

std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);
std::vector<std::string> split_lines(std::string_view text);
/// `text` at most `width` characters wide, the last one a "~" when something was cut off.
std::string shorten(std::string_view text, std::size_t width);

}  // namespace sass
