// Global memory: bounds, alignment, initialisation, races between CTAs.
#include "emulator/emulator_test.h"
#include "harness/backend/device_reference.h"
#include "harness/backend/emulator_control.h"

namespace global_test {

using namespace emulator_test;

namespace {

__global__ void read_at(const int* data, int index, int* result) {
  ptx::st_global(result, ptx::ld_global(data + index));
}
__global__ void write_at(int* data, int index) {
  ptx::st_global(data + index, 7);
}
__global__ void read_vector(const int* data, int index, int4* result) {
  ptx::st_global(result, ptx::ld_global(reinterpret_cast<const int4*>(data + index)));
}

__device__ int counter_of_the_module;
__device__ int words_of_the_module[40];

/// By an atomic first of all, or by a store.
__global__ void uses_module(bool counts, int stride) {
  if (counts) atomicAdd(&counter_of_the_module, 1);
  ptx::st_global(words_of_the_module + static_cast<int>(blockIdx.x) * stride, 7);
}

__global__ void all_write(int* data, int stride) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  ptx::st_global(data + thread * stride, thread);
}

/// Every thread writes a word and reads its neighbour's, inside the CTA or across CTAs.
__global__ void neighbours(int* data, bool barrier, bool across) {
  const int threads = static_cast<int>(blockDim.x);
  const int mine = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  ptx::st_global(data + mine, mine);
  if (barrier) __syncthreads();
  const int other = across ? (mine + threads) % (threads * static_cast<int>(gridDim.x)) : mine ^ 1;
  const int value = ptx::ld_global(data + other);
  if (value == -1) ptx::st_global(data, 0);
}

/// "Last CTA reduces": every CTA writes a partial sum; the one that increments the counter last adds them up.
__global__ void last_cta(int* partial, unsigned* counter, int* result, bool release, bool acquire) {
  __shared__ int last;
  const unsigned cta = blockIdx.x;
  ptx::st_global(partial + cta * 32 + threadIdx.x, static_cast<int>(cta));
  __syncthreads();
  if (threadIdx.x == 0) {
    if (release) __threadfence();
    const unsigned before = atomicAdd(counter, 1u);
    if (acquire) __threadfence();
    ptx::st_shared(&last, before == gridDim.x - 1 ? 1 : 0);
  }
  __syncthreads();
  if (!ptx::ld_shared(&last)) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += ptx::ld_global(partial + i * 32 + threadIdx.x);
  ptx::st_global(result + threadIdx.x, sum);
}

__global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f) {
  const int thread = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  atomicAdd(i, 1);
  atomicSub(i + 1, 1);
  atomicMax(i + 2, thread);
  atomicMin(i + 3, -thread);
  atomicAdd(u, 2u);
  atomicOr(u + 1, 1u << (thread % 32));
  atomicInc(u + 2, 9u);
  atomicXor(u + 3, 1u << (thread % 32));
  atomicAdd(l, 1ull << 33);
  atomicAdd(f, 0.5f);
  int seen = 0;
  int assumed;
  do {
    assumed = seen;
    seen = atomicCAS(i + 4, assumed, assumed + 3);
  } while (seen != assumed);
  atomicExch(i + 5, 11);
}

/// A load past L1, of what the same thread or another one has written.
__global__ void reads_past_l1(uint4* data, uint4* result, bool others) {
  const unsigned thread = threadIdx.x;
  if (others) ptx::st_global(data + thread, uint4{thread, 0, 0, 0});
  ptx::st_global(result + thread, ptx::ld_global_no_allocate(data + (thread + 1) % blockDim.x));
}

__global__ void raw_write(int* data, int index) {
  data[index] = 1;
}
}  // namespace

TEST_CASE("global-out-of-bounds: the report names buffer and distance") {
  DeviceArray<int> data(std::vector<int>(100, 5), "A");
  DeviceArray<int> result(1, "R");
  CHECK_PASSES(run(read_at, one_cta(1), data.get(), 99, result.get()));
  CHECK_BREAKS("global-out-of-bounds", run(read_at, one_cta(1), data.get(), 100, result.get()));
  CHECK_BREAKS("global-out-of-bounds", run(read_at, one_cta(1), data.get(), -1, result.get()));
  CHECK_BREAKS("global-out-of-bounds", run(write_at, one_cta(1), data.get(), 100));
  const Outcome past = run(read_at, one_cta(1), data.get(), 103, result.get());
  check_text(past.report, {"12 bytes past the end of buffer A (400 bytes)",
                           "tests/emulator/memory/global_test.cpp:", "thread (0,0,0)"});
  CHECK(contains(run(read_at, one_cta(1), data.get(), -2, result.get()).report,
                 "8 bytes before the start of buffer A"));
  // Far outside, but still nearest to A.
  CHECK(contains(run(read_at, one_cta(1), data.get(), 5000, result.get()).report,
                 "19600 bytes past the end of buffer A"));
}

