#include "emulator/report/causes/barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "emulator/report/member_names.h"

namespace emulator {

bool is_ring(const Activity& activity) {
  const std::string_view barrier = activity.barrier;
  return barrier == "full" || barrier == "empty";
}

const LastWait* last_wait(const Thread& thread, const Mbarrier& barrier) {
  for (const LastWait& wait : thread.cta->gang->hopper->thread(thread).waits) {
    if (wait.barrier == &barrier) return &wait;
  }
  return nullptr;
}

std::string index_in(const std::string& name) {
  const std::size_t bracket = name.rfind('[');
  return bracket == std::string::npos || name.back() != ']' ? "" : name.substr(bracket);
}

const Mbarrier* empty_of(const Cta& cta, const Mbarrier& full) {
  const HopperCta& state = cta.gang->hopper->cta(cta);
  const std::string full_name = member_name(*full.cta, full.offset);
  const std::string index = index_in(full_name);
  // Where a struct has two barriers of this index, they belong together: requests.answered[0],
  // requests.taken[0].
  const std::string parent = full_name.substr(0, full_name.rfind('.') + 1);
  const Mbarrier* beside = nullptr;
  int besides = 0;
  for (const auto& barrier : state.barriers) {
    if (parent.empty() || !barrier->live || barrier->offset == full.offset || barrier->loaded_phases > 0)
      continue;
    const std::string name = member_name(cta, barrier->offset);
    if (index_in(name) != index || name.substr(0, name.rfind('.') + 1) != parent) continue;
    ++besides;
    beside = barrier.get();
  }
  if (besides == 1) return beside;
  const Mbarrier* found = nullptr;
  std::ptrdiff_t longest = -1;
  const Mbarrier* other = nullptr;
  int others = 0;
  for (const auto& barrier : state.barriers) {
    if (!barrier->live || barrier->offset == full.offset || barrier->loaded_phases > 0) continue;
    const std::string name = member_name(cta, barrier->offset);
    if (name.empty() || index_in(name) != index) continue;
    if (name.find("empty") == std::string::npos) {
      ++others;
      other = barrier.get();
      continue;
    }
    // Of two rings the one whose full barrier it is: source.empty[0] goes with source.full[0].
    const auto differs = std::mismatch(name.begin(), name.end(), full_name.begin(), full_name.end()).first;
    const auto common = differs - name.begin();
    if (common <= longest) continue;
    longest = common;
    found = barrier.get();
  }
  return found || others != 1 ? found : other;
}

const Mbarrier* full_of(const Cta& cta, const Mbarrier& empty) {
  const HopperCta& state = cta.gang->hopper->cta(cta);
  const std::string index = index_in(member_name(*empty.cta, empty.offset));
  if (index.empty()) return nullptr;
  const Mbarrier* found = nullptr;
  for (const auto& barrier : state.barriers) {
    if (!barrier->live || barrier->loaded_phases == 0) continue;
    if (index_in(member_name(cta, barrier->offset)) != index) continue;
    if (found) return nullptr;
    found = barrier.get();
  }
  // An order of roles, say, may have the same index.
  const Mbarrier* const back = found ? empty_of(cta, *found) : nullptr;
  return back && back->offset == empty.offset ? found : nullptr;
}

std::uint32_t waits_passed(const Cta& cta, std::size_t warpgroup, const Mbarrier& barrier) {
  const auto& threads = cta.gang->hopper->cta(cta).threads;
  std::uint32_t most = 0;
  for (std::size_t i = warpgroup * kWarpgroupSize;
       i < std::min(threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
    for (const LastWait& wait : threads[i].waits) {
      if (wait.barrier == &barrier) most = std::max(most, wait.count);
    }
  }
  return most;
}

std::string family_of(const Mbarrier& barrier) {
  const std::string name = member_name(*barrier.cta, barrier.offset);
  return name.substr(0, name.rfind('['));
}

std::string array_name(const Mbarrier& barrier) {
  const std::string name = member_name(*barrier.cta, barrier.offset);
  const std::size_t bracket = name.rfind('[');
  return bracket == std::string::npos || name.back() != ']' ? std::string() : name.substr(0, bracket);
}

MbarrierArray array_of(const Gang& gang, const Mbarrier& barrier) {
  const std::string name = array_name(barrier);
  if (name.empty()) return {&barrier};
  MbarrierArray all;
  for (const auto& other : gang.hopper->cta(*barrier.cta).barriers) {
    if (other->live && array_name(*other) == name) all.push_back(other.get());
  }
  return all;
}

int last_index(const Mbarrier& barrier) {
  const std::string name = member_name(*barrier.cta, barrier.offset);
  const std::size_t bracket = name.rfind('[');
  return bracket == std::string::npos || name.back() != ']' ? -1 : std::stoi(name.substr(bracket + 1));
}

const Mbarrier* full_by_name(const Cta& cta, const Mbarrier& empty) {
  std::string name = member_name(cta, empty.offset);
  const std::size_t at = name.rfind("empty[");
  if (at == std::string::npos) return nullptr;
  name.replace(at, 5, "full");
  for (const auto& barrier : cta.gang->hopper->cta(cta).barriers) {
    if (barrier->live && member_name(cta, barrier->offset) == name) return barrier.get();
  }
  return nullptr;
}

const Mbarrier* filled_by_copies(const Cta& cta, const Mbarrier& empty) {
  if (const Mbarrier* const full = full_of(cta, empty)) return full;
  const Mbarrier* const full = full_by_name(cta, empty);
  return full != nullptr && full->loaded_phases > 0 ? full : nullptr;
}

bool has_completed(const Mbarrier& barrier) {
  return barrier.phase != barrier.first_phase;
}

bool never_touched(const Mbarrier& barrier) {
  return !has_completed(barrier) && barrier.events.empty() && barrier.pending == barrier.count &&
         barrier.tx == 0 && barrier.late == 0;
}

MbarrierArray waited_for(const Gang& gang) {
  MbarrierArray found;
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      if (barrier->live && !barrier->waiting.empty()) found.push_back(barrier.get());
    }
  }
  return found;
}

