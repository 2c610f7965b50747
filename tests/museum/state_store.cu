// A recurrent state stays in shared memory for all steps of a sequence, and the copy engine stores it at the
// end.
//
// As reported: -D NO_FENCE (a barrier, but no fence.proxy.async, between the stores and the bulk store), -D
// FENCE_PER_STEP (the fence is in the loop, which a sequence without steps does not enter).
#include <cuda/ptx>

#include <vector>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128;
constexpr int kState = 1024;

__global__ void final_state(const float* updates, const int* steps, float* states) {
  __shared__ alignas(128) float state[kState];
  const float* update = updates + blockIdx.x * kState;
  for (int i = threadIdx.x; i < kState; i += kThreads) state[i] = 0;
  // ANCHOR: kernel
  for (int step = 0; step < steps[blockIdx.x]; ++step) {
    for (int i = threadIdx.x; i < kState; i += kThreads) state[i] = 2 * state[i] + update[i];
#ifdef FENCE_PER_STEP
    ptx::fence_proxy_async(ptx::space_shared);
#endif
  }
#if !defined(NO_FENCE) && !defined(FENCE_PER_STEP)
  ptx::fence_proxy_async(ptx::space_shared);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, states + blockIdx.x * kState, state,
                       sizeof state);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
  // ANCHOR_END: kernel
}

void check_kernel(emulate::Run& run) {
  const std::vector<int> steps = {3, 0, 1};
  const std::vector<float> updates = run.small_integers<float>(steps.size() * kState);
  float* states = run.buffer<float>("states", updates.size());
  final_state<<<steps.size(), kThreads>>>(run.buffer("updates", updates), run.buffer("steps", steps), states);
  std::vector<float> expected(updates.size());
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<float>((1 << steps[i / kState]) - 1) * updates[i];
  run.expect_equal("states", run.host(states), expected);
}
