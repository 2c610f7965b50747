#include "emulator/memory/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "emulator/machine/ranks.h"
#include "emulator/memory/faults.h"
#include "emulator/memory/pages.h"
#include "emulator/report/symbols.h"
#include "emulator/sync/dependent_launch.h"
#include "harness/backend/backend.h"

namespace emulator {

constinit DeviceSpace device_space;

namespace {

constexpr std::size_t kSlotBytes = std::size_t{1} << kSlotLog2;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kAllocationAlignment = 256;  // what cudaMalloc promises
constexpr std::uint8_t kMarginPattern = 0xa5;

struct Space {
  std::mutex mutex;
  std::vector<std::unique_ptr<Buffer>> live;
  std::deque<std::unique_ptr<Buffer>> freed;  // the latest few, so that a late access can be named
  std::size_t next_slot = 0;
  std::size_t used_bytes = 0;
  std::size_t capacity = 0;
  std::uint64_t allocations = 0;
};

Space& space() {
  static Space* instance = new Space;  // never destroyed: the signal handler may look at it at any time
  return *instance;
}

void reserve_address_space(Space& s) {
  if (device_space.buffers) return;
  s.capacity = memory_bytes();
  if (const AddressSpace reserved = reserve_device_space(); reserved.begin != nullptr) {
    const auto begin = reinterpret_cast<std::uintptr_t>(reserved.begin);
    device_space.begin = (begin + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
    device_space.slots = reserved.bytes / kSlotBytes - 1;
    device_space.buffers = new Buffer*[device_space.slots]();
    return;
  }
  throw harness::Error(
      "the emulator could not reserve 1 GiB of address space for device memory; raise the limit that 'ulimit "
      "-v' shows");
}

/// First slot of `count` free neighbours, searched from where the last search ended so that freed memory is
/// reused late.
std::size_t find_slots(Space& s, std::size_t count) {
  for (std::size_t attempt = 0; attempt < 2; ++attempt) {
    std::size_t run = 0;
    for (std::size_t slot = attempt == 0 ? s.next_slot : 0; slot < device_space.slots; ++slot) {
      run = device_space.buffers[slot] ? 0 : run + 1;
      if (run == count) return slot + 1 - count;
    }
  }
  return device_space.slots;
}

bool contains_allocation(const Buffer& buffer, std::uintptr_t address, std::size_t bytes) {
  return address >= buffer.allocation_begin && bytes <= buffer.allocation_bytes &&
         address - buffer.allocation_begin <= buffer.allocation_bytes - bytes;
}

Buffer& buffer_for_host(const void* memory, std::size_t bytes, const char* what) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  Buffer* buffer = find_buffer(address);
  if (!buffer || !contains_allocation(*buffer, address, bytes)) {
    throw harness::Error(fmt::format("{} of {} bytes at {} is not inside one device allocation: {}", what,
                                     bytes, memory, describe_address(address, bytes)));
  }
  return *buffer;
}

template <typename Visit>
void for_margins(const Buffer& buffer, Visit visit) {
  visit(buffer.data_begin, buffer.allocation_begin - buffer.data_begin);
  const std::uintptr_t end = buffer.allocation_begin + buffer.allocation_bytes;
  visit(end, buffer.data_begin + buffer.data_bytes - end);
}

}  // namespace

bool Buffer::is_written(std::uintptr_t address, std::size_t count) const {
  if (all_written) return true;
  std::size_t bit = address - allocation_begin;
  for (const std::size_t end = bit + count; bit < end; ++bit) {
    if (!(written[bit / 8].load(std::memory_order_relaxed) >> (bit % 8) & 1)) return false;
  }
  return true;
}

void Buffer::mark_written(std::uintptr_t address, std::size_t count) {
  if (all_written) return;
  if (count == allocation_bytes) {
    all_written = true;
    return;
  }
  std::size_t bit = address - allocation_begin;
  const std::size_t end = bit + count;
  while (bit < end) {
    const std::size_t in_byte = std::min(end - bit, 8 - bit % 8);
    const auto mask = static_cast<std::uint8_t>(((1u << in_byte) - 1) << (bit % 8));
    std::atomic<std::uint8_t>& byte = written[bit / 8];
    if ((byte.load(std::memory_order_relaxed) & mask) != mask) byte.fetch_or(mask, std::memory_order_relaxed);
    bit += in_byte;
  }
}

void* allocate_buffer(std::size_t bytes, std::string_view name) {
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  reserve_address_space(s);
  if (bytes == 0)
    throw harness::Error(
        fmt::format("device memory '{}' was requested with 0 bytes; request at least 1", name));
  const std::size_t free_bytes = s.capacity - std::min(s.capacity, s.used_bytes);
  // The last byte lies right before an inaccessible page, as nearly as the alignment of the first one allows.
  const std::size_t padded = (bytes + kAllocationAlignment - 1) / kAllocationAlignment * kAllocationAlignment;
  const std::size_t data = (padded + kPage - 1) / kPage * kPage;
  const std::size_t slots = (data + 2 * kPage + kSlotBytes - 1) / kSlotBytes;
  const std::size_t slot = bytes > free_bytes ? device_space.slots : find_slots(s, slots);
  if (slot == device_space.slots) {
    throw harness::Error(
        fmt::format("device memory '{}' needs {} bytes, but {} of {} are free on the emulator (it uses this "
                    "machine's memory)",
                    name, bytes, free_bytes, s.capacity));
  }
  auto buffer = std::make_unique<Buffer>();
  buffer->serial = ++s.allocations;
  buffer->mapping_begin = device_space.begin + slot * kSlotBytes;
  buffer->mapping_bytes = slots * kSlotBytes;
  buffer->data_bytes = data;
  buffer->data_begin = buffer->mapping_begin + buffer->mapping_bytes - kPage - data;
  buffer->allocation_begin = buffer->data_begin + data - padded;
  buffer->allocation_bytes = bytes;
  buffer->begin = buffer->allocation_begin;
  buffer->bytes = bytes;
  if (has_ranks()) buffer->owner = current_device();
  buffer->name = name.empty() ? "(unnamed)" : std::string(name);
  buffer->written = std::vector<std::atomic<std::uint8_t>>((bytes + 7) / 8);
  if (!make_accessible(reinterpret_cast<void*>(buffer->data_begin), data)) {
    throw harness::Error(
        fmt::format("this machine has no memory left for device memory '{}' of {} bytes", name, bytes));
  }
  for_margins(*buffer, [](std::uintptr_t begin, std::size_t count) {
    std::memset(reinterpret_cast<void*>(begin), kMarginPattern, count);
  });
  for (std::size_t i = 0; i < slots; ++i) device_space.buffers[slot + i] = buffer.get();
  s.next_slot = slot + slots;
  s.used_bytes += bytes;
  void* result = reinterpret_cast<void*>(buffer->begin);
  s.live.push_back(std::move(buffer));
  return result;
}

void free_buffer(void* memory) noexcept {
  if (!memory) return;
  complete_grids();
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto found = std::find_if(s.live.begin(), s.live.end(),
                                  [&](const auto& buffer) { return buffer->allocation_begin == address; });
  if (found == s.live.end()) return;
  std::unique_ptr<Buffer> buffer = std::move(*found);
  s.live.erase(found);
  for (std::size_t i = 0; i < buffer->mapping_bytes / kSlotBytes; ++i) {
    device_space.buffers[(buffer->mapping_begin - device_space.begin) / kSlotBytes + i] = nullptr;
  }
  make_inaccessible(reinterpret_cast<void*>(buffer->mapping_begin), buffer->mapping_bytes);
  buffer->lines.release();
  buffer->has_lines = false;
  buffer->written.clear();
  s.used_bytes -= buffer->allocation_bytes;
  s.freed.push_back(std::move(buffer));
  if (s.freed.size() > 64) s.freed.pop_front();
}

void copy_in(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  complete_grids();
  Buffer& buffer = buffer_for_host(device, bytes, "a copy to device memory");
  std::memcpy(device, host, bytes);
  buffer.mark_written(reinterpret_cast<std::uintptr_t>(device), bytes);
}

void copy_out(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  complete_grids();
  buffer_for_host(device, bytes, "a copy from device memory");
  std::memcpy(host, device, bytes);
}

void fill(void* device, std::uint8_t value, std::size_t bytes) {
  if (bytes == 0) return;
  complete_grids();
  Buffer& buffer = buffer_for_host(device, bytes, "a fill of device memory");
  std::memset(device, value, bytes);
  buffer.mark_written(reinterpret_cast<std::uintptr_t>(device), bytes);
}

void put_off_limits(const void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  Buffer& buffer = buffer_for_host(memory, bytes, "a guard band");
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t end = begin + bytes;
  const std::uintptr_t buffer_end = buffer.begin + buffer.bytes;
  if (begin <= buffer.begin && end > buffer.begin) {
    const std::uintptr_t next = std::min(end, buffer_end);
    buffer.bytes = buffer_end - next;
    buffer.begin = next;
  } else if (end >= buffer_end && begin < buffer_end) {
    buffer.bytes = begin - buffer.begin;
  } else if (begin >= buffer.begin && end <= buffer_end) {
    buffer.holes.push_back({begin, end});
  }
}

std::int64_t device_bytes_total() {
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  reserve_address_space(s);
  return static_cast<std::int64_t>(s.capacity);
}

std::int64_t device_bytes_free() {
  const std::int64_t total = device_bytes_total();
  const std::int64_t available = static_cast<std::int64_t>(memory_bytes_free());
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  return std::min(available, total - std::min(total, static_cast<std::int64_t>(s.used_bytes)));
}

namespace {

/// They live as long as the program. Threads look through them while others add to them.
class ProgramBuffers {
 public:
  void add(Buffer* buffer) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == all_.size()) throw harness::Error("kernels use too many variables of the program");
    all_[count] = buffer;
    count_.store(count + 1, std::memory_order_release);
  }
  Buffer* const* begin() const { return all_.data(); }
  Buffer* const* end() const { return all_.data() + count_.load(std::memory_order_acquire); }

