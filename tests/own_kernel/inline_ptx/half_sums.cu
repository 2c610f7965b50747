// wgmma with accumulators of 16 bits, two per register.
//
// Broken on purpose: -D NO_GROUP_WAIT (the accumulators are stored while wgmma writes them).
#include <cuda_fp16.h>

#include "../tensor_map.h"
#include "wrappers.cuh"

constexpr int kTile = 64, kSteps = 3;

__global__ void __launch_bounds__(128)
    sums(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, __half* d) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto* const a = reinterpret_cast<__half*>(memory);
  __half* const b = a + kTile * kTile;
  __shared__ std::uint64_t full;
  if (threadIdx.x == 0) {
    init_barrier(&full, 1);
    FENCE(mbarrier_init.release.cluster);
  }
  __syncthreads();
  std::uint32_t sum[16];
  for (int i = 0; i < kSteps; ++i) {
    if (threadIdx.x == 0) {
      expect_bytes(&full, 2 * kTile * kTile * sizeof(__half));
      load_tile(a, &map_a, &full, kTile * i, 0);
      load_tile(b, &map_b, &full, kTile * i, 0);
    }
    wait_barrier(&full, i % 2);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#define FOUR(i) "+r"(sum[4 * i]), "+r"(sum[4 * i + 1]), "+r"(sum[4 * i + 2]), "+r"(sum[4 * i + 3])
      asm volatile(
          "{.reg .pred p; setp.ne.b32 p, %18, 0;\n"
          "wgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
          "%11, %12, %13, %14, %15}, "
          "%16, %17, p, 1, 1, 0, 0;}\n"
          : FOUR(0), FOUR(1), FOUR(2), FOUR(3)
          : "l"(descriptor(a) + 2 * k), "l"(descriptor(b) + 2 * k), "r"(i + k));
#undef FOUR
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#ifndef NO_GROUP_WAIT
    wait_for_groups<0>();
#endif
    __syncthreads();
  }
  const int row = static_cast<int>(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4),
            column = static_cast<int>(threadIdx.x % 4 * 2);
  for (int i = 0; i < 16; ++i)
    asm volatile("st.global.b32 [%0], %1;" ::"l"(d + (row + i % 2 * 8) * kTile + i / 2 * 8 + column),
                 "r"(sum[i])
                 : "memory");
}

void check_kernel(emulate::Run& run) {
  constexpr int kK = kTile * kSteps;
  const auto* a = run.buffer("a", run.small_integers<__half>(kTile * kK));
  const auto* b = run.buffer("b", run.small_integers<__half>(kTile * kK));
  auto* const d = run.buffer<__half>("d", kTile * kTile);
  const auto map = [](const __half* tile) {
    return make_map(reinterpret_cast<const __nv_bfloat16*>(tile), kTile, kK, kTile);
  };
  sums<<<1, 128, 2 * kTile * kTile * sizeof(__half)>>>(map(a), map(b), d);
  run.expect_gemm("d", d, a, b, kTile, kTile, kK);
}
