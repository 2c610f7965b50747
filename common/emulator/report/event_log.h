// What happened to each mbarrier, in the emulator's own order, as JSON lines: what a figure of barriers and
// phases is drawn from.
#pragma once

#include <atomic>
#include <cstdint>
#include <iosfwd>

#include "emulator/machine/where.h"

namespace emulator {

struct Cta;
struct Thread;
struct Mbarrier;

struct LoggedEvent {
  const char* event;
  const Cta* cta = nullptr;
  const Thread* thread = nullptr;  // nullptr: an engine
  const Mbarrier* barrier = nullptr;
  std::uint32_t bytes = 0;
  std::int64_t number = -1;  // of a wgmma instruction or a group
  Where where;
};

/// One log at a time. The CTAs of the launch should run on one OS thread (Options::os_threads = 1), or
/// their lines interleave.
///
/// Each line is an object: "t" (order), "cta", "event", and where they apply "thread", "warp",
/// "barrier" (name), "offset", "phase", "pending", "tx", "bytes", "number", "where".
class EventLog {
 public:
  static void begin(std::ostream& lines);
  static void end();
  static bool on() { return active.load(std::memory_order_relaxed); }
  static void write(const LoggedEvent& event);

 private:
  static std::atomic<bool> active;
};

}  // namespace emulator