 private:
  std::array<Buffer*, 256> all_{};
  std::atomic<std::size_t> count_{0};
};
ProgramBuffers program_buffers;

}  // namespace

void adopt_program_buffer(std::uintptr_t begin, std::size_t bytes) {
  auto* buffer = new Buffer;
  buffer->begin = buffer->allocation_begin = buffer->data_begin = begin;
  buffer->bytes = buffer->allocation_bytes = buffer->data_bytes = bytes;
  buffer->name = "the program's variables";
  buffer->written = std::vector<std::atomic<std::uint8_t>>((bytes + 7) / 8);
  buffer->mark_written(begin, bytes);
  program_buffers.add(buffer);
}

Buffer* adopt_variable(std::uintptr_t address) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (Buffer* const known = find_buffer(address)) return known;
  const StaticSymbol variable = find_variable(address);
  if (variable.bytes == 0) return nullptr;
  adopt_program_buffer(variable.begin, variable.bytes);
  return find_buffer(address);
}

Buffer* find_buffer(std::uintptr_t address) {
  const std::uintptr_t slot = (address - device_space.begin) >> kSlotLog2;
  if (address >= device_space.begin && slot < device_space.slots) return device_space.buffers[slot];
  for (Buffer* buffer : program_buffers) {
    if (address - buffer->begin < buffer->bytes) return buffer;
  }
  return nullptr;
}

