// Chains of grids that may overlap: who has waited for whom, and which accesses come too early.
#include <vector>

#include "emulator/emulator_test.h"
#include "emulator/hopper_test.h"
#include "ptx/atomic.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/tma.cuh"

namespace dependent_launch_test {

using namespace emulator_test;

namespace {

enum class Wait { kNone, kAll, kFirstThread, kFirstThreadAndBarrier, kBehindAccess };
enum class Trigger { kAtExit, kAtOnce, kBehindWait, kAtOnceByOneThread, kBehindWaitOfAnotherThread };
enum class Does { kNothing, kReads, kWrites, kAdds, kCopies, kInPlace };

/// What a grid of the chain does.
struct Link {
  Does does = Does::kNothing;
  Wait wait = Wait::kAll;
  Trigger trigger = Trigger::kAtExit;
};

struct Staged {
  alignas(16) int words[64];
};

/// Each thread touches its own four words: nothing races inside a grid.
__device__ void touch(Does does, int* data, int* result) {
  const int mine = 4 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (does == Does::kReads && ptx::ld_global(data + mine) == -1) ptx::st_global(result, 0);
  if (does == Does::kWrites) ptx::st_global(data + mine, 7);
  if (does == Does::kAdds) atomicAdd(data + mine, 1);
  if (does == Does::kInPlace) {  // from what another thread of the CTA overwrites
    const int of_next =
        mine - 4 * static_cast<int>(threadIdx.x) + 4 * static_cast<int>((threadIdx.x + 1) % blockDim.x);
    ptx::st_global(data + mine, ptx::ld_global(data + of_next) + 1);
  }
  if (does == Does::kCopies) {
    Staged& shared = ptx::dynamic_shared<Staged>();
    ptx::cp_async_cg_16(&shared.words[4 * (threadIdx.x % 16)], data + mine);
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
  }
}

__global__ void link(Link what, int* data, int* result) {
  const bool first = threadIdx.x == 0;
  if (what.trigger == Trigger::kAtOnce) ptx::griddepcontrol_launch_dependents();
  if (what.trigger == Trigger::kAtOnceByOneThread && first) ptx::griddepcontrol_launch_dependents();
  if (what.wait == Wait::kBehindAccess) touch(what.does, data, result);
  if (what.wait == Wait::kAll || what.wait == Wait::kBehindAccess) ptx::griddepcontrol_wait();
  if (what.wait == Wait::kFirstThread || what.wait == Wait::kFirstThreadAndBarrier) {
    if (first) ptx::griddepcontrol_wait();
  }
  if (what.wait == Wait::kFirstThreadAndBarrier) __syncthreads();
  if (what.trigger == Trigger::kBehindWait) ptx::griddepcontrol_launch_dependents();
  if (what.trigger == Trigger::kBehindWaitOfAnotherThread && threadIdx.x == 1)
    ptx::griddepcontrol_launch_dependents();
  if (what.wait != Wait::kBehindAccess) touch(what.does, data, result);
}

class Chain {
 public:
  Outcome run(const std::vector<Link>& links, bool dependent = true) {
    data_.upload(std::vector<int>(kWords, 1));
    for (const Link& one : links) {
      const ptx::LaunchShape shape{
          .grid = {2}, .block = {16}, .shared_bytes = sizeof(Staged), .dependent = dependent};
      const Outcome outcome = emulator_test::run(link, shape, one, data_.get(), result_.get());
      if (outcome.rule != "passed") return outcome;
    }
    return {"passed", ""};
  }
  int* data() { return data_.get(); }

