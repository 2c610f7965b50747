// What reports say of the cause: whose arrival is missing, what an earlier launch left, which box is too
// wide.
#include "emulator/async/async_memory.h"
#include "emulator/hopper_test.h"
#include "emulator/report/causes/flags.h"
#include "ptx/atomic.cuh"

namespace named_causes_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;

// ---- Bytes that come with another stage

struct Halves {
  struct Stage {
    alignas(128) int values[32];
    int scales[32];
  };
  Stage stage[2];
  std::uint64_t full[2];
};

/// Two halves arrive, the scales of both with the first one. `scales`: where they are read.
__global__ void scales_of_halves(const int* source, int scales, int* out) {
  auto& shared = ptx::dynamic_shared<Halves>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) ptx::mbarrier_init(&shared.full[i], 1);
    ptx::fence_proxy_async_shared_cta();
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_arrive_expect_tx(&shared.full[i], i == 0 ? 256 : 128);
      ptx::cp_async_bulk(shared.stage[i].values, source, 128, &shared.full[i]);
      if (i == 0) ptx::cp_async_bulk(shared.stage[i].scales, source, 128, &shared.full[i]);
    }
  }
  __syncthreads();
  for (int i = 0; i < 2; ++i) wait(&shared.full[i], 0);
  ptx::st_global(out + threadIdx.x, ptx::ld_shared(&shared.stage[1].values[threadIdx.x]) +
                                        ptx::ld_shared(&shared.stage[scales].scales[threadIdx.x]));
}

// ---- An entry that mbarriers guard

struct Entries {
  std::uint64_t enqueued;
  std::uint64_t dequeued;
  int entry;
};

enum EntryFault { kNone, kArrivesBeforeReading, kNoSyncwarp, kCountTooSmall };

/// Thread 64 hands three numbers to two warps, one after the other.
__global__ void entries(int fault, int* out) {
  auto& shared = ptx::dynamic_shared<Entries>();
  const bool first_lane = threadIdx.x % 32 == 0;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.enqueued, 1);
    ptx::mbarrier_init(&shared.dequeued, fault == kCountTooSmall ? 1 : 2);
  }
  __syncthreads();
  if (threadIdx.x == 64) {
    for (int round = 0; round < 3; ++round) {
      wait(&shared.dequeued, 1u - static_cast<unsigned>(round) % 2);
      ptx::st_shared(&shared.entry, round);
      ptx::mbarrier_arrive(&shared.enqueued);
    }
  } else if (threadIdx.x < 64) {
    int sum = 0;
    for (int round = 0; round < 3; ++round) {
      wait(&shared.enqueued, static_cast<unsigned>(round) % 2);
      if (fault == kArrivesBeforeReading) {
        __syncwarp();
        if (first_lane) ptx::mbarrier_arrive(&shared.dequeued);
      }
      sum += ptx::ld_shared(&shared.entry);
      if (fault == kNone || fault == kCountTooSmall) __syncwarp();
      if (fault != kArrivesBeforeReading && first_lane) ptx::mbarrier_arrive(&shared.dequeued);
    }
    ptx::st_global(out + threadIdx.x, sum);
  }
}

struct Stages {
  std::uint64_t full[2];
  std::uint64_t empty[2];
  int numbers[2][32];
};

/// A warp fills two stages, and one of its lanes tells another warp, which reads them.
__global__ void filled_by_lanes(bool syncs, int* out) {
  auto& shared = ptx::dynamic_shared<Stages>();
  const unsigned lane = threadIdx.x % 32;
  for (int stage = 0; threadIdx.x == 0 && stage < 2; ++stage) {
    ptx::mbarrier_init(&shared.full[stage], 1);
    ptx::mbarrier_init(&shared.empty[stage], 32);
  }
  __syncthreads();
  for (int round = 0; round < 4; ++round) {
    const int stage = round % 2;
    const unsigned parity = static_cast<unsigned>(round) / 2 % 2;
    if (threadIdx.x < 32) {
      wait(&shared.empty[stage], parity ^ 1);
      ptx::st_shared(&shared.numbers[stage][lane], round);
      if (syncs) __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(&shared.full[stage]);
    } else {
      wait(&shared.full[stage], parity);
      ptx::st_global(out + round * 32 + lane, ptx::ld_shared(&shared.numbers[stage][31 - lane]));
      ptx::mbarrier_arrive(&shared.empty[stage]);
    }
  }
}

