// Asynchronous operations that end in an arrival at an mbarrier.
#pragma once

#include <cstdint>

#include "emulator/explore/hooks.h"

namespace emulator::explore {

struct UnderWay {
  ActorKind kind = ActorKind::kLoad;
  std::uint64_t id = 0;
  const Mbarrier* barrier = nullptr;
  std::uint32_t count = 0;  // arrivals
  std::uint32_t bytes = 0;  // that it brings
  Where where;              // of the instruction

  Operation operation() const {
    return {.kind = OperationKind::kArrive,
            .what = "",
            .where = where,
            .barrier = barrier,
            .count = count,
            .bytes_missing = -std::int64_t{bytes}};
  }
};

}  // namespace emulator::explore
