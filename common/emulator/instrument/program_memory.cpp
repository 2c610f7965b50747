#include "emulator/instrument/program_memory.h"

#include <fmt/format.h>

#include <pthread.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "emulator/instrument/stream_order.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/symbols.h"

namespace emulator {

constinit ProgramMemory program_memory[kProgramSections];
constinit HostMemory host_memory;

namespace {

struct HostAccess {
  std::uintptr_t address = 0;
  Access access = Access::kRead;
  Where where;
};
HostAccess first_access;

struct Range {
  std::uintptr_t begin = 0, end = 0;
};

/// Kernels of one launch look at it from several OS threads.
struct HostRanges {
  std::mutex mutex;
  std::map<std::uintptr_t, std::uintptr_t> heap;  // begin -> end; none overlap
  Range stack, arguments;
};
HostRanges& host_ranges() {
  static HostRanges& ranges = *new HostRanges;  // host code may allocate after the end of main
  return ranges;
}

Range stack_of_calling_thread() {
  static thread_local const Range stack = [] {
    pthread_attr_t attributes;
    void* begin = nullptr;
    std::size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return Range{};
    pthread_attr_getstack(&attributes, &begin, &bytes);
    pthread_attr_destroy(&attributes);
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    // Where host code has started the thread, its thread-local variables lie at the end of its stack; among
    // them is what the threads of a CTA share.
    const std::uintptr_t block = shared_words().block_of_calling_thread();
    return Range{first, block - first < bytes ? block : first + bytes};
  }();
  return stack;
}

void widen(const Range& range) {
  const std::uintptr_t begin = host_memory.begin.load(std::memory_order_relaxed);
  if (begin == 0 || range.begin < begin) host_memory.begin.store(range.begin, std::memory_order_relaxed);
  if (range.end > host_memory.end.load(std::memory_order_relaxed))
    host_memory.end.store(range.end, std::memory_order_relaxed);
}

}  // namespace

void note_launch_arguments(const void* arguments, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(arguments);
  const Range stack = stack_of_calling_thread();
  if (first < stack.begin || first >= stack.end) return;
  HostRanges& ranges = host_ranges();
  const std::lock_guard lock(ranges.mutex);
  // Below the arguments lies what the launch itself needs.
  ranges.stack = {first, stack.end};
  ranges.arguments = {first, first + bytes};
  host_memory.arguments.store(first, std::memory_order_relaxed);
  host_memory.arguments_end.store(first + bytes, std::memory_order_relaxed);
  widen(ranges.stack);
}

void note_allocation(std::uintptr_t begin, std::size_t bytes, bool by_host) {
  if (begin == 0 || bytes == 0) return;
  const Range range{begin, begin + bytes};
  HostRanges& ranges = host_ranges();
  const std::lock_guard lock(ranges.mutex);
  // What lay there before was freed.
  auto at = ranges.heap.upper_bound(range.begin);
  if (at != ranges.heap.begin() && std::prev(at)->second > range.begin) --at;
  while (at != ranges.heap.end() && at->first < range.end) at = ranges.heap.erase(at);
  if (!by_host) {
    if (context.thread) note_kernel_heap(reinterpret_cast<const void*>(begin), bytes);
    return;
  }
  ranges.heap[range.begin] = range.end;
  widen(range);
}

void forget_allocation(const void* memory) {
  forget_kernel_heap(memory);
  HostRanges& ranges = host_ranges();
  const std::lock_guard lock(ranges.mutex);
  ranges.heap.erase(reinterpret_cast<std::uintptr_t>(memory));
}

void forget_allocations() {
  HostRanges& ranges = host_ranges();
  const std::lock_guard lock(ranges.mutex);
  ranges.heap.clear();
}

std::string describe_host_memory(std::uintptr_t address) {
  HostRanges& ranges = host_ranges();
  const std::lock_guard lock(ranges.mutex);
  if (address - ranges.arguments.begin < ranges.arguments.end - ranges.arguments.begin) return {};
  if (address - ranges.stack.begin < ranges.stack.end - ranges.stack.begin)
    return "a variable on the host's stack";
  const auto after = ranges.heap.upper_bound(address);
  if (after == ranges.heap.begin() || std::prev(after)->second <= address) return {};
  const auto& [begin, end] = *std::prev(after);
  return fmt::format("{} bytes into {} bytes that host code has allocated with malloc, new or a container",
                     address - begin, end - begin);
}

void register_program_memory(const void* begin, const void* end) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const auto last = reinterpret_cast<std::uintptr_t>(end);
  if (first == 0 || last <= first) return;
  ProgramMemory& section = program_memory[program_memory[0].bytes == 0 ? 0 : 1];
  section = {first, last - first};
  adopt_program_buffer(first, last - first);
}

void share_with_host(const void* memory) {
  Buffer& buffer = *find_buffer(reinterpret_cast<std::uintptr_t>(memory));
  buffer.is_of_both = true;
  buffer.device_written = true;  // so that reads are kept as well
}

void note_host_access(std::uintptr_t address, unsigned bytes, Access access, Where where) {
  if (address - device_space.begin >= device_space.slots << kSlotLog2) return;
  const Buffer* const buffer = find_buffer(address);
  if (buffer && buffer->is_of_both) {
    if (emulator_cuda::may_be_running.load(std::memory_order_relaxed))
      emulator_cuda::note_host_use(address, bytes, access, where);
  } else if (first_access.address == 0) {
    first_access = {address, access, where};
  }
}

std::string take_host_access() {
  const HostAccess taken = std::exchange(first_access, {});
  if (taken.address == 0) return {};
  return fmt::format(
      "host code at {} {} device memory, {}, to which the host has no access; copy with cudaMemcpy",
      taken.where.text(), taken.access == Access::kRead ? "reads" : "writes",
      describe_address(taken.address, 1));
}

}  // namespace emulator