// ---- Counters

/// Meets at a counter that it leaves as it is, or sets back.
__global__ void counts_to_one(std::uint32_t* counters, int sets_back) {
  ptx::atom_add_acq_rel_gpu(&counters[1], 1u);
  while (ptx::ld_acquire_gpu(&counters[1]) != 1) {
  }
  if (sets_back) ptx::st_relaxed_gpu(&counters[1], 0u);
}

/// The last of the CTAs to come sets the counter back, or does not.
__global__ void counts_ctas(std::uint32_t* counter, int sets_back) {
  if (ptx::atom_add_acq_rel_gpu(counter, 1u) == gridDim.x - 1 && sets_back) ptx::st_relaxed_gpu(counter, 0u);
}

/// CTA 0 writes a slot and says so; its other warpgroup writes the same slot again, or one of its own; CTA 1
/// reads the first.
__global__ void two_results(float* slots, std::uint32_t* flags, int distance) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) {
      ptx::st_global(slots, 1.0f);
      ptx::st_release_gpu(&flags[0], 1u);
    }
    __syncthreads();
    if (threadIdx.x == 128) {
      ptx::st_global(slots + distance, 2.0f);
      ptx::st_relaxed_gpu(&flags[1], 1u);
    }
  } else if (threadIdx.x == 0) {
    while (ptx::ld_relaxed_gpu(&flags[1]) != 1) {
    }
    while (ptx::ld_acquire_gpu(&flags[0]) != 1) {
    }
    ptx::st_global(slots + 64, ptx::ld_global(slots));
  }
}

// ---- Stores

struct alignas(1024) Tile {
  bf16 d[64][64];
};

/// Each CTA stores a box of 64 rows, `distance` columns apart.
__global__ void stores_beside(ptx::TensorMap d_map, int distance) {
  auto& shared = ptx::dynamic_shared<Tile>();
  fill_tile(shared.d);
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_tensor_2d_store(&d_map, static_cast<int>(blockIdx.x) * distance, 0, shared.d);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

/// One thread stores, and `waiting` waits for it.
__global__ void waits_for_another(ptx::TensorMap d_map, unsigned waiting) {
  auto& shared = ptx::dynamic_shared<Tile>();
  fill_tile(shared.d);
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor_2d_store(&d_map, 0, 0, shared.d);
    ptx::cp_async_bulk_commit_group();
  }
  if (threadIdx.x == waiting) ptx::cp_async_bulk_wait_group<0>();
  __syncthreads();
}

struct alignas(1024) Shifted {
  bf16 tile[2][64][64];
  std::uint64_t full;
};

/// Loads a box with the 128-byte swizzle to a place `rows` of 128 bytes behind a multiple of 1024.
__global__ void loads_shifted(ptx::TensorMap map, int rows) {
  auto& shared = ptx::dynamic_shared<Shifted>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::fence_mbarrier_init_release_cluster();
    ptx::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.tile[0]);
    ptx::cp_async_bulk_tensor_2d(shared.tile[0][rows], &map, 0, 0, &shared.full);
    wait(&shared.full, 0);
  }
}

// ---- Barriers

/// Each warpgroup meets at a barrier of 128 threads: number 1, or one of its own.
__global__ void meets_by_warpgroup(int own) {
  const unsigned warpgroup = threadIdx.x / 128;
  ptx::bar_sync(own ? 1 + warpgroup : 1, 128);
}

struct Cluster {
  std::uint64_t full;
};

enum ClusterFault { kClusterNone, kNoWaitAtTheEnd, kRelaxedWithoutFence };

/// CTA 1 arrives at a barrier of CTA 0.
__global__ void arrives_in_peer(int fault) {
  auto& shared = ptx::dynamic_shared<Cluster>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    if (fault != kRelaxedWithoutFence) ptx::fence_mbarrier_init_release_cluster();
  }
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
  if (ptx::cluster_ctarank() == 1 && threadIdx.x == 32)
    ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(&shared.full), 0));
  ptx::barrier_cluster_arrive();
  if (fault != kNoWaitAtTheEnd) ptx::barrier_cluster_wait();
}

/// A thread passes a word to the others of its CTA.
__global__ void word_behind_cluster_barrier(bool relaxed) {
  auto& shared = ptx::dynamic_shared<Cluster>();
  if (threadIdx.x == 0) ptx::st_shared(&shared.full, std::uint64_t{7});
  if (relaxed) {
    ptx::barrier_cluster_arrive_relaxed();
  } else {
    ptx::barrier_cluster_arrive();
  }
  ptx::barrier_cluster_wait();
  ptx::ld_shared(&shared.full);
}

