// Several devices in one run: for each rule of ranks a kernel that breaks only this rule, and one that breaks
// none.
#include "emulator/machine/ranks.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/emulator_test.h"
#include "ptx/atomic.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/peer_copy.h"
#include "ptx/tma.cuh"

namespace ranks_test {

using namespace emulator_test;
namespace ranks = emulator::ranks;

namespace {

constexpr unsigned kThreads = 64;
constexpr ptx::LaunchShape kOne{.grid = {}, .block = {kThreads}, .cluster = {}};

/// Devices that reach each other, each with a stream, data and flags.
struct World {
  explicit World(int count, bool peers = true) : devices(count) {
    emulator::set_device_count(count);
    for (int rank = 0; rank < count; ++rank) {
      emulator::set_current_device(rank);
      for (int peer = 0; peer < count; ++peer) {
        if (peer != rank && peers) emulator::set_peer_access(rank, peer, true);
      }
      streams.push_back(ranks::make_stream(false));
      data.push_back(std::make_unique<DeviceArray<int>>(1024, "data of rank " + std::to_string(rank)));
      flags.push_back(
          std::make_unique<DeviceArray<std::uint32_t>>(8, "flags of rank " + std::to_string(rank)));
      out.push_back(std::make_unique<DeviceArray<int>>(1024, "out of rank " + std::to_string(rank)));
      flags.back()->fill(0);
      data.back()->fill(0);
    }
    emulator::set_current_device(0);
  }
  ~World() {
    for (int rank = 0; rank < devices; ++rank) ranks::destroy_stream(streams[static_cast<std::size_t>(rank)]);
    data.clear();
    flags.clear();
    out.clear();
    emulator::set_device_count(0);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int* data_of(std::size_t rank) { return data[rank]->get(); }
  int* out_of(std::size_t rank) { return out[rank]->get(); }
  std::uint32_t* flags_of(std::size_t rank) { return flags[rank]->get(); }

  template <typename... Parameters, typename... Arguments>
  void launch(int rank, void (*kernel)(Parameters...), const ptx::LaunchShape& shape,
              Arguments&&... arguments) {
    emulator::set_current_device(rank);
    ptx::launch(kernel, shape, streams[static_cast<std::size_t>(rank)],
                std::forward<Arguments>(arguments)...);
  }
  void finish() {
    for (int rank = 0; rank < devices; ++rank) ranks::finish_device(rank);
  }

  int devices;
  std::vector<ptx::Stream> streams;
  std::vector<std::unique_ptr<DeviceArray<int>>> data, out;
  std::vector<std::unique_ptr<DeviceArray<std::uint32_t>>> flags;
};

/// What the body, which waits for all ranks, ends with.
Outcome outcome_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const harness::EmulatorReport& report) {
    return {report.rule(), report.what()};
  }
  return {"passed", ""};
}

enum class Scope { kSys, kGpuStore, kGpuLoad, kGpuBoth, kGpuFence, kGpuFenceOfReader };

/// Writes data into a peer's memory and says so.
__global__ void send(int* data, std::uint32_t* flag, Scope scope) {
  ptx::st_global(data + threadIdx.x, static_cast<int>(threadIdx.x) + 7);
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (scope == Scope::kGpuFence) {
    ptx::fence_acq_rel_gpu();
    ptx::st_relaxed_sys(flag, 1);
  } else if (scope == Scope::kGpuStore || scope == Scope::kGpuBoth) {
    ptx::st_release_gpu(flag, 1);
  } else {
    ptx::st_release_sys(flag, 1);
  }
}

__device__ void wait(const std::uint32_t* flag, std::uint32_t value, Scope scope) {
  if (scope == Scope::kGpuFenceOfReader) {
    while (ptx::ld_relaxed_sys(flag) != value) {
    }
    ptx::fence_acq_rel_gpu();
    return;
  }
  const bool gpu = scope == Scope::kGpuLoad || scope == Scope::kGpuBoth;
  while ((gpu ? ptx::ld_acquire_gpu(flag) : ptx::ld_acquire_sys(flag)) != value) {
  }
}

/// Waits for the flag in its own memory and reads.
__global__ void receive(const int* data, const std::uint32_t* flag, int* out, Scope scope) {
  if (threadIdx.x == 0) wait(flag, 1, scope);
  __syncthreads();
  ptx::st_global(out + threadIdx.x, ptx::ld_global(data + kThreads - 1 - threadIdx.x));
}

Outcome hand_over(Scope scope, bool peers = true, bool receiver_first = true) {
  World world(2, peers);
  return outcome_of([&] {
    const auto receives = [&] {
      world.launch(1, receive, kOne, world.data_of(1), world.flags_of(1), world.out_of(1), scope);
    };
    if (receiver_first) receives();
    world.launch(0, send, kOne, world.data_of(1), world.flags_of(1), scope);
    if (!receiver_first) receives();
    world.finish();
    emulator::set_current_device(1);
    const std::vector<int> out = world.out[1]->host();
    for (unsigned i = 0; i < kThreads; ++i) REQUIRE(out[i] == static_cast<int>(kThreads - 1 - i) + 7);
  });
}

}  // namespace

