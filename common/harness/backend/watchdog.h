// Ends the program when the GPU does not come back.
//
// A kernel that waits for something that never happens cannot be cancelled from the host: every later call of
// the CUDA runtime blocks as well. All that is left is to say so and to end the process.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace harness {

inline constexpr int kExitHung = 4;  // the GPU did not come back in time

/// How long one wait may take. From GEMM_STEPS_TIMEOUT_S if that is set, otherwise 60 s. Throws Error when
/// the variable is not a positive number of seconds.
std::chrono::duration<double> watchdog_limit();
/// Overrides the limit, for tests and for runs whose one launch is known to be long.
void set_watchdog_limit(std::chrono::duration<double> limit);

/// While an object lives, the limit runs; when it passes, one line on stderr names `what` and the process
/// ends with kExitHung, without running destructors (they would wait for the GPU).
class Watchdog {
 public:
  /// `what` completes the sentence "the GPU has not finished ... after 60 s": "a launch of 02_shared_tile".
  explicit Watchdog(std::string what);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Starts the limit anew: for loops that make progress.
  void reset();
};

/// What is called when the limit passes, with the sentence to print. For tests; an empty function restores
/// the default (print and end the process).
void set_watchdog_action(std::function<void(const std::string&)> action);

}  // namespace harness