struct alignas(1024) Ring {
  bf16 tile[64][64];
  std::uint64_t full;
  std::uint64_t empty;
};
constexpr std::uint32_t kBox = 64 * 64 * 2;

enum ReleaseFault { kReleaseNone, kOwnCtaOnly };

/// CTA 0 loads two tiles into both CTAs of a cluster, which say that they have read the first; or one does.
__global__ void multicasts(ptx::TensorMap map, int fault, float* sums) {
  auto& shared = ptx::dynamic_shared<Ring>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::mbarrier_init(&shared.empty, fault == kOwnCtaOnly ? 1 : 2);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    const auto parity = static_cast<unsigned>(round) % 2;
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(&shared.full, kBox);
      if (rank == 0) {
        wait(&shared.empty, 1 - parity);
        ptx::cp_async_bulk_tensor_2d_multicast(shared.tile, &map, 0, 64 * round, &shared.full, 3);
      }
    }
    wait(&shared.full, parity);
    sum += gemm::to_float(ptx::ld_shared(&shared.tile[threadIdx.x][0]));
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0 && (rank == 0 || fault != kOwnCtaOnly))
      ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(&shared.empty), 0));
  }
  ptx::st_global(sums + blockIdx.x * blockDim.x + threadIdx.x, sum);
  cluster_sync();
}

enum TwiceFault {
  kTwiceNone,
  kOneBuffer,
  kTwoThreads,
  kNeverWaits,
  kTwoStores,    // no fault: each tile goes to two matrices
  kBehindCommit  // the second store stands behind the commit of the first
};

/// Three tiles pass through two buffers, or one, and are stored by one thread, or one for each buffer.
__global__ void stores_in_turn(ptx::TensorMap d_map, ptx::TensorMap second_map, int fault) {
  auto& shared = ptx::dynamic_shared<Shifted>();
  for (int round = 0; round < 3; ++round) {
    const int buffer = fault == kOneBuffer ? 0 : round % 2;
    const bool stores = static_cast<int>(threadIdx.x) == (fault == kTwoThreads ? 32 * buffer : 0);
    if (stores && fault != kNeverWaits) ptx::cp_async_bulk_wait_group_read<1>();
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < 64 * 64; i += static_cast<int>(blockDim.x))
      ptx::st_shared(&shared.tile[buffer][i / 64][i % 64], gemm::to_bf16(1));
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    if (!stores) continue;
    ptx::cp_async_bulk_tensor_2d_store(&d_map, 0, 64 * round, shared.tile[buffer]);
    if (fault == kTwoStores)
      ptx::cp_async_bulk_tensor_2d_store(&second_map, 0, 64 * round, shared.tile[buffer]);
    ptx::cp_async_bulk_commit_group();
    if (fault == kBehindCommit)
      ptx::cp_async_bulk_tensor_2d_store(&second_map, 0, 64 * round, shared.tile[buffer]);
  }
  if (fault == kBehindCommit) ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

struct alignas(128) TakenInTurn {
  int stage[4][32];
  std::uint64_t full[4];
  std::uint64_t empty[4];
  std::uint64_t order[2];
};

enum TurnFault { kTurnNone, kLetsInEarly, kStateAnew };