std::vector<const Thread*> arrivers_of(const Gang& gang, const MbarrierArray& all) {
  std::vector<const Thread*> found;
  const auto is_one = [&](const Mbarrier* barrier) {
    return std::find(all.begin(), all.end(), barrier) != all.end();
  };
  const auto commits = [&](const Thread& thread) {
    return std::any_of(all.begin(), all.end(), [&](const Mbarrier* barrier) {
      return std::any_of(barrier->commit_log.begin(), barrier->commit_log.end(),
                         [&](const CommitRecord& commit) { return commit.committer == &thread; });
    });
  };
  std::set<std::pair<std::uint32_t, std::uint32_t>> expects;  // by key of the CTA, and index
  for (const Mbarrier* barrier : all) {
    for (const auto* events : {&barrier->events, &barrier->previous_events}) {
      for (const Mbarrier::Event& event : *events) {
        if (!event.commit) expects.emplace(stamp_cta(event.stamp), stamp_thread(event.stamp));
      }
    }
  }
  for (const auto& cta : gang.ctas) {
    for (const Thread& thread : cta->threads) {
      const auto& arrivals = gang.hopper->thread(thread).arrivals;
      if (std::any_of(arrivals.begin(), arrivals.end(),
                      [&](const Arrivals& one) { return is_one(one.barrier); }) ||
          expects.contains({cta->key, static_cast<std::uint32_t>(thread.index)}) || commits(thread))
        found.push_back(&thread);
    }
  }
  return found;
}

std::uint32_t arriving_threads(const Gang& gang, const Mbarrier& barrier) {
  std::uint32_t count = 0;
  for (const auto& cta : gang.ctas) {
    for (const HopperThread& thread : gang.hopper->cta(*cta).threads) {
      for (const Arrivals& arrivals : thread.arrivals) count += arrivals.barrier == &barrier ? 1 : 0;
    }
  }
  return count;
}

std::string plain_name(const Thread& thread) {
  return name_thread(thread.cta->gang->grid, thread.stamp());
}

std::string arrivals_text(const Grid& grid, const std::vector<Mbarrier::Event>& events) {
  std::map<std::string, std::vector<std::uint32_t>> groups;
  std::vector<std::string> order;
  for (const Mbarrier::Event& event : events) {
    if (event.kind == Mbarrier::Event::kExpect) continue;
    const std::string activity = text(event.activity);
    std::string place =
        fmt::format(" of CTA {} at {}{}", name_cta(grid, stamp_cta(event.stamp)), event.where.text(),
                    activity.empty() ? "" : ", after its wait as " + activity);
    if (groups[place].empty()) order.push_back(place);
    groups[place].push_back(stamp_thread(event.stamp));
  }
  std::string lines;
  for (const std::string& place : order) {
    std::vector<std::uint32_t>& threads = groups[place];
    std::sort(threads.begin(), threads.end());
    lines += fmt::format("{}  {}{}", lines.empty() ? "" : "\n", ranges("thread", threads), place);
  }
  return lines;
}

std::string ended_by(const Gang& gang, const std::vector<Mbarrier::Event>& events) {
  std::string text = arrivals_text(gang.grid, events);
  text.erase(0, text.find_first_not_of(' '));
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    const std::size_t end = std::min(text.find_first_not_of("\n ", at), text.size());
    text.replace(at, end - at, ", ");
  }
  return text;
}

std::string waiters_text(const Mbarrier& barrier) {
  std::map<const Cta*, std::vector<std::uint32_t>> threads;
  for (const Thread* thread : barrier.waiting) threads[thread->cta].push_back(thread->index);
  std::string list;
  for (auto& [cta, some] : threads) {
    std::sort(some.begin(), some.end());
    list += fmt::format("{}{} of CTA {}", list.empty() ? "" : ", ", ranges("thread", some), text(cta->id));
  }
  const Thread& first = *barrier.waiting.front();
  const std::string activity = text(first.cta->gang->hopper->thread(first).activity);
  return activity.empty() ? list : list + ", as " + activity;
}

ReaderName reader_name(const Gang& gang, Stamp reader) {
  ReaderName result;
  result.agent = is_agent(reader);
  if (!result.agent) {
    result.cta = stamp_cta(reader);
    result.first = stamp_thread(reader);
    result.count = 1;
    result.name = name_thread(gang.grid, reader);
    return result;
  }
  result.cta = stamp_cta(reader) & (kAgentKey - 1);
  for (const auto& cta : gang.ctas) {
    if (cta->key != result.cta) continue;
    const Agent agent = gang.hopper->cta(*cta).agents[stamp_thread(reader)];
    result.kind = agent.kind;
    if (agent.kind == AgentKind::kWgmma) {
      result.first = agent.object * kWarpgroupSize;
      result.count = kWarpgroupSize;
      result.name = fmt::format("warpgroup {} of CTA {}", agent.object, text(cta->id));
    } else if (agent.kind == AgentKind::kStoreReads) {
      result.first = agent.object;
      result.count = 1;
      result.name = name_thread(gang.grid, make_stamp(cta->key, agent.object, 1));
    } else {
      result.name = name_agent(gang, reader);
      if (agent.kind == AgentKind::kMultiplications) {
        result.first = agent.object;
        result.count = 1;
      }
    }
  }
  if (result.name.empty()) result.name = name_agent(gang, reader);
  return result;
}

}  // namespace emulator
