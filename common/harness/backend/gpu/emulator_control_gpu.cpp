#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/explore_control.h"
#include "harness/backend/name_groups.h"
#include "harness/backend/ordering_control.h"
#include "harness/backend/outside_stores.h"

namespace harness {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      "this program was built for the GPU and has no emulator in it: use tools/run --backend emulator");
}

}  // namespace

void name_tiles(const gemm::Shape&, const gemm::TileShape&) {}
void name_groups(const gemm::Problem&) {}

std::string take_emulator_clue() {
  return {};
}

std::string take_outside_stores() {
  return {};
}
std::string take_outside_loads() {
  return {};
}
std::string tile_owners() {
  return {};
}

void control_emulator(const EmulatorControl&) {
  refuse();
}
void begin_streams_at_once() {
  refuse();
}
void end_streams_at_once() {}
void check_workspaces() {}
void elect_lowest_lane(bool) {
  refuse();
}
std::vector<CourseRule> course_rules() {
  return {};
}
void switch_course_rules(const std::vector<std::string>&, const std::vector<std::string>&) {
  refuse();
}
EmulatorCounters take_emulator_counters() {
  refuse();
}
int explore_schedules(const ScheduleRequest&, const ScheduledRun&) {
  refuse();
}
Explored explore_quietly(const ScheduledRun&, double) {
  refuse();
}
int shrink_schedule(const ScheduleRequest&, const ScheduledRun&) {
  refuse();
}
int replay_schedule(const ScheduleRequest&, const ScheduledRun&) {
  refuse();
}
void list_ordering_statements() {
  refuse();
}
std::vector<OrderingStatement> take_ordering_statements() {
  refuse();
}
void leave_out(const OrderingStatement&) {
  refuse();
}
void leave_nothing_out() {}
void begin_emulator_ledger() {
  refuse();
}
EmulatorLedger take_emulator_ledger() {
  refuse();
}

}  // namespace harness
