// What a kernel compiled with -fsanitize=thread calls before each plain load and store, in place of the
// thread sanitizer's own run time. Accesses of shared and global memory go the way of ld_shared and
// ld_global; what lies on a stack or on the heap is nobody else's.
//
// The names and their meaning are the compilers': g++ and clang emit the same ones, clang also __tsan_memcpy
// and its kin. An exception cannot pass the calls (the compiler takes them for functions that do not throw),
// so that a report abandons the thread where it is (Thread::in_hook).
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "emulator/instrument/generic_access.h"
#include "emulator/instrument/program_memory.h"
#include "emulator/instrument/stream_order.h"
#include "emulator/instrument/streams.h"
#include "emulator/machine/attention.h"
#include "emulator/machine/context.h"
#include "emulator/machine/machine.h"
#include "emulator/memory/atomics.h"
#include "emulator/memory/shared_space.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"

namespace emulator {
namespace {

enum class Space { kPrivate, kShared, kGlobal };

/// The calling OS thread's block of thread-local variables of the program, and which of its words are
/// __shared__.
struct StaticBlock {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  const std::uint8_t* is_shared = nullptr;  // [word of 4 bytes]
  bool known = false;
};
constinit thread_local StaticBlock static_block;

[[gnu::noinline]] void find_static_block() {
  static_block.known = true;
  const SharedWords& words = shared_words();
  static_block.is_shared = words.is_shared.data();
  static_block.bytes = words.is_shared.size() * 4;
  static_block.begin = words.block_of_calling_thread();
}

bool is_remote_shared(std::uintptr_t address, const Context& c) {
  for (const auto& cta : c.thread->cta->gang->ctas) {
    if (address - cta->dynamic_window.begin < cta->dynamic_window.bytes ||
        address - reinterpret_cast<std::uintptr_t>(cta->arena) < cta->dynamic_window.bytes ||
        address - reinterpret_cast<std::uintptr_t>(cta->static_image.data()) < cta->static_image.size())
      return true;
  }
  return false;
}

inline Space space_of(std::uintptr_t address, const Context& c) {
  // A little past its end as well: an index that leaves its array is what the check is there for.
  if (address - c.dynamic_shared.begin < c.dynamic_shared.bytes) return Space::kShared;
  if (address - device_space.begin < device_space.slots << kSlotLog2) return Space::kGlobal;
  const StaticBlock& block = static_block;
  if (!block.known) [[unlikely]]
    find_static_block();
  if (address - block.begin < block.bytes)
    return block.is_shared[(address - block.begin) / 4] ? Space::kShared : Space::kPrivate;
  if (is_program_memory(address)) return Space::kGlobal;
  if (address - c.dynamic_shared.begin < std::uintptr_t{kMaxSharedBytes} + 4096) return Space::kShared;
  const Gang& gang = *c.thread->cta->gang;
  if (gang.ctas.size() > 1 && is_remote_shared(address, c)) return Space::kShared;
  return Space::kPrivate;
}

class InHook {
 public:
  explicit InHook(Thread& thread) : thread_(thread) { thread_.in_hook = true; }
  ~InHook() { thread_.in_hook = false; }
  InHook(const InHook&) = delete;
  InHook& operator=(const InHook&) = delete;

