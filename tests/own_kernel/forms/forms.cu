// Forms that the other examples do not use, each with a result that shows that it works.
//
// Broken on purpose: -D REMOTE_RACE (a remote load without the cluster barrier), -D TOO_MANY (an arrival
// whose count is too large for the phase), -D SOURCE_REUSED (the source of a copy to another CTA is
// overwritten too early), -D NEVER_ENOUGH (8 of the expected bytes never arrive), -D OTHER_STATE (the pending
// count is taken from another arrival's state), -D REDUCTION_WITHOUT_FENCE (the engine may not see what it
// adds to), -D REDUCTION_NOT_WAITED (the sums are read before all parts have arrived).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/ptx>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "ptx/mbarrier.cuh"

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

// ---- mbarrier: counts, states, test_wait, no_complete.
__global__ void barrier_forms(int* out) {
  __shared__ std::uint64_t barrier;
  __shared__ int value;
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 64 + 3);
  __syncthreads();
  std::uint64_t state = 0;
  if (threadIdx.x == 0) {
    value = 7;
    ptx::mbarrier_arrive_no_complete(&barrier, 2);
#ifdef TOO_MANY
    state = ptx::mbarrier_arrive(&barrier, 80);
#else
    state = ptx::mbarrier_arrive(&barrier, 2);
#endif
  } else {
    state = ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier);
  }
  while (!ptx::mbarrier_test_wait(&barrier, state)) {
  }
  if (threadIdx.x < 64) out[threadIdx.x] = value + static_cast<int>(threadIdx.x);
}

// ---- mbarrier: what is pending, and bytes that no copy brings.
__global__ void barrier_counts(int* out) {
  __shared__ std::uint64_t barrier;
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&barrier, 4);
  out[0] = static_cast<int>(gemm::ptx::mbarrier_pending_count(ptx::mbarrier_arrive_no_complete(&barrier, 2)));
  out[1] = static_cast<int>(gemm::ptx::mbarrier_pending_count(ptx::mbarrier_arrive_no_complete(&barrier, 1)));
  ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &barrier, 64u);
  gemm::ptx::mbarrier_complete_tx(&barrier, 48);
#ifdef NEVER_ENOUGH
  gemm::ptx::mbarrier_complete_tx(&barrier, 8);
#else
  gemm::ptx::mbarrier_complete_tx(&barrier, 16);
#endif
#ifdef OTHER_STATE
  out[0] = static_cast<int>(gemm::ptx::mbarrier_pending_count(ptx::mbarrier_arrive(&barrier)));
#else
  ptx::mbarrier_arrive(&barrier);
#endif
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  out[2] = 1;
}

// ---- Launches whose arguments have defaults, and whose template arguments are deduced.
template <typename T>
__global__ void scaled(const T* in, T* out, T scale, const T* offset = nullptr) {
  out[threadIdx.x] = in[threadIdx.x] * scale + (offset != nullptr ? *offset : T{});
}

// ---- Bulk copies without a map: to shared memory, to another CTA, to global memory, and a sum there.
__global__ void __cluster_dims__(2, 1, 1) bulk_forms(const int* in, int* out, int* sums) {
  __shared__ alignas(128) int mine[256];
  __shared__ alignas(128) int from_other[256];
  __shared__ std::uint64_t full, brought;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&brought, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof mine);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &brought,
                                   sizeof mine);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, mine, in + blockIdx.x * 256, sizeof mine,
                       &full);
  }
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
  if (threadIdx.x == 0) {
    int* there = cluster.map_shared_rank(from_other, rank ^ 1u);
    std::uint64_t* signal = cluster.map_shared_rank(&brought, rank ^ 1u);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, there, mine, sizeof mine, signal);
  }
#ifdef SOURCE_REUSED
  __syncthreads();
  mine[threadIdx.x] = 0;
#endif
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &brought, 0)) {
  }
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * 256, from_other,
                       sizeof from_other);
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, from_other,
                              sizeof from_other);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
  cluster.sync();
}

// ---- A bulk reduction into the shared memory of one CTA, from all of its cluster.
__global__ void __cluster_dims__(4, 1, 1) remote_reduction(const int* in, int* out) {
  __shared__ alignas(128) int mine[64];
  __shared__ alignas(128) int sums[64];
  __shared__ std::uint64_t brought;
  const cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  sums[threadIdx.x] = 1000;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&brought, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    if (cluster.block_rank() == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &brought,
                                     4 * sizeof mine);
    }
  }
#ifndef REDUCTION_WITHOUT_FENCE
  ptx::fence_proxy_async(ptx::space_shared);
#endif
  cluster.sync();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add,
                              cluster.map_shared_rank(sums, 0u), mine, sizeof mine,
                              cluster.map_shared_rank(&brought, 0u));
  }
  if (cluster.block_rank() == 0) {
#ifndef REDUCTION_NOT_WAITED
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &brought, 0)) {
    }
#endif
    out[blockIdx.x / 4 * 64 + threadIdx.x] = sums[threadIdx.x];
  }
  cluster.sync();
}

// ---- Distributed shared memory: plain loads and atomics.
__global__ void __cluster_dims__(4, 1, 1) remote_forms(int* out) {
  __shared__ int mine;
  __shared__ int counter;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    mine = 10 * static_cast<int>(cluster.block_rank());
    counter = 0;
  }
#ifndef REMOTE_RACE
  cluster.sync();
