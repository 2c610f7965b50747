// What reports say of who does not move on: a position in a ring, a loop of a warp, a CTA of a cluster, a map
// that is changed before its slot is free, a bound that is not looked at.
#include <cstdint>
#include <string>

#include "emulator/async/async_memory.h"
#include "emulator/hopper_test.h"
#include "ptx/tensormap.cuh"

namespace moved_on_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;
using ptx::TensorMap;

// ---- A ring

constexpr int kStages = 4;
constexpr int kInts = 32;

struct Ring {
  alignas(128) int stage[kStages][kInts];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

enum Position { kGoesOn, kStays, kBeginsAgain };

/// Thread 0 fills the ring twelve times; thread 32 reads. From the seventh time on the producer's position is
/// one that it had before: the same once more, or that of the beginning of this round.
__global__ void fills(const int* source, int position) {
  auto& shared = ptx::dynamic_shared<Ring>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], 1);
    }
    ptx::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  constexpr int kItems = 12;
  const auto parity = [](int i) { return static_cast<std::uint32_t>(i / kStages % 2); };
  for (int i = 0; i < kItems; ++i) {
    if (threadIdx.x == 0) {
      const int place = i < 7 || position == kGoesOn ? i : position == kStays ? i - 1 : i - 3;
      const int stage = place % kStages;
      ptx::mbarrier_wait_parity(&shared.empty[stage], parity(place) ^ 1, {"producer", "empty", stage, i});
      ptx::mbarrier_arrive_expect_tx(&shared.full[stage], sizeof(shared.stage[0]));
      ptx::cp_async_bulk(shared.stage[stage], source, sizeof(shared.stage[0]), &shared.full[stage]);
    } else if (threadIdx.x == 32) {
      const int stage = i % kStages;
      ptx::mbarrier_wait_parity(&shared.full[stage], parity(i), {"consumer", "full", stage, i});
      static_cast<void>(ptx::ld_shared(&shared.stage[stage][0]));
      ptx::fence_proxy_async_shared_cta();
      ptx::mbarrier_arrive(&shared.empty[stage]);
    }
  }
  __syncthreads();
}

Outcome run_fills(Position position) {
  const DeviceArray<int> source(std::vector<int>(kInts, 1), "source");
  return run(fills, one_cta(64, sizeof(Ring)), source.get(), position);
}

struct Halves {
  alignas(128) int stage[kStages][2][kInts];
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

/// Of the first eight items only half of the stage is filled. One thread of the warpgroup waits for these,
/// and hands them back; the others wait for the last four alone. `meets`: all meet in between.
__global__ void leaves_out(const int* source, bool meets) {
  auto& shared = ptx::dynamic_shared<Halves>();
  constexpr int kItems = 12;
  constexpr int kLeftOut = 8;
  const auto parity = [](int i) { return static_cast<std::uint32_t>(i / kStages % 2); };
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], 1);
    }
    ptx::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  for (int i = 0; threadIdx.x == 0 && i < kItems; ++i) {
    const int stage = i % kStages;
    constexpr std::uint32_t kBytes = sizeof(shared.stage[0][0]);
    ptx::mbarrier_wait_parity(&shared.empty[stage], parity(i) ^ 1, {"producer", "empty", stage, i});
    ptx::mbarrier_arrive_expect_tx(&shared.full[stage], i < kLeftOut ? kBytes : 2 * kBytes);
    for (int half = 0; half < (i < kLeftOut ? 1 : 2); ++half)
      ptx::cp_async_bulk(shared.stage[stage][half], source, kBytes, &shared.full[stage]);
  }
  if (threadIdx.x < 128) return;
  for (int i = 0; threadIdx.x == 128 && i < kLeftOut; ++i) {
    ptx::mbarrier_wait_parity(&shared.full[i % kStages], parity(i), {"consumer", "full", i % kStages, i});
    ptx::mbarrier_arrive(&shared.empty[i % kStages]);
  }
  if (meets) ptx::bar_sync(1, 128);
  for (int i = kLeftOut; i < kItems; ++i) {
    const int stage = i % kStages;
    ptx::mbarrier_wait_parity(&shared.full[stage], parity(i), {"consumer", "full", stage, i});
    static_cast<void>(ptx::ld_shared(&shared.stage[stage][1][threadIdx.x % kInts]));
    ptx::fence_proxy_async_shared_cta();
    ptx::bar_sync(2, 128);
    if (threadIdx.x == 128) ptx::mbarrier_arrive(&shared.empty[stage]);
  }
}

