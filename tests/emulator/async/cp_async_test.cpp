// cp.async: late, out of order, and only done for the threads that waited.
#include "ptx/cp_async.cuh"
#include "emulator/emulator_test.h"

namespace cp_async_test {

using namespace emulator_test;

namespace {

enum Fault {
  kNone,
  kNoWait,
  kNoCommit,         // ... and a wait for groups
  kOneGroupTooMany,  // wait_group leaves one more under way than the reader can afford
  kNoBarrier,        // between the wait and the other threads' reads
  kOneBarrier,       // a tile, which is enough: correct
  kOffByOneStage,    // the next copy goes into the stage that is being read
  kNoWaitAtTheEnd,
  kWaitAll,  // correct, the other way
};

constexpr int kThreads = 64;
constexpr int kTiles = 5;

template <int kStages>
struct Ring {
  alignas(16) std::uint32_t stage[kStages][kThreads * 4];
};

/// A ring of kStages stages: every thread copies 16 bytes a tile and reads 16 bytes that another one copied.
template <int kStages>
__global__ void ring(int fault, const std::uint32_t* source, std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Ring<kStages>>();
  const int thread = static_cast<int>(threadIdx.x);
  auto copy = [&](int tile) {
    if (tile < kTiles) {
      const int stage = fault == kOffByOneStage && tile >= kStages - 1 ? tile + 1 : tile;
      ptx::cp_async_cg_16(&shared.stage[stage % kStages][thread * 4],
                          source + (tile * kThreads + thread) * 4);
    }
    if (fault != kNoCommit) ptx::cp_async_commit_group();
  };
  for (int tile = 0; tile < kStages - 1; ++tile) copy(tile);
  std::uint32_t sum = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    if (fault == kWaitAll) {
      ptx::cp_async_wait_all();
    } else if (fault == kOneGroupTooMany) {
      ptx::cp_async_wait_group<kStages - 1>();
    } else if (fault != kNoWait) {
      ptx::cp_async_wait_group<kStages - 2>();
    }
    if (fault != kNoBarrier) __syncthreads();
    const uint4 words = ptx::ld_shared(
        reinterpret_cast<const uint4*>(&shared.stage[tile % kStages][(kThreads - 1 - thread) * 4]));
    sum += words.x + words.y * 3 + words.z * 5 + words.w * 7;
    if (fault != kOneBarrier && fault != kOffByOneStage) __syncthreads();
    copy(tile + kStages - 1);
  }
  if (fault != kNoWaitAtTheEnd) ptx::cp_async_wait_all();
  ptx::st_global(result + thread, sum);
}

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint32_t>(i * 2654435761u >> 7);
  return values;
}

template <int kStages>
void check_ring(int fault, const char* rule) {
  const std::vector<std::uint32_t> values = numbers(kTiles * kThreads * 4);
  DeviceArray<std::uint32_t> source(values, "A");
  DeviceArray<std::uint32_t> result(kThreads, "D");
  CHECK_BREAKS(std::string(rule), run(ring<kStages>, one_cta(kThreads, sizeof(Ring<kStages>)), fault,
                                      source.get(), result.get()));
  if (std::string(rule) != "passed") return;
  for (int thread = 0; thread < kThreads; ++thread) {
    std::uint32_t sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      const std::uint32_t* words =
          &values[static_cast<std::size_t>((tile * kThreads + kThreads - 1 - thread) * 4)];
      sum += words[0] + words[1] * 3 + words[2] * 5 + words[3] * 7;
    }
    CHECK(result.host()[static_cast<std::size_t>(thread)] == sum);
  }
}

/// The copying thread reads its own bytes.
__global__ void own_copy(bool wait, const std::uint32_t* source, std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  ptx::cp_async_ca_4(&shared.stage[0][threadIdx.x], source + threadIdx.x);
  ptx::cp_async_commit_group();
  if (wait) ptx::cp_async_wait_group<0>();
  ptx::st_global(result + threadIdx.x, ptx::ld_shared(&shared.stage[0][threadIdx.x]));
  ptx::cp_async_wait_all();
}

/// The group is committed in front of the wait, or behind it.
__global__ void committed_late(bool late, const std::uint32_t* source, std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  ptx::cp_async_ca_4(&shared.stage[0][threadIdx.x], source + threadIdx.x);
  if (!late) ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  if (late) ptx::cp_async_commit_group();
  ptx::st_global(result + threadIdx.x, ptx::ld_shared(&shared.stage[0][threadIdx.x]));
  ptx::cp_async_wait_all();
}

