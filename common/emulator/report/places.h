// Places in a kernel's source: what an instruction's address says by the program's debug information, and how
// a report writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace emulator {

/// "steps/02_shared_tile/kernel.cuh:41": the part of the path that means something to a reader.
std::string short_place(std::string_view path, unsigned line);

/// The lines that an instruction belongs to: its own first, then those of the calls that were inlined around
/// it, outwards. The emulator's headers and the system's are left out. Empty where the program has no line
/// numbers.
std::vector<std::string> lines_of_instruction(std::uintptr_t instruction);

/// "softmax.cu:41 (in reduce.cuh:12)", "softmax.cu:41 (in line 20)": first the outermost line outside headers,
/// or else the outermost one, then those that are called there. "" where there are no lines.
std::string place_with_callers(const std::vector<std::string>& lines);

}  // namespace emulator
