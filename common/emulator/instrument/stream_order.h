// What orders the work of streams: which operations may run at the same time as others, or as host code, and
// which bytes they touch. The emulator runs one operation after the other; whether the order in which it does
// so is one that the program demands follows from the streams, events and waits alone, and not from the seed.
//
// CUDA C++ Programming Guide, "Asynchronous Concurrent Execution", "Implicit Synchronization".
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/instrument/streams.h"
#include "emulator/machine/where.h"
#include "emulator/memory/shadow.h"
#include "emulator/memory/touched_bytes.h"

namespace emulator_cuda {

/// How many operations of each stream come before something, by the number of the stream; the default stream
/// has number 0.
class StreamClock {
 public:
  void join(const StreamClock& other);
  /// One operation more of this stream; returns its position.
  std::uint64_t advance(std::uint64_t stream);
  bool covers(std::uint64_t stream, std::uint64_t position) const;

 private:
  std::map<std::uint64_t, std::uint64_t> counts_;
};

/// An operation of a stream.
struct StreamWork {
  std::uint64_t stream = 0, position = 0;
  std::uint64_t number = 0;  // in the order in which the host has issued them
  NodeKind kind = NodeKind::kEmpty;
  StreamClock clock;  // what comes before it, and itself
  std::vector<const void*> callers;
  std::string kernel;
  emulator::Touched touched;
};

/// Host code gives a stream work that `clock` comes before. Called in a function that the file's code calls.
std::shared_ptr<StreamWork> issue(std::uint64_t stream, NodeKind kind, StreamClock& clock);
/// Runs it, and compares it with what may run at the same time. `pending`: what has not run yet.
void run_work(const std::shared_ptr<StreamWork>& work, const std::vector<const StreamWork*>& pending,
              const Operation& run);
/// The work has ended because it read memory that nothing had written: compares this read as well.
void note_unwritten(const std::shared_ptr<StreamWork>& work);
/// Host code has waited for all of this. `pending`: what has not run yet.
void host_has_waited(const StreamClock& clock, const std::vector<const StreamWork*>& pending);
/// What comes before everything that the host issues from now on.
const StreamClock& known_to_host();
void forget_work();
/// The report of an access by host code, where there is one: such an access cannot be stopped itself.
void throw_host_report();

/// A copy or a fill of the work that is running.
void note_copied(const void* memory, std::size_t bytes, bool is_write);
/// Host code touches memory of both sides.
void note_host_use(std::uintptr_t address, unsigned bytes, emulator::Access access, emulator::Where where);
/// Host code uses an atomic: a plain load beside it, as before a compare-and-swap, is not reported either.
void note_host_atomic(std::uintptr_t address);
/// Host code may do so too early: something that it has issued may still run.
extern std::atomic<bool> may_be_running;

}  // namespace emulator_cuda
