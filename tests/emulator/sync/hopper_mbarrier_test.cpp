// mbarrier: phases, counts, which threads may use it when.
#include "emulator/hopper_test.h"
#include "ptx/cp_async.cuh"
#include "ptx/mbarrier_word.h"

namespace hopper_mbarrier_test {

using namespace emulator_test;

namespace {

struct Shared {
  std::uint64_t barrier;
  std::uint64_t other;
  int data[64];
};

constexpr ptx::LaunchShape shape(unsigned threads) {
  return one_cta(threads, sizeof(Shared));
}

enum Fault { kNone, kNoWait, kNoSync, kCountTooHigh, kParity2 };

/// Warp 1 writes, every lane arrives; warp 0 waits and reads.
__global__ void hand_over(int fault, int* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const unsigned thread = threadIdx.x;
  if (thread == 0) ptx::mbarrier_init(&shared.barrier, fault == kCountTooHigh ? 33 : 32);
  if (fault != kNoSync) __syncthreads();
  for (std::uint32_t round = 0; round < 3; ++round) {
    if (thread >= 32) {
      ptx::st_shared(&shared.data[thread - 32], static_cast<int>(round * 100 + thread));
      ptx::mbarrier_arrive(&shared.barrier);
    } else {
      if (fault != kNoWait) wait(&shared.barrier, fault == kParity2 ? 2 : round & 1);
      ptx::st_global(result + thread, ptx::ld_shared(&shared.data[31 - thread]));
    }
    __syncthreads();
  }
}

/// Warp 0 asks once for a phase that nobody ends, or in a loop, and only then lets warp 1 go on.
__global__ void asks_once(int in_a_loop) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.barrier, 1);
    ptx::mbarrier_init(&shared.other, 32);
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    while (!ptx::mbarrier_try_wait_parity(&shared.barrier, 0) && in_a_loop != 0) {
    }
    ptx::mbarrier_arrive(&shared.other);
  } else {
    wait(&shared.other, 0);
  }
}

/// The emulator's word: count, pending arrivals, bytes, phase.
__global__ void watch_word(std::uint64_t* words) {
  auto& shared = ptx::dynamic_shared<Shared>();
  auto keep = [&] { ptx::st_global(words++, ptx::ld_shared(&shared.barrier)); };
  ptx::mbarrier_init(&shared.barrier, 3);
  keep();
  ptx::mbarrier_arrive(&shared.barrier);
  keep();
  ptx::mbarrier_expect_tx(&shared.barrier, 48);
  keep();
  ptx::mbarrier_arrive(&shared.barrier);
  keep();
  ptx::mbarrier_init(&shared.other, 1);
  for (int i = 0; i < 3; ++i) {
    ptx::st_global(words++, ptx::ld_shared(&shared.other));
    ptx::mbarrier_arrive(&shared.other);
  }
}

enum class Sees { kNobody, kItself, kAnother, kTooEarly };

/// Thread 0 arrives for three phases; the first one is waited for, or not, by itself or by thread 32.
__global__ void arrives_for_three_phases(Sees sees) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.barrier, 1);
  __syncthreads();
  if (sees == Sees::kTooEarly && threadIdx.x == 32) ptx::mbarrier_test_wait_parity(&shared.barrier, 0);
  __syncthreads();
  if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.barrier);
  if (sees == Sees::kItself && threadIdx.x == 0) wait(&shared.barrier, 0);
  if (sees == Sees::kAnother && threadIdx.x == 32) wait(&shared.barrier, 0);
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::mbarrier_arrive(&shared.barrier);
  wait(&shared.barrier, 1);
  ptx::mbarrier_arrive(&shared.barrier);  // nobody waits for the last phase, and nobody needs to
}

/// Phase 0 completes with two arrivals, phase 1 never does.
__global__ void begins_a_phase(bool sees) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(&shared.barrier, 2);
  for (int i = 0; i < 2; ++i) ptx::mbarrier_arrive(&shared.barrier);
  if (sees) wait(&shared.barrier, 0);
  ptx::mbarrier_arrive(&shared.barrier);
}

