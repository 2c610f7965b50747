// Turns what the processor refuses to do for a kernel into a report: a raw dereference of an address that is
// not there, a full stack, an integer division by zero.
#pragma once

#include "emulator/machine/machine.h"

namespace emulator {

struct Fault;

/// From now on SIGSEGV, SIGBUS, SIGFPE and SIGILL of a kernel's thread end the launch with a report. Those of
/// host code go where they went before.
void install_fault_handlers();
/// The report about one of them.
Failure describe_fault(const Fault& fault, const Thread& thread);

/// Gives the calling OS thread a stack for the handler (a fiber's own may be the problem).
void use_signal_stack();

/// Whether an address lies in a buffer that has been freed.
bool is_freed(std::uintptr_t address);

}  // namespace emulator