Outcome run_leaves_out(bool meets) {
  const DeviceArray<int> source(std::vector<int>(kInts, 1), "source");
  return run(leaves_out, one_cta(256, sizeof(Halves)), source.get(), meets);
}

// ---- A loop of a warp

/// The first of four intervals that has `index`, as a warp finds it; `wrong`: one that ends in front of it
/// counts, too, and is looked at again.
__global__ void searches(int index, bool wrong, int* out) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int through = 8 * (lane + 1);
  int end = 0;
  int found = 0;
  while (index >= end) {
    const unsigned behind = __ballot_sync(0xffffffffu, wrong ? index <= through : index < through);
    found = __ffs(static_cast<int>(behind)) - 1;
    end = __shfl_sync(0xffffffffu, through, found);
  }
  if (lane == 0) ptx::st_global(out, found);
}

/// A long loop of shuffles whose values are the same; `loads`: of elements one behind the other, or a counter
/// goes through the shuffles.
__global__ void takes_its_time(const int* zeros, int count, bool loads, int* out) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += __shfl_sync(0xffffffffu, loads ? ptx::ld_global(zeros + i) : i, 0);
  if (threadIdx.x == 0) ptx::st_global(out, sum);
}

// ---- A CTA of a cluster

struct alignas(1024) Tiles {
  bf16 tile[64][64];
  std::uint64_t full;
};

/// Each CTA of a cluster of two loads half a tile into both; the second one is through, or lends no hand.
__global__ void shares(TensorMap map, bool second_loads) {
  auto& shared = ptx::dynamic_shared<Tiles>();
  const auto rank = static_cast<int>(ptx::cluster_ctarank());
  make_barrier(&shared.full);
  cluster_sync();
  if (threadIdx.x == 0 && (rank == 0 || second_loads)) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, 64 * 64 * 2);
    ptx::cp_async_bulk_tensor_2d_multicast(shared.tile[rank * 32], &map, 0, rank * 32, &shared.full, 0b11);
    wait(&shared.full, 0);
  }
  cluster_sync();
}

Outcome run_shares(bool second_loads) {
  const DeviceArray<bf16> source(arange(64 * 64), "source");
  const TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(source.get(), 64, 64, 32, 64, Swizzle::k128B));
  const ptx::LaunchShape shape{.grid = {2}, .block = {32}, .cluster = {2}, .shared_bytes = sizeof(Tiles)};
  return run(shares, shape, map, second_loads);
}

// ---- Maps in slots

constexpr int kBoxRows = 16;
constexpr int kColumns = 64;

struct Maps {
  alignas(128) TensorMap map;
  alignas(128) bf16 tile[2][kBoxRows * kColumns];
  std::uint64_t full[2];   // the tile is there
  std::uint64_t made[2];   // the slot has a map
  std::uint64_t empty[2];  // the map in the slot is not used any more
};

/// Warp 0 makes four maps, in two slots; thread 32 loads a tile with each. `late`: a slot is waited for
/// behind the change.
__global__ void makes_maps(const TensorMap pattern, TensorMap* slots, bool late) {
  auto& shared = ptx::dynamic_shared<Maps>();
  const unsigned me = threadIdx.x;
  if (me == 0) {
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.made[i], 1);
      ptx::mbarrier_init(&shared.empty[i], 1);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (me < 8)
    ptx::st_shared(reinterpret_cast<uint4*>(&shared.map) + me, reinterpret_cast<const uint4*>(&pattern)[me]);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t slot = i % 2;
    const std::uint32_t parity = i / 2 % 2;
    if (me < 32) {
      __syncwarp();
      if (me == 0 && !late)
        ptx::mbarrier_wait_parity(&shared.empty[slot], parity ^ 1, {"maps", "empty", 0, 0});
      __syncwarp();
      ptx::tensormap_cp_fenceproxy_release_gpu(&slots[slot], &shared.map);
      if (me == 0 && late)
        ptx::mbarrier_wait_parity(&shared.empty[slot], parity ^ 1, {"maps", "empty", 0, 0});
      if (me == 0) ptx::mbarrier_arrive(&shared.made[slot]);
    } else if (me == 32) {
      wait(&shared.made[slot], parity);
      ptx::fence_proxy_tensormap_acquire_gpu(&slots[slot]);
      ptx::mbarrier_arrive_expect_tx(&shared.full[slot], sizeof(shared.tile[0]));
      ptx::cp_async_bulk_tensor_2d(shared.tile[slot], &slots[slot], 0, 0, &shared.full[slot]);
      wait(&shared.full[slot], parity);
      ptx::mbarrier_arrive(&shared.empty[slot]);
    }
  }
}

