// The CTAs of a split-K product add their partial sums one after another, in the order of their numbers.
//
// As reported: -D NO_FENCE (no __threadfence between the sums and the semaphore that hands them on).
#include <cooperative_groups.h>

#include <vector>

constexpr int kThreads = 128;

__global__ void add_in_order(const float* parts, float* sums, int* semaphore) {
  // ANCHOR: kernel
  if (threadIdx.x == 0)
    while (*static_cast<volatile int*>(semaphore) != static_cast<int>(blockIdx.x)) {
    }
  __threadfence();
  __syncthreads();
  sums[threadIdx.x] += parts[blockIdx.x * kThreads + threadIdx.x];
#ifndef NO_FENCE
  __threadfence();
#endif
  __syncthreads();
  if (threadIdx.x == 0) *static_cast<volatile int*>(semaphore) = static_cast<int>(blockIdx.x) + 1;
  // ANCHOR_END: kernel
}

void check_kernel(emulate::Run& run) {
  const int ctas = 4;
  const std::vector<float> parts = run.small_integers<float>(ctas * kThreads);
  float* sums = run.buffer("sums", std::vector<float>(kThreads));
  int* semaphore = run.buffer("semaphore", std::vector<int>(1));
  const float* input = run.buffer("parts", parts);
  void* arguments[] = {&input, &sums, &semaphore};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(add_in_order), dim3(ctas), dim3(kThreads), arguments, 0,
                              nullptr);
  std::vector<float> expected(kThreads);
  for (size_t i = 0; i < parts.size(); ++i) expected[i % kThreads] += parts[i];
  run.expect_equal("sums", run.host(sums), expected);
}
