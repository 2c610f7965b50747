// Names of the members of the struct in dynamic shared memory, for reports: offset -> "full[2]".
#pragma once

#include <cstdint>
#include <string>

#include "emulator/machine.h"

namespace emulator {

/// The member at `offset` of the CTA's dynamic shared memory, or "" when nobody has named it.
std::string member_name(const Cta& cta, std::uint32_t offset);

}  // namespace emulator
