// Asynchronous copies in CUDA C++: cuda::pipeline for a thread and for a thread block,
// cooperative_groups::memcpy_async, the pipeline primitives, and cuda::memcpy_async with a barrier. Also
// constructs that published kernels use around a launch: a stream that is 0, the occupancy calculator,
// atomics of vectors.
//
// Broken on purpose: -D PRIOR_ONE_MORE (the row may still be in flight), -D NO_LAST_BARRIER (the next row
// overwrites one that is still being read), -D NO_WAIT (a tile is read before it has arrived), -D
// NOT_RELEASED (the wait is for the previous stage), -D FEW_ARRIVALS (one thread fewer arrives than the
// barrier counts), -D NO_CONSUMER_WAIT (a stage is read before it has been filled), -D NO_PRODUCER_ACQUIRE (a
// stage is filled while it is being read), -D NO_RELEASE (the next stage is read as if it were the current
// one), -D PART_NOT_WAITED (no thread waits for the copies of a barrier).
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

/// The warps of a CTA share a pipeline: one fills the stages, and the others add up what is in them.
__global__ void shared_by_roles(const float* x, float* sums, int rows) {
  __shared__ alignas(16) float stage[2][kColumns];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const cg::thread_block block = cg::this_thread_block();
  const bool produces = threadIdx.x < 32;
  auto pipe = cuda::make_pipeline(block, &state,
                                  produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  for (int row = 0; row < rows; ++row) {
    if (produces) {
#ifndef NO_PRODUCER_ACQUIRE
      pipe.producer_acquire();
#endif
      for (int column = static_cast<int>(threadIdx.x) * 4; column < kColumns; column += 128)
        cuda::memcpy_async(&stage[row % 2][column], &x[row * kColumns + column], cuda::aligned_size_t<16>(16),
                           pipe);
      pipe.producer_commit();
    } else {
#ifndef NO_CONSUMER_WAIT
      pipe.consumer_wait();
#endif
      float sum = 0;
      for (int column = static_cast<int>(threadIdx.x) - 32; column < kColumns; column += kThreads - 32)
        sum += stage[row % 2][column];
      atomicAdd(&sums[row], sum);
#ifndef NO_RELEASE
      pipe.consumer_release();
#endif
    }
  }
}

/// All threads fill and read, one stage ahead; two pipelines, one after the other, have the same state.
__global__ void shared_by_all(const float* x, float* sums, int rows) {
  __shared__ float stage[2][kColumns];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  const cg::thread_block block = cg::this_thread_block();
  for (int half = 0; half < 2; ++half) {
    auto pipe = cuda::make_pipeline(block, &state);
    const int begin = half * (rows / 2);
    const int end = half == 0 ? rows / 2 : rows;
    for (int row = begin, filled = begin; row < end; ++row) {
      for (; filled < end && filled < row + 2; ++filled) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, stage[filled % 2], &x[filled * kColumns], sizeof(float) * kColumns, pipe);
        pipe.producer_commit();
      }
      pipe.consumer_wait();
      float sum = 0;
      for (int column = static_cast<int>(threadIdx.x); column < kColumns; column += kThreads)
        sum += stage[row % 2][kColumns - 1 - column];
      atomicAdd(&sums[row], sum);
      pipe.consumer_release();
    }
    pipe.quit();
    block.sync();
  }
  // With a barrier: each thread its part of a row, and all of them another.
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  block.sync();
  cuda::memcpy_async(&stage[0][threadIdx.x], &x[threadIdx.x], sizeof(float), bar);
  cuda::memcpy_async(block, stage[1], x, sizeof(float) * kThreads, bar);
#ifdef PART_NOT_WAITED
  block.sync();
#else
  bar.arrive_and_wait();
#endif
  atomicAdd(&sums[rows], stage[0][kThreads - 1 - threadIdx.x] + stage[1][kThreads - 1 - threadIdx.x]);
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
  float* more = run.buffer("more", std::vector<float>(2 * rows + 1));
  shared_by_roles<<<1, kThreads>>>(x, more, rows);
  shared_by_all<<<1, kThreads>>>(x, more + rows, rows);
  for (int i = 0; i < rows; ++i) expected.push_back(expected[i]);
  expected.push_back(0);
  for (int i = 0; i < kThreads; ++i) expected.back() += 2 * values[i];
  run.expect_equal("more", run.host(more), expected);
  float2 both = {0, 0};
  for (int i = 0; i < kThreads; ++i) {
    both.x += values[i * 4] + (i % 2 ? 0 : values[i * 4 + 3]);
    both.y += values[i];
  }
  const float2 got = run.host(pair)[0];
  run.expect(got.x == both.x && got.y == both.y, "the sum of the pairs is wrong");
}
