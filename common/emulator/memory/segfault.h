// Turns a raw dereference outside a device buffer into a report.
#pragma once

namespace emulator {

/// From now on a SIGSEGV whose address lies in device memory, in a CTA's shared memory or below a
/// fiber's stack prints a named report and ends the process with harness::kExitEmulator. Any other one goes
/// where it went before. A SIGFPE of an invalid operation on floats goes to handle_invalid() first.
void install_segfault_handler();

/// Gives the calling OS thread a stack for the handler (a fiber's own may be the problem).
void use_signal_stack();

}  // namespace emulator
