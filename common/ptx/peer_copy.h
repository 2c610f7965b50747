// A copy from one GPU's memory to another one's by a copy engine, and the flag that says that it has arrived:
// no SM takes part.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
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

/// Writes a flag when everything before it in the stream is done and visible to all GPUs, as a release of
/// system scope would. No kernel takes part. Throws std::runtime_error. CUDA Driver API, "Stream
/// Memory Operations": cuStreamWriteValue32.
void write_flag(std::uint32_t* flag, std::uint32_t value, Stream stream);  // peer_copy.cu

/// A second stream of the device that is current when this is made. CUDA Runtime API, "Event Management".
class SideStream {
 public:
  SideStream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    for (cudaEvent_t* event : {&begun_, &ended_})
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
  }
  ~SideStream() {
    for (cudaEvent_t event : {begun_, ended_}) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  /// What this stream gets from now on begins after what `main` has so far.
  Stream begin_after(Stream main) {
    check(cudaEventRecord(begun_, main), "recording an event");
    check(cudaStreamWaitEvent(stream_, begun_), "waiting for an event");
    return stream_;
  }
  /// What `main` gets from now on begins after what this stream has so far.
  void end_before(Stream main) {
    check(cudaEventRecord(ended_, stream_), "recording an event");
    check(cudaStreamWaitEvent(main, ended_), "waiting for an event");
  }

 private:
  static void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    throw std::runtime_error(std::string(what) + " failed: " + cudaGetErrorString(status));
  }

  cudaStream_t stream_ = nullptr;
  cudaEvent_t begun_ = nullptr;
  cudaEvent_t ended_ = nullptr;
};

}  // namespace gemm::ptx
