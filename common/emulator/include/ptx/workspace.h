// Device memory that a prepared multiplication keeps for itself: the emulator's counterpart.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>

#include "emulator/memory/device_memory.h"
#include "ptx/launch_shape.h"

namespace gemm::ptx {

/// `bytes` of emulated device memory for each stream that uses them, zeroed.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : bytes_(bytes) {}
  ~Workspace() {
    for (const auto& [stream, memory] : memory_) emulator::free_buffer(memory);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void* of(Stream stream) {
    if (bytes_ == 0) return nullptr;
    void*& memory = memory_[stream];
    if (memory == nullptr) {
      memory = emulator::allocate_buffer(bytes_, "workspace");
      emulator::fill(memory, 0, bytes_);
    }
    return memory;
  }

 private:
  std::size_t bytes_;
  std::map<Stream, void*> memory_;
};

/// Zeroes `bytes` of emulated device memory.
inline void set_zero(void* memory, std::size_t bytes, Stream) {
  emulator::fill(memory, 0, bytes);
}

/// Emulated device memory with a copy of host bytes.
class DeviceCopy {
 public:
  DeviceCopy(const void* host, std::size_t bytes) {
    if (bytes == 0) return;
    memory_ = emulator::allocate_buffer(bytes, "table");
    emulator::copy_in(memory_, host, bytes);
  }
  ~DeviceCopy() {
    if (memory_ != nullptr) emulator::free_buffer(memory_);
  }
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;

  const void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
};

}  // namespace gemm::ptx
