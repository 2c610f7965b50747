// ld.acquire, st.release and their relaxed forms: what one CTA tells another by a word in global memory. And
// the workspace that such words live in.
#include <algorithm>
#include <vector>

#include "emulator/emulator_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/atomic.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/workspace.h"

namespace atomic_wrappers_test {

using namespace emulator_test;

namespace {

constexpr int kThreads = 64;

struct Order {
  bool release = true;         // st.release, or st.relaxed
  bool acquire = true;         // ld.acquire, or ld.relaxed
  bool barrier_before = true;  // between what all threads write and the flag
  bool barrier_behind = true;  // between the flag and what all threads read
};

/// CTA 0 writes a value for each thread and raises the flag; CTA 1 waits for the flag and reads the values.
__global__ void pass_message(int* values, std::uint32_t* flag, int* result, Order order) {
  const unsigned thread = threadIdx.x;
  if (blockIdx.x == 0) {
    ptx::st_global(values + thread, static_cast<int>(thread) + 100);
    if (order.barrier_before) __syncthreads();
    if (thread == 0) {
      if (order.release) {
        ptx::st_release_gpu(flag, 1);
      } else {
        ptx::st_relaxed_gpu(flag, 1);
      }
    }
    return;
  }
  if (thread == 0) {
    while ((order.acquire ? ptx::ld_acquire_gpu(flag) : ptx::ld_relaxed_gpu(flag)) == 0) {
    }
  }
  if (order.barrier_behind) __syncthreads();
  ptx::st_global(result + thread, ptx::ld_global(values + thread));
}

/// The message is passed `rounds` times; CTA 1 lowers the flag when all of its threads have read.
__global__ void pass_messages(int* values, std::uint32_t* flag, int* sums, int rounds, bool acquire_lowered) {
  const unsigned thread = threadIdx.x;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    if (blockIdx.x == 0) {
      if (thread == 0) {
        while ((acquire_lowered ? ptx::ld_acquire_gpu(flag) : ptx::ld_relaxed_gpu(flag)) != 0) {
        }
      }
      __syncthreads();
      ptx::st_global(values + thread, round + static_cast<int>(thread));
      __syncthreads();
      if (thread == 0) ptx::st_release_gpu(flag, 1);
    } else {
      if (thread == 0) {
        while (ptx::ld_acquire_gpu(flag) == 0) {
        }
      }
      __syncthreads();
      sum += ptx::ld_global(values + thread);
      __syncthreads();
      if (thread == 0) ptx::st_release_gpu(flag, 0);
    }
  }
  if (blockIdx.x == 1) ptx::st_global(sums + thread, sum);
}

/// CTA 0 writes a value and releases 1; CTA 1 sees 1, with or without acquiring it, and says 2; CTA 2
/// acquires 2. By another word, which carries nothing, CTA 2 knows when, so that it never meets the 1.
__global__ void relay(int* value, std::uint32_t* flag, std::uint32_t* now, int* result, bool acquire) {
  if (blockIdx.x == 0) {
    ptx::st_global(value, 5);
    ptx::st_release_gpu(flag, 1);
  } else if (blockIdx.x == 1) {
    while ((acquire ? ptx::ld_acquire_gpu(flag) : ptx::ld_relaxed_gpu(flag)) != 1) {
    }
    if (acquire) {
      ptx::st_release_gpu(flag, 2);
    } else {
      ptx::st_relaxed_gpu(flag, 2);
    }
    ptx::st_relaxed_gpu(now, 1);
  } else {
    while (ptx::ld_relaxed_gpu(now) == 0) {
    }
    ptx::ld_acquire_gpu(flag);
    ptx::st_global(result, ptx::ld_global(value));
  }
}

/// Each CTA writes values and counts; the one that counts last adds them up. `flag` is looked at before, and
/// says nothing.
__global__ void last_adds(int* values, std::uint32_t* flag, std::uint32_t* counter, int* result,
                          bool barrier) {
  const unsigned thread = threadIdx.x;
  auto& last = ptx::dynamic_shared<unsigned>();
  if (thread == 0) ptx::ld_acquire_gpu(flag);
  ptx::st_global(values + blockIdx.x * blockDim.x + thread, 1);
  if (barrier) __syncthreads();
  if (thread == 0) ptx::st_shared(&last, ptx::atom_add_acq_rel_gpu(counter, 1) + 1 == gridDim.x ? 1u : 0u);
  __syncthreads();
  if (ptx::ld_shared(&last) == 0) return;
  int sum = 0;
  for (unsigned cta = 0; cta < gridDim.x; ++cta) sum += ptx::ld_global(values + cta * blockDim.x + thread);
  ptx::st_global(result + thread, sum);
}

/// Both warpgroups of CTAs 0 and 1 write values and count. Those of CTA 2 wait for `count` and add.
__global__ void warpgroups_count(int* values, std::uint32_t* counter, int* result, std::uint32_t count) {
  const unsigned thread = threadIdx.x;
  const unsigned warpgroup = thread / 128;
  if (blockIdx.x < 2) {
    ptx::st_global(values + blockIdx.x * blockDim.x + thread, 1);
    ptx::bar_sync(1 + static_cast<int>(warpgroup), 128);
    if (thread % 128 == 0) ptx::atom_add_acq_rel_gpu(counter, 1);
    return;
  }
  if (thread % 128 == 0) {
    while (ptx::ld_acquire_gpu(counter) < count) {
    }
  }
  ptx::bar_sync(1 + static_cast<int>(warpgroup), 128);
  ptx::st_global(result + thread, ptx::ld_global(values + thread) + ptx::ld_global(values + 256 + thread));
}

/// CTA 0 writes a value and only *loads* the flag behind a fence; CTA 1 acquires what the host wrote there.
__global__ void load_is_no_release(int* value, std::uint32_t* flag, int* result) {
  if (blockIdx.x == 0) {
    ptx::st_global(value, 5);
    __threadfence();
    ptx::ld_relaxed_gpu(flag);
  } else {
    ptx::ld_acquire_gpu(flag);
    ptx::st_global(result, ptx::ld_global(value));
  }
}

__global__ void store_then_load(std::uint32_t* words) {
  ptx::st_relaxed_gpu(words, 7);
  ptx::st_release_gpu(words + 1, 8);
  ptx::st_global(words + 2, ptx::ld_relaxed_gpu(words) + 10);
  ptx::st_global(words + 3, ptx::ld_acquire_gpu(words + 1) + 10);
}

__global__ void load_flag(const std::uint32_t* flag, std::uint32_t* result) {
  ptx::st_global(result, ptx::ld_acquire_gpu(flag));
}
__global__ void store_flag(std::uint32_t* flag) {
  ptx::st_release_gpu(flag, 1);
}

/// CTA 0 writes a value and releases 1, writes another one and releases 1 again; CTA 1 acquires 1 and reads
/// the first value, or the second.
__global__ void say_twice(int* values, std::uint32_t* flag, bool second) {
  if (blockIdx.x == 0) {
    ptx::st_global(values, 5);
    ptx::st_release_gpu(flag, 1);
    ptx::st_global(values + 1, 6);
    ptx::st_release_gpu(flag, 1);
  } else {
    while (ptx::ld_acquire_gpu(flag) == 0) {
    }
    ptx::ld_global(values + (second ? 1 : 0));
  }
}

constexpr ptx::LaunchShape kTwoCtas{.grid = {2}, .block = {kThreads}, .co_resident = true};

ptx::LaunchShape two_single_threads() {
  ptx::LaunchShape shape = kTwoCtas;
  shape.block = {1};
  return shape;
}

Outcome message(const Order& order, std::vector<int>& received) {
  // Values and result hold something from the start: a value read too early is a race,
  // not uninitialised memory.
  const DeviceArray<int> values(std::vector<int>(kThreads, -1), "values");
  const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>{0}, "flag");
  const DeviceArray<int> result(std::vector<int>(kThreads, -1), "result");
  const Outcome outcome = run(pass_message, kTwoCtas, values.get(), flag.get(), result.get(), order);
  received = result.host();
  return outcome;
}

}  // namespace

