// Sums of rows: each thread adds up its elements, shuffles add up a warp, shared memory the warps.
//
// Broken on purpose: -D NO_BARRIER (the first warp may read sums too early), -D SHORT_MASK (the mask omits
// half of the lanes that take part), -D ONE_ROW_MORE (reads past the end).
#include <vector>

__inline__ __device__ float warp_sum(float value) {
#pragma unroll
  for (int delta = 16; delta > 0; delta >>= 1)
#ifdef SHORT_MASK
    value += __shfl_down_sync(0x0000ffffu, value, delta);
#else
    value += __shfl_down_sync(0xffffffffu, value, delta);
#endif
  return value;
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads) row_sums(const float4* __restrict__ x, float* sums, int quads) {
  extern __shared__ float warps[];
  const float4* row = x + static_cast<size_t>(blockIdx.x) * quads;
  float sum = 0;
#ifdef ONE_ROW_MORE
  for (int i = threadIdx.x; i <= quads; i += kThreads) {
#else
  for (int i = threadIdx.x; i < quads; i += kThreads) {
#endif
    const float4 four = row[i];
    sum += four.x + four.y + four.z + four.w;
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
#ifndef NO_BARRIER
  __syncthreads();
#endif
  if (threadIdx.x < 32) {
    sum = threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : 0.0f;
    sum = warp_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}

void check_kernel(emulate::Run& run) {
  const int rows = 6;
  const int quads = 150;
  const std::vector<float> values = run.small_integers<float>(rows * quads * 4);
  const float* x = run.buffer("x", values);
  float* sums = run.buffer<float>("sums", rows);
  row_sums<128><<<rows, 128, 4 * sizeof(float)>>>(reinterpret_cast<const float4*>(x), sums, quads);
  std::vector<double> expected(rows);
  for (size_t i = 0; i < values.size(); ++i) expected[i / (quads * 4)] += values[i];
  run.expect_equal("sums", run.host(sums), expected);
}
