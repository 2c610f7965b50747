// What starting a kernel and waiting at a barrier cost.
#include <cuda_runtime.h>

#include <chrono>

#include "bench.h"
#include "device_clock.cuh"
#include "harness/backend/cuda_check.h"
#include "harness/timing/gpu/delay.h"
#include "ptx/launch.cuh"

namespace roofline {
namespace {

constexpr int kBarriers = 4096;

__global__ void __launch_bounds__(1024) barrier_kernel(CtaTime* times) {
  const CtaStopwatch stopwatch;
#pragma unroll 16
  for (int i = 0; i < kBarriers; ++i) __syncthreads();
  stopwatch.stop(times);
}

__global__ void empty_kernel() {}

constexpr int kStoredBytes = 16 * 1024;  // of a CTA, a 64 x 128 tile of D
constexpr int kStoreThreads = 384;       // as many as a CTA of step 22 has
__global__ void __launch_bounds__(kStoreThreads) store_kernel(uint4* to) {
  constexpr int kVectors = kStoredBytes / sizeof(uint4);
  for (int i = static_cast<int>(threadIdx.x); i < kVectors; i += kStoreThreads)
    to[blockIdx.x * kVectors + i] = uint4{0, 1, 2, 3};
}

/// One launch between two events, on all SMs. `queued`: behind a kernel that waits until the host has
/// enqueued it, as in the harness's rounds; otherwise the first work after an idle gap.
Probe launch_probe(const Bench& bench, bool stores, bool queued) {
  return {.figures = {{.name = "launch.between_events",
                       .unit = "us",
                       .what = "one launch of 384 threads on every SM between two events; what it stores of "
                               "each CTA, and what is in the stream before it",
                       .parameters = {{"stores", stores ? "16 KiB" : "nothing"},
                                      {"before", queued ? "a kernel that waits" : "nothing"}}}},
          .run =
              [&bench, stores, queued](std::span<double> samples) {
                const gemm::ptx::LaunchShape shape{.grid = {static_cast<unsigned>(bench.device().sm_count)},
                                                   .block = {kStoreThreads}};
                constexpr double kDelayUs = 200;
                if (queued) harness::launch_delay(nullptr, kDelayUs);
                samples[0] = 1e6 * Bench::event_seconds([&] {
                               if (stores) {
                                 gemm::ptx::launch(store_kernel, shape, nullptr,
                                                   reinterpret_cast<uint4*>(bench.large()->second.get()));
                               } else {
                                 gemm::ptx::launch(empty_kernel, shape, nullptr);
                               }
                             });
              },
          .idle_ms = kIdleMs};
}

}  // namespace

void add_overheads(Bench& bench) {
  for (const int threads : {128, 256, 512, 1024}) {
    bench.add({.figures = {{.name = "barrier",
                            .unit = "clocks",
                            .what = "one __syncthreads after the other, nothing between them",
                            .parameters = {{"threads", threads}}}},
               .run = [&bench, threads](std::span<double> samples) {
                 const LaunchTime time = bench.timed(
                     [&] {
                       gemm::ptx::launch(barrier_kernel, {.block = {static_cast<unsigned>(threads)}}, nullptr,
                                         bench.times());
                     },
                     1);
                 samples[0] = time.cycles / kBarriers;
               }});
  }

  bench.add(
      {.figures = {{.name = "launch.back_to_back",
                    .unit = "us",
                    .what = "one of 200 launches of an empty kernel, between two events"},
                   {.name = "launch.and_wait",
                    .unit = "us",
                    .what =
                        "host time from before the launch of an empty kernel until it is known to be over"}},
       .run = [](std::span<double> samples) {
         constexpr int kLaunches = 200;
         const double seconds = Bench::event_seconds([] {
           for (int i = 0; i < kLaunches; ++i) gemm::ptx::launch(empty_kernel, {.block = {32}}, nullptr);
         });
         samples[0] = seconds * 1e6 / kLaunches;

         using Clock = std::chrono::steady_clock;
         std::vector<double> waits;
         for (int i = 0; i < 20; ++i) {
           const auto start = Clock::now();
           gemm::ptx::launch(empty_kernel, {.block = {32}}, nullptr);
           harness::check_cuda(cudaStreamSynchronize(nullptr), "running an empty kernel");
           waits.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
         }
         samples[1] = summarize(waits).median;
       }});
  for (const bool stores : {false, true})
    for (const bool queued : {false, true}) bench.add(launch_probe(bench, stores, queued));
}

}  // namespace roofline
