// Functions of the CUDA runtime that example programs call beside those of cuda_runtime.h, which includes
// this: pitched and pinned memory, pools, peers, callbacks, graphs, limits, attributes of functions.
//
// CUDA Runtime API.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <type_traits>

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)

// ---- Memory.

inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2,
                          cudaHostAllocWriteCombined = 4;
inline constexpr unsigned cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1,
                          cudaHostRegisterMapped = 2;
template <typename T>
cudaError_t cudaHostAlloc(T** memory, std::size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
template <typename T>
cudaError_t cudaMallocHost(T** memory, std::size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
/// Host and device have the same addresses.
template <typename T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned = 0) {
  *device = static_cast<T*>(host);
  return cudaSuccess;
}
/// Rows at multiples of 512 bytes, as GPUs have them.
template <typename T>
cudaError_t cudaMallocPitch(T** memory, std::size_t* pitch, std::size_t width_bytes, std::size_t height) {
  *pitch = (width_bytes + 511) / 512 * 512;
  return cudaMalloc(memory, *pitch * height);
}
inline cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  emulator_cuda::register_host(memory, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void* memory) {
  emulator_cuda::unregister_host(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                     std::size_t width_bytes, std::size_t height, cudaMemcpyKind,
                                     cudaStream_t stream = nullptr) {
  return emulator_cuda::copy_in_stream(to, from, stream, [=] {
    for (std::size_t row = 0; row < height; ++row)
      emulator_cuda::copy(static_cast<char*>(to) + row * to_pitch,
                          static_cast<const char*>(from) + row * from_pitch, width_bytes);
  });
}
inline cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                std::size_t width_bytes, std::size_t height, cudaMemcpyKind kind) {
  cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width_bytes, height, kind);
  return emulator_cuda::wait_if_of_both(to, from);
}
inline cudaError_t cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width_bytes,
                                std::size_t height) {
  for (std::size_t row = 0; row < height; ++row)
    cudaMemset(static_cast<char*>(memory) + row * pitch, value, width_bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width_bytes,
                                     std::size_t height, cudaStream_t stream = nullptr) {
  emulator_cuda::submit(stream, emulator_cuda::NodeKind::kMemset, [=] {
    for (std::size_t row = 0; row < height; ++row)
      emulator_cuda::set(static_cast<char*>(memory) + row * pitch, value, width_bytes);
  });
  return cudaSuccess;
}
template <typename... Arguments>
cudaError_t cudaMemPrefetchAsync(Arguments&&...) {  // a hint
  return cudaSuccess;
}
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};
template <typename... Arguments>
cudaError_t cudaMemAdvise(Arguments&&...) {  // a hint
  return cudaSuccess;
}
inline constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;
inline constexpr unsigned cudaMemAttachHost = 2, cudaMemAttachSingle = 4;
template <typename T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, T*, std::size_t = 0, unsigned = cudaMemAttachSingle) {
  return cudaSuccess;  // managed memory is accessible to every stream
}
enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};

// ---- Pools: an allocation has its memory at once, and nothing is kept after it is freed.

enum cudaMemAllocationType { cudaMemAllocationTypeInvalid, cudaMemAllocationTypePinned };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone, cudaMemHandleTypePosixFileDescriptor };
enum cudaMemLocationType {
  cudaMemLocationTypeInvalid,
  cudaMemLocationTypeDevice,
  cudaMemLocationTypeHost,
  cudaMemLocationTypeHostNuma,
  cudaMemLocationTypeHostNumaCurrent
};
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
enum cudaMemAccessFlags {
  cudaMemAccessFlagsProtNone,
  cudaMemAccessFlagsProtRead,
  cudaMemAccessFlagsProtReadWrite = 3
};
struct cudaMemAccessDesc {
  cudaMemLocation location;
  cudaMemAccessFlags flags;
};
struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  cudaMemAllocationHandleType handleTypes;
  cudaMemLocation location;
  void* win32SecurityAttributes;
  std::size_t maxSize;
  unsigned short usage;
};
enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic,
  cudaMemPoolReuseAllowInternalDependencies,
  cudaMemPoolAttrReleaseThreshold
};
namespace emulator_cuda {
struct Pool {
  std::map<cudaMemPoolAttr, unsigned long long> attributes;
};
inline Pool* pool_of_device(Pool* next = nullptr) {
  static Pool first;
  static Pool* current = &first;
  if (next) current = next;
  return current;
}
}  // namespace emulator_cuda
using cudaMemPool_t = emulator_cuda::Pool*;
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = emulator_cuda::pool_of_device();
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
inline cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t pool) {
  emulator_cuda::pool_of_device(pool);
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  *pool = new emulator_cuda::Pool;
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    std::memcpy(&pool->attributes[attribute], value, sizeof(unsigned long long));
  else
    pool->attributes[attribute] = static_cast<unsigned long long>(*static_cast<int*>(value));
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold)
    std::memcpy(value, &pool->attributes[attribute], sizeof(unsigned long long));
  else
    *static_cast<int*>(value) = static_cast<int>(pool->attributes[attribute]);
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMallocFromPoolAsync(T** memory, std::size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(memory, bytes, stream);
}

