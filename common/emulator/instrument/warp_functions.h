// Warp-wide functions of CUDA that no step uses, and a clock.
#pragma once

#include <cstdint>

#include "emulator/machine/where.h"

namespace emulator {

enum class WarpReduce { kAdd, kMin, kMax, kAnd, kOr, kXor };
unsigned warp_reduce(const char* what, WarpReduce operation, unsigned mask, unsigned value, Where where);
/// The lanes of the mask whose value is the running lane's.
struct Match {
  unsigned equal = 0;  // lanes that have the value of this one
  unsigned all = 0;    // lanes of the mask, without those that have returned
};
Match match_lanes(const char* what, unsigned mask, std::uint64_t value, Where where);
inline unsigned warp_match(const char* what, unsigned mask, std::uint64_t value, Where where) {
  return match_lanes(what, mask, value, where).equal;
}
/// Of the running OS thread; it grows with every call.
long long next_clock();

}  // namespace emulator
