// What a wait is for; shared by the GPU and the emulator.
#pragma once

namespace gemm::ptx {

/// Costs nothing unless the wait has to explain itself: in the emulator's reports, and in the bounded-wait
/// build.
struct WaitInfo {
  const char* role;     // "producer", "consumer"; at most 15 letters
  const char* barrier;  // its name in the shared-memory struct: "full", "empty"
  int stage;
  int k_tile;
};

}  // namespace gemm::ptx