/// Two groups; the older may be read while the younger is under way.
__global__ void two_groups(int which, const std::uint32_t* source, std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Ring<2>>();
  for (int stage = 0; stage < 2; ++stage) {
    ptx::cp_async_ca_4(&shared.stage[stage][threadIdx.x], source + stage * 32 + threadIdx.x);
    ptx::cp_async_commit_group();
  }
  ptx::cp_async_wait_group<1>();
  ptx::st_global(result + threadIdx.x, ptx::ld_shared(&shared.stage[which][threadIdx.x]));
  ptx::cp_async_wait_all();
}

__global__ void overwrite(int how, const std::uint32_t* source) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  ptx::cp_async_ca_4(&shared.stage[0][threadIdx.x], source + threadIdx.x);
  if (how == 1) ptx::st_shared(&shared.stage[0][threadIdx.x], 1u);
  if (how == 2) ptx::cp_async_ca_4(&shared.stage[0][threadIdx.x], source + threadIdx.x);
  ptx::cp_async_wait_all();
  if (how == 3) ptx::st_shared(&shared.stage[0][threadIdx.x], 1u);
}

/// Bytes beside a copy are not its own.
__global__ void neighbour_of_copy(const std::uint32_t* source, std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  if (threadIdx.x == 0) {
    ptx::cp_async_ca_4(&shared.stage[0][1], source);
    ptx::st_shared(&shared.stage[0][0], 5u);
    ptx::st_global(result, ptx::ld_shared(&shared.stage[0][0]));
    ptx::cp_async_wait_all();
    ptx::st_global(result + 1, ptx::ld_shared(&shared.stage[0][1]));
  }
}

template <int kBytes>
__global__ void zero_fill(int source_bytes, const std::uint8_t* source, std::uint8_t* result) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  auto* bytes = reinterpret_cast<std::uint8_t*>(shared.stage[0]) + threadIdx.x * kBytes;
  const std::uint8_t* from = source + threadIdx.x * kBytes;
  if constexpr (kBytes == 4) ptx::cp_async_ca_4(bytes, from, source_bytes);
  if constexpr (kBytes == 8) ptx::cp_async_ca_8(bytes, from, source_bytes);
  if constexpr (kBytes == 16) ptx::cp_async_ca_16(bytes, from, source_bytes);
  ptx::cp_async_wait_all();
  for (int i = 0; i < kBytes; ++i) {
    ptx::st_global(result + threadIdx.x * kBytes + i, ptx::ld_shared(bytes + i));
  }
}

__global__ void misplaced(int shared_offset, int source_offset, const std::uint8_t* source) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  ptx::cp_async_cg_16(reinterpret_cast<std::uint8_t*>(shared.stage[0]) + shared_offset,
                      source + source_offset);
  ptx::cp_async_wait_all();
}

/// The destination before the wait, seen behind the emulator's back.
__global__ void look_early(const std::uint32_t* source, std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  ptx::cp_async_ca_4(&shared.stage[0][threadIdx.x], source + threadIdx.x);
  __syncthreads();
  __syncthreads();
  std::uint32_t raw;
  std::memcpy(&raw, &shared.stage[0][threadIdx.x], 4);
  ptx::st_global(result + threadIdx.x, raw);
  ptx::cp_async_wait_all();
}

}  // namespace

TEST_CASE("cp.async: a ring of stages passes, whenever the copies land") {
  check_ring<2>(kNone, "passed");
  check_ring<3>(kNone, "passed");
  check_ring<4>(kNone, "passed");
  check_ring<4>(kWaitAll, "passed");
}

TEST_CASE("cp-async-read-before-wait: no thread waits") {
  check_ring<3>(kNoWait, "cp-async-read-before-wait");
}

TEST_CASE("cp-async-read-before-wait: copies outside every group are not waited for") {
  check_ring<3>(kNoCommit, "cp-async-read-before-wait");
}

TEST_CASE("cp-async-read-before-wait: wait_group leaves one group too many") {
  check_ring<2>(kOneGroupTooMany, "cp-async-read-before-wait");
  check_ring<3>(kOneGroupTooMany, "cp-async-read-before-wait");
}

TEST_CASE("shared-race: a wait orders only the thread that waits") {
  check_ring<3>(kNoBarrier, "shared-race");
}

TEST_CASE("shared-race: a copy into a stage that is still being read") {
  check_ring<3>(kOffByOneStage, "shared-race");
  check_ring<3>(kOneBarrier, "passed");
}

