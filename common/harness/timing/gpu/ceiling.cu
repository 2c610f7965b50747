#include "harness/timing/gpu/ceiling.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "gemm/problem/bf16.h"
#include "harness/backend/backend.h"
#include "harness/timing/cuda_event.h"
#include "ptx/convert.cuh"
#include "ptx/descriptor.h"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mma_sync.cuh"
#include "ptx/shared.cuh"
#include "ptx/wgmma.cuh"

namespace harness {
namespace {

namespace ptx = gemm::ptx;

/// An element of N(0, 1), close enough for a power measurement: the sum of four uniform bytes, centred and
/// scaled (standard deviation of the sum: sqrt(4 * (256^2 - 1) / 12) = 147.8).
__device__ float random_normal(std::uint32_t index) {
  std::uint32_t bits = index * 0x9e3779b9u + 0x7f4a7c15u;
  bits ^= bits >> 16;
  bits *= 0x85ebca6bu;
  bits ^= bits >> 13;
  bits *= 0xc2b2ae35u;
  bits ^= bits >> 16;
  const unsigned sum = __dp4a(bits, 0x01010101u, 0u);
  return (static_cast<float>(sum) - 510.0f) * (1.0f / 147.8f);
}

__device__ std::uint32_t random_normal_pair(std::uint32_t index) {
  return ptx::cvt_rn_bf16x2_f32(random_normal(2 * index), random_normal(2 * index + 1));
}

// wgmma: two warpgroups, each with its own A, share one B. A k-tile of 64 is multiplied again and again; the
// accumulators start anew every kRestart instructions, as they do in a GEMM, so that they do not grow.
constexpr int kWarpgroups = 2;
constexpr int kWgmmaThreads = 128 * kWarpgroups;
constexpr int kWgmmaN = 256;
constexpr int kSlices = 4;     // k-slices of 16 in a row of 128 bytes
constexpr int kRestart = 512;  // instructions: K = 8192
constexpr double kFlopPerWgmma = 2.0 * 64 * kWgmmaN * 16;

struct WgmmaOperands {
  std::uint16_t a[kWarpgroups][64][64];  // [warpgroup][m][k]
  std::uint16_t b[kWgmmaN][64];          // [n][k]
};

/// `instructions` wgmma in all, divided among all warpgroups of the grid. `sink` gets one sum per thread.
__device__ void wgmma_only(long long instructions, float* sink) {
  WgmmaOperands& operands = ptx::dynamic_shared<WgmmaOperands>();
  const unsigned thread = threadIdx.x;
  auto* words = reinterpret_cast<std::uint32_t*>(&operands);
  for (unsigned i = thread; i < sizeof(WgmmaOperands) / 4; i += kWgmmaThreads)
    words[i] = random_normal_pair(blockIdx.x * static_cast<unsigned>(sizeof(WgmmaOperands) / 4) + i);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();

  // Any permutation of random numbers will do, so the swizzle needs no care beyond the descriptor.
  const unsigned warpgroup = __shfl_sync(0xffffffffu, thread / 128, 0);
  const std::uint64_t a =
      ptx::k_major_descriptor(ptx::shared_address(operands.a[warpgroup]), ptx::Swizzle::k128B);
  const std::uint64_t b = ptx::k_major_descriptor(ptx::shared_address(operands.b), ptx::Swizzle::k128B);
  constexpr std::uint64_t kSliceStep = 32 / 16;  // 16 elements on, in units of 16 bytes

  const long long workers = static_cast<long long>(gridDim.x) * kWarpgroups;
  const long long worker = static_cast<long long>(warpgroup) * gridDim.x + blockIdx.x;
  const long long count = instructions / workers + (worker < instructions % workers ? 1 : 0);

  float d[kWgmmaN / 2];
#pragma unroll
  for (int i = 0; i < kWgmmaN / 2; ++i) d[i] = 0;
  ptx::wgmma_fence_operand(d);
  long long done = 0;
#pragma unroll 1
  for (; done + kSlices <= count; done += kSlices) {
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      const int accumulate = slice != 0 || done % kRestart != 0 ? 1 : 0;
      ptx::wgmma_m64nNk16_f32_bf16_ss<kWgmmaN>(d, a + kSliceStep * slice, b + kSliceStep * slice, accumulate);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();  // the next group is issued while this one runs
  }
#pragma unroll 1
  for (; done < count; ++done) {
    ptx::wgmma_fence();
    ptx::wgmma_m64nNk16_f32_bf16_ss<kWgmmaN>(d, a, b, 1);
    ptx::wgmma_commit_group();
  }
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_fence_operand(d);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kWgmmaN / 2; ++i) sum += d[i];
  sink[blockIdx.x * kWgmmaThreads + thread] = sum;
}

__global__ void __launch_bounds__(kWgmmaThreads, 1) wgmma_only_kernel(long long instructions, float* sink) {
  // Where there is no wgmma the host does not start this kernel.
  if constexpr (ptx::kHasWgmma) wgmma_only(instructions, sink);
}

// mma.sync: eight warps, each with a 64 x 64 tile in registers.
constexpr int kMmaThreads = 256;
constexpr int kMmaM = 4;                                                // fragments of 16 rows
constexpr int kMmaN = 8;                                                // fragments of 8 columns
constexpr double kFlopPerMmaRound = 2.0 * 16 * 8 * 16 * kMmaM * kMmaN;  // of one warp

/// Every warp multiplies its tile `rounds` times.
__global__ void __launch_bounds__(kMmaThreads, 1) mma_sync_only_kernel(long long rounds, float* sink) {
  const unsigned global = blockIdx.x * kMmaThreads + threadIdx.x;
  std::uint32_t a[kMmaM][4];
  std::uint32_t b[kMmaN][2];
  float d[kMmaM][kMmaN][4] = {};
#pragma unroll
  for (unsigned i = 0; i < kMmaM * 4; ++i) a[i / 4][i % 4] = random_normal_pair(global * 64 + i);
#pragma unroll
  for (unsigned i = 0; i < kMmaN * 2; ++i) b[i / 2][i % 2] = random_normal_pair(global * 64 + 32 + i);
#pragma unroll 1
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < kMmaN; ++j) ptx::mma_m16n8k16_bf16(d[i][j], a[i], b[j]);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kMmaM * kMmaN * 4; ++i) sum += d[i / (kMmaN * 4)][i / 4 % kMmaN][i % 4];
  sink[global] = sum;
}

