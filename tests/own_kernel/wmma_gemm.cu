// A GEMM with nvcuda::wmma and two stages that are filled through registers: the loads of the next k-tile are
// in flight while this one is multiplied. The sums leave through shared memory, where each warp converts its
// accumulators into rows of half.
//
// Broken on purpose: -D ONE_STAGE (the next k-tile overwrites the one that other threads are still
// multiplying), -D NO_WARP_SYNC (lanes read sums that other lanes of the warp may not have stored).
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

using namespace nvcuda;

constexpr int BM = 64, BN = 64, BK = 32, WARPS = 4, PAD = 8;

__global__ void __launch_bounds__(WARPS * 32)
    hgemm(const half* __restrict__ A, const half* __restrict__ B, half* __restrict__ C, int M, int N, int K) {
  __shared__ half As[2][BM][BK + PAD];
  __shared__ half Bs[2][BN][BK + PAD];
  __shared__ float staging[WARPS][16][16];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
#pragma unroll
  for (auto& row : acc)
    for (auto& f : row) wmma::fill_fragment(f, 0.0f);

  uint4 a_reg[2], b_reg[2];
  const auto load = [&](int k0) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = (threadIdx.x + i * WARPS * 32) / 4, c = threadIdx.x % 4 * 8;
      a_reg[i] = *reinterpret_cast<const uint4*>(&A[(size_t)(row0 + r) * K + k0 + c]);
      b_reg[i] = *reinterpret_cast<const uint4*>(&B[(size_t)(col0 + r) * K + k0 + c]);
    }
  };
  const auto put = [&](int stage) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = (threadIdx.x + i * WARPS * 32) / 4, c = threadIdx.x % 4 * 8;
      *reinterpret_cast<uint4*>(&As[stage][r][c]) = a_reg[i];
      *reinterpret_cast<uint4*>(&Bs[stage][r][c]) = b_reg[i];
    }
  };
  load(0);
  put(0);
  __syncthreads();
  for (int t = 0; t < K / BK; ++t) {
    if (t + 1 < K / BK) load((t + 1) * BK);
#ifdef ONE_STAGE
    const int stage = 0, next = 0;
#else
    const int stage = t % 2, next = (t + 1) % 2;
#endif
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        wmma::load_matrix_sync(a[i], &As[stage][warp / 2 * 32 + i * 16][k], BK + PAD);
        wmma::load_matrix_sync(b[i], &Bs[stage][warp % 2 * 32 + i * 16][k], BK + PAD);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) wmma::mma_sync(acc[i][j], a[i], b[j], acc[i][j]);
    }
    if (t + 1 < K / BK) put(next);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      wmma::store_matrix_sync(&staging[warp][0][0], acc[i][j], 16, wmma::mem_row_major);
#ifndef NO_WARP_SYNC
      __syncwarp();
#endif
      const int r = lane / 2, c = lane % 2 * 8;
      half2 out[4];
#pragma unroll
      for (int e = 0; e < 4; ++e)
        out[e] = __floats2half2_rn(staging[warp][r][c + 2 * e], staging[warp][r][c + 2 * e + 1]);
      const size_t at = (size_t)(row0 + warp / 2 * 32 + i * 16 + r) * N + col0 + warp % 2 * 32 + j * 16 + c;
      *reinterpret_cast<uint4*>(&C[at]) = *reinterpret_cast<uint4*>(out);
#ifndef NO_WARP_SYNC
      __syncwarp();
#endif
    }
}

void check_kernel(emulate::Run& run) {
  const int m = 128, n = 64, k = 96;
  const half* a = run.buffer("A", run.small_integers<half>(m * k));
  const half* b = run.buffer("B", run.small_integers<half>(n * k));
  half* c = run.buffer<half>("C", m * n);
  hgemm<<<dim3(n / BN, m / BM), WARPS * 32>>>(a, b, c, m, n, k);
  run.expect_gemm("C", c, a, b, m, n, k);
}
