// An exercise with the kernel that it begins with and the step's own. CMakeLists.txt generates exercises()
// for each step.
#pragma once

#include <string>
#include <vector>

#include "exercise.h"
#include "gemm/step.h"

struct Checked {
  exercise::Exercise exercise;
  const gemm::Step* handed_out;
  const gemm::Step* solved;
  std::string expect;  // as in a mutant; "rule": it is right, but not what is asked for
};

/// Those of one step, named like their tests: 11_ring.
const std::vector<Checked>& exercises();
