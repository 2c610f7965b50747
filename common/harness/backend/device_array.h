// Device memory that lives as long as its scope.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/backend/backend.h"

namespace harness {

/// `count` elements of T on the device, and their way there and back. The name is what the emulator's reports
/// call it.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, std::string_view name = "buffer")
      : count_(count), data_(static_cast<T*>(device_allocate(count * sizeof(T), name))) {}
  explicit DeviceArray(const std::vector<T>& values, std::string_view name = "buffer")
      : DeviceArray(values.size(), name) {
    upload(values);
  }
  ~DeviceArray() { device_free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  void fill(std::uint8_t byte) { fill_device(data_, byte, bytes()); }
  void upload(const std::vector<T>& values) {
    copy_to_device(data_, values.data(), std::min(count_, values.size()) * sizeof(T));
  }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    copy_to_host(values.data(), data_, bytes());
    return values;
  }

 private:
  std::size_t count_;
  T* data_;
};

}  // namespace harness
