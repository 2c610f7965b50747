#include "emulator/instrument/cuda_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/instrument/program_memory.h"
#include "emulator/instrument/stream_order.h"
#include "emulator/instrument/streams.h"
#include "emulator/machine/launch/launch_bounds.h"
#include "emulator/machine/launch/running_grid.h"
#include "emulator/machine/machine.h"
#include "emulator/machine/ranks.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "harness/backend/backend.h"

namespace emulator_cuda {
namespace {

constexpr int kDefaultSharedBytes = 48 * 1024;

struct State {
  std::mutex mutex;  // kernels may allocate
  std::string next_name;
  int allocations = 0;
  std::set<void*> device;
  std::map<std::uintptr_t, std::size_t> pinned;  // host memory that kernels may touch: begin -> bytes
  std::map<const void*, int> shared_bytes;       // by kernel
  std::vector<std::pair<std::string, gemm::ptx::Extent>> clusters;
};
State& state() {
  static State instance;
  return instance;
}

bool is_device(const void* memory) {
  return emulator::find_buffer(reinterpret_cast<std::uintptr_t>(memory)) != nullptr;
}

/// Whether a demangled function, "void soft::row<4>(float*)", is the kernel that the source calls "row".
bool is_called(const std::string& function, const std::string& name) {
  const std::size_t end = function.find_first_of("<(");
  const std::size_t begin = function.find_last_of(": ", end);
  return function.substr(begin == std::string::npos ? 0 : begin + 1,
                         end - (begin == std::string::npos ? 0 : begin + 1)) == name;
}

}  // namespace

void name_next_allocation(const std::string& name) {
  state().next_name = name;
}

namespace {

void* allocate_named(std::size_t bytes, const char* kind) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  std::string name = std::exchange(s.next_name, {});
  ++s.allocations;
  if (name.empty()) name = fmt::format("{} {}", kind, s.allocations);
  if (emulator::has_ranks() && std::string_view(kind) == "allocation")
    name += fmt::format(" of rank {}", emulator::current_device());
  void* memory = emulator::allocate_buffer(bytes, name);
  s.device.insert(memory);
  return memory;
}

void* allocate_for_both(std::size_t bytes, const char* kind) {
  void* memory = allocate_named(bytes, kind);
  emulator::fill(memory, 0, bytes);
  emulator::share_with_host(memory);
  emulator::find_buffer(reinterpret_cast<std::uintptr_t>(memory))->owner = -1;
  return memory;
}

}  // namespace

void* allocate(std::size_t bytes) {
  return allocate_named(bytes, "allocation");
}

void* allocate_managed(std::size_t bytes) {
  return allocate_for_both(bytes, "managed memory");
}

void* allocate_host(std::size_t bytes) {
  return allocate_for_both(std::max<std::size_t>(1, bytes), "pinned memory");
}

void free(void* memory) {
  if (!memory) return;
  emulator::has_ranks() ? emulator::ranks::before_free(memory) : finish_all();
  free_in_stream(memory);
}

void free_in_stream(void* memory) {
  if (!memory) return;
  const std::lock_guard lock(state().mutex);
  if (state().device.erase(memory) == 0)
    throw harness::Error(
        "a pointer is to be freed that cudaMalloc or cudaMallocHost did not return, or that was freed "
        "before");
  emulator::forget_allocation(memory);
  emulator::free_buffer(memory);
}

void forget_contents(void* memory) {
  emulator::Buffer* buffer = emulator::find_buffer(reinterpret_cast<std::uintptr_t>(memory));
  if (!buffer) throw harness::Error("a graph frees memory that was freed before");
  buffer->all_written = false;
  for (std::atomic<std::uint8_t>& bits : buffer->written) bits.store(0, std::memory_order_relaxed);
}

