// Latencies, in clocks: chains of instructions each of which needs the result of the one before.
#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <tuple>

#include "bench.h"
#include "device_clock.cuh"
#include "ptx/launch.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"
#include "ptx/shared.cuh"

namespace roofline {
namespace {

namespace ptx = gemm::ptx;

constexpr int kSteps = 4096;
constexpr int kUnroll = 16;
constexpr unsigned kLineBytes = 128;
// No GPU that runs this does it in fewer clocks.
constexpr double kLeastFma = 3;
constexpr double kLeastMemory = 10;

// ---- Chains without global memory: one warp
// --------------------------------------------------------------------

__global__ void __launch_bounds__(32)
    ffma_chain_kernel(float a, float b, CtaTime* times, std::uint32_t* sink) {
  float x = random_float(threadIdx.x);
  const CtaStopwatch stopwatch;
#pragma unroll 64
  for (int step = 0; step < kSteps; ++step) x = fmaf(x, a, b);
  stopwatch.stop(times);
  sink[threadIdx.x] = __float_as_uint(x);
}

__global__ void __launch_bounds__(32) mma_chain_kernel(CtaTime* times, std::uint32_t* sink) {
  std::uint32_t a[4];
  std::uint32_t b[2];
  for (unsigned i = 0; i < 4; ++i)
    a[i] = mixed(threadIdx.x + 32 * i) & 0xbf80bf80u;  // sign, and an exponent below 1
  for (unsigned i = 0; i < 2; ++i) b[i] = mixed(threadIdx.x + 32 * i + 128) & 0xbf80bf80u;
  float d[4] = {};
  const CtaStopwatch stopwatch;
#pragma unroll kUnroll
  for (int step = 0; step < kSteps; ++step) ptx::mma_m16n8k16_bf16(d, a, b);
  stopwatch.stop(times);
  sink[threadIdx.x] = __float_as_uint(d[0] + d[1] + d[2] + d[3]);
}

/// A ring of words in shared memory, each holding the address of the next.
__global__ void __launch_bounds__(32) shared_chain_kernel(CtaTime* times, std::uint32_t* sink) {
  constexpr unsigned kWords = 1024;
  constexpr unsigned kStride = 33;  // odd: the ring visits all words
  __shared__ std::uint32_t words[kWords];
  for (unsigned i = threadIdx.x; i < kWords; i += 32)
    ptx::st_shared(&words[i], ptx::shared_address(&words[(i + kStride) % kWords]));
  std::uint32_t address = ptx::shared_address(words);
  const CtaStopwatch stopwatch;
#pragma unroll kUnroll
  for (int step = 0; step < kSteps; ++step) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(address)::"memory");
  stopwatch.stop(times);
  sink[threadIdx.x] = address;
}

/// A row of 16 bytes that holds its own address four times: every lane of ldmatrix.x1 gets it back.
__global__ void __launch_bounds__(32) ldmatrix_chain_kernel(CtaTime* times, std::uint32_t* sink) {
  __shared__ __align__(16) std::uint32_t row[4];
  const std::uint32_t start = ptx::shared_address(row);
  if (threadIdx.x < 4) ptx::st_shared(&row[threadIdx.x], start);
  std::uint32_t address = start;
  const CtaStopwatch stopwatch;
#pragma unroll kUnroll
  for (int step = 0; step < kSteps; ++step)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%0];" : "+r"(address)::"memory");
  stopwatch.stop(times);
  sink[threadIdx.x] = address;
}

// ---- Chains through global memory: one thread
// ------------------------------------------------------------------

/// ld.global.ca looks into L1, ld.global.cg does not. PTX ISA, "Cache Operators".
template <bool kThroughL1>
__device__ __forceinline__ std::uint64_t follow(std::uint64_t address) {
  if constexpr (kThroughL1)
    asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(address)::"memory");
  else
    asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(address)::"memory");
  return address;
}

