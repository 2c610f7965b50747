// One way to start a kernel, for plain, cluster and co-resident grids.
#pragma once

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

#include "ptx/card.h"
#include "ptx/core.cuh"
#include "ptx/launch_shape.h"
#include "ptx/stuck_wait.cuh"
#include "ptx/trace.cuh"

namespace gemm::ptx {

/// The address that identifies a kernel to the runtime (registers, occupancy).
template <typename... Parameters>
const void* kernel_handle(void (*kernel)(Parameters...)) {
  return reinterpret_cast<const void*>(kernel);
}

/// Dynamic shared memory above 48 KB must be asked for. CUDA C++ Programming Guide, "Shared Memory".
inline cudaError_t allow_shared_memory(const void* kernel, int bytes) {
  constexpr int kDefaultSharedLimit = (kTraces ? 40 : 48) * 1024;  // a traced kernel has some of its own
  if (bytes <= kDefaultSharedLimit) return cudaSuccess;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

/// What the current device says of itself, asked once for each device; an H200 where there is none. CUDA
/// Runtime API, "Device Management": cudaGetDeviceProperties, cudaDeviceGetAttribute.
inline Card this_card() {
  static std::mutex mutex;
  static std::map<int, Card> known;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    cudaGetLastError();
    return kH200;
  }
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(device); found != known.end()) return found->second;
  int clock_khz = 0;
  int memory_khz = 0;
  int bus_bits = 0;
  cudaDeviceProp properties{};
  const bool answered =
      cudaGetDeviceProperties(&properties, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device) == cudaSuccess;
  if (!answered) cudaGetLastError();
  Card card = kH200;
  if (answered && properties.multiProcessorCount > 0 && clock_khz > 0 && memory_khz > 0 && bus_bits > 0) {
    card.sms = properties.multiProcessorCount;
    card.clusters = {};
    card.clock_mhz = clock_khz / 1e3;
    card.dram_bytes_per_us = 2.0 * memory_khz / 1e3 * bus_bits / 8;  // two transfers per clock
    card.l2_rate = l2_rate_of(properties.name);
  }
  card.device = device;
  return known[device] = card;
}

/// How many CTAs of `kernel`, launched with this block, cluster and shared memory, the GPU holds at once: the
/// grid of a persistent kernel, a multiple of the cluster. shape.grid is ignored. Where there is no GPU, the
/// answer for an H200 with every SM in use (132 SMs, shape.ctas_per_sm each). CUDA Runtime API, "Occupancy":
/// cudaOccupancyMaxActiveClusters, cudaOccupancyMaxActiveBlocksPerMultiprocessor.
inline unsigned resident_ctas(const void* kernel, const LaunchShape& shape) {
  constexpr unsigned kSmsOfAnH200 = 132;
  const auto cluster = static_cast<unsigned>(shape.cluster.count());
  int device = 0;
  int sms = 0;
  int count = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status == cudaSuccess) status = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (status == cudaSuccess) status = allow_shared_memory(kernel, shape.shared_bytes);
  if (status == cudaSuccess) {
    const auto bytes = static_cast<std::size_t>(shape.shared_bytes);
    if (cluster == 1) {
      status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel,
                                                             static_cast<int>(shape.block.count()), bytes);
      count *= sms;
    } else {
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {shape.cluster.x, shape.cluster.y, shape.cluster.z};
      cudaLaunchConfig_t config{};
      config.gridDim = dim3(shape.cluster.x, shape.cluster.y, shape.cluster.z);
      config.blockDim = dim3(shape.block.x, shape.block.y, shape.block.z);
      config.dynamicSmemBytes = bytes;
      config.attrs = &attribute;
      config.numAttrs = 1;
      status = cudaOccupancyMaxActiveClusters(&count, kernel, &config);
    }
  }
  if (status != cudaSuccess || count == 0) {
    cudaGetLastError();  // launch() will find what is wrong, and say so
    return kSmsOfAnH200 * static_cast<unsigned>(shape.ctas_per_sm) / cluster * cluster;
  }
  return static_cast<unsigned>(count) * cluster;
}

/// Starts `kernel` with `shape` on `stream`. Throws std::runtime_error naming the kernel's launch error.
/// CUDA Runtime API, "Execution Control": cudaLaunchKernelExC, cudaLaunchAttribute.
///
/// static, because it connects the variables of the translation unit that the kernel is in; as one function
/// for all units whose kernels have the same parameters it would connect those of one of them.
template <typename... Parameters, typename... Arguments>
static void launch(void (*kernel)(Parameters...), const LaunchShape& shape, Stream stream,
                   Arguments&&... arguments) {
  auto check = [](cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // the runtime remembers it; the next caller to look must not take it for its own
    throw std::runtime_error(std::string(what) + " failed: " + cudaGetErrorString(status));
  };
  check(allow_shared_memory(kernel_handle(kernel), shape.shared_bytes),
        "raising the dynamic shared memory limit of the kernel");
  connect_stuck_wait();
  connect_trace();
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.grid.x, shape.grid.y, shape.grid.z);
  config.blockDim = dim3(shape.block.x, shape.block.y, shape.block.z);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[3];
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
  if (shape.dependent) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  config.attrs = attributes;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "starting the kernel");
}

}  // namespace gemm::ptx
