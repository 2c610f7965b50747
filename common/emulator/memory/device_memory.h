// Device memory of the emulator: named buffers of exact size between inaccessible pages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/memory/shadow.h"

namespace emulator {

inline constexpr unsigned kSlotLog2 = 21;  // a buffer takes whole slots of 2 MiB of address space

struct Buffer {
  std::uintptr_t begin = 0;  // what kernels may touch: the allocation without its guard bands
  std::size_t bytes = 0;
  /// Reads need no look at the history: every byte has been written, and by the host alone.
  std::atomic<bool> plain{false};

  std::string name;
  std::uint64_t serial = 0;  // of the allocation; 0: the program's variables
  std::uintptr_t allocation_begin = 0;
  std::size_t allocation_bytes = 0;
  std::uintptr_t mapping_begin = 0;
  std::size_t mapping_bytes = 0;
  std::uintptr_t data_begin = 0;  // first accessible page
  std::size_t data_bytes = 0;

  std::vector<std::atomic<std::uint8_t>> written;  // a bit per byte of the allocation
  bool all_written = false;
  std::atomic<bool> device_written{false};
  int owner = -1;  // in a run of several devices: whose memory it is; -1: the host's, or there is one device
  bool is_of_both = false;  // managed or pinned: host code may touch it as well
  LineTable lines;          // from allocation_begin rounded down to 16; made by the first device write
  std::atomic<bool> has_lines{false};
  /// Guard bands that do not lie at an end of the accessible range: [begin, end).
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> holes;

  /// Number of start addresses from `begin` at which an aligned access of 2^log2 bytes is inside.
  std::size_t fast_bytes(unsigned log2) const {
    return bytes >= (std::size_t{1} << log2) ? bytes - (std::size_t{1} << log2) + 1 : 0;
  }
  bool is_written(std::uintptr_t address, std::size_t count) const;
  void mark_written(std::uintptr_t address, std::size_t count);
};

/// The reserved address space of all buffers. constinit, so that inline code may look at it without a guard.
struct DeviceSpace {
  std::uintptr_t begin = 0;
  std::size_t slots = 0;
  Buffer** buffers = nullptr;  // [slot]
};
extern constinit DeviceSpace device_space;

void* allocate_buffer(std::size_t bytes, std::string_view name);
void free_buffer(void* memory) noexcept;
void copy_in(void* device, const void* host, std::size_t bytes);
void copy_out(void* host, const void* device, std::size_t bytes);
void fill(void* device, std::uint8_t value, std::size_t bytes);
/// Takes a guard band out of the range that kernels may touch.
void put_off_limits(const void* memory, std::size_t bytes);
std::int64_t device_bytes_total();
std::int64_t device_bytes_free();

/// The buffer whose slots contain the address, or nullptr. Live buffers only.
Buffer* find_buffer(std::uintptr_t address);
/// The live buffer that contains the address or is nearest to it, or nullptr.
Buffer* nearest_buffer(std::uintptr_t address);
/// "an index of 32 bits has perhaps overflowed: ...", where 2^32 elements later lies in a buffer; or "".
std::string wrapped_index(std::uintptr_t address);
/// "39 bytes past the end of buffer D (131072 bytes)", for any address; `access_bytes` long access.
std::string describe_address(std::uintptr_t address, std::size_t access_bytes);
/// "D + 512", or the bare address outside all buffers.
std::string name_address(std::uintptr_t address);

/// Variables of the program that kernels use are one more buffer, which has been written.
void adopt_program_buffer(std::uintptr_t begin, std::size_t bytes);

/// A __device__ variable of a step becomes such a buffer when a kernel first touches it through a wrapper:
/// the buffer, or nullptr where no variable lies.
Buffer* adopt_variable(std::uintptr_t address);

/// What a kernel has allocated with malloc or new: threads of every CTA may touch it, and nothing is checked.
void note_kernel_heap(const void* memory, std::size_t bytes);
void forget_kernel_heap(const void* memory);
bool is_kernel_heap(std::uintptr_t address);

/// Makes lines for the buffer's history if there are none.
const LineTable& history(Buffer& buffer);

/// Before a launch: recomputes which buffers are plain; none is in a grid whose reads are kept for the next
/// one.
void prepare_buffers(bool keep_reads);
/// Calls visit(buffer) for the live buffers.
void for_buffers(const std::function<void(Buffer&)>& visit);
/// After a launch: the unused bytes beside each buffer still hold their pattern, or the name of the buffer
/// that was written past without a wrapper. Empty when all is well.
std::string damaged_margin();

}  // namespace emulator
