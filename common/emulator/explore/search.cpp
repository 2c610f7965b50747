#include "emulator/explore/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "emulator/async/async_memory.h"
#include "emulator/async/hopper.h"
#include "emulator/explore/run.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/shared_space.h"
#include "emulator/sync/mbarrier.h"
#include "harness/backend/backend.h"

namespace emulator::explore {

constinit Mode mode = Mode::kOff;

namespace {

constexpr const char* kKindNames[] = {"thread", "load", "copies", "commit"};
constexpr const char* kCutShort = "explore-cut-short";
/// A thread that gives way so often in a row pauses. When nothing else can happen, it goes on, and after so
/// many pauses it waits for something that no operation here brings.
constexpr std::uint32_t kTurnsBeforePause = 64;
constexpr std::uint32_t kMostPauses = 64;

/// Nothing else can happen, and threads ask the same again: so often, before they count as stuck.
constexpr int kMostInVain = 8;

Run* run_now = nullptr;

using Seconds = std::chrono::duration<double>;
using Time = std::chrono::steady_clock::time_point;
Time now() {
  return std::chrono::steady_clock::now();
}

void join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

bool covers(const Clock& clock, std::uint32_t actor, std::uint32_t number) {
  return actor < clock.size() && clock[actor] >= number;
}

std::uint64_t scrambled(std::uint64_t value) {
  return Random(value).next();
}

bool is_question(OperationKind kind) {
  return kind == OperationKind::kWait || kind == OperationKind::kTest;
}
bool is_word(OperationKind kind) {
  return kind >= OperationKind::kLoad;
}

std::uint64_t word_at(const void* address, std::uint32_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, address, std::min<std::size_t>(bytes, sizeof word));
  return word;
}

/// Words in one line of 16 bytes have one key.
const void* key_of(const Operation& operation) {
  if (operation.barrier != nullptr) return operation.barrier;
  if (operation.kind == OperationKind::kNamed) return operation.object;
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(operation.object) &
                                       ~std::uintptr_t{15});
}

bool overlap(const Operation& one, const Operation& other) {
  const auto a = reinterpret_cast<std::uintptr_t>(one.object);
  const auto b = reinterpret_cast<std::uintptr_t>(other.object);
  return a < b + other.bytes && b < a + one.bytes;
}

/// Two operations on words.
bool words_conflict(const Operation& one, const Operation& other) {
  if (!overlap(one, other)) return false;
  if (one.kind == OperationKind::kLoad && other.kind == OperationKind::kLoad) return false;
  return one.kind != OperationKind::kAdd || other.kind != OperationKind::kAdd ||
         std::string_view(one.what) != other.what;
}

/// Whether the order of the two, the earlier and the later, matters.
bool dependent(const Event& one, const Event& other) {
  const OperationKind a = one.operation.kind;
  const OperationKind b = other.operation.kind;
  if (is_word(a)) return words_conflict(one.operation, other.operation);
  if (a == OperationKind::kNamed) return one.phase != other.phase;
  if (is_question(a) && is_question(b)) return false;
  // A wait does not ask how many bytes are missing.
  if (is_question(a) || is_question(b)) return a != OperationKind::kExpect && b != OperationKind::kExpect;
  if (one.phase != other.phase) return true;
  // Arrivals of one phase commute; so do the bytes that they bring. An arrival without them may end the phase
  // before more are expected.
  return (a == OperationKind::kExpect) != (b == OperationKind::kExpect);
}

/// Whether `second` could have come before `first`.
bool reversible(const Event& first, const Event& second) {
  if (second.operation.kind == OperationKind::kWait) return (first.phase & 1) != second.operation.parity;
  return true;
}

/// Whether the order of the two is to be reversed. `before`: what the actor of `second` knew before it; its
/// own clock knows what comes between them. What waits may have been able to go on before something between
/// them has stopped it.
bool may_race(const Event& first, const Event& second, const Clock& before) {
  const Clock& known = second.operation.blocks ? before : second.clock;
  return !covers(known, first.actor, first.number) && reversible(first, second);
}

bool completes_alone(const Operation& operation, std::uint32_t pending, std::int64_t missing) {
  return operation.count == pending && missing + operation.bytes_missing == 0;
}

/// Whether what an actor is about to do may matter to `event`, which was executed instead of it.
bool may_depend(const Operation& operation, const Event& event) {
  if (key_of(operation) != event.key) return false;
  const OperationKind a = operation.kind;
  const OperationKind b = event.operation.kind;
  if (is_word(a)) return is_word(b) && words_conflict(operation, event.operation);
  if (a == OperationKind::kNamed)
    return event.completed || operation.others == 0 || event.operation.others == 0;
  if (is_question(a) && is_question(b)) return false;
  if (is_question(a) || is_question(b)) return a != OperationKind::kExpect && b != OperationKind::kExpect;
  if ((a == OperationKind::kExpect) != (b == OperationKind::kExpect)) return true;
  return event.completed || completes_alone(operation, event.pending, event.missing);
}

