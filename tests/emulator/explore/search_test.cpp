// The search for schedules: with its reduction it finds as many that differ as every order does without it,
// and it finds what is broken.
#include "emulator/explore/search.h"

#include <algorithm>
#include <set>

#include "emulator/hopper_test.h"
#include "ptx/atomic.cuh"

namespace explore_test {

using namespace emulator_test;
using emulator::explore::End;
using emulator::explore::Found;
using emulator::explore::Limits;

namespace {

/// A ring without bytes or with copies: thread 0 fills the stages, threads 32, 64, ... empty them.
struct Ring {
  std::uint64_t full[2];
  std::uint64_t empty[2];
  alignas(128) unsigned char stage[2][128];
  unsigned out[4];
};

struct RingForm {
  int stages = 2;
  int k_tiles = 3;
  int readers = 1;
  bool copies = false;         // an engine fills the stages
  int released_early = -1;     // this k-tile's stage, before it has been read
  int counts_more = 0;         // arrivals that empty waits for
  bool waits_for_last = true;  // the producer waits before it overwrites
  bool tests = false;          // readers poll with test_wait
};

__global__ void pass_on(RingForm form, const unsigned char* source) {
  auto& ring = ptx::dynamic_shared<Ring>();
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    for (int i = 0; i < form.stages; ++i) {
      ptx::mbarrier_init(&ring.full[i], 1);
      ptx::mbarrier_init(&ring.empty[i], static_cast<std::uint32_t>(form.readers + form.counts_more));
    }
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (thread % 32 != 0) return;
  for (int i = 0; i < form.k_tiles; ++i) {
    const int stage = i % form.stages;
    const auto parity = static_cast<std::uint32_t>(i / form.stages & 1);
    if (thread == 0) {
      if (form.waits_for_last)
        ptx::mbarrier_wait_parity(&ring.empty[stage], parity ^ 1, {"producer", "empty", stage, i});
      if (form.copies) {
        ptx::mbarrier_arrive_expect_tx(&ring.full[stage], 128);
        ptx::cp_async_bulk(ring.stage[stage], source, 128, &ring.full[stage]);
      } else {
        ptx::st_shared(reinterpret_cast<unsigned*>(ring.stage[stage]), static_cast<unsigned>(i));
        ptx::mbarrier_arrive(&ring.full[stage]);
      }
    } else {
      if (form.tests) {
        while (!ptx::mbarrier_test_wait_parity(&ring.full[stage], parity)) {
        }
      } else {
        ptx::mbarrier_wait_parity(&ring.full[stage], parity, {"consumer", "full", stage, i});
      }
      if (form.released_early == i) ptx::mbarrier_arrive(&ring.empty[stage]);
      static_cast<void>(ptx::ld_shared(reinterpret_cast<unsigned*>(ring.stage[stage])));
      if (form.copies) ptx::fence_proxy_async_shared_cta();
      if (form.released_early != i) ptx::mbarrier_arrive(&ring.empty[stage]);
    }
  }
}

emulator::explore::RunOnce ring(const RingForm& form) {
  return [form] {
    const DeviceArray<unsigned char> source(std::vector<unsigned char>(128, 1), "source");
    const Outcome outcome = run(
        pass_on, one_cta(static_cast<unsigned>(32 * (1 + form.readers)), sizeof(Ring)), form, source.get());
    return emulator::explore::Outcome{outcome.rule == "passed", outcome.rule, outcome.report};
  };
}

/// The same classes of schedules, by every order without reduction and with it; and each only once.
void check_agrees(const emulator::explore::RunOnce& run_once) {
  Limits limits;
  limits.seconds = 60;
  const Found reduced = search(run_once, limits);
  limits.reduce = false;
  const Found all = search(run_once, limits);
  INFO("reduced " << reduced.schedules << " (" << reduced.cut << " cut short), all " << all.schedules
                  << ", classes " << all.classes.size());
  CHECK(reduced.end == End::kAll);
  CHECK(all.end == End::kAll);
  CHECK(reduced.rules == all.rules);
  CHECK(all.schedules >= reduced.schedules);
  CHECK(reduced.schedules - reduced.failing == reduced.classes.size());
  CHECK((reduced.classes == all.classes));
}

}  // namespace

TEST_CASE("explore: a ring of 2 stages and 3 k-tiles has as many schedules as every order shows") {
  check_agrees(ring({}));
  check_agrees(ring({.copies = true}));
  check_agrees(ring({.k_tiles = 2, .readers = 2}));
  check_agrees(ring({.k_tiles = 2, .tests = true}));
}

namespace {

/// What a thread of a small program does, one after the other.
enum class Act : std::uint8_t { kLoad, kStore, kAdd, kExchange, kArrive, kTest, kWait, kMeet };
constexpr int kActors = 3;
constexpr int kMostActs = 4;
struct Program {
  Act acts[kActors][kMostActs];
  int words[kActors][kMostActs];  // of two words or barriers
  int count = 0;                  // acts of each
  int arrivals = 2;               // that a phase needs
};

struct Barriers {
  std::uint64_t barrier[2];
};

/// Threads 0, 32 and 64 each do their part.
__global__ void run_program(Program program, unsigned* words) {
  auto& barriers = ptx::dynamic_shared<Barriers>();
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    for (std::uint64_t& barrier : barriers.barrier)
      ptx::mbarrier_init(&barrier, static_cast<std::uint32_t>(program.arrivals));
  }
  __syncthreads();
  const int warp = thread / 32;
  for (int i = 0; i < program.count; ++i) {
    const Act act = program.acts[warp][i];
    const int word = program.words[warp][i];
    if (act == Act::kMeet) ptx::bar_sync(1 + word, 64);
    if (thread % 32 != 0) continue;
    // Each act has a line of its own: it is no loop that asks again.
    const auto line =
        emulator::Where::from_packed(emulator::Where::here().packed() + static_cast<unsigned>(i));
    if (act == Act::kLoad) static_cast<void>(ptx::ld_acquire_gpu(words + word, line));
    if (act == Act::kStore) ptx::st_release_gpu(words + word, static_cast<unsigned>(warp), line);
    if (act == Act::kAdd) static_cast<void>(atomicAdd(words + word, 1u, line));
    if (act == Act::kExchange) static_cast<void>(atomicExch(words + word, static_cast<unsigned>(warp), line));
    if (act == Act::kArrive) ptx::mbarrier_arrive(&barriers.barrier[word]);
    if (act == Act::kTest)
      static_cast<void>(ptx::mbarrier_test_wait_parity(&barriers.barrier[word], 0, line));
    if (act == Act::kWait)
      ptx::mbarrier_wait_parity(&barriers.barrier[word], static_cast<std::uint32_t>(i & 1),
                                {"actor", "full", word, i});
  }
}

emulator::explore::RunOnce program_run(const Program& program) {
  return [program] {
    const DeviceArray<unsigned> words(std::vector<unsigned>(2, 0), "words");
    const Outcome outcome = run(run_program, one_cta(32 * kActors, sizeof(Barriers)), program, words.get());
    return emulator::explore::Outcome{outcome.rule == "passed", outcome.rule, outcome.report};
  };
}

Program random_program(emulator::Random& random, const std::vector<Act>& acts, int count) {
  Program program{};
  program.count = count;
  program.arrivals = 1 + static_cast<int>(random.below(2));
  for (int actor = 0; actor < kActors; ++actor) {
    for (int i = 0; i < count; ++i) {
      program.acts[actor][i] = acts[random.below(static_cast<std::uint32_t>(acts.size()))];
      program.words[actor][i] = static_cast<int>(random.below(2));
    }
  }
  return program;
}

}  // namespace

