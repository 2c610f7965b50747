// emulate_rewrite FILE PATH: prints what the preprocessor is given instead of FILE, which reports call PATH.
// emulate_rewrite --part FILE PATH: the same for one of several files.
// emulate_rewrite --preprocessed FILE [FOLDER...]: prints what the compiler is given instead of the
// preprocessor's output. emulate_rewrite --list-ptx FILE [FOLDER...]: prints what inline PTX that output has.
// FOLDER: of the emulator's headers, which stay as they are.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "rewrite.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string first = argv[1];
  const bool is_preprocessed = first == "--preprocessed" || first == "--list-ptx";
  const bool is_part = first == "--part";
  if (is_part && argc < 4) return 2;
  std::ifstream file(is_preprocessed || is_part ? argv[2] : argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::vector<std::string> own_folders(argv + 3, argv + argc);
  try {
    const std::string result = first == "--list-ptx" ? emulate::list_ptx(text, own_folders)
                               : is_preprocessed     ? emulate::rewrite_preprocessed(text, own_folders)
                                                     : emulate::rewrite(text, argv[is_part ? 3 : 2], is_part);
    std::fwrite(result.data(), 1, result.size(), stdout);
  } catch (const emulate::Refused& refused) {
    std::fprintf(stderr, "%s\n", refused.what());
    return 2;
  }
  return 0;
}