// ---- Streams and events.

inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = emulator_cuda::priority_of(stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = emulator_cuda::waits_for_default_stream(stream) ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}
using cudaHostFn_t = void (*)(void*);
namespace emulator_cuda {
/// Host code may wait for the function by means that are not CUDA's, so that it is not put off.
template <typename Function>
cudaError_t call_in_stream(cudaStream_t stream, Function function) {
  submit(stream, NodeKind::kHost, function);
  if (!captured_graph(stream)) finish(stream);
  return cudaSuccess;
}
}  // namespace emulator_cuda
inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return emulator_cuda::call_in_stream(stream, [=] { function(data); });
}
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                         void (*function)(cudaStream_t, cudaError_t, void*), void* data,
                                         unsigned) {
  return emulator_cuda::call_in_stream(stream, [=] { function(stream, cudaSuccess, data); });
}

// ---- What a stream's accesses are worth in the L2: hints.

enum cudaAccessProperty {
  cudaAccessPropertyNormal,
  cudaAccessPropertyStreaming,
  cudaAccessPropertyPersisting
};
struct cudaAccessPolicyWindow {
  void* base_ptr;
  std::size_t num_bytes;
  float hitRatio;
  cudaAccessProperty hitProp, missProp;
};
enum cudaStreamAttrID { cudaStreamAttributeAccessPolicyWindow = 1, cudaStreamAttributePriority = 8 };
union cudaStreamAttrValue {
  cudaAccessPolicyWindow accessPolicyWindow;
  int priority;
};
inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return cudaSuccess;
}
inline cudaError_t cudaCtxResetPersistingL2Cache() {
  return cudaSuccess;
}

// ---- The device and its functions.

inline constexpr unsigned cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2,
                          cudaDeviceScheduleBlockingSync = 4, cudaDeviceBlockingSync = 4,
                          cudaDeviceMapHost = 8, cudaDeviceLmemResizeToMax = 16;
inline cudaError_t cudaSetDeviceFlags(unsigned) {
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = cudaDeviceMapHost;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int) {
  std::snprintf(text, static_cast<std::size_t>(bytes), "0000:00:00.0");
  return cudaSuccess;
}
inline cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  *device = 0;
  return cudaSuccess;
}

// ---- Peers: other devices of the run (emulator/machine/ranks.h). Every device can access every other one.

inline constexpr cudaError_t cudaErrorPeerAccessUnsupported = static_cast<cudaError_t>(217);
inline constexpr cudaError_t cudaErrorPeerAccessNotEnabled = static_cast<cudaError_t>(705);
enum cudaDeviceP2PAttr {
  cudaDevP2PAttrPerformanceRank = 1,
  cudaDevP2PAttrAccessSupported,
  cudaDevP2PAttrNativeAtomicSupported,
  cudaDevP2PAttrCudaArrayAccessSupported
};
namespace emulator_cuda {
inline bool are_peers(int device, int peer) {
  return device != peer && std::min(device, peer) >= 0 && std::max(device, peer) < emulator::device_count();
}
}  // namespace emulator_cuda
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = emulator_cuda::are_peers(device, peer) ? 1 : 0;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer) {
  *value = 0;
  if (!emulator_cuda::are_peers(device, peer)) return cudaErrorInvalidDevice;
  *value = attribute == cudaDevP2PAttrPerformanceRank ? 0 : 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!emulator_cuda::are_peers(emulator::current_device(), peer)) return cudaErrorInvalidDevice;
  return emulator::set_peer_access(emulator::current_device(), peer, true)
             ? cudaSuccess
             : cudaErrorPeerAccessAlreadyEnabled;
}
inline cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return emulator::set_peer_access(emulator::current_device(), peer, false) ? cudaSuccess
                                                                            : cudaErrorPeerAccessNotEnabled;
}
inline cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                       std::size_t bytes, cudaStream_t stream = nullptr) {
  if (emulator::has_ranks() &&
      (emulator_cuda::owner_of(to) != to_device || emulator_cuda::owner_of(from) != from_device))
    return cudaErrorInvalidValue;
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
inline cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                                  std::size_t bytes) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes);
}

enum cudaLimit {
  cudaLimitStackSize,
  cudaLimitPrintfFifoSize,
  cudaLimitMallocHeapSize,
  cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount,
  cudaLimitMaxL2FetchGranularity,
  cudaLimitPersistingL2CacheSize
};
inline cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  *value = limit == cudaLimitStackSize ? 1024 : std::size_t{8} << 20;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) {
  return cudaSuccess;
}
enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) {  // a hint
  return cudaSuccess;
}
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes = 0, constSizeBytes = 0, localSizeBytes = 0;
  int maxThreadsPerBlock = 1024, numRegs = 0, ptxVersion = 90, binaryVersion = 90;
};
/// The emulator's compiler knows nothing of registers.
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel* kernel) {
  *attributes = {};
  attributes->maxThreadsPerBlock = emulator_cuda::largest_block(reinterpret_cast<const void*>(kernel), 0);
  return cudaSuccess;
}
// NOLINTEND(readability-identifier-naming)