TEST_CASE("release and acquire carry what the barriers gathered") {
  under_all_schedules([] {
    std::vector<int> received;
    require_passes(message({}, received));
    for (int i = 0; i < kThreads; ++i) CHECK(received[static_cast<std::size_t>(i)] == i + 100);
  });
}

TEST_CASE("global-race: a message by relaxed accesses, or without a barrier on one side") {
  std::vector<int> received;
  CHECK_BREAKS("global-race", message({.release = false}, received));
  CHECK_BREAKS("global-race", message({.acquire = false}, received));
  CHECK_BREAKS("global-race", message({.release = false, .acquire = false}, received));
  CHECK_BREAKS("global-race", message({.barrier_before = false}, received));
  CHECK_BREAKS("global-race", message({.barrier_behind = false}, received));
}

TEST_CASE("global-race: the report names the flag and the half that is missing") {
  std::vector<int> received;
  const auto says = [&](const Order& order, const std::string& missing) {
    under_all_schedules([&] {
      const Outcome outcome = message(order, received);
      INFO(outcome.report);
      REQUIRE(outcome.rule == "global-race");
      check_text(outcome.report, {"flag     flag + 0", "missing  " + missing});
    });
  };
  says({.release = false}, "a release: st_relaxed_gpu at ");
  says({.acquire = false}, "an acquire: ld_relaxed_gpu at ");
  // Where the flag is not up yet, nobody has passed it.
  int named = 0;
  under_all_schedules([&] {
    const Outcome outcome = message({.barrier_before = false}, received);
    INFO(outcome.report);
    REQUIRE(outcome.rule == "global-race");
    named += contains(outcome.report, "missing  a barrier between ");
  });
  CHECK(named > 25);
}

