// __shared__ variables: what Hopper's engines do with them, each CTA's own copies in clusters and co-resident
// grids, `extern __shared__`, and alignment.
#include "emulator/hopper_test.h"
#include "ptx/cp_async.cuh"

using namespace emulator_test;

// Not in the anonymous namespace: clang warns of an `extern` there that the file does not define.
namespace static_shared_test {

/// Dynamic shared memory, as CUDA spells it.
__global__ void extern_words(int* result) {
  extern __shared__ int words[];
  ptx::st_shared(&words[threadIdx.x], static_cast<int>(blockIdx.x + threadIdx.x));
  __syncthreads();
  ptx::st_global(result + blockIdx.x * blockDim.x + threadIdx.x,
                 ptx::ld_shared(&words[blockDim.x - 1 - threadIdx.x]));
}

/// The same without wrappers, and through a struct.
struct Words {
  int words[64];
};
__global__ void extern_plain(int* result) {
  extern __shared__ alignas(1024) unsigned char bytes[];
  Words& shared = *reinterpret_cast<Words*>(bytes);
  __shared__ int base;
  if (threadIdx.x == 0) ptx::st_shared(&base, static_cast<int>(blockIdx.x));
  shared.words[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  ptx::st_global(result + blockIdx.x * blockDim.x + threadIdx.x,
                 ptx::ld_shared(&base) + shared.words[blockDim.x - 1 - threadIdx.x]);
}

enum ExternFault { kExternNone, kNoBarrier, kPastTheEnd, kUnwritten };

template <typename T>
__global__ void extern_faults(int fault, T* result) {
  extern __shared__ __align__(128) float values[];
  auto* mine = reinterpret_cast<T*>(values);
  const unsigned last = blockDim.x - 1;
  if (fault != kUnwritten || threadIdx.x != 3)
    ptx::st_shared(mine + threadIdx.x, static_cast<T>(threadIdx.x));
  if (fault == kPastTheEnd && threadIdx.x == 0) ptx::st_shared(mine + blockDim.x, T{});
  if (fault != kNoBarrier) __syncthreads();
  ptx::st_global(result + threadIdx.x, ptx::ld_shared(mine + (last - threadIdx.x)));
}

/// Two CTAs of a cluster; the bytes that a load brings arrive in the array of the CTA that does not run.
__global__ void extern_multicast(ptx::TensorMap map, float* sums) {
  extern __shared__ __align__(1024) unsigned char memory[];
  constexpr int kTile = 64 * 64 * 2;
  auto* full = reinterpret_cast<std::uint64_t*>(memory + kTile);
  const std::uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(full, kTile);
    if (rank == 0) ptx::cp_async_bulk_tensor_2d_multicast(memory, &map, 0, 0, full, 3);
  }
  wait(full, 0);
  float sum = 0;
  for (unsigned i = threadIdx.x; i < kTile / 2; i += blockDim.x)
    sum += gemm::to_float(ptx::ld_shared(reinterpret_cast<const bf16*>(memory) + i));
  ptx::st_global(sums + blockIdx.x * blockDim.x + threadIdx.x, sum);
  cluster_sync();
}

}  // namespace static_shared_test

