// The CUDA runtime and the language of nvcc, as far as a kernel's file needs them to run on the emulator.
// tools/emulate includes this first, as nvcc does with its own.
//
// CUDA Runtime API; CUDA C++ Programming Guide, "C++ Language Extensions". Calls that cannot work here do not
// compile, or end with one sentence.
#pragma once

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)

#ifndef _GLIBCXX_CMATH
#define lerp emulator_lerp  // C++20 has it in the global namespace as well, where files define their own
#endif
#include <math.h>  // isnan and its kin without std::, as nvcc has them
#undef lerp

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_intrinsics.h"
#include "emulator/instrument/cuda_program.h"
#include "emulator/instrument/program_memory.h"
#include "emulator/instrument/streams.h"
#include "emulator/machine/ranks.h"
#include "ptx/core.cuh"
#include "ptx/launch.cuh"
#include "ptx/shared.cuh"
#include "vector_functions.h"

// Published kernels access arrays of __shared__ memory in 16 bytes without saying alignas, and compilers for
// GPUs place them so.
#undef __shared__
#define __shared__ __attribute__((aligned(16), used)) thread_local
// An attribute that no compiler knows, for tools/own_kernel/rewrite.cpp.
#undef __cluster_dims__
#define __cluster_dims__(...) __attribute__((emulator_cluster_dims(__VA_ARGS__)))

#define CUDART_VERSION 13000
// By which helper headers know that this one was read.
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__
#define CUDART_CB

// ---- Errors: what the emulator refuses ends the run with a sentence, so that a call that returns has
// succeeded.

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNotReady = 600,
  cudaErrorUnknown = 999
};
using cudaError = cudaError_t;
inline constexpr cudaError_t cudaErrorInvalidDevice = static_cast<cudaError_t>(101);
inline constexpr cudaError_t cudaErrorAssert = static_cast<cudaError_t>(710);
inline constexpr cudaError_t cudaErrorPeerAccessAlreadyEnabled = static_cast<cudaError_t>(704);
inline constexpr cudaError_t cudaErrorCooperativeLaunchTooLarge = static_cast<cudaError_t>(720);
inline constexpr cudaError_t cudaErrorNotSupported = static_cast<cudaError_t>(801);
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline cudaError_t cudaPeekAtLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error";
}
inline const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}

// ---- Memory.

