// Device memory that no kernel may leave, and how it is read and written.
#pragma once

#include <vector>

#include "harness/backend/device_reference.h"
#include "harness/verify/verify.h"
#include "harness/verify/workload/device_buffer.h"

namespace harness {

template <typename Element>
std::vector<Element> read_device(const void* device, std::size_t bytes) {
  std::vector<Element> host(bytes / sizeof(Element));
  if (!host.empty()) copy_to_host(host.data(), device, bytes);
  return host;
}

template <typename Element>
void write_device(void* device, const std::vector<Element>& host) {
  if (!host.empty()) copy_to_device(device, host.data(), host.size() * sizeof(Element));
}

/// Memory with a guard band on each side.
class GuardedBuffer {
 public:
  /// `offset`: bytes of the memory in front of what is used.
  GuardedBuffer(std::size_t size, std::string_view name, std::size_t offset = 0)
      : memory_(size + offset + 2 * kGuardBytes, name), size_(size), offset_(offset) {
    device_off_limits(before(), kGuardBytes);
    device_off_limits(after(), kGuardBytes);
  }
  std::uint8_t* before() const { return memory_.bytes(); }
  std::uint8_t* bytes() const { return memory_.bytes() + kGuardBytes + offset_; }
  std::uint8_t* after() const { return bytes() + size_; }
  std::size_t size() const { return size_; }

  void repair_guards() const {
    write_device(before(), guard_band());
    write_device(after(), guard_band());
  }
  std::vector<std::uint8_t> read_before() const { return read_device<std::uint8_t>(before(), kGuardBytes); }
  std::vector<std::uint8_t> read_after() const { return read_device<std::uint8_t>(after(), kGuardBytes); }

 private:
  DeviceBuffer memory_;
  std::size_t size_;
  std::size_t offset_;
};

}  // namespace harness
