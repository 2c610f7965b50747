#include "emulator/report/causes/missing_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "emulator/report/causes/barriers.h"
#include "emulator/sync/lanes.h"

namespace emulator {
namespace {

/// No wait of the warpgroup covers its wgmma `reader`: adds what its latest wait left. Returns the wait that
/// is missing.
std::string explain_unwaited(Report& report, const Warpgroup& warpgroup, Stamp reader) {
  const std::uint64_t number = stamp_time(reader);
  const std::string name =
      fmt::format("warpgroup {} of CTA {}", warpgroup.first_thread / kWarpgroupSize, text(warpgroup.cta->id));
  const auto end = std::lower_bound(warpgroup.group_end.begin(), warpgroup.group_end.end(), number);
  const auto group = static_cast<std::uint64_t>(end - warpgroup.group_end.begin()) + 1;
  const auto late = std::find_if(warpgroup.threads.begin(), warpgroup.threads.end(),
                                 [&](const WgmmaThread& thread) { return thread.waited < number; });
  if (end == warpgroup.group_end.end() || late->committed < group)
    return fmt::format("wgmma.commit_group after the wgmma, and a wgmma.wait_group by {}", name);
  if (late->waits == 0) return fmt::format("wgmma.wait_group of {}", name);
  const std::string wait = fmt::format("wgmma.wait_group<{}> at {}", late->left, late->waited_at.text());
  report.line(
      "waited",
      "{}, when {} group{} committed: it leaves the latest {} in flight, and this wgmma belongs to group {}",
      wait, late->at_wait, late->at_wait == 1 ? " was" : "s were", late->left, group);
  return fmt::format(
      "wgmma.wait_group<{}> by {} instead of wait_group<{}>, which leaves this wgmma in flight",
      late->at_wait - group, name, late->left);
}

}  // namespace

void explain_missing_end(Report& report, const Gang& gang, Stamp reader, Where read_at,
                         const std::string& before) {
  const ReaderName name = reader_name(gang, reader);
  const char* wait = nullptr;
  bool waited = false;
  bool committed = true;
  std::string lacking;  // the wait, and where the one that is there falls short
  for (const auto& cta : gang.ctas) {
    if (!name.agent || cta->key != name.cta) continue;
    const HopperCta& state = gang.hopper->cta(*cta);
    if (name.kind == AgentKind::kMultiplications) {
      report.missing(gang.hopper->tcgen05->missing_commit(*cta, name.first, stamp_time(reader)));
      return;
    }
    if (name.kind == AgentKind::kWgmma) {
      wait = "wgmma.wait_group";
      const auto& threads = state.warpgroups[name.first / kWarpgroupSize]->threads;
      waited = std::all_of(threads.begin(), threads.end(),
                           [&](const WgmmaThread& thread) { return thread.waited >= stamp_time(reader); });
      if (!waited) lacking = explain_unwaited(report, *state.warpgroups[name.first / kWarpgroupSize], reader);
    } else if (name.kind == AgentKind::kStoreReads) {
      wait = "cp.async.bulk.wait_group.read";
      waited = state.threads[name.first].stores.read >= stamp_time(reader);
      committed = state.threads[name.first].stores.committed >= stamp_time(reader);
      if (!waited && committed)
        lacking = gang.hopper->copies.explain_unread(report, cta->threads[name.first], stamp_time(reader));
    }
  }
  if (!wait) {
    std::string together;  // where the reader's warp was together after the read
    for (const auto& cta : gang.ctas) {
      if (!name.agent && cta->key == stamp_cta(reader) && stamp_thread(reader) < cta->threads.size())
        together = warp_instruction_since(*cta, stamp_thread(reader), stamp_time(reader));
    }
    report.missing("a barrier (or an mbarrier that the readers arrive on) between the read at {} and {}",
                   read_at.text(), before);
    if (!together.empty())
      report.line("note",
                  "where one lane arrives for its warp, a __syncwarp must come between the read and the "
                  "arrival: {} orders execution, not memory (--allow release-for-warp accepts it)",
                  together);
  } else if (!committed) {
    report.missing(
        "cp.async.bulk.commit_group after the store at {}: the store is in no group yet, and {} by {} covers "
        "only committed groups",
        read_at.text(), wait, name.name);
  } else if (waited) {
    report.missing("a barrier (or an mbarrier arrival) between {} by {} and {}", wait, name.name, before);
  } else {
    report.missing("{}, and a barrier after it, before {}", lacking, before);
  }
}

void explain_other_buffers(Report& report, const Thread& thread, Stamp reader) {
  const Gang& gang = *thread.cta->gang;
  const ReaderName name = reader_name(gang, reader);
  if (name.cta != thread.cta->key) return;
  const auto& threads = gang.hopper->cta(*thread.cta).threads;
  const std::uint32_t warpgroup = thread.index / kWarpgroupSize;
  if (name.first / kWarpgroupSize != warpgroup) {
    report.line("owner",
                "warpgroup {} stores from these bytes and warpgroup {} writes them: either each needs its "
                "own buffers, or one must wait for the other",
                name.first / kWarpgroupSize, warpgroup);
    return;
  }
  for (std::size_t i = std::size_t{warpgroup} * kWarpgroupSize;
       i < std::min<std::size_t>(threads.size(), (std::size_t{warpgroup} + 1) * kWarpgroupSize); ++i) {
    const BulkStores& stores = threads[i].stores;
    if (i == name.first || stores.waits == 0 || stores.committed > 0) continue;
    report.line(
        "waited",
        "{} waits for bulk groups at {} but has committed none: a wait covers only its own thread's groups",
        name_thread(thread.cta->threads[i]), stores.waited.text());
    return;
  }
}

}  // namespace emulator
