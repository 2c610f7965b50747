// One run under the search, and what the search remembers from run to run.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/explore/search.h"
#include "emulator/explore/under_way.h"

namespace emulator::explore {

/// By actor: how many of its operations are known. Not the clocks of memory/happens_before.h: those say what
/// the programming model orders, these what cannot come in another order.
using Clock = std::vector<std::uint32_t>;

struct Event {
  std::uint32_t actor = 0;
  std::uint32_t number = 0;  // among the actor's, from 1
  Operation operation{};
  const void* key = nullptr;
  std::uint64_t phase = 0;    // of the barrier, when it came
  std::uint32_t pending = 0;  // arrivals, before
  std::int64_t missing = 0;   // bytes, before
  bool completed = false;     // the phase
  Clock clock;
};

/// A state, before the event with its number.
struct Node {
  std::uint32_t chosen = 0;
  std::vector<std::uint32_t> enabled;
  std::vector<std::uint32_t> disabled;   // threads whose wait cannot pass
  std::vector<std::uint32_t> sleep;      // whose next operation has been explored elsewhere
  std::vector<std::uint32_t> done;       // explored from here
  std::vector<std::uint32_t> backtrack;  // to be explored from here
  std::uint64_t bytes() const;
};

class Actors {
 public:
  std::uint32_t id(const ActorKey& key);
  const ActorKey& key(std::uint32_t id) const { return keys_[id]; }
  std::uint64_t hash(std::uint32_t id) const { return hashes_[id]; }  // the same in every search
  std::size_t size() const { return keys_.size(); }

 private:
  std::map<ActorKey, std::uint32_t> ids_;
  std::vector<ActorKey> keys_;
  std::vector<std::uint64_t> hashes_;
};

class Run;

struct Search {
  Limits limits;
  Actors actors;
  std::vector<Node> nodes;
  std::uint64_t bytes = 0;  // of the run's events
  std::uint64_t bytes_of_nodes = 0;
  std::uint64_t class_hash = 0;  // of the run, the same for all that are equivalent
  std::uint64_t unsure = 0;

  Outcome once(Run& run, const RunOnce& run_once);
  void add_race(const Run& run, std::size_t first, const Event& second);
  bool next_branch();
};

class Run {
 public:
  enum class Kind : std::uint8_t { kSearch, kReplay, kRecord };
  struct Candidate {
    std::uint32_t actor;
    Thread* thread;      // or nullptr:
    UnderWay under_way;  // this completes
    Operation operation;
  };

  Run(Search& search, Kind kind) : search_(search), kind_(kind) {}
  /// kReplay. When a step cannot come, or none is left, the run is cut short; or another step is taken.
  enum class Misfit : std::uint8_t { kCut, kLeaveOut, kGoOn };
  void set_schedule(const std::vector<ActorKey>& actors, Misfit misfit, bool describes);

  // By the gang.
  void begin_gang(Gang& gang);
  void end_gang();
  /// What comes next; none where nothing can. `others_go_on`: threads that no operation here has stopped.
  std::optional<Candidate> choose(bool others_go_on);
  void release(const Candidate& candidate);
  std::vector<Thread*> release_all();
  void give_up();
  void note_unfinished();
  void acts(const Thread& thread) { acting_ = slot(thread).actor; }
  Kind kind() const { return kind_; }

  // By the hooks.
  void park(const Operation& operation);
  void issue(ActorKind kind, std::uint64_t id, const Thread& issuer);
  void complete(ActorKind kind, std::uint64_t id);
  void asked(const Thread& thread, const Mbarrier& barrier, bool complete, Where where);
  void record_thread();
  void wake(const Thread& thread);
  void meet(const std::vector<const Thread*>& threads);
  void arrive_at(const void* object);
  void complete_object(const void* object);
  void complete_round(const void* object);
  void leave(const void* object, const Thread& thread);
  void wgmma(const Warpgroup& warpgroup, std::uint64_t number);
  void waited_for_wgmma(const Warpgroup& warpgroup, std::uint64_t number);

  std::vector<Event> events;
  bool is_cut = false;   // equivalent to another run, or the schedule does not fit
  bool is_over = false;  // the schedule, and the launch is not
  bool gave_up = false;
  std::size_t misfit = 0;
  std::vector<std::uint32_t> schedule;  // kReplay
  std::vector<std::uint32_t> executed;
  std::vector<std::uint32_t> recorded;  // kRecord
  std::vector<Step> steps;

 private:
  struct Slot {
    std::uint32_t actor = 0;
    bool parked = false;
    Operation operation{};                           // at which it is parked, or its latest
    bool has_asked = false;                          // its latest, in vain as far as is known
    bool asks_again = false;                         // the same at which it is parked
    std::uint64_t seen = 0;                          // then: phase or word
    std::map<const Warpgroup*, std::size_t> wgmmas;  // known
  };
  Slot& slot(const Thread& thread);
  Clock& clock(std::uint32_t actor);
  bool is_enabled(const Slot& slot) const;
  Event event_of(std::uint32_t actor, const Operation& operation);
  void begin_event(std::uint32_t actor, const Operation& operation);
  void end_event();
  void collect(std::vector<Candidate>& enabled, std::vector<std::uint32_t>& disabled);
  std::optional<Candidate> choose_of_schedule();
  std::string describe(const Candidate& candidate) const;

  Search& search_;
  Kind kind_;
  Gang* gang_ = nullptr;
  std::uint32_t gangs_ = 0;
  std::size_t first_of_gang_ = 0;
  std::vector<std::vector<Slot>> slots_;  // by CTA and thread
  std::map<std::pair<ActorKind, std::uint64_t>, std::uint32_t> pending_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, ActorKind>, std::uint32_t> issued_;
  std::unordered_map<const void*, std::vector<std::uint32_t>> objects_;  // events of each
  std::unordered_map<const void*, std::uint64_t> rounds_;                // of named barriers
  std::unordered_map<const void*, std::pair<Clock, Clock>> marks_;       // arriving, completed
  std::unordered_map<const Warpgroup*, std::vector<Clock>> wgmmas_;
  std::vector<Clock> clocks_;  // by actor
  std::uint32_t acting_ = 0;
  int asked_in_vain_ = 0;
  bool is_new_ = false;
  std::vector<Candidate> enabled_;
  std::vector<std::uint32_t> disabled_;
  std::vector<UnderWay> under_way_;
  std::size_t next_ = 0;
  Misfit misfits_ = Misfit::kCut;
  bool describes_ = false;
};

/// The run under way.
Run& current();

}  // namespace emulator::explore
