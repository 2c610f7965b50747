// Clocks, power and temperature while a run is timed. GPU build only.
#pragma once

#include <memory>
#include <string>

#include "harness/record/record.h"
#include "harness/timing/surprises.h"

namespace harness {

/// Asks NVML, the driver's management library, a few dozen times a second from a thread of its own. Only
/// reads: the card's settings are never changed. Without NVML every field of Conditions stays zero.
class NvmlSampler {
 public:
  NvmlSampler();
  ~NvmlSampler();
  NvmlSampler(const NvmlSampler&) = delete;
  NvmlSampler& operator=(const NvmlSampler&) = delete;

  /// "" or why there is nothing to sample.
  const std::string& problem() const;
  /// Forgets what was sampled and starts anew.
  void start();
  /// Ends the sampling and summarises it.
  Conditions stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How the card is set up: power limits, MIG, vGPU. What NVML does not say keeps its default.
Card nvml_card();

}  // namespace harness
