// A vector in device memory, copied whole from and to the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "thrust/host_vector.h"

namespace thrust {

template <typename T>
struct device_ptr {
  T* pointer = nullptr;
  T* get() const { return pointer; }
};
template <typename T>
T* raw_pointer_cast(device_ptr<T> pointer) {
  return pointer.get();
}
template <typename T>
T* raw_pointer_cast(T* pointer) {
  return pointer;
}

template <typename T>
class device_vector {
 public:
  device_vector() = default;
  explicit device_vector(std::size_t count, const T& value = T())
      : device_vector(std::vector<T>(count, value)) {}
  device_vector(const std::vector<T>& values) {  // NOLINT(google-explicit-constructor): as Thrust has it
    *this = values;
  }
  device_vector(const device_vector& other) : device_vector(static_cast<std::vector<T>>(other)) {}
  device_vector(device_vector&& other) noexcept {
    std::swap(memory_, other.memory_), std::swap(count_, other.count_);
  }
  ~device_vector() { cudaFree(memory_); }

  device_vector& operator=(const std::vector<T>& values) {
    resize_without_copy(values.size());
    cudaMemcpy(memory_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
    return *this;
  }
  device_vector& operator=(const device_vector& other) { return *this = static_cast<std::vector<T>>(other); }
  device_vector& operator=(device_vector&& other) noexcept {
    std::swap(memory_, other.memory_), std::swap(count_, other.count_);
    return *this;
  }
  operator std::vector<T>() const {  // NOLINT(google-explicit-constructor): as Thrust has it
    std::vector<T> values(count_);
    cudaMemcpy(values.data(), memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  void resize(std::size_t count, const T& value = T()) {
    std::vector<T> values = *this;
    values.resize(count, value);
    *this = values;
  }
  device_ptr<T> data() { return {memory_}; }
  device_ptr<const T> data() const { return {memory_}; }

 private:
  void resize_without_copy(std::size_t count) {
    if (count == count_) return;
    cudaFree(memory_);
    memory_ = nullptr;
    count_ = count;
    if (count > 0) cudaMalloc(&memory_, count * sizeof(T));
  }

  T* memory_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace thrust
