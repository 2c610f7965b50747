// What the GPU tests share. Every test begins with REQUIRE_GPU(...) or returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catch.h"
#include "harness/backend.h"

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

/// An array on the device, and its way there and back.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count)
      : count_(count),
        memory_(static_cast<T*>(harness::device_allocate(count * sizeof(T), "a test's array"))) {
    harness::fill_device(memory_, 0xcd, count * sizeof(T));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    harness::copy_to_device(memory_, values.data(), count_ * sizeof(T));
  }
  ~DeviceArray() { harness::device_free(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return memory_; }
  /// Waits for the device.
  std::vector<T> read() const {
    harness::synchronize();
    std::vector<T> values(count_);
    harness::copy_to_host(values.data(), memory_, count_ * sizeof(T));
    return values;
  }

 private:
  std::size_t count_;
  T* memory_;
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
