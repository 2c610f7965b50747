// Shared memory: races, bounds, alignment, initialisation.
#include "emulator/emulator_test.h"

namespace shared_test {

using namespace emulator_test;

namespace {

enum Fault { kNone, kNoFirstBarrier, kNoSecondBarrier };

/// Two rounds of: every thread writes a word, every thread reads a neighbour's.
__global__ void rounds(int fault, int* result) {
  __shared__ int words[128];
  const unsigned thread = threadIdx.x;
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    ptx::st_shared(&words[thread], round + static_cast<int>(thread));
    if (fault != kNoFirstBarrier) __syncthreads();
    sum += ptx::ld_shared(&words[127 - thread]);
    if (fault != kNoSecondBarrier) __syncthreads();
  }
  ptx::st_global(result + thread, sum);
}

__global__ void two_writers(int stride) {
  __shared__ int words[64];
  ptx::st_shared(&words[static_cast<int>(threadIdx.x) * stride], 1);
}

/// Neighbours share a word, each in bytes of its own; then wider reads over them.
template <typename T>
__global__ void narrow_writers(int stride, std::uint32_t* result) {
  __shared__ std::uint32_t words[64];
  T* narrow = reinterpret_cast<T*>(words);
  ptx::st_shared(&narrow[static_cast<int>(threadIdx.x) * stride], static_cast<T>(threadIdx.x));
  __syncthreads();
  if (stride == 1 && threadIdx.x < 64 * sizeof(T) / 4) {
    ptx::st_global(result + threadIdx.x, ptx::ld_shared(&words[threadIdx.x]));
  }
}

/// A vector is written by one thread; the next reads it in pieces and the third as a whole,
/// with or without a barrier.
__global__ void wide_then_narrow(bool barrier, float* result) {
  __shared__ float4 vectors[32];
  const unsigned thread = threadIdx.x;
  const float f = static_cast<float>(thread);
  ptx::st_shared(&vectors[thread], float4{f, f + 1, f + 2, f + 3});
  if (barrier) __syncthreads();
  const float* floats = reinterpret_cast<const float*>(&vectors[thread ^ 1]);
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += ptx::ld_shared(floats + i);
  const float2 half = ptx::ld_shared(reinterpret_cast<const float2*>(&vectors[thread ^ 2]));
  ptx::st_global(result + thread, sum + half.x);
}

/// Thread 0 reads what no thread wrote, or what every thread wrote.
__global__ void reads_unwritten(int written, int* result) {
  __shared__ int words[64];
  if (static_cast<int>(threadIdx.x) < written) ptx::st_shared(&words[threadIdx.x], 1);
  __syncthreads();
  if (threadIdx.x == 0) ptx::st_global(result, ptx::ld_shared(&words[40]));
}

__global__ void writes_then_reads_next_cta(bool write, int* result) {
  __shared__ int word;
  if (write || blockIdx.x == 0) ptx::st_shared(&word, 3);
  ptx::st_global(result + blockIdx.x, ptx::ld_shared(&word));
}

struct Dynamic {
  alignas(128) float tile[64];
  std::uint32_t last[4];
};

__global__ void dynamic_index(int index) {
  Dynamic& shared = ptx::dynamic_shared<Dynamic>();
  ptx::st_shared(&shared.tile[0] + index, 1.0f);
}

__global__ void dynamic_struct() {
  ptx::dynamic_shared<Dynamic>();
}

__global__ void dynamic_is_poisoned(std::uint32_t* result) {
  Dynamic& shared = ptx::dynamic_shared<Dynamic>();
  std::uint32_t raw;
  std::memcpy(&raw, &shared.tile[threadIdx.x], 4);  // behind the emulator's back, to see the poison
  ptx::st_global(result + threadIdx.x, raw);
  ptx::st_global(result + 32 + threadIdx.x,
                 static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(&shared) % 1024));
  ptx::st_shared(&shared.tile[threadIdx.x], 0.0f);
}

__global__ void static_index(int index) {
  __shared__ int before[8];
  __shared__ int words[16];
  __shared__ int after[8];
  if (index < 0) {
    ptx::st_shared(&before[0], 1);
    ptx::st_shared(&after[0], 1);
  }
  ptx::st_shared(&words[0] + index, 1);
}