bool contains(const std::vector<std::uint32_t>& all, std::uint32_t one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

std::string text(const ActorKey& key) {
  std::string text =
      fmt::format("{} {}.{}.{}", kKindNames[static_cast<int>(key.kind)], key.gang, key.cta, key.thread);
  if (key.kind != ActorKind::kThread) text += fmt::format(".{}", key.number);
  return text;
}

std::optional<ActorKey> parse_actor(const std::string& text) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos) return {};
  ActorKey key;
  const auto kind = std::find(std::begin(kKindNames), std::end(kKindNames), text.substr(0, blank));
  if (kind == std::end(kKindNames)) return {};
  key.kind = static_cast<ActorKind>(kind - std::begin(kKindNames));
  std::vector<std::uint32_t> numbers;
  std::size_t at = blank + 1;
  while (at < text.size()) {
    std::uint64_t number = 0;
    const std::size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 1u << 31; ++at)
      number = number * 10 + static_cast<std::uint64_t>(text[at] - '0');
    if (at == begin || (at < text.size() && text[at] != '.') || at + 1 == text.size()) {
      if (at == begin || at < text.size()) return {};
    }
    numbers.push_back(static_cast<std::uint32_t>(number));
    ++at;
  }
  if (numbers.size() != (key.kind == ActorKind::kThread ? 3u : 4u)) return {};
  key.gang = numbers[0];
  key.cta = numbers[1];
  key.thread = numbers[2];
  if (numbers.size() == 4) key.number = numbers[3];
  return key;
}

bool searching() {
  return run_now != nullptr;
}

// Actors.

std::uint32_t Actors::id(const ActorKey& key) {
  const auto [found, is_new] = ids_.try_emplace(key, static_cast<std::uint32_t>(keys_.size()));
  if (is_new) {
    keys_.push_back(key);
    hashes_.push_back(scrambled(scrambled(std::uint64_t{key.gang} << 32 | key.cta) ^
                                (std::uint64_t{key.thread} << 32 | key.number) ^
                                static_cast<std::uint64_t>(key.kind) << 60));
  }
  return found->second;
}

// A run.

void Run::begin_gang(Gang& gang) {
  gang_ = &gang;
  if (gangs_++ > 0) clocks_.clear();  // launches follow one another
  slots_.clear();
  pending_.clear();
  issued_.clear();
  objects_.clear();
  rounds_.clear();
  marks_.clear();
  wgmmas_.clear();
  first_of_gang_ = events.size();
  for (const auto& cta : gang.ctas) {
    slots_.emplace_back(static_cast<std::size_t>(cta->thread_count));
    for (Slot& slot : slots_.back()) {
      const auto thread = static_cast<std::uint32_t>(&slot - slots_.back().data());
      slot.actor = search_.actors.id({gangs_ - 1, static_cast<std::uint32_t>(cta->linear), thread});
    }
  }
  mode = kind_ == Kind::kRecord ? Mode::kRecording : Mode::kChoosing;
}

void Run::end_gang() {
  mode = Mode::kOff;
  gang_ = nullptr;
}

Run::Slot& Run::slot(const Thread& thread) {
  return slots_[thread.cta->index_in_gang][thread.index];
}

Clock& Run::clock(std::uint32_t actor) {
  if (clocks_.size() < search_.actors.size()) clocks_.resize(search_.actors.size());
  return clocks_[actor];
}

bool Run::is_enabled(const Slot& slot) const {
  const Operation& operation = slot.operation;
  if (operation.kind == OperationKind::kWait) return operation.barrier->complete(operation.parity);
  if (!slot.asks_again) return true;
  return operation.barrier != nullptr ? operation.barrier->phase != slot.seen
                                      : word_at(operation.object, operation.bytes) != slot.seen;
}

void Run::park(const Operation& operation) {
  const Thread& thread = running_thread();
  Slot& mine = slot(thread);
  // A loop that asks the same once more goes on when the answer may be another one.
  bool again = mine.has_asked && mine.operation.what == operation.what &&
               mine.operation.where.packed() == operation.where.packed() &&
               mine.operation.barrier == operation.barrier && mine.operation.object == operation.object;
  if (again && operation.barrier == nullptr) again = word_at(operation.object, operation.bytes) == mine.seen;
  mine.asks_again = again;
  mine.operation = operation;
  mine.operation.blocks = again || operation.kind == OperationKind::kWait;
  mine.parked = true;
  const Gang* const gang = gang_;
  gang_->suspend_parked();
  if (gang_ != gang || !is_choosing()) return;
  mine.has_asked = operation.kind == OperationKind::kTest || operation.kind == OperationKind::kLoad ||
                   operation.kind == OperationKind::kUpdate;
  if (operation.barrier != nullptr) {
    mine.has_asked = mine.has_asked && !operation.barrier->complete(operation.parity);
    mine.seen = operation.barrier->phase;
  } else if (operation.object != nullptr && is_word(operation.kind)) {
    mine.seen = word_at(operation.object, operation.bytes);
  }
}

