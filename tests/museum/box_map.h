// A tensor map of one box of integers, made by the driver's function.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

constexpr int kBox = 32;

inline CUtensorMap make_box_map(const int* memory) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result);
  const cuuint64_t extent[] = {kBox, kBox};
  const cuuint64_t stride[] = {kBox * sizeof(int)};
  const cuuint32_t box[] = {kBox, kBox};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, const_cast<int*>(memory), extent, stride, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}