__global__ void never_initialised() {
  ptx::mbarrier_arrive(&ptx::dynamic_shared<Shared>().barrier);
}

__global__ void used_after_inval(int use) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(&shared.barrier, 1);
  ptx::mbarrier_arrive(&shared.barrier);
  wait(&shared.barrier, 0);
  ptx::mbarrier_inval(&shared.barrier);
  if (use == 1) ptx::mbarrier_arrive(&shared.barrier);
  if (use == 2) ptx::st_shared(&shared.barrier, std::uint64_t{0});
}

__global__ void initialised_twice(int inval) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(&shared.barrier, 1);
  if (inval) ptx::mbarrier_inval(&shared.barrier);
  ptx::mbarrier_init(&shared.barrier, 2);
}

__global__ void invalidated_in_use(int bytes) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(&shared.barrier, 1);
  if (bytes > 0) ptx::mbarrier_expect_tx(&shared.barrier, static_cast<std::uint32_t>(bytes));
  ptx::mbarrier_inval(&shared.barrier);
}

__global__ void with_count(std::uint32_t count) {
  ptx::mbarrier_init(&ptx::dynamic_shared<Shared>().barrier, count);
}

/// `count` arrivals complete a phase; the phase stays open because 16 bytes are missing.
__global__ void too_many_arrivals(std::uint32_t count) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.barrier, count);
    ptx::mbarrier_expect_tx(&shared.barrier, 16);
  }
  __syncthreads();
  ptx::mbarrier_arrive(&shared.barrier);
}

__global__ void expects(std::uint32_t bytes, int times) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(&shared.barrier, 2);
  for (int i = 0; i < times; ++i) ptx::mbarrier_expect_tx(&shared.barrier, bytes);
}

__global__ void overwritten(int by) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.barrier, 32);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::st_shared(by == 1 ? &shared.barrier : &shared.other, std::uint64_t{7});
  }
  __syncthreads();
  ptx::mbarrier_arrive(&shared.barrier);
}

__global__ void misaligned() {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::mbarrier_init(reinterpret_cast<std::uint64_t*>(&shared.data[1]), 1);
}

/// Two phases complete while thread 32 is elsewhere: its parity now means another phase.
__global__ void misses_a_phase(int rounds) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.barrier, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < rounds; ++i) ptx::mbarrier_arrive(&shared.barrier);
  }
  __syncthreads();
  if (threadIdx.x == 32) wait(&shared.barrier, 0);
}

/// All threads poll; none blocks.
__global__ void polls(int* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.barrier, 64);
  __syncthreads();
  ptx::st_shared(&shared.data[threadIdx.x], 1);
  ptx::mbarrier_arrive(&shared.barrier);
  while (!ptx::mbarrier_test_wait_parity(&shared.barrier, 0)) {
  }
  int sum = 0;
  for (int& value : shared.data) sum += ptx::ld_shared(&value);
  ptx::st_global(result + threadIdx.x, sum);
}

enum Copies {
  kWaits,
  kBarrierOnly,
  kNoThreadWaits,
  kOwnWaitGroup,
  kOwnRead,
  kSecondArrival,
  kOneArrivalTooMany
};

/// Warp 1 copies with cp.async, whose arrivals come when the copies have; warp 0 waits, or not, and reads.
__global__ void copies_arrive(const int* source, int how, int* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const unsigned thread = threadIdx.x;
  if (thread == 0) {
    ptx::mbarrier_init(&shared.barrier, 32);
    ptx::mbarrier_init(&shared.other, 32);
  }
  __syncthreads();
  if (thread >= 32) {
    ptx::cp_async_ca_4(&shared.data[thread - 32], source + thread - 32);
    ptx::cp_async_mbarrier_arrive_noinc(&shared.barrier);
    if (how == kSecondArrival) ptx::cp_async_mbarrier_arrive_noinc(&shared.other);
    if (how == kOneArrivalTooMany && thread == 40) ptx::mbarrier_arrive(&shared.barrier);
    if (how == kOwnWaitGroup) ptx::cp_async_wait_all();
    if (how == kOwnWaitGroup || how == kOwnRead) ptx::ld_shared(&shared.data[thread - 32]);
  }
  if (how == kBarrierOnly) __syncthreads();
  if (how != kNoThreadWaits && thread < 32) {
    if (how != kBarrierOnly) wait(how == kSecondArrival ? &shared.other : &shared.barrier, 0);
    ptx::st_global(result + thread, ptx::ld_shared(&shared.data[31 - thread]));
    if (how == kSecondArrival) wait(&shared.barrier, 0);
  }
}

}  // namespace