namespace {

using namespace static_shared_test;
using ptx::Swizzle;

constexpr int kBox = 64 * 64 * 2;
constexpr unsigned kStages = 2;

float total(const std::vector<float>& values, std::size_t first, std::size_t count) {
  float sum = 0;
  for (std::size_t i = first; i < first + count; ++i) sum += values[i];
  return sum;
}
float total(const std::vector<bf16>& values) {
  float sum = 0;
  for (const bf16 value : values) sum += gemm::to_float(value);
  return sum;
}

ptx::TensorMap tiles_of(const DeviceArray<bf16>& matrix, int rows) {
  return ptx::make_tensor_map(ptx::matrix_spec(matrix.get(), rows, 64, 64, 64, Swizzle::k128B));
}

enum RingFault { kRingNone, kNoWait, kNoInit, kNoRelease, kBoxPastTheEnd };

/// A warp fills a ring in static shared memory, another one sums what comes.
__global__ void ring(ptx::TensorMap map, int fault, int rounds, float* sums) {
  __shared__ alignas(1024) unsigned char tile[kStages][kBox];
  __shared__ std::uint64_t full[kStages];
  __shared__ std::uint64_t empty[kStages];
  if (threadIdx.x == 0) {
    for (unsigned stage = 0; stage < kStages; ++stage) {
      if (fault != kNoInit || stage == 0) ptx::mbarrier_init(&full[stage], 1);
      ptx::mbarrier_init(&empty[stage], 32);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == 32) {
    for (int round = 0; round < rounds; ++round) {
      const unsigned stage = static_cast<unsigned>(round) % kStages;
      const unsigned phase = static_cast<unsigned>(round) / kStages & 1;
      if (fault != kNoRelease) wait(&empty[stage], phase ^ 1);
      ptx::mbarrier_arrive_expect_tx(&full[stage], kBox);
      unsigned char* destination = tile[stage];
      if (fault == kBoxPastTheEnd && stage == 1) destination += 1024;
      ptx::cp_async_bulk_tensor_2d(destination, &map, 0, 64 * round, &full[stage]);
    }
  }
  if (threadIdx.x >= 32) return;
  float sum = 0;
  for (int round = 0; round < rounds; ++round) {
    const unsigned stage = static_cast<unsigned>(round) % kStages;
    if (fault != kNoWait || round != 1) wait(&full[stage], static_cast<unsigned>(round) / kStages & 1);
    for (unsigned i = threadIdx.x; i < kBox / 2; i += 32)
      sum += gemm::to_float(ptx::ld_shared(reinterpret_cast<const bf16*>(tile[stage]) + i));
    ptx::fence_proxy_async_shared_cta();
    ptx::mbarrier_arrive(&empty[stage]);
  }
  ptx::st_global(sums + blockIdx.x * 32 + threadIdx.x, sum);
}

Outcome run_ring(int fault, ptx::LaunchShape shape = one_cta(64), int rounds = 4) {
  const std::vector<bf16> values = arange(64 * 64 * static_cast<std::size_t>(rounds));
  const DeviceArray<bf16> matrix(values, "M");
  DeviceArray<float> sums(static_cast<std::size_t>(32 * shape.grid.count()));
  Outcome outcome = run(ring, shape, tiles_of(matrix, 64 * rounds), fault, rounds, sums.get());
  if (outcome.rule == "passed") {
    for (std::size_t cta = 0; cta < static_cast<std::size_t>(shape.grid.count()); ++cta)
      CHECK(total(sums.host(), 32 * cta, 32) == total(values));
  }
  return outcome;
}

enum MultiplyFault { kMultiplyNone, kMultiplyNoWait, kRowsPastTheEnd };

/// One tile each of A and B through TMA, multiplied from where they lie.
__global__ void multiply(ptx::TensorMap a_map, ptx::TensorMap b_map, int fault, float* out) {
  alignas(1024) __shared__ bf16 a[64 * 64];    // [m][k]
  __shared__ __align__(1024) bf16 b[64 * 64];  // [n][k]
  __shared__ std::uint64_t full;
  make_barrier(&full);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&full, 2 * kBox);
    ptx::cp_async_bulk_tensor_2d(a, &a_map, 0, 0, &full);
    ptx::cp_async_bulk_tensor_2d(b, &b_map, 0, 0, &full);
  }
  __syncthreads();  // the loads are issued
  if (fault != kMultiplyNoWait || threadIdx.x >= 64) wait(&full, 0);
  float d[32];
  ptx::wgmma_fence();
  for (std::uint32_t step = 0; step < 4; ++step) {
    const auto descriptor = [&](const bf16* tile, std::uint32_t stride) {
      return ptx::encode({.address = ptx::shared_address(tile) + 32 * step,
                          .leading_bytes = 16,
                          .stride_bytes = stride,
                          .swizzle = Swizzle::k128B});
    };
    ptx::wgmma_m64nNk16_f32_bf16_ss<64>(d, descriptor(a, fault == kRowsPastTheEnd ? 2048 : 1024),
                                        descriptor(b, 1024), step > 0);
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_fence_operand(d);
  store_accumulators<64>(out, d);
}

Outcome run_multiply(int fault, int dynamic_bytes = 0) {
  const std::vector<bf16> a = arange(64 * 64, 3);
  const std::vector<bf16> b = arange(64 * 64, 11);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(64 * 64);
  Outcome outcome = run(multiply, one_cta(128, dynamic_bytes), tiles_of(device_a, 64), tiles_of(device_b, 64),
                        fault, out.get());
  if (outcome.rule != "passed") return outcome;
  const std::vector<float> host = out.host();
  int wrong = 0;
  for (std::size_t m = 0; m < 64; ++m) {
    for (std::size_t n = 0; n < 64; ++n) {
      float expected = 0;
      for (std::size_t k = 0; k < 64; ++k)
        expected += gemm::to_float(a[m * 64 + k]) * gemm::to_float(b[n * 64 + k]);
      wrong += host[m * 64 + n] != expected;
    }
  }
  CHECK(wrong == 0);
  return outcome;
}

enum ClusterFault { kClusterNone, kPeerDoesNotWait, kPeerDoesNotInit, kReuseTooEarly };

/// CTA 0 loads into the tiles of the whole cluster, twice; the others tell it when they have read.
__global__ void multicast(ptx::TensorMap map, int fault, float* sums) {
  __shared__ __align__(128) unsigned char tile[kBox];
  __shared__ std::uint64_t full;
  __shared__ std::uint64_t empty;
  const std::uint32_t rank = ptx::cluster_ctarank();
  const std::uint32_t ctas = ptx::cluster_nctarank();
  if (threadIdx.x == 0) {
    if (fault != kPeerDoesNotInit || rank == 0) ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&empty, ctas);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  float sum = 0;
  for (std::uint32_t round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      if (fault != kPeerDoesNotInit || rank == 0) ptx::mbarrier_arrive_expect_tx(&full, kBox);
      if (rank == 0) {
        if (fault != kReuseTooEarly) wait(&empty, 1 - (round & 1));
        ptx::cp_async_bulk_tensor_2d_multicast(tile, &map, 0, static_cast<int>(64 * round), &full,
                                               static_cast<std::uint16_t>((1u << ctas) - 1));
      }
    }
    if (fault != kPeerDoesNotWait || rank == 0) wait(&full, round & 1);
    for (std::uint32_t i = threadIdx.x; i < kBox / 2; i += blockDim.x)
      sum += gemm::to_float(ptx::ld_shared(reinterpret_cast<const bf16*>(tile) + i));
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(&empty), 0));
  }
  ptx::st_global(sums + blockIdx.x * blockDim.x + threadIdx.x, sum);
  cluster_sync();
}

