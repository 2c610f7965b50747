// Shared memory that is read although nothing was written there, and whose contents do not matter.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// Rows of a stage that no load writes are read by wgmma all the same; what they hold ends in accumulators
/// that the store clips. No instruction: this says so to the emulator, which reports reads of what was never
/// written. There it is a copy of NaNs that signals `full`, so that the verifier finds one that gets into D
/// after all.
__device__ __forceinline__ void fill_unused(void*, int, std::uint64_t*) {}

}  // namespace gemm::ptx
