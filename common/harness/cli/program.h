// What every program does with its command line and with what ends it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace harness {

/// Runs the body. What it throws becomes one line on stderr and an exit status (see backend.h): a broken rule
/// of the emulator as it is, anything else as "error: ...".
int guarded(const std::function<int()>& body);

/// Checks of options, "" or what is wrong. A seed: left alone, CLI11 takes -1 and what is too large for some
/// other number.
std::string seed_problem(const std::string& text);
/// The name of a file to write.
std::string file_problem(const std::string& text);

/// One sentence about arguments that do not parse; an unknown flag is named with its nearest relative.
std::string parse_sentence(const CLI::App& app, const std::vector<std::string>& arguments,
                           const CLI::ParseError& error);

/// Parses the command line and runs the body, guarded. --help ends the program, and so does a flag that is
/// not known.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace harness