TEST_CASE("cp.async arrives at an mbarrier") {
  std::vector<int> values(32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * i);
  const DeviceArray<int> source(values);
  DeviceArray<int> result(32);
  const auto how = [&](Copies copies) {
    return run(copies_arrive, shape(64), source.get(), copies, result.get());
  };
  CHECK_PASSES(how(kWaits));
  std::reverse(values.begin(), values.end());
  CHECK(result.host() == values);
  CHECK_BREAKS("load-not-waited", how(kBarrierOnly));
  CHECK_BREAKS("load-not-waited", how(kOwnRead));
  CHECK_PASSES(how(kOwnWaitGroup));
  CHECK_PASSES(how(kSecondArrival));
  CHECK_BREAKS("exit-in-flight", how(kNoThreadWaits));
  // The phase may end before the last thread has copied anything.
  CHECK_BREAKS_ONE_OF((Rules{"mbarrier-arrivals", "shared-race", "load-not-waited"}),
                      how(kOneArrivalTooMany));
}

TEST_CASE("mbarrier: a wait orders what the arrivals published") {
  DeviceArray<int> result(32);
  CHECK_PASSES(run(hand_over, shape(64), kNone, result.get()));
  const std::vector<int> host = result.host();
  for (int i = 0; i < 32; ++i) CHECK(host[static_cast<std::size_t>(i)] == 200 + 63 - i);
}

TEST_CASE("shared-race: no wait") {
  DeviceArray<int> result(32);
  CHECK_BREAKS_ONE_OF((Rules{"shared-race", "shared-uninitialised"}),
                      run(hand_over, shape(64), kNoWait, result.get()));
}

TEST_CASE("mbarrier-uninitialised: no barrier behind the initialisation") {
  DeviceArray<int> result(32);
  CHECK_BREAKS("mbarrier-uninitialised", run(hand_over, shape(64), kNoSync, result.get()));
  CHECK_BREAKS("mbarrier-uninitialised", run(never_initialised, shape(32)));
  check_report(run(never_initialised, shape(32)), "mbarrier-uninitialised",
               {"barrier (shared + 0x0)", "hopper_mbarrier_test.cpp:", "PTX ISA"});
}

TEST_CASE("deadlock: a count that is one too high") {
  DeviceArray<int> result(32);
  CHECK_BREAKS("deadlock", run(hand_over, shape(64), kCountTooHigh, result.get()));
  check_report(run(hand_over, shape(64), kCountTooHigh, result.get()), "deadlock",
               {"mbarrier barrier (shared + 0x0)", "in phase 0 (parity 0): 1 of 33 arrivals is missing",
                "threads 0-31 wait at"});
}

TEST_CASE("mbarrier-parity: neither 0 nor 1") {
  DeviceArray<int> result(32);
  CHECK_BREAKS("mbarrier-parity", run(hand_over, shape(64), kParity2, result.get()));
}

TEST_CASE("the word in shared memory") {
  DeviceArray<std::uint64_t> words(7);
  // The 48 bytes never come, which the report at the end says; by then the words are written.
  CHECK_BREAKS("exit-in-flight", run(watch_word, shape(1), words.get()));
  auto word = [](std::uint32_t count, std::uint32_t pending, std::int32_t tx, std::uint32_t parity) {
    return ptx::encode(ptx::MbarrierWord{count, pending, tx, parity});
  };
  CHECK(words.host() == std::vector<std::uint64_t>{word(3, 3, 0, 0), word(3, 2, 0, 0), word(3, 2, 48, 0),
                                                   word(3, 1, 48, 0), word(1, 1, 0, 0), word(1, 1, 0, 1),
                                                   word(1, 1, 0, 0)});
}