TEST_CASE("global-race: of a counter the report names the barrier before it, or the count that is too low") {
  const auto adds = [](bool barrier) {
    const DeviceArray<int> values(std::vector<int>(2 * kThreads, 0), "values");
    const DeviceArray<std::uint32_t> words(std::vector<std::uint32_t>{0, 0}, "words");
    const DeviceArray<int> result(std::vector<int>(kThreads, 0), "result");
    ptx::LaunchShape shape = kTwoCtas;
    shape.shared_bytes = sizeof(unsigned);
    return run(last_adds, shape, values.get(), words.get(), words.get() + 1, result.get(), barrier);
  };
  CHECK_PASSES(adds(true));
  int named = 0;
  under_all_schedules([&] {
    const Outcome outcome = adds(false);
    INFO(outcome.report);
    REQUIRE(outcome.rule == "global-race");
    named += contains(outcome.report, "from it with atom_add_acq_rel_gpu at ") &&
             contains(outcome.report, "missing  a barrier between ");
  });
  CHECK(named > 25);
  const auto waits = [](std::uint32_t count) {
    const DeviceArray<int> values(std::vector<int>(512, 0), "values");
    const DeviceArray<std::uint32_t> counter(std::vector<std::uint32_t>{0}, "counter");
    const DeviceArray<int> result(std::vector<int>(256, 0), "result");
    ptx::LaunchShape shape = kTwoCtas;
    shape.grid = {3};
    shape.block = {256};
    return run(warpgroups_count, shape, values.get(), counter.get(), result.get(), count);
  };
  CHECK_PASSES(waits(4));
  int low = 0;
  under_all_schedules([&] {
    const Outcome outcome = waits(2);
    low += outcome.rule == "global-race" && contains(outcome.report, "counter  counter + 0: ") &&
           contains(outcome.report, "missing  a higher count in the wait at ");
  });
  CHECK(low > 0);
}

TEST_CASE("global-race: where a wait exists, the report says that it may be the barrier behind it") {
  std::vector<int> received;
  under_all_schedules([&] {
    const Outcome outcome = message({.barrier_behind = false}, received);
    INFO(outcome.report);
    REQUIRE(outcome.rule == "global-race");
    CHECK((contains(outcome.report, "missing  a barrier between the acquire at ") ||
           contains(outcome.report, "that barrier is missing")));
  });
}