TEST_CASE("a kernel that waits for a peer runs at the same time as the peer's") {
  CHECK_PASSES(hand_over(Scope::kSys));
  CHECK_PASSES(hand_over(Scope::kSys, true, false));
}

TEST_CASE("a flag of gpu scope orders nothing between ranks") {
  for (const Scope scope : {Scope::kGpuStore, Scope::kGpuLoad, Scope::kGpuBoth})
    CHECK_BREAKS("scope-too-small", hand_over(scope));
  check_report(hand_over(Scope::kGpuStore), "scope-too-small",
               {"rank 0", "rank 1", "st_release_gpu at ", "ld_acquire_sys at ", "flags of rank 1 + 0"});
}

TEST_CASE("a fence of gpu scope orders nothing between ranks") {
  for (const Scope scope : {Scope::kGpuFence, Scope::kGpuFenceOfReader})
    CHECK_BREAKS("scope-too-small", hand_over(scope));
}

TEST_CASE("memory of a peer needs peer access") {
  CHECK_BREAKS("peer-access", hand_over(Scope::kSys, false));
  check_report(
      hand_over(Scope::kSys, false), "peer-access",
      {"by rank 0 of memory of rank 1", "CTA (0,0,0) of rank 0", "cudaDeviceEnablePeerAccess(1, 0)"});
}

namespace {

/// A ring: each rank stores into the memory of the next one, and reads its own when its flag says so.
__global__ void pass_on(int* own, int* next, std::uint32_t* own_flag, std::uint32_t* next_flag,
                        std::uint32_t epoch) {
  ptx::st_global(next + threadIdx.x, static_cast<int>(epoch + threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::st_release_sys(next_flag, epoch);
    while (ptx::ld_acquire_sys(own_flag) < epoch) {
    }
  }
  __syncthreads();
  ptx::ld_global(own + threadIdx.x);
  __syncthreads();
  // The rank before must not write the next epoch before this one has been read.
  if (threadIdx.x == 0) ptx::red_add_release_sys(own_flag + 1, 1);
}
__global__ void await_readers(const std::uint32_t* next_flag, std::uint32_t epoch) {
  if (threadIdx.x == 0) {
    while (ptx::ld_acquire_sys(next_flag + 1) < epoch) {
    }
  }
}

Outcome ring(int count, int epochs, bool awaits) {
  World world(count);
  return outcome_of([&] {
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      for (int rank = 0; rank < count; ++rank) {
        const auto own = static_cast<std::size_t>(rank);
        const auto next = static_cast<std::size_t>((rank + 1) % count);
        world.launch(rank, pass_on, kOne, world.data_of(own), world.data_of(next), world.flags_of(own),
                     world.flags_of(next), static_cast<std::uint32_t>(epoch));
        if (awaits)
          world.launch(rank, await_readers, kOne, world.flags_of(next), static_cast<std::uint32_t>(epoch));
      }
    }
    world.finish();
  });
}

}  // namespace

