// What WebAssembly has no counterpart of: signals, timers, and a table of symbols. A loop that never waits
// does not end by itself, so the page can end it; what WebAssembly itself refuses to do (a division by zero)
// reaches the page, which asks who was running.
#include <fmt/format.h>

#include "emulator/machine/watchdog.h"
#include "emulator/memory/faults.h"
#include "emulator/report/places.h"
#include "emulator/report/symbols.h"

namespace emulator {

void install_fault_handlers() {}
void use_signal_stack() {}

WatchTimer::WatchTimer(double) {}
WatchTimer::~WatchTimer() = default;
bool watch_has_ticked() {
  return false;
}
bool watch_has_expired() {
  return false;
}
double watch_seconds() {
  return 0;
}
double watch_stall_seconds() {
  return 0;
}
void watch_fiber_begins() {}
void watch_fiber_ends() {}
std::unique_ptr<Failure> take_fault(const Thread&) {
  return nullptr;
}

// The steps that pages run have no __shared__ variables but one struct of dynamic memory, whose members the
// emulator finds in the kernel's source (tools/page_program refuses others).
ThreadBlock thread_block_around(std::uintptr_t) {
  return {};
}
std::string name_function(const void*) {
  return {};
}
StaticSymbol find_variable(std::uintptr_t) {
  return {};
}

bool is_program_data(std::uintptr_t) {
  return false;
}

std::string name_variable(std::uintptr_t address) {
  return fmt::format("{:#x}", address);
}
SymbolSearch find_static_symbol(std::uintptr_t, StaticSymbol&) {
  return SymbolSearch::kNotShared;
}
std::string near_static_shared(std::uintptr_t, unsigned) {
  return {};
}
std::vector<std::string> lines_of_instruction(std::uintptr_t) {
  return {};
}

}  // namespace emulator
