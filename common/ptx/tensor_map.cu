#include "ptx/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace gemm::ptx {
namespace {

/// The driver's function, asked of the runtime, so that the program links and starts on a machine without a
/// driver.
PFN_cuTensorMapEncodeTiled_v12000 find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kIntroducedIn = 12000;
  const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                              kIntroducedIn, cudaEnableDefault, &result);
#else
  const cudaError_t status =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw std::runtime_error(std::string("the driver's cuTensorMapEncodeTiled cannot be asked for: ") +
                             cudaGetErrorString(status));
  }
  if (result != cudaDriverEntryPointSuccess || function == nullptr)
    throw std::runtime_error(
        "this driver has no cuTensorMapEncodeTiled: TMA needs a driver for CUDA 12.0 or newer");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
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
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = find_encode();

  const cuuint32_t ones[kMaxTensorRank] = {1, 1, 1, 1, 1};
  cuuint64_t extent[kMaxTensorRank];
  cuuint64_t strides[kMaxTensorRank];  // of dimensions 1 and up
  for (int i = 0; i < kMaxTensorRank; ++i) extent[i] = spec.extent[i];
  for (int i = 1; i < kMaxTensorRank; ++i) strides[i - 1] = spec.stride_bytes[i];

  TensorMap map{};
  const CUresult status = encode(&map, data_type(spec.element), static_cast<cuuint32_t>(spec.rank),
                                 const_cast<void*>(spec.base), extent, strides, spec.box.data(), ones,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_code(spec.swizzle),
                                 promotion_code(spec.l2_promotion), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw std::runtime_error(
        "the driver refused a tensor map that keeps the documented rules (cuTensorMapEncodeTiled: error " +
        std::to_string(static_cast<int>(status)) + ")");
  }
  return map;
}

}  // namespace gemm::ptx