template <typename T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  *memory = static_cast<T*>(emulator_cuda::allocate(bytes));
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMallocAsync(T** memory, std::size_t bytes, gemm::ptx::Stream = nullptr) {
  return cudaMalloc(memory, bytes);
}
template <typename T>
cudaError_t cudaMallocHost(T** memory, std::size_t bytes) {
  *memory = static_cast<T*>(emulator_cuda::allocate_host(bytes));
  return cudaSuccess;
}
constexpr unsigned cudaMemAttachGlobal = 1;
template <typename T>
cudaError_t cudaMallocManaged(T** memory, std::size_t bytes, unsigned = cudaMemAttachGlobal) {
  *memory = static_cast<T*>(emulator_cuda::allocate_managed(bytes));
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  emulator_cuda::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* memory, gemm::ptx::Stream stream) {
  if (emulator_cuda::captured_graph(stream))  // the graph may be launched again
    emulator_cuda::submit(stream, emulator_cuda::NodeKind::kFree,
                          [memory] { emulator_cuda::forget_contents(memory); });
  else
    emulator_cuda::submit(stream, emulator_cuda::NodeKind::kEmpty,
                          [memory] { emulator_cuda::free_in_stream(memory); });
  return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) {
  emulator_cuda::free_host(memory);
  return cudaSuccess;
}

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
namespace emulator_cuda {
/// A copy that waits for its turn, or where it cannot be done later, for its stream. `copies`: whatever
/// copies.
template <typename Copies>
cudaError_t copy_in_stream(const void* to, const void* from, gemm::ptx::Stream stream, Copies copies) {
  submit(stream, NodeKind::kMemcpy, copies);
  if (!captured_graph(stream) && !can_copy_later(to, from)) finish(stream);
  return cudaSuccess;
}
/// What is not asynchronous returns when it is done, where host code may look at the memory.
inline cudaError_t wait_if_of_both(const void* to, const void* from) {
  if (is_of_both(to) || is_of_both(from)) finish(gemm::ptx::Stream{});
  return cudaSuccess;
}
}  // namespace emulator_cuda
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   gemm::ptx::Stream stream = nullptr) {
  return emulator_cuda::copy_in_stream(to, from, stream, [=] { emulator_cuda::copy(to, from, bytes); });
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  return emulator_cuda::wait_if_of_both(to, from);
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes,
                                   gemm::ptx::Stream stream = nullptr) {
  emulator_cuda::submit(stream, emulator_cuda::NodeKind::kMemset,
                        [=] { emulator_cuda::set(memory, value, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  cudaMemsetAsync(memory, value, bytes, nullptr);
  return emulator_cuda::wait_if_of_both(memory, nullptr);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                                    cudaMemcpyKind = cudaMemcpyHostToDevice,
                                    gemm::ptx::Stream stream = nullptr) {
  void* to = reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(std::addressof(symbol))) + offset;
  return emulator_cuda::copy_in_stream(to, from, stream, [=] { emulator_cuda::copy(to, from, bytes); });
}
template <typename T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyDeviceToHost,
                                      gemm::ptx::Stream stream = nullptr) {
  const void* from = reinterpret_cast<const char*>(std::addressof(symbol)) + offset;
  return emulator_cuda::copy_in_stream(to, from, stream, [=] { emulator_cuda::copy(to, from, bytes); });
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind);
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, T& symbol) {
  *address = std::addressof(symbol);
  return cudaSuccess;
}

// ---- Streams and events.

using cudaStream_t = gemm::ptx::Stream;
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))
inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  *stream = emulator_cuda::make_stream((flags & cudaStreamNonBlocking) == 0, priority);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  emulator_cuda::destroy_stream(stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  emulator_cuda::finish(stream);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  emulator_cuda::finish_all();
  return cudaSuccess;
}
/// While the stream has work, the work goes on.
inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (emulator_cuda::is_empty(stream)) return cudaSuccess;
  emulator_cuda::go_on();
  return cudaErrorNotReady;
}
using cudaEvent_t = CUevent_st*;
inline constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2,
                          cudaEventInterprocess = 4;
inline constexpr unsigned cudaEventRecordDefault = 0, cudaEventWaitDefault = 0;
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = emulator_cuda::make_event();
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags = cudaEventDefault) {
  return cudaEventCreateWithFlags(event, flags);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  emulator_cuda::record(event, stream);
  return cudaSuccess;
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned = 0) {
  return cudaEventRecord(event, stream);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  emulator_cuda::finish(event);
  return cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (emulator_cuda::has_happened(event)) return cudaSuccess;
  emulator_cuda::go_on();
  return cudaErrorNotReady;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned = 0) {
  emulator_cuda::wait_for(stream, event);
  return cudaSuccess;
}
/// The time that the emulator took, which says nothing about a GPU.
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(emulator_cuda::time_of(end) - emulator_cuda::time_of(begin))
          .count();
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  emulator_cuda::destroy_event(event);
  return cudaSuccess;
}

// ---- The device.

