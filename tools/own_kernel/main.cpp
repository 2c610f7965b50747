// emulate_rewrite FILE PATH: prints what the preprocessor is given instead of FILE, which reports call PATH.
// emulate_rewrite --preprocessed FILE: prints what the compiler is given instead of the preprocessor's output.
// emulate_rewrite --list-ptx FILE: prints what inline PTX that output has.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "rewrite.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string first = argv[1];
  const bool is_preprocessed = first == "--preprocessed" || first == "--list-ptx";
  std::ifstream file(is_preprocessed ? argv[2] : argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try {
    const std::string result = first == "--list-ptx" ? emulate::list_ptx(text)
                               : is_preprocessed     ? emulate::rewrite_preprocessed(text)
                                                     : emulate::rewrite(text, argv[2]);
    std::fwrite(result.data(), 1, result.size(), stdout);
  } catch (const emulate::Refused& refused) {
    std::fprintf(stderr, "%s\n", refused.what());
    return 2;
  }
  return 0;
}