TEST_CASE("global-race: a store of the value that is there already shows nothing to who reads it") {
  under_all_schedules([] {
    const DeviceArray<int> values(std::vector<int>(kThreads, -1), "values");
    const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>{1}, "flag");  // of an earlier launch
    const DeviceArray<int> result(std::vector<int>(kThreads, -1), "result");
    const Outcome outcome = run(pass_message, kTwoCtas, values.get(), flag.get(), result.get(), Order{});
    INFO(outcome.report);
    CHECK(outcome.rule == "global-race");
    CHECK((contains(outcome.report, "it already holds 1 when") ||
           contains(outcome.report, "it has held 1 since before")));
    CHECK(contains(outcome.report, "lower the flag before the launch ends"));
  });
}

TEST_CASE("a flag that says the same twice has released what the first store did") {
  const auto repeated = [](bool second) {
    const DeviceArray<int> values(std::vector<int>(2, -1), "values");
    const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>{0}, "flag");
    return run(say_twice, two_single_threads(), values.get(), flag.get(), second);
  };
  CHECK_PASSES(repeated(false));
  CHECK_BREAKS("global-race", repeated(true));  // the 1 may be the first one
}

TEST_CASE("messages back and forth through one word") {
  static constexpr int kRounds = 8;
  const auto messages = [](bool acquire_lowered) {
    const DeviceArray<int> values(std::vector<int>(kThreads, -1), "values");
    const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>{0}, "flag");
    const DeviceArray<int> sums(kThreads, "sums");
    const Outcome outcome =
        run(pass_messages, kTwoCtas, values.get(), flag.get(), sums.get(), kRounds, acquire_lowered);
    if (outcome.rule == "passed") {
      const std::vector<int> received = sums.host();
      for (int i = 0; i < kThreads; ++i)
        CHECK(received[static_cast<std::size_t>(i)] == kRounds * (kRounds - 1) / 2 + kRounds * i);
    }
    return outcome;
  };
  CHECK_PASSES(messages(true));
  CHECK_BREAKS("global-race", messages(false));  // overwrites what the other may still read
}

TEST_CASE(
    "global-race: a relaxed store ends what another CTA released by the word, and a load releases nothing") {
  ptx::LaunchShape three = kTwoCtas;
  three.grid = {3};
  three.block = {1};
  ptx::LaunchShape two = kTwoCtas;
  two.block = {1};
  const DeviceArray<int> result(std::vector<int>{-1}, "result");
  // The last CTA has seen a later store of the one that relays, and loads the flag behind it.
  const emulator::ScopedCourseRule off(emulator::CourseRule::kRelaxedOrder, false);
  const auto relayed = [&](bool acquire) {
    const DeviceArray<int> value(std::vector<int>{-1}, "value");
    const DeviceArray<std::uint32_t> flags(std::vector<std::uint32_t>(64, 0), "flags");
    return run(relay, three, value.get(), flags.get(), flags.get() + 32, result.get(), acquire);
  };
  CHECK_PASSES(relayed(true));
  CHECK(result.host()[0] == 5);
  CHECK_BREAKS("global-race", relayed(false));
  under_all_schedules([&] {
    const DeviceArray<int> value(std::vector<int>{-1}, "value");
    const DeviceArray<int> received(std::vector<int>{-1}, "received");
    const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>{0}, "flag");
    const Outcome outcome = run(load_is_no_release, two, value.get(), flag.get(), received.get());
    // CTA 1 may come first and read the old value; it may not read the new one and get away with it.
    CHECK((outcome.rule == "global-race" || received.host()[0] == -1));
  });
}

TEST_CASE("all four load or store the word") {
  const DeviceArray<std::uint32_t> words(std::vector<std::uint32_t>(4, 0));
  CHECK_PASSES(run(store_then_load, one_cta(1), words.get()));
  CHECK(words.host() == std::vector<std::uint32_t>{7, 8, 17, 18});
}

