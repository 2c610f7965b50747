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
  properties->major = emulator::compute_capability_major();
  properties->multiProcessorCount = emulator::options().sm_count;
  properties->warpSize = emulator::kWarpSize;
  properties->maxThreadsPerBlock = emulator::kMaxThreads;
  properties->maxThreadsPerMultiProcessor = emulator::kMaxThreadsPerSm;
  properties->sharedMemPerBlock = std::size_t{48} * 1024;
  properties->sharedMemPerBlockOptin = emulator::kMaxSharedBytes;
  properties->sharedMemPerMultiprocessor = emulator::kSharedBytesPerSm;
  properties->totalGlobalMem = static_cast<std::size_t>(emulator::device_bytes_total());
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->l2CacheSize = 50 << 20;
  properties->cooperativeLaunch = properties->concurrentKernels = properties->asyncEngineCount = 1;
  for (int& threads : properties->maxThreadsDim) threads = emulator::kMaxThreads;
  properties->maxThreadsDim[2] = 64;
  for (int& ctas : properties->maxGridSize) ctas = 65535;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->canMapHostMemory = properties->unifiedAddressing = properties->managedMemory = 1;
  properties->concurrentManagedAccess = properties->memoryPoolsSupported = 1;
  properties->totalConstMem = 65536;
  properties->memPitch = 0x7fffffff;
  properties->textureAlignment = properties->surfaceAlignment = 512;
  properties->texturePitchAlignment = 32;
  properties->streamPrioritiesSupported = properties->clusterLaunch = properties->hostRegisterSupported = 1;
  properties->reservedSharedMemPerBlock = emulator::kReservedSharedBytes;
  properties->globalL1CacheSupported = properties->localL1CacheSupported = 1;
  properties->persistingL2CacheMaxSize = properties->accessPolicyMaxWindowSize = properties->l2CacheSize / 2;
  properties->clockRate = properties->memoryClockRate =
      1000;  // kHz, so that a kernel soon has waited for a time
  properties->memoryBusWidth = 6144;
  properties->singleToDoublePrecisionPerfRatio = 2;
  constexpr int kSide = 131072, kDepth = 16384, kLayers = 2048, kCube = 32768;
  for (int* side : {&properties->maxTexture1D, &properties->maxTexture2D[0], &properties->maxSurface2D[0],
                    &properties->maxTexture2DLinear[0]})
    *side = kSide;
  properties->maxTexture2D[1] = properties->maxSurface2D[1] = kSide / 2;
  properties->maxTexture2DLinear[1] = 65000;
  properties->maxTexture2DLinear[2] = 2097120;
  properties->maxTexture1DLinear = 1 << 28;
  for (std::size_t i = 0; i < 3; ++i) properties->maxTexture3D[i] = properties->maxSurface3D[i] = kDepth;
  properties->maxSurface1D = properties->maxTexture1DLayered[0] = properties->maxSurface1DLayered[0] = kCube;
  for (std::size_t i = 0; i < 2; ++i) {
    properties->maxTexture2DGather[i] = properties->maxTexture2DLayered[i] =
        properties->maxSurface2DLayered[i] = kCube;
  }
  properties->maxTextureCubemap = properties->maxSurfaceCubemap = properties->maxTextureCubemapLayered[0] =
      properties->maxSurfaceCubemapLayered[0] = kCube;
  properties->maxTexture1DLayered[1] = properties->maxTexture2DLayered[2] =
      properties->maxSurface1DLayered[1] = properties->maxSurface2DLayered[2] = kLayers;
  properties->maxTextureCubemapLayered[1] = properties->maxSurfaceCubemapLayered[1] = kLayers - 2;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = emulator::options().sm_count;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = emulator::compute_capability_major();
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = emulator::kMaxSharedBytes;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 * 1024;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = emulator::kSharedBytesPerSm;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = emulator::kMaxThreads;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = emulator::kMaxThreadsPerSm;
      break;
    case cudaDevAttrWarpSize:
      *value = emulator::kWarpSize;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      *value = 65536;
      break;
    case cudaDevAttrL2CacheSize:
      *value = 50 << 20;
      break;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      *value = 1000;  // kHz, so that a kernel soon has waited for a time
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 6144;
      break;
    case cudaDevAttrIntegrated:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrTccDriver:
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrComputeMode:
      *value = 0;
      break;
    default:
      *value = 1;
      break;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  const std::string name = symbol;
  if (name != "cuTensorMapEncodeTiled" && name != "cuTensorMapEncodeIm2col") {
    throw harness::Error(
        fmt::format("the emulator has no driver function '{}'; its functions that make tensor maps are "
                    "cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col",
                    symbol));
  }
  *function = name == "cuTensorMapEncodeTiled" ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled)
                                               : reinterpret_cast<void*>(&cuTensorMapEncodeIm2col);
  if (result) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