inline cudaError_t cudaSetDevice(int device) {
  return emulator::set_current_device(device) ? cudaSuccess : cudaErrorInvalidDevice;
}
inline cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* bytes) {
  *free_bytes = *bytes = std::size_t{80} << 30;
  return cudaSuccess;
}
/// Above 13010: libraries fill a bit of tensor maps themselves for older drivers.
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13020;
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = emulator::current_device();
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = emulator::device_count();
  return cudaSuccess;
}
inline cudaError_t cudaDeviceReset() {
  emulator_cuda::reset_device();
  return cudaSuccess;
}
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  std::size_t sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, totalGlobalMem;
  std::size_t reservedSharedMemPerBlock;
  int regsPerBlock, regsPerMultiprocessor, l2CacheSize, cooperativeLaunch, concurrentKernels,
      asyncEngineCount, clusterLaunch;
  int maxThreadsDim[3], maxGridSize[3], maxBlocksPerMultiProcessor;
  int canMapHostMemory, unifiedAddressing, managedMemory, concurrentManagedAccess, pageableMemoryAccess;
  int integrated, memoryPoolsSupported, streamPrioritiesSupported, hostNativeAtomicSupported;
  int memoryBusWidth, pciBusID, pciDeviceID, pciDomainID;
  std::size_t totalConstMem, memPitch, textureAlignment, texturePitchAlignment, surfaceAlignment;
  int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2], maxTexture2DMipmap[2],
      maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap,
      maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
  int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3],
      maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  int ECCEnabled, tccDriver, kernelExecTimeoutEnabled, computeMode, isMultiGpuBoard, multiGpuBoardGroupID;
  int persistingL2CacheMaxSize, accessPolicyMaxWindowSize, globalL1CacheSupported, localL1CacheSupported;
  int computePreemptionSupported, canUseHostPointerForRegisteredMem, hostRegisterSupported,
      directManagedMemAccessFromHost, pageableMemoryAccessUsesHostPageTables, cooperativeMultiDeviceLaunch;
  int clockRate, memoryClockRate, deviceOverlap, singleToDoublePrecisionPerfRatio;
};
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrClockRate = 13,
  cudaDevAttrGpuOverlap = 15,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrKernelExecTimeout = 17,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrCanMapHostMemory = 19,
  cudaDevAttrComputeMode = 20,
  cudaDevAttrConcurrentKernels = 31,
  cudaDevAttrPciBusId = 33,
  cudaDevAttrPciDeviceId = 34,
  cudaDevAttrTccDriver = 35,
  cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrGlobalMemoryBusWidth = 37,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrUnifiedAddressing = 41,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrManagedMemory = 83,
  cudaDevAttrHostNativeAtomicSupported = 86,
  cudaDevAttrPageableMemoryAccess = 88,
  cudaDevAttrConcurrentManagedAccess = 89,
  cudaDevAttrComputePreemptionSupported = 90,
  cudaDevAttrMemoryPoolsSupported = 115,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrClusterLaunch = 120
};
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
enum cudaComputeMode { cudaComputeModeDefault, cudaComputeModeExclusive, cudaComputeModeProhibited };

// ---- Functions and launches.

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 14
};
enum cudaSharedCarveout {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxL1 = 0,
  cudaSharedmemCarveoutMaxShared = 100
};
/// More than 48 KB of dynamic shared memory need this; the launch looks at it.
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
    emulator_cuda::allow_shared_bytes(reinterpret_cast<const void*>(kernel), value);
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    emulator::allow_unportable_cluster(reinterpret_cast<const void*>(kernel), value != 0);
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, Kernel*, int threads,
                                                          std::size_t shared_bytes) {
  *ctas = emulator::ctas_per_sm({.grid = {}, .block = {static_cast<unsigned>(threads)}, .cluster = {}},
                                static_cast<int>(shared_bytes));
  return cudaSuccess;
}

/// The largest CTA that the kernel may have, and as many as the SMs hold of them.
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel* kernel,
                                               std::size_t shared_bytes = 0, int limit = 0) {
  *block = emulator_cuda::largest_block(reinterpret_cast<const void*>(kernel), limit);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(grid, kernel, *block, shared_bytes);
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  *grid *= sms;
  return cudaSuccess;
}

