// LayerNorm of long rows: a cluster of four CTAs shares each row, and the sums go through distributed shared
// memory.
//
// Broken on purpose: -D BLOCK_SYNC_ONLY (the other CTAs' sums may not have been stored yet), -D NO_LAST_SYNC
// (a CTA ends while others may still be reading its sum).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

template <int CLUSTER, int THREADS, int VEC>
__global__ void __launch_bounds__(THREADS)
    layernorm(const __nv_bfloat16* __restrict__ x, const float* __restrict__ gamma,
              const float* __restrict__ beta, __nv_bfloat16* __restrict__ y, int columns, float eps) {
  extern __shared__ __align__(16) float cache[];
  __shared__ float warp_sums[2][THREADS / 32];
  __shared__ float2 stats;
  cg::cluster_group cluster = cg::this_cluster();
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  const int rank = cluster.block_rank();
  const int row = blockIdx.x / CLUSTER;
  const int slice = columns / CLUSTER;
  const __nv_bfloat16* in = x + (size_t)row * columns + rank * slice;

  float sum = 0.f, square = 0.f;
  for (int i = threadIdx.x * VEC; i < slice; i += THREADS * VEC) {
    const uint4 raw = *reinterpret_cast<const uint4*>(in + i);
    const __nv_bfloat162* pairs = reinterpret_cast<const __nv_bfloat162*>(&raw);
#pragma unroll
    for (int j = 0; j < VEC / 2; ++j) {
      const float2 v = __bfloat1622float2(pairs[j]);
      cache[i + 2 * j] = v.x;
      cache[i + 2 * j + 1] = v.y;
      sum += v.x + v.y;
      square += v.x * v.x + v.y * v.y;
    }
  }
  sum = cg::reduce(warp, sum, cg::plus<float>());
  square = cg::reduce(warp, square, cg::plus<float>());
  if (warp.thread_rank() == 0) {
    warp_sums[0][warp.meta_group_rank()] = sum;
    warp_sums[1][warp.meta_group_rank()] = square;
  }
  block.sync();
  if (threadIdx.x < 32) {
    float s = threadIdx.x < THREADS / 32 ? warp_sums[0][threadIdx.x] : 0.f;
    float q = threadIdx.x < THREADS / 32 ? warp_sums[1][threadIdx.x] : 0.f;
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
      s += __shfl_xor_sync(0xffffffff, s, offset);
      q += __shfl_xor_sync(0xffffffff, q, offset);
    }
    if (threadIdx.x == 0) stats = make_float2(s, q);
  }
#ifdef BLOCK_SYNC_ONLY
  block.sync();
#else
  cluster.sync();
#endif
  float total = 0.f, total_square = 0.f;
#pragma unroll
  for (int r = 0; r < CLUSTER; ++r) {
    const float2 other = *cluster.map_shared_rank(&stats, r);
    total += other.x;
    total_square += other.y;
  }
  const float mean = total / columns;
  const float inverse = rsqrtf(total_square / columns - mean * mean + eps);
  __nv_bfloat16* out = y + (size_t)row * columns + rank * slice;
  for (int i = threadIdx.x; i < slice; i += THREADS)
    out[i] = __float2bfloat16((cache[i] - mean) * inverse * gamma[rank * slice + i] + beta[rank * slice + i]);
#ifndef NO_LAST_SYNC
  cluster.sync();
#endif
}

void check_kernel(emulate::Run& run) {
  constexpr int kRows = 3, kColumns = 2048, kCluster = 4;
  const auto x = run.uniform<__nv_bfloat16>(kRows * kColumns);
  const auto gamma = run.uniform<float>(kColumns), beta = run.uniform<float>(kColumns);
  const auto* px = run.buffer("x", x);
  const auto* pg = run.buffer("gamma", gamma);
  const auto* pb = run.buffer("beta", beta);
  auto* y = run.buffer<__nv_bfloat16>("y", kRows * kColumns);
  auto kernel = layernorm<kCluster, 128, 8>;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kRows * kCluster);
  config.blockDim = dim3(128);
  config.dynamicSmemBytes = kColumns / kCluster * sizeof(float);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = kCluster;
  attribute[0].val.clusterDim.y = 1;
  attribute[0].val.clusterDim.z = 1;
  config.attrs = attribute;
  config.numAttrs = 1;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024);
  cudaError_t error = cudaLaunchKernelEx(&config, kernel, px, pg, pb, y, kColumns, 1e-5f);
  if (error != cudaSuccess) fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::vector<float> expected(kRows * kColumns);
  for (int r = 0; r < kRows; ++r) {
    double s = 0, q = 0;
    for (int c = 0; c < kColumns; ++c) {
      const double v = (float)x[r * kColumns + c];
      s += v;
      q += v * v;
    }
    const double mean = s / kColumns, inv = 1 / std::sqrt(q / kColumns - mean * mean + 1e-5);
    for (int c = 0; c < kColumns; ++c)
      expected[r * kColumns + c] = ((float)x[r * kColumns + c] - mean) * inv * gamma[c] + beta[c];
  }
  run.expect_close("y", run.host(y), expected, 1e-2, 1e-2);
}