TEST_CASE("the word as an H200 keeps it") {
  struct Sample {
    std::uint64_t bits;
    ptx::MbarrierWord word;
  };
  // Read on an H200 behind mbarrier.inval, after the events that lead there.
  for (const Sample& sample :
       {Sample{0x7ffff800001ffffe, {1, 1, 0, 0}}, Sample{0x7ffce000001fff38, {100, 100, 0, 0}},
        Sample{0x0000080000000002, {1048575, 1048575, 0, 0}}, Sample{0x7ffff000001ffffa, {3, 2, 0, 0}},
        Sample{0xffffe800001ffffa, {3, 3, 0, 1}}, Sample{0x7fffebfffffffffa, {3, 3, 1, 0}},
        Sample{0x7fffeae9d9dffffa, {3, 3, 569650, 0}}, Sample{0x7fffe800003ffffa, {3, 3, -1, 0}},
        Sample{0x7ffff002001ffffa, {3, 2, -4096, 0}}, Sample{0x00000200003ffffa, {3, 0, 1048575, 0}}}) {
    CHECK(ptx::encode(sample.word) == sample.bits);
    CHECK(ptx::decode_mbarrier(sample.bits) == sample.word);
  }
}

TEST_CASE("mbarrier-uninitialised: after mbarrier_inval") {
  CHECK_BREAKS("mbarrier-uninitialised", run(used_after_inval, shape(1), 1));
  CHECK_PASSES(run(used_after_inval, shape(1), 2));
}

TEST_CASE("mbarrier-reinitialised") {
  CHECK_BREAKS("mbarrier-reinitialised", run(initialised_twice, shape(1), 0));
  CHECK_PASSES(run(initialised_twice, shape(1), 1));
}

TEST_CASE("mbarrier-invalidated-in-use") {
  CHECK_BREAKS("mbarrier-invalidated-in-use", run(invalidated_in_use, shape(1), 16));
  CHECK_PASSES(run(invalidated_in_use, shape(1), 0));
}

TEST_CASE("mbarrier-phase-unseen: an arrival for a phase, and no wait has seen the one before") {
  CHECK_PASSES(run(arrives_for_three_phases, shape(64), Sees::kItself));
  CHECK_PASSES(run(arrives_for_three_phases, shape(64), Sees::kAnother));
  CHECK_BREAKS("mbarrier-phase-unseen", run(arrives_for_three_phases, shape(64), Sees::kTooEarly));
  CHECK_BREAKS("mbarrier-phase-unseen", run(arrives_for_three_phases, shape(64), Sees::kNobody));
  CHECK_BREAKS("mbarrier-phase-unseen", run(begins_a_phase, shape(1), false));
  CHECK_PASSES(run(begins_a_phase, shape(1), true));
  check_text(run(arrives_for_three_phases, shape(64), Sees::kNobody).report,
             {"a thread arrives for phase 1 of an mbarrier, although no wait has seen phase 0 complete",
              "mbarrier barrier (shared + 0x",
              "missing  a wait for phase 0 (parity 0) by some thread that then signals the threads that "
              "arrive for phase 1"});
}

TEST_CASE("mbarrier-count") {
  CHECK_BREAKS("mbarrier-count", run(with_count, shape(1), 0u));
  CHECK_BREAKS("mbarrier-count", run(with_count, shape(1), 1u << 20));
  CHECK_PASSES(run(with_count, shape(1), (1u << 20) - 1));
}

