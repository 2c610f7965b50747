// What every program does with its command line and with what ends it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace harness {

/// Runs the body. What it throws becomes one line on stderr and an exit status (see backend.h): a broken rule
/// of the emulator as it is, anything else as "error: ...".
int guarded(const std::function<int()>& body);

/// Parses the command line and runs the body, guarded. --help ends the program, and so does a flag that is
/// not known.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace harness
