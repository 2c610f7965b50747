// What the generated programs call. There are many, and each contains this call alone, so this header
// includes nothing.
#pragma once

namespace gemm {
struct Step;
}

namespace harness {

/// run() of cli.h with the steps that the accessors return; one that throws (the name is not the folder's)
/// ends the program with its sentence.
int run_steps(int argc, char** argv, const gemm::Step& (*const accessors[])(), unsigned long count);

}  // namespace harness
