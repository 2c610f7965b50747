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
  bool passes_bare;    // a bare --check does not notice it: known, and not liked
  std::string beta;    // of the epilogue; "": what the step computes unless asked
  std::string says;    // "empty[1]; k-tile 4": every text stands in every report; "a|b": one of them does
};

/// Those of one step.
const std::vector<Mutant>& mutants();
