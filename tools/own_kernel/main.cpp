// emulate_rewrite FILE PATH emulator|gpu: prints what the compiler is given instead of FILE, which reports
// call PATH.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "rewrite.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try {
    const bool on_gpu = std::string(argv[3]) == "gpu";
    const std::string result =
        emulate::rewrite(text, argv[2], on_gpu ? emulate::Backend::kGpu : emulate::Backend::kEmulator);
    std::fwrite(result.data(), 1, result.size(), stdout);
  } catch (const emulate::Refused& refused) {
    std::fprintf(stderr, "%s\n", refused.what());
    return 2;
  }
  return 0;
}
