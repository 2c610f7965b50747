#include "emulator/report/causes/byte_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/report/causes/tensor_causes.h"
#include "emulator/report/member_names.h"

namespace emulator {

bool explain_unexpected_bytes(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  HopperEngine& engine = *gang.hopper;
  const auto untouched = [](const Mbarrier& barrier) {
    return barrier.phase == barrier.first_phase && barrier.events.empty();
  };
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : engine.cta(*cta).barriers) {
      if (!barrier->live || barrier->waiting.empty() || barrier->tx >= 0 || !untouched(*barrier)) continue;
      for (const Cta* other : engine.cta(*cta).cluster) {
        const auto& barriers = engine.cta(*other).barrier_at;
        const auto same = barriers.find(barrier->offset);
        if (other == cta.get() || same == barriers.end() || untouched(*same->second)) continue;
        const auto& events =
            same->second->events.empty() ? same->second->previous_events : same->second->events;
        const std::int64_t bytes = -barrier->tx;
        report.line("first",
                    "{} bytes were delivered to {}, at which {} thread{} wait{}, but no thread has arrived "
                    "or expected bytes there",
                    bytes, name_mbarrier(*barrier), barrier->waiting.size(),
                    barrier->waiting.size() == 1 ? "" : "s", barrier->waiting.size() == 1 ? "s" : "");
        report.missing(
            "mbarrier.arrive.expect_tx of {} bytes at {}, in CTA {}{}: a multicast copy signals the mbarrier "
            "at the same offset in each CTA, and each CTA must expect its bytes",
            bytes, name_mbarrier(*barrier), text(cta->id),
            events.empty() ? std::string()
                           : fmt::format(", as at {} for {}", events.front().where.text(),
                                         name_mbarrier(*same->second)));
        return true;
      }
    }
  }
  return false;
}

namespace {

/// Stores of other CTAs bring the bytes, and threads of such a CTA wait at mbarriers that lack arrivals.
bool senders_are_held_up(const Gang& gang, const Mbarrier& barrier) {
  if (!barrier.remote_agent) return false;
  return std::any_of(gang.ctas.begin(), gang.ctas.end(), [&](const auto& cta) {
    if (cta.get() == barrier.cta) return false;
    const auto& barriers = gang.hopper->cta(*cta).barriers;
    return std::any_of(barriers.begin(), barriers.end(), [](const auto& other) {
      return other->live && !other->waiting.empty() && other->pending > 0 && !other->remote_agent;
    });
  });
}

/// ": CTA (0,0,0) expected as many at ... and got them", of the same mbarrier of the cluster's other CTAs;
/// `by_stores`: those that got them by stores of other CTAs.
std::string peers_that_got(const Gang& gang, const Mbarrier& barrier, bool by_stores = false) {
  const auto expected = [](const std::vector<Mbarrier::Event>& events) {
    std::uint64_t bytes = 0;
    for (const Mbarrier::Event& event : events)
      bytes += event.kind == Mbarrier::Event::kArrive ? 0 : event.bytes;
    return bytes;
  };
  std::string list;
  for (const Cta* other : gang.hopper->cta(*barrier.cta).cluster) {
    const auto& barriers = gang.hopper->cta(*other).barrier_at;
    const auto same = barriers.find(barrier.offset);
    if (other == barrier.cta || same == barriers.end() || !same->second->live ||
        same->second->phase <= barrier.phase || (by_stores && !same->second->remote_agent) ||
        expected(same->second->previous_events) != expected(barrier.events))
      continue;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", text(other->id));
  }
  return list.empty() ? list
                      : fmt::format(
                            ". CTA {} expected as many at the same mbarrier and got them: this CTA's share "
                            "may be smaller (the last one in a cluster, for example), and it must expect "
                            "exactly the bytes that are sent to it",
                            list);
}

}  // namespace

bool explain_missing_bytes(Report& report, const Gang& gang) {
  constexpr int kShown = 2;
  if (!gang.hopper) return false;
  int shown = 0;
  for (const auto& cta : gang.ctas) {
    for (const auto& barrier : gang.hopper->cta(*cta).barriers) {
      if (!barrier->live || barrier->waiting.empty() || barrier->pending != 0 || barrier->tx <= 0 ||
          barrier->loads > 0 || barrier->late > 0)
        continue;
      if (senders_are_held_up(gang, *barrier)) continue;
      if (shown++ == kShown) return true;
      std::string expects;
      for (const Mbarrier::Event& event : barrier->events) {
        if (event.kind == Mbarrier::Event::kArrive) continue;
        expects += fmt::format("{}{} at {}", expects.empty() ? "" : ", ", event.bytes, event.where.text());
      }
      report.line("first",
                  "{} has all arrivals for phase {} and waits only for bytes: {} are expected ({}), but the "
                  "copies issued in this phase deliver {}{}",
                  name_mbarrier(*barrier), barrier->phase, barrier->expected, expects, barrier->issued,
                  bytes_by_cta(*barrier));
      const bool unsent =
          barrier->issued == 0 && !barrier->remote_agent && !peers_that_got(gang, *barrier, true).empty();
      if (!unsent &&
          (explain_absent_loader(report, gang, *barrier) || explain_idle_peer(report, gang, *barrier)))
        continue;
      report.missing("a copy of {} bytes, or an expect_tx that is {} bytes smaller{}", barrier->tx,
                     barrier->tx, peers_that_got(gang, *barrier));
    }
  }
  return shown > 0;
}