TEST_CASE("three ranks pass data on in a ring, launch after launch") {
  CHECK_PASSES(ring(3, 3, true));
}

TEST_CASE("a rank that overwrites what its peer may still read races with it") {
  CHECK_BREAKS("global-race", ring(2, 3, false));
  check_report(ring(2, 3, false), "global-race", {"of rank 0", "of rank 1"});
}

namespace {

__global__ void fill_own(int* data) {
  for (unsigned i = threadIdx.x; i < 1024; i += kThreads) ptx::st_global(data + i, static_cast<int>(i));
}
__global__ void read_all(const int* data, int* out) {
  for (unsigned i = threadIdx.x; i < 1024; i += kThreads) ptx::st_global(out + i, ptx::ld_global(data + i));
}
__global__ void raise(std::uint32_t* flag) {
  if (threadIdx.x == 0) ptx::st_release_sys(flag, 1);
}

enum class Order { kFlag, kEvent, kNothing, kFlagFirst, kFlagOfStream, kFlagOfStreamFirst };

/// A copy engine brings data to rank 1, where a kernel reads them.
Outcome engine(Order order) {
  World world(2);
  return outcome_of([&] {
    world.launch(0, fill_own, kOne, world.data_of(0));
    if (order == Order::kFlagFirst) world.launch(0, raise, kOne, world.flags_of(1));
    if (order == Order::kFlagOfStreamFirst) ptx::write_flag(world.flags_of(1), 1, world.streams[0]);
    ptx::copy_to_peer(world.data_of(1), 1, world.data_of(0), 0, world.data[0]->bytes(), world.streams[0]);
    const ranks::Event event = ranks::make_event();
    if (order == Order::kEvent) {
      ranks::record(event, world.streams[0]);
      ranks::wait_for(world.streams[1], event);
    }
    if (order == Order::kFlag) world.launch(0, raise, kOne, world.flags_of(1));
    if (order == Order::kFlagOfStream) ptx::write_flag(world.flags_of(1), 1, world.streams[0]);
    if (order != Order::kEvent && order != Order::kNothing) {
      world.launch(1, receive, kOne, world.data_of(1), world.flags_of(1), world.out_of(1), Scope::kSys);
    } else {
      world.launch(1, read_all, kOne, world.data_of(1), world.out_of(1));
    }
    world.finish();
    if (order != Order::kEvent) return;
    emulator::set_current_device(1);
    const std::vector<int> out = world.out[1]->host();
    for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == static_cast<int>(i));
  });
}

}  // namespace

TEST_CASE("a copy engine's copy is ordered by its stream, an event, or a flag that a later kernel raises") {
  CHECK_PASSES(engine(Order::kFlag));
  CHECK_PASSES(engine(Order::kEvent));
}

TEST_CASE(
    "a flag that a stream writes comes after the copies before it in the stream, and not after others") {
  CHECK_PASSES(engine(Order::kFlagOfStream));
  CHECK_BREAKS("global-race", engine(Order::kFlagOfStreamFirst));
  check_report(engine(Order::kFlagOfStreamFirst), "global-race", {"a copy of", "rank 0"});
}

namespace {

/// Data leave by a stream of their own, before or after what the main stream has filled them with.
Outcome beside(bool begins_after, bool ends_before) {
  World world(2);
  return outcome_of([&] {
    emulator::set_current_device(0);
    ptx::SideStream side;
    world.launch(0, fill_own, kOne, world.data_of(0));
    const ptx::Stream stream = side.begin_after(begins_after ? world.streams[0] : ptx::Stream{});
    ptx::copy_to_peer(world.data_of(1), 1, world.data_of(0), 0, world.data[0]->bytes(), stream);
    if (ends_before) side.end_before(world.streams[0]);
    world.launch(0, fill_own, kOne, world.data_of(0));
    world.finish();
  });
}

}  // namespace

