// The emulator's knobs as the command line sees them. In a GPU build every function throws Error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemm/problem/gemm.h"

namespace harness {

/// When asynchronous operations complete: as the seed decides, as early as allowed, or as late as allowed.
enum class Completion { kRandom, kEarliest, kLatest };

/// Which CTAs go on first, as far as they can: whichever the seed says, or those with the lowest or the
/// highest numbers.
enum class CtaOrder { kSeed, kAscending, kDescending };

struct EmulatorControl {
  std::uint64_t schedule_seed = 1;
  Completion completion = Completion::kRandom;
  CtaOrder cta_order = CtaOrder::kSeed;
  int sm_count = 4;
  bool counters = false;
  double launch_seconds = 0;  // after which a launch that still makes progress is reported; 0: never
};

/// Takes effect at the next launch.
void control_emulator(const EmulatorControl& control);

/// Until end_streams_at_once(), launches may be in any stream, and bytes outside of what has been allocated
/// before that two streams share, and that one of them writes, are reported.
void begin_streams_at_once();
void end_streams_at_once();

/// Throws EmulatorReport if the latest launch has left flags or counters in a workspace that are not 0. Does
/// nothing in a GPU build.
void check_workspaces();

/// A rule of the emulator that is this course's own: stricter than the PTX ISA, so that it can be switched.
struct CourseRule {
  std::string name;
  std::string sentence;  // what it forbids
  std::string page;      // where it is explained
  bool on = true;        // unless it is switched
};

std::vector<CourseRule> course_rules();

/// Switches rules off and on by name, for the rest of the process; control_emulator() leaves them alone.
/// Throws Error for a name that is none.
void switch_course_rules(const std::vector<std::string>& allow, const std::vector<std::string>& strict);

/// Whether elect.sync chooses the lowest lane, as Hopper GPUs do, or one that the seed draws, as the PTX ISA
/// allows. For the rest of the process; control_emulator() leaves it alone.
void elect_lowest_lane(bool lowest);

/// The problem and the tiles of the next launches: with that the emulator's reports name k-tiles and
/// elements, to the next call of this or of control_emulator(). Does nothing in a GPU build.
void name_tiles(const gemm::Shape& shape, const gemm::TileShape& tile);

/// What the launches since the last call did that is allowed, and that explains a wrong result: a sentence,
/// or nothing. Forgets it.
std::string take_emulator_clue();

/// What the emulator counted of one instruction at one source line; a request is one warp's execution of it.
struct LineCount {
  std::string place;        // "steps/02_shared_tile/kernel.cuh:41"
  std::string instruction;  // "ld_shared"
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sectors = 0;  // global memory: of 32 bytes; ideal: as few as the bytes need
  std::uint64_t ideal_sectors = 0;
  std::uint64_t wavefronts = 0;  // shared memory: passes over the banks; ideal: without conflicts
  std::uint64_t ideal_wavefronts = 0;
};

struct EmulatorCounters {
  std::vector<LineCount> lines;
  std::string table;  // for the terminal
};

/// The counters since the last call, and resets them.
EmulatorCounters take_emulator_counters();

/// The barrier ledger of what has run, as text and for programs.
struct EmulatorLedger {
  std::string text;  // the roles, and a table
  std::string json;  // the field "ledger" of docs/schemas/emulate.schema.json
  bool empty = true;
};

/// What is launched until take_emulator_ledger() goes into a new ledger. Counts accesses, too.
void begin_emulator_ledger();
EmulatorLedger take_emulator_ledger();

}  // namespace harness