namespace emulator_cuda {

/// What stands between <<< and >>>.
struct Config {
  gemm::ptx::LaunchShape shape;
  cudaStream_t stream = nullptr;
};
inline gemm::ptx::Extent extent(const dim3& size) {
  return {size.x, size.y, size.z};
}
/// The stream of a launch, for which many write 0.
struct StreamArgument {
  StreamArgument(cudaStream_t its_stream) : stream(its_stream) {}  // NOLINT(google-explicit-constructor)
  StreamArgument(int) {}                                           // NOLINT(google-explicit-constructor)
  cudaStream_t stream = nullptr;
};
inline Config config(dim3 grid, dim3 block, std::size_t shared_bytes = 0, StreamArgument stream = nullptr) {
  return {{.grid = extent(grid),
           .block = extent(block),
           .cluster = {},
           .shared_bytes = static_cast<int>(shared_bytes)},
          stream.stream};
}

inline void submit_grid(cudaStream_t stream, const gemm::ptx::LaunchShape& shape, Operation grid) {
  if (shape.dependent) return submit_dependent(stream, std::move(grid));
  submit(stream, NodeKind::kKernel, std::move(grid));
}

/// All that the threads of a grid read of the launch before they run the kernel. It lies in one place, so
/// that the emulator can tell these reads from a kernel's reads of the host's stack.
template <typename Function, typename Values>
struct Launched {
  Launched(Function called, Values passed) : function(called), values(std::move(passed)) {}
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  Function function;
  Values values;
  const std::function<void()> call = [this] { std::apply(function, values); };
};

/// The grid that `function` runs with these arguments, when its turn comes: launches copy their arguments.
template <typename Function, typename Values>
Operation grid_of(const void* handle, const gemm::ptx::LaunchShape& shape, Function function,
                  Values&& values) {
  return [=, kept = std::make_shared<std::decay_t<Values>>(std::forward<Values>(values))] {
    const Launched<Function, std::decay_t<Values>> launched(function, *kept);
    emulator::note_launch_arguments(&launched, sizeof launched);
    emulator::run_grid(shape, nullptr, launched.call, handle);
  };
}

template <typename... Parameters, typename... Arguments>
Operation grid_of_kernel(void (*kernel)(Parameters...), gemm::ptx::LaunchShape shape,
                         Arguments&&... arguments) {
  const void* handle = reinterpret_cast<const void*>(kernel);
  std::tuple<std::remove_const_t<Parameters>...> values{static_cast<Parameters>(arguments)...};
  prepare_launch(handle, shape, [&] { std::apply(kernel, values); });
  return grid_of(handle, shape, kernel, std::move(values));
}
template <typename... Parameters, typename... Arguments>
void launch_in_stream(void (*kernel)(Parameters...), const gemm::ptx::LaunchShape& shape, cudaStream_t stream,
                      Arguments&&... arguments) {
  submit_grid(stream, shape, grid_of_kernel(kernel, shape, std::forward<Arguments>(arguments)...));
}

/// Asks for the address of a kernel: of the one function that a name stands for, or of the one with these
/// parameters.
struct AnyKernel {
  template <typename... Parameters>
  auto operator()(void (*kernel)(Parameters...)) const {
    return kernel;
  }
};
template <typename... Parameters>
struct KernelOf {
  using Kernel = void (*)(Parameters...);
  Kernel operator()(Kernel kernel) const { return kernel; }
};

/// kernel<<<config>>>(arguments) becomes configured(config).with(by_name, address)(arguments): by_name calls
/// the kernel by its name, `address` hands what the name stands for to one of the above.
template <typename ByName, typename Address>
struct Launch : Config {
  ByName by_name;
  Address address;
  template <typename... Arguments>
  void operator()(Arguments&&... arguments) const {
    if constexpr (std::is_invocable_v<const Address&, AnyKernel>) {
      run(address(AnyKernel{}), std::forward<Arguments>(arguments)...);
    } else {
      const void* handle = nullptr;  // of a template whose parameters are not just the arguments' types
      if constexpr (std::is_invocable_v<const Address&, KernelOf<std::decay_t<Arguments>...>>)
        handle = reinterpret_cast<const void*>(address(KernelOf<std::decay_t<Arguments>...>{}));
      run_by_name(handle, std::forward<Arguments>(arguments)...);
    }
  }

