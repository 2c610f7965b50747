// A GEMM with a ring of stages like step 11's: two warpgroups multiply tiles of 128 x 256, one of their
// threads also issues the copies, and one wgmma group stays in flight.
//
// -D K_TILES=100 makes K longer; the run prints the emulator's k-tiles per second of CPU time. Broken on
// purpose: -D EARLY_RELEASE (a stage is released while wgmma is reading it), -D FIRST_PHASE (the producer
// waits for a stage that was never filled), -D ONE_WARPGROUP (a stage is free when one of two warpgroups has
// read it), -D NO_LAST_WAIT (the accumulators are read while wgmma is writing them).
#include <cuda/ptx>

#include "tensor_map.h"
#include "wgmma_tile.h"

namespace ptx = cuda::ptx;

#if !K_TILES
#define K_TILES 9
#endif

constexpr int kM = 128;
constexpr int kN = 256;
constexpr int kK = 64;
constexpr int kStages = 4;
constexpr int kWarpgroups = kM / 64;

struct Shared {
  alignas(1024) __nv_bfloat16 a[kStages][kM * kK];
  alignas(1024) __nv_bfloat16 b[kStages][kN * kK];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

struct Position {
  int stage = 0;
  std::uint32_t phase = 0;

  __device__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

__device__ inline void wait(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

__device__ inline void load(Shared& shared, int stage, const CUtensorMap& map_a, const CUtensorMap& map_b,
                            int k, int row, int column) {
  std::uint64_t* full = &shared.full[stage];
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                 (kM + kN) * kK * sizeof(__nv_bfloat16));
  const std::int32_t at_a[] = {k, row};
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.a[stage], &map_a, at_a, full);
  const std::int32_t at_b[] = {k, column};
  ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, shared.b[stage], &map_b, at_b, full);
}

__global__ void __launch_bounds__(kWarpgroups * 128, 1)
    ring(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* d,
         int columns, int k_tiles) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const int row = static_cast<int>(blockIdx.y) * kM;
  const int column = static_cast<int>(blockIdx.x) * kN;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
#ifdef ONE_WARPGROUP
  constexpr int kReaders = 1;
  const bool releases = threadIdx.x == 0;
#else
  constexpr int kReaders = kWarpgroups;
  const bool releases = threadIdx.x % 128 == 0;
#endif
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      ptx::mbarrier_init(&shared.full[stage], 1);
      ptx::mbarrier_init(&shared.empty[stage], kReaders);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

#ifdef FIRST_PHASE
  Position fill{0, 0};
#else
  Position fill{0, 1};
#endif
  int next = 0;
  const auto produce = [&] {
    if (threadIdx.x != 0 || next == k_tiles) return;
    wait(&shared.empty[fill.stage], fill.phase);
    load(shared, fill.stage, map_a, map_b, next * kK, row, column);
    fill.advance();
    ++next;
  };
  for (int stage = 0; stage < kStages; ++stage) produce();

  float sums[kN / 2];
  Position read, release;
  for (int i = 0; i < k_tiles; ++i) {
    wait(&shared.full[read.stage], read.phase);
    multiply<kN>(sums, &shared.a[read.stage][warpgroup * 64 * kK], shared.b[read.stage], i == 0);
    read.advance();
#ifndef EARLY_RELEASE
    gemm::ptx::wgmma_wait_group<1>();
    if (i == 0) continue;
#endif
    if (releases) ptx::mbarrier_arrive(&shared.empty[release.stage]);
    release.advance();
    produce();
  }
#ifndef NO_LAST_WAIT
  gemm::ptx::wgmma_wait_group<0>();
#endif
  gemm::ptx::wgmma_fence_operand(sums);
  store<kN>(sums, d, row + warpgroup * 64, column, columns);
}

void check_kernel(emulate::Run& run) {
  const int m = 2 * kM;
  const int n = 2 * kN;
  const int k = K_TILES * kK;
  const __nv_bfloat16* a = run.buffer("a", run.small_integers<__nv_bfloat16>(m * k));
  const __nv_bfloat16* b = run.buffer("b", run.small_integers<__nv_bfloat16>(n * k));
  float* d = run.buffer<float>("d", m * n);
  cudaFuncSetAttribute(ring, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  const dim3 grid(n / kN, m / kM);
  ring<<<grid, kWarpgroups * 128, sizeof(Shared)>>>(make_map(a, m, k, kM), make_map(b, n, k, kN), d, n,
                                                    K_TILES);
  run.work("k-tiles", grid.x * grid.y * K_TILES);
  run.expect_gemm("d", d, a, b, m, n, k);
}