/// The same by an atomic that adds nothing. The L2 executes it where the line is at home, whereas a load may
/// find a copy of the line nearer to its SM.
__device__ __forceinline__ std::uint64_t follow_by_atomic(std::uint64_t address) {
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%0], 0;" : "+l"(address)::"memory");
  return address;
}

/// Writes a ring: the line order[i] of `memory` gets the address of the line order[i + 1].
__global__ void write_ring_kernel(std::uint8_t* memory, const std::uint32_t* order, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const auto line = [&](unsigned place) { return memory + std::uint64_t{order[place]} * kLineBytes; };
  ptx::st_global(reinterpret_cast<std::uint64_t*>(line(i)),
                 static_cast<std::uint64_t>(__cvta_generic_to_global(line((i + 1) % count))));
}

/// The CTA reads `warm_bytes` from the start of `memory`, then one thread follows the ring from its first
/// line: first `warm_steps` steps untimed, then `steps` timed.
template <bool kThroughL1>
__global__ void __launch_bounds__(1024)
    ring_kernel(const std::uint8_t* memory, std::size_t warm_bytes, const std::uint32_t* order,
                int warm_steps, int steps, CtaTime* times, std::uint32_t* sink) {
  std::uint32_t sum = 0;
  for (std::size_t place = threadIdx.x * std::size_t{32}; place < warm_bytes;
       place += blockDim.x * std::size_t{32})
    sum += __ldcg(reinterpret_cast<const std::uint32_t*>(memory + place));
  sink[threadIdx.x] = sum;
  std::uint64_t address = __cvta_generic_to_global(memory + std::uint64_t{order[0]} * kLineBytes);
  if (threadIdx.x == 0) {
    for (int step = 0; step < warm_steps; ++step) address = follow<kThroughL1>(address);
  }
  const CtaStopwatch stopwatch;
  if (threadIdx.x == 0) {
#pragma unroll kUnroll
    for (int step = 0; step < steps; ++step) address = follow<kThroughL1>(address);
  }
  stopwatch.stop(times);
  if (threadIdx.x == 0) sink[0] = static_cast<std::uint32_t>(address);
}

/// One thread of the SM `wanted` measures every line in `order` on its own: the line holds its own address,
/// which it reads kUnroll times in a chain. clocks[i] gets the clocks of the kUnroll reads, less those of an
/// empty measurement.
template <bool kByAtomics>
__global__ void __launch_bounds__(32) lines_kernel(const std::uint8_t* memory, const std::uint32_t* order,
                                                   int count, unsigned wanted, std::int64_t* clocks) {
  const auto read = [](std::uint64_t address) {
    return kByAtomics ? follow_by_atomic(address) : follow<false>(address);
  };
  __shared__ volatile std::uint64_t arrived;
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (sm != wanted || threadIdx.x != 0) return;
  for (int i = 0; i < count; ++i) {
    std::uint64_t address = __cvta_generic_to_global(memory + std::uint64_t{order[i]} * kLineBytes);
    address = read(address);  // brings the line into the L2
    arrived = address;
    const std::int64_t start = clock64();
    arrived = address;
    const std::int64_t empty = clock64();
#pragma unroll
    for (int step = 0; step < kUnroll; ++step) address = read(address);
    // The store waits for the last load, and the clock is read after the store.
    arrived = address;
    const std::int64_t end = clock64();
    clocks[i] = (end - empty) - (empty - start);
  }
}

