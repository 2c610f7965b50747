// Barriers that count (bar.red, __syncthreads_count and its kin), and prefetches, which change nothing.
//
// Broken on purpose: -D MIXED_BARRIER (one warp waits with bar.sync where the other counts), -D
// PREFETCH_BEHIND (memory that was not allocated), -D PREFETCH_ODD (an address that is not a multiple of 16).
#include <cuda.h>

#include <cuda/ptx>

#include <cstdint>
#include <vector>

#include "ptx/named_barrier.cuh"
#include "ptx/prefetch.cuh"
#include "ptx/tma.cuh"

namespace ptx = cuda::ptx;
namespace wrappers = gemm::ptx;

/// How many values of a warp pair are positive, by two named barriers and by that of the CTA.
__global__ void votes(const int* values, int* out) {
  const unsigned thread = threadIdx.x;
  const bool positive = values[thread] > 0;
  const unsigned pair = thread / 64;
#ifdef MIXED_BARRIER
  if (thread % 64 >= 32) wrappers::bar_sync(1 + pair, 64);
  const unsigned count = thread % 64 >= 32 ? 0 : wrappers::bar_red_popc(1 + pair, 64, positive);
#else
  const unsigned count = wrappers::bar_red_popc(1 + pair, 64, positive);
#endif
  const bool all = wrappers::bar_red_and(1 + pair, 64, values[thread] > -100);
  const bool any = wrappers::bar_red_or(1 + pair, 64, values[thread] > 100);
  const bool late = wrappers::bar_red_or(1 + pair, 64, thread % 64 == 63);
  int* to = out + 7 * thread;
  to[0] = static_cast<int>(count);
  to[1] = all ? 1 : 0;
  to[2] = any ? 1 : 0;
  to[3] = late ? 1 : 0;
  to[4] = __syncthreads_count(positive ? 1 : 0);
  to[5] = __syncthreads_and(thread < 127 ? 1 : 0);
  to[6] = __syncthreads_or(thread == 5 ? 1 : 0);
}

/// A copy whose source was prefetched in every way there is.
__global__ void prefetches(const int* in, int* out, const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[64];
  __shared__ std::uint64_t full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    wrappers::prefetch_tensormap(&map);
    wrappers::cp_async_bulk_prefetch_l2(in, 256);
    wrappers::cp_async_bulk_prefetch_tensor_2d_l2(&map, 0, 0);
#ifdef PREFETCH_ODD
    wrappers::cp_async_bulk_prefetch_l2(in + 1, 256);
#endif
  }
  wrappers::prefetch_global_l2(in + threadIdx.x);
  wrappers::prefetch_global_l1(in + threadIdx.x);
  wrappers::prefetch_global_l2_evict_last(in + threadIdx.x);
  wrappers::prefetchu_l1(in + threadIdx.x);
  wrappers::prefetchu_l1(&tile[threadIdx.x % 64]);
#ifdef PREFETCH_BEHIND
  wrappers::prefetch_global_l2(in + 64 * 1024);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, {0, 0}, &full);
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  if (threadIdx.x < 64) out[threadIdx.x] = tile[threadIdx.x];
}

void check_kernel(emulate::Run& run) {
  {
    std::vector<int> values(128);
    for (int i = 0; i < 128; ++i) values[static_cast<std::size_t>(i)] = i % 64 < 40 && i < 64 + 10 ? 1 : -1;
    int* out = run.buffer<int>("out", 7 * 128);
    votes<<<1, 128>>>(run.buffer("values", values), out);
    std::vector<int> expected;
    for (int i = 0; i < 128; ++i) {
      for (const int value : {i < 64 ? 40 : 10, 1, 0, 1, 50, 0, 1}) expected.push_back(value);
    }
    run.expect_equal("out of votes", run.host(out), expected);
  }
  {
    std::vector<int> values(64);
    for (int i = 0; i < 64; ++i) values[static_cast<std::size_t>(i)] = 3 * i;
    const int* in = run.buffer("in", values);
    int* out = run.buffer<int>("out", 64);
    void* encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
    CUtensorMap map;
    const cuuint64_t extents[] = {16, 4};
    const cuuint64_t strides[] = {64};
    const cuuint32_t box[] = {16, 4};
    const cuuint32_t steps[] = {1, 1};
    reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
        &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, const_cast<int*>(in), extents, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    prefetches<<<1, 64>>>(in, out, map);
    run.expect_equal("out of prefetches", run.host(out), values);
  }
}
