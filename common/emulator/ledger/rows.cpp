#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "emulator/ledger/record.h"
#include "emulator/machine/machine.h"
#include "emulator/report/report.h"

namespace emulator {

void LedgerClock::raise(std::uint32_t number, std::uint32_t time) {
  if (number >= times_.size()) times_.resize(number + std::size_t{1});
  times_[number] = std::max(times_[number], time);
}

bool LedgerClock::join(const LedgerClock& other) {
  if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
  bool is_new = false;
  for (std::size_t i = 0; i < other.times_.size(); ++i) {
    is_new = is_new || other.times_[i] > times_[i];
    times_[i] = std::max(times_[i], other.times_[i]);
  }
  return is_new;
}

void LedgerRange::add(std::uint64_t value) {
  least = std::min(least, value);
  most = std::max(most, value);
}

void LedgerRange::add(const LedgerRange& other) {
  least = std::min(least, other.least);
  most = std::max(most, other.most);
}

LedgerPhase& BarrierLog::present() {
  if (open.empty()) open.emplace_back();
  return open.back();
}

void BarrierLog::close() {
  constexpr std::size_t kOpen = 3;  // a wait for a phase comes before the next but one is over
  present().number = phases++;
  completed.join(arriving);
  completed.raise(number, static_cast<std::uint32_t>(phases));
  known = std::make_shared<LedgerClock>(completed);
  arriving.clear();
  open.emplace_back();
  if (open.size() <= kOpen) return;
  settle(open.front());
  open.pop_front();
}

void BarrierLog::settle(const LedgerPhase& phase) {
  std::map<std::tuple<LedgerParty::What, bool, int, bool>, std::pair<int, std::set<int>>> merged;
  for (const auto& [key, times] : phase.arrivals) {
    const auto& [what, its_rank, warp, fenced] = key;
    auto& [all, ranks_of_it] = merged[{what, its_rank != rank, warp, fenced}];
    all += times;
    ranks_of_it.insert(its_rank);
  }
  LedgerParties parties;
  for (const auto& [key, times] : merged) {
    const auto& [what, other, warp, fenced] = key;
    parties.push_back({what, other, fenced, warp, times.first, static_cast<int>(times.second.size())});
  }
  if (!parties.empty()) ++arrivals[parties];
  parties.clear();
  for (const auto& [warp, threads] : phase.waiters)
    parties.push_back({.warp = warp, .times = static_cast<int>(threads.size())});
  if (!parties.empty()) ++waits[parties];
  if (phase.expected > 0) expected.add(phase.expected);
  std::set<std::pair<LedgerVia, bool>> by;
  for (const auto& [bringer, bytes] : phase.brought) by.insert(bringer);
  if (!by.empty()) ++bringers[by];
}

void BarrierLog::settle_all() {
  for (const LedgerPhase& phase : open) settle(phase);
  open.clear();
  if (!waits.empty() || passed_at_once.empty()) return;
  LedgerParties parties;
  for (const auto& [warp, threads] : passed_at_once)
    parties.push_back({.warp = warp, .times = static_cast<int>(threads.size())});
  ++waits[parties];
}

namespace {

using PartySets = std::map<LedgerParties, std::uint64_t>;

const char* name_of(LedgerVia via) {
  switch (via) {
    case LedgerVia::kThreads:
      return "threads";
    case LedgerVia::kCpAsync:
      return "cp.async";
    case LedgerVia::kTma:
      return "TMA";
    case LedgerVia::kStAsync:
      return "st.async";
    case LedgerVia::kResponse:
      return "the response to try_cancel";
    case LedgerVia::kWgmma:
      return "wgmma";
    case LedgerVia::kTensorCores:
      return "tcgen05.mma";
    case LedgerVia::kStore:
      return "TMA store";
  }
  return "";
}

/// "threads read", "wgmma reads".
std::string does(LedgerVia via, bool writes) {
  const bool plural = via == LedgerVia::kThreads;
  return fmt::format("{} {}{}", name_of(via), writes ? "write" : "read", plural ? "" : "s");
}

/// PTX ISA, "Async proxy": cp.async and st.async access shared memory as the threads do.
const char* proxy_of(LedgerVia via) {
  const bool generic = via == LedgerVia::kThreads || via == LedgerVia::kCpAsync || via == LedgerVia::kStAsync;
  return generic ? "generic" : "async";
}

/// "warps 0-3", "warps 0 and 4".
std::string warps_text(std::vector<std::uint32_t> warps) {
  std::sort(warps.begin(), warps.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < warps.size();) {
    std::size_t end = i + 1;
    while (end < warps.size() && warps[end] == warps[end - 1] + 1) ++end;
    parts.push_back(end == i + 1 ? fmt::format("{}", warps[i])
                                 : fmt::format("{}-{}", warps[i], warps[end - 1]));
    i = end;
  }
  std::string list = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) list += (i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return (warps.size() == 1 ? "warp " : "warps ") + list;
}

/// Those of one phase: "one thread of each of warps 0 and 4".
std::string parties_text(const LedgerParties& parties, int cta_warps, bool all_ctas) {
  // What is said of them alike is said once.
  std::map<std::tuple<bool, LedgerParty::What, bool, int, int>, std::vector<std::uint32_t>> alike;
  for (const LedgerParty& party : parties) {
    if (all_ctas && party.other) continue;
    alike[{party.other, party.what, party.fenced, party.times / std::max(party.ctas, 1), party.ctas}]
        .push_back(static_cast<std::uint32_t>(party.warp));
  }
  std::string text;
  for (const auto& [key, warps] : alike) {
    const auto& [other, what, fenced, times, ctas] = key;
    std::string one;
    const std::string names = warps_text(warps);
    const std::string each = (warps.size() > 1 ? "each of " : "") + names;
    if (what == LedgerParty::kCommits) {
      one = times == 1 ? "a tcgen05.commit of " + each : fmt::format("{} tcgen05.commits of {}", times, each);
    } else if (what == LedgerParty::kCopies) {
      one = "the cp.async copies of " + names;
    } else if (times == kWarpSize) {
      one = static_cast<int>(warps.size()) == cta_warps ? "all threads" : names;
    } else if (times == 1) {
      one = "one thread of " + each;
    } else {
      one = fmt::format("{} threads of {}", times, each);
    }
    if (fenced) one += ", after fence.proxy.async";
    if (other) one += ctas == 1 ? ", of another CTA" : fmt::format(", of {} other CTAs", ctas);
    text += (text.empty() ? "" : "; ") + one;
  }
  return all_ctas && !text.empty() ? text + (text == "all threads" ? " of the cluster" : ", of every CTA")
                                   : text;
}

bool is_part_of(const LedgerParties& part, const LedgerParties& whole) {
  return std::all_of(part.begin(), part.end(), [&](const LedgerParty& party) {
    return std::any_of(whole.begin(), whole.end(), [&](const LedgerParty& other) {
      return party.what == other.what && party.other == other.other && party.warp == other.warp &&
             party.times <= other.times;
    });
  });
}

/// The sets without those that are a part of another one: phases that the run has cut off.
std::vector<LedgerParties> whole_sets(const PartySets& sets) {
  std::vector<LedgerParties> whole;
  for (const auto& [parties, phases] : sets) {
    const bool is_part = std::any_of(sets.begin(), sets.end(), [&, &one = parties](const auto& other) {
      return other.first != one && is_part_of(one, other.first) &&
             (!is_part_of(other.first, one) || other.second > sets.at(one) ||
              (other.second == sets.at(one) && other.first < one));
    });
    if (!is_part) whole.push_back(parties);
  }
  return whole;
}

LedgerParties union_of(const std::vector<LedgerParties>& sets) {
  LedgerParties all;
  for (const LedgerParties& set : sets) {
    for (const LedgerParty& party : set) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const LedgerParty& other) {
        return party.what == other.what && party.other == other.other && party.warp == other.warp &&
               party.fenced == other.fenced;
      });
      if (same == all.end()) {
        all.push_back(party);
      } else {
        same->times = std::max(same->times, party.times);
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string sets_text(const PartySets& sets, int cta_warps, bool all_ctas) {
  constexpr std::size_t kListed = 3;
  const std::vector<LedgerParties> whole = whole_sets(sets);
  if (whole.size() > kListed) return "some of: " + parties_text(union_of(whole), cta_warps, all_ctas);
  std::string text;
  for (const LedgerParties& set : whole)
    text += (text.empty() ? "" : "; in other phases: ") + parties_text(set, cta_warps, all_ctas);
  return text;
}

/// A row, while barriers are added to it.
struct Rows {
  std::vector<BarrierLog*> logs;
  std::vector<std::string> indices;
  std::string base;  // of the name
};

/// "full[2] (shared + 0x18048)" -> "full", "2".
std::pair<std::string, std::string> split_name(const BarrierLog& log) {
  std::string name = log.name.substr(0, log.name.find(" (shared + "));
  if (const std::string_view prefix = "__shared__ "; name.starts_with(prefix)) {
    name.erase(0, prefix.size());
    const std::size_t plus = name.find(" + ");
    const int offset = plus == std::string::npos ? 0 : std::atoi(name.c_str() + plus + 3);
    return {name.substr(0, plus), fmt::format("{}", offset / 8)};
  }
  if (name.ends_with(']')) {
    const std::size_t bracket = name.rfind('[');
    return {name.substr(0, bracket), name.substr(bracket + 1, name.size() - bracket - 2)};
  }
  return {name, ""};
}

bool agree(const PartySets& one, const PartySets& other) {
  if (one.empty() || other.empty()) return true;
  const std::vector<LedgerParties> a = whole_sets(one);
  const std::vector<LedgerParties> b = whole_sets(other);
  const auto is_in = [](const std::vector<LedgerParties>& sets, const std::vector<LedgerParties>& all) {
    return std::all_of(sets.begin(), sets.end(), [&](const LedgerParties& set) {
      return std::any_of(all.begin(), all.end(),
                         [&](const LedgerParties& whole) { return is_part_of(set, whole); });
    });
  };
  return is_in(a, b) || is_in(b, a);
}

bool agree(const std::map<int, std::uint32_t>& one, const std::map<int, std::uint32_t>& other) {
  return std::all_of(one.begin(), one.end(), [&](const auto& first) {
    const auto found = other.find(first.first);
    return found == other.end() || found->second == first.second;
  });
}

bool agree(const BarrierLog& one, const BarrierLog& other) {
  // Where nobody has arrived, nothing says who would have.
  return one.arrivals.empty() == other.arrivals.empty() && one.kind == other.kind &&
         one.count == other.count && one.places == other.places && agree(one.arrivals, other.arrivals) &&
         agree(one.waits, other.waits) && agree(one.first, other.first);
}

std::string first_text(const std::vector<BarrierLog*>& logs) {
  std::map<int, std::uint32_t> first;
  for (const BarrierLog* log : logs) first.insert(log->first.begin(), log->first.end());
  std::map<std::uint32_t, std::vector<std::uint32_t>> warps;
  for (const auto& [warp, parity] : first) warps[parity].push_back(static_cast<std::uint32_t>(warp));
  if (warps.size() == 1) return fmt::format("parity {}", warps.begin()->first);
  std::string text;
  for (const auto& [parity, all] : warps)
    text += fmt::format("{}parity {} for {}", text.empty() ? "" : ", ", parity, warps_text(all));
  return text;
}

/// "[0-3]", "[0, 2]".
std::string indices_text(std::vector<std::string> indices) {
  std::sort(indices.begin(), indices.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  std::vector<int> numbers;
  for (const std::string& index : indices) numbers.push_back(std::atoi(index.c_str()));
  if (numbers.size() > 1 && numbers.back() - numbers.front() + 1 == static_cast<int>(numbers.size()))
    return fmt::format("[{}-{}]", numbers.front(), numbers.back());
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

std::string bringers_text(const std::vector<BarrierLog*>& logs) {
  std::set<std::pair<LedgerVia, bool>> all;
  for (const BarrierLog* log : logs) {
    for (const auto& [set, phases] : log->bringers) all.insert(set.begin(), set.end());
  }
  std::map<LedgerVia, int> from;  // 1: its own CTA, 2: others, 3: both
  for (const auto& [via, other] : all) from[via] |= other ? 2 : 1;
  std::string text;
  for (const auto& [via, where] : from) {
    text += fmt::format("; {}{}", name_of(via),
                        where == 1   ? ""
                        : where == 2 ? ", issued by other CTAs"
                                     : ", issued by this CTA and by others");
  }
  return text;
}

LedgerRow row_of(const Rows& rows, bool is_only) {
  const BarrierLog& first = *rows.logs.front();
  LedgerRow row{.kind = first.kind, .barrier = rows.base};
  const bool has_index = !rows.indices.empty() && !rows.indices.front().empty();
  // A lone __shared__ mbarrier is no array.
  const bool may_be_alone = first.name.starts_with("__shared__") || first.name.starts_with("shared + ");
  if (has_index && !(is_only && may_be_alone)) row.barrier += indices_text(rows.indices);
  std::set<std::string> places;
  for (const std::uint64_t place : first.places) places.insert(Where::from_packed(place).text());
  row.where = fmt::format("{}", fmt::join(places, ", "));
  PartySets arrivals;
  PartySets waits;
  LedgerRange expected;
  bool arrives_at_cluster = false;
  bool waits_at_cluster = false;
  std::map<LedgerOrder, std::uint64_t> orders;
  for (BarrierLog* log : rows.logs) {
    for (const auto& [set, phases] : log->arrivals) arrivals[set] += phases;
    for (const auto& [set, phases] : log->waits) waits[set] += phases;
    expected.add(log->expected);
    arrives_at_cluster = arrives_at_cluster || log->arrives_at_cluster;
    waits_at_cluster = waits_at_cluster || log->waits_at_cluster;
    row.phases += log->phases;
    for (const auto& [order, lines] : log->orders)
      orders[order] = std::max<std::uint64_t>(orders[order], lines.size() * 16);
  }
  const bool groups = first.kind == "wait for groups";
  const bool of_cluster = first.kind == "cluster barrier";
  row.count = groups ? "" : fmt::format("{}", first.count);
  if (!expected.empty()) {
    row.count += expected.least == expected.most
                     ? fmt::format(" + {} bytes", expected.most)
                     : fmt::format(" + {} to {} bytes", expected.least, expected.most);
  }
  row.arrives = groups ? (first.name.starts_with("cp.async.bulk") ? "the thread's TMA stores"
                                                                  : "the thread's cp.async copies")
                       : sets_text(arrivals, first.cta_warps, of_cluster);
  if (arrives_at_cluster) row.arrives += ", at cluster scope";
  row.arrives += bringers_text(rows.logs);
  row.waits = sets_text(waits, first.cta_warps, of_cluster);
  if (row.waits.empty()) {  // in a hang
    std::set<std::uint32_t> asking;
    for (const BarrierLog* log : rows.logs) {
      for (const auto& [warp, parity] : log->first) asking.insert(static_cast<std::uint32_t>(warp));
    }
    if (!asking.empty()) row.waits = warps_text({asking.begin(), asking.end()}) + ", in vain";
  }
  if (waits_at_cluster) row.waits += ", at cluster scope";
  if (first.kind == "mbarrier") row.first = first_text(rows.logs);
  for (const auto& [order, bytes] : orders) {
    row.bytes.push_back({does(order.before, order.before_writes), does(order.after, order.after_writes),
                         proxy_of(order.before), proxy_of(order.after), bytes});
  }
  std::stable_sort(row.bytes.begin(), row.bytes.end(),
                   [](const LedgerBytes& a, const LedgerBytes& b) { return a.bytes > b.bytes; });
  return row;
}

/// 41 of "kernel.cuh:41".
int line_of(const std::string& where) {
  const std::size_t colon = where.find(':');
  return colon == std::string::npos ? 0 : std::atoi(where.c_str() + colon + 1);
}

/// "__syncthreads, first": where barriers of one name stand at several places, in the order of the source.
void number_places(std::vector<LedgerRow>& rows) {
  static constexpr std::array kOrdinals = {"first", "second", "third", "fourth", "fifth", "sixth"};
  std::map<std::pair<std::uint64_t, std::string>, std::vector<LedgerRow*>> of_name;
  for (LedgerRow& row : rows) {
    if (row.kind != "mbarrier") of_name[{row.launch, row.barrier}].push_back(&row);
  }
  for (auto& [key, all] : of_name) {
    const std::string& name = key.second;
    if (all.size() < 2) continue;
    std::stable_sort(all.begin(), all.end(), [&](const LedgerRow* a, const LedgerRow* b) {
      return line_of(a->where) < line_of(b->where);
    });
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i]->barrier = i < kOrdinals.size() ? fmt::format("{}, {}", name, kOrdinals[i])
                                             : fmt::format("{}, {}th", name, i + 1);
    }
  }
}

int rank_of_kind(const std::string& kind) {
  return kind == "mbarrier"          ? 0
         : kind == "CTA barrier"     ? 1
         : kind == "named barrier"   ? 2
         : kind == "cluster barrier" ? 3
                                     : 4;
}

/// What each warp of the launch does at the barriers: those that do the same are a role.
std::vector<LedgerRole> roles_of(const LedgerRecord& record, const std::vector<Rows>& all_rows,
                                 const std::vector<LedgerRow>& rows, std::uint64_t launch,
                                 std::uint64_t number) {
  struct Behaviour {
    std::set<std::string> waits, arrives, issues;
    // Not a defaulted <=>, which std::set does not have in Emscripten 3.1.6.
    bool operator<(const Behaviour& other) const {
      return std::tie(waits, arrives, issues) < std::tie(other.waits, other.arrives, other.issues);
    }
  };
  std::map<int, Behaviour> warps;
  for (std::size_t i = 0; i < all_rows.size(); ++i) {
    if (rows[i].kind == "CTA barrier" || rows[i].kind == "cluster barrier") continue;
    for (const BarrierLog* log : all_rows[i].logs) {
      if (log->launch != launch) continue;
      for (const auto& [set, phases] : log->arrivals) {
        for (const LedgerParty& party : set) warps[party.warp].arrives.insert(rows[i].barrier);
      }
      for (const auto& [set, phases] : log->waits) {
        for (const LedgerParty& party : set) warps[party.warp].waits.insert(rows[i].barrier);
      }
    }
  }
  for (const auto& [warp, work] : record.work) {
    if (warp.first != launch) continue;
    for (const LedgerVia via : work.issues) warps[warp.second].issues.insert(name_of(via));
  }
  std::map<Behaviour, std::vector<std::uint32_t>> roles;
  for (const auto& [warp, behaviour] : warps) roles[behaviour].push_back(static_cast<std::uint32_t>(warp));
  std::vector<std::pair<std::vector<std::uint32_t>, std::string>> lines;
  for (const auto& [behaviour, all] : roles) {
    std::vector<std::string> parts;
    if (!behaviour.waits.empty())
      parts.push_back(fmt::format("waits at {}", fmt::join(behaviour.waits, ", ")));
    if (!behaviour.issues.empty())
      parts.push_back(fmt::format("issues {}", fmt::join(behaviour.issues, ", ")));
    if (!behaviour.arrives.empty())
      parts.push_back(fmt::format("arrives at {}", fmt::join(behaviour.arrives, ", ")));
    lines.emplace_back(all, fmt::format("{}: {}", warps_text(all), fmt::join(parts, "; ")));
  }
  std::sort(lines.begin(), lines.end());
  std::vector<LedgerRole> texts;
  for (auto& [all, text] : lines) texts.push_back({number, std::move(text)});
  return texts;
}

}  // namespace

std::string LedgerRow::bytes_text() const {
  std::string text;
  for (const LedgerBytes& one : bytes)
    text +=
        fmt::format("{}{}, then {}: {} bytes", text.empty() ? "" : "; ", one.before, one.after, one.bytes);
  return text;
}

Ledger make_ledger(LedgerRecord& record) {
  std::stable_sort(record.barriers.begin(), record.barriers.end(), [](const auto& a, const auto& b) {
    return std::pair(a->launch, a->linear) < std::pair(b->launch, b->linear);
  });
  std::set<std::uint64_t> launches;
  for (const auto& log : record.barriers) launches.insert(log->launch);
  // Unnamed mbarriers that one line initialises are an array.
  std::map<std::set<std::uint64_t>, std::uint32_t> begins;
  for (const auto& log : record.barriers) {
    log->settle_all();
    if (log->kind != "mbarrier" || !log->name.starts_with("shared + ")) continue;
    const auto [found, is_new] = begins.try_emplace(log->places, log->offset);
    found->second = std::min(found->second, log->offset);
  }
  std::vector<Rows> all_rows;
  for (const auto& log : record.barriers) {
    if (log->arrivals.empty() && log->waits.empty() && log->kind != "mbarrier") continue;
    auto [base, index] = split_name(*log);
    if (log->kind == "mbarrier" && log->name.starts_with("shared + ")) {
      base = fmt::format("shared + {:#x}", begins[log->places]);
      index = fmt::format("{}", (log->offset - begins[log->places]) / 8);
    }
    const auto found = std::find_if(all_rows.begin(), all_rows.end(), [&, &name = base](const Rows& rows) {
      return rows.base == name && std::all_of(rows.logs.begin(), rows.logs.end(),
                                              [&](const BarrierLog* other) { return agree(*other, *log); });
    });
    Rows& rows = found == all_rows.end() ? all_rows.emplace_back() : *found;
    rows.base = base;
    rows.logs.push_back(log.get());
    rows.indices.push_back(index);
  }
  const auto launch_of = [](const Rows& rows) { return rows.logs.front()->launch; };
  std::stable_sort(all_rows.begin(), all_rows.end(), [&](const Rows& a, const Rows& b) {
    if (launch_of(a) != launch_of(b)) return launch_of(a) < launch_of(b);
    const int kind_a = rank_of_kind(a.logs.front()->kind);
    const int kind_b = rank_of_kind(b.logs.front()->kind);
    if (kind_a != kind_b) return kind_a < kind_b;
    // mbarriers as they lie in memory, all others as they stand in the source.
    const auto place_of = [&](const Rows& rows) {
      const BarrierLog& log = *rows.logs.front();
      return std::pair(kind_a == 0 ? 0 : line_of(Where::from_packed(*log.places.begin()).text()), log.offset);
    };
    return place_of(a) < place_of(b);
  });
  Ledger ledger;
  for (const Rows& rows : all_rows) {
    const bool is_only =
        std::count_if(all_rows.begin(), all_rows.end(),
                      [&](const Rows& other) {
                        return other.base == rows.base && launch_of(other) == launch_of(rows);
                      }) == 1 &&
        std::all_of(rows.indices.begin(), rows.indices.end(),
                    [](const std::string& index) { return index == "0"; });
    ledger.rows.push_back(row_of(rows, is_only));
    ledger.rows.back().launch =
        static_cast<std::uint64_t>(std::distance(launches.begin(), launches.find(launch_of(rows)))) + 1;
  }
  for (std::size_t i = 0; i < all_rows.size(); ++i) {
    if (i > 0 && ledger.rows[i].launch == ledger.rows[i - 1].launch) continue;
    const std::vector<LedgerRole> roles =
        roles_of(record, all_rows, ledger.rows, launch_of(all_rows[i]), ledger.rows[i].launch);
    ledger.roles.insert(ledger.roles.end(), roles.begin(), roles.end());
  }
  number_places(ledger.rows);
  return ledger;
}

}  // namespace emulator