TEST_CASE("explore: small programs on two words have as many schedules as every order shows") {
  emulator::Random random(1);
  for (int i = 0; i < 5; ++i) {
    INFO("program " << i);
    check_agrees(
        program_run(random_program(random, {Act::kLoad, Act::kStore, Act::kAdd, Act::kExchange}, 3)));
  }
}

TEST_CASE("explore: small programs on two barriers break the rules that every order shows", "[slow]") {
  emulator::Random random(2);
  int failing = 0;
  int passing = 0;
  for (int i = 0; i < 40; ++i) {
    INFO("program " << i);
    const Program program = random_program(random, {Act::kArrive, Act::kArrive, Act::kTest, Act::kWait}, 3);
    const auto run_once = program_run(program);
    Limits limits;
    limits.seconds_after_failure = 60;
    const Found reduced = search(run_once, limits);
    limits.reduce = false;
    const Found all = search(run_once, limits);
    CHECK(reduced.end == End::kAll);
    CHECK(all.end == End::kAll);
    CHECK(reduced.rules == all.rules);
    CHECK((reduced.failing == reduced.schedules) == (all.failing == all.schedules));
    CHECK((reduced.classes == all.classes));
    CHECK(reduced.schedules - reduced.failing == reduced.classes.size());
    ++(all.failing > 0 ? failing : passing);
  }
  CHECK(failing > 10);
  CHECK(passing > 0);
}

TEST_CASE("explore: the schedules of seeds are among those of the search") {
  const auto run_once = ring({.k_tiles = 3, .copies = true, .tests = true});
  const Found found = search(run_once, {});
  CHECK(found.end == End::kAll);
  CHECK(found.classes.size() > 1);
  std::set<std::uint64_t> seen;
  under_all_schedules([&] {
    const std::optional<std::uint64_t> one = class_of_run(run_once);
    REQUIRE(one);
    CHECK(found.classes.count(*one) == 1);
    seen.insert(*one);
  });
  CHECK(seen.size() > 1);
}

TEST_CASE("explore: a failing schedule is replayed, and one of a seed is shortened") {
  const auto run_once = ring({.k_tiles = 5, .readers = 2, .copies = true, .released_early = 2});
  const Found found = search(run_once, {.seconds = 20, .seconds_after_failure = 1});
  REQUIRE(found.shortest);
  std::vector<emulator::explore::ActorKey> actors;
  for (const auto& step : found.shortest->steps) {
    CHECK(!step.what.empty());
    REQUIRE(emulator::explore::parse_actor(text(step.actor)) == step.actor);
    actors.push_back(step.actor);
  }
  const auto again = replay(run_once, actors);
  CHECK(again.outcome.rule == found.shortest->outcome.rule);
  CHECK(again.outcome.report == found.shortest->outcome.report);
  actors.pop_back();
  CHECK(replay(run_once, actors).outcome.ok);  // not yet
  std::reverse(actors.begin(), actors.end());
  CHECK_THROWS_AS(replay(run_once, actors), harness::Error);
  under_schedules(10, [&] {
    auto recorded = record(run_once);
    REQUIRE(!recorded.outcome.ok);
    const std::size_t steps = recorded.steps.size();
    const auto shortest = shorten(run_once, std::move(recorded), 5);
    CHECK(!shortest.outcome.ok);
    CHECK(shortest.steps.size() <= steps);
    CHECK(shortest.steps.size() <= 40);
  });
  for (const char* wrong :
       {"", "thread", "thread 1.2", "thread 1.2.3.4", "fibre 1.2.3", "load 0.0.1.", "load 0..1.1"})
    CHECK(!emulator::explore::parse_actor(wrong));
}

}  // namespace explore_test
