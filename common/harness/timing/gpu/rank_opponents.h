// What the opponents of products over several GPUs have in common. GPU build only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/backend/cuda_check.h"
#include "harness/backend/ranks.h"
#include "harness/timing/timing.h"
#include "ptx/launch_shape.h"

namespace harness {

/// NCCL, of a library that is loaded at run time. NCCL User Guide, "NCCL API".
class Nccl {
 public:
  explicit Nccl(int ranks);
  bool is_usable() const { return !communicators_.empty(); }

  /// In place: every rank's part, of `part` bytes, is where it belongs in its memory.
  void all_gather(const std::vector<std::pair<void*, gemm::ptx::Stream>>& ranks, std::size_t part) const;

  struct Scattered {
    const gemm::bf16* from;  // [ranks][part]
    gemm::bf16* to;          // [part]
    gemm::ptx::Stream stream;
  };
  /// Every rank gets the sum of all ranks' parts with its number, of `part` elements.
  void reduce_scatter(const std::vector<Scattered>& ranks, std::size_t part) const;

 private:
  static void check(int status);

  int (*group_start_)() = nullptr;
  int (*group_end_)() = nullptr;
  int (*all_gather_)(const void* from, void* to, std::size_t count, int type, void* communicator,
                     gemm::ptx::Stream stream) = nullptr;
  int (*reduce_scatter_)(const void* from, void* to, std::size_t count, int type, int operation,
                         void* communicator, gemm::ptx::Stream stream) = nullptr;
  std::vector<void*> communicators_;
};

/// The fastest of cuBLASLt's algorithms for this product, timed on rank 0, whose memory it is in.
Contestant fastest_of_cublaslt(const Ranks& ranks, const gemm::Gemm& product);

/// Says that something has been sent, or that it may be.
struct SentEvent {
  SentEvent() { check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event"); }
  ~SentEvent() { cudaEventDestroy(event); }
  SentEvent(const SentEvent&) = delete;
  SentEvent& operator=(const SentEvent&) = delete;

  void record(gemm::ptx::Stream stream) const {
    check_cuda(cudaEventRecord(event, stream), "recording an event");
  }
  void hold(gemm::ptx::Stream stream) const {
    check_cuda(cudaStreamWaitEvent(stream, event), "waiting for an event");
  }

  cudaEvent_t event{};
};

}  // namespace harness