void reset_device() {
  if (!emulator::has_ranks()) return;
  finish_all();
  const std::set<void*> all = state().device;
  for (void* memory : all) {
    const emulator::Buffer* const buffer = emulator::find_buffer(reinterpret_cast<std::uintptr_t>(memory));
    if (buffer && buffer->owner == emulator::current_device()) free(memory);
  }
}

int owner_of(const void* memory) {
  const emulator::Buffer* const buffer = emulator::find_buffer(reinterpret_cast<std::uintptr_t>(memory));
  return buffer ? buffer->owner : -1;
}

void free_everything() {
  State& s = state();
  forget_streams();
  for (void* memory : s.device) emulator::free_buffer(memory);
  s.device.clear();
  s.pinned.clear();
  s.allocations = 0;
}

void free_host(void* memory) {
  free(memory);
}

void register_host(void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (!memory || bytes == 0) throw harness::Error("cudaHostRegister was given no memory");
  emulator::note_allocation(begin, bytes, false);
  state().pinned[begin] = bytes;
}

void unregister_host(void* memory) {
  finish_all();
  const auto found = state().pinned.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == state().pinned.end())
    throw harness::Error("cudaHostUnregister was given memory that cudaHostRegister has not registered");
  emulator::note_allocation(found->first, found->second, true);
  state().pinned.erase(found);
}

bool can_copy_later(const void* to, const void* from) {
  const auto is_pinned = [](const void* memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const auto after = state().pinned.upper_bound(address);
    return after != state().pinned.begin() && address - std::prev(after)->first < std::prev(after)->second;
  };
  return (is_device(to) || is_pinned(to)) && (is_device(from) || is_pinned(from));
}

bool is_of_both(const void* memory) {
  const emulator::Buffer* buffer = emulator::find_buffer(reinterpret_cast<std::uintptr_t>(memory));
  return buffer && buffer->is_of_both;
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (emulator::has_ranks()) return emulator::ranks::copy(to, from, bytes);
  note_copied(from, bytes, false);
  note_copied(to, bytes, true);
  const bool from_device = is_device(from);
  if (!is_device(to)) {
    from_device ? emulator::copy_out(to, from, bytes) : static_cast<void>(std::memcpy(to, from, bytes));
    return;
  }
  if (!from_device) return emulator::copy_in(to, from, bytes);
  std::vector<unsigned char> between(bytes);
  emulator::copy_out(between.data(), from, bytes);
  emulator::copy_in(to, between.data(), bytes);
}

void set(void* memory, int value, std::size_t bytes) {
  if (emulator::has_ranks()) return emulator::ranks::fill(memory, static_cast<std::uint8_t>(value), bytes);
  note_copied(memory, bytes, true);
  emulator::fill(memory, static_cast<std::uint8_t>(value), bytes);
}

int largest_block(const void* kernel, int limit) {
  const int bounds = emulator::launch_bounds(kernel);
  int threads = bounds > 0 ? bounds : emulator::kMaxThreads;
  if (limit > 0) threads = std::min(threads, limit);
  return threads;
}

void allow_shared_bytes(const void* kernel, int bytes) {
  state().shared_bytes[kernel] = bytes;
}

namespace {
/// A call that only asks a kernel for its cluster.
constinit thread_local bool asks_for_cluster = false;
struct DeclaredCluster {
  gemm::ptx::Extent sizes;
};

gemm::ptx::Extent declared_cluster(const std::function<void()>& call) {
  asks_for_cluster = true;
  gemm::ptx::Extent sizes{};
  try {
    call();
  } catch (const DeclaredCluster& declared) {
    sizes = declared.sizes;
  }
  asks_for_cluster = false;
  return sizes;
}
}  // namespace

void declare_cluster(unsigned x, unsigned y, unsigned z) {
  if (asks_for_cluster) throw DeclaredCluster{{x, y, z}};
}

