#include "emulator/machine/fiber.h"

#include <cstdint>
#include <string>

#include "catch.h"

namespace fiber_test {

namespace {

using emulator::Fiber;
using emulator::FiberPool;

TEST_CASE("a fiber goes on where it was, and starts anew on the same stack") {
  struct Run {
    Fiber* fiber;
    std::string said;
  };
  FiberPool pool;
  pool.reserve(2);
  Run run{&pool[0], ""};
  const auto entry = [](void* argument) {
    Run& r = *static_cast<Run*>(argument);
    r.said += 'a';
    r.fiber->suspend();
    r.said += 'b';
  };
  run.fiber->start(entry, &run);
  CHECK(run.said.empty());
  run.fiber->resume();
  run.said += '-';
  run.fiber->resume();
  CHECK(run.said == "a-b");
  run.fiber->start(entry, &run);
  run.fiber->resume();  // and is abandoned
  run.fiber->start(entry, &run);
  run.fiber->resume();
  run.fiber->resume();
  CHECK(run.said == "a-baab");
}

/// An address on the stack of the pool's first fiber.
std::uintptr_t address_on_stack(FiberPool& pool) {
  std::uintptr_t address = 0;
  const auto entry = [](void* argument) {
    *static_cast<std::uintptr_t*>(argument) = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  };
  pool[0].start(entry, &address);
  pool[0].resume();
  return address;
}

bool has_guard(FiberPool& pool) {
  const auto is_guard = [](std::uintptr_t address) {
    return emulator::is_fiber_guard(reinterpret_cast<const void*>(address));
  };
  const std::uintptr_t address = address_on_stack(pool);
  if (is_guard(address)) return false;
  constexpr std::uintptr_t kReach = 512 * 1024;  // more than the largest stack
  for (std::uintptr_t down = 0; down < kReach; down += 4096) {
    if (is_guard(address - down)) return true;
  }
  return false;
}

TEST_CASE("the page below a stack is known, however many pools came and went", "[slow]") {
  for (int i = 0; i < 10000; ++i) {
    FiberPool pool;
    pool.reserve(1);
    if (i % 4096 == 0) CHECK(has_guard(pool));
  }
  FiberPool pool;
  pool.reserve(1);
  CHECK(has_guard(pool));
}

}  // namespace

}  // namespace fiber_test
