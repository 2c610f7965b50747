// One way to start a kernel, for plain, cluster and co-resident grids.
#pragma once

#include <stdexcept>
#include <string>

#include "ptx/core.cuh"
#include "ptx/launch_shape.h"
#include "ptx/stuck_wait.cuh"

namespace ptx {

/// The address that identifies a kernel to the runtime (registers, occupancy).
template <typename... Parameters>
const void* kernel_handle(void (*kernel)(Parameters...)) {
  return reinterpret_cast<const void*>(kernel);
}

/// Starts `kernel` with `shape` on `stream`. Throws std::runtime_error naming the kernel's launch error.
/// CUDA Runtime API, "Execution Control": cudaLaunchKernelExC, cudaLaunchAttribute.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape, Stream stream,
            Arguments&&... arguments) {
  constexpr int kDefaultSharedLimit = 48 * 1024;
  auto check = [](cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // the runtime remembers it; the next caller to look must not take it for its own
    throw std::runtime_error(std::string(what) + " failed: " + cudaGetErrorString(status));
  };
  if (shape.shared_bytes > kDefaultSharedLimit) {
    check(cudaFuncSetAttribute(kernel_handle(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               shape.shared_bytes),
          "raising the dynamic shared memory limit of the kernel");
  }
  connect_stuck_wait();
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.grid.x, shape.grid.y, shape.grid.z);
  config.blockDim = dim3(shape.block.x, shape.block.y, shape.block.z);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[2];
  if (shape.cluster.count() > 1) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
  }
  if (shape.co_resident) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  config.attrs = attributes;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "starting the kernel");
}

}  // namespace ptx
