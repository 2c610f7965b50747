// The barrier ledger, found from what small kernels do.
#include "emulator/ledger/ledger.h"
#include "emulator/hopper_test.h"

namespace ledger_test {

using namespace emulator_test;

namespace {

constexpr int kStages = 2;
constexpr int kValues = 32;

struct Shared {
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
  alignas(16) int stage[kStages][kValues];
};
/// The same under other names, and in another order.
struct Renamed {
  alignas(16) int milk[kStages][kValues];
  std::uint64_t tea[kStages];
  std::uint64_t coffee[kStages];
};

struct Ring {
  std::uint64_t* filled;
  std::uint64_t* freed;
  int (*stage)[kValues];
};
__device__ Ring ring_of(Shared& shared) {
  return {shared.full, shared.empty, shared.stage};
}
__device__ Ring ring_of(Renamed& shared) {
  return {shared.coffee, shared.tea, shared.milk};
}

enum Fault { kNone, kForgetsToRelease };

/// Warp 0 writes a stage, and each of its lanes arrives; warps 1 and 2 read it, and one lane of each says so.
template <typename Layout>
__global__ void hand_over(int rounds, int fault, int* result) {
  const Ring ring = ring_of(ptx::dynamic_shared<Layout>());
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&ring.filled[i], 32);
      ptx::mbarrier_init(&ring.freed[i], 2);
    }
  }
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const int at = round % kStages;
    const std::uint32_t lap = static_cast<std::uint32_t>(round / kStages) & 1;
    if (threadIdx.x < 32) {
      wait(&ring.freed[at], lap ^ 1);
      ptx::st_shared(&ring.stage[at][lane], round);
      ptx::mbarrier_arrive(&ring.filled[at]);
    } else {
      wait(&ring.filled[at], lap);
      ptx::st_global(result + threadIdx.x, ptx::ld_shared(&ring.stage[at][31 - lane]));
      __syncwarp();
      const bool forgets = fault == kForgetsToRelease && round == 1 && threadIdx.x >= 64;
      if (lane == 0 && !forgets) ptx::mbarrier_arrive(&ring.freed[at]);
    }
  }
}

/// Warp 0 writes and does not wait; warps 1 and 2 read.
__global__ void producer_arrives(int* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    ptx::st_shared(&shared.stage[0][lane], 7);
    ptx::bar_arrive(3, 96);
  } else {
    ptx::bar_sync(3, 96);
    ptx::st_global(result + threadIdx.x, ptx::ld_shared(&shared.stage[0][31 - lane]));
  }
}

/// Each thread reads what another warp has written, and then overwrites it.
__global__ void two_barriers(int* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  int* const place = &shared.stage[threadIdx.x / 32][threadIdx.x % 32];
  for (int round = 0; round < 2; ++round) {
    ptx::st_shared(place, round);
    __syncthreads();
    ptx::st_global(result + threadIdx.x,
                   ptx::ld_shared(&shared.stage[1 - threadIdx.x / 32][threadIdx.x % 32]));
    __syncthreads();
  }
}

/// One of two arrivals comes.
__global__ void waits_in_vain() {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.full[0], 2);
  __syncthreads();
  if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.full[0]);
  if (threadIdx.x >= 32) wait(&shared.full[0], 0);
}

template <typename Launch>
emulator::Ledger ledger_of(Launch launch) {
  emulator::Options options = emulator::options();
  options.counters = true;
  const emulator::ScopedOptions scope(options);
  emulator::begin_ledger();
  const Outcome outcome = launch();
  emulator::Ledger ledger = emulator::end_ledger();
  INFO(outcome.report);
  CHECK(outcome.rule == "passed");
  return ledger;
}

template <typename Layout>
emulator::Ledger ring_ledger(int rounds) {
  DeviceArray<int> result(96);
  return ledger_of(
      [&] { return run(hand_over<Layout>, one_cta(96, sizeof(Layout)), rounds, kNone, result.get()); });
}

const emulator::LedgerRow& row(const emulator::Ledger& ledger, const std::string& barrier) {
  for (const emulator::LedgerRow& one : ledger.rows) {
    if (one.barrier == barrier) return one;
  }
  std::string names;
  for (const emulator::LedgerRow& one : ledger.rows) names += one.barrier + "\n";
  INFO("there is no row " << barrier << " among\n" << names);
  REQUIRE(false);
  return ledger.rows.front();
}

