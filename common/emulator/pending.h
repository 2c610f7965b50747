// Reports about bytes that an asynchronous operation is on its way to.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/machine.h"

namespace emulator {

/// `operation` is Cell::pending. Ends the kernel with the report of the engine that the operation belongs to.
[[noreturn]] void fail_pending(std::uint32_t operation, const std::string& bytes, Access access, Where where,
                               const Thread& thread);

}  // namespace emulator
