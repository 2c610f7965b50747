// What the wrapped instructions did: bytes, sectors, wavefronts, bank conflicts, by source line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/machine/where.h"
#include "emulator/memory/shadow.h"

namespace emulator {

struct Cta;
class Gang;

/// Of one source line and instruction. A request is one warp's execution of it.
struct LineCounters {
  std::string where;        // "steps/02_shared_tile/kernel.cuh:41"
  std::string instruction;  // "ld_shared"
  std::uint64_t requests = 0;
  std::uint64_t threads = 0;           // active, over all requests
  std::uint64_t bytes = 0;             // asked for by the threads
  std::uint64_t sectors = 0;           // global: different 32-byte sectors, over all requests
  std::uint64_t ideal_sectors = 0;     // what as many different bytes would need side by side
  std::uint64_t wavefronts = 0;        // shared: passes over the 32 banks
  std::uint64_t ideal_wavefronts = 0;  // without conflicts
  std::uint64_t conflicts() const { return wavefronts - ideal_wavefronts; }
};

/// Totals since the last reset, one entry per source line and instruction, in source order.
struct Counters {
  std::vector<LineCounters> lines;
  LineCounters total(const std::string& instruction) const;
  std::uint64_t instructions(const std::string& instruction) const { return total(instruction).requests; }
  /// A table for the terminal.
  std::string to_text() const;
};

Counters counters();
void reset_counters();

// What the wrappers call while Options::counters is on.

/// Executions of an instruction that moves no memory itself (a barrier, a shuffle, an mma), or `bytes` by an
/// engine (a bulk copy, wgmma).
void count_instruction(const char* instruction, Where where, unsigned requests, unsigned threads,
                       std::uint64_t bytes = 0);
/// One thread's part of a warp's memory request. Lanes are matched by how often each has been at this line
/// since the last barrier. An instruction that touches both memories (cp.async) is a
/// request of its shared half.
void count_access(const char* instruction, bool shared, const void* address, unsigned bytes, Where where);
/// The memory side of a warp-wide instruction (counted by count_instruction): rows of
/// 16 bytes, eight at a time.
void count_rows(const char* instruction, const void* const* rows, unsigned count, Where where);
/// Every lane is at the same point: unfinished requests are complete.
void realign_counters(Cta& cta);
/// Hands what this OS thread counted to the process.
void finish_counters(Gang& gang);

}  // namespace emulator
