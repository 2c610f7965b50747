// One kernel finds where each CTA of the next kernel has to start and stop; the two may overlap.
//
// As reported: -D SYNC_LATE (the dependent kernel waits after it has read its bounds).
#include <vector>

#include "dependent.h"

constexpr int kCtas = 32;
constexpr int kThreads = 64;

// ANCHOR: kernel
__global__ void partition(int* bounds, int count) {
  cudaTriggerProgrammaticLaunchCompletion();
  __nanosleep(20000);  // in place of the searches
  for (int i = threadIdx.x; i <= kCtas; i += kThreads) bounds[i] = static_cast<int>(i * count / kCtas);
}

__global__ void merge(const int* bounds, const int* in, int* out) {
#ifndef SYNC_LATE
  cudaGridDependencySynchronize();
#endif
  const int begin = bounds[blockIdx.x], end = bounds[blockIdx.x + 1];
#ifdef SYNC_LATE
  cudaGridDependencySynchronize();
#endif
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kThreads) out[i] = in[i];
}
// ANCHOR_END: kernel

void check_kernel(emulate::Run& run) {
  const std::vector<int> in = run.small_integers<int>(3000);
  int* bounds = run.buffer("bounds", std::vector<int>(kCtas + 1));  // zeros
  int* out = run.buffer("out", std::vector<int>(in.size(), 99));
  const int* input = run.buffer("in", in);
  cudaDeviceSynchronize();
  launch_dependent(partition, 1, kThreads, bounds, 3000);
  launch_dependent(merge, kCtas, kThreads, bounds, input, out);
  run.expect_equal("out", run.host(out), in);
}