template <typename Kernel, typename... Arguments>
Outcome run_multicast(Kernel kernel, std::size_t rows, ptx::LaunchShape shape, Arguments... arguments) {
  const std::vector<bf16> values = arange(rows * 64);
  const DeviceArray<bf16> matrix(values, "M");
  DeviceArray<float> sums(64 * shape.grid.x);
  Outcome outcome = run(kernel, shape, tiles_of(matrix, static_cast<int>(rows)), arguments..., sums.get());
  if (outcome.rule == "passed") {
    for (std::size_t cta = 0; cta < shape.grid.x; ++cta)
      CHECK(total(sums.host(), 64 * cta, 64) == total(values));
  }
  return outcome;
}

constexpr ptx::LaunchShape clusters(unsigned ctas, unsigned count, int shared_bytes = 0) {
  return {.grid = {ctas * count}, .block = {64}, .cluster = {ctas}, .shared_bytes = shared_bytes};
}

enum GridFault { kGridNone, kGridNoBarrier, kGridUnwritten };

/// cp.async into a static array, a counter, and a variable that no wrapper touches after its first write.
__global__ void grid(const int* source, int fault, int* result) {
  __shared__ __align__(16) int words[64];
  __shared__ int count;
  __shared__ int plain;
  if (threadIdx.x == 0) {
    if (fault != kGridUnwritten) ptx::st_shared(&count, 0);
    ptx::st_shared(&plain, 0);
    plain = static_cast<int>(blockIdx.x);
  }
  if (threadIdx.x < 16)
    ptx::cp_async_ca_16(&words[4 * threadIdx.x], source + 64 * blockIdx.x + 4 * threadIdx.x);
  ptx::cp_async_commit_group();
  __syncthreads();
  atomicAdd(&count, 1);
  ptx::cp_async_wait_group<0>();
  if (fault != kGridNoBarrier) __syncthreads();
  const int value = ptx::ld_shared(&words[63 - threadIdx.x]);
  const int counted = ptx::ld_shared(&count);
  ptx::st_global(result + 64 * blockIdx.x + threadIdx.x, value + 1000 * counted + 100000 * plain);
}

