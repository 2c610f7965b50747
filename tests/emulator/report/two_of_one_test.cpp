// What reports say where two take, write or hand back what is one's.
#include <cstdint>
#include <string>

#include "emulator/hopper_test.h"
#include "ptx/atomic.cuh"

namespace two_of_one_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;

// ---- Slots of a workspace

/// CTA 0 writes a slot, says so, and writes it again; CTA 1 reads the first result in between. `speaks`: and
/// says by a release that it has.
__global__ void slot_again(float* slots, std::uint32_t* flags, int speaks) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    ptx::st_global(slots, 1.0f);
    ptx::st_release_gpu(&flags[0], 1u);
    if (speaks) {
      while (ptx::ld_acquire_gpu(&flags[1]) != 1) {
      }
    } else {
      while (ptx::ld_relaxed_gpu(&flags[1]) != 1) {
      }
    }
    ptx::st_global(slots, 2.0f);
  } else {
    while (ptx::ld_acquire_gpu(&flags[0]) != 1) {
    }
    ptx::st_global(slots + 64, ptx::ld_global(slots));
    if (speaks) {
      ptx::st_release_gpu(&flags[1], 1u);
    } else {
      ptx::st_relaxed_gpu(&flags[1], 1u);
    }
  }
}

/// Each CTA, or each warpgroup of one, writes a part of the slots.
__global__ void writes_a_part(float* slots, int by_cta, int by_warpgroup) {
  const auto part =
      static_cast<int>(blockIdx.x) * by_cta + static_cast<int>(threadIdx.x) / 128 * by_warpgroup;
  ptx::st_global(slots + part * 128 + threadIdx.x % 128, 1.0f);
}

// ---- A queue of which two groups take every second entry

struct Entries {
  struct Queue {
    int entry[4];
    std::uint64_t enqueued[4];
    std::uint64_t dequeued[4];
  };
  Queue queue;
  std::uint64_t never;
};

/// `step`: by how many entries a group moves on. Then everybody waits for what never comes.
__global__ void takes_entries(int step, int* out) {
  auto& shared = ptx::dynamic_shared<Entries>();
  auto& queue = shared.queue;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 4; ++i) {
      ptx::mbarrier_init(&queue.enqueued[i], 1);
      ptx::mbarrier_init(&queue.dequeued[i], 4);
    }
    ptx::mbarrier_init(&shared.never, 1);
  }
  __syncthreads();
  if (threadIdx.x == 256) {
    for (int i = 0; i < 4; ++i) {
      ptx::st_shared(&queue.entry[i], i);
      ptx::mbarrier_arrive(&queue.enqueued[i]);
    }
  } else if (threadIdx.x < 256) {
    const int group = static_cast<int>(threadIdx.x) / 128;
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      const int at = group + i * step;
      wait(&queue.enqueued[at], 0);
      sum += ptx::ld_shared(&queue.entry[at]);
      __syncwarp();
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&queue.dequeued[at]);
    }
    ptx::st_global(out + threadIdx.x, sum);
    wait(&shared.never, 0);
  }
}

// ---- Races of one line, and of lanes

__shared__ int numbers[64];

__global__ void writes_its_own(int wrong) {
  ptx::st_shared(&numbers[threadIdx.x == 5 ? 5 - wrong : threadIdx.x], static_cast<int>(threadIdx.x));
}

struct Numbers {
  int row[64];
};

/// Reads what the lane beside it has written. `meets`: behind a barrier.
__global__ void reads_beside(int meets, int* out) {
  auto& shared = ptx::dynamic_shared<Numbers>();
  ptx::st_shared(&shared.row[threadIdx.x], 1);
  if (meets) __syncthreads();
  ptx::st_global(out + threadIdx.x, ptx::ld_shared(&shared.row[threadIdx.x ^ 1]));
}

// ---- Turns at named barriers

/// Two warps take turns. `begins`: the one that has the first one; warp 0 waits at the end, too.
__global__ void takes_turns(unsigned begins) {
  const unsigned warp = threadIdx.x / 32;
  if (warp != begins) ptx::bar_arrive(1 + begins, 64);
  for (int i = 0; i < 3; ++i) {
    ptx::bar_sync(1 + warp, 64);
    ptx::bar_arrive(2 - warp, 64);
  }
  if (warp == 0) ptx::bar_sync(1, 64);
}