/// One thread fills a ring of four stages; two warpgroups read it in turns of nine items, which an mbarrier
/// for each opens.
__global__ void reads_in_turns(const int* source, int fault) {
  constexpr int kItems = 9;
  auto& shared = ptx::dynamic_shared<TakenInTurn>();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], 1);
    }
    for (std::uint64_t& order : shared.order) ptx::mbarrier_init(&order, 1);
    ptx::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  const auto phase = [](int i) { return static_cast<std::uint32_t>(i / 4); };
  if (threadIdx.x == 256) {
    for (int i = 0; i < 4 * kItems; ++i) {
      ptx::mbarrier_wait_parity(&shared.empty[i % 4], (phase(i) & 1) ^ 1,
                                {"producer", "empty", i % 4, i % kItems});
      ptx::mbarrier_arrive_expect_tx(&shared.full[i % 4], sizeof(shared.stage[0]));
      ptx::cp_async_bulk(shared.stage[i % 4], source, sizeof(shared.stage[0]), &shared.full[i % 4]);
    }
  }
  for (int turn = warpgroup; warpgroup < 2 && turn < 4; turn += 2) {
    const auto before = static_cast<std::uint32_t>(turn / 2) & 1;
    ptx::mbarrier_wait_parity(&shared.order[warpgroup], warpgroup == 0 ? before ^ 1 : before,
                              {"consumer", "order", warpgroup, 0});
    for (int item = 0; item < kItems; ++item) {
      const int at = kItems * (fault == kStateAnew ? turn % 2 : turn) + item;
      ptx::mbarrier_wait_parity(&shared.full[at % 4], phase(at) & 1, {"consumer", "full", at % 4, item});
      ptx::ld_shared(&shared.stage[at % 4][threadIdx.x % 32]);
      ptx::fence_proxy_async_shared_cta();
      ptx::bar_sync(1 + static_cast<unsigned>(warpgroup), 128);
      if (threadIdx.x % 128 != 0) continue;
      ptx::mbarrier_arrive(&shared.empty[at % 4]);
      if (item == (fault == kLetsInEarly ? 0 : kItems - 1) && turn < 3)
        ptx::mbarrier_arrive(&shared.order[1 - warpgroup]);
    }
  }
  __syncthreads();
}

struct alignas(1024) TwoRings {
  bf16 tile[64][64];
  struct Barriers {
    std::uint64_t full[1];
    std::uint64_t empty[1];
  } ring, source;
};

/// A loader fills a tile twice, another thread stores it from there and releases it: behind its wait, or when
/// that has left the store under way.
__global__ void releases_store(ptx::TensorMap from, ptx::TensorMap to, int early) {
  auto& shared = ptx::dynamic_shared<TwoRings>();
  if (threadIdx.x == 0) {
    for (TwoRings::Barriers* ring : {&shared.ring, &shared.source}) {
      ptx::mbarrier_init(&ring->full[0], 1);
      ptx::mbarrier_init(&ring->empty[0], 1);
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  for (int round = 0; round < 2; ++round) {
    const auto parity = static_cast<unsigned>(round);
    if (threadIdx.x == 32) {
      wait(&shared.source.empty[0], 1 - parity);
      ptx::mbarrier_arrive_expect_tx(&shared.source.full[0], kBox);
      ptx::cp_async_bulk_tensor_2d(shared.tile, &from, 0, 64 * round, &shared.source.full[0]);
    } else if (threadIdx.x == 0) {
      wait(&shared.source.full[0], parity);
      ptx::cp_async_bulk_tensor_2d_store(&to, 0, 64 * round, shared.tile);
      ptx::cp_async_bulk_commit_group();
      early ? ptx::cp_async_bulk_wait_group_read<1>() : ptx::cp_async_bulk_wait_group_read<0>();
      ptx::mbarrier_arrive(&shared.source.empty[0]);
    }
  }
  ptx::cp_async_bulk_wait_group<0>();
}

struct Slots {
  std::uint64_t order;
  int slot[128];
};

/// Each thread reads what another one wrote, behind a barrier of the warpgroup or before it. All have waited
/// for their turn before.
__global__ void reads_before_barrier(int before, int* out) {
  auto& shared = ptx::dynamic_shared<Slots>();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) ptx::mbarrier_init(&shared.order, 1);
  __syncthreads();
  ptx::mbarrier_wait_parity(&shared.order, 1, {"consumer", "epilogue order", 0, 0});
  ptx::st_shared(&shared.slot[thread], thread);
  if (!before) ptx::bar_sync(1, 128);
  const int read = ptx::ld_shared(&shared.slot[127 - thread]);
  if (before) ptx::bar_sync(1, 128);
  ptx::st_global(out + thread, read);
}

/// Two CTAs meet at a counter; one that has no work may not come.
__global__ void meets_at_counter(std::uint32_t* counter, int all) {
  if (blockIdx.x == 1 && !all) return;
  ptx::atom_add_acq_rel_gpu(counter, 1u);
  while (ptx::ld_acquire_gpu(counter) != 2) {
  }
}

/// Two CTAs meet three times; CTA 1 does so twice and leaves with `left` arrivals.
__global__ void leaves_counter(std::uint32_t* counter, std::uint32_t left) {
  const std::uint32_t times = blockIdx.x == 1 ? 2 : 3;
  for (std::uint32_t i = 1; i <= times; ++i) {
    ptx::atom_add_acq_rel_gpu(counter, 1u);
    while (ptx::ld_acquire_gpu(counter) < 2 * i) {
    }
  }
  if (blockIdx.x == 1) ptx::atom_add_acq_rel_gpu(counter, left);
}

/// CTA 0 sets a flag for CTA 1, whose warps poll it: one for both, or each for itself.
__global__ void lowers_flag(std::uint32_t* flag, int each) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0) ptx::st_release_gpu(flag, 1u);
    return;
  }
  if (threadIdx.x == 0 || (each && threadIdx.x == 32)) {
    while (ptx::ld_acquire_gpu(flag) == 0) {
    }
    ptx::st_relaxed_gpu(flag, 0u);
  }
  __syncthreads();
}

