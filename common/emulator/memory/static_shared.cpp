#include "emulator/memory/static_shared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/async/hopper.h"
#include "emulator/machine/machine.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"

// Defined by link_extern_shared in programs that declare `extern __shared__` arrays.
extern "C" __attribute__((weak)) void* emulator_extern_shared_address();

void emulator_use_extern_shared() {
  if (!emulator::context.thread) return;
  emulator::running_thread().cta->gang->static_shared.use_extern_array(emulator::extern_shared_array());
}

namespace emulator {

/// Makes every OS thread's block of thread-local variables start at a multiple of 1024, so that a variable
/// has the same place modulo 1024 in all of them.
alignas(1024) extern thread_local unsigned char block_alignment[16];
alignas(1024) thread_local unsigned char block_alignment[16];

namespace {

constexpr std::uint32_t kArrayAlignment = 1024;
constexpr std::uint32_t kMaxStaticBytes = 48 * 1024;  // of one kernel

}  // namespace

std::uintptr_t extern_shared_array() {
  return emulator_extern_shared_address ? reinterpret_cast<std::uintptr_t>(emulator_extern_shared_address())
                                        : 0;
}

const StaticVariable* StaticShared::at(std::uint32_t offset) const {
  for (const StaticVariable& variable : variables_) {
    if (offset - variable.offset < variable.bytes) return &variable;
  }
  return nullptr;
}

/// The first gap that has room at the alignment of the address.
std::uint32_t StaticShared::place(const StaticVariable& variable) const {
  std::uint32_t offset =
      gang_.ctas.front()->static_begin + static_cast<std::uint32_t>(variable.address % kArrayAlignment);
  while (true) {
    const auto taken = std::find_if(variables_.begin(), variables_.end(), [&](const StaticVariable& other) {
      return offset < other.offset + other.bytes && other.offset < offset + variable.bytes;
    });
    if (taken == variables_.end()) return offset;
    while (offset < taken->offset + taken->bytes) offset += kArrayAlignment;
  }
}

const StaticVariable* StaticShared::find(std::uintptr_t address) const {
  for (const StaticVariable& variable : variables_) {
    if (address - variable.address < variable.bytes) return &variable;
  }
  return nullptr;
}

const StaticVariable* StaticShared::touch(std::uintptr_t address, Where where) {
  if (const StaticVariable* known = find(address)) return known;
  const std::uintptr_t array = extern_shared_array();
  if (array != 0 && address - array < kMaxSharedBytes) return nullptr;  // dynamic memory, past its end
  const Window window = gang_.worker.static_window(0, address);
  if (window.bytes == 0) return nullptr;
  StaticSymbol symbol;
  switch (find_static_symbol(address, symbol)) {
    case SymbolSearch::kFound:
      break;
    case SymbolSearch::kNoSymbols:
      if (gang_.ctas.size() > 1) {
        fail("launch-limits", Report("launch refused: the program has __shared__ variables but no symbols")
                                  .at(where, running_thread())
                                  .rule("when CTAs of a cluster or of a co-resident grid each have a copy, "
                                        "the emulator finds the variables through the program's symbols; "
                                        "link without -s and do not strip the program",
                                        "this course, common/emulator/README.md")
                                  .str());
      }
      symbol = {.name = {}, .begin = window.begin, .bytes = window.bytes};
      break;
    case SymbolSearch::kNotShared:
      return nullptr;
  }
  StaticVariable variable{.name = symbol.name,
                          .address = symbol.begin,
                          .bytes = static_cast<std::uint32_t>(symbol.bytes),
                          .offset = 0};
  if (!variable.name.empty()) check_limits(variable, where);
  variable.offset = place(variable);
  end_ = std::max(end_, variable.offset + variable.bytes);
  exchanged_bytes_ += variable.bytes;
  variables_.push_back(variable);
  const bool several = gang_.ctas.size() > 1;
  if (several && !in_place_) in_place_ = running_thread().cta;
  for (const auto& cta : gang_.ctas) {
    cta->static_window = gang_.worker.static_window(cta->index_in_gang, address);
    if (!several) continue;
    cta->static_image.reserve(kMaxStaticBytes + 2 * kArrayAlignment);  // pointers of other CTAs into it stay
    cta->static_image.resize(end_ - cta->static_begin, 0xff);          // NaN in every format
  }
  if (gang_.hopper) gang_.hopper->make_room(end_);
  context.static_shared = running_thread().cta->static_window;
  return &variables_.back();
}

void StaticShared::check_limits(const StaticVariable& variable, Where where) const {
  std::uint64_t total = variable.bytes;
  for (const StaticVariable& other : variables_) total += other.bytes;
  const auto dynamic = static_cast<std::uint64_t>(gang_.grid.shape.shared_bytes);
  auto refuse = [&](const std::string& headline, const std::string& sentence, const char* source) {
    fail("launch-limits", Report("launch refused: " + headline)
                              .line("variable", "__shared__ {} ({} bytes), first touched at {}",
                                    variable.name, variable.bytes, where.text())
                              .rule(sentence, source)
                              .str());
  };
  if (total > kMaxStaticBytes) {
    refuse(
        fmt::format("the kernel has {} bytes of __shared__ variables", total),
        "a kernel may have at most 48 KB (49152 bytes) of static shared memory; larger sizes must be dynamic",
        "CUDA C++ Programming Guide, \"Compute Capabilities: Shared Memory\"");
  }
  if (dynamic + total > kMaxSharedBytes) {
    refuse(fmt::format("a CTA needs {} bytes of dynamic shared memory and {} bytes of __shared__ variables",
                       dynamic, total),
           "a CTA has at most 227 KB (232448 bytes) of shared memory on sm_90, static and dynamic together",
           "CUDA C++ Programming Guide, \"Compute Capabilities: Technical Specifications\"");
  }
  if (!gang_.grid.shape.co_resident) return;
  const int per_sm = ctas_per_sm(gang_.grid.shape, static_cast<int>(dynamic + total));
  if (gang_.grid.shape.grid.count() > static_cast<long long>(per_sm) * gang_.grid.options.sm_count) {
    refuse(fmt::format("{} CTAs with {} bytes of shared memory, static and dynamic together, cannot be "
                       "resident at once: {} SMs hold {} each",
                       gang_.grid.shape.grid.count(), dynamic + total, gang_.grid.options.sm_count, per_sm),
           "all CTAs of a co-resident grid must be on an SM at the same time",
           "CUDA C++ Programming Guide, \"Cooperative Groups: Grid Synchronization\"");
  }
}

void StaticShared::exchange(Cta& cta) {
  const auto dynamic = static_cast<std::size_t>(gang_.grid.shape.shared_bytes);
  for (const StaticVariable& variable : variables_) {
    auto* copy = reinterpret_cast<unsigned char*>(variable.address);
    const std::uint32_t place = variable.offset - cta.static_begin;
    std::memcpy(in_place_->static_image.data() + place, copy, variable.bytes);
    std::memcpy(copy, cta.static_image.data() + place, variable.bytes);
  }
  if (extern_array_ != 0) {
    auto* array = reinterpret_cast<unsigned char*>(extern_array_);
    std::memcpy(in_place_->arena, array, dynamic);
    in_place_->shared = in_place_->arena;
    std::memcpy(array, cta.arena, dynamic);
    cta.shared = array;
  }
  in_place_ = &cta;
}

void StaticShared::use_extern_array(std::uintptr_t address) {
  const std::uintptr_t array = extern_shared_array();
  if (extern_array_ != 0 || array == 0 || address - array >= kMaxSharedBytes) return;
  extern_array_ = array;
  exchanged_bytes_ += static_cast<std::size_t>(gang_.grid.shape.shared_bytes);
  Cta& running = *running_thread().cta;
  if (gang_.ctas.size() > 1 && !in_place_) in_place_ = &running;
  for (const auto& cta : gang_.ctas) cta->dynamic_window.begin = array;
  running.shared = reinterpret_cast<unsigned char*>(array);
  std::memcpy(running.shared, running.arena, static_cast<std::size_t>(gang_.grid.shape.shared_bytes));
  context.dynamic_shared = running.dynamic_window;
}

}  // namespace emulator
