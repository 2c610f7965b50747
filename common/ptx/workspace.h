// Device memory that a prepared multiplication keeps for itself.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "ptx/launch_shape.h"

namespace gemm::ptx {

/// `bytes` of device memory for each stream that uses them, zeroed when the stream asks for the first time:
/// launches on one stream follow each other and share, launches on two streams may overlap and must not.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : bytes_(bytes) {}
  ~Workspace() {
    for (const auto& [stream, memory] : memory_) cudaFree(memory);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Throws std::runtime_error that says how much could not be had. CUDA Runtime API, "Memory Management".
  void* of(Stream stream) {
    if (bytes_ == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    void*& memory = memory_[stream];
    if (memory != nullptr) return memory;
    cudaError_t status = cudaMalloc(&memory, bytes_);
    if (status == cudaSuccess) status = cudaMemset(memory, 0, bytes_);
    if (status == cudaSuccess) status = cudaDeviceSynchronize();
    if (status != cudaSuccess) {
      cudaGetLastError();
      cudaFree(memory);
      memory = nullptr;
      throw std::runtime_error("a workspace of " + std::to_string(bytes_) +
                               " bytes could not be allocated: " + cudaGetErrorString(status));
    }
    return memory;
  }

 private:
  std::size_t bytes_;
  std::mutex mutex_;
  std::map<Stream, void*> memory_;
};

/// Zeroes `bytes` of device memory, in the order of the stream. Throws std::runtime_error.
/// CUDA Runtime API, "Memory Management".
inline void set_zero(void* memory, std::size_t bytes, Stream stream) {
  const cudaError_t status = cudaMemsetAsync(memory, 0, bytes, stream);
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(std::to_string(bytes) +
                           " bytes could not be set to zero: " + cudaGetErrorString(status));
}

/// Device memory with a copy of host bytes, made when a multiplication is prepared.
class DeviceCopy {
 public:
  /// Throws std::runtime_error that says how much could not be had. CUDA Runtime API, "Memory Management".
  DeviceCopy(const void* host, std::size_t bytes) {
    if (bytes == 0) return;
    cudaError_t status = cudaMalloc(&memory_, bytes);
    if (status == cudaSuccess) status = cudaMemcpy(memory_, host, bytes, cudaMemcpyHostToDevice);
    if (status == cudaSuccess) return;
    cudaGetLastError();
    cudaFree(memory_);
    throw std::runtime_error("a copy of " + std::to_string(bytes) +
                             " bytes could not be allocated: " + cudaGetErrorString(status));
  }
  ~DeviceCopy() { cudaFree(memory_); }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  const void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

}  // namespace gemm::ptx