/// A phase ends with a copy, or by an arrival alone.
__global__ void reads_what_came(ptx::TensorMap map, int loads, float* out) {
  auto& shared = ptx::dynamic_shared<Ring>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::fence_mbarrier_init_release_cluster();
    if (loads) {
      ptx::mbarrier_arrive_expect_tx(&shared.full, kBox);
      ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, 0, &shared.full);
    } else {
      ptx::mbarrier_arrive(&shared.full);
    }
  }
  __syncthreads();
  wait(&shared.full, 0);
  ptx::st_global(out + threadIdx.x, gemm::to_float(ptx::ld_shared(&shared.tile[threadIdx.x][0])));
}

}  // namespace

TEST_CASE("shared-uninitialised: bytes that came with another stage") {
  const DeviceArray<int> source(std::vector<int>(32, 1), "source");
  const DeviceArray<int> out(32, "out");
  CHECK_PASSES(run(scales_of_halves, one_cta(32, sizeof(Halves)), source.get(), 0, out.get()));
  CHECK(reports_that_say("shared-uninitialised",
                         "missing  a copy into stage[1].scales. One was issued into stage[0].scales", [&] {
                           return run(scales_of_halves, one_cta(32, sizeof(Halves)), source.get(), 1,
                                      out.get());
                         }) > 50);
}

TEST_CASE("store-source-overwritten: a wait is there, and what it leaves") {
  DeviceArray<bf16> d(std::vector<bf16>(192 * 64), "D");
  DeviceArray<bf16> second(std::vector<bf16>(192 * 64), "E");
  const auto map_of = [](DeviceArray<bf16>& matrix) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix.get(), 192, 64, 64, 64, Swizzle::kNone));
  };
  const std::string rule = "store-source-overwritten";
  const auto run_stores = [&](int fault) {
    return run(stores_in_turn, one_cta(64, sizeof(Shifted)), map_of(d), map_of(second), fault);
  };
  CHECK_PASSES(run_stores(kTwiceNone));
  CHECK_PASSES(run_stores(kTwoStores));
  const auto says = [&](int fault, const std::string& text) { CHECK_SAYS(rule, text, run_stores(fault)); };
  says(kOneBuffer, "when it had committed 1 group: it leaves group 1 in flight");
  says(kOneBuffer,
       "  missing  cp.async.bulk.wait_group.read<0> by thread (0,0,0) (warp 0, lane 0) of CTA (0,0,0) "
       "instead of wait_group.read<1>, which leaves this store in flight, and a barrier after it, before the "
       "write at ");
  says(kTwoThreads, "  groups   thread (32,0,0) (warp 1, lane 0) of CTA (0,0,0) has committed 1 of its own");
  says(kNeverWaits, "  missing  cp.async.bulk.wait_group.read by thread (0,0,0)");
  says(kBehindCommit, "came after the commit that covers the store of the same box at ");
  says(kBehindCommit,
       "so it is in group 2, with the stores of the next box, and the very last store is in no group");
  CHECK(!contains(run_stores(kBehindCommit).report, "wait_group.read<0>"));
}

TEST_CASE("load-overwrites: what let a reader in too early, and the stage that it should have waited at") {
  const DeviceArray<int> source(std::vector<int>(32, 1), "source");
  const auto run_turns = [&](int fault) {
    return run(reads_in_turns, one_cta(288, sizeof(TakenInTurn)), source.get(), fault);
  };
  CHECK_PASSES(run_turns(kTurnNone));
  CHECK(schedules_that_say(
            "load-overwrites",
            {"  missing  a later arrival at mbarrier order[1] ",
             "let this thread proceed before that thread's own warpgroup had waited for phase 1"},
            {"the stage is wrong"}, [&] { return run_turns(kLetsInEarly); }) > 0);
  CHECK(schedules_that_say("load-overwrites", {"which delivers k-tile 0: the stage is wrong, not the parity"},
                           {"let this thread proceed"}, [&] { return run_turns(kStateAnew); }) > 0);
}

