// A CTA's shared memory as one space of offsets, dynamic and static: where the bytes of an offset are, and
// their history.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/machine/machine.h"

namespace emulator {

unsigned char* static_base(const Cta& cta, std::uint32_t offset);
Line& static_line(const Cta& cta, std::uint32_t offset);
std::uint32_t static_line_offset(const Cta& cta, const Line& line);

/// What leads from offsets to where their bytes are now, in the object that contains `offset`: all of dynamic
/// memory, or one variable.
inline unsigned char* shared_base(const Cta& cta, std::uint32_t offset) {
  return offset < cta.static_begin ? cta.shared : static_base(cta, offset);
}
inline unsigned char* shared_bytes(const Cta& cta, std::uint32_t offset) {
  return shared_base(cta, offset) + offset;
}

/// The line of 16 bytes at `offset`; a line that this CTA has not touched becomes one empty granule.
inline Line& shared_line(const Cta& cta, std::uint32_t offset) {
  Line& line = offset < cta.static_begin ? cta.dynamic_window.lines[offset / 16] : static_line(cta, offset);
  if (line.tag() != cta.tag) {
    line.whole = Cell{};
    line.state.store(cta.tag << 8 | Line::kWholeLog2, std::memory_order_relaxed);
  }
  return line;
}
/// The same, with granules of at most 2^log2 bytes.
Line& refined_shared_line(const Cta& cta, std::uint32_t offset, unsigned log2);
/// The offset of a line.
inline std::uint32_t line_offset(const Cta& cta, const Line& line) {
  const LineTable& lines = cta.dynamic_window.lines;
  return lines.contains(line) ? static_cast<std::uint32_t>(lines.index(line) * 16)
                              : static_line_offset(cta, line);
}

/// How many bytes from `offset` on belong to the same object: dynamic memory, or a variable that was touched.
std::uint32_t shared_room(const Cta& cta, std::uint32_t offset);
/// "8192 bytes of dynamic shared memory", "__shared__ tile (8192 bytes)": the object that contains the
/// offset.
std::string describe_room(const Cta& cta, std::uint32_t offset);

/// The offset behind a pointer of the CTA's own threads; the running thread's touch makes a variable known.
std::optional<std::uint32_t> shared_offset(const Cta& cta, const void* pointer, Where where);

/// The CTA of the gang whose shared memory the address is in, or nullptr. The address of bytes that are not
/// in place becomes that of their place.
const Cta* shared_owner(std::uintptr_t& address, const Thread& thread);

/// What the running thread uses for a place in the cluster's window, rank << 24 | offset: good until its CTA
/// is left.
void* cluster_pointer(std::uint32_t address, Where where);

/// Where the bytes behind a pointer of the CTA's own threads are now.
unsigned char* own_bytes(const Cta& cta, void* pointer);

/// "__shared__ tile + 128", or "" outside the variables.
std::string static_name(const Cta& cta, std::uint32_t offset);

}  // namespace emulator