// ---- A box that is higher than what it is loaded into

struct Stages {
  struct Stage {
    alignas(1024) bf16 a[64][64];
    bf16 b[64][64];
  };
  Stage stage[2];
  std::uint64_t full[2];
};

__global__ void loads_a_box(const __grid_constant__ ptx::TensorMap map, unsigned bytes) {
  auto& shared = ptx::dynamic_shared<Stages>();
  if (threadIdx.x != 0) return;
  for (auto& full : shared.full) ptx::mbarrier_init(&full, 1);
  ptx::fence_proxy_async_shared_cta();
  for (int i = 0; i < 2; ++i) {
    ptx::mbarrier_arrive_expect_tx(&shared.full[i], bytes);
    ptx::cp_async_bulk_tensor_2d(shared.stage[i].b, &map, 0, 0, &shared.full[i]);
    if (i == 0) ptx::st_shared(&shared.stage[1].a[0][0], gemm::to_bf16(0));
  }
  for (auto& full : shared.full) wait(&full, 0);
}

// ---- Who hands a stage back

struct Ring {
  struct Stage {
    alignas(128) int values[32];
  };
  Stage stage[2];
  std::uint64_t full[2];
  std::uint64_t empty[2];
};

enum Release { kBehindTheReads, kBeforeTheLastRead, kByEachWarp };

/// Thread 64 fills two stages; two warps read them, and each hands them back where the count is 2.
__global__ void hands_back(const int* source, int release, int count, int* out) {
  auto& shared = ptx::dynamic_shared<Ring>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_init(&shared.full[i], 1);
      ptx::mbarrier_init(&shared.empty[i], static_cast<unsigned>(count));
    }
    ptx::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  constexpr unsigned kItems = 8;
  const unsigned readers = release == kBeforeTheLastRead ? 32 : 64;
  if (threadIdx.x == 64) {
    for (unsigned i = 0; i < kItems; ++i) {
      wait(&shared.empty[i % 2], i / 2 % 2 ^ 1);
      ptx::mbarrier_arrive_expect_tx(&shared.full[i % 2], 128);
      ptx::cp_async_bulk(shared.stage[i % 2].values, source, 128, &shared.full[i % 2]);
    }
  } else if (threadIdx.x < readers) {
    int sum = 0;
    for (unsigned i = 0; i < kItems; ++i) {
      wait(&shared.full[i % 2], i / 2 % 2);
      sum += ptx::ld_shared(&shared.stage[i % 2].values[threadIdx.x % 32]);
      ptx::fence_proxy_async_shared_cta();
      __syncwarp();
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&shared.empty[i % 2]);
      if (release == kBeforeTheLastRead)
        sum += ptx::ld_shared(&shared.stage[i % 2].values[31 - threadIdx.x % 32]);
    }
    ptx::st_global(out + threadIdx.x, sum);
  }
}

}  // namespace

TEST_CASE("global-race: a second result in the slot that another CTA reads") {
  const auto run_slot = [](int speaks) {
    DeviceArray<float> slots(std::vector<float>(128, 0.0f), "slots");
    DeviceArray<std::uint32_t> flags(std::vector<std::uint32_t>(2, 0), "flags");
    return run(slot_again, {.grid = {2}, .block = {32}, .co_resident = true}, slots.get(), flags.get(),
               speaks);
  };
  CHECK(run_slot(1).rule == "passed");
  check_report(run_slot(0), "global-race",
               {"a separate slot for each of two results: CTA (0,0,0) wrote one of them",
                "before CTA (1,0,0) has signalled that it has read", "  flag     flags + 0: thread (0,0,0)"});
}

TEST_CASE("global-race: two write one part of a workspace") {
  DeviceArray<float> slots(std::vector<float>(512, 0.0f), "workspace");
  const auto run_parts = [&](unsigned ctas, unsigned threads, int by_cta, int by_warpgroup) {
    return run(writes_a_part, {.grid = {ctas}, .block = {threads}}, slots.get(), by_cta, by_warpgroup);
  };
  CHECK_PASSES(run_parts(2, 256, 2, 1));
  CHECK_ONLY_SAYS("global-race", "both write these bytes. Two partial tiles need separate slots",
                  run_parts(2, 128, 0, 1));
  CHECK_ONLY_SAYS("global-race", "separate bytes for each warpgroup: ", run_parts(1, 256, 2, 0));
}

