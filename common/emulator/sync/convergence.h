// Strict mode: the lanes of a warp are together when they execute an .aligned instruction
// (docs/convergence.md).
#pragma once

#include "emulator/machine/machine.h"
#include "emulator/report/course_rules.h"

namespace emulator {

inline bool convergence_is_strict() {
  return course_rule_on(CourseRule::kConvergence);
}

/// The running thread executes an instruction here: a step on its way since its warp was last together.
void note_step(Thread& thread, Where where);
/// It executes an .aligned instruction: the ways of all lanes must be the same. From here on they are
/// together.
void check_aligned(const char* what, Where where);
inline void require_convergence(const char* what, Where where) {
  if (convergence_is_strict()) [[unlikely]]
    check_aligned(what, where);
}
/// It leaves an instruction that brings all lanes together.
inline void lanes_converged(Thread& thread) {
  if (convergence_is_strict()) [[unlikely]]
    thread.way.clear();
}

}  // namespace emulator