Outcome run_makes_maps(bool late) {
  const DeviceArray<bf16> rows(arange(kBoxRows * kColumns), "rows");
  const DeviceArray<TensorMap> slots(2, "slots");
  const TensorMap map = ptx::make_tensor_map(
      ptx::matrix_spec(rows.get(), kBoxRows, kColumns, kBoxRows, kColumns, Swizzle::kNone));
  return run(makes_maps, one_cta(64, sizeof(Maps)), map, slots.get(), late);
}

// ---- D

/// Each thread stores one element of a column of D.
__global__ void stores_rows(bf16* d, int rows, int columns, int column) {
  const auto row = static_cast<int>(threadIdx.x);
  if (row < rows) ptx::st_global(d + row * columns + column, bf16{});
}

emulator::Options with_d(int n) {
  emulator::Options options = emulator::options();
  options.n = n;
  options.k = 16;
  options.k_tile = 16;
  options.tile_m = 16;
  options.tile_n = 16;
  return options;
}

/// CTA 0 stores the tile of 16 x 16 at (16, 0) of a D that is 24 wide, CTA 1 the one at (0, 16), whose last
/// columns lie outside. Then CTA 0 goes on.
__global__ void stores_tiles(bf16* d, bool bounded, bool first_all) {
  const int lane = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0) {
    for (int i = lane; i < 256; i += 32)
      if (first_all || i % 16 < 8) ptx::st_global(d + (16 + i / 16) * 24 + i % 16, bf16{});
  } else {
    for (int i = lane; i < 256; i += 32)
      if (!bounded || i % 16 < 8) ptx::st_global(d + i / 16 * 24 + 16 + i % 16, bf16{});
  }
}

// ---- Places of another CTA

struct Places {
  std::uint64_t arrived;
  float4 sent[2][32];
};

/// CTA 0 sends CTA 1 three rows, where there are two places.
__global__ void sends(int rows) {
  auto& shared = ptx::dynamic_shared<Places>();
  const bool receives = ptx::cluster_ctarank() == 1;
  if (threadIdx.x == 0 && receives) {
    ptx::mbarrier_init(&shared.arrived, 1);
    ptx::fence_mbarrier_init_release_cluster();
    ptx::mbarrier_arrive_expect_tx(&shared.arrived, 2 * sizeof shared.sent[0]);
  }
  cluster_sync();
  for (int i = 0; !receives && i < rows; ++i) {
    const std::uint32_t to =
        ptx::shared_address(&shared.sent[0][threadIdx.x]) + static_cast<std::uint32_t>(i) * 512;
    ptx::st_async(ptx::mapa(to, 1), make_float4(1, 2, 3, 4),
                  ptx::mapa(ptx::shared_address(&shared.arrived), 1));
  }
  if (receives) ptx::mbarrier_wait_parity_cluster(&shared.arrived, 0, {"consumer", "arrived", 0, 0});
  cluster_sync();
}

// ---- What is loaded and not read

/// A tile is loaded twice into one place, and half of it, or all, is read.
__global__ void reads_a_part(TensorMap map, int rows) {
  auto& shared = ptx::dynamic_shared<Tiles>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::fence_mbarrier_init_release_cluster();
    for (std::uint32_t i = 0; i < 2; ++i) {
      ptx::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.tile);
      ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, 0, &shared.full);
      wait(&shared.full, i);
      for (int row = 0; row < rows; ++row) {
        for (int unit = 0; unit < 8; ++unit)
          static_cast<void>(ptx::ld_shared(reinterpret_cast<const uint4*>(&shared.tile[row][unit * 8])));
      }
      ptx::fence_proxy_async_shared_cta();
    }
  }
}

}  // namespace

TEST_CASE("load-overwrites: one phase lets a producer fill a stage twice") {
  CHECK_PASSES(run_fills(kGoesOn));
  CHECK_SAYS("load-overwrites", "Another stage is due: the thread's fill state", run_fills(kStays));
  CHECK_SAYS("load-overwrites", "let this thread fill the stage with", run_fills(kBeginsAgain));
}