TEST_CASE("deadlock: two groups take one entry of a queue") {
  const auto run_queue = [](int step) {
    DeviceArray<int> out(256);
    return run(takes_entries, one_cta(288, sizeof(Entries)), step, out.get());
  };
  CHECK_ONLY_SAYS("deadlock", "have both waited for phase 0 of mbarrier queue.enqueued[1]", run_queue(1));
  under_all_schedules([&] { CHECK_FALSE(contains(run_queue(2).report, "have both waited for phase")); });
}

TEST_CASE("shared-race: one line that writes twice, and lanes of which other warps do the same") {
  CHECK_PASSES(run(writes_its_own, one_cta(64), 0));
  CHECK_ONLY_SAYS("shared-race", "separate bytes for each thread: ", run(writes_its_own, one_cta(64), 1));
  DeviceArray<int> out(64);
  const auto run_beside = [&](unsigned threads, int meets) {
    return run(reads_beside, one_cta(threads, sizeof(Numbers)), meets, out.get());
  };
  CHECK_PASSES(run_beside(64, 1));
  int other_warps = 0;
  under_all_schedules([&] {
    const Outcome outcome = run_beside(64, 0);
    INFO(outcome.report);
    CHECK(outcome.rule == "shared-race");
    const bool also = contains(outcome.report, "  also     a ");
    other_warps += also ? 1 : 0;
    CHECK(contains(outcome.report, "being in the same warp does not order lanes") == !also);
  });
  CHECK(other_warps > 0);
  CHECK_ONLY_SAYS("shared-race", "being in the same warp does not order lanes", run_beside(32, 0));
}

TEST_CASE("deadlock: the first turn and the wait at the end do not fit") {
  CHECK_PASSES(run(takes_turns, one_cta(64), 0u));
  CHECK_ONLY_SAYS("deadlock", "named barrier 2 holds arrivals of threads 0-31 (bar_arrive at ",
                  run(takes_turns, one_cta(64), 1u));
  const Outcome outcome = run(takes_turns, one_cta(64), 1u);
  check_text(outcome.report, {"It has completed 3 times before, most recently with "},
             {"a count that matches the threads"});
}

TEST_CASE("load-not-waited: a box that is higher than what it is loaded into") {
  const DeviceArray<bf16> b(arange(128 * 64), "B");
  const auto run_box = [&](int rows) {
    const ptx::TensorMap map =
        ptx::make_tensor_map(ptx::matrix_spec(b.get(), 128, 64, rows, 64, Swizzle::kNone));
    return run(loads_a_box, one_cta(32, sizeof(Stages) + 16384), map, static_cast<unsigned>(rows) * 128);
  };
  CHECK_PASSES(run_box(64));
  check_report(run_box(128), "load-not-waited",
               {"a box of 64 rows in the tensor map instead of 128: that is what stage[0].b holds"},
               {"has never waited for it"});
}

TEST_CASE("load-overwrites: a stage that is handed back too early, and too often") {
  const DeviceArray<int> source(std::vector<int>(32, 1), "source");
  const auto run_ring = [&](int release, int count) {
    DeviceArray<int> out(64);
    return run(hands_back, one_cta(96, sizeof(Ring)), source.get(), release, count, out.get());
  };
  CHECK_PASSES(run_ring(kBehindTheReads, 2));
  int early = 0;
  int often = 0;
  under_all_schedules([&] {
    const Outcome behind = run_ring(kBeforeTheLastRead, 1);
    check_text(behind.report, {}, {"missing  __syncwarp"});
    early += contains(behind.report, "A __syncwarp before the arrival does not delay reads") ? 1 : 0;
    const Outcome each = run_ring(kByEachWarp, 1);
    INFO(each.report);
    often += contains(each.report, "fewer arrivals per k-tile, or a larger count") ? 1 : 0;
  });
  CHECK(early > 0);
  INFO(run_ring(kByEachWarp, 1).report);
  CHECK(often > 0);
}

}  // namespace two_of_one_test
