// Which mbarriers belong together (those of one array, and the two sides of a ring), and who waits and
// arrives at them. The other files of this folder ask here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/async/hopper.h"

namespace emulator {

bool is_ring(const Activity& activity);
const LastWait* last_wait(const Thread& thread, const Mbarrier& barrier);
/// "full[1]" -> "[1]"
std::string index_in(const std::string& name);
/// The mbarrier on which the readers of a stage say that it may be filled again: the one that has the same
/// index as `full` and that no load signals. nullptr where that is none or more than one.
const Mbarrier* empty_of(const Cta& cta, const Mbarrier& full);
/// The mbarrier that loads of the stage signal whose readers arrive at `empty`: in this CTA, with the same
/// index. nullptr where that is none or more than one.
const Mbarrier* full_of(const Cta& cta, const Mbarrier& empty);
/// Waits for `barrier` that some thread of the warpgroup has passed: the most of any.
std::uint32_t waits_passed(const Cta& cta, std::size_t warpgroup, const Mbarrier& barrier);
/// "queue.enqueued" of "queue.enqueued[2] (shared + 0x30490)": what barriers of one array have in common.
std::string family_of(const Mbarrier& barrier);

/// Mbarriers of one array: "ring.empty" of CTA (0,0,0). One without a name is alone.
using MbarrierArray = std::vector<const Mbarrier*>;
std::string array_name(const Mbarrier& barrier);
MbarrierArray array_of(const Gang& gang, const Mbarrier& barrier);
/// The number in "ring.empty[2]", or -1.
int last_index(const Mbarrier& barrier);
/// "ring.full[2]" of "ring.empty[2]", whoever signals it, or nullptr.
const Mbarrier* full_by_name(const Cta& cta, const Mbarrier& empty);
/// The mbarrier that copies into the stage signal: where several rings have one of this index, that of the
/// same struct, loaded.full[2] of loaded.empty[2]. nullptr where none is known.
const Mbarrier* filled_by_copies(const Cta& cta, const Mbarrier& empty);
bool has_completed(const Mbarrier& barrier);
bool never_touched(const Mbarrier& barrier);
/// The mbarriers that threads wait for, in order of CTA and age.
MbarrierArray waited_for(const Gang& gang);
/// The threads that have arrived at one of the mbarriers, themselves or by tcgen05.commit.
std::vector<const Thread*> arrivers_of(const Gang& gang, const MbarrierArray& all);
/// The number of threads of the gang that have arrived at the barrier so far.
std::uint32_t arriving_threads(const Gang& gang, const Mbarrier& barrier);
/// The thread, without what it did before.
std::string plain_name(const Thread& thread);
/// The threads that arrived in a phase, a line for each group.
std::string arrivals_text(const Grid& grid, const std::vector<Mbarrier::Event>& events);
/// Who ended the phase, in one line.
std::string ended_by(const Gang& gang, const std::vector<Mbarrier::Event>& events);
/// "threads 0-127 of CTA (0,0,0), as epilogue at accumulator_full, stage 0"
std::string waiters_text(const Mbarrier& barrier);

struct ReaderName {
  std::string name;         // "warpgroup 1 of CTA (0,0,0)"
  std::uint32_t first = 0;  // its threads
  std::uint32_t count = 0;
  std::uint32_t cta = 0;  // key
  AgentKind kind = AgentKind::kLoads;
  bool agent = false;
};

ReaderName reader_name(const Gang& gang, Stamp reader);

}  // namespace emulator
