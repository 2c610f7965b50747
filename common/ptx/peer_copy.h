// A copy from one GPU's memory to another one's by a copy engine: no SM takes part.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "ptx/launch_shape.h"

namespace gemm::ptx {

/// Copies `bytes` bytes in the order of the stream, which belongs to the device that has `from`. Throws
/// std::runtime_error. CUDA Runtime API, "Memory Management": cudaMemcpyPeerAsync.
inline void copy_to_peer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                         Stream stream) {
  const cudaError_t status = cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw std::runtime_error(std::to_string(bytes) + " bytes could not be copied to device " +
                           std::to_string(to_device) + ": " + cudaGetErrorString(status));
}

}  // namespace gemm::ptx
