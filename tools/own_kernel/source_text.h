// Looking at the text of a C++ file without parsing it: words, brackets, literals.
#pragma once

#include <cstddef>
#include <string>

namespace emulate {

bool is_word(char c);

/// The text with blanks for comments, and, unless told, for what stands in quotes.
std::string blanked(const std::string& text, bool keep_literals);

/// Where the word stands alone, from `from` on.
std::size_t find_word(const std::string& text, const std::string& word, std::size_t from = 0);

/// After the bracket that closes the one at `open`.
std::size_t after_closing(const std::string& text, std::size_t open);

std::size_t next_solid(const std::string& text, std::size_t from);

}  // namespace emulate