void Run::issue(ActorKind kind, std::uint64_t id, const Thread& issuer) {
  const std::uint32_t number = issued_[{issuer.cta->linear, issuer.index, kind}]++;
  const std::uint32_t actor = search_.actors.id(
      {gangs_ - 1, static_cast<std::uint32_t>(issuer.cta->linear), issuer.index, kind, number});
  pending_[{kind, id}] = actor;
  if (kind_ != Kind::kRecord) clock(actor) = clock(slot(issuer).actor);
}

void Run::complete(ActorKind kind, std::uint64_t id) {
  if (kind_ == Kind::kRecord) recorded.push_back(pending_.at({kind, id}));
}

void Run::asked(const Thread& thread, const Mbarrier& barrier, bool complete, Where where) {
  Slot& mine = slot(thread);
  const bool again = !complete && mine.has_asked && mine.operation.barrier == &barrier &&
                     mine.seen == barrier.phase && mine.operation.where.packed() == where.packed();
  mine.has_asked = !complete;
  mine.operation.barrier = &barrier;
  mine.operation.where = where;
  mine.seen = barrier.phase;
  if (!again) recorded.push_back(mine.actor);
}

void Run::wake(const Thread& thread) {
  join(clock(slot(thread).actor), clock(acting_));
}

void Run::meet(const std::vector<const Thread*>& threads) {
  Clock all;
  for (const Thread* thread : threads) join(all, clock(slot(*thread).actor));
  for (const Thread* thread : threads) clock(slot(*thread).actor) = all;
}

void Run::arrive_at(const void* object) {
  join(marks_[object].first, clock(slot(running_thread()).actor));
}
void Run::complete_object(const void* object) {
  auto& [arriving, completed] = marks_[object];
  completed = std::move(arriving);
  arriving.clear();
}
void Run::leave(const void* object, const Thread& thread) {
  join(clock(slot(thread).actor), marks_[object].second);
}

void Run::wgmma(const Warpgroup& warpgroup, std::uint64_t number) {
  std::vector<Clock>& all = wgmmas_[&warpgroup];
  if (all.size() <= number) all.resize(number + 1);
  join(all[number], clock(slot(running_thread()).actor));
}
void Run::waited_for_wgmma(const Warpgroup& warpgroup, std::uint64_t number) {
  const std::vector<Clock>& all = wgmmas_[&warpgroup];
  // A thread has taken part in the ones before.
  const std::size_t end = std::min<std::size_t>(number + 1, all.size());
  Slot& mine = slot(running_thread());
  std::size_t& known = mine.wgmmas[&warpgroup];
  for (; known < end; ++known) join(clock(mine.actor), all[known]);
}

/// What is about to happen, before it has.
Event Run::event_of(std::uint32_t actor, const Operation& operation) {
  Event event;
  event.actor = actor;
  event.operation = operation;
  event.key = key_of(operation);
  if (const Mbarrier* barrier = operation.barrier) {
    event.phase = barrier->phase;
    event.pending = barrier->pending;
    event.missing = barrier->tx;
  } else if (operation.kind == OperationKind::kNamed) {
    event.phase = rounds_[operation.object];
  }
  return event;
}

void Run::begin_event(std::uint32_t actor, const Operation& operation) {
  Event event = event_of(actor, operation);
  const Clock before = clock(actor);
  event.clock = before;
  std::vector<std::uint32_t>& earlier = objects_[event.key];
  const bool races = kind_ == Kind::kSearch && search_.limits.reduce;
  std::uint64_t hash = 0;
  std::vector<std::uint32_t> raced;
  for (auto i = earlier.rbegin(); i != earlier.rend(); ++i) {
    const Event& other = events[*i];
    if (!dependent(other, event)) continue;
    hash += scrambled(search_.actors.hash(other.actor) + other.number);
    if (other.actor == actor) continue;
    if (races && may_race(other, event, before)) raced.push_back(*i);
    if (!covers(event.clock, other.actor, other.number)) join(event.clock, other.clock);
  }
  if (event.clock.size() <= actor) event.clock.resize(actor + 1, 0);
  event.number = ++event.clock[actor];
  search_.class_hash += scrambled(hash ^ scrambled(search_.actors.hash(actor) + event.number));
  for (const std::uint32_t i : raced) search_.add_race(*this, i, event);
  clock(actor) = event.clock;
  acting_ = actor;
  search_.bytes += sizeof(Event) + event.clock.size() * sizeof(std::uint32_t);
  earlier.push_back(static_cast<std::uint32_t>(events.size()));
  events.push_back(std::move(event));
  is_new_ = true;
}

/// It has been executed.
void Run::end_event() {
  if (!is_new_) return;
  is_new_ = false;
  Event& event = events.back();
  const Operation& operation = event.operation;
  if (operation.barrier != nullptr) {
    event.completed = operation.barrier->phase != event.phase;
  } else if (operation.kind == OperationKind::kNamed) {
    event.completed = rounds_[operation.object] != event.phase;
  }
}

