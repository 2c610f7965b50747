// A persistent kernel stores its tiles through one buffer in shared memory: threads write, one thread stores.
//
// As published: -D NO_FENCE (no fence.proxy.async between the threads' stores and the bulk store), -D
// NO_REUSE_BARRIER (every thread waits for bulk stores, but only one thread has any, and no barrier follows).
#include <cuda/ptx>

#include <vector>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128;
constexpr int kTile = 1024;

__global__ void store_tiles(const float* in, float* out, int tiles) {
  __shared__ alignas(128) float buffer[kTile];
  // ANCHOR: kernel
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#ifndef NO_REUSE_BARRIER
    __syncthreads();
#endif
    for (int i = threadIdx.x; i < kTile; i += kThreads) buffer[i] = 2 * in[tile * kTile + i];
#ifndef NO_FENCE
    ptx::fence_proxy_async(ptx::space_shared);
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + tile * kTile, buffer, sizeof buffer);
      ptx::cp_async_bulk_commit_group();
    }
  }
  // ANCHOR_END: kernel
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}

void check_kernel(emulate::Run& run) {
  const int tiles = 9;
  const std::vector<float> in = run.small_integers<float>(tiles * kTile);
  float* out = run.buffer<float>("out", in.size());
  store_tiles<<<2, kThreads>>>(run.buffer("in", in), out, tiles);
  std::vector<float> expected(in.size());
  for (size_t i = 0; i < in.size(); ++i) expected[i] = 2 * in[i];
  run.expect_equal("out", run.host(out), expected);
}
