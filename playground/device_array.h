// Device memory that lives as long as its scope.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "harness/backend.h"

namespace play {

template <typename T>
class DeviceArray {
 public:
  DeviceArray(const std::vector<T>& values, std::string_view name)
      : count_(values.size()), data_(static_cast<T*>(harness::device_allocate(count_ * sizeof(T), name))) {
    harness::copy_to_device(data_, values.data(), count_ * sizeof(T));
  }
  ~DeviceArray() { harness::device_free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    harness::copy_to_host(values.data(), data_, count_ * sizeof(T));
    return values;
  }

 private:
  std::size_t count_;
  T* data_;
};

}  // namespace play
