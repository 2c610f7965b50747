// What every program does with its command line.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/guarded.h"

namespace harness {

/// Checks of options, "" or what is wrong. A seed: left alone, CLI11 takes -1 and what is too large for some
/// other number.
std::string seed_problem(const std::string& text);
/// The name of a file to write.
std::string file_problem(const std::string& text);
/// A name that may be left out but not empty.
std::string name_problem(const std::string& text);
/// Seconds to spend: left alone, CLI11's range lets "nan" through.
std::string seconds_problem(const std::string& text);
/// alpha or beta.
std::string factor_problem(const std::string& text);

/// One sentence about arguments that do not parse; an unknown flag is named with its nearest relative.
std::string parse_sentence(const CLI::App& app, const std::vector<std::string>& arguments,
                           const CLI::ParseError& error);

/// What every program has, to be called when all options are declared: --version, and flags that are not
/// given a value (--check=0).
void add_common_flags(CLI::App& app);

/// Parses, with the common flags. Returns an exit status when the program is to end now (--help, --version);
/// throws Error for what does not parse.
std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv);

/// Parses the command line and runs the body, guarded.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace harness
