// Statements that order something: a run lists them, or leaves one out (--without, --necessary).
//
// A statement is an instruction, its place, and what tells two at one place apart: the array of its mbarrier,
// or what a wait for groups leaves. A helper's line that several call sites share is one statement, except in
// tools/emulate, where a place names its callers.
#pragma once

#include <cstdint>

#include "emulator/machine/where.h"

namespace emulator {
struct Cta;

enum class OrderingMode : std::uint8_t { kOff, kListing, kLeavingOut };
/// Changes only between launches.
extern constinit OrderingMode ordering_mode;

namespace explore {
bool ask_left_out(const char* what, Where where, std::uint64_t number);
bool ask_left_out_at(const char* what, Where where, const Cta& cta, std::uint32_t offset);
bool ask_left_out_cluster_wait(Where where);
}  // namespace explore

/// What has no number of its own.
inline constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};

/// Whether the running thread skips this statement.
inline bool is_left_out(const char* what, Where where, std::uint64_t number = kNoNumber) {
  return ordering_mode != OrderingMode::kOff && explore::ask_left_out(what, where, number);
}
/// The same of a statement about the mbarrier at this place.
inline bool is_left_out_at(const char* what, Where where, const Cta& cta, std::uint32_t offset) {
  return ordering_mode != OrderingMode::kOff && explore::ask_left_out_at(what, where, cta, offset);
}
/// A wait at the cluster's barrier goes with the arrival before it.
inline bool is_cluster_wait_left_out(Where where) {
  return ordering_mode != OrderingMode::kOff && explore::ask_left_out_cluster_wait(where);
}

}  // namespace emulator
