// There is nothing to profile here.
#pragma once

#include "cuda_runtime.h"

inline cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}
inline cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}