TEST_CASE("global-out-of-bounds: the end of a vector counts") {
  DeviceArray<int> data(std::vector<int>(10, 5), "A");
  DeviceArray<int4> result(1, "R");
  CHECK_PASSES(run(read_vector, one_cta(1), data.get(), 4, result.get()));
  CHECK_BREAKS("global-out-of-bounds", run(read_vector, one_cta(1), data.get(), 8, result.get()));
  CHECK(contains(run(read_vector, one_cta(1), data.get(), 8, result.get()).report,
                 "its last 8 bytes are past the end"));
}

TEST_CASE("global-out-of-bounds: a guard band is off limits") {
  DeviceArray<int> data(64, "D");
  data.fill(1);
  REQUIRE(harness::device_off_limits(data.get(), 16 * 4));
  REQUIRE(harness::device_off_limits(data.get() + 48, 16 * 4));
  CHECK_PASSES(run(write_at, one_cta(1), data.get(), 16));
  CHECK_PASSES(run(write_at, one_cta(1), data.get(), 47));
  CHECK_BREAKS("global-out-of-bounds", run(write_at, one_cta(1), data.get(), 15));
  CHECK_BREAKS("global-out-of-bounds", run(write_at, one_cta(1), data.get(), 48));
  CHECK(contains(run(write_at, one_cta(1), data.get(), 48).report,
                 "0 bytes past the end of buffer D (128 bytes)"));
  data.fill(2);  // the host may
}

TEST_CASE("global-out-of-bounds: memory that was freed") {
  DeviceArray<int> result(1, "R");
  int* stale = nullptr;
  {
    DeviceArray<int> data(std::vector<int>(100, 5), "gone");
    stale = data.get();
  }
  check_report(run(read_at, one_cta(1), stale, 3, result.get()), "global-out-of-bounds",
               {"buffer gone (400 bytes), which has been freed"});
}

TEST_CASE("global-misaligned: an address must be a multiple of the access size") {
  DeviceArray<int> data(std::vector<int>(10, 5), "A");
  DeviceArray<int4> result(1, "R");
  CHECK_BREAKS("global-misaligned", run(read_vector, one_cta(1), data.get(), 2, result.get()));
  CHECK_PASSES(run(read_vector, one_cta(1), data.get(), 0, result.get()));
}

TEST_CASE("global-uninitialised: never written") {
  DeviceArray<int> data(100, "A");
  DeviceArray<int> result(1, "R");
  const std::vector<int> half(50, 1);
  harness::copy_to_device(data.get(), half.data(), 200);
  CHECK_PASSES(run(read_at, one_cta(1), data.get(), 49, result.get()));
  CHECK_BREAKS("global-uninitialised", run(read_at, one_cta(1), data.get(), 50, result.get()));
  CHECK(contains(run(read_at, one_cta(1), data.get(), 50, result.get()).report, "A + 200"));
  // A kernel's write makes it readable.
  CHECK(run(write_at, one_cta(1), data.get(), 50).rule == "passed");
  CHECK_PASSES(run(read_at, one_cta(1), data.get(), 50, result.get()));
  CHECK(result.host()[0] == 7);
}

TEST_CASE("global-race: two threads write one word") {
  DeviceArray<int> data(256, "D");
  ptx::LaunchShape shape = one_cta(64);
  CHECK_BREAKS("global-race", run(all_write, shape, data.get(), 0));
  CHECK_PASSES(run(all_write, shape, data.get(), 1));
  shape = one_cta(1);
  shape.grid = {64};
  CHECK_BREAKS("global-race", run(all_write, shape, data.get(), 0));
  CHECK_PASSES(run(all_write, shape, data.get(), 1));
  CHECK(data.host()[63] == 63);
}

TEST_CASE("global-race: a write and a read, inside a CTA") {
  DeviceArray<int> data(256, "D");
  data.fill(0);
  ptx::LaunchShape shape = one_cta(64);
  shape.grid = {4};
  CHECK(run(all_write, shape, data.get(), 1).rule == "passed");  // from here on its reads are followed too
  CHECK_BREAKS("global-race", run(neighbours, shape, data.get(), false, false));
  const std::string race = run(neighbours, shape, data.get(), false, false).report;
  CHECK(
      (contains(race, "missing  a barrier of the CTA between ") || contains(race, "being in the same warp")));
  CHECK_PASSES(run(neighbours, shape, data.get(), true, false));
}

TEST_CASE("global-race: no barrier orders two CTAs") {
  DeviceArray<int> data(256, "D");
  data.fill(0);
  ptx::LaunchShape shape = one_cta(64);
  shape.grid = {4};
  CHECK(run(all_write, shape, data.get(), 1).rule == "passed");
  CHECK_BREAKS("global-race", run(neighbours, shape, data.get(), true, true));
}

