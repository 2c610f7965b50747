// Linked to one object of the GPU build, whose step it lists.
#include "print_variants.h"

const gemm::Step& built_step();  // the linker is told which (toolchain/toolchain.cpp)

int main() {
  return print_variants(built_step());
}
