// Cluster launch control: the grid has a CTA for every row, and running CTAs cancel others and do their work.
// For GPUs of compute capability 10.0; the emulator runs it, too.
//
// Broken on purpose: -D NO_WAIT (the response is read without a wait at the mbarrier), -D NO_FENCE (no proxy
// fence between the read and the next request), -D ASKS_AGAIN (another request after a failed one), -D
// NOT_ASKED (reads which CTA was cancelled, although none was), -D LOST (a cancelled CTA's work is not done).
#include <cuda/ptx>

#include <cstdint>
#include <vector>

namespace ptx = cuda::ptx;

constexpr unsigned kThreads = 64;

__global__ void add_one(const int* in, int* out) {
  __shared__ alignas(16) uint4 response;
  __shared__ std::uint64_t answered;
  if (threadIdx.x == 0) ptx::mbarrier_init(&answered, 1);
  __syncthreads();
  unsigned row = blockIdx.y * gridDim.x + blockIdx.x;
  for (unsigned round = 0;; ++round) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &answered, 16);
      ptx::clusterlaunchcontrol_try_cancel(&response, &answered);
    }
    out[row * kThreads + threadIdx.x] = in[row * kThreads + threadIdx.x] + 1;
#ifndef NO_WAIT
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &answered, round & 1)) {
    }
#endif
    const uint4 answer = response;
#ifdef LOST
    if (ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer)) return;
#endif
#ifdef NOT_ASKED
    const bool canceled = true;
#else
    const bool canceled = ptx::clusterlaunchcontrol_query_cancel_is_canceled(answer);
#endif
    if (canceled) {
      int first[4];
      ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid(first, answer);
      row = ptx::clusterlaunchcontrol_query_cancel_get_first_ctaid_y<unsigned>(answer) * gridDim.x +
            static_cast<unsigned>(first[0]);
    }
#ifndef NO_FENCE
    ptx::fence_proxy_async(ptx::space_shared);
#endif
    __syncthreads();
    if (canceled) continue;
#ifdef ASKS_AGAIN
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &answered, 16);
      ptx::clusterlaunchcontrol_try_cancel(&response, &answered);
      while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &answered, ~round & 1)) {
      }
    }
#endif
    break;
  }
}

void check_kernel(emulate::Run& run) {
  const std::vector<int> numbers = run.small_integers<int>(24 * kThreads);
  const int* in = run.buffer("in", numbers);
  int* out = run.buffer<int>("out", 24 * kThreads);
  add_one<<<dim3(6, 4), kThreads>>>(in, out);
  std::vector<int> expected;
  for (const int number : numbers) expected.push_back(number + 1);
  run.expect_equal("out", run.host(out), expected);
}