namespace {

/// The buffer that is nearest to the address, unless it is so far away that naming it would mislead. The
/// space is locked.
Buffer* find_nearest(const Space& s, std::uintptr_t address) {
  Buffer* nearest = nullptr;
  std::uint64_t distance = std::uint64_t{1} << 32;
  for (const auto& buffer : s.live) {
    const std::uintptr_t end = buffer->begin + buffer->bytes;
    const std::uintptr_t apart = address >= end            ? address - end
                                 : address < buffer->begin ? buffer->begin - address
                                                           : 0;
    if (apart < distance) {
      distance = apart;
      nearest = buffer.get();
    }
  }
  return nearest;
}

}  // namespace

Buffer* nearest_buffer(std::uintptr_t address) {
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  return find_nearest(s, address);
}

std::string wrapped_index(std::uintptr_t address) {
  for (const std::uint64_t element : {1, 2, 4, 8, 16}) {
    const std::uint64_t meant = address + (element << 32);
    if (meant > std::numeric_limits<std::uintptr_t>::max()) break;
    const Buffer* const buffer = find_buffer(static_cast<std::uintptr_t>(meant));
    if (buffer == nullptr || meant < buffer->begin || meant - buffer->begin < element << 31) continue;
    return fmt::format(
        "an index of 32 bits has perhaps overflowed: {} elements of {} byte{} later lies {} bytes into "
        "buffer "
        "{} ({} bytes)",
        std::uint64_t{1} << 32, element, element == 1 ? "" : "s", meant - buffer->begin, buffer->name,
        buffer->bytes);
  }
  return {};
}

