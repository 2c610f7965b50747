// What the harness needs from the machine underneath: implemented once for the GPU (backend_gpu.cpp) and once
// for the emulator (backend_emulator.cpp). A binary is linked with exactly one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ptx/launch_shape.h"

namespace harness {

/// Anything the user must be told in one sentence: bad input, no usable GPU, not enough memory, a failed
/// launch. main() prints what() after "error: " and exits with kExitUsage.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The emulator found a rule broken. what() is the whole multi-line report. main() exits with kExitEmulator.
class EmulatorReport : public std::runtime_error {
 public:
  EmulatorReport(std::string rule, const std::string& report)
      : std::runtime_error(report), rule_(std::move(rule)) {}
  /// The rule's stable short name, for example "barrier-divergence" or "shared-race".
  const std::string& rule() const { return rule_; }

 private:
  std::string rule_;
};

inline constexpr int kExitOk = 0;
inline constexpr int kExitMismatch = 1;  // the result was wrong
inline constexpr int kExitUsage = 2;     // bad input or an unusable machine
inline constexpr int kExitEmulator = 3;  // the emulator's report

struct DeviceInfo {
  std::string name;  // "NVIDIA H200", or "emulator"
  bool is_emulator = false;
  int compute_capability = 0;  // major * 10 + minor; the emulator answers 90
  int sm_count = 0;
  int max_threads_per_sm = 0;
  int max_ctas_per_sm = 0;
  int registers_per_sm = 0;  // 32-bit registers
  int shared_bytes_per_sm = 0;
  int shared_bytes_per_cta = 0;   // the opt-in limit, 227 KB on Hopper
  int reserved_shared_bytes = 0;  // what the driver takes from every CTA, 1 KB on Hopper
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;       // total
  std::int64_t memory_free_bytes = 0;  // now
  double clock_hz = 0;                 // the maximum SM clock; 0 on the emulator
  double memory_bytes_per_second = 0;  // from memory clock and bus width; 0 on the emulator
  std::string driver_version;
  std::string runtime_version;
};

/// Describes the device; throws Error with one sentence when there is no usable one (no GPU, driver older
/// than the toolkit needs, compute capability below 8.0).
DeviceInfo device_info();

/// Device memory. `name` ("A", "B", "D", ...) appears in the emulator's out-of-bounds reports.
/// Throws Error that says how much was asked for and how much is free.
void* device_allocate(std::size_t bytes, std::string_view name);
void device_free(void* memory) noexcept;

void copy_to_device(void* device, const void* host, std::size_t bytes);
void copy_to_host(void* host, const void* device, std::size_t bytes);
/// Sets every byte of the range.
void fill_device(void* device, std::uint8_t value, std::size_t bytes);
/// Waits for all work; throws Error for a failed kernel (and EmulatorReport on the emulator, if it was not
/// thrown by launch already).
void synchronize();

/// What the compiler gave a kernel. On the emulator everything but the limits the source declares is 0.
struct KernelResources {
  int registers = 0;  // per thread
  int static_shared_bytes = 0;
  int local_bytes = 0;  // stack and spills, per thread
  int max_threads = 0;
};
KernelResources kernel_resources(const void* kernel);

/// CTAs of this kernel that fit on one SM at once, as the runtime computes it (GPU only; 0 on the emulator).
int resident_ctas_per_sm(const void* kernel, int threads, int dynamic_shared_bytes);

}  // namespace harness
