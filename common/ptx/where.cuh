// The place of a call in a kernel, for functions that call a wrapper on behalf of somebody else.
#pragma once

#include "ptx/core.cuh"

namespace gemm::ptx {

/// Nothing: only the emulator's reports name places. Its counterpart holds file and line.
struct Where {
  __device__ static constexpr Where here() { return {}; }
};

}  // namespace gemm::ptx
