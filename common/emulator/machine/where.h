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
  [[gnu::always_inline]] static Where here(const char* file = __builtin_FILE(),
                                           unsigned line = __builtin_LINE()) {
#ifdef EMULATOR_PLACES_OF_CALLERS  // tools/emulate: from the instruction, its callers are found as well
    (void)file, (void)line;
    return at(this_instruction());
#else
    Where where;
    where.packed_ =
        (static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(file)) << 16) | (line & 0xffffu);
    return where;
#endif
  }
  /// An instruction of the program instead of a file and a line, which its text looks up: the line is 0.
  static Where at(const void* instruction) {
    Where where;
    where.packed_ = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(instruction)) << 16;
    return where;
  }
  static Where from_packed(std::uint64_t packed) {
    Where where;
    where.packed_ = packed;
    return where;
  }
  std::uint64_t packed() const {
    return packed_;
  }
  const char* file() const {
    return reinterpret_cast<const char*>(packed_ >> 16);
  }
  unsigned line() const {
    return static_cast<unsigned>(packed_ & 0xffffu);
  }
  /// "steps/02_shared_tile/kernel.cuh:41", or "softmax.cu:41 (in reduce.cuh:12)" where the callers are known:
  /// what a report writes.
  std::string text() const;
  /// The line itself, whoever has called it.
  std::string innermost() const;
  /// Whether both are in one line.
  bool is_line_of(Where other) const {
    return packed_ == other.packed_ || innermost() == other.innermost();
  }

 private:
#ifdef EMULATOR_PLACES_OF_CALLERS
  /// Volatile, or two calls would share it.
  [[gnu::always_inline]] static const void* this_instruction() {
    const void* address = nullptr;
#if defined(__x86_64__)
    __asm__ __volatile__("1: leaq 1b(%%rip), %0" : "=r"(address));
#elif defined(__aarch64__)
    __asm__ __volatile__("1: adr %0, 1b" : "=r"(address));
#endif
    return address;
  }
#endif

  std::uint64_t packed_ = 0;
};

}  // namespace emulator