__global__ void misaligned(int offset) {
  Dynamic& shared = ptx::dynamic_shared<Dynamic>();
  auto* bytes = reinterpret_cast<unsigned char*>(&shared);
  ptx::st_shared(reinterpret_cast<float2*>(bytes + offset), float2{1, 2});
}

__global__ void not_shared(int* global) {
  ptx::st_shared(global, 1);
}

__global__ void shared_counter(int* result, bool atomic) {
  __shared__ int count;
  if (threadIdx.x == 0) ptx::st_shared(&count, 0);
  __syncthreads();
  if (atomic) {
    atomicAdd(&count, 2);
  } else {
    ptx::st_shared(&count, ptx::ld_shared(&count) + 2);
  }
  __syncthreads();
  if (threadIdx.x == 5) ptx::st_global(result, ptx::ld_shared(&count));
}

__global__ void counter_read_early(int* result) {
  __shared__ int count;
  if (threadIdx.x == 0) ptx::st_shared(&count, 0);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::st_global(result, ptx::ld_shared(&count));
  } else {
    atomicAdd(&count, 1);
  }
}

/// Producer and consumer hand a word over through a flag in shared memory.
__global__ void shared_flag(bool release, bool acquire, int* result) {
  __shared__ int payload;
  __shared__ int flag;
  if (threadIdx.x == 0) ptx::st_shared(&flag, 0);
  __syncthreads();
  if (threadIdx.x == 32) {
    ptx::st_shared(&payload, 42);
    if (release) __threadfence_block();
    atomicExch(&flag, 1);
  }
  if (threadIdx.x == 0) {
    while (atomicAdd(&flag, 0) == 0) {
    }
    if (acquire) __threadfence_block();
    ptx::st_global(result, ptx::ld_shared(&payload));
  }
}

}  // namespace

TEST_CASE("shared-race: a write and a read without a barrier between") {
  DeviceArray<int> result(128);
  CHECK_BREAKS("shared-race", run(rounds, one_cta(128), static_cast<int>(kNoFirstBarrier), result.get()));
  CHECK_PASSES(run(rounds, one_cta(128), static_cast<int>(kNone), result.get()));
  for (std::size_t i = 0; i < 128; ++i) CHECK(result.host()[i] == 2 * (127 - static_cast<int>(i)) + 1);
}

TEST_CASE("shared-race: a read and the next round's write without a barrier between") {
  DeviceArray<int> result(128);
  CHECK_BREAKS("shared-race", run(rounds, one_cta(128), static_cast<int>(kNoSecondBarrier), result.get()));
  check_report(run(rounds, one_cta(128), static_cast<int>(kNoSecondBarrier), result.get()), "shared-race",
               {"__shared__ words + ", "read at tests/emulator/memory/shared_test.cpp:",
                "write at tests/emulator/memory/shared_test.cpp:"});
}

TEST_CASE("shared-race: two threads write one word") {
  CHECK_BREAKS("shared-race", run(two_writers, one_cta(64), 0));
  CHECK_PASSES(run(two_writers, one_cta(64), 1));
}

TEST_CASE("neighbouring bytes of one word are different bytes") {
  DeviceArray<std::uint32_t> result(64);
  CHECK_PASSES(run(narrow_writers<std::uint8_t>, one_cta(64), 1, result.get()));
  CHECK(result.host()[3] == 0x0f0e0d0cu);
  CHECK_PASSES(run(narrow_writers<std::uint16_t>, one_cta(64), 1, result.get()));
  CHECK(result.host()[3] == 0x00070006u);
  CHECK_BREAKS("shared-race", run(narrow_writers<std::uint8_t>, one_cta(64), 0, result.get()));
  CHECK_BREAKS("shared-race", run(narrow_writers<std::uint16_t>, one_cta(64), 0, result.get()));
}

TEST_CASE("accesses of different widths meet in the bytes they share") {
  DeviceArray<float> result(32);
  CHECK_PASSES(run(wide_then_narrow, one_cta(32), true, result.get()));
  CHECK(result.host()[4] == 4 * 5 + 6 + 6);
  CHECK_BREAKS("shared-race", run(wide_then_narrow, one_cta(32), false, result.get()));
}

TEST_CASE("shared-uninitialised: not written before the barrier") {
  DeviceArray<int> result(1);
  CHECK_BREAKS("shared-uninitialised", run(reads_unwritten, one_cta(64), 40, result.get()));
  CHECK(contains(run(reads_unwritten, one_cta(64), 40, result.get()).report, "__shared__ words + 160"));
  CHECK_PASSES(run(reads_unwritten, one_cta(64), 41, result.get()));
}