 private:
  Thread& thread_;
};

template <unsigned kLog2>
inline void shared_access(void* address, Access access, Where where) {
  constexpr unsigned kBytes = 1u << kLog2;
  if (access == Access::kRead) {
    shared_read<kLog2>(address, where);
    if (attention()) [[unlikely]]
      attend_load(false, address, kBytes, where);
  } else {
    shared_write<kLog2>(address, where);
    if (attention()) [[unlikely]]
      attend_store(false, address, address, kBytes, where);
  }
}

template <unsigned kLog2>
inline void global_access(void* address, Access access, Where where) {
  constexpr unsigned kBytes = 1u << kLog2;
  if (access == Access::kRead) {
    global_read<kLog2>(address, where);
    note_load(address);
    if (attention()) [[unlikely]]
      attend_load(true, address, kBytes, where);
  } else {
    global_write<kLog2>(address, where);
    if (attention()) [[unlikely]]
      attend_store(true, address, address, kBytes, where);
  }
}

/// Code of the emulator's own headers and of the library's, compiled with the kernel: it reads what describes
/// the launch. The latest places are remembered, because it takes long to find a line.
constexpr std::size_t kRemembered = 64;
constinit thread_local std::uint64_t places_of_headers[kRemembered] = {};
inline std::uint64_t& remembered_place(Where where) {
  return places_of_headers[(where.packed() >> 16) % kRemembered];
}
bool is_of_headers(Where where) {
  const std::string text = where.innermost();
  const bool found = text.find("emulator/") != std::string::npos || text.find("/c++/") != std::string::npos ||
                     text.rfind("own_kernel/emulate.h", 0) == 0 || text.rfind("common/", 0) == 0 ||
                     text.rfind("(unknown", 0) == 0;
  if (found) remembered_place(where) = where.packed();
  return found;
}

/// A kernel touches what belongs to the host, or to nobody who needs to know.
[[gnu::noinline]] void check_private(std::uintptr_t address, unsigned bytes, Access access, Where where) {
  if (remembered_place(where) == where.packed() || is_launch_argument(address)) return;
  // First, because the text of a place is made of strings, whose code may be the instrumented file's.
  const std::string place = describe_host_memory(address);
  if (place.empty() || is_of_headers(where)) return;
  const InHook hook(*context.thread);
  fail("global-out-of-bounds",
       Report(fmt::format("a kernel makes a {} of {} bytes in the host's memory",
                          access == Access::kRead ? "read" : "write", bytes))
           .line("where", where.text())
           .line("by", name_thread(*context.thread))
           .line("address", place)
           .line("missing",
                 "device memory: use cudaMalloc, and cudaMemcpy before and after the launch. Only memory "
                 "that cudaMallocHost has pinned is accessible to both")
           .rule("a kernel may access only memory that has been allocated for the device",
                 "CUDA C++ Programming Guide, \"Device Memory\"")
           .str());
}

template <unsigned kLog2>
inline void access(void* pointer, Access kind, const void* caller) {
  const Context& c = context;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  // The call returns behind itself, where the next line may begin.
  const Where where = Where::at(static_cast<const char*>(caller) - 1);
  if (!c.thread) {
    note_host_access(address, 1u << kLog2, kind, where);
    return;
  }
  const Space space = space_of(address, c);
  if (space == Space::kPrivate) {
    if (may_be_host_memory(address)) [[unlikely]]
      check_private(address, 1u << kLog2, kind, where);
    return;
  }
  const InHook hook(*c.thread);
  if (store_is_open) [[unlikely]]
    settle_store();
  if (space == Space::kShared) {
    shared_access<kLog2>(pointer, kind, where);
  } else {
    global_access<kLog2>(pointer, kind, where);
  }
  if (kind == Access::kWrite && c.thread->may_hold_poison) [[unlikely]]
    note_store(address, 1u << kLog2, where);
}

/// Any number of bytes at any address, in accesses as wide as their addresses allow.
void access_range(void* pointer, std::size_t bytes, Access kind, const void* caller) {
  auto address = reinterpret_cast<std::uintptr_t>(pointer);
  while (bytes > 0) {
    const unsigned log2 = std::min({4u, static_cast<unsigned>(std::countr_zero(address | 16)),
                                    static_cast<unsigned>(std::bit_width(bytes)) - 1});
    void* at = reinterpret_cast<void*>(address);
    switch (log2) {
      case 0:
        access<0>(at, kind, caller);
        break;
      case 1:
        access<1>(at, kind, caller);
        break;
      case 2:
        access<2>(at, kind, caller);
        break;
      case 3:
        access<3>(at, kind, caller);
        break;
      default:
        access<4>(at, kind, caller);
        break;
    }
    address += std::uintptr_t{1} << log2;
    bytes -= std::size_t{1} << log2;
  }
}

/// A volatile access: relaxed, as the PTX ISA has it, so that two of them are no race.
void volatile_access(void* pointer, unsigned bytes, bool is_load, const void* caller) {
  const Context& c = context;
  if (!c.thread) {
    if (emulator_cuda::may_go_on && is_load) emulator_cuda::go_on();  // host code that polls
    return;
  }
  const Space space = space_of(reinterpret_cast<std::uintptr_t>(pointer), c);
  if (space == Space::kPrivate) return;
  const Where where = Where::at(static_cast<const char*>(caller) - 1);
  const InHook hook(*c.thread);
  const char* what = is_load ? "a volatile load" : "a volatile store";
  if (bytes > 8) {
    access_range(pointer, bytes, is_load ? Access::kRead : Access::kWrite, caller);
    return;
  }
  {
    AtomicAccess atomic(pointer, bytes, what, where, is_load ? AtomicKind::kLoad : AtomicKind::kStore);
    if (is_load) {
      std::uint64_t value = 0;
      std::memcpy(&value, pointer, bytes);
      atomic.saw(value);
    } else {
      atomic.changed();
    }
  }
  if (space == Space::kShared) note_volatile_shared(pointer, is_load, where);
}

}  // namespace

namespace {
/// Host code may use atomics of managed memory while a kernel does.
void note_atomic(const volatile void* address) {
  if (!context.thread) emulator_cuda::note_host_atomic(reinterpret_cast<std::uintptr_t>(address));
}
}  // namespace

bool is_shared_memory(const void* pointer) {
  const Context& c = context;
  return c.thread && space_of(reinterpret_cast<std::uintptr_t>(pointer), c) == Space::kShared;
}

void generic_access(const void* pointer, unsigned bytes, Access kind, Where where) {
  const Context& c = context;
  if (!c.thread) return;
  auto* const address = const_cast<void*>(pointer);
  const Space space = space_of(reinterpret_cast<std::uintptr_t>(pointer), c);
  if (space == Space::kPrivate) return;
  const bool is_shared = space == Space::kShared;
  switch (bytes) {
    case 1:
      return is_shared ? shared_access<0>(address, kind, where) : global_access<0>(address, kind, where);
    case 2:
      return is_shared ? shared_access<1>(address, kind, where) : global_access<1>(address, kind, where);
    case 4:
      return is_shared ? shared_access<2>(address, kind, where) : global_access<2>(address, kind, where);
    case 8:
      return is_shared ? shared_access<3>(address, kind, where) : global_access<3>(address, kind, where);
    default:
      return is_shared ? shared_access<4>(address, kind, where) : global_access<4>(address, kind, where);
  }
}

}  // namespace emulator

