// What the scheduler and the barriers tell the search for schedules (explore/search.h), and ask it. In an
// ordinary run nothing of it happens.
#pragma once

#include <cstdint>

#include "emulator/machine/where.h"

namespace emulator {
class Gang;
struct Cta;
struct Mbarrier;
struct Thread;
struct Warpgroup;
}  // namespace emulator

namespace emulator::explore {

enum class Mode : std::uint8_t {
  kOff,
  kChoosing,   // a gang is running whose schedule is chosen operation by operation
  kRecording,  // an ordinary schedule is written down
};
extern constinit Mode mode;
inline bool is_choosing() {
  return mode == Mode::kChoosing;
}
inline bool is_recording() {
  return mode == Mode::kRecording;
}
inline bool is_on() {
  return mode != Mode::kOff;
}
/// A search is under way, so that a launch has all its CTAs in one gang, on one OS thread.
bool searching();
/// So many CTAs at most: their threads are interleaved.
inline constexpr std::uint64_t kMostCtas = 16;

enum class OperationKind : std::uint8_t {
  kArrive,  // at an mbarrier, by a thread or by an engine; also bytes that arrive
  kExpect,  // more bytes, without an arrival
  kWait,    // for a phase: goes on when it is complete
  kTest,    // asks whether it is
  kNamed,   // arrives at a named barrier
  kLoad,    // of a word, by an atomic
  kStore,
  kUpdate,
  kAdd,  // an update without a result: several of one kind commute
};

/// An operation whose order with others may matter.
struct Operation {
  OperationKind kind;
  const char* what;
  Where where;
  const Mbarrier* barrier = nullptr;
  std::uint32_t parity = 0;
  std::uint32_t count = 0;         // arrivals
  std::int64_t bytes_missing = 0;  // what it adds to them
  const void* object = nullptr;    // a named barrier, or a word
  std::uint32_t bytes = 0;         // of the word
  std::uint32_t number = 0;        // of the named barrier
  std::uint32_t others = 0;        // arrivals that this one leaves to come
  bool blocks = false;             // until something happens
};

/// The running thread is about to execute it: it goes on when the search wants it to, and not before a wait
/// can pass, unless nothing else can happen.
void before(const Operation& operation);
/// While an ordinary schedule is recorded: the thread's wait or test at the barrier has had this result.
void has_asked(const Thread& thread, const Mbarrier& barrier, bool complete, Where where);

/// An asynchronous operation that ends in an arrival is under way, or takes effect now.
enum class ActorKind : std::uint8_t { kThread, kLoad, kCopies, kCommit };
void issued(ActorKind kind, std::uint64_t id, const Thread& issuer);
void completes(ActorKind kind, std::uint64_t id);

// What is ordered without being a choice.

/// The running thread, or what is completing, lets the thread go on.
void woken(const Thread& thread);
/// All that have been added have come to one place.
void add_to_meeting(const Thread& thread);
void end_meeting();
/// At an object at which threads arrive and go on: what they did before is before what follows its
/// completion.
void arrive_at(const void* object);
void complete(const void* object);
void leave(const void* object, const Thread& thread);
/// The running thread has executed wgmma `number` of its warpgroup, or has waited for all up to it.
void executes_wgmma(const Warpgroup& warpgroup, std::uint64_t number);
void has_waited_for_wgmma(const Warpgroup& warpgroup, std::uint64_t number);

}  // namespace emulator::explore