void check_ring(const emulator::Ledger& ledger, const std::string& filled, const std::string& freed) {
  const emulator::LedgerRow& full = row(ledger, filled);
  CHECK(full.count == "32");
  CHECK(full.arrives == "warp 0");
  CHECK(full.waits == "warps 1-2");
  CHECK(full.first == "parity 0");
  CHECK(full.phases == 5);
  CHECK(full.bytes_text() == "threads write, then threads read: 128 bytes");
  const emulator::LedgerRow& empty = row(ledger, freed);
  CHECK(empty.count == "2");
  CHECK(empty.arrives == "one thread of each of warps 1-2");
  CHECK(empty.waits == "warp 0");
  CHECK(empty.first == "parity 1");
  CHECK(empty.bytes_text() == "threads read, then threads write: 128 bytes");
}

}  // namespace

TEST_CASE("a ledger says who arrives, who waits, for which phase first, and which bytes are ordered") {
  check_ring(ring_ledger<Shared>(5), "full[0-1]", "empty[0-1]");
}

TEST_CASE("a ledger does not depend on the names of barriers or on where they lie") {
  check_ring(ring_ledger<Renamed>(5), "coffee[0-1]", "tea[0-1]");
}

TEST_CASE("a ledger does not depend on the schedule") {
  under_schedules(10, [] { check_ring(ring_ledger<Shared>(5), "full[0-1]", "empty[0-1]"); });
}

TEST_CASE("roles are the warps that do the same at the barriers") {
  const emulator::Ledger ledger = ring_ledger<Renamed>(5);
  REQUIRE(ledger.roles.size() == 2);
  CHECK(ledger.roles[0].text == "warp 0: waits at tea[0-1]; arrives at coffee[0-1]");
  CHECK(ledger.roles[1].text == "warps 1-2: waits at coffee[0-1]; arrives at tea[0-1]");
}

TEST_CASE("a ledger tells threads that only arrive at a named barrier from those that wait") {
  DeviceArray<int> result(96);
  const emulator::Ledger ledger =
      ledger_of([&] { return run(producer_arrives, one_cta(96, sizeof(Shared)), result.get()); });
  const emulator::LedgerRow& barrier = row(ledger, "named barrier 3");
  CHECK(barrier.count == "96");
  CHECK(barrier.arrives == "all threads");
  CHECK(barrier.waits == "warps 1-2");
  CHECK(barrier.bytes_text() == "threads write, then threads read: 128 bytes");
}

TEST_CASE("barriers of the CTA at two places are two rows") {
  DeviceArray<int> result(64);
  const emulator::Ledger ledger =
      ledger_of([&] { return run(two_barriers, one_cta(64, sizeof(Shared)), result.get()); });
  CHECK(row(ledger, "__syncthreads, first").bytes_text() == "threads write, then threads read: 256 bytes");
  CHECK(row(ledger, "__syncthreads, second").bytes_text() == "threads read, then threads write: 256 bytes");
}

TEST_CASE("kernels that are launched one after the other have rows of their own") {
  DeviceArray<int> result(96);
  const emulator::Ledger ledger = ledger_of([&] {
    run(two_barriers, one_cta(64, sizeof(Shared)), result.get());
    run(producer_arrives, one_cta(96, sizeof(Shared)), result.get());
    return run(two_barriers, one_cta(64, sizeof(Shared)), result.get());
  });
  REQUIRE(ledger.rows.size() == 3);
  CHECK(row(ledger, "__syncthreads, first").launch == 1);
  CHECK(row(ledger, "__syncthreads, first").phases == 4);
  CHECK(row(ledger, "named barrier 3").launch == 2);
}

TEST_CASE("the ledger of a run that hangs goes up to there") {
  emulator::Options options = emulator::options();
  options.counters = true;
  const emulator::ScopedOptions scope(options);
  DeviceArray<int> result(96);
  emulator::begin_ledger();
  const Outcome outcome =
      run(hand_over<Shared>, one_cta(96, sizeof(Shared)), 7, kForgetsToRelease, result.get());
  const emulator::Ledger ledger = emulator::end_ledger();
  emulator::begin_ledger();
  const Outcome at_once = run(waits_in_vain, one_cta(64, sizeof(Shared)));
  const emulator::Ledger of_a_wait = emulator::end_ledger();
  CHECK(at_once.rule == "deadlock");
  CHECK(row(of_a_wait, "full[0]").waits == "warp 1, in vain");
  CHECK(row(of_a_wait, "full[0]").arrives == "one thread of warp 0");
  CHECK(outcome.rule == "deadlock");
  CHECK(row(ledger, "empty[0-1]").arrives == "one thread of each of warps 1-2");
}

}  // namespace ledger_test
