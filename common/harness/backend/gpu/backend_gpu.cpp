// harness/backend/backend.h on the CUDA runtime. The runtime is linked statically, the driver is all that
// must be installed.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "harness/backend/backend.h"
#include "harness/backend/cuda_check.h"
#include "harness/backend/watchdog.h"
#include "harness/base/problem.h"
#include "ptx/stuck_wait.h"

namespace harness {
namespace {

constexpr int kMinComputeCapability = 80;

/// 13000 -> "13.0".
std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// The toolkit this program was built with; no call of the runtime that could fail.
std::string toolkit_version() {
  return cuda_version(CUDART_VERSION);
}

/// "" or why the driver cannot serve this program.
std::string driver_problem() {
  int version = 0;
  const cudaError_t status = cudaDriverGetVersion(&version);
  cudaGetLastError();
  if (status != cudaSuccess || version == 0) {
    return fmt::format("no NVIDIA driver was found: running on a GPU needs one that supports CUDA {}",
                       toolkit_version());
  }
  // Within one major version a newer runtime works on an older driver ("minor version compatibility").
  if (version / 1000 < CUDART_VERSION / 1000) {
    return fmt::format(
        "the NVIDIA driver supports CUDA {}, but this program was built with CUDA {}: install a driver for "
        "CUDA {}.0 or newer, or build with an older toolkit",
        cuda_version(version), toolkit_version(), CUDART_VERSION / 1000);
  }
  return "";
}

/// "CUDA_VISIBLE_DEVICES is '...'" when that may be why no device is seen.
std::string visible_devices_hint() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", visible);
}

int attribute(cudaDeviceAttr name) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, name, 0), "asking the GPU for its limits");
  return value;
}

/// "" or why device 0, the first of the visible ones, cannot be used.
std::string find_device_problem() {
  std::string driver = driver_problem();
  if (!driver.empty()) return driver;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    return "no NVIDIA GPU was found" + visible_devices_hint();
  if (status != cudaSuccess) {
    return fmt::format("the NVIDIA driver does not answer: {} ({}){}", cudaGetErrorName(status),
                       cudaGetErrorString(status), visible_devices_hint());
  }
  int major = 0;
  int minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0),
             "asking for the compute capability");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0),
             "asking for the compute capability");
  if (major * 10 + minor < kMinComputeCapability) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, 0), "asking for the name of the GPU");
    return fmt::format("{} is too old: it has compute capability {}.{}, but the steps need {}.{} or newer",
                       properties.name, major, minor, kMinComputeCapability / 10, kMinComputeCapability % 10);
  }
  const cudaError_t used = cudaSetDevice(0);
  cudaGetLastError();
  if (used != cudaSuccess) {
    return fmt::format("the GPU cannot be used: {} ({}){}", cudaGetErrorName(used), cudaGetErrorString(used),
                       used == cudaErrorDevicesUnavailable ? ": another process holds it exclusively" : "");
  }
  return "";
}

/// Throws unless there is a usable device.
void require_device() {
  static const std::string kProblem = find_device_problem();
  if (!kProblem.empty()) throw Error(kProblem);
}

}  // namespace

const char* usual_meaning(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
      return "the kernel touched global memory outside its buffers; compute-sanitizer says which instruction";
    case cudaErrorMisalignedAddress:
      return "an access was not aligned to its own size, for example a 16-byte vector at an 8-byte boundary";
    case cudaErrorInvalidAddressSpace:
      return "an instruction was given an address of the wrong state space, for example a generic pointer "
             "instead of a shared-memory address";
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
      return "the GPU cannot execute an instruction in this state, for example a wgmma with a bad descriptor "
             "or a copy with a bad tensor map";
    case cudaErrorLaunchFailure:
      return "the kernel crashed, often because of a bad shared-memory address or an mbarrier that "
             "overflowed; compute-sanitizer says more";
    case cudaErrorHardwareStackError:
      return "the call stack overflowed";
    case cudaErrorAssert:
      return "an assert() in the kernel failed";
    case cudaErrorLaunchTimeout:
      return "the kernel ran longer than this machine's display allows";
    case cudaErrorLaunchOutOfResources:
      return "the block needs more registers than an SM has: use fewer threads, or __launch_bounds__";
    case cudaErrorInvalidConfiguration:
      return "the grid, the block or the cluster exceeds the GPU's limits, or the block is larger than "
             "__launch_bounds__ says";
    case cudaErrorInvalidValue:
      return "an argument is outside its range; in a launch, most often the dynamic shared memory is larger "
             "than the GPU allows";
    case cudaErrorCooperativeLaunchTooLarge:
      return "the grid does not fit on the GPU at once, but this kernel relies on that";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "the program contains no machine code for this GPU: build it for the GPU's compute capability";
    case cudaErrorUnsupportedPtxVersion:
      return "the driver is older than the toolkit";
    case cudaErrorMemoryAllocation:
      return "there is not enough device memory";
    case cudaErrorECCUncorrectable:
      return "the GPU's memory is damaged";
    default:
      return "";
  }
}

