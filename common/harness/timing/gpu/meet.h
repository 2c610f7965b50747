// A barrier of ranks on the GPUs themselves: what follows it begins on all of them at the same moment. GPU
// build only.
#pragma once

#include <cstdint>

#include "ptx/launch_shape.h"

namespace harness {

inline constexpr int kMostRanks = 8;

/// In every rank's memory a word for each rank, 0 at first.
struct MeetingPlace {
  std::uint32_t* words[kMostRanks] = {};  // each [kMostRanks]
};

/// On the current device. One that is loaded by its first launch may have to wait for a kernel that waits for
/// it.
void load_meeting();

/// `epoch` grows from one meeting to the next.
void launch_meeting(const MeetingPlace& place, int rank, int ranks, std::uint32_t epoch,
                    gemm::ptx::Stream stream);

}  // namespace harness
