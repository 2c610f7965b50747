#include "emulator/report/causes/missing_arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/report/causes/barriers.h"
#include "emulator/report/causes/never_arrived.h"
#include "emulator/report/causes/tensor_causes.h"

namespace emulator {
namespace {

/// ", last as consumer of k-tile 7, stage 3": the warpgroup's latest wait there.
std::string latest_wait_text(const HopperCta& cta, std::size_t warpgroup, const Mbarrier& full) {
  const LastWait* latest = nullptr;
  for (std::size_t i = warpgroup * kWarpgroupSize;
       i < std::min(cta.threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
    for (const LastWait& wait : cta.threads[i].waits) {
      if (wait.barrier == &full && (!latest || wait.count > latest->count)) latest = &wait;
    }
  }
  return latest && latest->activity.role ? ", last as " + text(latest->activity) : "";
}

/// Where else the warpgroup has said that it has read a stage.
std::string other_releases_text(const HopperCta& cta, std::size_t warpgroup, const Mbarrier& empty) {
  constexpr std::size_t kShown = 4;
  std::vector<Arrivals> others;  // the most of any thread, by barrier
  for (std::size_t i = warpgroup * kWarpgroupSize;
       i < std::min(cta.threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
    for (const Arrivals& arrivals : cta.threads[i].arrivals) {
      if (arrivals.barrier == &empty || !arrivals.full) continue;
      const auto known = std::find_if(others.begin(), others.end(), [&](const Arrivals& other) {
        return other.barrier == arrivals.barrier;
      });
      if (known == others.end()) {
        others.push_back(arrivals);
      } else {
        known->count = std::max(known->count, arrivals.count);
      }
    }
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, others.size()); ++i) {
    list += fmt::format("{}{} {} times for {}", i == 0 ? "; it has arrived at " : ", at ",
                        name_mbarrier(*others[i].barrier), others[i].count,
                        waits_passed(*cta.cta, warpgroup, *others[i].full));
  }
  return list.empty() ? list : list + " waits passed";
}

}  // namespace

std::string describe_releases(const Mbarrier& empty) {
  if (empty.commits > 0) return describe_commits(empty);
  std::string lines;
  for (const auto& cta : empty.cta->gang->ctas) {
    const HopperCta& state = empty.cta->gang->hopper->cta(*cta);
    for (std::size_t warpgroup = 0; warpgroup < state.warpgroups.size(); ++warpgroup) {
      Arrivals most{.barrier = &empty};
      for (std::size_t i = warpgroup * kWarpgroupSize; i < (warpgroup + 1) * kWarpgroupSize; ++i) {
        for (const Arrivals& arrivals : state.threads[i].arrivals) {
          if (arrivals.barrier == &empty && arrivals.count > most.count) most = arrivals;
        }
      }
      if (most.count == 0) most.full = full_of(*cta, empty);
      if (most.full == nullptr || most.ahead) continue;
      const std::uint32_t passed = waits_passed(*cta, warpgroup, *most.full);
      if (passed <= most.count) continue;
      lines += fmt::format(
          "{}warpgroup {} of CTA {} has passed its wait at {} {} times{}, and has arrived here {} times",
          lines.empty() ? "" : "\n  ", warpgroup, text(cta->id), name_mbarrier(*most.full), passed,
          latest_wait_text(state, warpgroup, *most.full), most.count);
      lines += other_releases_text(state, warpgroup, empty);
    }
  }
  return lines;
}

namespace {

/// Readers that have gone on behind a stage, release the others, and have never released this one: whoever
/// waits for that lacks their arrivals. False where that is not so.
bool explain_stage_left_out(Report& report, const Gang& gang, const Mbarrier& empty) {
  constexpr int kFurther = 2;  // stages: the one that was read last may be released behind the next wait
  if (empty.phase != empty.first_phase || !empty.events.empty()) return false;
  const Mbarrier* const full = full_of(*empty.cta, empty);
  const std::string family = family_of(empty);
  if (full == nullptr || family.empty()) return false;
  std::string names;
  std::string place;
  for (const auto& cta : gang.ctas) {
    const HopperCta& state = gang.hopper->cta(*cta);
    const auto own = state.barrier_at.find(full->offset);
    if (own == state.barrier_at.end() || !own->second->live) continue;
    for (std::size_t warpgroup = 0; warpgroup < state.warpgroups.size(); ++warpgroup) {
      const std::uint32_t passed = waits_passed(*cta, warpgroup, *own->second);
      if (passed == 0) continue;
      int further = 0;
      for (const auto& other : state.barriers)
        further += other->live && family_of(*other) == family_of(*own->second) &&
                           waits_passed(*cta, warpgroup, *other) > passed
                       ? 1
                       : 0;
      bool here = false;
      bool beside = false;
      for (std::size_t i = warpgroup * kWarpgroupSize;
           i < std::min(state.threads.size(), (warpgroup + 1) * kWarpgroupSize); ++i) {
        for (const Arrivals& arrivals : state.threads[i].arrivals) {
          here = here || (arrivals.barrier == &empty && arrivals.count > 0);
          beside = beside || (arrivals.barrier != &empty && arrivals.count > 0 &&
                              arrivals.barrier->cta == empty.cta && family_of(*arrivals.barrier) == family);
          if (arrivals.barrier->cta != empty.cta || family_of(*arrivals.barrier) != family ||
              arrivals.barrier->previous_events.empty() || !place.empty())
            continue;
          place = arrivals.barrier->previous_events.back().where.text();
        }
      }
      if (here || !beside || further < kFurther) continue;
      names += fmt::format("{}warpgroup {} of CTA {}", names.empty() ? "" : ", ", warpgroup, text(cta->id));
    }
  }
  if (names.empty()) return false;
  report.line("first",
              "no thread has ever arrived at {}. Among its readers, {} {} waited for {} and for later "
              "stages, and arrived for the later stages",
              name_mbarrier(empty), names, names.find(',') == std::string::npos ? "has" : "have",
              name_mbarrier(*full));
  report.missing(
      "the arrival{} there for this stage: the condition before the arrival is off by one and skips this "
      "stage. Each stage that is filled again must be released, including the last such stage (k-tile i of n "
      "is released after the wait for k-tile i + 1, and its stage is filled again while i + stages is below "
      "n)",
      place.empty() ? std::string() : " of " + place);
  return true;
}

}  // namespace

bool explain_missing_arrivals(Report& report, const Gang& gang) {
  if (!gang.hopper) return false;
  for (const Mbarrier* barrier : waited_for(gang)) {
    if (explain_stage_left_out(report, gang, *barrier)) return true;
  }
  // Nobody is left that could arrive, beside those that have.
  std::size_t live = 0;
  for (const auto& cta : gang.ctas) live += static_cast<std::size_t>(cta->thread_count - cta->exited);
  for (const Mbarrier* barrier : waited_for(gang)) {
    const std::uint32_t here = barrier->count - barrier->pending;
    if (here == 0 || barrier->pending == 0 || barrier->late > 0 || barrier->commits > 0 ||
        live != barrier->waiting.size() || no_phase_has_ended(gang, *barrier))
      continue;
    report.missing(
        "{} more arrival{} in a phase of {}, whose count is {} (set at {}): {}. A count of {} would "
        "match",
        barrier->pending, barrier->pending == 1 ? "" : "s", name_mbarrier(*barrier), barrier->count,
        barrier->init_where.text(), ended_by(gang, barrier->events), here);
    return true;
  }
  return false;
}

std::string text(const Grid& grid, const EarlyArrival& early) {
  const std::string activity = text(early.activity);
  return fmt::format(
      "{}{} arrived at {} at {} (arrival number {}) when its warpgroup had passed its wait at {} only {} "
      "time{}: it released a stage that it had not read",
      name_thread(grid, early.stamp), activity.empty() ? "" : " (after its wait as " + activity + ")",
      name_mbarrier(*early.arrivals.barrier), early.where.text(), early.arrivals.count,
      name_mbarrier(*early.arrivals.full), early.passed, early.passed == 1 ? "" : "s");
}

}  // namespace emulator