Outcome run_grid(int fault, const ptx::LaunchShape& shape) {
  const auto ctas = static_cast<std::size_t>(shape.grid.count());
  std::vector<int> values(64 * ctas);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i % 64 + i / 64);
  const DeviceArray<int> source(values, "S");
  DeviceArray<int> result(64 * ctas);
  Outcome outcome = run(grid, shape, source.get(), fault, result.get());
  if (outcome.rule == "passed") {
    const std::vector<int> host = result.host();
    int wrong = 0;
    for (std::size_t i = 0; i < host.size(); ++i)
      wrong += host[i] != static_cast<int>(63 - i % 64 + i / 64 + 64000 + 100000 * (i / 64));
    CHECK(wrong == 0);
  }
  return outcome;
}

/// A word that only the threads of the own CTA write.
__global__ void racy(int* result) {
  __shared__ int word;
  ptx::st_shared(&word, static_cast<int>(threadIdx.x));
  __syncthreads();
  ptx::st_global(result + blockIdx.x, ptx::ld_shared(&word));
}

__global__ void far_index(int index) {
  __shared__ int words[16];
  ptx::st_shared(&words[0] + index, 1);
}

template <int kInts>
__global__ void large() {
  __shared__ int words[kInts];
  if (threadIdx.x == 0) ptx::st_shared(&words[kInts - 1], 1);
}

struct alignas(128) Line {
  int words[32];
};

/// The CTA-relative address of variables of every spelling, modulo 1024.
template <int kAlignment>
__global__ void alignments(std::uint32_t* result) {
  __shared__ char before;
  __shared__ alignas(1024) char a[40];
  alignas(512) __shared__ int b;
  __shared__ __align__(128) float c[3];
  __align__(256) __shared__ float d[3];
  __shared__ alignas(Line) int e;
  __shared__ Line f;
  __shared__ alignas(kAlignment) unsigned char g[24];
  static __shared__ alignas(64) int h;
  const void* variables[] = {&before, a, &b, c, d, &e, &f, g, &h};
  for (unsigned i = 0; i < 9; ++i) ptx::st_global(result + i, ptx::shared_address(variables[i]));
}

__global__ void barrier_in_the_stack() {
  std::uint64_t barrier = 0;
  ptx::mbarrier_init(&barrier, 1);
}

}  // namespace

TEST_CASE("a ring of TMA loads in static shared memory") {
  CHECK_PASSES(run_ring(kRingNone));
  CHECK_PASSES(run_ring(kRingNone, one_cta(64, 5000)));
  CHECK_PASSES(run_ring(kRingNone, clusters(2, 2)));
  CHECK_PASSES(run_ring(kRingNone, {.grid = {3}, .block = {64}, .co_resident = true}));
}

TEST_CASE("load-not-waited: a tile in static shared memory") {
  // Before the load is issued or after it: the stage is not used again.
  const Rules rules{"load-not-waited", "load-overwrites"};
  CHECK_BREAKS_ONE_OF(rules, run_ring(kNoWait, one_cta(64), 2));
  CHECK_BREAKS_ONE_OF(rules, run_ring(kNoWait, clusters(2, 1), 2));
  const Outcome outcome = run_ring(kNoWait, one_cta(64), 2);
  check_text(outcome.report, {"__shared__ tile + ", "mbarrier __shared__ full + 8"});
}

