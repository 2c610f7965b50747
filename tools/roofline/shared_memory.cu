// Bandwidth of shared memory and of L1 hits, in bytes per clock and SM, for the access patterns of a GEMM.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "bench.h"
#include "device_clock.cuh"
#include "gemm/tile/swizzle.h"
#include "ptx/launch.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"

namespace roofline {
namespace {

namespace ptx = gemm::ptx;

constexpr int kLanes = 32;
constexpr int kBanks = 32;
constexpr int kBankBytes = 4;
constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kLanes;

/// Where each lane of a warp reads, in bytes from the start of a window. All warps read alike.
struct Pattern {
  std::uint32_t offset[kLanes];
};
constexpr int kWindow = 4096;  // no pattern is longer
constexpr int kLoads = 8;      // windows read in one round
constexpr int kHalf = kLoads * kWindow;
constexpr int kSharedBytes =
    2 * kHalf;  // two halves, used in turn: no round can reuse the loads of the one before

/// The wavefronts that one instruction of a warp takes: its lanes are served in groups that fill all banks
/// once (32 lanes of 4 bytes, 16 of 8, 8 of 16), and a group takes one for every different word that its
/// busiest bank holds.
int wavefronts(const Pattern& pattern, int bytes_per_lane) {
  const int lanes_in_group = kBanks * kBankBytes / bytes_per_lane;
  int count = 0;
  for (int first = 0; first < kLanes; first += lanes_in_group) {
    std::array<std::set<std::uint32_t>, kBanks> words;
    for (int lane = first; lane < first + lanes_in_group; ++lane) {
      for (int byte = 0; byte < bytes_per_lane; byte += kBankBytes) {
        const std::uint32_t word = (pattern.offset[lane] + static_cast<std::uint32_t>(byte)) / kBankBytes;
        words[word % kBanks].insert(word);
      }
    }
    std::size_t busiest = 0;
    for (const auto& bank : words) busiest = std::max(busiest, bank.size());
    count += static_cast<int>(busiest);
  }
  return count;
}

__device__ __forceinline__ std::uint32_t folded(std::uint32_t value) {
  return value;
}
__device__ __forceinline__ std::uint32_t folded(uint2 value) {
  return value.x ^ value.y;
}
__device__ __forceinline__ std::uint32_t folded(uint4 value) {
  return value.x ^ value.y ^ value.z ^ value.w;
}

template <typename T>
struct PlainLoad {
  static __device__ __forceinline__ std::uint32_t load(const unsigned char* address) {
    return folded(ptx::ld_shared(reinterpret_cast<const T*>(address)));
  }
};

struct MatrixLoad {
  static __device__ __forceinline__ std::uint32_t load(const unsigned char* address) {
    std::uint32_t r[4];
    ptx::ldmatrix_x4(r, address);
    return r[0] ^ r[1] ^ r[2] ^ r[3];
  }
};

/// `step` and `mask` move from half to half. They are parameters so that the compiler cannot know that there
/// are only two sets of addresses, and keep what they hold in registers.
template <typename Load>
__global__ void __launch_bounds__(kThreads)
    shared_read_kernel(Pattern pattern, unsigned step, unsigned mask, int rounds, CtaTime* times,
                       std::uint32_t* sink) {
  using Memory = unsigned char[kSharedBytes];
  Memory& memory = ptx::dynamic_shared<Memory>();
  for (unsigned i = threadIdx.x; i < kSharedBytes / 4; i += kThreads)
    ptx::st_shared(reinterpret_cast<std::uint32_t*>(memory) + i, mixed(i));
  const unsigned char* const window = memory + pattern.offset[threadIdx.x % kLanes];
  std::uint32_t sum = 0;
  const CtaStopwatch stopwatch;
  unsigned half = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) sum ^= Load::load(window + half + i * kWindow);
    half = (half + step) & mask;
  }
  stopwatch.stop(times);
  sink[blockIdx.x * kThreads + threadIdx.x] = sum;
}

constexpr int kStores = 2;

/// st.shared of 16 bytes, every warp into a part of its own, conflict-free.
__global__ void __launch_bounds__(kThreads)
    shared_write_kernel(unsigned step, unsigned mask, int rounds, CtaTime* times, std::uint32_t* sink) {
  constexpr int kPart = kSharedBytes / kWarps;  // 2 KB: two halves of kStores instructions of a warp
  static_assert(kPart == 2 * kStores * kLanes * 16, "no store of a round overwrites another");
  using Memory = unsigned char[kSharedBytes];
  Memory& memory = ptx::dynamic_shared<Memory>();
  unsigned char* const part = memory + threadIdx.x / kLanes * kPart + threadIdx.x % kLanes * 16;
  std::uint32_t value = mixed(threadIdx.x);
  const CtaStopwatch stopwatch;
  unsigned half = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kStores; ++i)
      ptx::st_shared(reinterpret_cast<uint4*>(part + half + i * kLanes * 16),
                     uint4{value, value, value, value + i});
    half = (half + step) & mask;
    ++value;
  }
  stopwatch.stop(times);
  __syncthreads();
  sink[blockIdx.x * kThreads + threadIdx.x] =
      ptx::ld_shared(reinterpret_cast<const std::uint32_t*>(memory) + threadIdx.x);
}