TEST_CASE("load-overwrites: the thread that waits for all is far behind") {
  CHECK_PASSES(run_leaves_out(true));
  CHECK_SAYS("load-overwrites", "after waits that not all of its threads execute: thread 128 ",
             run_leaves_out(false));
}

TEST_CASE("livelock: a warp goes round with the same values") {
  const DeviceArray<int> out(1, "out");
  CHECK(run(searches, one_cta(32), 16, false, out.get()).rule == "passed");
  CHECK(out.host().front() == 2);
  CHECK(run(searches, one_cta(32), 15, true, out.get()).rule == "passed");
  check_report(run(searches, one_cta(32), 16, true, out.get()), "livelock",
               {"__ballot_sync at tests/emulator/report/moved_on_test.cpp:", " gives 0xfffffffe, ",
                " gives 0x10 (in the lowest lane)"});
}

TEST_CASE("livelock: a warp that takes its time", "[slow]") {
  constexpr int kCount = 130'000;
  const DeviceArray<int> zeros(std::vector<int>(kCount), "zeros");
  const DeviceArray<int> out(1, "out");
  for (const bool loads : {false, true})
    CHECK(run(takes_its_time, one_cta(32), zeros.get(), kCount, loads, out.get()).rule == "passed");
}

TEST_CASE("deadlock: a CTA of a cluster that is through loads nothing for its peer") {
  CHECK_PASSES(run_shares(true));
  CHECK_SAYS("deadlock", "missing  the copies of CTA (1,0,0) into CTA (0,0,0): it has issued none at all",
             run_shares(false));
}

TEST_CASE("tensormap-in-use: a slot is waited for behind its change") {
  CHECK_PASSES(run_makes_maps(false));
  CHECK_SAYS("tensormap-in-use", "a wait of warp 0 for phase 0 (parity 0) of mbarrier empty[0]",
             run_makes_maps(true));
}

TEST_CASE("global-out-of-bounds: a row behind the last one of D, or the end of a row") {
  const emulator::ScopedOptions scope(with_d(24));
  const DeviceArray<bf16> d(std::vector<bf16>(24 * 20), "D");
  CHECK(run(stores_rows, one_cta(32), d.get(), 20, 24, 23).rule == "passed");
  check_report(run(stores_rows, one_cta(32), d.get(), 21, 24, 23), "global-out-of-bounds",
               {"missing  a bound along M: row 20 lies after the last one, 19"});
  const Outcome behind = run(stores_rows, one_cta(32), d.get(), 20, 24, 25);
  CHECK(contains(behind.report, "missing  a bound along M or along N: row 20 lies after the last one, 19"));
}

TEST_CASE("global-race: a tile that hangs over the end of a row stores what lies behind it") {
  emulator::Options options = with_d(24);
  const emulator::ScopedOptions scope(options);
  const ptx::LaunchShape shape{.grid = {2}, .block = {32}};
  const DeviceArray<bf16> d(std::vector<bf16>(24 * 40), "D");
  for (const bool all : {false, true}) {
    CHECK(run(stores_tiles, shape, d.get(), true, all).rule == "passed");
    check_report(
        run(stores_tiles, shape, d.get(), false, all), "global-race",
        {"missing  a bound along N: row 16, column ", "The last tile extends beyond D by 8 columns"});
  }
}

TEST_CASE("cluster-address: a place behind the end of the receiver") {
  const ptx::LaunchShape shape{.grid = {2}, .block = {32}, .cluster = {2}, .shared_bytes = sizeof(Places)};
  CHECK_PASSES(run(sends, shape, 2));
  CHECK_SAYS("cluster-address", "to sent[1][", run(sends, shape, 3));
  CHECK_SAYS("cluster-address", "(and after sent[])", run(sends, shape, 3));
}

TEST_CASE("notes on loads: what was overwritten and never read") {
  const DeviceArray<bf16> source(arange(64 * 64), "source");
  const TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(source.get(), 64, 64, 64, 64, Swizzle::k128B));
  const auto note = [&](int rows) {
    emulator::take_outside_loads();
    CHECK(run(reads_a_part, one_cta(32, sizeof(Tiles)), map, rows).rule == "passed");
    return emulator::take_outside_loads();
  };
  CHECK(note(64).empty());
  check_text(note(32), {"4096 bytes from tile[32] (shared + 0x1000) on, of the box of 64 x 64 at (0, 0)"});
}

}  // namespace moved_on_test