TEST_CASE("load-overwrites: a buffer is released when its store may still be reading it") {
  const DeviceArray<bf16> c(arange(128 * 64), "C");
  DeviceArray<bf16> d(std::vector<bf16>(128 * 64), "D");
  const auto map = [](const bf16* matrix) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, 128, 64, 64, 64, Swizzle::k128B));
  };
  const auto run_release = [&](int early) {
    return run(releases_store, one_cta(64, sizeof(TwoRings)), map(c.get()), map(d.get()), early);
  };
  CHECK_PASSES(run_release(0));
  const auto says = [&](const std::string& text) { CHECK_SAYS("load-overwrites", text, run_release(1)); };
  says("of mbarrier source.empty[0] (shared + 0x2018); these arrivals ended phase 0 there:");
  says("  missing  cp.async.bulk.wait_group.read<0> by thread (0,0,0)");
  says(", which releases the buffer");
}

TEST_CASE("shared-race: the barrier of the warpgroup stands behind the read") {
  DeviceArray<int> out(128);
  const auto run_reads = [&](int before) {
    return run(reads_before_barrier, one_cta(128, sizeof(Slots)), before, out.get());
  };
  CHECK_PASSES(run_reads(0));
  CHECK_BREAKS("shared-race", run_reads(1));
  CHECK(schedules_that_say("shared-race", {"follows both; it, or another barrier, belongs between them"},
                           {"a wait for the arrival"}, [&] { return run_reads(1); }) > 0);
}

// Slow under the sanitizers, which keep addresses on the stack that differ at every poll: no circle closes.
TEST_CASE("livelock: a CTA has returned and never added to a counter", "[slow]") {
  const auto run_meeting = [](int all) {
    DeviceArray<std::uint32_t> counter(std::vector<std::uint32_t>(4, 0), "counter");
    return run(meets_at_counter, {.grid = {2}, .block = {1}, .co_resident = true}, counter.get(), all);
  };
  CHECK_PASSES(run_meeting(1));
  CHECK_SAYS("livelock", "; CTA (1,0,0) has returned and never added to it", run_meeting(0));
}

TEST_CASE("livelock: a CTA leaves a counter with too few arrivals", "[slow]") {
  const auto run_leaving = [](std::uint32_t left) {
    DeviceArray<std::uint32_t> counter(std::vector<std::uint32_t>(4, 0), "counter");
    return run(leaves_counter, {.grid = {2}, .block = {1}, .co_resident = true}, counter.get(), left);
  };
  CHECK_PASSES(run_leaving(1));
  CHECK_SAYS("livelock",
             "CTA (0,0,0), which waits there, has added to it 3 times; CTA (1,0,0) has added to it "
             "2 times and returned. Its addition at tests/emulator/report/named_causes_test.cpp",
             run_leaving(0));
}

TEST_CASE("livelock: a flag is lowered before a thread of the same CTA has seen it", "[slow]") {
  const auto run_lowering = [](int each) {
    DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>(4, 0), "flag");
    return run(lowers_flag, {.grid = {2}, .block = {64}, .co_resident = true}, flag.get(), each);
  };
  CHECK_PASSES(run_lowering(0));
  CHECK_SAYS(
      "livelock",
      "a barrier between the polls and the store that lowers flag + 0: a thread of CTA (1,0,0) stored 0",
      run_lowering(1));
}

TEST_CASE("shared-uninitialised: the phase that was waited for brought nothing") {
  const DeviceArray<bf16> a(arange(64 * 64), "A");
  DeviceArray<float> out(64);
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 64, 64, 64, 64, Swizzle::k128B));
  const auto run_reads = [&](int loads) {
    return run(reads_what_came, one_cta(64, sizeof(Ring)), map, loads, out.get());
  };
  CHECK_PASSES(run_reads(1));
  CHECK_SAYS("shared-uninitialised",
             "for phase 0 of mbarrier full (shared + 0x2000), in which no copy was issued", run_reads(0));
}