// FFMA: 512 threads an SM, each with an 8 x 8 outer product, the inner loop of a GEMM without its loads.
constexpr int kFmaThreads = 256;
constexpr int kFmaBlocksPerSm = 2;
constexpr int kMicro = 8;
constexpr double kFlopPerFmaRound = 2.0 * kMicro * kMicro;  // of one thread

/// Every thread adds its outer product `rounds` times.
__global__ void __launch_bounds__(kFmaThreads, kFmaBlocksPerSm)
    fma_only_kernel(long long rounds, float* sink) {
  const unsigned global = blockIdx.x * kFmaThreads + threadIdx.x;
  float a[kMicro];
  float b[kMicro];
  float d[kMicro][kMicro] = {};
#pragma unroll
  for (unsigned i = 0; i < kMicro; ++i) {
    a[i] = random_normal(global * 16 + i);
    b[i] = random_normal(global * 16 + 8 + i);
  }
#pragma unroll 4
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kMicro; ++i) {
#pragma unroll
      for (int j = 0; j < kMicro; ++j) d[i][j] = fmaf(a[i], b[j], d[i][j]);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kMicro * kMicro; ++i) sum += d[i / kMicro][i % kMicro];
  sink[global] = sum;
}

/// One float per thread of the largest of the grids above, kept for the life of the program.
float* sink() {
  static float* const memory = [] {
    const std::size_t threads =
        static_cast<std::size_t>(device_info().sm_count) * kFmaThreads * kFmaBlocksPerSm;
    static_assert(kFmaThreads * kFmaBlocksPerSm >= std::max(kWgmmaThreads, kMmaThreads), "the largest grid");
    return static_cast<float*>(device_allocate(threads * sizeof(float), "the ceiling kernel's results"));
  }();
  return memory;
}

ptx::LaunchShape one_cta_per_sm(int threads, int shared_bytes) {
  return {.grid = {static_cast<unsigned>(device_info().sm_count)},
          .block = {static_cast<unsigned>(threads)},
          .shared_bytes = shared_bytes};
}

