// A multistage loop keeps copies in flight in a rotating buffer of four stages.
//
// As reported: -D FIVE_STAGES (five copies are in flight, so the fifth goes where the first still is). Found
// while reducing it: -D NO_LAST_BARRIER (four copies, but a fast thread refills the stage that others still
// read).
#include <cuda/pipeline>

#include <vector>

constexpr int kStages = 4;
constexpr int kThreads = 64;
#ifdef FIVE_STAGES
constexpr int kInFlight = 5;
#else
constexpr int kInFlight = 4;
#endif

__global__ void sum_reversed(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float stage[kStages][kThreads];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  float sum = 0;
  // ANCHOR: kernel
  for (int tile = 0, next = 0; tile < tiles; ++tile) {
    for (; next < tile + kInFlight; ++next) {
      pipe.producer_acquire();
      if (next < tiles)
        cuda::memcpy_async(&stage[next % kStages][threadIdx.x], &in[next * kThreads + threadIdx.x],
                           sizeof(float), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    __syncthreads();
    sum += static_cast<float>(tile + 1) * stage[tile % kStages][kThreads - 1 - threadIdx.x];
    pipe.consumer_release();
#ifndef NO_LAST_BARRIER
    __syncthreads();
#endif
  }
  // ANCHOR_END: kernel
  out[threadIdx.x] = sum;
}

void check_kernel(emulate::Run& run) {
  const int tiles = 11;
  const std::vector<float> in = run.small_integers<float>(tiles * kThreads);
  float* out = run.buffer<float>("out", kThreads);
  sum_reversed<<<1, kThreads>>>(run.buffer("in", in), out, tiles);
  std::vector<float> expected(kThreads);
  for (size_t i = 0; i < in.size(); ++i)
    expected[kThreads - 1 - i % kThreads] += static_cast<float>(i / kThreads + 1) * in[i];
  run.expect_equal("out", run.host(out), expected);
}