TEST_CASE("a side stream begins after the main one, and the main one goes on after it") {
  CHECK_PASSES(beside(true, true));
  CHECK_BREAKS("global-race", beside(false, true));
  CHECK_BREAKS("global-race", beside(true, false));
}

TEST_CASE("a copy engine's copy races with a kernel of another rank") {
  CHECK_BREAKS("global-race", engine(Order::kNothing));
  CHECK_BREAKS("global-race", engine(Order::kFlagFirst));
  check_report(engine(Order::kNothing), "global-race",
               {"a copy of 4096 bytes from rank 0 to rank 1, issued at tests/emulator/machine/ranks_test.cpp",
                "into stream", "CTA (0,0,0) of rank 1"});
}

namespace {

struct Stage {
  alignas(128) int tile[kThreads];
  std::uint64_t full;
};
constexpr int kTileBytes = kThreads * sizeof(int);
constexpr ptx::LaunchShape kStaged{
    .grid = {}, .block = {kThreads}, .cluster = {}, .shared_bytes = sizeof(Stage)};

enum class Store { kWaits, kWaitsForReading, kSignalsFirst };

/// Stores a tile into a peer's memory with a bulk copy and says so.
__global__ void store_tile(int* data, std::uint32_t* flag, Store how) {
  auto& stage = ptx::dynamic_shared<Stage>();
  ptx::st_shared(stage.tile + threadIdx.x, static_cast<int>(threadIdx.x) + 7);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_store(data, stage.tile, kTileBytes);
  ptx::cp_async_bulk_commit_group();
  if (how == Store::kWaitsForReading) {
    ptx::cp_async_bulk_wait_group_read<0>();
  } else if (how == Store::kWaits) {
    ptx::cp_async_bulk_wait_group<0>();
  }
  ptx::st_release_sys(flag, 1);
  if (how != Store::kWaits) ptx::cp_async_bulk_wait_group<0>();
}

/// Waits for the flag and reads with a bulk copy.
__global__ void load_tile(const int* data, const std::uint32_t* flag, int* out, bool fences) {
  auto& stage = ptx::dynamic_shared<Stage>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&stage.full, 1);
    ptx::fence_mbarrier_init_release_cluster();
    while (ptx::ld_acquire_sys(flag) != 1) {
    }
    if (fences) ptx::fence_proxy_async();
    ptx::mbarrier_arrive_expect_tx(&stage.full, kTileBytes);
    ptx::cp_async_bulk(stage.tile, data, kTileBytes, &stage.full);
  }
  __syncthreads();
  ptx::mbarrier_wait_parity(&stage.full, 0, {"reader", "full", 0, 0});
  ptx::st_global(out + threadIdx.x, ptx::ld_shared(stage.tile + threadIdx.x));
}

/// `stores` or a thread's stores; `loads` or a thread's loads, with or without a proxy fence.
Outcome through_copies(bool stores, Store how, bool loads, bool fences) {
  World world(2);
  return outcome_of([&] {
    if (loads) {
      world.launch(1, load_tile, kStaged, world.data_of(1), world.flags_of(1), world.out_of(1), fences);
    } else {
      world.launch(1, receive, kOne, world.data_of(1), world.flags_of(1), world.out_of(1), Scope::kSys);
    }
    if (stores) {
      world.launch(0, store_tile, kStaged, world.data_of(1), world.flags_of(1), how);
    } else {
      world.launch(0, send, kOne, world.data_of(1), world.flags_of(1), Scope::kSys);
    }
    world.finish();
  });
}

}  // namespace