using emulator::Access;

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming): the
// compiler's names
extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** p, void*) {
  emulator::access<3>(static_cast<void*>(p), Access::kWrite, __builtin_return_address(0));
}
void __tsan_vptr_read(void** p) {
  emulator::access<3>(static_cast<void*>(p), Access::kRead, __builtin_return_address(0));
}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}

#define EMULATOR_HOOKS(bytes, log2)                                                \
  void __tsan_read##bytes(void* p) {                                               \
    emulator::access<log2>(p, Access::kRead, __builtin_return_address(0));         \
  }                                                                                \
  void __tsan_write##bytes(void* p) {                                              \
    emulator::access<log2>(p, Access::kWrite, __builtin_return_address(0));        \
  }                                                                                \
  void __tsan_read_write##bytes(void* p) {                                         \
    emulator::access<log2>(p, Access::kRead, __builtin_return_address(0));         \
    emulator::access<log2>(p, Access::kWrite, __builtin_return_address(0));        \
  }                                                                                \
  void __tsan_volatile_read##bytes(void* p) {                                      \
    emulator::volatile_access(p, bytes, true, __builtin_return_address(0));        \
  }                                                                                \
  void __tsan_volatile_write##bytes(void* p) {                                     \
    emulator::volatile_access(p, bytes, false, __builtin_return_address(0));       \
  }                                                                                \
  void __tsan_unaligned_read##bytes(void* p) {                                     \
    emulator::access_range(p, bytes, Access::kRead, __builtin_return_address(0));  \
  }                                                                                \
  void __tsan_unaligned_write##bytes(void* p) {                                    \
    emulator::access_range(p, bytes, Access::kWrite, __builtin_return_address(0)); \
  }                                                                                \
  void __tsan_unaligned_read_write##bytes(void* p) {                               \
    emulator::access_range(p, bytes, Access::kRead, __builtin_return_address(0));  \
    emulator::access_range(p, bytes, Access::kWrite, __builtin_return_address(0)); \
  }                                                                                \
  void __tsan_unaligned_volatile_read##bytes(void* p) {                            \
    emulator::volatile_access(p, bytes, true, __builtin_return_address(0));        \
  }                                                                                \
  void __tsan_unaligned_volatile_write##bytes(void* p) {                           \
    emulator::volatile_access(p, bytes, false, __builtin_return_address(0));       \
  }
