// elect.sync: one lane of the warp is chosen.
#pragma once

#include <cstdint>

#include "ptx/core.cuh"

namespace gemm::ptx {

/// elect.sync over all 32 lanes: true in exactly one of them, the same one every time. All lanes execute it.
/// PTX ISA, "Parallel Synchronization and Communication Instructions: elect.sync".
__device__ __forceinline__ bool elect_sync() {
  std::uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred elected;\n"
      "elect.sync _|elected, %1;\n"
      "selp.b32 %0, 1, 0, elected;\n"
      "}"
      : "=r"(elected)
      : "r"(0xffffffffu));
  return elected != 0;
}

}  // namespace gemm::ptx