void Run::complete_round(const void* object) {
  ++rounds_[object];
}

/// What may come next: threads first.
void Run::collect(std::vector<Candidate>& enabled, std::vector<std::uint32_t>& disabled) {
  enabled.clear();
  disabled.clear();
  for (std::size_t c = 0; c < slots_.size(); ++c) {
    for (std::size_t i = 0; i < slots_[c].size(); ++i) {
      const Slot& one = slots_[c][i];
      if (!one.parked) continue;
      if (is_enabled(one)) {
        enabled.push_back({one.actor, &gang_->ctas[c]->threads[i], {}, one.operation});
      } else {
        disabled.push_back(one.actor);
      }
    }
  }
  under_way_.clear();
  if (gang_->hopper != nullptr) gang_->hopper->arrivals_under_way(under_way_);
  for (const UnderWay& one : under_way_)
    enabled.push_back({pending_.at({one.kind, one.id}), nullptr, one, one.operation()});
  if (!enabled.empty()) {
    asked_in_vain_ = 0;
    return;
  }
  // What asks the same again may be no loop that waits.
  if (++asked_in_vain_ > kMostInVain) return;
  for (std::size_t c = 0; c < slots_.size(); ++c) {
    for (std::size_t i = 0; i < slots_[c].size(); ++i) {
      const Slot& one = slots_[c][i];
      if (one.parked && one.asks_again && one.operation.kind != OperationKind::kWait)
        enabled.push_back({one.actor, &gang_->ctas[c]->threads[i], {}, one.operation});
    }
  }
}

std::string Run::describe(const Candidate& candidate) const {
  const Operation& operation = candidate.operation;
  std::string object;
  if (operation.barrier != nullptr) {
    object = name_mbarrier(*operation.barrier);
    if (object.starts_with("mbarrier ")) object.erase(0, 9);
    const bool waits = operation.kind == OperationKind::kWait;
    object += waits && operation.barrier->phase == 0
                  ? ", fresh (parity 1)"
                  : fmt::format(", phase {}", operation.barrier->phase - (waits ? 1 : 0));
  } else if (operation.kind == OperationKind::kNamed) {
    object = fmt::format("named barrier {}", operation.number);
  } else {
    const Cta* const cta = candidate.thread != nullptr ? candidate.thread->cta : nullptr;
    const auto offset = cta != nullptr ? shared_offset(*cta, operation.object, operation.where)
                                       : std::optional<std::uint32_t>();
    object = fmt::format("{} (now {})",
                         offset ? name_shared_offset(*cta, *offset)
                                : name_address(reinterpret_cast<std::uintptr_t>(operation.object)),
                         word_at(operation.object, operation.bytes));
  }
  if (candidate.thread == nullptr) {
    const bool bytes = operation.count == 0;
    return bytes ? fmt::format("{} bytes arrive at {}", -operation.bytes_missing, object)
                 : fmt::format("{} arrives at {}",
                               candidate.under_way.kind == ActorKind::kCommit ? "tcgen05.commit"
                                                                              : "the end of cp.async copies",
                               object);
  }
  switch (operation.kind) {
    case OperationKind::kArrive:
      if (operation.count == 0) return fmt::format("{} bytes arrive at {}", -operation.bytes_missing, object);
      return operation.bytes_missing > 0
                 ? fmt::format("arrives at {}, and expects {} bytes", object, operation.bytes_missing)
                 : fmt::format("arrives at {}", object);
    case OperationKind::kExpect:
      return fmt::format("expects {} bytes at {}", operation.bytes_missing, object);
    case OperationKind::kWait:
      return fmt::format("passes its wait at {}", object);
    case OperationKind::kTest:
      return fmt::format("asks {}: {}", object,
                         operation.barrier->complete(operation.parity) ? "complete" : "not complete");
    case OperationKind::kNamed:
      return fmt::format("arrives at {}", object);
    default:
      return fmt::format("{} of {}", operation.what, object);
  }
}