#endif
  int* other = cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  const int seen = *other;
  atomicAdd(cluster.map_shared_rank(&counter, 0), 1);
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = seen;
  if (threadIdx.x == 0 && cluster.block_rank() == 0) out[gridDim.x + ptx::get_sreg_clusterid_x()] = counter;
}

#pragma nv_diag_suppress static_var_with_dynamic_init

// ---- A warp's functions, narrow floats, cuda::barrier, cuda::atomic_ref, a tile of four threads.
__global__ void warp_forms(const int* in, float* out, unsigned* flag) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ float parts[64];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int value = __ldg(in + threadIdx.x);
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  const int sum = __reduce_add_sync(0xffffffffu, value);
  const int top = __reduce_max_sync(0xffffffffu, value);
  const unsigned same = __match_any_sync(0xffffffffu, value & 1);
  const auto quad = cg::tiled_partition<4>(cg::this_thread_block());
  const int of_four = cg::reduce(quad, value, cg::plus<int>());
  const long long begin = clock64();
  const __half2 pair = __hadd2(__floats2half2_rn(1.5f, static_cast<float>(lane)), __float2half2_rn(0.25f));
  const __nv_bfloat16 narrow = __hmul(__float2bfloat16(3.0f), __float2bfloat16(static_cast<float>(value)));
  parts[threadIdx.x] = __low2float(pair) + __high2float(pair) + __bfloat162float(narrow) +
                       static_cast<float>(__popc(same)) + static_cast<float>(sum + top + of_four) +
                       (clock64() > begin ? 0.0f : 1000.0f);
  barrier.arrive_and_wait();
  out[threadIdx.x] = parts[threadIdx.x ^ 1u];
  __threadfence();
  __syncthreads();
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> ref(*flag);
  if (threadIdx.x == 0) ref.fetch_add(5u, cuda::memory_order_release);
  if (threadIdx.x == 0 && ref.load(cuda::memory_order_acquire) != 5u) printf("the flag is wrong\n");
}

void check_kernel(emulate::Run& run) {
  int* scales = run.buffer("scales", std::vector<int>(32, 5));
  scaled<<<1, 32>>>(scales, scales, 3);
  scaled<int><<<1, 32>>>(scales, scales, 2);
  run.expect_equal("scales", run.host(scales), std::vector<int>(32, 30));
  int* counts = run.buffer<int>("counts", 3);
  barrier_counts<<<1, 32>>>(counts);
  run.expect_equal("counts", run.host(counts), std::vector<int>{4, 2, 1});
  {
    int* out = run.buffer<int>("out", 64);
    barrier_forms<<<1, 64>>>(out);
    std::vector<int> expected(64);
    for (int i = 0; i < 64; ++i) expected[static_cast<size_t>(i)] = 7 + i;
    run.expect_equal("out of barrier_forms", run.host(out), expected);
  }
  {
    const std::vector<int> values = run.small_integers<int>(512);
    const int* in = run.buffer("in", values);
    int* out = run.buffer<int>("out", 512);
    int* sums = run.buffer("sums", std::vector<int>(256, 100));
    bulk_forms<<<2, 256>>>(in, out, sums);
    std::vector<int> swapped(512);
    std::vector<int> added(256, 100);
    for (size_t i = 0; i < 512; ++i) {
      swapped[i] = values[i ^ 256];
      added[i % 256] += values[i];
    }
    run.expect_equal("out of bulk_forms", run.host(out), swapped);
    run.expect_equal("sums of bulk_forms", run.host(sums), added);
  }
  {
    const std::vector<int> values = run.small_integers<int>(512);
    int* out = run.buffer<int>("out", 128);
    remote_reduction<<<8, 64>>>(run.buffer("in", values), out);
    std::vector<int> added(128, 1000);
    for (size_t i = 0; i < 512; ++i) added[i / 256 * 64 + i % 64] += values[i];
    run.expect_equal("out of remote_reduction", run.host(out), added);
  }
  {
    int* out = run.buffer<int>("out", 8 + 2);
    remote_forms<<<8, 32>>>(out);
    run.expect_equal("out of remote_forms", run.host(out),
                     std::vector<int>{10, 20, 30, 0, 10, 20, 30, 0, 128, 128});
  }
  {
    const std::vector<int> values = run.small_integers<int>(64);
    const int* in = run.buffer("in", values);
    float* out = run.buffer<float>("out", 64);
    unsigned* flag = run.buffer("flag", std::vector<unsigned>{0});
    warp_forms<<<1, 64>>>(in, out, flag);
    std::vector<float> expected(64);
    for (size_t i = 0; i < 64; ++i) {
      const size_t t = i ^ 1;
      int sum = 0, top = -100, same = 0, four = 0;
      for (size_t j = t / 32 * 32; j < t / 32 * 32 + 32; ++j) {
        sum += values[j];
        top = values[j] > top ? values[j] : top;
        same += (values[j] & 1) == (values[t] & 1);
        if (j / 4 == t / 4) four += values[j];
      }
      expected[i] = 1.75f + static_cast<float>(t % 32) + 0.25f + 3.0f * static_cast<float>(values[t]) +
                    static_cast<float>(same + sum + top + four);
    }
    run.expect_equal("out of warp_forms", run.host(out), expected);
    run.expect_equal("flag", run.host(flag), std::vector<unsigned>{5});
  }
}
