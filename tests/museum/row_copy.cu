// One row of threads copies a vector that all rows add to their own values.
//
// As reported: -D NO_WAIT (the copying threads do not wait for their copies before the barrier).
#include <cuda_pipeline.h>

#include <vector>

constexpr int kColumns = 96;
constexpr int kRows = 2;

__global__ void add_vector(const float* in, const float* vector, float* out) {
  __shared__ alignas(16) float shared_vector[kColumns];
  __shared__ alignas(16) float tile[kRows][kColumns];
  const unsigned column = threadIdx.x;
  // ANCHOR: kernel
  if (threadIdx.y == 0) __pipeline_memcpy_async(&shared_vector[column], &vector[column], sizeof(float));
#ifndef NO_WAIT
  __pipeline_commit();
  __pipeline_wait_prior(0);
#endif
  __syncthreads();
  const unsigned i = (blockIdx.x * kRows + threadIdx.y) * kColumns + column;
  __pipeline_memcpy_async(&tile[threadIdx.y][column], &in[i], sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[i] = tile[threadIdx.y][column] + shared_vector[column];
  // ANCHOR_END: kernel
}

void check_kernel(emulate::Run& run) {
  const std::vector<float> in = run.small_integers<float>(8 * kRows * kColumns),
                           vector = run.small_integers<float>(kColumns);
  float* out = run.buffer<float>("out", in.size());
  add_vector<<<8, dim3(kColumns, kRows)>>>(run.buffer("in", in), run.buffer("vector", vector), out);
  std::vector<float> expected(in.size());
  for (size_t i = 0; i < in.size(); ++i) expected[i] = in[i] + vector[i % kColumns];
  run.expect_equal("out", run.host(out), expected);
}
