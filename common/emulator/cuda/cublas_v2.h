// cuBLAS for files that compare their kernel with it: the types, so that they compile. The emulator runs the
// file's own kernels alone, and a call says so.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "cuda_fp16.h"
#include "cuda_runtime.h"

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)
using cublasHandle_t = struct cublasContext*;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasGemmAlgo_t {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99
};
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum cudaDataType_t {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_R_32I = 10,
  CUDA_R_16BF = 14,
  CUDA_R_8F_E4M3 = 28,
  CUDA_R_8F_E5M2 = 29
};
using cudaDataType = cudaDataType_t;

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) {
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}

namespace emulator_cuda {
/// A library's kernels are machine code for a GPU.
[[noreturn]] inline void no_library(const char* function) {
  std::fprintf(stderr,
               "error: %s is a call of cuBLAS, whose kernels do not run on the emulator; compare with a "
               "product of the host instead "
               "(run.expect_gemm in a check_kernel)\n",
               function);
  std::exit(2);
}
}  // namespace emulator_cuda

template <typename... Arguments>
cublasStatus_t cublasGemmEx(Arguments&&...) {
  emulator_cuda::no_library("cublasGemmEx");
}
template <typename... Arguments>
cublasStatus_t cublasSgemm(Arguments&&...) {
  emulator_cuda::no_library("cublasSgemm");
}
template <typename... Arguments>
cublasStatus_t cublasDgemm(Arguments&&...) {
  emulator_cuda::no_library("cublasDgemm");
}
template <typename... Arguments>
cublasStatus_t cublasHgemm(Arguments&&...) {
  emulator_cuda::no_library("cublasHgemm");
}
template <typename... Arguments>
cublasStatus_t cublasGemmStridedBatchedEx(Arguments&&...) {
  emulator_cuda::no_library("cublasGemmStridedBatchedEx");
}
// NOLINTEND(readability-identifier-naming)
