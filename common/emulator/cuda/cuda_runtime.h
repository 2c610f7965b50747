// The CUDA runtime and the language of nvcc, as far as a kernel's file needs them to run on the emulator.
// tools/emulate includes this first, as nvcc does with its own.
//
// CUDA Runtime API; CUDA C++ Programming Guide, "C++ Language Extensions". Calls that cannot work here do not
// compile, or end with one sentence. A launch returns when its grid has run, so that streams and events order
// nothing more.
#pragma once

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)

#include <math.h>  // isnan and its kin without std::, as nvcc has them

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_intrinsics.h"
#include "emulator/instrument/cuda_program.h"
#include "emulator/instrument/program_memory.h"
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
cudaError_t cudaMallocAsync(T** memory, std::size_t bytes, gemm::ptx::Stream) {
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
inline cudaError_t cudaFreeAsync(void* memory, gemm::ptx::Stream) {
  return cudaFree(memory);
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
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  emulator_cuda::copy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                   gemm::ptx::Stream = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  emulator_cuda::set(memory, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, gemm::ptx::Stream = nullptr) {
  return cudaMemset(memory, value, bytes);
}
template <typename T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
  std::memcpy(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(std::addressof(symbol))) + offset,
              from, bytes);
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  std::memcpy(to, reinterpret_cast<const char*>(std::addressof(symbol)) + offset, bytes);
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, T& symbol) {
  *address = std::addressof(symbol);
  return cudaSuccess;
}

// ---- Streams and events.

using cudaStream_t = gemm::ptx::Stream;
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  emulator::complete_grids();
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  emulator::complete_grids();
  return cudaSuccess;
}
using cudaEvent_t = std::chrono::steady_clock::time_point*;
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new std::chrono::steady_clock::time_point;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  *event = std::chrono::steady_clock::now();
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
  return cudaSuccess;
}
/// The time that the emulator took, which says nothing about a GPU.
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(*end - *begin).count();
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

// ---- The device.