EMULATOR_HOOKS(1, 0)
EMULATOR_HOOKS(2, 1)
EMULATOR_HOOKS(4, 2)
EMULATOR_HOOKS(8, 3)
EMULATOR_HOOKS(16, 4)
#undef EMULATOR_HOOKS

void __tsan_read_range(void* p, unsigned long bytes) {
  emulator::access_range(p, bytes, Access::kRead, __builtin_return_address(0));
}
void __tsan_write_range(void* p, unsigned long bytes) {
  emulator::access_range(p, bytes, Access::kWrite, __builtin_return_address(0));
}

// clang's, and what objcopy makes of an object's memcpy, memmove and memset (tools/emulate).
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  emulator::access_range(const_cast<void*>(from), bytes, Access::kRead, __builtin_return_address(0));
  emulator::access_range(to, bytes, Access::kWrite, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  emulator::access_range(const_cast<void*>(from), bytes, Access::kRead, __builtin_return_address(0));
  emulator::access_range(to, bytes, Access::kWrite, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  emulator::access_range(to, bytes, Access::kWrite, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}

// std::atomic and the compiler's own atomics: host code, and headers of the emulator. They keep their meaning
// and are not checked; what kernels call (atomicAdd, cuda::atomic_ref) is checked where it is defined.
#define EMULATOR_ATOMICS(bits, type)                                                                      \
  type __tsan_atomic##bits##_load(const volatile type* a, int) {                                          \
    if (emulator_cuda::may_go_on && !emulator::context.thread) emulator_cuda::go_on();                    \
    emulator::note_atomic(a);                                                                             \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                       \
  void __tsan_atomic##bits##_store(volatile type* a, type v, int) {                                       \
    emulator::note_atomic(a);                                                                             \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                             \
  }                                                                                                       \
  type __tsan_atomic##bits##_exchange(volatile type* a, type v, int) {                                    \
    emulator::note_atomic(a);                                                                             \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                       \
  type __tsan_atomic##bits##_fetch_add(volatile type* a, type v, int) {                                   \
    emulator::note_atomic(a);                                                                             \
    return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST);                                                    \
  }                                                                                                       \
  type __tsan_atomic##bits##_fetch_sub(volatile type* a, type v, int) {                                   \
    emulator::note_atomic(a);                                                                             \
    return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST);                                                    \
  }                                                                                                       \
  type __tsan_atomic##bits##_fetch_and(volatile type* a, type v, int) {                                   \
    emulator::note_atomic(a);                                                                             \
    return __atomic_fetch_and(a, v, __ATOMIC_SEQ_CST);                                                    \
  }                                                                                                       \
  type __tsan_atomic##bits##_fetch_or(volatile type* a, type v, int) {                                    \
    emulator::note_atomic(a);                                                                             \
    return __atomic_fetch_or(a, v, __ATOMIC_SEQ_CST);                                                     \
  }                                                                                                       \
  type __tsan_atomic##bits##_fetch_xor(volatile type* a, type v, int) {                                   \
    emulator::note_atomic(a);                                                                             \
    return __atomic_fetch_xor(a, v, __ATOMIC_SEQ_CST);                                                    \
  }                                                                                                       \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* a, type* expected, type v, int, int) { \
    emulator::note_atomic(a);                                                                             \
    return __atomic_compare_exchange_n(a, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }                                                                                                       \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* a, type* expected, type v, int, int) {   \
    emulator::note_atomic(a);                                                                             \
    return __atomic_compare_exchange_n(a, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }                                                                                                       \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* a, type expected, type v, int, int) {    \
    emulator::note_atomic(a);                                                                             \
    __atomic_compare_exchange_n(a, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
    return expected;                                                                                      \
  }
EMULATOR_ATOMICS(8, std::uint8_t)
EMULATOR_ATOMICS(16, std::uint16_t)
EMULATOR_ATOMICS(32, std::uint32_t)
EMULATOR_ATOMICS(64, std::uint64_t)
#undef EMULATOR_ATOMICS
void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
