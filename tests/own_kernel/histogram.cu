// A histogram: counts in shared memory with atomics, added to global memory at the end.
//
// Broken on purpose: -D NO_CLEAR_BARRIER (counting begins before all bins are 0), -D PLAIN_ADD (the bins in
// global memory are updated without an atomic).
#include <vector>

constexpr int kBins = 48;
__device__ unsigned bins[kBins];
__device__ unsigned launches = 3;
__constant__ unsigned char lookup[256];

__global__ void histogram(const unsigned char* __restrict__ values, int count) {
  __shared__ unsigned local[kBins];
  if (threadIdx.x == 0) atomicAdd(&launches, 1u);
  for (unsigned i = threadIdx.x; i < kBins; i += blockDim.x) local[i] = 0;
#ifndef NO_CLEAR_BARRIER
  __syncthreads();
#endif
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x))
    atomicAdd(&local[lookup[values[i]]], 1u);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kBins; i += blockDim.x) {
#ifdef PLAIN_ADD
    bins[i] += local[i];
#else
    if (local[i] != 0) atomicAdd(bins + i, local[i]);
#endif
  }
}

void check_kernel(emulate::Run& run) {
  const int count = 5000;
  std::vector<unsigned char> values(count);
  for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<unsigned char>(i * 7 + i / 13);
  unsigned char table[256];
  for (int i = 0; i < 256; ++i) table[i] = static_cast<unsigned char>(i % kBins);
  cudaMemcpyToSymbol(lookup, table, sizeof table);
  const unsigned zero[kBins] = {};
  cudaMemcpyToSymbol(bins, zero, sizeof zero);
  const unsigned char* x = run.buffer("x", values);
  histogram<<<3, 96>>>(x, count);
  std::vector<unsigned> got(kBins);
  cudaMemcpyFromSymbol(got.data(), bins, sizeof bins);
  std::vector<unsigned> expected(kBins);
  for (const unsigned char value : values) ++expected[table[value]];
  run.expect_equal("bins", got, expected);
  unsigned counted = 0;
  cudaMemcpyFromSymbol(&counted, launches, sizeof counted);
  run.expect(counted == 3 + 3, "three CTAs have run");
  counted = 3;
  cudaMemcpyToSymbol(launches, &counted, sizeof counted);
}