std::optional<Run::Candidate> Run::choose(bool others_go_on) {
  end_event();
  collect(enabled_, disabled_);
  if (enabled_.empty() && others_go_on) return {};
  const std::size_t depth = events.size();
  if (kind_ == Kind::kReplay) return choose_of_schedule();
  std::vector<Node>& nodes = search_.nodes;
  std::uint32_t wanted = 0;
  if (depth < nodes.size()) {
    wanted = nodes[depth].chosen;
  } else {
    Node node;
    if (depth > 0 && search_.limits.reduce) {
      const Node& before = nodes[depth - 1];
      const auto keep = [&](std::uint32_t actor) {
        if (actor == before.chosen || contains(node.sleep, actor)) return;
        for (const Candidate& one : enabled_) {
          if (one.actor == actor && !may_depend(one.operation, events.back())) node.sleep.push_back(actor);
        }
      };
      for (const std::uint32_t actor : before.sleep) keep(actor);
      for (const std::uint32_t actor : before.done) keep(actor);
    }
    if (enabled_.empty()) return {};
    const auto first = std::find_if(enabled_.begin(), enabled_.end(),
                                    [&](const Candidate& one) { return !contains(node.sleep, one.actor); });
    if (first == enabled_.end()) {
      is_cut = true;
      gang_->fail_from_engine({kCutShort, kCutShort});
      return {};
    }
    for (const Candidate& one : enabled_) node.enabled.push_back(one.actor);
    node.disabled = disabled_;
    node.chosen = wanted = first->actor;
    node.backtrack = search_.limits.reduce ? std::vector<std::uint32_t>{wanted} : node.enabled;
    search_.bytes_of_nodes += node.bytes();
    nodes.push_back(std::move(node));
  }
  const auto found = std::find_if(enabled_.begin(), enabled_.end(),
                                  [&](const Candidate& one) { return one.actor == wanted; });
  if (found == enabled_.end())
    throw harness::Error(
        "the launch does something else when it is repeated with the same schedule, so its schedules cannot "
        "be "
        "enumerated: it must depend on nothing but its inputs");
  Candidate chosen = *found;
  begin_event(chosen.actor, chosen.operation);
  return chosen;
}

std::optional<Run::Candidate> Run::choose_of_schedule() {
  while (next_ < schedule.size()) {
    const std::uint32_t wanted = schedule[next_];
    ++next_;
    const auto found = std::find_if(enabled_.begin(), enabled_.end(),
                                    [&](const Candidate& one) { return one.actor == wanted; });
    if (found == enabled_.end()) {
      if (misfits_ == Misfit::kCut) {
        misfit = next_ - 1;
        is_cut = true;
        gang_->fail_from_engine({kCutShort, kCutShort});
        return {};
      }
      continue;
    }
    Candidate chosen = *found;
    if (describes_) {
      Step step{search_.actors.key(wanted), describe(chosen), {}};
      if (chosen.thread != nullptr) step.where = chosen.operation.where.text();
      steps.push_back(std::move(step));
    }
    executed.push_back(wanted);
    begin_event(chosen.actor, chosen.operation);
    return chosen;
  }
  if (!enabled_.empty() && misfits_ == Misfit::kGoOn) {
    begin_event(enabled_.front().actor, enabled_.front().operation);
    return enabled_.front();
  }
  if (!enabled_.empty()) {
    is_over = true;
    gang_->fail_from_engine({kCutShort, kCutShort});
  }
  return {};
}

void Run::release(const Candidate& candidate) {
  Slot& one = slot(*candidate.thread);
  one.parked = false;
}

std::vector<Thread*> Run::release_all() {
  std::vector<Thread*> threads;
  for (std::size_t c = 0; c < slots_.size(); ++c) {
    for (std::size_t i = 0; i < slots_[c].size(); ++i) {
      if (!std::exchange(slots_[c][i].parked, false)) continue;
      threads.push_back(&gang_->ctas[c]->threads[i]);
    }
  }
  return threads;
}

void Run::give_up() {
  gave_up = true;
  mode = Mode::kOff;
}

/// The run has failed or is cut short: what would have come next may have come before something else, also a
/// wait that can no longer pass.
void Run::note_unfinished() {
  if (kind_ != Kind::kSearch || !search_.limits.reduce || gang_ == nullptr) return;
  end_event();
  // The rest of the launch has not been run. It may be run without the last step, which then is asleep until
  // something that matters to it has happened.
  if (!events.empty() && !is_cut) {
    Node& last = search_.nodes[events.size() - 1];
    for (const std::uint32_t actor : last.enabled) {
      if (contains(last.backtrack, actor) || contains(last.sleep, actor)) continue;
      last.backtrack.push_back(actor);
      break;
    }
  }
  const auto note = [&](std::uint32_t actor, const Operation& operation) {
    Event event = event_of(actor, operation);
    const Clock before = clock(actor);
    event.clock = before;
    std::vector<std::uint32_t> raced;
    const auto found = objects_.find(event.key);
    if (found == objects_.end()) return;
    for (auto i = found->second.rbegin(); i != found->second.rend(); ++i) {
      const Event& other = events[*i];
      if (other.actor == actor || !dependent(other, event)) continue;
      if (may_race(other, event, before)) raced.push_back(*i);
      if (!covers(event.clock, other.actor, other.number)) join(event.clock, other.clock);
    }
    for (const std::uint32_t i : raced) search_.add_race(*this, i, event);
  };
  for (const auto& cta : slots_) {
    for (const Slot& one : cta) {
      if (one.parked) note(one.actor, one.operation);
    }
  }
  if (gang_->hopper == nullptr) return;
  under_way_.clear();
  gang_->hopper->arrivals_under_way(under_way_);
  for (const UnderWay& one : under_way_) note(pending_.at({one.kind, one.id}), one.operation());
}

// Hooks.

