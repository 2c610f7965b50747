// Functions of the CUDA runtime that example programs call beside those of cuda_runtime.h, which includes
// this: pitched and pinned memory, streams and events with flags, limits, attributes of functions.
//
// CUDA Runtime API. As there, a launch returns when its grid has run, so that streams order nothing.
#pragma once

#include <cstddef>
#include <cstring>
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
inline cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                std::size_t width_bytes, std::size_t height, cudaMemcpyKind kind) {
  for (std::size_t row = 0; row < height; ++row)
    cudaMemcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
               width_bytes, kind);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                     std::size_t width_bytes, std::size_t height, cudaMemcpyKind kind,
                                     cudaStream_t = nullptr) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width_bytes, height, kind);
}
inline cudaError_t cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width_bytes,
                                std::size_t height) {
  for (std::size_t row = 0; row < height; ++row)
    cudaMemset(static_cast<char*>(memory) + row * pitch, value, width_bytes);
  return cudaSuccess;
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
template <typename... Arguments>
cudaError_t cudaMemPrefetchAsync(Arguments&&...) {  // a hint
  return cudaSuccess;
}
template <typename... Arguments>
cudaError_t cudaMemAdvise(Arguments&&...) {  // a hint
  return cudaSuccess;
}
inline constexpr int cudaCpuDeviceId = -1;

// ---- Streams and events.

inline constexpr unsigned cudaStreamDefault = 0;
inline constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventQuery(cudaEvent_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamQuery(cudaStream_t) {
  emulator::complete_grids();
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
/// `function` runs here and now: what came before it in the stream is over.
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*function)(void*), void* data) {
  emulator::complete_grids();
  function(data);
  return cudaSuccess;
}
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                         void (*function)(cudaStream_t, cudaError_t, void*), void* data,
                                         unsigned) {
  emulator::complete_grids();
  function(stream, cudaSuccess, data);
  return cudaSuccess;
}

// ---- The device and its functions.

inline constexpr unsigned cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2,
                          cudaDeviceScheduleBlockingSync = 4, cudaDeviceMapHost = 8;
inline cudaError_t cudaSetDeviceFlags(unsigned) {
  return cudaSuccess;
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize };
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
