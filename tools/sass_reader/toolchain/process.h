// Running other programs.
#pragma once

#include <string>
#include <vector>

namespace sass {

struct ProcessResult {
  int status = 0;      // exit status; 128 + signal when it was killed
  std::string output;  // stdout, and stderr when it was asked for
};

enum class Capture { kOutput, kOutputAndErrors };

/// Runs a program and waits for it. Throws harness::Error when it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command,
                          Capture capture = Capture::kOutputAndErrors);

}  // namespace sass
