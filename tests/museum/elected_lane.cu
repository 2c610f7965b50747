// A warp writes a tile with ordinary stores, and one of its lanes tells the warp that reads it.
//
// As reported: -D NO_WARP_SYNC (the lane arrives before the other lanes are known to have stored).
#include <cuda/ptx>

#include <vector>

namespace ptx = cuda::ptx;

__global__ void hand_over(const int* in, int* out) {
  __shared__ int tile[32];
  __shared__ uint64_t full;
  if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  // ANCHOR: kernel
  if (threadIdx.x < 32) {
    tile[lane] = in[blockIdx.x * 32 + lane];
#ifndef NO_WARP_SYNC
    __syncwarp();
#endif
    if (lane == 0) ptx::mbarrier_arrive(&full);
  } else {
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
    out[blockIdx.x * 32 + lane] = tile[31 - lane];
  }
  // ANCHOR_END: kernel
}

void check_kernel(emulate::Run& run) {
  const std::vector<int> in = run.small_integers<int>(8 * 32);
  int* out = run.buffer<int>("out", in.size());
  hand_over<<<8, 64>>>(run.buffer("in", in), out);
  std::vector<int> expected(in.size());
  for (size_t i = 0; i < in.size(); ++i) expected[i] = in[i / 32 * 32 + 31 - i % 32];
  run.expect_equal("out", run.host(out), expected);
}