/// `count` different lines of the first `bytes` of a buffer, in random order.
std::vector<std::uint32_t> random_lines(std::size_t bytes, std::size_t count, unsigned seed) {
  const auto lines = static_cast<std::uint32_t>(bytes / kLineBytes);
  std::mt19937 random(seed);
  std::vector<std::uint32_t> order;
  if (count * 2 > lines) {
    order.resize(lines);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    order.resize(std::min<std::size_t>(count, lines));
    return order;
  }
  // One line from each of `count` equal parts: different without looking, spread over everything.
  const std::uint32_t part = lines / static_cast<std::uint32_t>(count);
  for (std::uint32_t i = 0; i < count; ++i) order.push_back(i * part + random() % part);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

struct Ring {
  DeviceArray<std::uint32_t> order;
  std::uint8_t* memory;
  std::size_t bytes;
  unsigned count;

  Ring(std::uint8_t* memory, std::size_t bytes, unsigned count, unsigned seed)
      : order(count, "a ring of lines"), memory(memory), bytes(bytes), count(count) {
    order.upload(random_lines(bytes, count, seed));
  }
  /// Rings in one buffer overwrite each other's lines, so each is written anew before it is followed.
  void write() const {
    constexpr unsigned kThreads = 256;
    ptx::launch(write_ring_kernel, {.grid = {(count + kThreads - 1) / kThreads}, .block = {kThreads}},
                nullptr, memory, static_cast<const std::uint32_t*>(order.get()), count);
  }
};

/// Adds a chain of kSteps instructions in one warp.
template <typename... Parameters, typename... Arguments>
void add_chain(Bench& bench, const std::string& name, const std::string& what, double least,
               void (*kernel)(Parameters...), Arguments... arguments) {
  bench.add({.figures = {{.name = name, .unit = "clocks", .what = what, .least = least}},
             .run = [&bench, kernel, arguments...](std::span<double> samples) {
               const LaunchTime time = bench.timed(
                   [&] {
                     ptx::launch(kernel, {.block = {32}}, nullptr, arguments..., bench.times(), bench.sink());
                   },
                   1);
               samples[0] = time.cycles / kSteps;
             }});
}

struct RingPlan {
  std::string name;
  std::string what;
  nlohmann::json parameters;
  std::size_t bytes = 0;
  unsigned lines = 0;
  int warm_steps = 0;
  int steps = kSteps;
  bool through_l1 = false;
  bool warm = false;   // read the whole region first
  bool flush = false;  // push the whole region out of the L2 first
};

void add_ring(Bench& bench, const RingPlan& plan, unsigned seed) {
  auto ring = std::make_shared<Ring>(bench.large()->first.get(), plan.bytes, plan.lines, seed);
  bench.add(
      {.figures =
           {{.name = plan.name,
             .unit = "clocks",
             .what = plan.what,
             .parameters = plan.parameters,
             .least = kLeastMemory},
            {.name = plan.name + ".ns", .unit = "ns", .what = plan.what, .parameters = plan.parameters}},
       .run = [&bench, plan, ring](std::span<double> samples) {
         ring->write();
         if (plan.flush) {
           // Fill what the L2 holds with another buffer; the lines of the ring were written back long before.
           fill_random(bench.large()->second.get(), std::size_t{512} << 20);
         }
         const auto kernel = plan.through_l1 ? ring_kernel<true> : ring_kernel<false>;
         const LaunchTime time = bench.timed(
             [&] {
               ptx::launch(kernel, {.block = {plan.warm ? 1024u : 32u}}, nullptr,
                           static_cast<const std::uint8_t*>(ring->memory),
                           plan.warm ? plan.bytes : std::size_t{0},
                           static_cast<const std::uint32_t*>(ring->order.get()), plan.warm_steps, plan.steps,
                           bench.times(), bench.sink());
             },
             1);
         samples[0] = time.cycles / plan.steps;
         samples[1] = time.ns / plan.steps;
       }});
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const double x_mean = mean(x);
  const double y_mean = mean(y);
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - x_mean) * (y[i] - y_mean);
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    yy += (y[i] - y_mean) * (y[i] - y_mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// The best split of sorted values in two groups: the size of the lower one, and the share of the variance
/// that lies between the groups (0.64 for a bell curve, 0.75 for equally spread values, near 1 for two
/// clusters).
struct Split {
  std::size_t lower = 0;
  double explained = 0;
};
Split best_split(const std::vector<double>& sorted) {
  const double count = static_cast<double>(sorted.size());
  const double total = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  double variance = 0;
  for (const double value : sorted) variance += (value - total / count) * (value - total / count) / count;
  Split best;
  double below = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    below += sorted[i - 1];
    const double low = static_cast<double>(i);
    const double difference = below / low - (total - below) / (count - low);
    const double between = low * (count - low) / (count * count) * difference * difference;
    if (variance > 0 && between / variance > best.explained) best = {i, between / variance};
  }
  if (best.lower == 0) best.lower = (sorted.size() + 1) / 2;  // all values alike
  return best;
}

/// Clocks of one access to each line, hits in the L2: [SM][line].
template <bool kByAtomics>
std::vector<std::vector<double>> line_latencies(const Bench& bench, const std::vector<std::uint32_t>& lines) {
  const int sm_count = bench.device().sm_count;
  const auto count = static_cast<int>(lines.size());
  std::uint8_t* const memory = bench.large()->first.get();
  DeviceArray<std::uint32_t> order(lines.size(), "the lines");
  DeviceArray<std::int64_t> clocks(lines.size(), "the clocks of the lines");
  order.upload(lines);
  for (int i = 0; i < count; ++i) {
    // A ring of one line points to itself.
    ptx::launch(write_ring_kernel, {.block = {1}}, nullptr, memory,
                static_cast<const std::uint32_t*>(order.get() + i), 1u);
  }
  harness::synchronize();

  std::vector<std::vector<double>> latencies;
  for (int sm = 0; sm < sm_count; ++sm) {
    clocks.upload(std::vector<std::int64_t>(lines.size(), 0));
    ptx::launch(lines_kernel<kByAtomics>, bench.one_cta_per_sm(32), nullptr,
                static_cast<const std::uint8_t*>(memory), static_cast<const std::uint32_t*>(order.get()),
                count, static_cast<unsigned>(sm), clocks.get());
    harness::synchronize();
    std::vector<double> latency;
    for (const std::int64_t one : clocks.host()) latency.push_back(static_cast<double>(one) / kUnroll);
    // SM numbers may have gaps; a number that no SM has leaves zeros.
    if (*std::min_element(latency.begin(), latency.end()) > 0) latencies.push_back(std::move(latency));
  }
  return latencies;
}

/// Whether an odd number of the bits of `page` that `mask` has are set.
bool is_odd(unsigned page, unsigned mask) {
  return std::popcount(page & mask) % 2 == 1;
}

}  // namespace