TEST_CASE("cp-async-pending-at-exit: the last copies are not waited for") {
  DeviceArray<std::uint32_t> source(numbers(32), "A");
  CHECK_PASSES(run(overwrite, one_cta(32, sizeof(Ring<1>)), 0, source.get()));
  // Five tiles in a ring of eight: the last copies are never read.
  const std::vector<std::uint32_t> values = numbers(kTiles * kThreads * 4);
  DeviceArray<std::uint32_t> all(values, "A");
  DeviceArray<std::uint32_t> result(kThreads, "D");
  CHECK_PASSES(
      run(ring<8>, one_cta(kThreads, sizeof(Ring<8>)), static_cast<int>(kNone), all.get(), result.get()));
  // Groups without copies may be left behind.
  CHECK_PASSES(run(ring<3>, one_cta(kThreads, sizeof(Ring<3>)), static_cast<int>(kNoWaitAtTheEnd), all.get(),
                   result.get()));
}

namespace {
__global__ void leaves_copies(bool wait, const std::uint32_t* source) {
  auto& shared = ptx::dynamic_shared<Ring<1>>();
  if (threadIdx.x == 7) ptx::cp_async_ca_4(&shared.stage[0][0], source);
  ptx::cp_async_commit_group();
  if (wait) ptx::cp_async_wait_group<0>();
}
}  // namespace

TEST_CASE("cp-async-pending-at-exit: a thread returns with a copy under way") {
  DeviceArray<std::uint32_t> source(numbers(32), "A");
  CHECK_BREAKS("cp-async-pending-at-exit",
               run(leaves_copies, one_cta(32, sizeof(Ring<1>)), false, source.get()));
  const Outcome outcome = run(leaves_copies, one_cta(32, sizeof(Ring<1>)), false, source.get());
  check_text(outcome.report, {"thread (7,0,0)", "cp_async_ca_4 at tests/emulator/async/cp_async_test.cpp:"});
  CHECK_PASSES(run(leaves_copies, one_cta(32, sizeof(Ring<1>)), true, source.get()));
}

TEST_CASE("cp-async-read-before-wait: the report names the copy, its group and the read") {
  DeviceArray<std::uint32_t> source(numbers(32), "A");
  DeviceArray<std::uint32_t> result(32, "D");
  CHECK_BREAKS("cp-async-read-before-wait",
               run(own_copy, one_cta(32, sizeof(Ring<1>)), false, source.get(), result.get()));
  const Outcome outcome = run(own_copy, one_cta(32, sizeof(Ring<1>)), false, source.get(), result.get());
  check_text(outcome.report, {"copy     cp_async_ca_4 at tests/emulator/async/cp_async_test.cpp:",
                              "group    1 of 1 committed; the thread has waited for groups up to 0",
                              "read     tests/emulator/async/cp_async_test.cpp:", "cp.async.wait_group"});
  CHECK_PASSES(run(own_copy, one_cta(32, sizeof(Ring<1>)), true, source.get(), result.get()));
  CHECK(result.host() == numbers(32));
}

TEST_CASE("cp-async-read-before-wait: the wait is there, and the group was committed behind it") {
  DeviceArray<std::uint32_t> source(numbers(32), "A");
  DeviceArray<std::uint32_t> result(32, "D");
  const auto run_late = [&](bool late) {
    return run(committed_late, one_cta(32, sizeof(Ring<1>)), late, source.get(), result.get());
  };
  CHECK_PASSES(run_late(false));
  CHECK_BREAKS("cp-async-read-before-wait", run_late(true));
  check_report(run_late(true), "cp-async-read-before-wait",
               {"  waited   wait_group<0> at tests/emulator/async/cp_async_test.cpp:",
                "  missing  cp.async.commit_group between the copy at ",
                "the copy was in no group yet when its thread waited"});
}

TEST_CASE("cp.async: wait_group 1 leaves the younger of two groups") {
  DeviceArray<std::uint32_t> source(numbers(64), "A");
  DeviceArray<std::uint32_t> result(32, "D");
  CHECK_PASSES(run(two_groups, one_cta(32, sizeof(Ring<2>)), 0, source.get(), result.get()));
  CHECK(result.host()[9] == numbers(64)[9]);
  CHECK_BREAKS("cp-async-read-before-wait",
               run(two_groups, one_cta(32, sizeof(Ring<2>)), 1, source.get(), result.get()));
}

TEST_CASE("cp-async-overwrite: a store or a second copy over bytes that are still being brought") {
  DeviceArray<std::uint32_t> source(numbers(32), "A");
  CHECK_BREAKS("cp-async-overwrite", run(overwrite, one_cta(32, sizeof(Ring<1>)), 1, source.get()));
  CHECK_BREAKS("cp-async-overwrite", run(overwrite, one_cta(32, sizeof(Ring<1>)), 2, source.get()));
  CHECK_PASSES(run(overwrite, one_cta(32, sizeof(Ring<1>)), 3, source.get()));
}

