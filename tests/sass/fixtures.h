// The kernels of tests/sass/kernels as the tests see them.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "catch.h"
#include "toolchain/toolchain.h"
#include "view/kernel_view.h"

namespace fixtures {

inline const std::filesystem::path kFolder = std::filesystem::path(GEMM_SOURCE_DIR) / "tests" / "sass";

inline std::string text(const std::string& name) {
  return sass::read_file(kFolder / "fixtures" / name);
}

inline const char* architecture_of(const std::string& name) {
  return name == "other_target" ? "sm_90" : "sm_90a";
}

/// The committed output of compiler and disassemblers for kernels/NAME.cu.
inline const sass::Binary& committed(const std::string& name) {
  static std::map<std::string, sass::Binary> binaries;
  const auto [entry, inserted] = binaries.try_emplace(name);
  if (inserted)
    entry->second = sass::assemble_binary(text(name + ".sass"), text(name + ".usage"), text(name + ".log"),
                                          architecture_of(name));
  return entry->second;
}

/// One kernel of a file as a variant with a tile of 32 x 32 x 1, worked off by 64
/// threads: 16 multiply-adds each.
inline sass::KernelView view(const sass::Binary& binary, const std::string& kernel) {
  return {binary,
          {.name = kernel, .function = kernel, .tile_m = 32, .tile_n = 32, .tile_k = 1, .threads = 64}};
}

}  // namespace fixtures
