// What a kernel's __launch_bounds__ say, read from the program: the macro leaves so many one-byte
// instructions in front of the kernel, and the compiler keeps the address of the first one in a section.
#pragma once

// GCC takes expressions that depend on template parameters for this attribute, clang does not: there the
// bounds are not known, and not checked.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define EMULATOR_LAUNCH_BOUNDS(...)                                                   \
  __attribute__((patchable_function_entry(::emulator::threads_of_bounds(__VA_ARGS__), \
                                          ::emulator::threads_of_bounds(__VA_ARGS__))))
#else
#define EMULATOR_LAUNCH_BOUNDS(...)
#endif

namespace emulator {

/// The first of what stands in the parentheses.
constexpr int threads_of_bounds(int threads, int /* CTAs of an SM */ = 0, int /* of a cluster */ = 0) {
  return threads;
}

/// The threads that the kernel is compiled for; 0: it has no bounds, or they are not known.
int launch_bounds(const void* kernel);

}  // namespace emulator