/// ld.global of a T from a few KB that stay in L1.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    l1_read_kernel(const unsigned char* memory, unsigned step, unsigned mask, int rounds, CtaTime* times,
                   std::uint32_t* sink) {
  constexpr int kStride = kLanes * sizeof(T);
  const unsigned char* const window = memory + threadIdx.x % kLanes * sizeof(T);
  std::uint32_t sum = 0;
  const CtaStopwatch stopwatch;
  unsigned half = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      sum ^= folded(ptx::ld_global(reinterpret_cast<const T*>(window + half + i * kStride)));
    half = (half + step) & mask;
  }
  stopwatch.stop(times);
  sink[blockIdx.x * kThreads + threadIdx.x] = sum;
}

constexpr double kBytesPerClock = kBanks * kBankBytes;
constexpr double kTolerance = 1.02;

int rounds_for(int wavefronts_per_instruction) {
  return std::max(16, kTargetCycles / (kLoads * kWarps * wavefronts_per_instruction));
}

/// One row: how it reads, what is known of it beforehand.
struct Row {
  std::string name;
  std::string what;
  nlohmann::json parameters;
  Pattern pattern;
  int bytes_per_lane;
};

template <typename Load>
void add_read(Bench& bench, Row row) {
  const int expected = wavefronts(row.pattern, row.bytes_per_lane);
  const int rounds = rounds_for(expected);
  row.parameters["bytes_per_lane"] = row.bytes_per_lane;
  row.parameters["expected_wavefronts"] = expected;
  const double bytes = static_cast<double>(rounds) * kLoads * kThreads * row.bytes_per_lane;
  const double instructions = static_cast<double>(rounds) * kLoads * kWarps;
  bench.add({.figures = {{.name = row.name,
                          .unit = "bytes/clock/SM",
                          .what = row.what,
                          .parameters = row.parameters,
                          .most = kTolerance * kBytesPerClock},
                         {.name = row.name + ".clocks",
                          .unit = "clocks",
                          .what = "clocks of an SM for one such instruction of a warp",
                          .parameters = row.parameters}},
             .run = [&bench, pattern = row.pattern, rounds, bytes, instructions](std::span<double> samples) {
               const LaunchTime time = bench.timed(
                   [&] {
                     ptx::launch(shared_read_kernel<Load>, bench.one_cta_per_sm(kThreads, kSharedBytes),
                                 nullptr, pattern, unsigned{kHalf}, unsigned{kHalf}, rounds, bench.times(),
                                 bench.sink());
                   },
                   bench.device().sm_count);
               samples[0] = bytes / time.cycles;
               samples[1] = time.cycles / instructions;
             }});
}

template <typename Offset>
Pattern pattern_of(Offset offset) {
  Pattern pattern{};
  for (int lane = 0; lane < kLanes; ++lane) pattern.offset[lane] = static_cast<std::uint32_t>(offset(lane));
  return pattern;
}

/// What ldmatrix.x4 of step 04 reads: 16 rows of a tile of bf16, two 16-byte chunks of each; lane l names row
/// l % 16.
template <typename Place>
void add_ldmatrix(Bench& bench, const std::string& layout, int row_bytes, const std::string& what,
                  Place place) {
  add_read<MatrixLoad>(bench, {.name = "ldmatrix",
                               .what = "ldmatrix.x4, " + what,
                               .parameters = {{"layout", layout}, {"row_bytes", row_bytes}},
                               .pattern = pattern_of([&](int lane) { return place(lane % 16, lane / 16); }),
                               .bytes_per_lane = 16});
}

template <typename T>
void add_l1_read(Bench& bench) {
  const int bytes_per_lane = sizeof(T);
  const unsigned half = kLoads * kLanes * sizeof(T);
  const int rounds = rounds_for(std::max(1, kLanes * bytes_per_lane / 128));
  const double bytes = static_cast<double>(rounds) * kLoads * kThreads * bytes_per_lane;
  bench.add({.figures = {{.name = "l1.read",
                          .unit = "bytes/clock/SM",
                          .what = "ld.global that hits in L1, neighbouring lanes neighbouring addresses",
                          .parameters = {{"bytes_per_lane", bytes_per_lane},
                                         {"working_set_kib", 2.0 * half / 1024}},
                          .most = kTolerance * kBytesPerClock}},
             .run = [&bench, half, rounds, bytes](std::span<double> samples) {
               const LaunchTime time = bench.timed(
                   [&] {
                     ptx::launch(l1_read_kernel<T>, bench.one_cta_per_sm(kThreads), nullptr,
                                 static_cast<const unsigned char*>(bench.large()->first.get()), half, half,
                                 rounds, bench.times(), bench.sink());
                   },
                   bench.device().sm_count);
               samples[0] = bytes / time.cycles;
             }});
}

}  // namespace

