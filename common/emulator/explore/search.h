// The search for schedules: runs a launch again and again, each time in an order that differs from the others
// in something that matters, until there is none left (docs/emulator/every-schedule.md).
//
// Stateless model checking with dynamic partial-order reduction: source sets and sleep sets (Abdulla, Aronis,
// Jonsson, Sagonas, "Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction", J. ACM 2017),
// and races with waits that were blocked as Flanagan and Godefroid find them (POPL 2005).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulator/explore/hooks.h"

namespace emulator::explore {

/// How a run ended.
struct Outcome {
  bool ok = true;
  std::string rule;    // that was broken, or "mismatch"
  std::string report;  // of it
};
/// Runs everything once, from the beginning: the same every time but for the schedule.
using RunOnce = std::function<Outcome()>;

/// One thread, or one asynchronous operation, in a way that is the same in every run.
struct ActorKey {
  std::uint32_t gang = 0;  // launches before
  std::uint32_t cta = 0;
  std::uint32_t thread = 0;  // that it is, or that issued it
  ActorKind kind = ActorKind::kThread;
  std::uint32_t number = 0;                           // among those of the kind and the thread
  auto operator<=>(const ActorKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
/// "thread 0.0.37", "load 0.0.0.2": kind, launch, CTA, thread, number.
std::string text(const ActorKey& key);
std::optional<ActorKey> parse_actor(const std::string& text);

/// One step of a schedule, and what it is, for readers.
struct Step {
  ActorKey actor;
  std::string what;  // "arrives at empty[0], phase 0 complete"
  std::string where;
};

struct Schedule {
  std::vector<Step> steps;
  Outcome outcome;
};

struct Limits {
  double seconds = 300;
  std::uint64_t bytes = std::uint64_t{2} << 30;  // of what the search remembers
  std::uint64_t schedules = ~std::uint64_t{0};
  double seconds_after_failure = 20;  // in which a shorter one may be found
  bool reduce = true;                 // false: every order, for tests
  bool shortens = true;               // the schedule that fails, by what its failure does not need
};

enum class End { kAll, kTime, kMemory, kSchedules, kNotExplored };

struct Found {
  End end = End::kAll;
  std::string reason;               // kNotExplored: why
  std::uint64_t schedules = 0;      // that were run to their end
  std::uint64_t failing = 0;        // of these
  std::uint64_t cut = 0;            // runs that were cut short: equivalent to others
  std::uint64_t most_steps = 0;     // of a schedule
  std::uint64_t first_failure = 0;  // its number, from 1
  double seconds = 0;
  std::set<std::string> rules;         // broken
  std::set<std::uint64_t> classes;     // of equivalent schedules that are right, one number each
  std::optional<Schedule> shortest;    // that fails, cut to what the failure depends on
  std::uint64_t steps_before_cut = 0;  // of it
};

/// `progress` is called now and then with the number of schedules; it returns false to stop.
Found search(const RunOnce& run_once, const Limits& limits,
             const std::function<bool(std::uint64_t)>& progress = {});

/// Runs the schedule. Its steps come back with what they did; the outcome is that of the run. A step that
/// cannot come where it stands is an Error.
Schedule replay(const RunOnce& run_once, const std::vector<ActorKey>& actors, bool describe = true);

/// Makes a failing schedule as short as it gets: steps on which the failure does not depend are left out.
Schedule shorten(const RunOnce& run_once, Schedule failing, double seconds);

/// The class, as in Found::classes, of an ordinary run with the present options; none if it fails.
std::optional<std::uint64_t> class_of_run(const RunOnce& run_once);

/// Runs once in the order of an ordinary run with the present options, and records it.
Schedule record(const RunOnce& run_once);

}  // namespace emulator::explore