 private:
  template <typename... Parameters, typename... Arguments>
  void run(void (*kernel)(Parameters...), Arguments&&... arguments) const {
    if constexpr (sizeof...(Arguments) < sizeof...(Parameters) &&
                  std::is_invocable_v<const ByName&, std::decay_t<Arguments>&...>) {
      run_by_name(reinterpret_cast<const void*>(kernel), std::forward<Arguments>(arguments)...);
    } else {
      static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                    "a launch passes as many arguments as its kernel has parameters without a default");
      launch_in_stream(kernel, shape, stream, std::forward<Arguments>(arguments)...);
    }
  }
  template <typename... Arguments>
  void run_by_name(const void* handle, Arguments&&... arguments) const {
    static_assert(std::is_invocable_v<const ByName&, std::decay_t<Arguments>&...>,
                  "no kernel of this name takes these arguments");
    gemm::ptx::LaunchShape prepared = shape;
    std::tuple<std::decay_t<Arguments>...> values(std::forward<Arguments>(arguments)...);
    prepare_launch(handle, prepared, [&] { std::apply(by_name, values); });
    submit_grid(stream, prepared, grid_of(handle, prepared, by_name, std::move(values)));
  }
};

/// (expression)<<<config>>>(arguments) becomes (expression) ->* configured(config)(arguments).
template <typename... Arguments>
struct Call {
  Config config;
  std::tuple<Arguments&&...> arguments;
};
struct Configured : Config {
  template <typename ByName, typename Address>
  Launch<ByName, Address> with(ByName by_name, Address address) const {
    return {{shape, stream}, by_name, address};
  }
  template <typename... Arguments>
  Call<Arguments...> operator()(Arguments&&... arguments) const {
    return {*this, {std::forward<Arguments>(arguments)...}};
  }
};
template <typename... Sizes>
Configured configured(Sizes&&... sizes) {
  return {config(std::forward<Sizes>(sizes)...)};
}
template <typename... Parameters, typename... Arguments>
void operator->*(void (*kernel)(Parameters...), Call<Arguments...> call) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "a launch passes as many arguments as its kernel has parameters");
  std::apply(
      [&](auto&&... arguments) {
        launch_in_stream(kernel, call.config.shape, call.config.stream,
                         std::forward<decltype(arguments)>(arguments)...);
      },
      std::move(call.arguments));
}

}  // namespace emulator_cuda

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8,
  cudaLaunchAttributePreferredClusterDimension = 11
};
union cudaLaunchAttributeValue {
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim, preferredClusterDim;  // the preferred one is a wish, which the emulator does not grant
  int priority;
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace emulator_cuda {

inline gemm::ptx::LaunchShape shape_of(const cudaLaunchConfig_t& config) {
  gemm::ptx::LaunchShape shape =
      emulator_cuda::config(config.gridDim, config.blockDim, config.dynamicSmemBytes).shape;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) shape.co_resident = attribute.val.cooperative != 0;
    if (attribute.id == cudaLaunchAttributeClusterDimension)
      shape.cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z};
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      shape.dependent = attribute.val.programmaticStreamSerializationAllowed != 0;
  }
  return shape;
}

/// Arguments by address, as cudaLaunchKernel takes them.
template <typename... Parameters, std::size_t... kIndex>
Operation grid_by_address(void (*kernel)(Parameters...), const gemm::ptx::LaunchShape& shape,
                          void** arguments, std::index_sequence<kIndex...>) {
  return grid_of_kernel(kernel, shape,
                        *static_cast<std::remove_reference_t<Parameters>*>(arguments[kIndex])...);
}