void before(const Operation& operation) {
  if (is_recording()) {
    if (!is_question(operation.kind)) run_now->record_thread();
    return;
  }
  run_now->park(operation);
}
void Run::record_thread() {
  Slot& mine = slot(running_thread());
  mine.has_asked = false;
  recorded.push_back(mine.actor);
}
void has_asked(const Thread& thread, const Mbarrier& barrier, bool complete, Where where) {
  run_now->asked(thread, barrier, complete, where);
}
void issued(ActorKind kind, std::uint64_t id, const Thread& issuer) {
  run_now->issue(kind, id, issuer);
}
void completes(ActorKind kind, std::uint64_t id) {
  run_now->complete(kind, id);
}
void woken(const Thread& thread) {
  if (is_choosing()) run_now->wake(thread);
}
static std::vector<const Thread*> meeting;
void add_to_meeting(const Thread& thread) {
  meeting.push_back(&thread);
}
void end_meeting() {
  if (is_choosing()) run_now->meet(meeting);
  meeting.clear();
}
void arrive_at(const void* object) {
  run_now->arrive_at(object);
}
void complete(const void* object) {
  run_now->complete_object(object);
  run_now->complete_round(object);
}
void leave(const void* object, const Thread& thread) {
  run_now->leave(object, thread);
}
void executes_wgmma(const Warpgroup& warpgroup, std::uint64_t number) {
  run_now->wgmma(warpgroup, number);
}
void has_waited_for_wgmma(const Warpgroup& warpgroup, std::uint64_t number) {
  run_now->waited_for_wgmma(warpgroup, number);
}

Run& current() {
  return *run_now;
}

/// Runs once with `run` in charge.
Outcome Search::once(Run& run, const RunOnce& run_once) {
  struct Restored {
    explicit Restored(Run& run) { run_now = &run; }
    ~Restored() {
      run_now = nullptr;
      mode = Mode::kOff;
    }
    Restored(const Restored&) = delete;
    Restored& operator=(const Restored&) = delete;
  };
  const Restored restored(run);
  try {
    return run_once();
  } catch (const harness::EmulatorReport& report) {
    return {false, report.rule(), report.what()};
  }
}

// The search.

std::uint64_t Node::bytes() const {
  return sizeof(Node) + (enabled.size() + disabled.size() + sleep.size()) * sizeof(std::uint32_t) + 64;
}

/// Event `first` of the run, and `second`, which comes next, may also come in the other order: something that
/// leads there is explored from the state before `first` on.
void Search::add_race(const Run& run, std::size_t first, const Event& second) {
  Node& node = nodes[first];
  const Event& one = run.events[first];
  // What follows `first` and does not depend on it, then `second`. Which of it can come first?
  std::vector<std::uint32_t> initials;
  std::vector<const Event*> firsts;
  const auto consider = [&](const Event& event) {
    for (const Event* before : firsts) {
      if (covers(event.clock, before->actor, before->number)) return;
    }
    firsts.push_back(&event);
    initials.push_back(event.actor);
  };
  for (std::size_t i = first + 1; i < run.events.size(); ++i) {
    if (!covers(run.events[i].clock, one.actor, one.number)) consider(run.events[i]);
  }
  consider(second);
  for (const std::uint32_t actor : initials) {
    if (contains(node.backtrack, actor) || contains(node.sleep, actor)) return;
  }
  for (auto i = initials.rbegin(); i != initials.rend(); ++i) {
    if (!contains(node.enabled, *i)) continue;
    node.backtrack.push_back(*i);
    return;
  }
  if (std::all_of(initials.begin(), initials.end(),
                  [&](std::uint32_t actor) { return contains(node.disabled, actor); }))
    return;
  // It waits for something that is no operation here: whatever may lead there.
  ++unsure;
  for (const std::uint32_t actor : node.enabled) {
    if (!contains(node.backtrack, actor)) node.backtrack.push_back(actor);
  }
}

bool Search::next_branch() {
  while (!nodes.empty()) {
    Node& node = nodes.back();
    if (!contains(node.done, node.chosen)) node.done.push_back(node.chosen);
    const auto next = std::find_if(node.backtrack.begin(), node.backtrack.end(), [&](std::uint32_t actor) {
      return !contains(node.done, actor) && !contains(node.sleep, actor);
    });
    if (next != node.backtrack.end()) {
      node.chosen = *next;
      return true;
    }
    bytes_of_nodes -= std::min(bytes_of_nodes, node.bytes());
    nodes.pop_back();
  }
  return false;
}

