// A GEMM's load warps: one brings values, one brings their scale factors, which the kernel before has
// written.
//
// As reported: -D ONE_WARP_WAITS (only the warp that loads the values waits for the kernel before).
#include <cuda/ptx>

#include <vector>

#include "dependent.h"

namespace ptx = cuda::ptx;

constexpr int kValues = 256;

__global__ void quantize(const float* in, float* values, float* scales) {
  cudaTriggerProgrammaticLaunchCompletion();
  __nanosleep(20000);  // in place of the search for the largest value
  const unsigned i = blockIdx.x * kValues + threadIdx.x;
  values[i] = in[i];
  scales[i] = static_cast<float>(i % 4);
}

__device__ void load(float* tile, const float* from, uint64_t* full) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                 kValues * sizeof(float));
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, from, kValues * sizeof(float), full);
}

__global__ void scale(const float* values, const float* scales, float* out) {
  __shared__ alignas(128) float tile[kValues], factors[kValues];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 2);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  // ANCHOR: kernel
  if (threadIdx.x == 0) {
    cudaGridDependencySynchronize();
    load(tile, values + blockIdx.x * kValues, &full);
  } else if (threadIdx.x == 32) {
#ifndef ONE_WARP_WAITS
    cudaGridDependencySynchronize();
#endif
    load(factors, scales + blockIdx.x * kValues, &full);
  }
  // ANCHOR_END: kernel
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  out[blockIdx.x * kValues + threadIdx.x] = tile[threadIdx.x] * factors[threadIdx.x];
}

void check_kernel(emulate::Run& run) {
  const std::vector<float> in = run.small_integers<float>(2 * kValues);
  float* values = run.buffer("values", std::vector<float>(in.size()));
  float* scales = run.buffer("scales", std::vector<float>(in.size(), 127));  // no scale factor
  float* out = run.buffer<float>("out", in.size());
  const float* input = run.buffer("in", in);
  cudaDeviceSynchronize();
  launch_dependent(quantize, 2, kValues, input, values, scales);
  launch_dependent(scale, 2, kValues, values, scales, out);
  std::vector<float> expected(in.size());
  for (size_t i = 0; i < in.size(); ++i) expected[i] = in[i] * static_cast<float>(i % 4);
  run.expect_equal("out", run.host(out), expected);
}
