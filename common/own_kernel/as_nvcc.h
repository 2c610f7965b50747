// The names by which libraries of kernels recognise nvcc, from here on: headers before this one are compiled
// as those of an ordinary compiler.
#pragma once

#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH_FEAT_SM90_ALL 1

// nvcc inlines functions of the device, and a report names the callers of what was inlined. Where a function
// calls itself, emulate-cc compiles the file once more without this.
#if defined(__GNUC__) && !defined(__clang__)
#undef __device__
#undef __global__
#define __device__ __attribute__((always_inline))
#define __global__ __attribute__((noinline))
#endif