TEST_CASE("a flag has bounds, an alignment and a first value like any other word") {
  const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>{0}, "flag");
  const DeviceArray<std::uint32_t> pair(std::vector<std::uint32_t>{0, 0}, "pair");
  const DeviceArray<std::uint32_t> fresh(1, "fresh");
  const DeviceArray<std::uint32_t> result(1, "result");
  CHECK(run(load_flag, one_cta(1), flag.get() + 1, result.get()).rule == "global-out-of-bounds");
  CHECK(run(store_flag, one_cta(1), flag.get() + 1).rule == "global-out-of-bounds");
  CHECK(run(store_flag, one_cta(1), flag.get() + (1 << 24)).rule == "global-out-of-bounds");  // far away
  CHECK(run(load_flag, one_cta(1), fresh.get(), result.get()).rule == "global-uninitialised");
  const auto* odd = reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(pair.get()) + 2);
  CHECK(run(load_flag, one_cta(1), odd, result.get()).rule == "global-misaligned");
}

TEST_CASE("a workspace is zeroed, and each stream has its own") {
  ptx::Workspace workspace(64);
  int here = 0;
  int there = 0;
  auto* const one = reinterpret_cast<ptx::Stream>(&here);  // never dereferenced
  auto* const other = reinterpret_cast<ptx::Stream>(&there);
  auto* const first = static_cast<std::uint32_t*>(workspace.of(one));
  const DeviceArray<std::uint32_t> result(std::vector<std::uint32_t>{5});
  CHECK_PASSES(run(load_flag, one_cta(1), first + 15, result.get()));
  CHECK(result.host()[0] == 0);
  CHECK(run(load_flag, one_cta(1), first + 16, result.get()).rule == "global-out-of-bounds");
  CHECK(run(store_flag, one_cta(1), first).rule == "passed");
  CHECK(workspace.of(one) == first);  // kept, not zeroed again
  CHECK_PASSES(run(load_flag, one_cta(1), first, result.get()));
  CHECK(result.host()[0] == 1);
  CHECK(workspace.of(other) != first);
  CHECK(workspace.of(nullptr) != first);
  CHECK(ptx::Workspace(0).of(one) == nullptr);
}

namespace {

struct Counting {
  bool acq_rel = true;         // or relaxed, with a look at the word behind it
  bool barrier_before = true;  // between what all threads write and the count
};

/// Each CTA writes a value for each thread and counts itself; the last one adds up all values.
__global__ void last_one_adds(int* values, std::uint32_t* count, int* sum, Counting how) {
  auto& is_last = ptx::dynamic_shared<std::uint32_t>();
  ptx::st_global(values + blockIdx.x * blockDim.x + threadIdx.x, static_cast<int>(blockIdx.x) + 1);
  if (how.barrier_before) __syncthreads();
  if (threadIdx.x == 0) {
    std::uint32_t before = 0;
    if (how.acq_rel) {
      before = ptx::atom_add_acq_rel_gpu(count, 1);
    } else {
      ptx::red_add_relaxed_gpu(count, 1);
      while (blockIdx.x == 0 && ptx::ld_relaxed_gpu(count) < gridDim.x) {
      }
      before = blockIdx.x == 0 ? gridDim.x - 1 : 0;
    }
    ptx::st_shared(&is_last, before + 1 == gridDim.x ? 1u : 0u);
  }
  __syncthreads();
  if (ptx::ld_shared(&is_last) == 0 || threadIdx.x > 0) return;
  int total = 0;
  for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i) total += ptx::ld_global(values + i);
  ptx::st_global(sum, total);
}

/// Every thread of every CTA adds its number by two instructions and 1000 by two others.
__global__ void add_up(std::uint32_t* words, std::uint32_t* before) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  ptx::red_add_relaxed_gpu(words, thread);
  ptx::st_global(before + thread, ptx::atom_add_acq_rel_gpu(words + 1, 1000));
  ptx::red_add_release_gpu(words + 2, thread);
  ptx::st_global(before + gridDim.x * blockDim.x + thread, ptx::atom_add_relaxed_gpu(words + 3, 1000));
}

__global__ void add_to(std::uint32_t* word, bool with_result) {
  if (with_result) {
    ptx::atom_add_acq_rel_gpu(word, 1);
  } else {
    ptx::red_add_relaxed_gpu(word, 1);
  }
}

