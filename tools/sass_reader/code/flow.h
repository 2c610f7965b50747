// Basic blocks, loops, and which loop is the main one.
#pragma once

#include <cstddef>
#include <vector>

#include "code/listing.h"

namespace sass {

/// Instructions [first, last] of a function; only the last may branch, only the first is branched to.
struct Block {
  std::size_t first = 0;
  std::size_t last = 0;
  std::vector<std::size_t> successors;  // blocks
};

/// A natural loop: all blocks that reach a back edge to `header` without passing through it.
struct Loop {
  std::size_t header = 0;            // block
  std::vector<std::size_t> blocks;   // ascending, header and nested loops included
  std::vector<std::size_t> latches;  // blocks that branch back to the header
  bool contains(std::size_t block) const;
};

struct Flow {
  std::vector<Block> blocks;  // in address order
  std::vector<Loop> loops;    // by header
};

Flow analyse_flow(const Function& function);

/// Where the kernel spends its time: of the loops that multiply and contain no other loop that multiplies,
/// the one with the most multiply-adds per thread. So a loop that waits for a barrier inside the main loop
/// does no harm, and the remainder loop of an unrolled one is not mistaken for it. nullptr
/// when no loop multiplies.
const Loop* find_main_loop(const Function& function, const Flow& flow);

/// For every block: can it run after one of `start`? Those of `start` included.
std::vector<bool> reachable_from(const Flow& flow, const std::vector<std::size_t>& start);

/// The instructions of a loop, in address order.
std::vector<const Instruction*> instructions_of(const Function& function, const Flow& flow, const Loop& loop);

}  // namespace sass
