#include "emulator/machine/launch/launch_bounds.h"

#include <algorithm>
#include <cstdint>

// The linker's: the section's first address and the one behind its last.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" const std::uintptr_t __start___patchable_function_entries[] __attribute__((weak));
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" const std::uintptr_t __stop___patchable_function_entries[] __attribute__((weak));

namespace emulator {

int launch_bounds(const void* kernel) {
  const auto entry = reinterpret_cast<std::uintptr_t>(kernel);
  constexpr unsigned char kNop = 0x90;
  std::uintptr_t first = 0;  // of the instructions in front of a function, the nearest one
  for (const std::uintptr_t* at = __start___patchable_function_entries;
       at != __stop___patchable_function_entries; ++at) {
    if (*at < entry) first = std::max(first, *at);
  }
  if (first == 0) return 0;
  const auto* begin = reinterpret_cast<const unsigned char*>(first);
  const auto* end = reinterpret_cast<const unsigned char*>(entry);
  // Between the other's and this kernel lies another kernel.
  if (!std::all_of(begin, end, [](unsigned char byte) { return byte == kNop; })) return 0;
  return static_cast<int>(end - begin);
}

}  // namespace emulator
