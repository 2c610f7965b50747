// A point in the GPU's work whose time is taken. GPU build only.
#pragma once

#include <cuda_runtime_api.h>

#include "harness/backend/cuda_check.h"
#include "ptx/launch_shape.h"

namespace harness {

class CudaEvent {
 public:
  CudaEvent() { check_cuda(cudaEventCreate(&event_), "creating an event"); }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(gemm::ptx::Stream stream) { check_cuda(cudaEventRecord(event_, stream), "recording an event"); }

  /// Has the GPU passed it? Never waits.
  bool passed() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    check_cuda(status, "running a kernel");
    return true;
  }

  /// Both must have passed. Resolution: about half a microsecond.
  double microseconds_since(const CudaEvent& start) const {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start.event_, event_), "reading an event");
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  cudaEvent_t event_{};
};

}  // namespace harness
