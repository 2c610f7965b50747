// CUDA's language for clangd, which reads common/ptx with this header in front (.clangd) instead of those of
// a toolkit: it need not know the toolkit's version, and there need not be one. The host's interface comes
// from a toolkit where there is one. No compiler sees this file.
#pragma once

#include <cmath>
#include <cstdlib>
#include <new>

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#include <vector_functions.h>
#include <vector_types.h>
#else
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

struct uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
#endif

extern const uint3 threadIdx;
extern const uint3 blockIdx;
extern const dim3 blockDim;
extern const dim3 gridDim;
extern const int warpSize;

__device__ unsigned long long __cvta_generic_to_shared(const void*);
__device__ unsigned long long __cvta_generic_to_global(const void*);
__device__ void __syncthreads();
__device__ void __syncwarp(unsigned mask = 0xffffffff);
__device__ unsigned __activemask();
__device__ unsigned __ballot_sync(unsigned mask, int predicate);
__device__ int __dp4a(int a, int b, int c);
__device__ float fmaf(float a, float b, float c);
template <typename T>
__device__ T __shfl_sync(unsigned mask, T value, int lane, int width = 32);
template <typename T>
__device__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32);
template <typename T>
__device__ T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32);