TEST_CASE("mbarrier-uninitialised: one of an array in static shared memory") {
  const Outcome outcome = run_ring(kNoInit);
  check_text(outcome.report, {"__shared__ full + 8"});
  CHECK_BREAKS("mbarrier-uninitialised", run_ring(kNoInit));
  CHECK_BREAKS("mbarrier-uninitialised", run_ring(kNoInit, clusters(2, 1)));
}

TEST_CASE("load-overwrites: a stage in static shared memory that was not released") {
  const Rules rules{"load-overwrites", "mbarrier-arrivals"};
  CHECK_BREAKS_ONE_OF(rules, run_ring(kNoRelease));
}

TEST_CASE("shared-out-of-bounds: a box past the end of its __shared__ array") {
  check_report(run_ring(kBoxPastTheEnd), "shared-out-of-bounds",
               {"8192 bytes of which 7168 fit", "__shared__ tile (16384 bytes)"});
  CHECK_BREAKS("shared-out-of-bounds", run_ring(kBoxPastTheEnd, clusters(2, 1)));
}

TEST_CASE("wgmma reads tiles in static shared memory") {
  CHECK_PASSES(run_multiply(kMultiplyNone));
  CHECK_PASSES(run_multiply(kMultiplyNone, 100 * 1024 + 8));
}

TEST_CASE("wgmma of static shared memory: not waited for, outside its array") {
  CHECK_BREAKS("load-not-waited", run_multiply(kMultiplyNoWait));
  CHECK_BREAKS("wgmma-descriptor", run_multiply(kRowsPastTheEnd));
}

TEST_CASE("multicast into the static shared memory of a cluster") {
  CHECK_PASSES(run_multicast(multicast, 128, clusters(2, 1), kClusterNone));
  CHECK_PASSES(run_multicast(multicast, 128, clusters(4, 2), kClusterNone));
}

TEST_CASE("multicast into static shared memory: what a peer forgets") {
  const Rules rules{"load-not-waited", "load-overwrites", "shared-uninitialised"};
  CHECK_BREAKS_ONE_OF(rules, run_multicast(multicast, 128, clusters(2, 1), kPeerDoesNotWait));
  CHECK_BREAKS("mbarrier-uninitialised", run_multicast(multicast, 128, clusters(2, 1), kPeerDoesNotInit));
  const Rules reuse{"load-overwrites", "expect-tx-small", "load-not-waited", "exit-in-flight"};
  CHECK_BREAKS_ONE_OF(reuse, run_multicast(multicast, 128, clusters(2, 1), kReuseTooEarly));
}

TEST_CASE("CTAs of a cluster and of a co-resident grid have their own __shared__ variables") {
  CHECK_PASSES(run_grid(kGridNone, {.grid = {4}, .block = {64}, .co_resident = true}));
  CHECK_PASSES(run_grid(kGridNone, clusters(2, 3)));
  CHECK_PASSES(run_grid(kGridNone, {.grid = {9}, .block = {64}, .cluster = {}}));
}

TEST_CASE("static shared memory in a co-resident grid: races and unwritten words") {
  const ptx::LaunchShape shape{.grid = {4}, .block = {64}, .co_resident = true};
  const Rules rules{"cp-async-read-before-wait", "shared-race"};
  CHECK_BREAKS_ONE_OF(rules, run_grid(kGridNoBarrier, shape));
  CHECK_BREAKS("shared-uninitialised", run_grid(kGridUnwritten, shape));
  DeviceArray<int> result(4);
  CHECK_BREAKS("shared-race", run(racy, shape, result.get()));
  CHECK_BREAKS("shared-race", run(racy, clusters(2, 1), result.get()));
  // One thread in each CTA: nobody else writes that CTA's word.
  CHECK_PASSES(run(racy, {.grid = {4}, .block = {1}, .cluster = {2}}, result.get()));
}

TEST_CASE("shared-out-of-bounds: far behind a __shared__ array, in a cluster") {
  CHECK_PASSES(run(far_index, {.grid = {2}, .block = {1}, .cluster = {2}}, 15));
  CHECK_BREAKS("shared-out-of-bounds", run(far_index, {.grid = {2}, .block = {1}, .cluster = {2}}, 1000000));
}