 private:
  static constexpr int kWords = 4 * 32;
  DeviceArray<int> data_{std::vector<int>(kWords, 1), "data"};
  DeviceArray<int> result_{std::vector<int>(kWords, 0), "result"};
};

constexpr Link kWriter{.does = Does::kWrites};

}  // namespace

TEST_CASE("dependent-launch: a read of what the grid before writes, before the wait") {
  Chain chain;
  const Link early{.does = Does::kReads, .wait = Wait::kNone};
  CHECK_BREAKS("dependent-launch", chain.run({kWriter, early}));
  CHECK_BREAKS("dependent-launch", chain.run({kWriter, {.does = Does::kReads, .wait = Wait::kBehindAccess}}));
  CHECK_PASSES(chain.run({kWriter, {.does = Does::kReads}}));
  CHECK_PASSES(chain.run({kWriter, early}, false));  // the second launch waits for the first one
  CHECK_PASSES(chain.run({early, early, early}));    // weights: nobody writes them
  check_report(chain.run({kWriter, early}), "dependent-launch",
               {"the previous grid may still run: nothing orders its write and this read",
                "missing  griddepcontrol.wait before this read",
                "tests/emulator/machine/dependent_launch_test.cpp:", "of the previous grid, ", "data + "});
}

TEST_CASE("global-race: a grid overwrites what it reads of the grid before, and needs a second buffer") {
  Chain chain;
  const Link in_place{.does = Does::kInPlace};
  check_report(chain.run({kWriter, in_place}), "global-race",
               {"content  written at tests/emulator/machine/dependent_launch_test.cpp:", "of the grid before",
                "missing  a second buffer: this launch overwrites what it reads"});
  const Outcome own = chain.run({in_place});  // what no grid of the chain has written
  CHECK(own.rule == "global-race");
  CHECK_FALSE(contains(own.report, "a second buffer"));
}

TEST_CASE("dependent-launch: a write over what the grid before reads or writes, before the wait") {
  Chain chain;
  const Link reader{.does = Does::kReads};
  for (const Does does : {Does::kWrites, Does::kAdds}) {
    const Link early{.does = does, .wait = Wait::kNone};
    const Link late{.does = does};
    CHECK_BREAKS("dependent-launch", chain.run({reader, early}));
    CHECK_BREAKS("dependent-launch", chain.run({kWriter, early}));
    CHECK_PASSES(chain.run({reader, late}));
    CHECK_PASSES(chain.run({kWriter, late}));
  }
  CHECK(contains(chain.run({reader, {.does = Does::kWrites, .wait = Wait::kNone}}).report,
                 "nothing orders its read and this write"));
}

TEST_CASE("dependent-launch: cp.async reads when it is issued, and is read until it is awaited") {
  Chain chain;
  CHECK_BREAKS("dependent-launch", chain.run({kWriter, {.does = Does::kCopies, .wait = Wait::kNone}}));
  CHECK_PASSES(chain.run({kWriter, {.does = Does::kCopies}}));
  CHECK_BREAKS("dependent-launch",
               chain.run({{.does = Does::kCopies}, {.does = Does::kWrites, .wait = Wait::kNone}}));
}

TEST_CASE("dependent-launch: a trigger orders nothing, wherever it stands") {
  Chain chain;
  const Link early{.does = Does::kReads, .wait = Wait::kNone};
  for (const Trigger trigger : {Trigger::kAtExit, Trigger::kAtOnce, Trigger::kBehindWait}) {
    CHECK_BREAKS("dependent-launch", chain.run({{.does = Does::kWrites, .trigger = trigger}, early}));
    CHECK_PASSES(chain.run({{.does = Does::kWrites, .trigger = trigger}, {.does = Does::kReads}}));
  }
}

TEST_CASE("dependent-launch: one thread's wait is for itself, a barrier hands it on") {
  Chain chain;
  CHECK_BREAKS("dependent-launch", chain.run({kWriter, {.does = Does::kReads, .wait = Wait::kFirstThread}}));
  CHECK_PASSES(chain.run({kWriter, {.does = Does::kReads, .wait = Wait::kFirstThreadAndBarrier}}));
}

TEST_CASE("dependent-launch: the wait covers an earlier grid only if the grid between has waited for it") {
  Chain chain;
  const Link reader{.does = Does::kReads};
  const Link skips{.wait = Wait::kNone};
  CHECK_PASSES(chain.run({kWriter, {}, reader}));
  CHECK_PASSES(chain.run({kWriter, {.wait = Wait::kFirstThread}, reader}));  // enough: it completes later
  CHECK_BREAKS("dependent-launch", chain.run({kWriter, skips, reader}));
  CHECK_BREAKS("dependent-launch", chain.run({kWriter, skips, skips, reader}));
  // Those behind it wait for each other, and none of them for the first.
  CHECK_BREAKS("dependent-launch", chain.run({kWriter, skips, {}, {}, reader}));
  // A chain that the third launch breaks off, because it is not dependent, is over.
  CHECK_PASSES(chain.run({kWriter, skips, reader}, false));
  check_report(chain.run({kWriter, skips, reader}), "dependent-launch",
               {"the grid 2 launches earlier may still run",
                "missing  griddepcontrol.wait in the grid in between: none of its threads has waited"});
}

TEST_CASE(
    "dependent-launch: before its wait a grid knows what the grid before had waited for when it triggered") {
  Chain chain;
  const Link early{.does = Does::kReads, .wait = Wait::kNone};
  for (const Trigger behind : {Trigger::kAtExit, Trigger::kBehindWait})
    CHECK_PASSES(chain.run({kWriter, {.trigger = behind}, early}));
  for (const Trigger before : {Trigger::kAtOnce, Trigger::kAtOnceByOneThread}) {
    CHECK_BREAKS("dependent-launch", chain.run({kWriter, {.trigger = before}, early}));
    CHECK_PASSES(chain.run({kWriter, {.trigger = before}, {.does = Does::kReads}}));
  }
  // Whichever of the two threads comes first in this schedule: nothing orders them.
  CHECK_BREAKS(
      "dependent-launch",
      chain.run(
          {kWriter, {.wait = Wait::kFirstThread, .trigger = Trigger::kBehindWaitOfAnotherThread}, early}));
  CHECK_PASSES(
      chain.run({kWriter,
                 {.wait = Wait::kFirstThreadAndBarrier, .trigger = Trigger::kBehindWaitOfAnotherThread},
                 early}));
  CHECK(contains(chain.run({kWriter, {.trigger = Trigger::kAtOnce}, early}).report,
                 "the grid in between let this grid start before it had waited itself"));
}

TEST_CASE("dependent-launch: the host waits for what it touches, and so does the next launch") {
  Chain chain;
  const ptx::LaunchShape shape{.grid = {2}, .block = {16}, .shared_bytes = sizeof(Staged), .dependent = true};
  const Link early{.does = Does::kReads, .wait = Wait::kNone};
  DeviceArray<int> result(std::vector<int>(4 * 32, 0), "result");
  const auto twice = [&](auto between) {
    CHECK(run(link, shape, kWriter, chain.data(), result.get()).rule == "passed");
    between();
    return run(link, shape, early, chain.data(), result.get()).rule;
  };
  CHECK(twice([] {}) == "dependent-launch");
  CHECK(twice([] { harness::synchronize(); }) == "passed");
  CHECK(twice([&] { result.fill(0); }) == "passed");
  CHECK(twice([&] { result.host(); }) == "passed");
}

// ---- TMA ----

namespace {

struct Box {
  alignas(1024) gemm::bf16 elements[16 * 64];
  std::uint64_t barrier;
};

/// One thread loads a box. With `waiter` another one waits, which is no help to it.
__global__ void load_box(__grid_constant__ const ptx::TensorMap map, bool waits, bool waiter) {
  Box& shared = ptx::dynamic_shared<Box>();
  if (waiter && threadIdx.x == 32) ptx::griddepcontrol_wait();
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&shared.barrier, 1);
  ptx::fence_mbarrier_init_release_cluster();
  if (waits) ptx::griddepcontrol_wait();
  ptx::mbarrier_arrive_expect_tx(&shared.barrier, sizeof shared.elements);
  ptx::cp_async_bulk_tensor_2d(shared.elements, &map, 0, 0, &shared.barrier);
  while (!ptx::mbarrier_try_wait_parity(&shared.barrier, 0)) {
  }
}

__global__ void store_words(std::uint32_t* data) {
  ptx::st_global(data + threadIdx.x, threadIdx.x);
}

}  // namespace

