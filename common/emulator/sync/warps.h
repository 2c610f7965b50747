// Instructions of a warp or a warpgroup that move no memory: elect, setmaxnreg.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/machine/machine.h"

namespace emulator {

class Report;

inline constexpr std::uint32_t kRegistersPerSm = 65536;

/// setmaxnreg on its way through a warpgroup.
struct RegisterChange {
  std::uint32_t registers = 0;  // 0: none is under way
  bool raises = false;
  Where where;
  std::vector<Thread*> arrived;
};

/// True in one lane of the warp: always the same one, of the seed's choice.
bool elect(Where where);
/// Over the lanes of a mask.
bool elect_of(std::uint32_t mask, Where where);

/// The running thread's warpgroup changes to `registers` a thread. A raise returns when
/// the CTA's pool has them.
void set_max_registers(const char* what, std::uint32_t registers, bool raises, Where where);

/// Of a setmaxnreg that waits for ever: which warps of a warpgroup have not executed one that others of it
/// have.
void explain_registers(Report& report, const Gang& gang);

}  // namespace emulator