void add_latency(Bench& bench) {
  add_chain(bench, "latency.ffma", "FFMA with the result before as a factor", kLeastFma, ffma_chain_kernel,
            0.999f, 0.001f);
  add_chain(bench, "latency.mma_sync", "mma.sync m16n8k16 bf16 that adds to the result before", kLeastMemory,
            mma_chain_kernel);
  add_chain(bench, "latency.shared", "ld.shared of 4 bytes that are the next address", kLeastMemory,
            shared_chain_kernel);
  add_chain(bench, "latency.ldmatrix", "ldmatrix.x1 of a row that is its own address", kLeastMemory,
            ldmatrix_chain_kernel);

  const std::size_t kib = 1024;
  const std::size_t mib = kib * kib;
  unsigned seed = 1;
  add_ring(bench,
           {.name = "latency.l1",
            .what = "ld.global.ca, a random ring of lines that stays in L1",
            .parameters = {{"working_set_kib", 16}},
            .bytes = 16 * kib,
            .lines = 128,
            .warm_steps = 256,
            .through_l1 = true},
           seed++);
  for (const unsigned size : {2, 4, 8, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96, 128}) {
    add_ring(bench,
             {.name = "latency.l2",
              .what = "ld.global.cg, a random ring over a region that the same SM has read just before",
              .parameters = {{"working_set_mib", size}},
              .bytes = size * mib,
              .lines = 8192,
              .warm = true},
             seed++);
  }
  for (const unsigned size : {64, 256, 1024}) {
    if (size * mib > bench.large()->first.bytes()) continue;
    add_ring(bench,
             {.name = "latency.dram",
              .what = "ld.global.cg, a random ring over a region that is not in the L2, every line once",
              .parameters = {{"region_mib", size}},
              .bytes = size * mib,
              .lines = 8192,
              .flush = true},
             seed++);
  }
}

