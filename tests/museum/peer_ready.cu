// Two CTAs of a cluster prepare halves of an operand, one half by a bulk copy and one by ordinary stores; the
// leader uses both.
//
// As reported: -D NO_PEER_WAIT (the peer says that it is ready without having waited for its own copy), -D
// CTA_SCOPE (the peer's arrival releases its stores only at CTA scope).
#include <cooperative_groups.h>

#include <cuda/ptx>

#include <vector>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int kThreads = 64;

struct Half {
  alignas(128) float copied[kThreads];
  float stored[kThreads];
};

__global__ void __cluster_dims__(2, 1, 1) add_halves(const float* copied, const float* stored, float* out) {
  __shared__ Half half;
  __shared__ uint64_t full, ready;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&ready, kThreads);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full,
                                   sizeof half.copied);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, half.copied, copied + blockIdx.x * kThreads,
                       sizeof half.copied, &full);
  }
  // ANCHOR: kernel
  half.stored[threadIdx.x] = stored[blockIdx.x * kThreads + threadIdx.x];
#ifdef NO_PEER_WAIT
  if (cluster.block_rank() == 0)
#endif
    while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
    }
  if (cluster.block_rank() == 1) {
    uint64_t* leader = cluster.map_shared_rank(&ready, 0);
#ifdef CTA_SCOPE
    asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(leader)))
                 : "memory");
#else
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, leader);
#endif
  } else {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &ready, 0)) {
    }
    const Half& peer = *cluster.map_shared_rank(&half, 1);
    const unsigned i = kThreads - 1 - threadIdx.x;
    out[blockIdx.x / 2 * kThreads + i] = peer.stored[i] + peer.copied[i];
  }
  // ANCHOR_END: kernel
  cluster.sync();
}

void check_kernel(emulate::Run& run) {
  const std::vector<float> copied = run.small_integers<float>(8 * kThreads),
                           stored = run.small_integers<float>(8 * kThreads);
  float* out = run.buffer<float>("out", 4 * kThreads);
  add_halves<<<8, kThreads>>>(run.buffer("copied", copied), run.buffer("stored", stored), out);
  std::vector<float> expected;
  for (size_t i = 0; i < copied.size(); ++i)
    if (i / kThreads % 2 == 1) expected.push_back(copied[i] + stored[i]);
  run.expect_equal("out", run.host(out), expected);
}
