#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"

namespace harness {
namespace {

[[noreturn]] void refuse() {
  throw Error(
      "this program was built for the GPU and has no emulator in it: use tools/run --backend emulator");
}

}  // namespace

void name_k_tiles(int, int) {}

void control_emulator(const EmulatorControl&) {
  refuse();
}
EmulatorCounters take_emulator_counters() {
  refuse();
}

}  // namespace harness