TEST_CASE("shared-race: an entry that mbarriers guard is written while it is read") {
  DeviceArray<int> out(64);
  const auto run_entries = [&](int fault) {
    return run(entries, one_cta(96, sizeof(Entries)), fault, out.get());
  };
  CHECK_PASSES(run_entries(kNone));
  const std::string race = "shared-race";
  CHECK_SAYS(race, "mbarrier dequeued", run_entries(kArrivesBeforeReading));
  CHECK_SAYS(race, " after the read at tests/emulator/report/named_causes_test.cpp",
             run_entries(kArrivesBeforeReading));
  CHECK_SAYS(race, "  missing  __syncwarp between the read at ", run_entries(kNoSyncwarp));
  CHECK_SAYS(race, "mbarrier dequeued (shared + 0x8)", run_entries(kCountTooSmall));
}

TEST_CASE("shared-race: a lane arrives for a warp whose other lanes have not written") {
  DeviceArray<int> out(4 * 32);
  const auto run_filled = [&](bool syncs) {
    return run(filled_by_lanes, one_cta(64, sizeof(Stages)), syncs, out.get());
  };
  CHECK_PASSES(run_filled(true));
  CHECK(
      schedules_that_say("shared-race",
                         {"  missing  __syncwarp between the write at ", "lane 0 arrived for warp 0 before"},
                         {"a wait for the arrival of warp 1"}, [&] { return run_filled(false); }) > 0);
}

TEST_CASE("livelock: a counter that the launch before has not set back") {
  emulator::Options options;
  options.os_threads = 1;
  const emulator::ScopedOptions scope(options);
  DeviceArray<std::uint32_t> counters(std::vector<std::uint32_t>(4, 0), "counters");
  CHECK(run(counts_to_one, one_cta(1), counters.get(), 1).rule == "passed");
  CHECK(run(counts_to_one, one_cta(1), counters.get(), 0).rule == "passed");
  check_report(
      run(counts_to_one, one_cta(1), counters.get(), 0), "livelock",
      {"counters + 4 held 1 when this launch began: the previous launch, which had found 0, left it there",
       "CTA (0,0,0) changed it 1 time, most recently at tests/emulator/report/named_causes_test.cpp"});
  // A launch that began with it has not left it.
  check_report(run(counts_to_one, one_cta(1), counters.get(), 0), "livelock", {}, {"the previous launch"});
}

TEST_CASE("global-race: two results in one slot") {
  const auto run_results = [](int distance) {
    DeviceArray<float> slots(std::vector<float>(128, 0.0f), "slots");
    DeviceArray<std::uint32_t> flags(std::vector<std::uint32_t>(2, 0), "flags");
    return run(two_results, {.grid = {2}, .block = {256}, .co_resident = true}, slots.get(), flags.get(),
               distance);
  };
  CHECK(run_results(32).rule == "passed");
  check_report(run_results(0), "global-race",
               {"a separate slot for each of two results: warpgroup 0 of CTA (0,0,0)"}, {"a separate flag"});
}

TEST_CASE("store-not-waited: a box that reaches into the next tile of D") {
  DeviceArray<bf16> d(std::vector<bf16>(64 * 96), "D");
  emulator::Options options = emulator::options();
  options.n = 96;
  options.tile_m = 64;
  options.tile_n = 48;
  const emulator::ScopedOptions scope(options);
  const auto run_stores = [&](int box) {
    return run(stores_beside, {.grid = {2}, .block = {128}, .shared_bytes = sizeof(Tile)},
               ptx::make_tensor_map(ptx::matrix_spec(d.get(), 64, 96, 64, box, Swizzle::kNone)), 48);
  };
  CHECK(run_stores(48).rule == "passed");
  check_report(run_stores(64), "store-not-waited",
               {"of CTA (0,0,0): box of 64 x 64 at (0, 0) of D begins in tile (0, 0) of D",
                "reaches 16 columns into the next one"},
               {"a work tile must go to only one CTA"});
}

TEST_CASE("exit-in-flight: another thread waits for the stores of one") {
  DeviceArray<bf16> d(std::vector<bf16>(64 * 64), "D");
  const auto run_stores = [&](unsigned waiting) {
    return run(waits_for_another, one_cta(128, sizeof(Tile)),
               ptx::make_tensor_map(ptx::matrix_spec(d.get(), 64, 64, 64, 64, Swizzle::k128B)), waiting);
  };
  CHECK(run_stores(0).rule == "passed");
  check_report(run_stores(32), "exit-in-flight",
               {"box of 64 x 64 at (0, 0) of D from d[0] (shared + 0x0)",
                "thread (32,0,0) (warp 1, lane 0) of CTA (0,0,0) waits for bulk groups at",
                "by thread 0 itself, after its last store at"});
}