namespace {

[[noreturn]] void refuse_map(const char* function, const std::string& sentence) {
  throw harness::Error(fmt::format("{}: {}", function, sentence));
}

/// What both kinds of tensor maps have.
gemm::ptx::TensorMapSpec map_spec(const char* function, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                  const cuuint64_t* extents, const cuuint64_t* strides,
                                  CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                  CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  using gemm::ptx::TensorElement;
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
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B:
    case CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B:
    case CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B:
      refuse_map(function, "the emulator has no tensor maps of 4- and 6-bit elements");
    default:
      refuse_map(function, "the emulator has no tensor maps of 8-byte elements, only of 1, 2 and 4 bytes");
  }
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    refuse_map(function, "the emulator can fill elements outside a tensor only with zeros");
  if (spec.rank >= 1 && spec.rank <= gemm::ptx::kMaxTensorRank) {
    for (std::size_t i = 0; i < rank; ++i) {
      spec.extent[i] = extents[i];
      if (i > 0) spec.stride_bytes[i] = strides[i - 1];
    }
  }
  constexpr gemm::ptx::Swizzle kSwizzles[] = {gemm::ptx::Swizzle::kNone, gemm::ptx::Swizzle::k32B,
                                              gemm::ptx::Swizzle::k64B, gemm::ptx::Swizzle::k128B};
  constexpr gemm::ptx::L2Promotion kPromotions[] = {
      gemm::ptx::L2Promotion::kNone, gemm::ptx::L2Promotion::k64B, gemm::ptx::L2Promotion::k128B,
      gemm::ptx::L2Promotion::k256B};
  constexpr gemm::ptx::Interleave kInterleaves[] = {gemm::ptx::Interleave::kNone, gemm::ptx::Interleave::k16B,
                                                    gemm::ptx::Interleave::k32B};
  spec.interleave = kInterleaves[interleave];
  if (swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
    refuse_map(function, "the emulator has no swizzles of 32- and 64-byte atoms, which are Blackwell's");
  spec.swizzle = kSwizzles[swizzle];
  spec.l2_promotion = kPromotions[promotion];
  return spec;
}

CUresult make_map(const char* function, CUtensorMap* map, const gemm::ptx::TensorMapSpec& spec) {
  if (const std::string rule = gemm::ptx::violated_rule(spec); !rule.empty()) refuse_map(function, rule);
  *map = gemm::ptx::make_tensor_map(spec);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  constexpr const char* kFunction = "cuTensorMapEncodeTiled";
  gemm::ptx::TensorMapSpec spec =
      map_spec(kFunction, type, rank, base, extents, strides, interleave, swizzle, promotion, fill);
  for (int i = 0; i < std::min(spec.rank, gemm::ptx::kMaxTensorRank); ++i) {
    spec.box[static_cast<std::size_t>(i)] = box[i];
    if (element_strides && element_strides[i] != 1) {
      refuse_map(kFunction,
                 fmt::format("the element stride of dimension {} is {}, but the emulator supports only 1", i,
                             element_strides[i]));
    }
  }
  return make_map(kFunction, map, spec);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* base,
                                 const cuuint64_t* extents, const cuuint64_t* strides, const int* lower,
                                 const int* upper, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                 CUtensorMapFloatOOBfill fill) {
  constexpr const char* kFunction = "cuTensorMapEncodeIm2col";
  constexpr cuuint32_t kMaxPixels = 1024;
  gemm::ptx::TensorMapSpec spec =
      map_spec(kFunction, type, rank, base, extents, strides, interleave, swizzle, promotion, fill);
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
    refuse_map(kFunction, "the emulator has interleaved layouts only in tiled mode (cuTensorMapEncodeTiled)");
  if (rank < 3 || rank > 5)
    refuse_map(kFunction, fmt::format("the tensor's rank is {}; it must be 3, 4 or 5", rank));
  if (pixels == 0 || pixels > kMaxPixels)
    refuse_map(kFunction, fmt::format("a column has {} pixels; it must have 1 to 1024", pixels));
  spec.box = {channels, pixels, 1, 1, 1};
  spec.im2col.pixels = pixels;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    spec.im2col.lower[i] = lower[i];
    spec.im2col.upper[i] = upper[i];
    if (element_strides) spec.im2col.step[i] = element_strides[i + 1];
  }
  if (element_strides && element_strides[rank - 1] != 1) {
    refuse_map(kFunction,
               fmt::format("the element stride of the images is {}, but the emulator supports only 1",
                           element_strides[rank - 1]));
  }
  return make_map(kFunction, map, spec);
}
