#include "emulator/instrument/warp_functions.h"

#include <algorithm>

#include "emulator/machine/machine.h"

namespace emulator {
namespace {

struct ReduceArgument {
  WarpReduce operation;
  unsigned value;
  unsigned result;
};

struct MatchArgument {
  std::uint64_t value;
  Match result;
};

unsigned reduced(WarpReduce operation, unsigned a, unsigned b) {
  switch (operation) {
    case WarpReduce::kAdd:
      return a + b;
    case WarpReduce::kMin:
      return std::min(a, b);
    case WarpReduce::kMax:
      return std::max(a, b);
    case WarpReduce::kAnd:
      return a & b;
    case WarpReduce::kOr:
      return a | b;
    default:
      return a ^ b;
  }
}

/// Calls visit(argument, lane) for the lanes of the meeting.
template <typename Argument, typename Visit>
void for_lanes(Rendezvous& meeting, Visit visit) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if (meeting.mask >> lane & 1u) visit(*static_cast<Argument*>(meeting.arguments[lane]), lane);
  }
}

}  // namespace

unsigned warp_reduce(const char* what, WarpReduce operation, unsigned mask, unsigned value, Where where) {
  ReduceArgument argument{operation, value, 0};
  warp_collective(
      what, mask, &argument,
      [](Rendezvous& meeting) {
        bool first = true;
        unsigned result = 0;
        for_lanes<ReduceArgument>(meeting, [&](ReduceArgument& lane, unsigned) {
          result = first ? lane.value : reduced(lane.operation, result, lane.value);
          first = false;
        });
        for_lanes<ReduceArgument>(meeting, [&](ReduceArgument& lane, unsigned) { lane.result = result; });
        meeting.result = result;
      },
      false, false, where);
  return argument.result;
}

Match match_lanes(const char* what, unsigned mask, std::uint64_t value, Where where) {
  MatchArgument argument{value, {}};
  warp_collective(
      what, mask, &argument,
      [](Rendezvous& meeting) {
        for_lanes<MatchArgument>(meeting, [&](MatchArgument& mine, unsigned) {
          mine.result = {.equal = 0, .all = meeting.mask};
          for_lanes<MatchArgument>(meeting, [&](const MatchArgument& other, unsigned lane) {
            if (other.value == mine.value) mine.result.equal |= 1u << lane;
          });
        });
      },
      false, false, where);
  return argument.result;
}

long long next_clock() {
  thread_local long long clock = 0;
  constexpr long long kClocksOfACall = 32;
  return clock += kClocksOfACall;
}

}  // namespace emulator
