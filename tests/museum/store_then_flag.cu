// One CTA stores a tile by the copy engine and sets a flag; another CTA waits for the flag and reads the
// tile.
//
// As reported: -D READ_WAIT (before the flag, the thread waits only until the store has read its source).
#include <cuda/atomic>
#include <cuda/ptx>

#include <vector>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128;
constexpr int kTile = 4096;

__global__ void pass_on(const int* in, int* tile, int* flag, int* out) {
  __shared__ alignas(128) int buffer[kTile];
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  // ANCHOR: kernel
  if (blockIdx.x == 0) {
    for (int i = threadIdx.x; i < kTile; i += kThreads) buffer[i] = in[i] + 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, tile, buffer, sizeof buffer);
      ptx::cp_async_bulk_commit_group();
#ifdef READ_WAIT
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#else
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
#endif
      ready.store(1, cuda::memory_order_release);
    }
  } else {
    if (threadIdx.x == 0)
      while (ready.load(cuda::memory_order_acquire) == 0) {
      }
    __syncthreads();
    for (int i = threadIdx.x; i < kTile; i += kThreads) out[i] = tile[kTile - 1 - i];
  }
  // ANCHOR_END: kernel
}

void check_kernel(emulate::Run& run) {
  const std::vector<int> in = run.small_integers<int>(kTile);
  const int* input = run.buffer("in", in);
  int* tile = run.buffer("tile", std::vector<int>(kTile));
  int* flag = run.buffer("flag", std::vector<int>(1));
  int* out = run.buffer<int>("out", kTile);
  void* arguments[] = {&input, &tile, &flag, &out};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(pass_on), dim3(2), dim3(kThreads), arguments, 0,
                              nullptr);
  std::vector<int> expected(in.rbegin(), in.rend());
  for (int& value : expected) ++value;
  run.expect_equal("out", run.host(out), expected);
}