Found search(const RunOnce& run_once, const Limits& limits,
             const std::function<bool(std::uint64_t)>& progress) {
  const Time begin = now();
  const auto seconds = [&](Time since) { return Seconds(now() - since).count(); };
  Search search;
  search.limits = limits;
  Found found;
  Time failed{};
  while (true) {
    Run run(search, Run::Kind::kSearch);
    search.bytes = 0;
    search.class_hash = 0;
    const Outcome outcome = search.once(run, run_once);
    found.most_steps = std::max<std::uint64_t>(found.most_steps, run.events.size());
    if (run.is_cut) {
      ++found.cut;
    } else {
      ++found.schedules;
      if (outcome.ok) found.classes.insert(search.class_hash);
      if (!outcome.ok) {
        ++found.failing;
        found.rules.insert(outcome.rule);
        if (found.failing == 1) {
          found.first_failure = found.schedules;
          failed = now();
        }
        if (!found.shortest || run.events.size() < found.shortest->steps.size()) {
          Schedule schedule{{}, outcome};
          for (const Event& event : run.events)
            schedule.steps.push_back({search.actors.key(event.actor), {}, {}});
          found.shortest = std::move(schedule);
        }
      } else if (run.gave_up) {
        found.end = End::kNotExplored;
        found.reason = "some threads wait for something that is no operation on a barrier or a flag";
        break;
      }
    }
    if (!search.next_branch()) break;
    if (progress && !progress(found.schedules)) {
      found.end = End::kTime;
      break;
    }
    if (seconds(begin) > limits.seconds ||
        (found.failing > 0 && seconds(failed) > limits.seconds_after_failure)) {
      found.end = End::kTime;
      break;
    }
    if (search.bytes + search.bytes_of_nodes > limits.bytes) {
      found.end = End::kMemory;
      break;
    }
    if (found.schedules >= limits.schedules) {
      found.end = End::kSchedules;
      break;
    }
  }
  if (found.shortest && limits.shortens) {
    found.steps_before_cut = found.shortest->steps.size();
    found.shortest =
        shorten(run_once, std::move(*found.shortest),
                std::max(5.0, std::min(limits.seconds - seconds(begin), limits.seconds_after_failure)));
  }
  found.seconds = seconds(begin);
  return found;
}

// Schedules.

namespace {

struct Replayed {
  Outcome outcome;
  bool fits = true;  // every step could be done
  bool is_over = false;
  std::size_t misfit = 0;
  std::vector<ActorKey> executed;
  std::vector<Step> steps;
  std::vector<Event> events;
  std::uint64_t class_hash = 0;
};

Replayed run_schedule(const RunOnce& run_once, const std::vector<ActorKey>& actors, Run::Misfit misfit,
                      bool describe) {
  Search search;
  Run run(search, Run::Kind::kReplay);
  run.set_schedule(actors, misfit, describe);
  Replayed replayed;
  replayed.outcome = search.once(run, run_once);
  replayed.fits = !run.is_cut;
  replayed.is_over = run.is_over;
  replayed.misfit = run.misfit;
  for (const std::uint32_t actor : run.executed) replayed.executed.push_back(search.actors.key(actor));
  replayed.steps = std::move(run.steps);
  replayed.events = std::move(run.events);
  replayed.class_hash = search.class_hash;
  return replayed;
}

std::vector<ActorKey> actors_of(const Schedule& schedule) {
  std::vector<ActorKey> actors;
  for (const Step& step : schedule.steps) actors.push_back(step.actor);
  return actors;
}

}  // namespace

void Run::set_schedule(const std::vector<ActorKey>& actors, Misfit misfit, bool describes) {
  for (const ActorKey& actor : actors) schedule.push_back(search_.actors.id(actor));
  misfits_ = misfit;
  describes_ = describes;
}

Schedule replay(const RunOnce& run_once, const std::vector<ActorKey>& actors, bool describe) {
  Replayed replayed = run_schedule(run_once, actors, Run::Misfit::kCut, describe);
  if (!replayed.fits)
    throw harness::Error(
        fmt::format("step {} of the schedule, {}, cannot come there: the schedule is not one of this "
                    "kernel at this shape",
                    replayed.misfit + 1, text(actors[replayed.misfit])));
  if (replayed.is_over) replayed.outcome = {true, "", ""};
  return {std::move(replayed.steps), std::move(replayed.outcome)};
}

Schedule shorten(const RunOnce& run_once, Schedule failing, double seconds) {
  const Time begin = now();
  const std::string rule = failing.outcome.rule;
  std::vector<ActorKey> best = actors_of(failing);
  std::vector<Event> events;
  const auto still_fails = [&](const std::vector<ActorKey>& actors) {
    Replayed replayed = run_schedule(run_once, actors, Run::Misfit::kCut, false);
    if (!replayed.fits || replayed.is_over || replayed.outcome.ok || replayed.outcome.rule != rule)
      return false;
    if (replayed.executed.size() > best.size()) return false;
    best = replayed.executed;
    events = std::move(replayed.events);
    return true;
  };
  const auto has_time = [&] { return Seconds(now() - begin).count() < seconds; };
  if (!still_fails(std::vector<ActorKey>(best))) return failing;
  // What the last step depends on, with what some other actor has done: the two that a race is between.
  const auto past = [&](std::size_t other) {
    std::vector<ActorKey> actors;
    const Clock last = events.back().clock;
    const Clock also = events[other].clock;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (covers(last, events[i].actor, events[i].number) || covers(also, events[i].actor, events[i].number))
        actors.push_back(best[i]);
    }
    return actors;
  };
  if (!events.empty()) {
    std::vector<std::vector<ActorKey>> tries;
    for (std::size_t i = 0; i < events.size(); ++i) {
      std::vector<ActorKey> one = past(i);
      if (one.size() < best.size()) tries.push_back(std::move(one));
    }
    std::stable_sort(tries.begin(), tries.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    tries.erase(std::unique(tries.begin(), tries.end()), tries.end());
    for (const std::vector<ActorKey>& one : tries) {
      if (!has_time() || still_fails(one)) break;
    }
  }
  // Then one step after the other, the latest first.
  for (std::size_t i = best.size(); i-- > 0 && has_time();) {
    if (i >= best.size()) continue;
    std::vector<ActorKey> fewer = best;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    still_fails(fewer);
  }
  Replayed last = run_schedule(run_once, best, Run::Misfit::kCut, true);
  if (!last.fits || last.outcome.ok) return failing;
  return {std::move(last.steps), std::move(last.outcome)};
}

