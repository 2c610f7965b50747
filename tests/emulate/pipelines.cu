// Asynchronous copies by the names that CUDA C++ has for them: cuda::pipeline,
// cooperative_groups::memcpy_async, the pipeline primitives, and cuda::memcpy_async with a barrier. Beside
// them what published kernels write around a launch: a stream that is 0, the occupancy calculator, atomics of
// vectors.
//
// Broken on purpose: -D PRIOR_ONE_MORE (the row may still be on its way), -D NO_LAST_BARRIER (the next row is
// written over one that is read), -D NO_WAIT (a tile is read before it has come), -D NOT_RELEASED (the wait
// is for the stage before), -D FEW_ARRIVALS (one thread less arrives than the barrier counts).
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#include <utility>

namespace cg = cooperative_groups;

constexpr int kThreads = 64;
constexpr int kColumns = 256;

/// The sum of each row; a CTA takes every gridDim.x-th, and two are under way.
template <int kStages>
__global__ void __launch_bounds__(kThreads)
    row_sums(const float* __restrict__ x, float* __restrict__ sums, int rows) {
  __shared__ alignas(alignof(float4)) float stage[kStages][kColumns];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  const auto shape = cuda::aligned_size_t<alignof(float4)>(sizeof(float4));
  int fetched = 0;
  for (int row = static_cast<int>(blockIdx.x), i = 0; row < rows; row += static_cast<int>(gridDim.x), ++i) {
    for (; fetched < i + kStages; ++fetched) {
      pipe.producer_acquire();
      const int next = static_cast<int>(blockIdx.x) + fetched * static_cast<int>(gridDim.x);
      const int column = static_cast<int>(threadIdx.x) * 4;
      if (next < rows)
        cuda::memcpy_async(&stage[fetched % kStages][column], &x[next * kColumns + column], shape, pipe);
      pipe.producer_commit();
    }
#ifdef PRIOR_ONE_MORE
    cuda::pipeline_consumer_wait_prior<kStages>(pipe);
#else
    pipe.consumer_wait();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = 0;
      for (int column = 0; column < kColumns; ++column) sum += stage[i % kStages][column];
      sums[row] = sum;
    }
#ifndef NOT_RELEASED
    pipe.consumer_release();
#endif
#ifndef NO_LAST_BARRIER
    __syncthreads();
#endif
  }
}

/// Each thread adds what another one has brought.
__global__ void turned(const float* x, float2* sums) {
  __shared__ alignas(16) float whole[kThreads * 4];
  __shared__ alignas(16) float4 parts[kThreads];
  __shared__ alignas(16) float bulk[kThreads];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  block.sync();
  cg::memcpy_async(block, whole, x, sizeof(whole));
  __pipeline_memcpy_async(&parts[threadIdx.x], &x[threadIdx.x * 4], sizeof(float4), threadIdx.x % 2 * 8);
  __pipeline_commit();
  if (threadIdx.x == 0) cuda::memcpy_async(bulk, x, cuda::aligned_size_t<16>(sizeof(bulk)), bar);
#ifdef FEW_ARRIVALS
  if (threadIdx.x > 0)
#endif
    bar.wait(bar.arrive());
#ifdef NO_WAIT
  block.sync();
#else
  __pipeline_wait_prior(0);
  cg::wait(block);
#endif
  const unsigned other = kThreads - 1 - threadIdx.x;
  atomicAdd(sums, make_float2(whole[other * 4] + parts[other].w, bulk[other]));
}

void check_kernel(emulate::Run& run) {
  const int rows = 7;
  const std::vector<float> values = run.small_integers<float>(rows * kColumns);
  const float* x = run.buffer("x", values);
  float* sums = run.buffer<float>("sums", rows);
  float2* pair = run.buffer("pair", std::vector<float2>(1));
  int grid = 0;
  int block = 0;
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, row_sums<2>, 0, 0);
  run.expect(grid > 0 && block >= kThreads, "the occupancy calculator says nothing");
  row_sums<2><<<2, kThreads, 0, 0>>>(x, sums, rows);
  turned<<<1, kThreads>>>(x, pair);
  std::vector<float> expected(rows);
  for (int i = 0; i < rows * kColumns; ++i) expected[i / kColumns] += values[i];
  run.expect_equal("sums", run.host(sums), expected);
  float2 both = {0, 0};
  for (int i = 0; i < kThreads; ++i) {
    both.x += values[i * 4] + (i % 2 ? 0 : values[i * 4 + 3]);
    both.y += values[i];
  }
  const float2 got = run.host(pair)[0];
  run.expect(got.x == both.x && got.y == both.y, "the sum of the pairs is wrong");
}