void prepare_launch(const void* kernel, gemm::ptx::LaunchShape& shape, const std::function<void()>& call) {
  const State& s = state();
  if (shape.shared_bytes > kDefaultSharedBytes) {
    const auto allowed = s.shared_bytes.find(kernel);
    if (allowed == s.shared_bytes.end() || allowed->second < shape.shared_bytes) {
      throw harness::Error(fmt::format(
          "{} is launched with {} bytes of dynamic shared memory; a launch with more than 48 KB must be "
          "preceded by cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes){}",
          emulator::name_function(kernel), shape.shared_bytes,
          allowed == s.shared_bytes.end() ? "" : fmt::format("; that said {}", allowed->second)));
    }
  }
  if (shape.cluster.count() > 1) return;
  const std::string function = s.clusters.empty() ? std::string() : emulator::name_function(kernel);
  for (const auto& [name, cluster] : s.clusters) {
    if (is_called(function, name)) shape.cluster = cluster.x > 0 ? cluster : declared_cluster(call);
  }
}

void refuse_launch(const char* sentence) {
  throw harness::Error(sentence);
}

ClusterDims::ClusterDims(const char* kernel) {
  state().clusters.push_back({kernel, {0, 0, 0}});
}

ClusterDims::ClusterDims(const char* kernel, unsigned x, unsigned y, unsigned z) {
  state().clusters.push_back({kernel, {x, y, z}});
}

void fail_assertion(const char* expression, const char* file, unsigned line) {
  emulator::Thread* thread = emulator::context.thread;
  if (!thread) {
    std::fprintf(stderr, "%s:%u: assertion '%s' failed\n", file, line, expression);
    std::abort();
  }
  thread->in_hook = true;
  emulator::fail("assert", emulator::Report("the assertion '{}' does not hold", expression)
                               .line("where", emulator::Where::here(file, line).text())
                               .line("by", emulator::name_thread(*thread))
                               .rule("an assertion that fails ends the kernel",
                                     "CUDA C++ Programming Guide, \"Assertion\"")
                               .str());
}

}  // namespace emulator_cuda

/// What objcopy makes of the functions that allocate and free, in a kernel's object.
namespace {
void* noted(void* memory, std::size_t bytes) {
  emulator::note_allocation(reinterpret_cast<std::uintptr_t>(memory), bytes,
                            emulator::context.thread == nullptr && !emulator::is_running_grid());
  return memory;
}
}  // namespace
extern "C" {
void* emulator_malloc(std::size_t bytes);
void* emulator_calloc(std::size_t count, std::size_t bytes);
void* emulator_new(std::size_t bytes);
void* emulator_new_array(std::size_t bytes);
void emulator_free(void* memory);
void emulator_delete(void* memory);
void emulator_delete_sized(void* memory, std::size_t bytes);
void emulator_delete_array(void* memory);
void emulator_free(void* memory) {
  emulator::forget_allocation(memory);
  std::free(memory);
}
void emulator_delete(void* memory) {
  emulator::forget_allocation(memory);
  ::operator delete(memory);
}
void emulator_delete_sized(void* memory, std::size_t) {
  emulator_delete(memory);
}
void emulator_delete_array(void* memory) {
  emulator::forget_allocation(memory);
  ::operator delete[](memory);
}
void* emulator_malloc(std::size_t bytes) {
  return noted(std::malloc(bytes), bytes);
}
void* emulator_calloc(std::size_t count, std::size_t bytes) {
  return noted(std::calloc(count, bytes), count * bytes);
}
void* emulator_new(std::size_t bytes) {
  return noted(::operator new(bytes), bytes);
}
void* emulator_new_array(std::size_t bytes) {
  return noted(::operator new[](bytes), bytes);
}
}

/// What objcopy makes of the C library's __assert_fail in a kernel's object.
extern "C" [[noreturn]] void emulator_assert_fail(const char* expression, const char* file, unsigned line,
                                                  const char*);
extern "C" void emulator_assert_fail(const char* expression, const char* file, unsigned line, const char*) {
  emulator_cuda::fail_assertion(expression, file, line);
  std::abort();
}