static std::vector<ActorKey> recorded(const RunOnce& run_once, Outcome& outcome) {
  Search search;
  Run run(search, Run::Kind::kRecord);
  outcome = search.once(run, run_once);
  std::vector<ActorKey> actors;
  for (const std::uint32_t actor : run.recorded) actors.push_back(search.actors.key(actor));
  return actors;
}

std::optional<std::uint64_t> class_of_run(const RunOnce& run_once) {
  Outcome outcome;
  const std::vector<ActorKey> actors = recorded(run_once, outcome);
  if (!outcome.ok) return {};
  const Replayed replayed = run_schedule(run_once, actors, Run::Misfit::kGoOn, false);
  if (!replayed.outcome.ok) return {};
  return replayed.class_hash;
}

Schedule record(const RunOnce& run_once) {
  Outcome outcome;
  const std::vector<ActorKey> actors = recorded(run_once, outcome);
  if (outcome.ok) return {{}, outcome};
  // The same order, without the polls.
  Replayed replayed = run_schedule(run_once, actors, Run::Misfit::kLeaveOut, false);
  Schedule schedule{{}, outcome};
  for (const ActorKey& actor : replayed.executed) schedule.steps.push_back({actor, {}, {}});
  schedule.outcome = replayed.is_over || !replayed.fits ? Outcome{true, "", ""} : replayed.outcome;
  return schedule;
}

}  // namespace emulator::explore

namespace emulator {

/// As run(), with an explorer that says what comes next. False: it has given up, and the ordinary way is
/// left.
bool Gang::run_explored() {
  explore::Run& run = explore::current();
  run.begin_gang(*this);
  std::vector<Thread*> paused;
  std::vector<std::uint32_t> turns;
  std::size_t next = 0;
  std::uint64_t progress_at_pause = progress;
  std::uint32_t pauses = 0;
  const auto number = [&](const Thread& thread) {
    return thread.cta->index_in_gang * kMaxThreads + thread.index;
  };
  turns.resize(ctas.size() * kMaxThreads);
  while (live_ > 0 && !failure_ && !exception_) {
    if (next < runnable_.size()) {
      Thread& thread = *runnable_[next++];
      if (++turns[number(thread)] > explore::kTurnsBeforePause) {
        paused.push_back(&thread);
        continue;
      }
      run.acts(thread);
      switch_to(thread);
      if (std::unique_ptr<Failure> fault = take_fault(thread)) failure_ = std::move(fault);
      continue;
    }
    runnable_.clear();
    next = 0;
    if (hopper != nullptr && hopper->serve_waits()) continue;
    // Barriers of the CTA let paused threads on, and so do a warp's instructions: those are no operations.
    if (progress != progress_at_pause) pauses = 0;
    const bool others_go_on = !paused.empty() && pauses < explore::kMostPauses;
    const std::optional<explore::Run::Candidate> chosen = run.choose(others_go_on);
    if (failure_) break;
    if (!chosen && !others_go_on) {
      // Nothing can happen: the threads wait where they say so in a report.
      run.note_unfinished();
      run.give_up();
      for (Thread* thread : run.release_all()) runnable_.push_back(thread);
      for (Thread* thread : paused) runnable_.push_back(thread);
      return false;
    }
    for (Thread* thread : paused) {
      turns[number(*thread)] = 0;
      runnable_.push_back(thread);
    }
    paused.clear();
    pauses = chosen ? 0 : pauses + 1;
    progress_at_pause = progress;
    if (!chosen) continue;
    if (chosen->thread == nullptr) {
      hopper->complete(chosen->under_way);
      continue;
    }
    run.release(*chosen);
    turns[number(*chosen->thread)] = 0;
    run.acts(*chosen->thread);
    switch_to(*chosen->thread);
    if (std::unique_ptr<Failure> fault = take_fault(*chosen->thread)) failure_ = std::move(fault);
  }
  if (failure_) run.note_unfinished();
  run.end_gang();
  return true;
}

void Gang::suspend_parked() {
  if (store_is_open) [[unlikely]]
    settle_store();
  running_thread().fiber->suspend();
}

}  // namespace emulator