void check_cuda(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  const std::string meaning = usual_meaning(status);
  throw Error(fmt::format("{} failed: {} ({}){}", what, cudaGetErrorName(status), cudaGetErrorString(status),
                          meaning.empty() ? "" : ": " + meaning));
}

DeviceInfo device_info() {
  require_device();
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "asking for the GPU's properties");
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for the GPU's free memory");
  int driver = 0;
  int runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  check_cuda(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");

  DeviceInfo info;
  info.name = properties.name;
  info.compute_capability =
      attribute(cudaDevAttrComputeCapabilityMajor) * 10 + attribute(cudaDevAttrComputeCapabilityMinor);
  info.sm_count = attribute(cudaDevAttrMultiProcessorCount);
  info.max_threads_per_sm = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  info.max_ctas_per_sm = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  info.registers_per_sm = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  info.shared_bytes_per_sm = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  info.shared_bytes_per_cta = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  info.reserved_shared_bytes = attribute(cudaDevAttrReservedSharedMemoryPerBlock);
  info.l2_bytes = attribute(cudaDevAttrL2CacheSize);
  info.memory_bytes = static_cast<std::int64_t>(total_bytes);
  info.memory_free_bytes = static_cast<std::int64_t>(free_bytes);
  info.clock_hz = attribute(cudaDevAttrClockRate) * 1e3;  // kHz
  // Two transfers a clock, bus width in bits.
  info.memory_bytes_per_second =
      2.0 * attribute(cudaDevAttrMemoryClockRate) * 1e3 * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  info.driver_version = cuda_version(driver);
  info.runtime_version = cuda_version(runtime);
  return info;
}

void* device_allocate(std::size_t bytes, std::string_view name) {
  require_device();
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for the GPU's free memory");
    throw Error(fmt::format("{} needs {} of device memory, but only {} of {} are free", name,
                            human_bytes(static_cast<double>(bytes)),
                            human_bytes(static_cast<double>(free_bytes)),
                            human_bytes(static_cast<double>(total_bytes))));
  }
  check_cuda(status, fmt::format("allocating device memory for {}", name));
  return memory;
}

void device_free(void* memory) noexcept {
  // After a failed kernel this fails as well, with an error that has been reported already.
  if (memory != nullptr && cudaFree(memory) != cudaSuccess) cudaGetLastError();
}

void copy_to_device(void* device, const void* host, std::size_t bytes) {
  const Watchdog watchdog("a copy to the device");
  check_cuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copying to the device");
}

void copy_to_host(void* host, const void* device, std::size_t bytes) {
  const Watchdog watchdog("a copy from the device");
  check_cuda(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copying from the device");
}

void fill_device(void* device, std::uint8_t value, std::size_t bytes) {
  check_cuda(cudaMemset(device, value, bytes), "filling device memory");
}

void synchronize() {
  const Watchdog watchdog("its work");
  check_cuda(cudaGetLastError(), "starting a kernel");
  const cudaError_t status = cudaDeviceSynchronize();
  if (const gemm::ptx::StuckWait* stuck = gemm::ptx::stuck_wait_buffer();
      stuck != nullptr && stuck->reported != 0)
    throw Error("a wait did not end: " + gemm::ptx::stuck_sentence(*stuck));
  check_cuda(status, "running a kernel");
}

KernelResources kernel_resources(const void* kernel) {
  require_device();
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    const int capability =
        attribute(cudaDevAttrComputeCapabilityMajor) * 10 + attribute(cudaDevAttrComputeCapabilityMinor);
    throw Error(
        fmt::format("this kernel was not built for this GPU's compute capability {}.{}: steps 01 to 07 are "
                    "built for 8.x and 9.0, later ones for 9.0 only",
                    capability / 10, capability % 10));
  }
  check_cuda(status, "asking for the kernel's resources");
  return {.registers = attributes.numRegs,
          .static_shared_bytes = static_cast<int>(attributes.sharedSizeBytes),
          .local_bytes = static_cast<int>(attributes.localSizeBytes),
          .max_threads = attributes.maxThreadsPerBlock};
}

int resident_ctas_per_sm(const void* kernel, int threads, int dynamic_shared_bytes) {
  require_device();
  // Without this the runtime counts a kernel above 48 KB as one that never fits.
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic_shared_bytes),
             fmt::format("giving the kernel {} bytes of dynamic shared memory", dynamic_shared_bytes));
  int count = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, threads,
                                                           static_cast<std::size_t>(dynamic_shared_bytes)),
             "computing the occupancy");
  return count;
}

}  // namespace harness