TEST_CASE("cp.async: the bytes beside a copy stay usable") {
  DeviceArray<std::uint32_t> source(numbers(4), "A");
  DeviceArray<std::uint32_t> result(2, "D");
  CHECK_PASSES(run(neighbour_of_copy, one_cta(32, sizeof(Ring<1>)), source.get(), result.get()));
  CHECK(result.host() == std::vector<std::uint32_t>{5, numbers(4)[0]});
}

TEST_CASE("cp.async: what is not read is filled with zeros") {
  std::vector<std::uint8_t> bytes(32 * 16);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + 1);
  DeviceArray<std::uint8_t> source(bytes, "A");
  DeviceArray<std::uint8_t> result(bytes.size(), "D");
  auto check = [&](auto kernel, int size) {
    for (int source_bytes = 0; source_bytes <= size; ++source_bytes) {
      require_passes(run(kernel, one_cta(32, sizeof(Ring<1>)), source_bytes, source.get(), result.get()));
      const std::vector<std::uint8_t> got = result.host();
      for (std::size_t i = 0; i < static_cast<std::size_t>(32 * size); ++i) {
        const bool read = static_cast<int>(i % static_cast<std::size_t>(size)) < source_bytes;
        if (got[i] != (read ? bytes[i] : 0)) FAIL("byte " << i << " of a copy of " << source_bytes);
      }
    }
  };
  check(zero_fill<4>, 4);
  check(zero_fill<8>, 8);
  check(zero_fill<16>, 16);
}

TEST_CASE("cp.async: with nothing to read the source may lie past the end") {
  DeviceArray<std::uint8_t> source(std::vector<std::uint8_t>(16 * 31 + 8, 1), "A");
  DeviceArray<std::uint8_t> result(32 * 16, "D");
  CHECK_PASSES(run(zero_fill<16>, one_cta(32, sizeof(Ring<1>)), 0, source.get() + 4096, result.get()));
  CHECK_PASSES(run(zero_fill<16>, one_cta(32, sizeof(Ring<1>)), 8, source.get(), result.get()));
  CHECK_BREAKS("global-out-of-bounds",
               run(zero_fill<16>, one_cta(32, sizeof(Ring<1>)), 9, source.get(), result.get()));
}

TEST_CASE("cp-async-size: between nothing and everything is read") {
  DeviceArray<std::uint8_t> source(std::vector<std::uint8_t>(32 * 16, 1), "A");
  DeviceArray<std::uint8_t> result(32 * 16, "D");
  CHECK_BREAKS("cp-async-size",
               run(zero_fill<8>, one_cta(32, sizeof(Ring<1>)), 9, source.get(), result.get()));
  CHECK_BREAKS("cp-async-size",
               run(zero_fill<8>, one_cta(32, sizeof(Ring<1>)), -1, source.get(), result.get()));
  CHECK_PASSES(run(zero_fill<8>, one_cta(32, sizeof(Ring<1>)), 8, source.get(), result.get()));
}

TEST_CASE("cp.async: both addresses are multiples of the copy size") {
  DeviceArray<std::uint8_t> source(std::vector<std::uint8_t>(64, 1), "A");
  CHECK_PASSES(run(misplaced, one_cta(1, sizeof(Ring<1>)), 16, 32, source.get()));
  CHECK_BREAKS("shared-misaligned", run(misplaced, one_cta(1, sizeof(Ring<1>)), 8, 32, source.get()));
  CHECK_BREAKS("global-misaligned", run(misplaced, one_cta(1, sizeof(Ring<1>)), 16, 8, source.get()));
  CHECK_BREAKS("shared-out-of-bounds", run(misplaced, one_cta(1, sizeof(Ring<1>)),
                                           static_cast<int>(sizeof(Ring<1>)), 32, source.get()));
}

TEST_CASE("cp.async lands at issue, at the wait, or somewhere between") {
  DeviceArray<std::uint32_t> source(numbers(32), "A");
  DeviceArray<std::uint32_t> result(32, "D");
  auto landed = [&](emulator::Completion completion, std::uint64_t seed) {
    emulator::Options options;
    options.completion = completion;
    options.seed = seed;
    const emulator::ScopedOptions scope(options);
    REQUIRE(run(look_early, one_cta(32, sizeof(Ring<1>)), source.get(), result.get()).rule == "passed");
    int count = 0;
    for (std::size_t i = 0; i < 32; ++i) {
      const std::uint32_t word = result.host()[i];
      if (word == numbers(32)[i]) {
        ++count;
      } else {
        CHECK(word == 0xffffffffu);
      }
    }
    return count;
  };
  CHECK(landed(emulator::Completion::kEarliest, 1) == 32);
  CHECK(landed(emulator::Completion::kLatest, 1) == 0);
  bool some = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const int count = landed(emulator::Completion::kRandom, seed);
    some |= count > 0 && count < 32;
  }
  CHECK(some);
}

}  // namespace cp_async_test