TEST_CASE("launch-limits: static shared memory") {
  CHECK(run(large<12 * 1024>, one_cta(32)).rule == "passed");
  check_report(run(large<12 * 1024 + 1>, one_cta(32)), "launch-limits",
               {"49156 bytes of __shared__ variables"});
  CHECK(run(large<1024>, one_cta(32, 223 * 1024)).rule == "passed");
  CHECK(run(large<1024>, one_cta(32, 223 * 1024 + 1)).rule == "launch-limits");
  emulator::Options options;
  options.sm_count = 1;
  const emulator::ScopedOptions scope(options);
  const ptx::LaunchShape two{.grid = {2}, .block = {32}, .shared_bytes = 100 * 1024, .co_resident = true};
  CHECK(run(large<1024>, two).rule == "passed");
  CHECK(run(large<12 * 1024>, two).rule == "launch-limits");
}

TEST_CASE("alignment of __shared__ variables holds in the CTA's own addresses") {
  DeviceArray<std::uint32_t> result(9);
  const std::vector<std::uint32_t> alignment{1, 1024, 512, 128, 256, 128, 128, 512, 64};
  for (const ptx::LaunchShape& shape : {one_cta(1), one_cta(1, 1000)}) {
    CHECK_PASSES(run(alignments<512>, shape, result.get()));
    const std::vector<std::uint32_t> offsets = result.host();
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      INFO("variable " << i << " at " << offsets[i]);
      CHECK(offsets[i] % alignment[i] == 0);
      CHECK(offsets[i] >= static_cast<std::uint32_t>(shape.shared_bytes));
      CHECK(offsets[i] < 16 * 1024);
    }
  }
}

TEST_CASE("mbarrier-address: a local variable is not in shared memory") {
  CHECK_BREAKS("mbarrier-address", run(barrier_in_the_stack, one_cta(1)));
}

TEST_CASE("extern __shared__ is the CTA's dynamic shared memory") {
  DeviceArray<int> result(6 * 64);
  const auto check = [&](void (*kernel)(int*), const ptx::LaunchShape& shape) {
    Outcome outcome = run(kernel, shape, result.get());
    if (outcome.rule == "passed") {
      const std::vector<int> host = result.host();
      int wrong = 0;
      for (std::size_t i = 0; i < host.size(); ++i)
        wrong += host[i] != static_cast<int>(i / 64 + 63 - i % 64);
      CHECK(wrong == 0);
    }
    return outcome;
  };
  for (void (*kernel)(int*) : {extern_words, extern_plain}) {
    CHECK_PASSES(check(kernel, {.grid = {6}, .block = {64}, .shared_bytes = 256}));
    CHECK_PASSES(check(kernel, {.grid = {6}, .block = {64}, .cluster = {2}, .shared_bytes = 256}));
    CHECK_PASSES(check(kernel, {.grid = {6}, .block = {64}, .shared_bytes = 256, .co_resident = true}));
  }
}

TEST_CASE("extern __shared__: races, bounds, unwritten words") {
  DeviceArray<float> result(64);
  CHECK_PASSES(run(extern_faults<float>, one_cta(64, 256), kExternNone, result.get()));
  CHECK_BREAKS("shared-race", run(extern_faults<float>, one_cta(64, 256), kNoBarrier, result.get()));
  CHECK_BREAKS("shared-out-of-bounds",
               run(extern_faults<float>, one_cta(64, 256), kPastTheEnd, result.get()));
  CHECK_BREAKS("shared-uninitialised", run(extern_faults<float>, one_cta(64, 256), kUnwritten, result.get()));
  DeviceArray<int> words(64);
  CHECK_PASSES(run(extern_faults<int>, one_cta(64, 256), kExternNone, words.get()));
  const Outcome outcome = run(extern_faults<int>, one_cta(64, 256), kPastTheEnd, words.get());
  CHECK(contains(outcome.report, "0 bytes past the end of the 256 bytes of dynamic shared memory"));
}

TEST_CASE("multicast into extern __shared__ memory of a cluster") {
  CHECK_PASSES(run_multicast(extern_multicast, 64, clusters(2, 2, kBox + 8)));
}
