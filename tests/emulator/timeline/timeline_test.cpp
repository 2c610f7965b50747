// The log behind the timelines: lanes that run one after the other become a warp again; and the model's rules
// on logs of a few operations.
#include "emulator/timeline/timeline.h"

#include <memory>

#include "catch.h"
#include "emulator/timeline/timeline_model.h"
#include "harness/backend/backend.h"

namespace timeline_test {

namespace {

namespace ptx = gemm::ptx;

using emulator::Operation;
using emulator::OperationKind;

Operation operation(OperationKind kind, std::uint64_t where) {
  return {.kind = kind, .where = where};
}

std::vector<std::uint64_t> places(const emulator::WarpLog& log) {
  std::vector<std::uint64_t> all;
  for (const Operation& one : log.operations()) all.push_back(one.where);
  return all;
}

TEST_CASE("timeline log: what lanes execute at one place is one operation, whichever runs first") {
  for (const bool lane_0_first : {true, false}) {
    emulator::WarpLog log;
    const auto lane_0 = [&] {  // issues, then waits with the others
      for (const std::uint64_t where : {10, 11, 20})
        log.alone(0, operation(OperationKind::kMbarrierWait, where));
    };
    const auto others = [&] {
      for (int lane = 1; lane < 32; ++lane) log.alone(lane, operation(OperationKind::kMbarrierWait, 20));
    };
    if (lane_0_first) {
      lane_0();
      others();
    } else {
      others();
      lane_0();
    }
    for (int lane = 31; lane >= 0; --lane) log.together(lane, operation(OperationKind::kWgmma, 30));
    CHECK(places(log) == std::vector<std::uint64_t>{10, 11, 20, 30});
    CHECK(log.operations()[2].lanes == 0xffffffffu);
    CHECK(log.operations()[0].lanes == 1);
  }
}

TEST_CASE("timeline log: a lane that is ahead does not mix the iterations of a loop") {
  emulator::WarpLog log;
  for (const int lane : {5, 0}) {
    for (int i = 0; i < 3; ++i) {
      Operation wait = operation(OperationKind::kMbarrierWait, 20);
      wait.count = static_cast<std::uint32_t>(i + 1);
      log.alone(lane, wait);
      log.together(lane, operation(OperationKind::kWgmma, 30));
      if (lane == 0) log.alone(lane, operation(OperationKind::kMbarrierArrive, 40));
    }
  }
  CHECK(places(log) == std::vector<std::uint64_t>{20, 30, 40, 20, 30, 40, 20, 30, 40});
}

TEST_CASE("timeline log: bytes and lines of a warp's accesses are added up") {
  emulator::WarpLog log;
  for (int lane = 0; lane < 32; ++lane) {
    Operation load = operation(OperationKind::kLoadGlobal, 1);
    load.bytes = 16;
    load.keys = {static_cast<std::uint64_t>(lane / 8)};
    log.alone(lane, load);
  }
  REQUIRE(log.operations().size() == 1);
  CHECK(log.operations()[0].bytes == 512);
  CHECK(log.operations()[0].keys.size() == 4);
}

/// A launch of one CTA with one warp; lane 0 does everything.
struct OneWarp {
  emulator::LaunchLog launch;
  emulator::CtaLog* cta;

  OneWarp() {
    auto owned = std::make_unique<emulator::CtaLog>();
    cta = owned.get();
    cta->threads = 32;
    cta->cluster = {0};
    cta->warps.resize(1);
    cta->barriers[8] = 1;
    launch.ctas[0] = std::move(owned);
  }
  Operation& add(Operation one) { return cta->warps[0].alone(0, one); }
  void state(ptx::TraceState which) {
    Operation one = operation(OperationKind::kState, 100 + static_cast<std::uint64_t>(which));
    one.state.state = which;
    add(one);
  }
};

TEST_CASE(
    "timeline model: a TMA copy takes its latency and its bytes at the rate of L2, and the wait with it") {
  OneWarp warp;
  constexpr std::uint32_t kBytes = 5200;
  Operation arrive = operation(OperationKind::kMbarrierArrive, 1);
  arrive.keys = {8};
  arrive.bytes = kBytes;
  arrive.flag = true;
  warp.add(arrive);
  Operation load = operation(OperationKind::kTmaLoad, 2);
  load.keys = {8};
  load.bytes = kBytes;
  warp.add(load);
  warp.state(ptx::TraceState::kWaitFull);
  Operation wait = operation(OperationKind::kMbarrierWait, 3);
  wait.keys = {8};
  wait.count = 1;
  warp.add(wait);
  warp.state(ptx::TraceState::kNone);
  const harness::TraceData data = emulator::replay(warp.launch, 1, 1);
  REQUIRE(data.roles.size() == 1);
  REQUIRE(data.roles[0].states.size() == 2);
  const emulator::ModelConstants c;
  const double issued = 2 * c.issue;
  CHECK(data.roles[0].states[1].clock == issued + kBytes / c.copy_bytes + c.tma_latency + c.shared_latency);
}

TEST_CASE("timeline model: a warp that waits for what does not come is named") {
  OneWarp warp;
  Operation wait = operation(OperationKind::kMbarrierWait, 3);
  wait.keys = {8};
  wait.count = 1;
  warp.add(wait);
  CHECK_THROWS_WITH(emulator::replay(warp.launch, 1, 1), has_text("warp 0 of CTA 0 waits"));
}

TEST_CASE("timeline: a state survives its way through a word") {
  using ptx::TraceRecord;
  using ptx::TraceState;
  for (const TraceRecord& record :
       {TraceRecord{TraceState::kWaitEmpty, 'p', 3, 131070}, TraceRecord{TraceState::kPass, 0, -1, -1},
        TraceRecord{TraceState::kWaitFull, 'c', 0, 0}, TraceRecord{TraceState::kWaitOrder, 'i', 1, 0},
        TraceRecord{TraceState::kWaitOrder, 'e', 254, 7}, TraceRecord{TraceState::kMultiply, 0, 128, -1}}) {
    const TraceRecord back = ptx::trace_record(ptx::trace_word(record));
    CHECK(back.state == record.state);
    CHECK(back.role == record.role);
    CHECK(back.stage == record.stage);
    CHECK(back.k_tile == record.k_tile);
  }
}

}  // namespace

}  // namespace timeline_test
