// Small programs to play with, one mechanism each. Every play_NAME.cpp defines play::NAME(); CMake
// makes the program play_NAME of it, and tools/play NAME runs that.
#pragma once

#include <string>
#include <vector>

namespace play {

/// What a program printed. Kept, not streamed, so that tests compare it.
struct Output {
  std::string text;    // for stdout
  std::string errors;  // for stderr
};

/// Runs with the arguments behind the program's name. Returns harness::kExitOk, kExitMismatch (hardware and
/// model disagree), kExitUsage (`errors` is one sentence) or kExitEmulator (`errors` is its report).
using Program = int (*)(const std::vector<std::string>& arguments, Output& output);

int mbarrier(const std::vector<std::string>& arguments, Output& output);
int tma_swizzle(const std::vector<std::string>& arguments, Output& output);
int descriptor(const std::vector<std::string>& arguments, Output& output);
int tensor_memory(const std::vector<std::string>& arguments, Output& output);
int tensor_map(const std::vector<std::string>& arguments, Output& output);
int raster(const std::vector<std::string>& arguments, Output& output);
int stream_k(const std::vector<std::string>& arguments, Output& output);
/// On the emulator only.
int events(const std::vector<std::string>& arguments, Output& output);

}  // namespace play