/// What is known of a kernel whose address has become a void pointer: how to launch it with arguments by
/// address.
using GridByAddress = std::function<Operation(const gemm::ptx::LaunchShape&, void**)>;
inline std::map<const void*, GridByAddress>& kernels_by_address() {
  static std::map<const void*, GridByAddress> kernels;
  return kernels;
}
inline Operation grid_of_kernel_at(const void* kernel, const gemm::ptx::LaunchShape& shape,
                                   void** arguments) {
  const auto found = kernels_by_address().find(kernel);
  if (found == kernels_by_address().end())
    refuse_launch(
        "a launch of a kernel by a void pointer that was not made by a cast of the kernel in this file");
  return found->second(shape, arguments);
}
inline void launch_kernel_at(const void* kernel, const gemm::ptx::LaunchShape& shape, cudaStream_t stream,
                             void** arguments) {
  submit_grid(stream, shape, grid_of_kernel_at(kernel, shape, arguments));
}

/// (void*)kernel and reinterpret_cast<void*>(kernel), as tools/emulate writes them: VoidCast<void*>() ->*
/// kernel.
template <typename Pointer>
struct VoidCast {
  template <typename... Parameters>
  Pointer operator->*(void (*kernel)(Parameters...)) const {
    const auto address = reinterpret_cast<Pointer>(kernel);
    kernels_by_address()[address] = [kernel](const gemm::ptx::LaunchShape& shape, void** arguments) {
      return grid_by_address(kernel, shape, arguments, std::index_sequence_for<Parameters...>());
    };
    return address;
  }
  template <typename T>
  Pointer operator->*(T&& value) const {
    return (Pointer)(value);  // NOLINT(google-readability-casting): the cast that the file has
  }
};

}  // namespace emulator_cuda

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  emulator_cuda::launch_in_stream(kernel, emulator_cuda::shape_of(*config), config->stream,
                                  std::forward<Arguments>(arguments)...);
  return cudaSuccess;
}
template <typename... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  const gemm::ptx::LaunchShape shape = emulator_cuda::config(grid, block, shared_bytes).shape;
  emulator_cuda::submit_grid(
      stream, shape,
      emulator_cuda::grid_by_address(kernel, shape, arguments, std::index_sequence_for<Parameters...>()));
  return cudaSuccess;
}
template <typename... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared_bytes = 0,
                                        cudaStream_t stream = nullptr) {
  gemm::ptx::LaunchShape shape = emulator_cuda::config(grid, block, shared_bytes).shape;
  shape.co_resident = true;
  emulator_cuda::submit_grid(
      stream, shape,
      emulator_cuda::grid_by_address(kernel, shape, arguments, std::index_sequence_for<Parameters...>()));
  return cudaSuccess;
}

inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                       void** arguments) {
  emulator_cuda::launch_kernel_at(kernel, emulator_cuda::shape_of(*config), config->stream, arguments);
  return cudaSuccess;
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  emulator_cuda::launch_kernel_at(kernel, emulator_cuda::config(grid, block, shared_bytes).shape, stream,
                                  arguments);
  return cudaSuccess;
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  gemm::ptx::LaunchShape shape = emulator_cuda::config(grid, block, shared_bytes).shape;
  shape.co_resident = true;
  emulator_cuda::launch_kernel_at(kernel, shape, stream, arguments);
  return cudaSuccess;
}

// ---- Entry points of the driver: cuTensorMapEncodeTiled is the one that kernels' files ask for.

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1
};
inline constexpr unsigned long long cudaEnableDefault = 0;
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result = nullptr);
inline cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                                    unsigned long long flags,
                                                    cudaDriverEntryPointQueryResult* result = nullptr) {
  return cudaGetDriverEntryPoint(symbol, function, flags, result);
}
#include "cuda_graphs.h"
#include "cuda_runtime_more.h"
#include "cuda_textures.h"
// NOLINTEND(readability-identifier-naming)
