// What the programs' command lines share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "play.h"
#include "ptx/swizzle_mode.h"

namespace play {

/// Parses, runs `body`, and turns what it throws into a sentence or a report and an exit status.
int run(CLI::App& app, const std::vector<std::string>& arguments, Output& output,
        const std::function<int()>& body);

/// For a program without arguments: runs it with `words` and says so, with the way to its --help.
int example(const std::string& name, Program program, const std::string& words, Output& output);

/// A whole number, decimal or 0x…, of at most `most`. Throws harness::Error: "`what` is 'text'; it must be
/// …".
std::uint64_t parse_number(const std::string& what, const std::string& text, std::uint64_t most);

/// "none", "32", "64", "128" (a B or "bytes" may follow). Throws harness::Error.
gemm::ptx::Swizzle parse_swizzle(const std::string& text);
/// "none", "32 bytes", …
std::string swizzle_name(gemm::ptx::Swizzle swizzle);

/// Throws harness::Error unless this machine runs Hopper's instructions; returns whether it is the emulator.
bool require_hopper();

/// The parts of a comma-separated list; blanks around them are dropped.
std::vector<std::string> split(const std::string& text, char separator);

}  // namespace play
