// Counters on access patterns whose cost is known.
#include "emulator/report/counters.h"
#include "emulator/emulator_test.h"
#include "ptx/cp_async.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma_sync.cuh"

namespace counters_test {

using namespace emulator_test;

namespace {

struct Words {
  alignas(1024) std::uint32_t words[32 * 36];
};

template <typename T>
__global__ void shared_stride(int stride, int rounds) {
  Words& shared = ptx::dynamic_shared<Words>();
  T* elements = reinterpret_cast<T*>(shared.words);
  for (int round = 0; round < rounds; ++round)
    ptx::st_shared(&elements[static_cast<int>(threadIdx.x) * stride], T{});
}

__global__ void shared_broadcast() {
  Words& shared = ptx::dynamic_shared<Words>();
  if (threadIdx.x < 2) ptx::st_shared(&shared.words[threadIdx.x], 1u);
  __syncthreads();
  ptx::ld_shared(&shared.words[threadIdx.x / 16]);
}

__global__ void global_stride(const std::uint32_t* data, int stride) {
  ptx::ld_global(data + static_cast<int>(threadIdx.x) * stride);
}

__global__ void global_vectors(const uint4* data) {
  ptx::ld_global(data + threadIdx.x);
}

/// Lanes run through their loop one after the other; requests are matched by iteration.
__global__ void loop(const std::uint32_t* data, int iterations) {
  for (int i = 0; i < iterations; ++i) ptx::ld_global(data + i * 32 + static_cast<int>(threadIdx.x));
}

__global__ void guarded(const std::uint32_t* data, int limit) {
  if (static_cast<int>(threadIdx.x) < limit) ptx::ld_global(data + threadIdx.x);
}

/// Rows of `pitch` words; lane i hands in the row (i % 8) of matrix (i / 8).
__global__ void matrices(int pitch, bool swizzled) {
  Words& shared = ptx::dynamic_shared<Words>();
  for (int i = static_cast<int>(threadIdx.x); i < 32 * 36; i += 32) ptx::st_shared(&shared.words[i], 0u);
  __syncwarp();
  const int row = static_cast<int>(threadIdx.x % 8);
  const int matrix = static_cast<int>(threadIdx.x / 8);
  const int chunk = swizzled ? matrix ^ row : matrix;
  std::uint32_t r[4];
  ptx::ldmatrix_x4(r, &shared.words[row * pitch + chunk * 4]);
}

__global__ void copies(const std::uint32_t* data, int pitch) {
  Words& shared = ptx::dynamic_shared<Words>();
  const int thread = static_cast<int>(threadIdx.x);
  ptx::cp_async_cg_16(&shared.words[thread * pitch], data + thread * 4, thread == 31 ? 0 : 16);
  ptx::cp_async_wait_all();
}

__global__ void mixed() {
  __syncthreads();
  __syncwarp();
  __shfl_sync(0xffffffffu, 1, 0);
  float d[4] = {};
  const std::uint32_t a[4] = {};
  const std::uint32_t b[2] = {};
  ptx::mma_m16n8k16_bf16(d, a, b);
  ptx::mma_m16n8k16_bf16(d, a, b);
}

template <typename... Arguments>
emulator::Counters count(Arguments&&... arguments) {
  emulator::Options options;
  options.counters = true;
  const emulator::ScopedOptions scope(options);
  emulator::reset_counters();
  require_passes(run(std::forward<Arguments>(arguments)...));
  return emulator::counters();
}

emulator::LineCounters stores(int stride) {
  return count(shared_stride<std::uint32_t>, one_cta(32, sizeof(Words)), stride, 1).total("st_shared");
}

}  // namespace

TEST_CASE("counters: the stride decides the bank conflicts of 4-byte accesses") {
  const int conflict_ways[][2] = {{1, 1},   {2, 2},   {3, 1},  {4, 4}, {8, 8},
                                  {16, 16}, {32, 32}, {33, 1}, {36, 4}};
  for (const auto& [stride, ways] : conflict_ways) {
    const emulator::LineCounters line = stores(stride);
    INFO("stride " << stride);
    CHECK(line.requests == 1);
    CHECK(line.bytes == 128);
    CHECK(line.wavefronts == static_cast<std::uint64_t>(ways));
    CHECK(line.ideal_wavefronts == 1);
    CHECK(line.conflicts() == static_cast<std::uint64_t>(ways - 1));
  }
}

TEST_CASE("counters: 8 and 16 bytes a lane take two and four passes at least") {
  CHECK(count(shared_stride<uint2>, one_cta(32, sizeof(Words)), 1, 1).total("st_shared").wavefronts == 2);
  CHECK(count(shared_stride<uint4>, one_cta(32, sizeof(Words)), 1, 1).total("st_shared").wavefronts == 4);
  const auto conflicts = count(shared_stride<uint4>, one_cta(32, sizeof(Words)), 9, 1).total("st_shared");
  CHECK(conflicts.wavefronts == 4);  // 144-byte rows: padded
  const auto eight_way = count(shared_stride<uint4>, one_cta(32, sizeof(Words)), 8, 1).total("st_shared");
  CHECK(eight_way.wavefronts == 32);
  CHECK(eight_way.ideal_wavefronts == 4);
}

TEST_CASE("counters: two lanes in one word are no conflict") {
  CHECK(count(shared_stride<std::uint16_t>, one_cta(32, sizeof(Words)), 1, 1).total("st_shared").wavefronts ==
        1);
  CHECK(count(shared_broadcast, one_cta(32, sizeof(Words))).total("ld_shared").wavefronts == 1);
  CHECK(count(shared_stride<std::uint32_t>, one_cta(64, sizeof(Words)), 1, 3).total("st_shared").requests ==
        6);
}

TEST_CASE("counters: sectors say how well a warp's global addresses lie together") {
  DeviceArray<std::uint32_t> data(std::vector<std::uint32_t>(32 * 64 + 64, 1));
  auto sectors = [&](int stride) {
    return count(global_stride, one_cta(32), data.get(), stride).total("ld_global");
  };
  CHECK(sectors(1).sectors == 4);
  CHECK(sectors(0).sectors == 1);
  CHECK(sectors(2).sectors == 8);
  CHECK(sectors(8).sectors == 32);
  CHECK(sectors(64).sectors == 32);
  CHECK(sectors(64).bytes == 128);
  CHECK(sectors(64).ideal_sectors == 4);
  CHECK(sectors(0).ideal_sectors == 1);
  // One word off the alignment of a sector.
  CHECK(count(global_stride, one_cta(32), data.get() + 1, 1).total("ld_global").sectors == 5);
  CHECK(count(global_vectors, one_cta(32), reinterpret_cast<const uint4*>(data.get()))
            .total("ld_global")
            .sectors == 16);
}

TEST_CASE("counters: lanes are matched iteration by iteration") {
  DeviceArray<std::uint32_t> data(std::vector<std::uint32_t>(32 * 10, 1));
  const auto line = count(loop, one_cta(32), data.get(), 10).total("ld_global");
  CHECK(line.requests == 10);
  CHECK(line.sectors == 40);
  const auto partial = count(guarded, one_cta(64), data.get(), 40).total("ld_global");
  CHECK(partial.requests == 2);
  CHECK(partial.threads == 40);
  CHECK(partial.sectors == 5);
}

TEST_CASE("counters: ldmatrix, row by row") {
  auto wavefronts = [](int pitch, bool swizzled) {
    return count(matrices, one_cta(32, sizeof(Words)), pitch, swizzled).total("ldmatrix_x4");
  };
  CHECK(wavefronts(32, false).requests == 1);
  CHECK(wavefronts(32, false).bytes == 512);
  CHECK(wavefronts(32, false).wavefronts == 32);  // 128-byte rows: 8-way
  CHECK(wavefronts(36, false).wavefronts == 4);   // padded
  CHECK(wavefronts(32, true).wavefronts == 4);    // swizzled
  CHECK(wavefronts(16, false).wavefronts == 16);  // 64-byte rows: 4-way
}

TEST_CASE("counters: cp.async counts on both sides") {
  DeviceArray<std::uint32_t> data(std::vector<std::uint32_t>(128, 1));
  const auto line = count(copies, one_cta(32, sizeof(Words)), data.get(), 4).total("cp_async_cg_16");
  CHECK(line.requests == 1);
  CHECK(line.threads == 32);
  CHECK(line.bytes == 512);
  CHECK(line.wavefronts == 4);
  CHECK(line.sectors == 16);  // the 31 lanes that read touch the last sector too
  const auto conflicts = count(copies, one_cta(32, sizeof(Words)), data.get(), 32).total("cp_async_cg_16");
  CHECK(conflicts.wavefronts == 32);
}

TEST_CASE("counters: instructions are counted by warp") {
  const emulator::Counters counters = count(mixed, one_cta(96));
  CHECK(counters.instructions("__syncthreads") == 3);
  CHECK(counters.instructions("__syncwarp") == 3);
  CHECK(counters.instructions("__shfl_sync") == 3);
  CHECK(counters.instructions("mma_m16n8k16_bf16") == 6);
  CHECK(counters.instructions("ld_global") == 0);
}

TEST_CASE("counters: the table has a row for each source line, and nothing is counted when they are off") {
  DeviceArray<std::uint32_t> data(std::vector<std::uint32_t>(32 * 64, 1));
  const emulator::Counters counters = count(global_stride, one_cta(32), data.get(), 8);
  REQUIRE(counters.lines.size() == 1);
  check_text(counters.to_text(), {"tests/emulator/report/counters_test.cpp:", "ld_global"});
  emulator::reset_counters();
  CHECK(run(global_stride, one_cta(32), data.get(), 8).rule == "passed");
  CHECK(emulator::counters().lines.empty());
}

}  // namespace counters_test
