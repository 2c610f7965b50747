// A place in a kernel's source: what every wrapper takes as its last, defaulted argument.
#pragma once

#include <cstdint>
#include <string>

namespace emulator {

/// File and line in 64 bits, small enough to be kept for every byte of shared memory: the upper 48 bits are
/// the address of the file name, the lower 16 the line. Written by hand because clang 14 has
/// no std::source_location.
class Where {
 public:
  constexpr Where() = default;
  static Where here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    Where where;
    where.packed_ = (reinterpret_cast<std::uintptr_t>(file) << 16) | (line & 0xffffu);
    return where;
  }
  /// An instruction of the program instead of a file and a line, which its text looks up: the line is 0.
  static Where at(const void* instruction) {
    Where where;
    where.packed_ = reinterpret_cast<std::uintptr_t>(instruction) << 16;
    return where;
  }
  static Where from_packed(std::uint64_t packed) {
    Where where;
    where.packed_ = packed;
    return where;
  }
  std::uint64_t packed() const { return packed_; }
  const char* file() const { return reinterpret_cast<const char*>(packed_ >> 16); }
  unsigned line() const { return static_cast<unsigned>(packed_ & 0xffffu); }
  /// "steps/02_shared_tile/kernel.cuh:41": the part of the path that means something to a reader.
  std::string text() const;

 private:
  std::uint64_t packed_ = 0;
};

}  // namespace emulator
