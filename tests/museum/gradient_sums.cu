// A backward pass adds to gradients that a first kernel sets to zero; the two may overlap.
//
// As reported: -D NO_WAIT (one of the paths through the dependent kernel has no wait).
#include <vector>

#include "dependent.h"

constexpr int kThreads = 64;

// ANCHOR: kernel
__global__ void preprocess(float* gradients) {
  cudaTriggerProgrammaticLaunchCompletion();
  __nanosleep(20000);  // in place of the row sums
  gradients[threadIdx.x] = 0;
}

__global__ void backward(const float* parts, float* gradients, bool block_sparse) {
  const float part = parts[blockIdx.x * kThreads + threadIdx.x];  // not written by preprocess
#ifdef NO_WAIT
  if (!block_sparse)
#endif
    cudaGridDependencySynchronize();
  atomicAdd(&gradients[threadIdx.x], part);
}
// ANCHOR_END: kernel

void check_kernel(emulate::Run& run) {
  const int ctas = 8;
  const std::vector<float> parts = run.small_integers<float>(ctas * kThreads);
  float* gradients = run.buffer("gradients", std::vector<float>(kThreads, 1000));  // from the step before
  const float* input = run.buffer("parts", parts);
  cudaDeviceSynchronize();
  launch_dependent(preprocess, 1, kThreads, gradients);
  launch_dependent(backward, ctas, kThreads, input, gradients, true);
  std::vector<float> expected(kThreads);
  for (size_t i = 0; i < parts.size(); ++i) expected[i % kThreads] += parts[i];
  run.expect_equal("gradients", run.host(gradients), expected);
}
