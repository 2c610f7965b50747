// A vector in device memory, copied whole from and to the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_runtime.h"
#include "thrust/host_vector.h"

namespace thrust {

template <typename T>
class device_reference;
/// Also the iterator of a device_vector.
template <typename T>
struct device_ptr {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_const_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer_type = device_ptr;
  using reference = device_reference<T>;

  T* pointer = nullptr;
  T* get() const { return pointer; }
  device_reference<T> operator*() const { return device_reference<T>(pointer); }
  device_reference<T> operator[](difference_type i) const { return device_reference<T>(pointer + i); }
  device_ptr& operator+=(difference_type i) {
    pointer += i;
    return *this;
  }
  device_ptr& operator++() { return *this += 1; }
  friend device_ptr operator+(device_ptr at, difference_type i) { return {at.pointer + i}; }
  friend device_ptr operator-(device_ptr at, difference_type i) { return {at.pointer - i}; }
  friend difference_type operator-(device_ptr a, device_ptr b) { return a.pointer - b.pointer; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.pointer == b.pointer; }
};
/// An element in device memory: a use copies it.
template <typename T>
class device_reference {
 public:
  using Value = std::remove_const_t<T>;
  explicit device_reference(T* element) : element_(element) {}
  device_reference(const device_reference&) = default;
  operator Value() const {  // NOLINT(google-explicit-constructor): as Thrust has it
    Value value;
    cudaMemcpy(&value, element_, sizeof value, cudaMemcpyDeviceToHost);
    return value;
  }
  device_reference& operator=(const Value& value) {
    cudaMemcpy(element_, &value, sizeof value, cudaMemcpyHostToDevice);
    return *this;
  }
  device_reference& operator=(const device_reference& other) { return *this = static_cast<Value>(other); }
  device_ptr<T> operator&() const { return {element_}; }  // NOLINT(google-runtime-operator): Thrust has it

 private:
  T* element_;
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
  device_ptr<T> begin() { return {memory_}; }
  device_ptr<T> end() { return {memory_ + count_}; }
  device_ptr<const T> begin() const { return {memory_}; }
  device_ptr<const T> end() const { return {memory_ + count_}; }
  device_reference<T> operator[](std::size_t i) { return device_reference<T>(memory_ + i); }
  device_reference<const T> operator[](std::size_t i) const { return device_reference<const T>(memory_ + i); }

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
