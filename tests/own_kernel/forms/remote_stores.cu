// st.async and red.async: values go from registers into the shared memory of another CTA of the cluster, and
// an mbarrier there counts them.
//
// Broken on purpose: -D NO_WAIT (the values are read without a wait at the mbarrier), -D CTA_SCOPE (the wait
// acquires only at CTA scope), -D EXPECTS_LESS (fewer bytes are expected than arrive), -D EXPECTS_MORE (more
// bytes are expected than arrive), -D NOT_CLEARED (a reduction into bytes that were never written), -D
// INTO_OWN (stores into the CTA's own memory).
#include <cooperative_groups.h>

#include <cuda/ptx>

#include <cstdint>
#include <vector>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr unsigned kThreads = 32;

struct Received {
  int words[kThreads];
  std::uint64_t longs[kThreads];
  int pairs[kThreads][2];
  int fours[kThreads][4];
};
constexpr unsigned kBytes = sizeof(Received);

__device__ void wait_for(std::uint64_t* barrier, unsigned parity) {
#if defined(CTA_SCOPE)
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, barrier, parity)) {
  }
#elif !defined(NO_WAIT)
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, barrier, parity)) {
  }
#endif
}

/// Every CTA sends to its neighbour, twice.
__global__ void __cluster_dims__(4, 1, 1) ring(int* out) {
  __shared__ alignas(16) Received got;
  __shared__ std::uint64_t full;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  const unsigned me = threadIdx.x;
#if defined(EXPECTS_LESS)
  constexpr unsigned kExpected = kBytes - 4;
#elif defined(EXPECTS_MORE)
  constexpr unsigned kExpected = kBytes + 4;
#else
  constexpr unsigned kExpected = kBytes;
#endif
  if (me == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, kExpected);
  }
  cluster.sync();
  const unsigned next = (rank + 1) % cluster.num_blocks();
  Received* there = cluster.map_shared_rank(&got, next);
  std::uint64_t* signal = cluster.map_shared_rank(&full, next);
  int sum = 0;
  for (unsigned round = 0; round < 2; ++round) {
    const int value = static_cast<int>(1000 * round + 100 * rank + me);
    ptx::st_async(&there->words[me], value, signal);
    ptx::st_async(&there->longs[me], static_cast<std::uint64_t>(value), signal);
    ptx::st_async(&there->pairs[me][0], {value, 1}, signal);
    ptx::st_async(&there->fours[me][0], {value, 2, 3, 4}, signal);
    wait_for(&full, round);
    sum += got.words[me] + static_cast<int>(got.longs[me]) + got.pairs[me][0] + got.pairs[me][1];
    for (int i = 0; i < 4; ++i) sum += got.fours[me][i];
    __syncthreads();
    if (me == 0 && round == 0)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, kExpected);
    cluster.sync();
  }
  out[blockIdx.x * kThreads + me] = sum;
}

struct Reduced {
  int sum;
  int most;
  std::uint32_t bits;
  std::uint32_t turns;
  std::uint64_t long_sum;
};

/// All other CTAs reduce into the first one, at the same time.
__global__ void __cluster_dims__(4, 1, 1) gather(int* out) {
  __shared__ Reduced reduced;
  __shared__ std::uint64_t full;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  const unsigned me = threadIdx.x;
  if (rank == 0 && me == 0) {
#ifndef NOT_CLEARED
    reduced = {0, -1000, 0, 0, 0};
#endif
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full,
                                   3 * kThreads * sizeof(Reduced));
  }
  cluster.sync();
  if (rank > 0) {
#ifdef INTO_OWN
    const unsigned to = rank;
#else
    const unsigned to = 0;
#endif
    Reduced* there = cluster.map_shared_rank(&reduced, to);
    std::uint64_t* signal = cluster.map_shared_rank(&full, to);
    const int value = static_cast<int>(rank * me);
    ptx::red_async(ptx::op_add, &there->sum, value, signal);
    ptx::red_async(ptx::op_max, &there->most, value, signal);
    ptx::red_async(ptx::op_or_op, &there->bits, 1u << me, signal);
    ptx::red_async(ptx::op_inc, &there->turns, 9u, signal);
    ptx::red_async(ptx::op_add, &there->long_sum, std::uint64_t{1} << 40, signal);
  } else {
    wait_for(&full, 0);
    if (me == 0) {
      out[0] = reduced.sum;
      out[1] = reduced.most;
      out[2] = static_cast<int>(reduced.bits);
      out[3] = static_cast<int>(reduced.turns);
      out[4] = static_cast<int>(reduced.long_sum >> 40);
    }
  }
  cluster.sync();
}

void check_kernel(emulate::Run& run) {
  int* out = run.buffer<int>("out", 4 * kThreads);
  ring<<<4, kThreads>>>(out);
  std::vector<int> expected;
  for (int cta = 0; cta < 4; ++cta) {
    for (int me = 0; me < 32; ++me)
      expected.push_back(4 * (1000 + 2 * (100 * ((cta + 3) % 4) + me)) + 2 * 10);
  }
  run.expect_equal("out of ring", run.host(out), expected);

  int* sums = run.buffer<int>("sums", 5);
  gather<<<4, kThreads>>>(sums);
  run.expect_equal("sums of gather", run.host(sums), std::vector<int>{(1 + 2 + 3) * 496, 93, -1, 6, 96});
}