/// Launches that take about as long as a GEMM of `flop` operations, and the operations they really do.
struct MathOnly {
  gemm::Launcher launch;
  double flop = 0;
};

MathOnly math_only(gemm::MathUnit unit, double flop) {
  const int sm_count = device_info().sm_count;
  float* const results = sink();
  switch (unit) {
    case gemm::MathUnit::kWgmma: {
      const auto instructions = static_cast<long long>(flop / kFlopPerWgmma + 0.5);
      const auto shape = one_cta_per_sm(kWgmmaThreads, sizeof(WgmmaOperands));
      const long long count = std::max(1LL, instructions);
      return {[=](ptx::Stream stream) { ptx::launch(wgmma_only_kernel, shape, stream, count, results); },
              static_cast<double>(count) * kFlopPerWgmma};
    }
    case gemm::MathUnit::kMmaSync: {
      const double warps = sm_count * (kMmaThreads / 32.0);
      const auto rounds = std::max(1LL, static_cast<long long>(flop / (warps * kFlopPerMmaRound) + 0.5));
      const auto shape = one_cta_per_sm(kMmaThreads, 0);
      return {[=](ptx::Stream stream) { ptx::launch(mma_sync_only_kernel, shape, stream, rounds, results); },
              static_cast<double>(rounds) * warps * kFlopPerMmaRound};
    }
    case gemm::MathUnit::kTcgen05:
      break;
    case gemm::MathUnit::kFma: {
      const double threads = static_cast<double>(sm_count) * kFmaThreads * kFmaBlocksPerSm;
      const auto rounds = std::max(1LL, static_cast<long long>(flop / (threads * kFlopPerFmaRound) + 0.5));
      auto shape = one_cta_per_sm(kFmaThreads, 0);
      shape.grid.x *= kFmaBlocksPerSm;
      return {[=](ptx::Stream stream) { ptx::launch(fma_only_kernel, shape, stream, rounds, results); },
              static_cast<double>(rounds) * threads * kFlopPerFmaRound};
    }
  }
  throw Error("there is no kernel yet that only multiplies with this unit");
}

void require_unit(gemm::MathUnit unit) {
  if (has_math_unit(unit)) return;
  const DeviceInfo device = device_info();
  throw Error(device.name + " has compute capability " + std::to_string(device.compute_capability / 10) +
              "." + std::to_string(device.compute_capability % 10) +
              " and no wgmma, which exists on 9.0 (Hopper) only");
}

double timed_ms(const gemm::Launcher& launch) {
  CudaEvent start;
  CudaEvent stop;
  start.record(nullptr);
  launch(nullptr);
  stop.record(nullptr);
  synchronize();
  return stop.microseconds_since(start) * 1e-3;
}

}  // namespace

bool has_math_unit(gemm::MathUnit unit) {
  constexpr int kHopper = 90;
  return unit != gemm::MathUnit::kWgmma || device_info().compute_capability == kHopper;
}

Contestant wgmma_ceiling() {
  require_unit(gemm::MathUnit::kWgmma);
  return {.name = "wgmma_ceiling",
          .variant = "m64n256k16, no loads",
          .kind = ContestantKind::kCeiling,
          .prepare = [](const gemm::Gemm& problem) {
            const gemm::Shape shape = problem.shape;
            return math_only(gemm::MathUnit::kWgmma, 2.0 * shape.m * shape.n * shape.k).launch;
          }};
}

double measure_peak(gemm::MathUnit unit) {
  require_unit(unit);
  constexpr double kTargetMs = 2;
  constexpr int kLaunches = 15;
  constexpr auto kIdle = std::chrono::milliseconds(15);
  constexpr double kProbeFlop = 1e10;  // 10 us to 10 ms on anything that runs this

  timed_ms(math_only(unit, kProbeFlop).launch);  // loads the code
  const MathOnly probe = math_only(unit, kProbeFlop);
  const MathOnly work = math_only(unit, probe.flop * kTargetMs / timed_ms(probe.launch));
  std::vector<double> rates;
  for (int i = 0; i < kLaunches; ++i) {
    std::this_thread::sleep_for(kIdle);
    rates.push_back(work.flop / (timed_ms(work.launch) * 1e-3));
  }
  std::nth_element(rates.begin(), rates.begin() + kLaunches / 2, rates.end());
  return rates[kLaunches / 2];
}

}  // namespace harness
