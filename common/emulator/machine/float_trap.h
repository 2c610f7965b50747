// Arithmetic on accumulators that wgmma still holds: what the processor's invalid exception is made into.
#pragma once

namespace emulator {

/// From the handler of SIGFPE with FPE_FLTINV, with its third argument. When the instruction read poison, the
/// thread goes on in a function that ends the kernel with a report. Otherwise the exception is nobody's fault
/// (a comparison with a NaN, infinity minus infinity), so it is masked and the instruction runs again. False:
/// not by a thread of a kernel, or not on this processor.
bool handle_invalid(void* machine);

}  // namespace emulator
