// What a wait that lasted too long leaves behind for the host (bounded-wait build).
#pragma once

#include <cstdio>
#include <string>

namespace gemm::ptx {

/// Filled by the first thread whose wait lasts too long, just before it traps. Lives in host memory that the
/// GPU writes through its mapping, because nothing else survives a trap.
struct StuckWait {
  static constexpr int kNameLength = 16;
  int reported = 0;
  unsigned cta[3] = {};
  unsigned thread = 0;
  unsigned parity = 0;
  int stage = 0;
  int k_tile = 0;
  char role[kNameLength] = {};
  char barrier[kNameLength] = {};
};

/// One sentence, or "" when no wait has been reported.
inline std::string stuck_sentence(const StuckWait& wait) {
  if (wait.reported == 0) return "";
  char text[256];
  std::snprintf(
      text, sizeof text,
      "CTA (%u, %u, %u), thread %u: the %s of k-tile %d waits for barrier '%s' of stage %d to complete its "
      "phase of parity %u, and has waited for more than two seconds",
      wait.cta[0], wait.cta[1], wait.cta[2], wait.thread, wait.role, wait.k_tile, wait.barrier, wait.stage,
      wait.parity);
  return text;
}

/// Where kernels of a bounded-wait build report to; nullptr in other builds. Allocated by the first call.
StuckWait* stuck_wait_buffer();

}  // namespace gemm::ptx