std::vector<Figure> l2_lines(const Bench& bench) {
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  constexpr int kLines = 256;
  const auto latencies = line_latencies<false>(bench, random_lines(kBytes, kLines, 4711));
  if (latencies.empty()) return {};

  const std::vector<double>& first = latencies.front();
  int opposite = 0;
  std::vector<double> medians;
  for (const auto& latency : latencies) {
    if (correlation(first, latency) < -0.5) ++opposite;
    medians.push_back(summarize(latency).median);
  }
  std::vector<double> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  const Split split = best_split(sorted);
  const nlohmann::json parameters = {{"lines", kLines},
                                     {"sms", latencies.size()},
                                     {"sms_that_see_the_opposite", opposite},
                                     {"variance_between_groups", std::round(split.explained * 1000) / 1000}};
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(split.lower);
  return {
      {.name = "latency.l2_line.near",
       .unit = "clocks",
       .what = "single lines that hit in the L2, the nearer group as seen from one SM; a sample is a line",
       .parameters = parameters,
       .samples = {sorted.begin(), middle}},
      {.name = "latency.l2_line.far",
       .unit = "clocks",
       .what = "the farther group",
       .parameters = parameters,
       .samples = {middle, sorted.end()}},
      {.name = "latency.l2_line.by_sm",
       .unit = "clocks",
       .what = "the median over the lines; a sample is an SM",
       .parameters = parameters,
       .samples = medians}};
}

std::vector<Figure> l2_sides(const Bench& bench) {
  constexpr unsigned kPages = 512;  // of 4 KiB: 2 MiB, within which addresses are contiguous in device memory
  std::vector<std::uint32_t> lines;
  for (unsigned page = 0; page < kPages; ++page) lines.push_back(page * 4096 / kLineBytes);
  const auto latencies = line_latencies<true>(bench, lines);
  if (latencies.empty()) return {};

  // How much farther a page is from the SMs that see what SM 0 sees than from the others.
  const std::vector<double>& first = latencies.front();
  std::vector<double> farther(kPages, 0);
  const auto others = std::count_if(latencies.begin(), latencies.end(), [&first](const auto& latency) {
    return correlation(first, latency) < -0.5;
  });
  for (const auto& latency : latencies) {
    const bool opposite = correlation(first, latency) < -0.5;
    const double weight = opposite ? -1.0 / static_cast<double>(others)
                                   : 1.0 / (static_cast<double>(latencies.size()) - others);
    for (unsigned page = 0; page < kPages; ++page) farther[page] += weight * latency[page];
  }
  // The bits of a page's number whose parity says best on which side it is.
  unsigned mask = 0;
  unsigned most = 0;
  for (unsigned one = 0; one < kPages; ++one) {
    unsigned odd = 0;
    for (unsigned page = 0; page < kPages; ++page) odd += is_odd(page, one) == (farther[page] > 0) ? 1 : 0;
    const unsigned agree = std::max(odd, kPages - odd);
    if (agree > most) std::tie(most, mask) = std::tuple(agree, one);
  }
  const nlohmann::json parameters = {{"sms", latencies.size()},
                                     {"sms_on_the_other_side", others},
                                     {"parity_of_address_bits", mask << 12},
                                     {"pages_that_follow", static_cast<double>(most) / kPages}};
  std::vector<double> near;
  std::vector<double> far;
  for (unsigned page = 0; page < kPages; ++page) (farther[page] > 0 ? far : near).push_back(first[page]);
  std::vector<Figure> figures;
  const auto add = [&](const std::string& name, const std::vector<double>& samples) {
    if (samples.empty()) return;
    figures.push_back({.name = "latency.l2_side." + name,
                       .unit = "clocks",
                       .what = "atomics in the L2, pages of 4 KiB on the " + name +
                               " side as seen from one SM; a sample is a page",
                       .parameters = parameters,
                       .samples = samples});
  };
  add("near", near);
  add("far", far);
  return figures;
}

}  // namespace roofline
