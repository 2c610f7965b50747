// A mutant as its file describes it. CMakeLists.txt generates mutants() for each step.
#pragma once

#include <string>
#include <vector>

#include "exercise.h"
#include "gemm/step.h"

struct Mutant {
  std::string name;
  const gemm::Step* step;
  exercise::Run run;
  std::string expect;  // an emulator rule, or "mismatch"; "a|b": whichever the schedule meets first
};

/// Those of one step.
const std::vector<Mutant>& mutants();