TEST_CASE("mbarrier-arrivals: one more than the count") {
  CHECK_BREAKS("mbarrier-arrivals", run(too_many_arrivals, shape(32), 31u));
  check_report(run(too_many_arrivals, shape(32), 31u), "mbarrier-arrivals",
               {"with a count of 31", "and 24 more"});
  // With the right count nothing is wrong but that the bytes never come.
  CHECK_BREAKS("exit-in-flight", run(too_many_arrivals, shape(32), 32u));
}

TEST_CASE("mbarrier-tx-overflow") {
  CHECK_BREAKS("mbarrier-tx-overflow", run(expects, shape(1), 1u << 20, 1));
  CHECK_BREAKS("mbarrier-tx-overflow", run(expects, shape(1), 1u << 19, 2));
  CHECK_PASSES(run(expects, shape(1), 0u, 2));
}

TEST_CASE("mbarrier-overwritten") {
  CHECK_BREAKS("mbarrier-overwritten", run(overwritten, shape(32), 1));
  CHECK_PASSES(run(overwritten, shape(32), 2));
}

TEST_CASE("mbarrier-address: misaligned") {
  CHECK_BREAKS("mbarrier-address", run(misaligned, shape(1)));
}

TEST_CASE("deadlock: two phases complete before a wait by parity") {
  CHECK_BREAKS("deadlock", run(misses_a_phase, shape(64), 2));
  CHECK(contains(run(misses_a_phase, shape(64), 2).report, "2 phases have already completed"));
  CHECK_PASSES(run(misses_a_phase, shape(64), 1));
}

TEST_CASE("deadlock: a loop around try_wait, and not a single one, for which the time is up") {
  CHECK_PASSES(run(asks_once, shape(64), 0));
  CHECK_BREAKS("deadlock", run(asks_once, shape(64), 1));
  check_text(run(asks_once, shape(64), 1).report, {"for the phase of parity 0 of mbarrier barrier",
                                                   "for the phase of parity 0 of mbarrier other"});
}

/// Thread 0 completes a phase without any copy, and looks at what is pending on the way.
__global__ void completes_by_hand(std::uint32_t bytes, bool of_no_complete, std::uint32_t* counts) {
  auto* barrier = &ptx::dynamic_shared<std::uint64_t>();
  ptx::mbarrier_init(barrier, 3);
  const std::uint64_t state = ptx::mbarrier_arrive_no_complete(barrier, 2);
  ptx::st_global(counts, ptx::mbarrier_pending_count(of_no_complete ? state : 0));
  ptx::mbarrier_arrive_expect_tx(barrier, 100);
  ptx::mbarrier_complete_tx(barrier, bytes);
  ptx::mbarrier_complete_tx(barrier, 60);
  wait(barrier, 0);
  ptx::st_global(counts + 1, 1u);
}

TEST_CASE(
    "mbarrier.complete_tx ends a phase that no copy ends, and pending_count tells what was pending before") {
  DeviceArray<std::uint32_t> counts(2);
  CHECK_PASSES(run(completes_by_hand, shape(1), 40u, true, counts.get()));
  CHECK(counts.host() == std::vector<std::uint32_t>{3, 1});
  CHECK_BREAKS("deadlock", run(completes_by_hand, shape(1), 39u, true, counts.get()));
}

TEST_CASE("mbarrier-state: pending_count of a state that no arrival with noComplete returned") {
  DeviceArray<std::uint32_t> counts(2);
  CHECK_BREAKS("mbarrier-state", run(completes_by_hand, shape(1), 40u, false, counts.get()));
}

TEST_CASE("mbarrier-tx-overflow: more is completed than the tx-count holds") {
  DeviceArray<std::uint32_t> counts(2);
  CHECK_BREAKS("mbarrier-tx-overflow", run(completes_by_hand, shape(1), 1u << 20 | 200u, true, counts.get()));
}

TEST_CASE("mbarrier_test_wait never blocks and orders all the same") {
  DeviceArray<int> result(64);
  CHECK_PASSES(run(polls, shape(64), result.get()));
  for (const int value : result.host()) CHECK(value == 64);
}

}  // namespace hopper_mbarrier_test
