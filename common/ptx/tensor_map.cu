#include "ptx/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace gemm::ptx {
namespace {

/// A function of the driver, asked of the runtime, so that the program links and starts on a machine without
/// a driver.
template <typename Function>
Function find_encode(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kIntroducedIn = 12000;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, kIntroducedIn, cudaEnableDefault, &result);
#else
  const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result);
#endif
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw std::runtime_error(std::string("the driver's ") + name +
                             " cannot be asked for: " + cudaGetErrorString(status));
  }
  if (result != cudaDriverEntryPointSuccess || function == nullptr)
    throw std::runtime_error(std::string("this driver has no ") + name +
                             ": TMA needs a driver for CUDA 12.0 or newer");
  return reinterpret_cast<Function>(function);
}

CUtensorMapDataType data_type(TensorElement element) {
  switch (element) {
    case TensorElement::kBf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case TensorElement::kFloat16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case TensorElement::kFloat32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case TensorElement::kUint8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case TensorElement::kUint32:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
  }
  throw std::invalid_argument("unknown element type of a tensor map");
}

CUtensorMapSwizzle swizzle_code(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
    case Swizzle::k32B:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    case Swizzle::k64B:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::k128B:
      return CU_TENSOR_MAP_SWIZZLE_128B;
  }
  throw std::invalid_argument("unknown swizzle of a tensor map");
}

CUtensorMapInterleave interleave_code(Interleave interleave) {
  switch (interleave) {
    case Interleave::kNone:
      return CU_TENSOR_MAP_INTERLEAVE_NONE;
    case Interleave::k16B:
      return CU_TENSOR_MAP_INTERLEAVE_16B;
    case Interleave::k32B:
      return CU_TENSOR_MAP_INTERLEAVE_32B;
  }
  throw std::invalid_argument("unknown interleave of a tensor map");
}

CUtensorMapL2promotion promotion_code(L2Promotion promotion) {
  switch (promotion) {
    case L2Promotion::kNone:
      return CU_TENSOR_MAP_L2_PROMOTION_NONE;
    case L2Promotion::k64B:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
    case L2Promotion::k128B:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    case L2Promotion::k256B:
      return CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  }
  throw std::invalid_argument("unknown L2 promotion of a tensor map");
}

}  // namespace

TensorMap make_tensor_map(const TensorMapSpec& spec) {
  const std::string broken = violated_rule(spec);
  if (!broken.empty()) throw std::invalid_argument(broken);
  const bool im2col = spec.im2col.pixels != 0;

  const cuuint32_t ones[kMaxTensorRank] = {1, 1, 1, 1, 1};
  cuuint64_t extent[kMaxTensorRank];
  cuuint64_t strides[kMaxTensorRank];  // of dimensions 1 and up
  for (int i = 0; i < kMaxTensorRank; ++i) extent[i] = spec.extent[i];
  for (int i = 1; i < kMaxTensorRank; ++i) strides[i - 1] = spec.stride_bytes[i];

  TensorMap map{};
  CUresult status = CUDA_SUCCESS;
  if (im2col) {
    static const auto encode = find_encode<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col");
    cuuint32_t steps[kMaxTensorRank] = {1, 1, 1, 1, 1};
    for (int i = 1; i < spec.rank - 1; ++i) steps[i] = spec.im2col.step[static_cast<std::size_t>(i - 1)];
    status = encode(&map, data_type(spec.element), static_cast<cuuint32_t>(spec.rank),
                    const_cast<void*>(spec.base), extent, strides, spec.im2col.lower.data(),
                    spec.im2col.upper.data(), spec.box[0], spec.im2col.pixels, steps,
                    interleave_code(spec.interleave), swizzle_code(spec.swizzle),
                    promotion_code(spec.l2_promotion), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  } else {
    static const auto encode = find_encode<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
    status = encode(&map, data_type(spec.element), static_cast<cuuint32_t>(spec.rank),
                    const_cast<void*>(spec.base), extent, strides, spec.box.data(), ones,
                    interleave_code(spec.interleave), swizzle_code(spec.swizzle),
                    promotion_code(spec.l2_promotion), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
  if (status != CUDA_SUCCESS) {
    throw std::runtime_error(
        std::string("the driver refused a tensor map that keeps the documented rules (cuTensorMapEncode") +
        (im2col ? "Im2col" : "Tiled") + ": error " + std::to_string(static_cast<int>(status)) + ")");
  }
  return map;
}

}  // namespace gemm::ptx
