#include "harness/timing/gpu/meet.h"

#include <cuda_runtime.h>

#include "harness/backend/cuda_check.h"

namespace harness {
namespace {

/// One thread for each rank: it tells that rank that this one is here, and waits for it.
__global__ void meet_kernel(MeetingPlace place, int rank, int ranks, std::uint32_t epoch) {
  const int peer = static_cast<int>(threadIdx.x);
  if (peer >= ranks) return;
  std::uint32_t seen = 0;
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(place.words[peer] + rank), "r"(epoch) : "memory");
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                 : "=r"(seen)
                 : "l"(place.words[rank] + peer)
                 : "memory");
  } while (static_cast<std::int32_t>(seen - epoch) < 0);
}

}  // namespace

void load_meeting() {
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, meet_kernel), "loading the barrier of ranks");
}

void launch_meeting(const MeetingPlace& place, int rank, int ranks, std::uint32_t epoch,
                    gemm::ptx::Stream stream) {
  meet_kernel<<<1, kMostRanks, 0, stream>>>(place, rank, ranks, epoch);
  check_cuda(cudaGetLastError(), "starting the barrier of ranks");
}

}  // namespace harness
