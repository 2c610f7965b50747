#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/name_groups.h"
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

}  // namespace harness
