// What modules give to JavaScript.
#pragma once

#include <emscripten.h>

#include <cstdlib>
#include <cstring>
#include <string>

/// For JavaScript to read.
inline const char* kept(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}