TEST_CASE("dependent-launch: the producer's TMA load, while only a consumer waits") {
  DeviceArray<bf16> data(std::vector<bf16>(16 * 64, bf16{1}), "A");
  const ptx::TensorMap map =
      ptx::make_tensor_map(ptx::matrix_spec(data.get(), 16, 64, 16, 64, ptx::Swizzle::k128B));
  const ptx::LaunchShape loads{.block = {64}, .shared_bytes = sizeof(Box), .dependent = true};
  const ptx::LaunchShape stores{.block = {64}, .dependent = true};
  auto* const words = reinterpret_cast<std::uint32_t*>(data.get());
  const auto chain = [&](bool waits, bool waiter) {
    data.fill(1);
    const Outcome first = run(store_words, stores, words);
    return first.rule == "passed" ? run(load_box, loads, map, waits, waiter) : first;
  };
  CHECK_BREAKS("dependent-launch", chain(false, false));
  CHECK_BREAKS("dependent-launch", chain(false, true));
  CHECK_PASSES(chain(true, false));
  // And the other way round: what a load reads is not overwritten before the wait.
  const auto overwritten = [&](bool dependent) {
    data.fill(1);
    const Outcome first = run(load_box, loads, map, true, false);
    ptx::LaunchShape shape = stores;
    shape.dependent = dependent;
    return first.rule == "passed" ? run(store_words, shape, words) : first;
  };
  CHECK_BREAKS("dependent-launch", overwritten(true));
  CHECK_PASSES(overwritten(false));
}

}  // namespace dependent_launch_test
