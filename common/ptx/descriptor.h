// The 64 bits that tell wgmma where a tile is in shared memory and how it is laid out.
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: Shared Memory Matrix Layout",
// "Matrix-descriptor":
//   bits  0-13  address of the first element, in units of 16 bytes (address bits 4-17)
//   bits 16-29  leading dimension byte offset, in units of 16 bytes
//   bits 32-45  stride dimension byte offset, in units of 16 bytes
//   bits 49-51  base offset: 0 for a tile that starts on a multiple of period_bytes(swizzle)
//   bits 62-63  swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
#pragma once

#include <cstdint>

#include "ptx/swizzle_mode.h"

namespace gemm::ptx {

/// The fields before they are packed, in bytes.
///
/// For a K-major operand the hardware sees the tile as blocks of 8 rows x 16 bytes. Swizzled: a row of the
/// tile is one row of span_bytes(swizzle), `stride_bytes` leads from one group of 8 rows to the next (8 *
/// span when they are dense), and `leading_bytes` is ignored. Not swizzled: every block is 128 contiguous
/// bytes, `leading_bytes` leads to the neighbouring block along K, `stride_bytes` to the next 8 rows.
///
/// An MN-major operand (16-bit types only, the immediates tnspA and tnspB) has its blocks the other way
/// round: 8 of K x 16 bytes of M or N. Swizzled: a line of span_bytes(swizzle) holds one k, `stride_bytes`
/// leads from 8 of K to the next 8, and `leading_bytes` from one span to the next along M or N. Not swizzled:
/// the two change places, `leading_bytes` leads to the next 8 of K, `stride_bytes` to the next 8 of M or N.
struct MatrixDescriptor {
  std::uint32_t address = 0;  // in shared memory, a multiple of 16, below 256 KB
  std::uint32_t leading_bytes = 0;
  std::uint32_t stride_bytes = 0;
  std::uint32_t base_offset = 0;
  Swizzle swizzle = Swizzle::kNone;

  bool operator==(const MatrixDescriptor&) const = default;
};

namespace descriptor_field {
constexpr std::uint64_t in_units(std::uint32_t bytes) {
  return (bytes & 0x3ffffu) >> 4;
}
constexpr std::uint64_t code(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::k128B:
      return 1;
    case Swizzle::k64B:
      return 2;
    case Swizzle::k32B:
      return 3;
    default:
      return 0;
  }
}
}  // namespace descriptor_field

/// The descriptor as wgmma takes it.
constexpr std::uint64_t encode(const MatrixDescriptor& descriptor) {
  return descriptor_field::in_units(descriptor.address) |
         descriptor_field::in_units(descriptor.leading_bytes) << 16 |
         descriptor_field::in_units(descriptor.stride_bytes) << 32 |
         static_cast<std::uint64_t>(descriptor.base_offset & 7u) << 49 |
         descriptor_field::code(descriptor.swizzle) << 62;
}

/// The inverse of encode(): what the hardware, and the emulator, read from the bits.
constexpr MatrixDescriptor decode(std::uint64_t bits) {
  constexpr Swizzle kSwizzles[4] = {Swizzle::kNone, Swizzle::k128B, Swizzle::k64B, Swizzle::k32B};
  auto bytes = [bits](int shift) { return static_cast<std::uint32_t>(bits >> shift & 0x3fffu) << 4; };
  return {.address = bytes(0),
          .leading_bytes = bytes(16),
          .stride_bytes = bytes(32),
          .base_offset = static_cast<std::uint32_t>(bits >> 49 & 7u),
          .swizzle = kSwizzles[bits >> 62]};
}

/// A dense K-major tile whose rows are span_bytes(swizzle) long and that starts on a multiple of
/// period_bytes(swizzle). To step K inside a row, pass the address of the row's later bytes: 32 on for k = 16
/// bf16.
constexpr std::uint64_t k_major_descriptor(std::uint32_t address, Swizzle swizzle) {
  return encode({.address = address,
                 .leading_bytes = 16,  // ignored
                 .stride_bytes = static_cast<std::uint32_t>(period_bytes(swizzle)),
                 .swizzle = swizzle});
}

/// An MN-major tile of dense panels: a line of a panel is span_bytes(swizzle) of one k, and `panel_bytes`
/// lead from one panel to the next along M or N (with a single panel it is not used). The tile starts on a
/// multiple of period_bytes(swizzle). 16 further along K is 16 lines further on.
constexpr std::uint64_t mn_major_descriptor(std::uint32_t address, Swizzle swizzle,
                                            std::uint32_t panel_bytes) {
  return encode({.address = address,
                 .leading_bytes = panel_bytes,
                 .stride_bytes = static_cast<std::uint32_t>(period_bytes(swizzle)),
                 .swizzle = swizzle});
}

/// The descriptor of the same tile, seen from `bytes` further on: the address is the low field and counts 16
/// bytes, so that one addition of the low word does it. `bytes` is a multiple of 16 and the sum stays below
/// 256 KB.
constexpr std::uint64_t advanced(std::uint64_t descriptor, std::uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

}  // namespace gemm::ptx
