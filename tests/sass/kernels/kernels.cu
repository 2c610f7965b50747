// Small kernels whose machine code the tests of tools/sass read. For each kind of expectation one kernel
// satisfies it and another does not. tests/sass/regenerate turns this file into fixtures/kernels.*.
#include <cstdint>

constexpr int kThreads = 64;
constexpr int kRow = 4 * kThreads;  // floats that a block moves at once

// One k-step of 4 x 4 products from two rows of shared memory.
__device__ __forceinline__ void multiply(const float4* a, const float4* b, float (&sum)[4][4]) {
  const float4 x = *a;
  const float4 y = *b;
  const float left[4] = {x.x, x.y, x.z, x.w};
  const float right[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) sum[i][j] += left[i] * right[j];
}

__device__ __forceinline__ void store(float* out, const float (&sum)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) out[(i * 4 + j) * kThreads + threadIdx.x] = sum[i][j];
}

// The next vector is loaded before the multiplication and stored behind it: 128-bit accesses, a covered load.
extern "C" __global__ void __launch_bounds__(kThreads) prefetched(const float4* in, float* out, int k) {
  __shared__ float4 tile[2][kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  float sum[4][4] = {};
  float4 next = in[thread];
#pragma unroll 1
  for (int i = 1; i <= k; ++i) {
    tile[0][thread] = next;
    __syncthreads();
    next = in[i * kThreads + thread];
    multiply(&tile[0][thread / 8], &tile[0][thread % 8], sum);
    __syncthreads();
  }
  store(out, sum);
}

// The same one float at a time, and every load is used at once.
extern "C" __global__ void __launch_bounds__(kThreads) scalar(const float* in, float* out, int k) {
  __shared__ float tile[kRow];
  const int thread = static_cast<int>(threadIdx.x);
  float sum[4][4] = {};
#pragma unroll 1
  for (int i = 0; i < k; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) tile[j * kThreads + thread] = in[i * kRow + j * kThreads + thread];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[r][c] += tile[thread / 8 * 5 + r] * tile[thread % 8 * 5 + c];
    __syncthreads();
  }
  store(out, sum);
}

__device__ __forceinline__ void copy_async(float4* to, const float4* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// The copy of the next tile is issued before the math of this one and awaited behind it.
extern "C" __global__ void __launch_bounds__(kThreads) async_early(const float4* in, float* out, int k) {
  __shared__ float4 tile[2][kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  float sum[4][4] = {};
  copy_async(&tile[0][thread], in + thread);
  commit();
#pragma unroll 1
  for (int i = 0; i < k; ++i) {
    wait<0>();
    __syncthreads();
    copy_async(&tile[(i + 1) % 2][thread], in + (i + 1) * kThreads + thread);
    commit();
    multiply(&tile[i % 2][thread / 8], &tile[i % 2][thread % 8], sum);
  }
  wait<0>();
  store(out, sum);
}

// The copy is issued behind the math, and a barrier follows: nothing overlaps.
extern "C" __global__ void __launch_bounds__(kThreads) async_late(const float4* in, float* out, int k) {
  __shared__ float4 tile[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  float sum[4][4] = {};
#pragma unroll 1
  for (int i = 0; i < k; ++i) {
    multiply(&tile[thread / 8], &tile[thread % 8], sum);
    __syncthreads();
    copy_async(&tile[thread], in + i * kThreads + thread);
    commit();
    wait<0>();
    __syncthreads();
  }
  store(out, sum);
}

// More live values than registers: with 1024 threads a thread may have 64.
extern "C" __global__ void __launch_bounds__(1024, 1) spilling(const float* in, float* out, int k) {
  float value[80];
#pragma unroll
  for (int i = 0; i < 80; ++i) value[i] = in[i * 1024 + threadIdx.x];
#pragma unroll 1
  for (int j = 0; j < k; ++j)
#pragma unroll
    for (int i = 0; i < 80; ++i) value[i] = value[i] * value[(i * 7 + 3) % 80] + in[j];
#pragma unroll
  for (int i = 0; i < 80; ++i) out[i * 1024 + threadIdx.x] = value[i];
}

// A loop unrolled four times, with its remainder loop behind it.
extern "C" __global__ void __launch_bounds__(kThreads)
    unrolled(const float* a, const float* b, float* out, int k) {
  float sum = 0;
#pragma unroll 4
  for (int i = 0; i < k; ++i) sum += a[i] * b[i];
  out[threadIdx.x] = sum;
}

// Tiles outside, k inside, and inside that a loop that only waits: the k loop is the main one.
extern "C" __global__ void __launch_bounds__(kThreads)
    nested(const float* a, float* out, const volatile int* ready, int tiles, int k) {
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < k; ++i) {
      while (ready[i] == 0) {
      }
      sum += a[i * kThreads + threadIdx.x] * a[(i + tile) * kThreads];
    }
    out[tile * kThreads + threadIdx.x] = sum * 2.0f + 1.0f;
  }
}

// Nothing to multiply in a loop.
extern "C" __global__ void __launch_bounds__(kThreads) straight(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x] * in[threadIdx.x + 1] + in[threadIdx.x + 2];
}