TEST_CASE("a bulk copy to a peer is complete behind wait_group, and a reading one needs a proxy fence") {
  CHECK_PASSES(through_copies(true, Store::kWaits, false, false));
  CHECK_PASSES(through_copies(true, Store::kWaits, true, true));
  CHECK_PASSES(through_copies(false, Store::kWaits, true, true));
}

TEST_CASE("a flag before the bulk copy to a peer is complete") {
  for (const Store how : {Store::kWaitsForReading, Store::kSignalsFirst})
    CHECK_BREAKS("store-not-waited", through_copies(true, how, false, false));
  check_report(through_copies(true, Store::kWaitsForReading, false, false), "store-not-waited",
               {"of rank 0", "of rank 1", "cp.async.bulk.wait_group 0 (without .read)"});
}

TEST_CASE("a bulk copy of what a peer wrote, without a proxy fence after the acquire") {
  for (const bool stores : {false, true})
    CHECK_BREAKS("proxy-fence", through_copies(stores, Store::kWaits, true, false));
  check_report(through_copies(true, Store::kWaits, true, false), "proxy-fence",
               {"rank 0 wrote", "of rank 1", "after the acquire"});
}

namespace {

__global__ void wait_for_flag(const std::uint32_t* flag, std::uint32_t value) {
  if (threadIdx.x == 0) wait(flag, value, Scope::kSys);
}

}  // namespace

TEST_CASE("ranks that wait for each other for ever are named, each with its flag") {
  const auto outcome = [] {
    World world(2);
    return outcome_of([&] {
      for (int rank : {0, 1})
        world.launch(rank, wait_for_flag, kOne, world.flags_of(static_cast<std::size_t>(rank)), 1u);
      world.finish();
    });
  };
  check_report(outcome(), "deadlock",
               {"rank     0", "rank     1", "flags of rank 0 + 0 holds 0", "flags of rank 1 + 0 holds 0"});
}

TEST_CASE("a rank that fails ends the others") {
  World world(3);
  const Outcome outcome = outcome_of([&] {
    world.launch(0, wait_for_flag, kOne, world.flags_of(0), 1u);
    world.launch(2, wait_for_flag, kOne, world.flags_of(2), 1u);
    world.launch(1, read_all, kOne, world.data_of(1) + 512, world.out_of(1));
    world.finish();
  });
  check_report(outcome, "global-out-of-bounds", {"of rank 1"});
  // The next run begins afresh.
  world.launch(0, fill_own, kOne, world.data_of(0));
  world.finish();
}

namespace {

Outcome leaves(bool waits) {
  World world(2);
  return outcome_of([&] {
    emulator::set_current_device(1);
    void* const memory = harness::device_allocate(4096, "inbox of rank 1");
    world.launch(0, fill_own, kOne, static_cast<int*>(memory));
    if (waits) ranks::finish_device(0);
    ranks::before_free(memory);
    harness::device_free(memory);
    world.finish();
  });
}

}  // namespace

TEST_CASE("a rank frees its memory only when its peers have done with it") {
  CHECK_PASSES(leaves(true));
  CHECK_BREAKS("peer-gone", leaves(false));
  check_report(leaves(false), "peer-gone", {"of rank 0", "inbox of rank 1"});
}

TEST_CASE("each rank may have a host thread") {
  World world(2);
  std::vector<std::thread> threads;
  std::vector<Outcome> outcomes(2);
  for (int rank : {0, 1}) {
    threads.emplace_back([&world, &outcomes, rank] {
      outcomes[static_cast<std::size_t>(rank)] = outcome_of([&] {
        const auto own = static_cast<std::size_t>(rank);
        emulator::set_current_device(rank);
        world.launch(rank, pass_on, kOne, world.data_of(own), world.data_of(1 - own), world.flags_of(own),
                     world.flags_of(1 - own), 1u);
        ranks::finish_device(rank);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes) CHECK(outcome.rule == "passed");
}

}  // namespace ranks_test
