// Bandwidth of the L2 by working set: all SMs read the same buffer over and over.
#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "bench.h"
#include "device_clock.cuh"
#include "ptx/launch.cuh"

namespace roofline {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 8;
constexpr unsigned kChunkVectors = kThreads * kUnroll;  // 32 KB
constexpr unsigned kChunkBytes = kChunkVectors * 16;
constexpr int kCtasPerSm = 4;

/// Every CTA reads `reads` chunks, going round the buffer's `chunks` chunks in steps of the grid, so that an
/// SM comes back to a chunk only after many others. ld.global.cg does not look into L1. PTX ISA, "Cache
/// Operators".
__global__ void __launch_bounds__(kThreads) l2_read_kernel(const uint4* data, unsigned chunks, unsigned reads,
                                                           std::uint32_t never, std::uint32_t* sink) {
  const unsigned step = gridDim.x % chunks;
  unsigned chunk = blockIdx.x % chunks;
  std::uint32_t sum = 0;
  for (unsigned read = 0; read < reads; ++read) {
    const uint4* const vectors = data + std::size_t{chunk} * kChunkVectors + threadIdx.x;
    uint4 vector[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) vector[i] = __ldcg(vectors + i * kThreads);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) sum += vector[i].x ^ vector[i].y ^ vector[i].z ^ vector[i].w;
    chunk += step;
    if (chunk >= chunks) chunk -= chunks;
  }
  if (sum == never) *sink = sum;
}

}  // namespace

void add_l2(Bench& bench) {
  constexpr unsigned kWorkingSets[] = {2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96, 128, 256};  // MiB
  constexpr double kBytes = 6e9;  // a launch: more than a millisecond
  const unsigned ctas = static_cast<unsigned>(bench.device().sm_count * kCtasPerSm);
  const auto reads = std::max(1u, static_cast<unsigned>(kBytes / kChunkBytes / ctas));
  constexpr double kBytesPerClock = 128;  // more than an SM takes from the L2
  const double most = kBytesPerClock * bench.device().sm_count * bench.device().clock_hz * 1e-9;
  for (const unsigned mib : kWorkingSets) {
    const unsigned chunks = (mib << 20) / kChunkBytes;
    bench.add(
        {.figures =
             {{.name = "l2.read",
               .unit = "GB/s",
               .what = "all SMs read one buffer of this size again and again, 16 bytes a load, L1 bypassed",
               .parameters = {{"working_set_mib", mib}},
               .most = most}},
         .run = [&bench, chunks, ctas, reads](std::span<double> samples) {
           const double seconds = Bench::event_seconds([&] {
             gemm::ptx::launch(l2_read_kernel, {.grid = {ctas}, .block = {kThreads}}, nullptr,
                               reinterpret_cast<const uint4*>(bench.large()->first.get()), chunks, reads,
                               0x12345678u, bench.sink());
           });
           samples[0] = static_cast<double>(ctas) * reads * kChunkBytes * 1e-9 / seconds;
         }});
  }
}

}  // namespace roofline
