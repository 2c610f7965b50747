// Arithmetic ceilings: operations in registers only, on all SMs at once.
#include <cuda_runtime.h>

#include <string>

#include "arithmetic.h"
#include "bench.h"
#include "device_clock.cuh"
#include "ptx/launch.cuh"
#include "ptx/mma_sync.cuh"

namespace roofline {
namespace {

constexpr int kFmaThreads = 1024;
constexpr int kFmaAccumulators = 16;  // independent accumulators a thread

/// A thread's outer product of 4 x 4, as in the inner loop of a GEMM.
__global__ void __launch_bounds__(kFmaThreads) fma_kernel(int rounds, CtaTime* times, std::uint32_t* sink) {
  constexpr int kSide = 4;
  static_assert(kSide * kSide == kFmaAccumulators, "an outer product");
  float a[kSide];
  float b[kSide];
  float accumulators[kSide][kSide];
#pragma unroll
  for (unsigned i = 0; i < kSide; ++i) {
    a[i] = random_float(threadIdx.x + 1024 * i);
    b[i] = random_float(threadIdx.x + 1024 * (i + kSide));
  }
#pragma unroll
  for (int i = 0; i < kFmaAccumulators; ++i) accumulators[i / kSide][i % kSide] = 0;
  const CtaStopwatch stopwatch;
#pragma unroll 8
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
#pragma unroll
      for (int j = 0; j < kSide; ++j) accumulators[i][j] = fmaf(a[i], b[j], accumulators[i][j]);
    }
  }
  stopwatch.stop(times);
  float total = 0;
#pragma unroll
  for (int i = 0; i < kFmaAccumulators; ++i) total += accumulators[i / kSide][i % kSide];
  sink[blockIdx.x * kFmaThreads + threadIdx.x] = __float_as_uint(total);
}

constexpr int kMmaMostThreads = 512;
constexpr int kMmaM =
    4;  // fragments of a warp: 16 independent accumulators, with the reuse of operands that a GEMM has
constexpr int kMmaN = 4;

__device__ __forceinline__ std::uint32_t random_bf16_pair(std::uint32_t index) {
  // Two bf16 of magnitude 2^-7 to 2: sign, fraction and the low exponent bits as they fall.
  return (mixed(index) & 0x83ff83ffu) | 0x3c003c00u;
}

__global__ void __launch_bounds__(kMmaMostThreads)
    mma_kernel(int rounds, CtaTime* times, std::uint32_t* sink) {
  std::uint32_t a[kMmaM][4];
  std::uint32_t b[kMmaN][2];
  float accumulators[kMmaM][kMmaN][4];
  const std::uint32_t first = (blockIdx.x * kMmaMostThreads + threadIdx.x) * 32;
#pragma unroll
  for (unsigned i = 0; i < kMmaM * 4; ++i) a[i / 4][i % 4] = random_bf16_pair(first + i);
#pragma unroll
  for (unsigned i = 0; i < kMmaN * 2; ++i) b[i / 2][i % 2] = random_bf16_pair(first + 16 + i);
#pragma unroll
  for (int i = 0; i < kMmaM * kMmaN * 4; ++i) accumulators[i / (kMmaN * 4)][i / 4 % kMmaN][i % 4] = 0;
  const CtaStopwatch stopwatch;
#pragma unroll 2
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < kMmaN; ++j) gemm::ptx::mma_m16n8k16_bf16(accumulators[i][j], a[i], b[j]);
    }
  }
  stopwatch.stop(times);
  float total = 0;
#pragma unroll
  for (int i = 0; i < kMmaM * kMmaN * 4; ++i) total += accumulators[i / (kMmaN * 4)][i / 4 % kMmaN][i % 4];
  sink[blockIdx.x * blockDim.x + threadIdx.x] = __float_as_uint(total);
}

LaunchTime run_fma(const Bench& bench, int rounds) {
  return bench.timed(
      [&] {
        gemm::ptx::launch(fma_kernel, bench.one_cta_per_sm(kFmaThreads), nullptr, rounds, bench.times(),
                          bench.sink());
      },
      bench.device().sm_count);
}

}  // namespace

Probe arithmetic_probe(const Bench& bench, const std::string& name, const std::string& what,
                       const nlohmann::json& parameters, double flop_per_sm, double most_per_clock,
                       std::function<LaunchTime()> run) {
  const int sm_count = bench.device().sm_count;
  return {.figures = {{.name = name + ".rate",
                       .unit = "FLOP/clock/SM",
                       .what = what,
                       .parameters = parameters,
                       .most = most_per_clock},
                      {.name = name + ".throughput",
                       .unit = "TFLOP/s",
                       .what = what + ", all SMs, at the clock of the run",
                       .parameters = parameters},
                      {.name = name + ".clock",
                       .unit = "MHz",
                       .what = "SM clock meanwhile",
                       .parameters = parameters}},
          .run =
              [flop_per_sm, sm_count, run = std::move(run)](std::span<double> samples) {
                const LaunchTime time = run();
                samples[0] = flop_per_sm / time.cycles;
                samples[1] = flop_per_sm * sm_count / time.ns * 1e-3;
                samples[2] = time.clock_mhz;
              },
          .idle_ms = kIdleMs};
}

void warm_up(const Bench& bench) {
  double ns = 0;
  while (ns < 0.5e9) ns += std::max(run_fma(bench, 1 << 17).ns, 1e6);
}

void add_arithmetic(Bench& bench) {
  constexpr double kTolerance = 1.02;
  {
    constexpr int kFmaPerClock = 128;  // of an SM; 64 on some
    constexpr int kRounds = 2 * kTargetCycles * kFmaPerClock / (kFmaThreads * kFmaAccumulators);
    constexpr double kFlop = 2.0 * kRounds * kFmaThreads * kFmaAccumulators;
    bench.add(arithmetic_probe(bench, "fma", "fp32 FMA, 1024 threads an SM, 16 independent accumulators each",
                               {{"warps", kFmaThreads / 32}}, kFlop, kTolerance * 2 * kFmaPerClock,
                               [&bench] { return run_fma(bench, kRounds); }));
  }
  for (const int warps : {1, 2, 4, 8, 16}) {
    constexpr double kFlopPerMma = 2.0 * 16 * 8 * 16;
    constexpr double kMostPerClock =
        4096;  // dense bf16 of Hopper's tensor cores, the most of any GPU that runs this
    // Rounds for about the target, should the warps reach what the tensor cores can do.
    const int rounds =
        static_cast<int>(kTargetCycles * kMostPerClock / (kFlopPerMma * kMmaM * kMmaN * std::max(warps, 4)));
    bench.add(arithmetic_probe(bench, "mma_sync", "mma.sync m16n8k16 bf16, 16 independent fragments a warp",
                               {{"warps", warps}}, rounds * kFlopPerMma * kMmaM * kMmaN * warps,
                               kTolerance * kMostPerClock, [&bench, rounds, warps] {
                                 return bench.timed(
                                     [&] {
                                       gemm::ptx::launch(mma_kernel, bench.one_cta_per_sm(32 * warps),
                                                         nullptr, rounds, bench.times(), bench.sink());
                                     },
                                     bench.device().sm_count);
                               }));
  }
}

}  // namespace roofline
