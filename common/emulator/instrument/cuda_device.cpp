// The shims of common/emulator/cuda that are no templates.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "emulator/cuda/cuda.h"
#include "emulator/machine/options.h"
#include "emulator/memory/device_memory.h"
#include "harness/backend/backend.h"

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strncpy(properties->name, "emulator", sizeof properties->name - 1);
  properties->major = 9;
  properties->multiProcessorCount = emulator::options().sm_count;
  properties->warpSize = emulator::kWarpSize;
  properties->maxThreadsPerBlock = emulator::kMaxThreads;
  properties->maxThreadsPerMultiProcessor = emulator::kMaxThreadsPerSm;
  properties->sharedMemPerBlock = std::size_t{48} * 1024;
  properties->sharedMemPerBlockOptin = emulator::kMaxSharedBytes;
  properties->sharedMemPerMultiprocessor = emulator::kSharedBytesPerSm;
  properties->totalGlobalMem = static_cast<std::size_t>(emulator::device_bytes_total());
  properties->regsPerBlock = 65536;
  properties->l2CacheSize = 50 << 20;
  properties->cooperativeLaunch = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = emulator::options().sm_count;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = emulator::kMaxSharedBytes;
      break;
    default:
      *value = 1;
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  if (std::string(symbol) != "cuTensorMapEncodeTiled") {
    throw harness::Error(
        fmt::format("the emulator has no driver function '{}'; of those that make tensor maps it has "
                    "cuTensorMapEncodeTiled",
                    symbol));
  }
  *function = reinterpret_cast<void*>(&cuTensorMapEncodeTiled);
  if (result) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  using gemm::ptx::TensorElement;
  const auto refuse = [](const std::string& sentence) {
    throw harness::Error("cuTensorMapEncodeTiled: " + sentence);
  };
  gemm::ptx::TensorMapSpec spec;
  spec.base = base;
  spec.rank = static_cast<int>(std::min<cuuint32_t>(rank, 99));
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      spec.element = TensorElement::kUint8;
      break;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
      spec.element = TensorElement::kFloat16;
      break;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      spec.element = TensorElement::kBf16;
      break;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      spec.element = TensorElement::kUint32;
      break;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      spec.element = TensorElement::kFloat32;
      break;
    default:
      refuse("the emulator has no tensor maps of 8-byte elements; 1, 2 and 4 bytes are there");
  }
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) refuse("the emulator has no interleaved layouts");
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    refuse("the emulator fills what lies outside a tensor with zeros only");
  if (spec.rank >= 1 && spec.rank <= gemm::ptx::kMaxTensorRank) {
    for (std::size_t i = 0; i < rank; ++i) {
      spec.extent[i] = extents[i];
      spec.box[i] = box[i];
      if (i > 0) spec.stride_bytes[i] = strides[i - 1];
      if (element_strides && element_strides[i] != 1)
        refuse(fmt::format("the element stride of dimension {} is {}, and the emulator has only 1", i,
                           element_strides[i]));
    }
  }
  constexpr gemm::ptx::Swizzle kSwizzles[] = {gemm::ptx::Swizzle::kNone, gemm::ptx::Swizzle::k32B,
                                              gemm::ptx::Swizzle::k64B, gemm::ptx::Swizzle::k128B};
  constexpr gemm::ptx::L2Promotion kPromotions[] = {
      gemm::ptx::L2Promotion::kNone, gemm::ptx::L2Promotion::k64B, gemm::ptx::L2Promotion::k128B,
      gemm::ptx::L2Promotion::k256B};
  spec.swizzle = kSwizzles[swizzle];
  spec.l2_promotion = kPromotions[promotion];
  if (const std::string rule = gemm::ptx::violated_rule(spec); !rule.empty()) refuse(rule);
  *map = gemm::ptx::make_tensor_map(spec);
  return CUDA_SUCCESS;
}