void add_l1(Bench& bench) {
  add_l1_read<std::uint32_t>(bench);
  add_l1_read<uint2>(bench);
  add_l1_read<uint4>(bench);
}

void add_shared(Bench& bench) {
  add_read<PlainLoad<std::uint32_t>>(bench, {.name = "shared.read",
                                             .what = "ld.shared, neighbouring lanes neighbouring words",
                                             .parameters = {{"pattern", "row"}},
                                             .pattern = pattern_of([](int lane) { return lane * 4; }),
                                             .bytes_per_lane = 4});
  add_read<PlainLoad<uint2>>(bench, {.name = "shared.read",
                                     .what = "ld.shared.v2, neighbouring lanes neighbouring words",
                                     .parameters = {{"pattern", "row"}},
                                     .pattern = pattern_of([](int lane) { return lane * 8; }),
                                     .bytes_per_lane = 8});
  add_read<PlainLoad<uint4>>(bench, {.name = "shared.read",
                                     .what = "ld.shared.v4, neighbouring lanes neighbouring words",
                                     .parameters = {{"pattern", "row"}},
                                     .pattern = pattern_of([](int lane) { return lane * 16; }),
                                     .bytes_per_lane = 16});
  add_read<PlainLoad<std::uint32_t>>(bench, {.name = "shared.read",
                                             .what = "ld.shared, all lanes the same word",
                                             .parameters = {{"pattern", "broadcast"}},
                                             .pattern = pattern_of([](int) { return 0; }),
                                             .bytes_per_lane = 4});
  for (const int ways : {2, 4, 8, 16, 32}) {
    add_read<PlainLoad<std::uint32_t>>(
        bench, {.name = "shared.read",
                .what = "ld.shared, neighbouring lanes this many words apart: as many lanes in one bank",
                .parameters = {{"pattern", "stride"}, {"conflict_ways", ways}},
                .pattern = pattern_of([ways](int lane) { return lane * 4 * ways; }),
                .bytes_per_lane = 4});
  }
  // Each group of eight lanes meets in one group of four banks, though over the 32 lanes all banks are used
  // alike: tells whether the hardware serves fixed groups of eight lanes.
  add_read<PlainLoad<uint4>>(
      bench,
      {.name = "shared.read",
       .what = "ld.shared.v4, eight neighbouring lanes read one 16-byte column of eight rows of 128 bytes",
       .parameters = {{"pattern", "column"}, {"conflict_ways", 8}},
       .pattern = pattern_of([](int lane) { return lane % 8 * 128 + lane / 8 * 16; }),
       .bytes_per_lane = 16});

  add_ldmatrix(bench, "plain", 128, "rows of 64 bf16",
               [](int row, int chunk) { return row * 128 + chunk * 16; });
  add_ldmatrix(bench, "padded", 144, "rows of 64 bf16 padded by 16 bytes",
               [](int row, int chunk) { return row * 144 + chunk * 16; });
  add_ldmatrix(bench, "swizzled", 128, "rows of 64 bf16, 128-byte swizzle",
               [](int row, int chunk) { return row * 128 + gemm::swizzle_chunk<128>(row, chunk) * 16; });
  add_ldmatrix(bench, "plain", 64, "rows of 32 bf16",
               [](int row, int chunk) { return row * 64 + chunk * 16; });
  add_ldmatrix(bench, "padded", 80, "rows of 32 bf16 padded by 16 bytes",
               [](int row, int chunk) { return row * 80 + chunk * 16; });
  add_ldmatrix(bench, "swizzled", 64, "rows of 32 bf16, 64-byte swizzle",
               [](int row, int chunk) { return row * 64 + gemm::swizzle_chunk<64>(row, chunk) * 16; });
  add_ldmatrix(bench, "swizzled", 32, "rows of 16 bf16, 32-byte swizzle",
               [](int row, int chunk) { return row * 32 + gemm::swizzle_chunk<32>(row, chunk) * 16; });

  constexpr int kWavefronts = 4;
  const int rounds = kTargetCycles / (kStores * kWarps * kWavefronts);
  const double bytes = static_cast<double>(rounds) * kStores * kThreads * 16;
  bench.add({.figures = {{.name = "shared.write",
                          .unit = "bytes/clock/SM",
                          .what = "st.shared.v4, neighbouring lanes neighbouring words",
                          .parameters = {{"bytes_per_lane", 16}},
                          .most = kTolerance * kBytesPerClock}},
             .run = [&bench, rounds, bytes](std::span<double> samples) {
               const LaunchTime time = bench.timed(
                   [&] {
                     ptx::launch(shared_write_kernel, bench.one_cta_per_sm(kThreads, kSharedBytes), nullptr,
                                 1024u, 1024u, rounds, bench.times(), bench.sink());
                   },
                   bench.device().sm_count);
               samples[0] = bytes / time.cycles;
             }});
}

}  // namespace roofline