inline cudaError_t cudaSetDevice(int) {
  return cudaSuccess;
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
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceReset() {
  return cudaSuccess;
}
struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  std::size_t sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, totalGlobalMem;
  int regsPerBlock, regsPerMultiprocessor, l2CacheSize, cooperativeLaunch, concurrentKernels,
      asyncEngineCount;
  int maxThreadsDim[3], maxGridSize[3], maxBlocksPerMultiProcessor;
  int canMapHostMemory, unifiedAddressing, managedMemory, concurrentManagedAccess, pageableMemoryAccess;
  int integrated, memoryPoolsSupported, streamPrioritiesSupported, hostNativeAtomicSupported;
  int memoryBusWidth, pciBusID, pciDeviceID, pciDomainID;
  std::size_t totalConstMem, memPitch, textureAlignment;
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
  cudaDevAttrIntegrated = 18,
  cudaDevAttrCanMapHostMemory = 19,
  cudaDevAttrComputeMode = 20,
  cudaDevAttrConcurrentKernels = 31,
  cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrUnifiedAddressing = 41,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrManagedMemory = 83,
  cudaDevAttrPageableMemoryAccess = 88,
  cudaDevAttrConcurrentManagedAccess = 89,
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
};
inline gemm::ptx::Extent extent(const dim3& size) {
  return {size.x, size.y, size.z};
}
/// The stream of a launch, for which many write 0.
struct StreamArgument {
  StreamArgument(cudaStream_t) {}  // NOLINT(google-explicit-constructor)
  StreamArgument(int) {}           // NOLINT(google-explicit-constructor)
};
inline Config config(dim3 grid, dim3 block, std::size_t shared_bytes = 0, StreamArgument = nullptr) {
  return {{.grid = extent(grid),
           .block = extent(block),
           .cluster = {},
           .shared_bytes = static_cast<int>(shared_bytes)}};
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

template <typename Function, typename Values>
void launch_grid(const void* handle, gemm::ptx::LaunchShape shape, Launched<Function, Values>&& launched) {
  prepare_launch(handle, shape, launched.call);
  emulator::note_launch_arguments(&launched, sizeof launched);
  emulator::run_grid(shape, nullptr, launched.call, handle);
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const gemm::ptx::LaunchShape& shape, Arguments&&... arguments) {
  using Values = const std::tuple<Parameters...>;
  launch_grid(
      reinterpret_cast<const void*>(kernel), shape,
      Launched<void (*)(Parameters...), Values>(kernel, Values{static_cast<Parameters>(arguments)...}));
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
      launch(kernel, shape, std::forward<Arguments>(arguments)...);
    }
  }
  template <typename... Arguments>
  void run_by_name(const void* handle, Arguments&&... arguments) const {
    static_assert(std::is_invocable_v<const ByName&, std::decay_t<Arguments>&...>,
                  "no kernel of this name takes these arguments");
    using Values = std::tuple<std::decay_t<Arguments>...>;
    launch_grid(handle, shape,
                Launched<const ByName&, Values>(by_name, Values(std::forward<Arguments>(arguments)...)));
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
    return {{shape}, by_name, address};
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
        launch(kernel, call.config.shape, std::forward<decltype(arguments)>(arguments)...);
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
void launch_by_address(void (*kernel)(Parameters...), const gemm::ptx::LaunchShape& shape, void** arguments,
                       std::index_sequence<kIndex...>) {
  launch(kernel, shape, *static_cast<std::remove_reference_t<Parameters>*>(arguments[kIndex])...);
}

/// What is known of a kernel whose address has become a void pointer: how to launch it with arguments by
/// address.
using LaunchByAddress = std::function<void(const gemm::ptx::LaunchShape&, void**)>;
inline std::map<const void*, LaunchByAddress>& kernels_by_address() {
  static std::map<const void*, LaunchByAddress> kernels;
  return kernels;
}
inline void launch_kernel_at(const void* kernel, const gemm::ptx::LaunchShape& shape, void** arguments) {
  const auto found = kernels_by_address().find(kernel);
  if (found == kernels_by_address().end())
    refuse_launch(
        "a launch of a kernel by a void pointer that was not made by a cast of the kernel in this file");
  found->second(shape, arguments);
}

/// (void*)kernel and reinterpret_cast<void*>(kernel), as tools/emulate writes them: VoidCast<void*>() ->*
/// kernel.
template <typename Pointer>
struct VoidCast {
  template <typename... Parameters>
  Pointer operator->*(void (*kernel)(Parameters...)) const {
    const auto address = reinterpret_cast<Pointer>(kernel);
    kernels_by_address()[address] = [kernel](const gemm::ptx::LaunchShape& shape, void** arguments) {
      launch_by_address(kernel, shape, arguments, std::index_sequence_for<Parameters...>());
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
  emulator_cuda::launch(kernel, emulator_cuda::shape_of(*config), std::forward<Arguments>(arguments)...);
  return cudaSuccess;
}
template <typename... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes = 0, cudaStream_t = nullptr) {
  emulator_cuda::launch_by_address(kernel, emulator_cuda::config(grid, block, shared_bytes).shape, arguments,
                                   std::index_sequence_for<Parameters...>());
  return cudaSuccess;
}
template <typename... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared_bytes = 0,
                                        cudaStream_t = nullptr) {
  gemm::ptx::LaunchShape shape = emulator_cuda::config(grid, block, shared_bytes).shape;
  shape.co_resident = true;
  emulator_cuda::launch_by_address(kernel, shape, arguments, std::index_sequence_for<Parameters...>());
  return cudaSuccess;
}

inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel,
                                       void** arguments) {
  emulator_cuda::launch_kernel_at(kernel, emulator_cuda::shape_of(*config), arguments);
  return cudaSuccess;
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes = 0, cudaStream_t = nullptr) {
  emulator_cuda::launch_kernel_at(kernel, emulator_cuda::config(grid, block, shared_bytes).shape, arguments);
  return cudaSuccess;
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               std::size_t shared_bytes = 0, cudaStream_t = nullptr) {
  gemm::ptx::LaunchShape shape = emulator_cuda::config(grid, block, shared_bytes).shape;
  shape.co_resident = true;
  emulator_cuda::launch_kernel_at(kernel, shape, arguments);
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
#include "cuda_runtime_more.h"
// NOLINTEND(readability-identifier-naming)
