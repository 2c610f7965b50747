#include "harness/timing/gpu/delay.h"

#include <cuda_runtime.h>

#include "harness/backend/cuda_check.h"

namespace harness {
namespace {

__global__ void delay_kernel(unsigned long long nanoseconds) {
  unsigned long long start;
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

}  // namespace

void launch_delay(gemm::ptx::Stream stream, double microseconds) {
  delay_kernel<<<1, 1, 0, stream>>>(static_cast<unsigned long long>(microseconds * 1e3));
  check_cuda(cudaGetLastError(), "starting the delay kernel");
}

}  // namespace harness