std::string describe_address(std::uintptr_t address, std::size_t access_bytes) {
  auto relation = [&](const Buffer& buffer) {
    const std::uintptr_t end = buffer.begin + buffer.bytes;
    const std::string name = fmt::format("buffer {} ({} bytes)", buffer.name, buffer.bytes);
    if (address >= end) return fmt::format("{} bytes past the end of {}", address - end, name);
    if (address < buffer.begin)
      return fmt::format("{} bytes before the start of {}", buffer.begin - address, name);
    for (const auto& [hole_begin, hole_end] : buffer.holes) {
      if (address < hole_end && address + access_bytes > hole_begin) {
        return fmt::format("in a guard band {} bytes into {}", address - buffer.begin, name);
      }
    }
    if (address + access_bytes > end) {
      return fmt::format("{} bytes into {}: its last {} bytes are past the end", address - buffer.begin, name,
                         address + access_bytes - end);
    }
    return fmt::format("{} bytes into {}", address - buffer.begin, name);
  };
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  for (auto freed = s.freed.rbegin(); freed != s.freed.rend(); ++freed) {
    const Buffer& buffer = **freed;
    const bool inside =
        address >= buffer.allocation_begin && address - buffer.allocation_begin < buffer.allocation_bytes;
    if (inside && !find_buffer(address)) return relation(buffer) + ", which has been freed";
  }
  if (const Buffer* nearest = find_nearest(s, address)) return relation(*nearest);
  return "in no device buffer";
}

bool is_freed(std::uintptr_t address) {
  if (find_buffer(address)) return false;
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  return std::any_of(s.freed.begin(), s.freed.end(), [address](const auto& buffer) {
    return address >= buffer->allocation_begin &&
           address - buffer->allocation_begin < buffer->allocation_bytes;
  });
}

std::string name_address(std::uintptr_t address) {
  const Buffer* buffer = find_buffer(address);
  if (std::find(program_buffers.begin(), program_buffers.end(), buffer) != program_buffers.end())
    return name_variable(address);
  if (buffer && address >= buffer->begin) {
    return fmt::format("{} + {}", buffer->name, address - buffer->begin);
  }
  return fmt::format("{:#x}", address);
}

namespace {

struct KernelHeap {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> allocations;
  std::atomic<bool> is_used{false};
};
KernelHeap& kernel_heap() {
  static KernelHeap& heap = *new KernelHeap;  // host code may free memory after the end of main
  return heap;
}

}  // namespace

void note_kernel_heap(const void* memory, std::size_t bytes) {
  KernelHeap& heap = kernel_heap();
  const std::lock_guard lock(heap.mutex);
  heap.allocations[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
  heap.is_used = true;
}

void forget_kernel_heap(const void* memory) {
  KernelHeap& heap = kernel_heap();
  if (!heap.is_used.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(heap.mutex);
  heap.allocations.erase(reinterpret_cast<std::uintptr_t>(memory));
}

bool is_kernel_heap(std::uintptr_t address) {
  KernelHeap& heap = kernel_heap();
  if (!heap.is_used.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(heap.mutex);
  const auto after = heap.allocations.upper_bound(address);
  return after != heap.allocations.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

const LineTable& history(Buffer& buffer) {
  if (buffer.has_lines.load(std::memory_order_acquire)) return buffer.lines;
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  if (!buffer.lines) {
    buffer.lines = LineTable((buffer.allocation_bytes + 31) / 16);
    buffer.has_lines.store(true, std::memory_order_release);
  }
  return buffer.lines;
}

void prepare_buffers(bool keep_reads) {
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  for (const auto& buffer : s.live) {
    if (!buffer->all_written) {
      // Every bit set? The last byte may be partial.
      const std::size_t whole = buffer->allocation_bytes / 8;
      bool all = true;
      for (std::size_t i = 0; i < whole && all; ++i)
        all = buffer->written[i].load(std::memory_order_relaxed) == 0xff;
      for (std::size_t bit = whole * 8; bit < buffer->allocation_bytes && all; ++bit) {
        all = buffer->written[bit / 8].load(std::memory_order_relaxed) >> (bit % 8) & 1;
      }
      buffer->all_written = all;
    }
    buffer->plain = !keep_reads && buffer->all_written && !buffer->device_written && buffer->holes.empty();
  }
}

void for_buffers(const std::function<void(Buffer&)>& visit) {
  Space& s = space();
  const std::lock_guard lock(s.mutex);
  for (const auto& buffer : s.live) visit(*buffer);
  for (Buffer* buffer : program_buffers) visit(*buffer);
}

std::string damaged_margin() {
  Space& s = space();
  std::uintptr_t damage = 0;
  {
    const std::lock_guard lock(s.mutex);
    for (const auto& buffer : s.live) {
      for_margins(*buffer, [&](std::uintptr_t begin, std::size_t count) {
        auto* bytes = reinterpret_cast<std::uint8_t*>(begin);
        for (std::size_t i = 0; i < count; ++i) {
          if (bytes[i] == kMarginPattern) continue;
          if (damage == 0) damage = begin + i;
          bytes[i] = kMarginPattern;
        }
      });
    }
  }
  return damage == 0 ? std::string() : describe_address(damage, 1);
}

}  // namespace emulator
