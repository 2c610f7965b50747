// A tile is cast in shared memory and stored by the copy engine; every thread executes the proxy fence.
//
// As reported: -D FENCE_LATE (the fence follows the barrier).
#include <cuda/ptx>

#include <vector>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128;
constexpr int kTile = 2048;

__global__ void cast(const float* in, unsigned char* out) {
  __shared__ alignas(128) unsigned char tile[kTile];
  for (int i = threadIdx.x; i < kTile; i += kThreads)
    tile[i] = static_cast<unsigned char>(in[blockIdx.x * kTile + i] + 2);
    // ANCHOR: kernel
#ifdef FENCE_LATE
  __syncthreads();
  ptx::fence_proxy_async(ptx::space_shared);
#else
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * kTile, tile, kTile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
  // ANCHOR_END: kernel
}

void check_kernel(emulate::Run& run) {
  const std::vector<float> in = run.small_integers<float>(4 * kTile);
  unsigned char* out = run.buffer<unsigned char>("out", in.size());
  cast<<<4, kThreads>>>(run.buffer("in", in), out);
  std::vector<unsigned char> expected(in.size());
  for (size_t i = 0; i < in.size(); ++i) expected[i] = static_cast<unsigned char>(in[i] + 2);
  run.expect_equal("out", run.host(out), expected);
}
