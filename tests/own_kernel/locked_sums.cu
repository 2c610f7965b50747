// CTAs add up in order. Each waits for a lock, a counter that the previous CTA increments with a fence and a
// relaxed atomic. The last CTA resets the lock with a plain store, which is no race, because it has read the
// count. One warpgroup works with 232 registers per thread, and another waits with 40: nvcc compiles the
// kernel for 232, although 256 threads could have more.
//
// Broken on purpose: -D NO_FENCE (the sums may not be visible when the lock says so), -D NO_BARRIER (thread 0
// increments the lock before the other threads have stored), -D UNREAD_RESET (the last CTA resets the lock
// without having read it), -D FEWER_THEN (a warpgroup requests fewer registers than it has).
#include <cooperative_groups.h>
#include <cuda/atomic>

#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"

__device__ inline void acquire(int* lock, int turn) {
  if (threadIdx.x == 0) {
    while (cuda::atomic_ref<int, cuda::thread_scope_device>(*lock).load(cuda::memory_order_acquire) != turn) {
    }
  }
  gemm::ptx::bar_sync(1, 128);
}
__device__ inline void release(int* lock, bool last) {
#ifndef NO_BARRIER
  gemm::ptx::bar_sync(1, 128);
#endif
  if (threadIdx.x != 0) return;
  if (last) {
    *lock = 0;
    return;
  }
#ifndef NO_FENCE
  __threadfence();
#endif
  cuda::atomic_ref<int, cuda::thread_scope_device>(*lock).fetch_add(1, cuda::memory_order_relaxed);
}

__global__ void __launch_bounds__(256, 1) sum_in_order(const float* x, float* sums, int* locks) {
  if (threadIdx.x >= 128) {
    gemm::ptx::setmaxnreg_dec<40>();
    return;
  }
  gemm::ptx::setmaxnreg_inc<232>();
#ifdef FEWER_THEN
  gemm::ptx::setmaxnreg_inc<224>();
#endif
  const int turn = static_cast<int>(blockIdx.x);
  const bool last = blockIdx.x + 1 == gridDim.x;
  const float mine = x[blockIdx.x * 128 + threadIdx.x];
#ifdef UNREAD_RESET
  if (last) {
    if (threadIdx.x == 0) *locks = 0;
    return;
  }
#endif
  acquire(locks, turn);
  sums[threadIdx.x] = turn == 0 ? mine : sums[threadIdx.x] + mine;
  release(locks, last);
}

void check_kernel(emulate::Run& run) {
  const int ctas = 3;
  const std::vector<float> values = run.small_integers<float>(ctas * 128);
  const float* x = run.buffer("x", values);
  float* sums = run.buffer<float>("sums", 128);
  int* lock = run.buffer("lock", std::vector<int>(1));
  void* arguments[] = {(void*)&x, (void*)&sums, (void*)&lock};
  cudaLaunchCooperativeKernel((void*)sum_in_order, dim3(ctas), dim3(256), arguments, 0, 0);
  std::vector<float> expected(128);
  for (int i = 0; i < ctas * 128; ++i) expected[i % 128] += values[i];
  run.expect_equal("sums", run.host(sums), expected);
  run.expect(run.host(lock)[0] == 0, "the lock has not been set back");
}
