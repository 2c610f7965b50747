// Device memory that frees itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gemm/problem/bf16.h"
#include "harness/backend/backend.h"

namespace harness {

class DeviceBuffer {
 public:
  DeviceBuffer(std::size_t bytes, std::string_view name) : memory_(device_allocate(bytes, name)) {}
  ~DeviceBuffer() { device_free(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  std::uint8_t* bytes() const { return static_cast<std::uint8_t*>(memory_); }
  gemm::bf16* elements() const { return static_cast<gemm::bf16*>(memory_); }

 private:
  void* memory_;
};

}  // namespace harness