/// Writes a value and adds to a word that was released before; CTA 1 acquires what is there then. An addition
/// goes on with the release before it, and adds nothing of its own to it.
__global__ void add_behind_release(int* values, std::uint32_t* flag, int* result, bool own_value) {
  if (blockIdx.x == 0) {
    ptx::st_global(values, 5);
    ptx::st_release_gpu(flag, 1);
    ptx::st_global(values + 32, 6);
    ptx::red_add_relaxed_gpu(flag, 1);
  } else {
    while (ptx::ld_acquire_gpu(flag) < 2) {
    }
    ptx::st_global(result, ptx::ld_global(own_value ? values + 32 : values));
  }
}

}  // namespace

TEST_CASE("red.add and atom.add: every addition counts, and atom says what was there") {
  under_all_schedules([] {
    const DeviceArray<std::uint32_t> words(std::vector<std::uint32_t>{7, 7, 7, 7}, "words");
    const DeviceArray<std::uint32_t> before(std::vector<std::uint32_t>(8 * kThreads, 0), "before");
    require_passes(run(add_up, {.grid = {4}, .block = {kThreads}}, words.get(), before.get()));
    constexpr std::uint32_t kCount = 4 * kThreads;
    constexpr std::uint32_t kSum = 7 + kCount * (kCount - 1) / 2;
    CHECK(words.host() == std::vector<std::uint32_t>{kSum, 7 + 1000 * kCount, kSum, 7 + 1000 * kCount});
    std::vector<std::uint32_t> seen = before.host();
    std::sort(seen.begin(), seen.begin() + kCount);
    std::sort(seen.begin() + kCount, seen.end());
    for (std::uint32_t i = 0; i < kCount; ++i) {
      CHECK(seen[i] == 7 + 1000 * i);
      CHECK(seen[kCount + i] == 7 + 1000 * i);
    }
  });
}

TEST_CASE("atom.acq_rel: the last CTA sees what all wrote before they came, and red.relaxed shows nothing") {
  ptx::LaunchShape three{.grid = {3}, .block = {kThreads}, .shared_bytes = 16, .co_resident = true};
  const auto added = [&](const Counting& how) {
    const DeviceArray<int> values(std::vector<int>(3 * kThreads, -1), "values");
    const DeviceArray<std::uint32_t> count(std::vector<std::uint32_t>{0}, "count");
    const DeviceArray<int> sum(std::vector<int>{-1}, "sum");
    const Outcome outcome = run(last_one_adds, three, values.get(), count.get(), sum.get(), how);
    if (outcome.rule == "passed") CHECK(sum.host()[0] == 6 * kThreads);
    return outcome;
  };
  CHECK_PASSES(added({}));
  CHECK_BREAKS("global-race", added({.acq_rel = false}));
  CHECK_BREAKS("global-race", added({.barrier_before = false}));
}

TEST_CASE("red.relaxed goes on with a release before it, and releases nothing itself") {
  ptx::LaunchShape two = kTwoCtas;
  two.block = {1};
  const auto passed_on = [&](bool own_value) {
    const DeviceArray<int> values(std::vector<int>(64, -1), "values");
    const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>{0}, "flag");
    const DeviceArray<int> result(std::vector<int>{-1}, "result");
    const Outcome outcome = run(add_behind_release, two, values.get(), flag.get(), result.get(), own_value);
    if (outcome.rule == "passed") CHECK(result.host()[0] == 5);
    return outcome;
  };
  CHECK_PASSES(passed_on(false));
  CHECK_BREAKS("global-race", passed_on(true));
}

TEST_CASE("a word that is added to has bounds, an alignment and a first value") {
  const DeviceArray<std::uint32_t> pair(std::vector<std::uint32_t>{0, 0}, "pair");
  auto* const odd = reinterpret_cast<std::uint32_t*>(reinterpret_cast<char*>(pair.get()) + 2);
  for (const bool with_result : {false, true}) {
    const DeviceArray<std::uint32_t> fresh(1, "fresh");
    CHECK(run(add_to, one_cta(1), pair.get() + 2, with_result).rule == "global-out-of-bounds");
    CHECK(run(add_to, one_cta(1), odd, with_result).rule == "global-misaligned");
    CHECK(run(add_to, one_cta(1), fresh.get(), with_result).rule == "global-uninitialised");
  }
}

}  // namespace atomic_wrappers_test
