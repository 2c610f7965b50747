// The CTA's 16 hardware barriers, by number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine/machine.h"

namespace emulator {

inline constexpr std::uint32_t kNamedBarriers = 16;

struct NamedBarrier {
  struct Arrival {
    Thread* thread;
    Where where;
    bool waits;
    std::uint32_t* count = nullptr;  // bar.red: where its thread learns how many predicates held
  };
  std::uint32_t threads = 0;        // of the present round; 0: none has come yet
  const char* reduction = nullptr;  // bar.red: which one
  std::uint32_t held = 0;           // predicates, so far
  std::vector<Arrival> arrivals;
  SyncObject order;
};

// PTX ISA, "bar, barrier". Executed by the running thread.
void bar_sync(std::uint32_t number, std::uint32_t threads, Where where);
void bar_arrive(std::uint32_t number, std::uint32_t threads, Where where);
/// `what`: "bar_red_popc", "bar_red_and" or "bar_red_or". Returns the number of threads whose predicate held.
std::uint32_t bar_red(const char* what, std::uint32_t number, std::uint32_t threads, bool predicate,
                      Where where);

/// "named barrier 1: 64 of 96 threads have come: ...", for those at which threads wait.
std::string describe_named_barriers(const std::vector<NamedBarrier>& barriers);

}  // namespace emulator
