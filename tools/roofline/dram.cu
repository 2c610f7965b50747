// Bandwidth of device memory: every byte of buffers far larger than the L2 is touched once a launch.
#include <cuda_runtime.h>
#include <string>

#include "bench.h"
#include "device_clock.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"

namespace roofline {
namespace {

namespace ptx = gemm::ptx;

constexpr int kThreads = 256;

// The CTAs walk over the buffer side by side: in every step each reads kUnroll vectors a thread, all of them
// in flight before the first is used. The buffer is a multiple of a step's bytes.

__device__ __forceinline__ uint4 random_vector(std::uint32_t index) {
  return {mixed(index), mixed(index + 1), index * 0x9e3779b9u, ~index};
}

template <int kUnroll>
__global__ void __launch_bounds__(kThreads)
    dram_read_kernel(const uint4* data, std::size_t vectors, std::uint32_t never, std::uint32_t* sink) {
  std::uint32_t sum = 0;
  for (std::size_t chunk = std::size_t{blockIdx.x} * kThreads * kUnroll; chunk < vectors;
       chunk += std::size_t{gridDim.x} * kThreads * kUnroll) {
    uint4 vector[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) vector[i] = ptx::ld_global(data + chunk + i * kThreads + threadIdx.x);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) sum += vector[i].x ^ vector[i].y ^ vector[i].z ^ vector[i].w;
  }
  if (sum == never) *sink = sum;  // the loads must have a use; this one is as good as never taken
}

template <int kUnroll>
__global__ void __launch_bounds__(kThreads)
    dram_write_kernel(uint4* data, std::size_t vectors, std::uint32_t seed) {
  for (std::size_t chunk = std::size_t{blockIdx.x} * kThreads * kUnroll; chunk < vectors;
       chunk += std::size_t{gridDim.x} * kThreads * kUnroll) {
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const std::size_t place = chunk + i * kThreads + threadIdx.x;
      ptx::st_global(data + place, random_vector(static_cast<std::uint32_t>(place) ^ seed));
    }
  }
}

template <int kUnroll>
__global__ void __launch_bounds__(kThreads)
    dram_copy_kernel(const uint4* source, uint4* destination, std::size_t vectors) {
  for (std::size_t chunk = std::size_t{blockIdx.x} * kThreads * kUnroll; chunk < vectors;
       chunk += std::size_t{gridDim.x} * kThreads * kUnroll) {
    uint4 vector[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) vector[i] = ptx::ld_global(source + chunk + i * kThreads + threadIdx.x);
#pragma unroll
    for (int i = 0; i < kUnroll; ++i)
      ptx::st_global(destination + chunk + i * kThreads + threadIdx.x, vector[i]);
  }
}

enum class Access { kRead, kWrite, kCopy };

template <int kUnroll>
void start(const Bench& bench, Access access, int ctas_per_sm) {
  const LargeBuffers& large = *bench.large();
  const std::size_t vectors = large.first.bytes() / sizeof(uint4);
  const ptx::LaunchShape shape{.grid = {static_cast<unsigned>(bench.device().sm_count * ctas_per_sm)},
                               .block = {kThreads}};
  const auto* first = reinterpret_cast<const uint4*>(large.first.get());
  auto* second = reinterpret_cast<uint4*>(large.second.get());
  switch (access) {
    case Access::kRead:
      ptx::launch(dram_read_kernel<kUnroll>, shape, nullptr, first, vectors, 0x12345678u, bench.sink());
      return;
    case Access::kWrite:
      ptx::launch(dram_write_kernel<kUnroll>, shape, nullptr, second, vectors, 0x2545f491u);
      return;
    case Access::kCopy:
      ptx::launch(dram_copy_kernel<kUnroll>, shape, nullptr, first, second, vectors);
      return;
  }
}

/// How many vectors a thread has in flight, and how many CTAs an SM runs.
struct Configuration {
  int unroll = 0;
  int ctas_per_sm = 0;
};
constexpr Configuration kConfigurations[] = {{4, 4}, {4, 8}, {8, 2}, {8, 4}, {8, 8}};

double seconds(const Bench& bench, Access access, const Configuration& configuration) {
  return Bench::event_seconds([&] {
    if (configuration.unroll == 4)
      start<4>(bench, access, configuration.ctas_per_sm);
    else
      start<8>(bench, access, configuration.ctas_per_sm);
  });
}

/// The fastest configuration, by the median of three runs each after a first one that loads the code.
Configuration fastest(const Bench& bench, Access access) {
  Configuration best;
  double best_seconds = 0;
  for (const Configuration& configuration : kConfigurations) {
    seconds(bench, access, configuration);
    std::vector<double> samples;
    for (int i = 0; i < 3; ++i) samples.push_back(seconds(bench, access, configuration));
    const double median = summarize(samples).median;
    if (best.unroll == 0 || median < best_seconds) {
      best = configuration;
      best_seconds = median;
    }
  }
  return best;
}

}  // namespace

void fill_random(std::uint8_t* memory, std::size_t bytes) {
  constexpr unsigned kCtas = 4096;
  ptx::launch(dram_write_kernel<4>, {.grid = {kCtas}, .block = {kThreads}}, nullptr,
              reinterpret_cast<uint4*>(memory), bytes / sizeof(uint4), 0x7f4a7c15u);
}

void add_dram(Bench& bench) {
  constexpr struct {
    Access access;
    const char* name;
    const char* what;
    int transfers;  // bytes moved for each byte of a buffer
  } kAccesses[] = {
      {Access::kRead, "dram.read", "every byte of a buffer read once, 16 bytes a load", 1},
      {Access::kWrite, "dram.write", "every byte of a buffer written once, 16 bytes a store", 1},
      {Access::kCopy, "dram.copy", "one buffer copied to another; bytes read plus bytes written", 2},
  };
  const std::size_t bytes = bench.large()->first.bytes();
  // The bound is generous: the bus rate comes from attributes that a driver may round.
  const double most = 1.05 * bench.device().memory_bytes_per_second * 1e-9;
  for (const auto& entry : kAccesses) {
    const Configuration configuration = fastest(bench, entry.access);
    bench.add({.figures = {{.name = entry.name,
                            .unit = "GB/s",
                            .what = entry.what,
                            .parameters = {{"buffer_mib", bytes >> 20},
                                           {"vectors_in_flight", configuration.unroll},
                                           {"ctas_per_sm", configuration.ctas_per_sm}},
                            .most = most}},
               .run = [&bench, access = entry.access, configuration,
                       moved = static_cast<double>(bytes) * entry.transfers](std::span<double> samples) {
                 samples[0] = moved * 1e-9 / seconds(bench, access, configuration);
               }});
  }
}

}  // namespace roofline
