// What the GPU tests share. Every test begins with REQUIRE_GPU(...) or returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/backend/device_array.h"

namespace gpu_test {

/// Why a test that needs this compute capability cannot run here; "" when it can.
inline std::string gpu_problem(int least_capability, int most_capability = 999) {
  try {
    const harness::DeviceInfo device = harness::device_info();
    if (device.compute_capability < least_capability || device.compute_capability > most_capability) {
      return device.name + " has compute capability " + std::to_string(device.compute_capability) + ", not " +
             std::to_string(least_capability);
    }
    return "";
  } catch (const harness::Error& error) {
    return error.what();
  }
}

/// True, having said why, when the test must be skipped.
inline bool skip_without_gpu(int least_capability = 80, int most_capability = 999) {
  const std::string problem = gpu_problem(least_capability, most_capability);
  if (!problem.empty()) skip_test(problem.c_str());
  return !problem.empty();
}

/// wgmma and its companions are compiled for sm_90a only.
inline bool skip_without_hopper() {
  return skip_without_gpu(90, 90);
}

/// An array whose bytes are known before a kernel writes them.
template <typename T>
class DeviceArray : public harness::DeviceArray<T> {
 public:
  explicit DeviceArray(std::size_t count) : harness::DeviceArray<T>(count, "a test's array") {
    this->fill(0xcd);
  }
  explicit DeviceArray(const std::vector<T>& values) : harness::DeviceArray<T>(values, "a test's array") {}

  /// Waits for the device.
  std::vector<T> read() const {
    harness::synchronize();
    return this->host();
  }
};

/// A small deterministic generator for test data.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint32_t>(limit)); }

 private:
  std::uint64_t state_;
};

}  // namespace gpu_test
