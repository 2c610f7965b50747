// Memory that is given back all at once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace emulator {

/// A bump allocator for trivially destructible things that live as long as a CTA or a launch.
class Arena {
 public:
  void* allocate(std::size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (used_ + bytes > kChunkBytes || chunk_ == chunks_.size()) next_chunk(bytes);
    void* result = chunks_[chunk_].get() + used_;
    used_ += bytes;
    return result;
  }
  void reset() {
    chunk_ = 0;
    used_ = 0;
  }

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
  void next_chunk(std::size_t bytes) {
    if (bytes > kChunkBytes) throw std::bad_alloc();
    if (chunk_ < chunks_.size()) ++chunk_;
    if (chunk_ == chunks_.size()) chunks_.emplace_back(new char[kChunkBytes]);
    used_ = 0;
  }
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t chunk_ = 0;
  std::size_t used_ = 0;
};

}  // namespace emulator
