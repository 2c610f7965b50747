// What cuda::memcpy_async and cooperative_groups::memcpy_async have in common on the emulator: copies of any
// size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cuda_runtime.h"
#include "emulator/async/cp_async.h"
#include "emulator/memory/device_memory.h"

namespace emulator_cuda {

/// One of `threads` threads copies every threads-th part, from part `rank` on: from global to shared memory
/// by cp.async, in parts of the largest size that addresses and size allow, and everything else at once.
/// Whether it is under way.
inline bool copy_async(const char* what, void* to, const void* from, std::size_t bytes, unsigned rank,
                       unsigned threads, emulator::Where where) {
  std::size_t part = 16;
  const std::uintptr_t odd =
      reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  while (odd % part != 0) part /= 2;
  const auto is_buffer = [](const void* memory) {
    return emulator::find_buffer(reinterpret_cast<std::uintptr_t>(memory)) != nullptr;
  };
  const bool asynchronous = part >= 4 && is_buffer(from) && !is_buffer(to);
  for (std::size_t at = rank * part; at < bytes; at += threads * part) {
    char* const there = static_cast<char*>(to) + at;
    const char* const here = static_cast<const char*>(from) + at;
    if (asynchronous) {
      emulator::cp_async_engine(what, where)
          .issue(what, there, here, static_cast<unsigned>(part), static_cast<int>(part), where);
    } else {
      std::memcpy(there, here, part);
    }
  }
  return asynchronous;
}

}  // namespace emulator_cuda

namespace cuda {

/// A size that says of both addresses, too, that they are multiples of kAlignment.
template <::std::size_t kAlignment>
struct aligned_size_t {
  static constexpr ::std::size_t align = kAlignment;
  ::std::size_t value;
  explicit aligned_size_t(::std::size_t size) : value(size) {}
  operator ::std::size_t() const { return value; }
};

namespace emulated {

/// The alignment that the type of a copy's size promises.
template <typename Size>
inline constexpr ::std::size_t alignment_of_size = 1;
template <::std::size_t kAlignment>
inline constexpr ::std::size_t alignment_of_size<aligned_size_t<kAlignment>> = kAlignment;

}  // namespace emulated

}  // namespace cuda
