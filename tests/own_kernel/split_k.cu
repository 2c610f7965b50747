// Split-K with a serial reduction: the CTAs of one tile add their parts to it in order, guarded by a
// semaphore. A CTA waits for those with a smaller blockIdx.z, so it needs a GPU that starts CTAs in order of
// their numbers: --allow co-residency.
//
// Broken on purpose: -D NO_RELEASE_BARRIER (the semaphore advances before all threads have stored), -D
// RELAXED_RELEASE (the next CTA may not see the sums), -D NO_REUSE_BARRIER (a tile is overwritten while other
// threads are still reading it).
#include <cuda_runtime.h>

#include <cuda/atomic>

#include <vector>

#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))

template <int BM, int BN, int BK>
struct Tile {
  float As[BK][BM + 4];
  float Bs[BK][BN];
};

class Semaphore {
 public:
  __device__ __forceinline__ Semaphore(int* lock, int thread)
      : lock_(lock), wait_thread_(thread == 0), state_(-1) {}
  __device__ __forceinline__ void fetch() {
    if (wait_thread_)
      state_ = cuda::atomic_ref<int, cuda::thread_scope_device>(*lock_).load(cuda::memory_order_acquire);
  }
  __device__ __forceinline__ void wait(int status) {
    while (__syncthreads_and(state_ != status)) fetch();
    __syncthreads();
  }
  __device__ __forceinline__ void release(int status) {
#ifndef NO_RELEASE_BARRIER
    __syncthreads();
#endif
    if (wait_thread_) {
#ifdef RELAXED_RELEASE
      cuda::atomic_ref<int, cuda::thread_scope_device>(*lock_).store(status, cuda::memory_order_relaxed);
#else
      cuda::atomic_ref<int, cuda::thread_scope_device>(*lock_).store(status, cuda::memory_order_release);
#endif
    }
  }

 private:
  int* lock_;
  bool wait_thread_;
  int state_;
};

template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
    sgemm_split_k(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M,
                  int N, int K, int* locks) {
  __shared__ Tile<BM, BN, BK> tile;
  constexpr int THREADS = (BM / TM) * (BN / TN);
  const int splits = gridDim.z;
  const int k_per_split = CEIL_DIV(K, splits * BK) * BK;
  const int k_begin = blockIdx.z * k_per_split;
  const int k_end = min(K, k_begin + k_per_split);
  const int ty = threadIdx.x / (BN / TN), tx = threadIdx.x % (BN / TN);
  float acc[TM][TN] = {};
  for (int k0 = k_begin; k0 < k_end; k0 += BK) {
    for (int i = threadIdx.x; i < BM * BK / 4; i += THREADS) {
      const int row = i / (BK / 4), col = i % (BK / 4) * 4;
      const float4 v = *reinterpret_cast<const float4*>(&A[(size_t)(blockIdx.y * BM + row) * K + k0 + col]);
      tile.As[col + 0][row] = v.x;
      tile.As[col + 1][row] = v.y;
      tile.As[col + 2][row] = v.z;
      tile.As[col + 3][row] = v.w;
    }
    for (int i = threadIdx.x; i < BK * BN / 4; i += THREADS) {
      const int row = i / (BN / 4), col = i % (BN / 4) * 4;
      reinterpret_cast<float4*>(&tile.Bs[row][col])[0] =
          __ldg(reinterpret_cast<const float4*>(&B[(size_t)(k0 + row) * N + blockIdx.x * BN + col]));
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      float a[TM], b[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) a[i] = tile.As[k][ty * TM + i];
#pragma unroll
      for (int j = 0; j < TN; ++j) b[j] = tile.Bs[k][tx * TN + j];
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
    }
#ifndef NO_REUSE_BARRIER
    __syncthreads();
#endif
  }
  Semaphore semaphore(&locks[blockIdx.y * gridDim.x + blockIdx.x], threadIdx.x);
  if (splits > 1) {
    semaphore.fetch();
    semaphore.wait(blockIdx.z);
  }
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    float* row = &C[(size_t)(blockIdx.y * BM + ty * TM + i) * N + blockIdx.x * BN + tx * TN];
    float4 v = blockIdx.z == 0 ? make_float4(0.f, 0.f, 0.f, 0.f) : *reinterpret_cast<float4*>(row);
    v.x += acc[i][0];
    v.y += acc[i][1];
    v.z += acc[i][2];
    v.w += acc[i][3];
    *reinterpret_cast<float4*>(row) = v;
  }
  if (splits > 1) {
    const int next = blockIdx.z + 1 == splits ? 0 : blockIdx.z + 1;
    semaphore.release(next);
  }
}

void check_kernel(emulate::Run& run) {
  const int m = 64, n = 64, k = 96;
  const std::vector<float> a = run.small_integers<float>(m * k), b = run.small_integers<float>(k * n);
  float* d = run.buffer<float>("C", m * n);
  int* locks = run.buffer("locks", std::vector<int>(4, 0));
  const float* pa = run.buffer("A", a);
  const float* pb = run.buffer("B", b);
  std::vector<float> expected(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int x = 0; x < k; ++x) expected[i * n + j] += a[i * k + x] * b[x * n + j];
  for (int repeat = 0; repeat < 2; ++repeat) {
    sgemm_split_k<32, 32, 8, 4, 4><<<dim3(2, 2, 3), 64>>>(pa, pb, d, m, n, k, locks);
    run.expect_equal("C", run.host(d), expected);
  }
}
