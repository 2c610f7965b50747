// The program of a step that is about several GPUs: its command line, its check, its race.
#pragma once

#include "gemm/problem/step.h"

namespace harness {

int run_rank_step(int argc, char** argv, const gemm::Step& step);

}  // namespace harness
