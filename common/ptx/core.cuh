// The CUDA language for the GPU backend: nothing to add, nvcc provides it. The emulator's counterpart of this
// header defines the same names for an ordinary C++ compiler.
#pragma once

#ifndef __CUDACC__
#error "common/ptx is the GPU backend; the emulator build must find common/emulator/include first"
#endif

#include <cuda_runtime.h>

namespace gemm::ptx {

/// Whether a kernel that is built for less is faster: the instructions of a launch are in no cache.
inline constexpr bool kNarrowKernels = true;

}  // namespace gemm::ptx
