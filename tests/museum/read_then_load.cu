// Consumers read a stage with ordinary loads and release it; the producer then lets the copy engine overwrite
// it.
//
// As reported: -D NO_FENCE (no fence.proxy.async between the reads and the next load). The cure of the
// report: -D FENCE_BY_PRODUCER (the producer executes the fence, between its wait and the load).
#include <cuda/ptx>

#include <vector>

namespace ptx = cuda::ptx;

constexpr int kReaders = 128;
constexpr int kToken = 256;

__global__ void sum_tokens(const float* in, float* out, int tokens) {
  __shared__ alignas(128) float stage[2][kToken];
  __shared__ uint64_t full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) ptx::mbarrier_init(&full[s], 1), ptx::mbarrier_init(&empty[s], kReaders);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  // ANCHOR: kernel
  if (threadIdx.x == kReaders) {
    for (int t = 0; t < tokens; ++t) {
      while (!ptx::mbarrier_try_wait_parity(&empty[t % 2], t / 2 % 2 ^ 1)) {
      }
#ifdef FENCE_BY_PRODUCER
      ptx::fence_proxy_async(ptx::space_shared);
#endif
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[t % 2],
                                     sizeof stage[0]);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stage[t % 2], in + t * kToken,
                         sizeof stage[0], &full[t % 2]);
    }
  } else if (threadIdx.x < kReaders) {
    float sums[2] = {};
    for (int t = 0; t < tokens; ++t) {
      while (!ptx::mbarrier_try_wait_parity(&full[t % 2], t / 2 % 2)) {
      }
      for (int i = 0; i < 2; ++i) sums[i] += stage[t % 2][threadIdx.x + i * kReaders];
#if !defined(NO_FENCE) && !defined(FENCE_BY_PRODUCER)
      ptx::fence_proxy_async(ptx::space_shared);
#endif
      ptx::mbarrier_arrive(&empty[t % 2]);
    }
    // ANCHOR_END: kernel
    for (int i = 0; i < 2; ++i) out[threadIdx.x + i * kReaders] = sums[i];
  }
}

void check_kernel(emulate::Run& run) {
  const int tokens = 7;
  const std::vector<float> in = run.small_integers<float>(tokens * kToken);
  float* out = run.buffer<float>("out", kToken);
  sum_tokens<<<1, kReaders + 32>>>(run.buffer("in", in), out, tokens);
  std::vector<float> expected(kToken);
  for (size_t i = 0; i < in.size(); ++i) expected[i % kToken] += in[i];
  run.expect_equal("out", run.host(out), expected);
}
