// The states of a timeline (trace_state.h): the emulator's counterpart. Nothing unless a timeline is being
// recorded.
#pragma once

#include <cstdint>

#include "emulator/timeline/timeline.h"
#include "ptx/trace_state.h"
#include "ptx/where.cuh"

namespace gemm::ptx {

/// Whether this build can record timelines: the emulator always can.
inline constexpr bool kTraces = true;

/// From now on the calling warp does this. Lanes are put together by `where`: the place in the kernel.
inline void trace_state(TraceState state, int stage, int k_tile, char role, Where where) {
  if (emulator::timeline_on()) [[unlikely]]
    emulator::log_state(state, stage, k_tile, role, where);
}
inline void trace_state(TraceState state, int stage, Where where = Where::here()) {
  trace_state(state, stage, -1, 0, where);
}
inline void trace_state(TraceState state, Where where = Where::here()) {
  trace_state(state, -1, -1, 0, where);
}

/// Arithmetic in plain C++ takes no time in the model of a timeline. Where its time is the point, the kernel
/// says how many instructions a thread executes here.
inline void trace_arithmetic(int instructions, Where where = Where::here()) {
  if (emulator::timeline_on()) [[unlikely]]
    emulator::log_together(emulator::OperationKind::kArithmetic, static_cast<std::uint32_t>(instructions), 0,
                           0, where);
}

}  // namespace gemm::ptx
