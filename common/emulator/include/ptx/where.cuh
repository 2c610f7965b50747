// The place of a call in a kernel, for functions that call a wrapper on behalf of somebody else.
#pragma once

#include "emulator/machine/where.h"

namespace gemm::ptx {

using Where = emulator::Where;

}  // namespace gemm::ptx