TEST_CASE("a tile that does not start where the pattern of its swizzle does is remembered") {
  const DeviceArray<bf16> a(arange(64 * 64), "A");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 64, 64, 64, 64, Swizzle::k128B));
  emulator::take_misaligned_tile();
  for (const int rows : {0, 8, 16}) {
    CHECK(run(loads_shifted, one_cta(32, sizeof(Shifted)), map, rows).rule == "passed");
    CHECK(emulator::take_misaligned_tile().empty());
  }
  CHECK(run(loads_shifted, one_cta(32, sizeof(Shifted)), map, 3).rule == "passed");
  check_text(emulator::take_misaligned_tile(), {"lies 384 bytes off a multiple of 1024", "128-byte swizzle"});
  CHECK(emulator::take_misaligned_tile().empty());
}

TEST_CASE("a counter that a launch leaves behind is remembered") {
  for (const int sets_back : {1, 0}) {
    DeviceArray<std::uint32_t> counter(std::vector<std::uint32_t>(4, 0), "counter");
    const ptx::LaunchShape three{.grid = {3}, .block = {1}};
    CHECK(run(counts_ctas, three, counter.get(), sets_back).rule == "passed");
    CHECK(emulator::counters_left_over().empty());
    CHECK(run(counts_ctas, three, counter.get(), sets_back).rule == "passed");
    const std::string clue = emulator::counters_left_over();
    INFO(clue);
    CHECK(contains(clue, "counter + 0 held 3 when this launch began") == !sets_back);
    CHECK(clue.empty() == static_cast<bool>(sets_back));
  }
}

TEST_CASE("named-barrier: two warpgroups at one number") {
  CHECK_PASSES(run(meets_by_warpgroup, one_cta(256), 1));
  CHECK_SAYS("named-barrier", "warpgroups 0 and 1 use the same named barrier, number 1",
             run(meets_by_warpgroup, one_cta(256), 0));
}

TEST_CASE("clusters: an arrival without its wait, and a relaxed one without a fence") {
  const ptx::LaunchShape shape{.grid = {2}, .block = {64}, .cluster = {2}, .shared_bytes = sizeof(Cluster)};
  CHECK_PASSES(run(arrives_in_peer, shape, kClusterNone));
  CHECK_SAYS("cluster-exit", "barrier_cluster_wait after the last barrier_cluster_arrive: threads 0-63",
             run(arrives_in_peer, shape, kNoWaitAtTheEnd));
  CHECK_SAYS("mbarrier-uninitialised", "barrier_cluster_arrive_relaxed alone does not publish earlier writes",
             run(arrives_in_peer, shape, kRelaxedWithoutFence));
}

TEST_CASE("shared-race: a relaxed barrier of the cluster lies between the accesses") {
  const ptx::LaunchShape shape{.grid = {2}, .block = {64}, .cluster = {2}, .shared_bytes = sizeof(Cluster)};
  CHECK_PASSES(run(word_behind_cluster_barrier, shape, false));
  CHECK_SAYS("shared-race", "barrier.cluster.arrive.relaxed orders no accesses to memory",
             run(word_behind_cluster_barrier, shape, true));
}

TEST_CASE("load-overwrites: a peer that says nothing of having read") {
  const DeviceArray<bf16> a(arange(128 * 64), "A");
  DeviceArray<float> sums(128);
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 128, 64, 64, 64, Swizzle::k128B));
  const auto run_multicasts = [&](int fault) {
    return run(multicasts, {.grid = {2}, .block = {64}, .cluster = {2}, .shared_bytes = sizeof(Ring)}, map,
               fault, sums.get());
  };
  CHECK_PASSES(run_multicasts(kReleaseNone));
  CHECK(schedules_that_say("passed", {}, {}, [&] { return run_multicasts(kOwnCtaOnly); }) == 0);
  CHECK(schedules_that_say("load-overwrites",
                           {"the arrival of the consumers of CTA (1,0,0)",
                            "it is 0x3, which includes rank 1 of the cluster, CTA (1,0,0)"},
                           {"missing   "}, [&] { return run_multicasts(kOwnCtaOnly); }) > 0);
}

}  // namespace named_causes_test
