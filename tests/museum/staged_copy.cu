// One thread copies a buffer from one place in global memory to another, through two stages of shared memory.
//
// As reported: -D WAIT_ONE_LESS (before it refills a stage, the thread waits until one store at most is still
// reading, and that is the store that reads this stage).
#include <cuda/ptx>

#include <vector>

namespace ptx = cuda::ptx;

constexpr int kStages = 2;
constexpr int kChunk = 2048;

__global__ void copy(const int* in, int* out, int chunks) {
  __shared__ alignas(128) int stages[kStages][kChunk];
  __shared__ uint64_t full[kStages];
  for (int s = 0; s < kStages; ++s) ptx::mbarrier_init(&full[s], 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  const auto load = [&](int chunk) {
    uint64_t* barrier = &full[chunk % kStages];
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                   sizeof stages[0]);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stages[chunk % kStages], in + chunk * kChunk,
                       sizeof stages[0], barrier);
  };
  for (int chunk = 0; chunk < kStages; ++chunk) load(chunk);
  // ANCHOR: kernel
  for (int chunk = 0; chunk < chunks; ++chunk) {
    while (!ptx::mbarrier_try_wait_parity(&full[chunk % kStages], chunk / kStages % 2)) {
    }
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + chunk * kChunk, stages[chunk % kStages],
                       sizeof stages[0]);
    ptx::cp_async_bulk_commit_group();
    if (chunk + kStages < chunks) {
#ifdef WAIT_ONE_LESS
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
#else
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#endif
      load(chunk + kStages);
    }
  }
  // ANCHOR_END: kernel
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}

void check_kernel(emulate::Run& run) {
  const int chunks = 9;
  const std::vector<int> in = run.small_integers<int>(chunks * kChunk);
  int* out = run.buffer<int>("out", in.size());
  copy<<<1, 1>>>(run.buffer("in", in), out, chunks);
  run.expect_equal("out", run.host(out), in);
}
