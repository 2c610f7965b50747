// A grouped kernel has one tensor map in global memory and changes its address for every group.
//
// As reported: -D NO_DRAIN (the map is changed while loads of the group before are in flight).
#include <cuda.h>

#include <cuda/ptx>

#include <vector>

#include "box_map.h"

namespace ptx = cuda::ptx;

constexpr int kStages = 4;

__global__ void load_groups(const __grid_constant__ CUtensorMap pattern, CUtensorMap* map, const int* in,
                            int* out, int groups) {
  __shared__ alignas(128) CUtensorMap mine;
  __shared__ alignas(128) int stage[kStages][kBox * kBox];
  __shared__ uint64_t full[kStages];
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) ptx::mbarrier_init(&full[s], 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    mine = pattern;
  }
  __syncwarp();
  const auto drain = [&](int group) {
    while (!ptx::mbarrier_try_wait_parity(&full[group % kStages], group / kStages % 2)) {
    }
  };
  // ANCHOR: kernel
  for (int group = 0; group < groups; ++group) {
#ifndef NO_DRAIN
    if (group > 0) drain(group - 1);
#endif
    if (threadIdx.x == 0)
      ptx::tensormap_replace_global_address(ptx::space_shared, &mine, in + group * kBox * kBox);
    __syncwarp();
    ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, map, &mine, ptx::n32_t<128>());
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, map, ptx::n32_t<128>());
    __syncwarp();
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                     &full[group % kStages], sizeof stage[0]);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, stage[group % kStages], map, {0, 0},
                                &full[group % kStages]);
    }
  }
  // ANCHOR_END: kernel
  for (int group = 0; group < groups; ++group) {
    drain(group);
    for (int i = threadIdx.x; i < kBox * kBox; i += 32)
      out[group * kBox * kBox + i] = stage[group % kStages][i];
  }
}

void check_kernel(emulate::Run& run) {
  std::vector<int> in(kStages * kBox * kBox);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i);
  const int* input = run.buffer("in", in);
  int* out = run.buffer<int>("out", in.size());
  load_groups<<<1, 32>>>(make_box_map(input), run.buffer<CUtensorMap>("map", 1), input, out, kStages);
  run.expect_equal("out", run.host(out), in);
}