TEST_CASE("shared-uninitialised: what an earlier CTA left behind does not count") {
  DeviceArray<int> result(8);
  ptx::LaunchShape shape = one_cta(1);
  shape.grid = {8};
  CHECK_BREAKS("shared-uninitialised", run(writes_then_reads_next_cta, shape, false, result.get()));
  CHECK_PASSES(run(writes_then_reads_next_cta, shape, true, result.get()));
}

TEST_CASE("shared-out-of-bounds: dynamic shared memory") {
  const int bytes = sizeof(Dynamic);
  CHECK_PASSES(run(dynamic_index, one_cta(1, bytes), bytes / 4 - 1));
  CHECK_BREAKS("shared-out-of-bounds", run(dynamic_index, one_cta(1, bytes), bytes / 4));
  CHECK_BREAKS("shared-out-of-bounds", run(dynamic_index, one_cta(1, bytes), -1));
  CHECK(contains(run(dynamic_index, one_cta(1, bytes), bytes / 4 + 1).report,
                 "4 bytes past the end of the 384 bytes of dynamic shared memory"));
  // A size that is not a multiple of 16.
  CHECK_PASSES(run(dynamic_index, one_cta(1, bytes + 4), bytes / 4));
  CHECK_BREAKS("shared-out-of-bounds", run(dynamic_index, one_cta(1, bytes + 4), bytes / 4 + 1));
}

TEST_CASE("shared-out-of-bounds: the launch gave less than the struct needs") {
  const int bytes = sizeof(Dynamic);
  CHECK_BREAKS("shared-out-of-bounds", run(dynamic_struct, one_cta(1, bytes - 1)));
  CHECK_PASSES(run(dynamic_struct, one_cta(1, bytes)));
}

TEST_CASE("dynamic shared memory starts as NaN, at a multiple of 1024") {
  DeviceArray<std::uint32_t> result(64);
  for (int i = 0; i < 3; ++i) {
    CHECK(run(dynamic_is_poisoned, one_cta(32, sizeof(Dynamic)), result.get()).rule == "passed");
    for (std::size_t j = 0; j < 64; ++j) CHECK(result.host()[j] == (j < 32 ? 0xffffffffu : 0));
  }
}

TEST_CASE("shared-out-of-bounds: a __shared__ array") {
  CHECK_PASSES(run(static_index, one_cta(1), 15));
  const Outcome outcome = run(static_index, one_cta(1), 100000);
  INFO(outcome.report);
  CHECK(outcome.rule == "shared-out-of-bounds");
}

TEST_CASE("shared-out-of-bounds: a pointer to global memory") {
  DeviceArray<int> global(4, "G");
  CHECK_BREAKS("shared-out-of-bounds", run(not_shared, one_cta(1), global.get()));
  CHECK(contains(run(not_shared, one_cta(1), global.get()).report, "0 bytes into buffer G"));
}

TEST_CASE("shared-misaligned: an address must be a multiple of the access size") {
  CHECK_BREAKS("shared-misaligned", run(misaligned, one_cta(1, sizeof(Dynamic)), 4));
  CHECK_PASSES(run(misaligned, one_cta(1, sizeof(Dynamic)), 8));
}

TEST_CASE("atomics on shared memory do not race with each other") {
  DeviceArray<int> result(1);
  CHECK_PASSES(run(shared_counter, one_cta(96), result.get(), true));
  CHECK(result.host()[0] == 192);
  CHECK_BREAKS("shared-race", run(shared_counter, one_cta(96), result.get(), false));
}

TEST_CASE("shared-race: an atomic and a plain read") {
  DeviceArray<int> result(1);
  CHECK_BREAKS("shared-race", run(counter_read_early, one_cta(64), result.get()));
}

TEST_CASE("a flag in shared memory orders only with a fence on both sides") {
  DeviceArray<int> result(1);
  CHECK_PASSES(run(shared_flag, one_cta(64), true, true, result.get()));
  CHECK(result.host()[0] == 42);
  CHECK_BREAKS("shared-race", run(shared_flag, one_cta(64), false, true, result.get()));
  CHECK_BREAKS("shared-race", run(shared_flag, one_cta(64), true, false, result.get()));
}

}  // namespace shared_test
