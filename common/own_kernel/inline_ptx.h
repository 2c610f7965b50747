// What translated inline PTX calls: tools/own_kernel/inline_ptx makes these calls of the asm statements of a
// kernel's file. Emulator only.
#pragma once

#include "own_kernel/inline_ptx/engines.h"
#include "own_kernel/inline_ptx/memory.h"
#include "own_kernel/inline_ptx/scalar.h"
#include "own_kernel/inline_ptx/values.h"
