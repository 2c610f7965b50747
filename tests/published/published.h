// What the files of this folder share: each runs a published kernel from a checkout of its project
// (docs/museum/published.md).
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

/// A row-major matrix in boxes; the swizzle is 128 bytes or none.
inline CUtensorMap make_map(CUtensorMapDataType type, int bytes, const void* data, int columns, int rows,
                            int box_columns, int box_rows, bool is_swizzled) {
  CUtensorMap map;
  const cuuint64_t extents[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(columns) * bytes};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult result = cuTensorMapEncodeTiled(
      &map, type, 2, const_cast<void*>(data), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      is_swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) throw std::runtime_error("a tensor map cannot be encoded");
  return map;
}

template <typename Kernel, typename... Arguments>
void launch_clusters(Kernel* kernel, int ctas, int threads, int shared_bytes, int cluster,
                     Arguments... arguments) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, kernel, arguments...) != cudaSuccess)
    throw std::runtime_error("the kernel cannot be launched");
}

/// a[m][k] * b, b is [k][n].
template <typename T>
std::vector<double> product_of_rows(const std::vector<T>& a, const std::vector<T>& b, std::size_t m,
                                    std::size_t n, std::size_t k) {
  std::vector<double> result(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t x = 0; x < k; ++x) {
      const double factor = static_cast<float>(a[i * k + x]);
      for (std::size_t j = 0; j < n; ++j)
        result[i * n + j] += factor * static_cast<double>(static_cast<float>(b[x * n + j]));
    }
  }
  return result;
}

inline double rounded_to_bf16(double value) {
  return static_cast<double>(__bfloat162float(__float2bfloat16(static_cast<float>(value))));
}
