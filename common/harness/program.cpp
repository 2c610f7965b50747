#include "harness/program.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "harness/backend.h"
#include "harness/report.h"

namespace harness {

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const EmulatorReport& report) {
    clear_progress();
    fmt::print(stderr, "{}\n", report.what());
    return kExitEmulator;
  } catch (const std::exception& error) {
    clear_progress();
    std::fflush(stdout);
    fmt::print(stderr, "error: {}\n", error.what());
    return kExitUsage;
  }
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "error: {} (--help lists the flags)\n", error.what());
    return kExitUsage;
  }
  return guarded(body);
}

}  // namespace harness
