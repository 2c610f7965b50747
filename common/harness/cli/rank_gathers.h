// The program of a step whose product needs an operand that is spread over several GPUs.
#pragma once

#include "gemm/problem/step.h"

namespace harness {

int run_gather_step(int argc, char** argv, const gemm::Step& step);

}  // namespace harness
