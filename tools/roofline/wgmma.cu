// The ceiling of Hopper's tensor cores: wgmma from shared memory that is filled once and never changes.
#include <cuda_runtime.h>

#include <string>

#include "arithmetic.h"
#include "bench.h"
#include "device_clock.cuh"
#include "ptx/convert.cuh"
#include "ptx/descriptor.h"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/wgmma.cuh"

namespace roofline {
namespace {

namespace ptx = gemm::ptx;

constexpr int kMostWarpgroups = 2;
constexpr int kN = 256;
constexpr int kK = 64;  // a swizzled row of 128 bytes
constexpr int kSlices = kK / 16;
constexpr double kFlopPerWgmma = 2.0 * 64 * kN * 16;

struct Operands {
  std::uint16_t a[kMostWarpgroups][64][kK];  // [warpgroup][m][k]
  std::uint16_t b[kN][kK];                   // [n][k]
};

/// Each warpgroup multiplies its own A with the common B, kSlices instructions a round. Any permutation of
/// random numbers is as random, so the operands need no swizzling.
__global__ void __launch_bounds__(128 * kMostWarpgroups, 1)
    wgmma_kernel(int rounds, CtaTime* times, std::uint32_t* sink) {
  Operands& operands = ptx::dynamic_shared<Operands>();
  auto* const words = reinterpret_cast<std::uint32_t*>(&operands);
  for (unsigned i = threadIdx.x; i < sizeof(Operands) / 4; i += blockDim.x) {
    const std::uint32_t index = (blockIdx.x * static_cast<std::uint32_t>(sizeof(Operands)) / 4 + i) * 2;
    ptx::st_shared(words + i, ptx::cvt_rn_bf16x2_f32(random_float(index), random_float(index + 1)));
  }
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();

  const unsigned warpgroup =
      __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);  // the same for all lanes, visibly
  const std::uint64_t a =
      ptx::k_major_descriptor(ptx::shared_address(operands.a[warpgroup]), ptx::Swizzle::k128B);
  const std::uint64_t b = ptx::k_major_descriptor(ptx::shared_address(operands.b), ptx::Swizzle::k128B);
  constexpr std::uint64_t kSliceStep = 32 / 16;  // 16 elements on, in units of 16 bytes
  float accumulators[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) accumulators[i] = 0;
  ptx::wgmma_fence_operand(accumulators);
  const CtaStopwatch stopwatch;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice)
      ptx::wgmma_m64nNk16_f32_bf16_ss<kN>(accumulators, a + kSliceStep * slice, b + kSliceStep * slice, 1);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();  // the next group is issued while this one runs
  }
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_fence_operand(accumulators);
  stopwatch.stop(times);
  float total = 0;
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) total += accumulators[i];
  sink[blockIdx.x * blockDim.x + threadIdx.x] = __float_as_uint(total);
}

}  // namespace

void add_wgmma(Bench& bench) {
  constexpr int kHopper = 90;
  if (bench.device().compute_capability != kHopper) return;
  constexpr double kFlopPerClock = 4096;  // dense bf16 of an SM
  constexpr double kTolerance = 1.02;
  for (const int warpgroups : {1, 2}) {
    const int rounds =
        static_cast<int>(2 * kTargetCycles * kFlopPerClock / (kFlopPerWgmma * kSlices * warpgroups));
    bench.add(arithmetic_probe(bench, "wgmma", "wgmma m64n256k16 bf16, both operands in shared memory",
                               {{"warpgroups", warpgroups}}, rounds * kFlopPerWgmma * kSlices * warpgroups,
                               kTolerance * kFlopPerClock, [&bench, rounds, warpgroups] {
                                 return bench.timed(
                                     [&] {
                                       ptx::launch(wgmma_kernel,
                                                   bench.one_cta_per_sm(128 * warpgroups, sizeof(Operands)),
                                                   nullptr, rounds, bench.times(), bench.sink());
                                     },
                                     bench.device().sm_count);
                               }));
  }
}

}  // namespace roofline