TEST_CASE("the last CTA may read what all wrote, if fences stand on both sides of the atomic") {
  DeviceArray<int> partial(16 * 32, "partial");
  DeviceArray<unsigned> counter(1, "counter");
  DeviceArray<int> result(32, "result");
  ptx::LaunchShape shape = one_cta(32);
  shape.grid = {16};
  auto attempt = [&](bool release, bool acquire) {
    partial.fill(0);
    counter.fill(0);
    return run(last_cta, shape, partial.get(), counter.get(), result.get(), release, acquire);
  };
  CHECK_PASSES(attempt(true, true));
  for (const int sum : result.host()) CHECK(sum == 120);
  CHECK_BREAKS("global-race", attempt(false, true));
  CHECK_BREAKS("global-race", attempt(true, false));
}

TEST_CASE("atomics on global memory are atomic across CTAs") {
  DeviceArray<int> i(std::vector<int>(6, 0));
  DeviceArray<unsigned> u(std::vector<unsigned>(4, 0));
  DeviceArray<unsigned long long> l(std::vector<unsigned long long>(1, 0));
  DeviceArray<float> f(std::vector<float>(1, 0));
  ptx::LaunchShape shape = one_cta(64);
  shape.grid = {10};
  CHECK(run(atomics, shape, i.get(), u.get(), l.get(), f.get()).rule == "passed");
  CHECK(i.host() == std::vector<int>{640, -640, 639, -639, 1920, 11});
  CHECK(u.host() == std::vector<unsigned>{1280, 0xffffffffu, 0, 0});
  CHECK(l.host()[0] == 640ull << 33);
  CHECK(f.host()[0] == 320.0f);
}

TEST_CASE("a copy must stay inside one allocation") {
  DeviceArray<int> data(10, "A");
  std::vector<int> host(20);
  CHECK_THROWS_AS(harness::copy_to_device(data.get(), host.data(), 44), harness::Error);
  CHECK_THROWS_AS(harness::copy_to_host(host.data(), data.get() + 1, 40), harness::Error);
  CHECK_THROWS_AS(harness::fill_device(host.data(), 0, 4), harness::Error);
  CHECK_THROWS_AS(harness::device_allocate(std::size_t{1} << 50, "huge"), harness::Error);
  CHECK_THROWS_AS(harness::device_allocate(0, "none"), harness::Error);
}

TEST_CASE("ld.global.L1::no_allocate: bounds, alignment, the value, and a race with the grid's own writes") {
  DeviceArray<uint4> data(std::vector<uint4>(64, uint4{1, 2, 3, 4}), "B");
  DeviceArray<uint4> result(64, "R");
  CHECK_PASSES(run(reads_past_l1, one_cta(64), data.get(), result.get(), false));
  CHECK(result.host()[5].w == 4);
  CHECK_BREAKS("global-race", run(reads_past_l1, one_cta(64), data.get(), result.get(), true));
  CHECK_BREAKS("global-out-of-bounds", run(reads_past_l1, one_cta(64), data.get() + 1, result.get(), false));
  auto* const odd = reinterpret_cast<uint4*>(reinterpret_cast<char*>(data.get()) + 8);
  CHECK_BREAKS("global-misaligned", run(reads_past_l1, one_cta(32), odd, result.get(), false));
}

TEST_CASE("__device__ variables are global memory, with their names, and streams have them in common") {
  const ptx::LaunchShape two{.grid = {2}, .block = {1}};
  CHECK_PASSES(run(uses_module, two, true, 8));
  CHECK(counter_of_the_module >= 2);
  check_report(run(uses_module, two, true, 0), "global-race", {"words_of_the_module + 0"});
  static char streams[2];
  harness::begin_streams_at_once();
  const auto launch = [&](char& stream) {
    ptx::launch(uses_module, two, reinterpret_cast<ptx::Stream>(&stream), false, 8);
  };
  CHECK_NOTHROW(launch(streams[0]));
  CHECK_NOTHROW(launch(streams[0]));
  CHECK_THROWS_WITH(launch(streams[1]), has_text("words_of_the_module + 0"));
  harness::end_streams_at_once();
}

TEST_CASE("a raw write beside a buffer is found when the launch ends") {
  DeviceArray<int> data(std::vector<int>(10, 5), "A");  // 40 bytes, 256 are mapped
  check_report(run(raw_write, one_cta(1), data.get(), 12), "global-out-of-bounds",
               {"8 bytes past the end of buffer A (40 bytes)"});
  CHECK(run(raw_write, one_cta(1), data.get(), 9).rule == "passed");
}

}  // namespace global_test