namespace {

/// "ring.stage[1].scales[115]" -> "ring.stage[1].scales", with the numbers or, `bare`, "ring.stage[].scales".
std::string member_of(const Cta& cta, std::uint32_t offset, bool bare) {
  std::string name = member_name(cta, offset);
  const std::size_t end = name.rfind(']');
  if (end + 1 == name.size() && end != std::string::npos) name.erase(name.rfind('['));
  if (!bare) return name;
  std::string text;
  bool inside = false;
  for (const char c : name) {
    if (c == ']') inside = false;
    if (!inside) text += c;
    if (c == '[') inside = true;
  }
  return text;
}

}  // namespace

void explain_not_brought(Report& report, const Thread& thread, std::uintptr_t address) {
  const Cta& cta = *thread.cta;
  const Gang& gang = *cta.gang;
  const std::uintptr_t offset = address - cta.dynamic_window.begin;
  if (!gang.hopper || offset >= cta.dynamic_window.bytes) return;
  const auto& waits = gang.hopper->thread(thread).waits;
  const auto wait = std::find_if(waits.rbegin(), waits.rend(), [](const LastWait& other) {
    return other.barrier->live && other.barrier->loaded_phases > 0;
  });
  const std::string own = member_of(cta, static_cast<std::uint32_t>(offset), false);
  if (wait == waits.rend() || wait->phase == wait->barrier->first_phase || own.empty()) return;
  const std::string like = member_of(cta, static_cast<std::uint32_t>(offset), true);
  std::string brought;               // by the phase that was waited for
  const LoadRecord* same = nullptr;  // to such a member, the one issued next to these
  std::uint32_t serial = 0;
  gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
    if (load.barrier == wait->barrier && load.phase + 1 == wait->phase) serial = load.serial;
  });
  const auto apart = [&](const LoadRecord& load) {
    return std::max(load.serial, serial) - std::min(load.serial, serial);
  };
  gang.hopper->copies.visit_loads([&](const LoadRecord& load) {
    if (load.barrier->cta != &cta) return;
    if (load.barrier == wait->barrier && load.phase + 1 == wait->phase) {
      const std::string to = member_of(cta, load.offset, false);
      if (!to.empty() && brought.find(to) == std::string::npos) brought += (brought.empty() ? "" : ", ") + to;
    }
    if (member_of(cta, load.offset, true) == like && (same == nullptr || apart(load) < apart(*same)))
      same = &load;
  });
  if (brought.empty() || brought.find(own) != std::string::npos) return;
  report.line("brought", "by phase {} of {}, which was waited for at {}: {}", wait->phase - 1,
              name_mbarrier(*wait->barrier), wait->where.text(), brought);
  if (same == nullptr) {
    report.missing(
        "a copy or a store into {} before it is read, or a condition that leaves the read out: no copy has "
        "been "
        "issued into a {} yet",
        own, like);
    return;
  }
  report.missing(
      "a copy into {}. One was issued into {}, at {}, and it signals {}: data that arrive with another stage "
      "must be read from that stage, after the wait for it",
      own, member_of(cta, same->offset, false), same->where.text(), name_mbarrier(*same->barrier));
}

bool explain_too_large_box(Report& report, const LoadRecord& load, const std::string& bytes) {
  if (load.remote || load.barrier == nullptr || load.spec.rank < 2) return false;
  const Cta& cta = *load.barrier->cta;
  // "stage[0].b" of "stage[0].b[0][0]"
  const auto member = [](const std::string& name) {
    const std::size_t bracket = name.find('[', name.rfind('.') + 1);
    return name.rfind('.') == std::string::npos ? std::string() : name.substr(0, bracket);
  };
  const std::string own = member(member_name(cta, load.offset));
  const std::string there = member(bytes.substr(0, bytes.find(' ')));
  if (own.empty() || there.empty() || own == there) return false;
  constexpr std::uint32_t kStep = 16;
  std::uint32_t fits = 0;
  while (fits < load.bytes && member(member_name(cta, load.offset + fits)) == own) fits += kStep;
  if (fits == 0 || fits >= load.bytes || member(member_name(cta, load.offset + load.bytes - kStep)) == own)
    return false;
  const std::uint32_t row = load.spec.box[1] > 0 ? load.bytes / load.spec.box[1] : 0;
  report.line("over",
              "the copy writes {} bytes to {}, which has room for {} from there on: the last {} bytes lie "
              "past its end, where {} begins",
              load.bytes, own, fits, load.bytes - fits, there);
  report.missing(
      "a box of {} in the tensor map instead of {}: that is what {} holds. (The host must give each map a "
      "box as large as the part of the operand's tile that one copy loads.) No wait is missing",
      row > 0 && fits % row == 0 && load.spec.rank == 2 ? fmt::format("{} rows", fits / row)
                                                        : fmt::format("{} bytes", fits),
      load.spec.rank == 2 ? std::to_string(load.spec.box[1]) : std::to_string(load.bytes), own);
  return true;
}

}  // namespace emulator
