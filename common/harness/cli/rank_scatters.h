// The program of a step whose product is summed over several GPUs.
#pragma once

#include "gemm/problem/step.h"

namespace harness {

int run_scatter_step(int argc, char** argv, const gemm::Step& step);

}  // namespace harness
