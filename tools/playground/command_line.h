// What the programs' command lines share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "play.h"
#include "ptx/swizzle_mode.h"
#include "words.h"

namespace play {

/// Parses, runs `body`, and turns what it throws into a sentence or a report and an exit status.
int run(CLI::App& app, const std::vector<std::string>& arguments, Output& output,
        const std::function<int()>& body);

/// For a program without arguments: runs it with `words` and says so, with the way to its --help.
int example(const std::string& name, Program program, const std::string& words, Output& output);

/// "none", "32", "64", "128" (a B or "bytes" may follow). Throws harness::Error.
gemm::ptx::Swizzle parse_swizzle(const std::string& text);
/// "none", "32 bytes", …
std::string swizzle_name(gemm::ptx::Swizzle swizzle);

/// Throws harness::Error unless this machine runs Hopper's instructions; returns whether it is the emulator.
bool require_hopper();

/// Throws harness::Error: "the file '…' cannot be written".
void write_file(const std::string& path, const std::string& text);

}  // namespace play
