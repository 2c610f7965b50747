// Accesses through generic addresses that the compiler does not instrument: those of inline PTX.
#pragma once

#include "emulator/machine/machine.h"
#include "emulator/machine/where.h"

namespace emulator {

/// Checks an access of 1, 2, 4, 8 or 16 bytes by the running thread as one of the space that the address is
/// in. A thread's own stack is nobody else's.
void generic_access(const void* pointer, unsigned bytes, Access kind, Where where);
/// Whether the address is one of shared memory, of the running thread's CTA or of its cluster.
bool is_shared_memory(const void* pointer);

}  // namespace emulator
