// A kernel's run as a page shows it. The module for WebAssembly and the program that the tests compare it
// with say the same.
#pragma once

#include <string>

#include "gemm/problem/step.h"

namespace page {

/// A kernel that the program holds: the step's own first, then those that its exercises break.
struct Kernel {
  const char* name;   // "right", or the exercise's: "producer_phase"
  const char* title;  // "The producer starts in phase 0"
  const gemm::Step& (*step)();
  const char* path;     // of its source, as reports name it
  const char* variant;  // the only one
  const char*
      shape;  // that it is run with unless another one is asked for; "": one that shows what the step does
  int sms;    // of the emulated GPU; 0: as many as show what the step does
  int launches;
};
extern const Kernel kKernels[];
extern const unsigned kKernelCount;

/// What the program can run, as JSON: each kernel with its source, its default shape and the limits of
/// shapes.
std::string describe();

struct Request {
  std::string kernel;
  std::string shape;       // "128x128x256"
  std::string seed;        // of the schedule
  std::string completion;  // "random", "earliest", "latest"
};
/// Runs a kernel and says as JSON what came of it: "outcome" is "right", "wrong", "report" or "refused", and
/// "text" says it in words. With "events", what happened to the barriers (one JSON object a line), "ledger",
/// the file that `tools/run NN --ledger --json FILE` writes, and, where the result was right, "timeline", the
/// file that `tools/run NN --trace FILE` writes.
std::string run(const Request& request);

/// What JavaScript caught in the middle of a run, as an outcome that names the thread.
std::string trapped(const std::string& message);

}  // namespace page
