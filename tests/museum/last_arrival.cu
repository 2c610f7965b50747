// The CTAs of a pair release their stages to each other until the end of the kernel.
//
// As reported: -D NO_LAST_BARRIER (a CTA ends while its peer still arrives at its mbarriers).
#include <cooperative_groups.h>

#include <cuda/ptx>

#include <vector>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__global__ void __cluster_dims__(2, 1, 1) exchange(const int* in, int* out, int rounds) {
  __shared__ int stage[32];
  __shared__ uint64_t full, empty;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned peer = cluster.block_rank() ^ 1;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 32);
    ptx::mbarrier_init(&empty, 32);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  int sum = 0;
  // ANCHOR: kernel
  for (int round = 0; round < rounds; ++round) {
    if (round > 0)
      while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &empty, (round - 1) % 2)) {
      }
    cluster.map_shared_rank(stage, peer)[threadIdx.x] = in[(blockIdx.x * rounds + round) * 32 + threadIdx.x];
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                         cluster.map_shared_rank(&full, peer));
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &full, round % 2)) {
    }
    sum += stage[31 - threadIdx.x];
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,
                         cluster.map_shared_rank(&empty, peer));
  }
  out[blockIdx.x * 32 + threadIdx.x] = sum;
#ifndef NO_LAST_BARRIER
  cluster.sync();
#endif
  // ANCHOR_END: kernel
}

void check_kernel(emulate::Run& run) {
  const unsigned ctas = 8, rounds = 3;
  const std::vector<int> in = run.small_integers<int>(ctas * rounds * 32);
  int* out = run.buffer<int>("out", ctas * 32);
  exchange<<<ctas, 32>>>(run.buffer("in", in), out, static_cast<int>(rounds));
  std::vector<int> expected(ctas * 32);
  for (size_t i = 0; i < in.size(); ++i) expected[(i / (rounds * 32) ^ 1) * 32 + 31 - i % 32] += in[i];
  run.expect_equal("out", run.host(out), expected);
}
