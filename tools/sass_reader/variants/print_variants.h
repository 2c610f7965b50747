// What a program says of the step that it holds, for the reader of machine code (toolchain/toolchain.cpp).
#pragma once

#include <cstdio>

#include "gemm/problem/step.h"

/// A symbol whose address tells where the running program was loaded.
extern "C" inline void loaded_here() {}

/// Which kernel belongs to which variant: the address of a kernel's host stub has the kernel's mangled name
/// in the program's symbol table.
inline int print_variants(const gemm::Step& step) {
  std::printf("loaded_here\t%llu\n", reinterpret_cast<unsigned long long>(&loaded_here));
  for (const gemm::Variant& variant : step.variants) {
    if (variant.choose != nullptr) continue;  // it stands for others
    int threads = 0;
    int shared_bytes = 0;
    try {
      const gemm::ptx::LaunchShape shape = variant.launch_shape({4096, 4096, 4096});
      threads = static_cast<int>(shape.block.count());
      shared_bytes = shape.shared_bytes;
    } catch (...) {  // a launch shape that asks a GPU
    }
    std::printf("variant\t%s\t%s\t%llu\t%d\t%d\t%d\t%d\t%d\t%d\n", variant.name.c_str(),
                variant.summary.c_str(), reinterpret_cast<unsigned long long>(variant.kernel), variant.tile.m,
                variant.tile.n, variant.tile.k, variant.stages, threads, shared_bytes);
  }
  return 0;
}
