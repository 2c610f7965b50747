// What makes a machine, or a run on it, unlike those behind the docs' numbers. Pure functions of plain data;
// docs/surprises.md quotes their sentences.
#pragma once

#include <string>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/record/record.h"

namespace harness {

/// What the driver's management library says about the card (see nvml.h).
struct Card {
  double power_limit_w = 0;          // that is enforced now; 0: not known
  double default_power_limit_w = 0;  // that the card came with; 0: not known
  bool is_divided = false;           // into instances (MIG), of which the device is one
  bool is_shared = false;            // with other virtual machines, in turns (vGPU)
};

/// The reasons for which the clock is held down, of an nvmlClocksEventReasons bit
/// mask; being idle is not one.
std::vector<std::string> throttle_names(unsigned long long mask);

/// What to know of a GPU before its times are compared with the docs'; nothing about an
/// H200 SXM as it is delivered.
std::vector<std::string> surprises(const DeviceInfo& device, const Card& card);

/// What happened while a shape was timed that makes its times worse than they need be.
std::vector<std::string> surprises(const Conditions& conditions, TimingMode mode);

}  // namespace harness
