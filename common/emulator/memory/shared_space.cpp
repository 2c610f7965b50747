#include "emulator/memory/shared_space.h"

#include <fmt/format.h>

#include <cstdlib>

#include "emulator/report/report.h"
#include "emulator/report/symbols.h"

namespace emulator {

namespace {

/// In a gang of several clusters (a co-resident grid) ranks repeat.
bool same_cluster(const Cta& a, const Cta& b) {
  const gemm::ptx::Extent& cluster = a.gang->grid.shape.cluster;
  return a.id.x / cluster.x == b.id.x / cluster.x && a.id.y / cluster.y == b.id.y / cluster.y &&
         a.id.z / cluster.z == b.id.z / cluster.z;
}

}  // namespace

unsigned char* static_base(const Cta& cta, std::uint32_t offset) {
  const StaticShared& all = cta.gang->static_shared;
  const StaticVariable* variable = all.at(offset);
  if (!variable) std::abort();  // who asks has looked at shared_room
  const std::uintptr_t base =
      all.in_place(cta) ? variable->address - variable->offset
                        : reinterpret_cast<std::uintptr_t>(cta.static_image.data()) - cta.static_begin;
  return reinterpret_cast<unsigned char*>(base);
}

Line& static_line(const Cta& cta, std::uint32_t offset) {
  const StaticVariable* variable = cta.gang->static_shared.at(offset);
  if (!variable) std::abort();
  return cta.static_window
      .lines[(variable->address - cta.static_window.begin + offset - variable->offset) / 16];
}

std::uint32_t static_line_offset(const Cta& cta, const Line& line) {
  const std::uintptr_t address = cta.static_window.begin + cta.static_window.lines.index(line) * 16;
  for (std::uintptr_t byte = address; byte < address + 16; ++byte) {
    if (const StaticVariable* variable = cta.gang->static_shared.find(byte))
      return variable->offset + static_cast<std::uint32_t>(address - variable->address);
  }
  return 0;
}

std::uint32_t shared_room(const Cta& cta, std::uint32_t offset) {
  if (offset < cta.dynamic_window.bytes) return static_cast<std::uint32_t>(cta.dynamic_window.bytes) - offset;
  const StaticVariable* variable = cta.gang->static_shared.at(offset);
  return variable ? variable->offset + variable->bytes - offset : 0;
}

std::string describe_room(const Cta& cta, std::uint32_t offset) {
  if (const StaticVariable* variable = cta.gang->static_shared.at(offset)) {
    return fmt::format("__shared__ {} ({} bytes)", variable->name, variable->bytes);
  }
  return fmt::format("{} bytes of dynamic shared memory", cta.dynamic_window.bytes);
}

std::optional<std::uint32_t> shared_offset(const Cta& cta, const void* pointer, Where where) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  cta.gang->static_shared.use_extern_array(address);
  if (address - cta.dynamic_window.begin < cta.dynamic_window.bytes)
    return static_cast<std::uint32_t>(address - cta.dynamic_window.begin);
  const StaticVariable* variable = cta.gang->static_shared.touch(address, where);
  if (!variable) return std::nullopt;
  return variable->offset + static_cast<std::uint32_t>(address - variable->address);
}

void* cluster_pointer(std::uint32_t address, Where where) {
  const Thread& thread = this_thread("cluster_pointer", where);
  const std::uint32_t rank = address >> 24;
  const std::uint32_t offset = address & 0xffffffu;
  for (const auto& cta : thread.cta->gang->ctas) {
    if (static_cast<std::uint32_t>(cta->rank_in_cluster) != rank || !same_cluster(*cta, *thread.cta))
      continue;
    if (offset < cta->dynamic_window.bytes || thread.cta->gang->static_shared.at(offset))
      return shared_bytes(*cta, offset);
    break;
  }
  fail("cluster-address",
       Report("an address is not in the cluster's shared memory: {:#x}, offset {:#x} of CTA rank {}", address,
              offset, rank)
           .at(where, thread)
           .rule("a 32-bit address must come from a pointer into shared memory, or from mapa",
                 "PTX ISA, \"Data Movement and Conversion Instructions: cvta, mapa\"")
           .str());
}

unsigned char* own_bytes(const Cta& cta, void* pointer) {
  if (cta.gang->static_shared.in_place(cta)) return static_cast<unsigned char*>(pointer);
  const std::optional<std::uint32_t> offset = shared_offset(cta, pointer, Where());
  return offset ? shared_bytes(cta, *offset) : static_cast<unsigned char*>(pointer);
}

std::string static_name(const Cta& cta, std::uint32_t offset) {
  const StaticVariable* variable = cta.gang->static_shared.at(offset);
  if (!variable) return {};
  const std::uint32_t inside = offset - variable->offset;
  if (variable->name.empty()) return fmt::format("__shared__ memory at {:#x}", variable->address + inside);
  return fmt::format("__shared__ {} + {}", variable->name, inside);
}

}  // namespace emulator
