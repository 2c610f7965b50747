// What tcgen05.mma is told about its operands: 64 bits about a tile in shared memory, 32 bits about the
// instruction.
//
// PTX ISA, "TensorCore 5th Generation Family Instructions: Shared memory descriptor":
//   bits  0-13  address of the first element, in units of 16 bytes (address bits 4-17)
//   bits 16-29  leading dimension byte offset, in units of 16 bytes
//   bits 32-45  stride dimension byte offset, in units of 16 bytes
//   bits 46-48  0b001
//   bits 49-51  base offset: 0 for a tile that starts on a multiple of period_bytes(swizzle)
//   bit  52     leading dimension: 0 an offset, 1 an address
//   bits 53-60  0
//   bits 61-63  swizzle: 0 none, 1 128 bytes in units of 32, 2 128 bytes, 4 64 bytes, 6 32 bytes
//
// PTX ISA, "Instruction descriptor", .kind::f16:
//   bits  0-1   sparsity selector          bits 13-14  negate A, B
//   bit   2     sparse                     bits 15-16  transpose A, B (MN-major)
//   bit   3     saturate (integers)        bits 17-22  N / 8
//   bits  4-5   type of D: 0 f16, 1 f32    bit  23     0
//   bit   6     0                          bits 24-28  M / 16
//   bits  7-9   type of A: 0 f16, 1 bf16   bit  29     0
//   bits 10-12  type of B, likewise        bits 30-31  shift of B, for .ws
#pragma once

#include <cstdint>

#include "ptx/descriptor.h"
#include "ptx/swizzle_mode.h"

namespace gemm::ptx {

namespace tcgen05_field {
constexpr std::uint64_t swizzle_code(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::k128B:
      return 2;
    case Swizzle::k64B:
      return 4;
    case Swizzle::k32B:
      return 6;
    default:
      return 0;
  }
}
}  // namespace tcgen05_field

inline constexpr std::uint64_t kTcgen05DescriptorVersion = std::uint64_t{1} << 46;

/// The fields of wgmma's descriptor, where tcgen05.mma expects them.
constexpr std::uint64_t tcgen05_encode(const MatrixDescriptor& descriptor) {
  return descriptor_field::in_units(descriptor.address) |
         descriptor_field::in_units(descriptor.leading_bytes) << 16 |
         descriptor_field::in_units(descriptor.stride_bytes) << 32 | kTcgen05DescriptorVersion |
         static_cast<std::uint64_t>(descriptor.base_offset & 7u) << 49 |
         tcgen05_field::swizzle_code(descriptor.swizzle) << 61;
}

/// What is wrong with bits that are no such descriptor, or nullptr. A sentence without its end.
constexpr const char* tcgen05_descriptor_fault(std::uint64_t bits) {
  const std::uint64_t swizzle = bits >> 61;
  if ((bits >> 46 & 7u) != 1) return "bits 46-48 are not 0b001";
  if ((bits >> 53 & 0xffu) != 0) return "bits 53-60 are not 0";
  if ((bits >> 14 & 3u) != 0 || (bits >> 30 & 3u) != 0) return "bits between the fields are not 0";
  if (swizzle == 3 || swizzle == 5 || swizzle == 7) return "bits 61-63 do not name a swizzle";
  return nullptr;
}

/// The inverse of tcgen05_encode(), of bits without a fault.
constexpr MatrixDescriptor tcgen05_decode(std::uint64_t bits) {
  auto bytes = [bits](int shift) { return static_cast<std::uint32_t>(bits >> shift & 0x3fffu) << 4; };
  const std::uint64_t swizzle = bits >> 61;
  return {.address = bytes(0),
          .leading_bytes = bytes(16),
          .stride_bytes = bytes(32),
          .base_offset = static_cast<std::uint32_t>(bits >> 49 & 7u),
          .swizzle = swizzle == 2   ? Swizzle::k128B
                     : swizzle == 4 ? Swizzle::k64B
                     : swizzle == 6 ? Swizzle::k32B
                                    : Swizzle::kNone};
}

/// A dense K-major tile whose rows are span_bytes(swizzle) long and that starts on a multiple of
/// period_bytes(swizzle). advanced() (ptx/descriptor.h) steps along K inside a row, as for wgmma.
constexpr std::uint64_t tcgen05_k_major_descriptor(std::uint32_t address, Swizzle swizzle) {
  return tcgen05_encode({.address = address,
                         .leading_bytes = 16,  // ignored
                         .stride_bytes = static_cast<std::uint32_t>(period_bytes(swizzle)),
                         .swizzle = swizzle});
}

/// The types that .kind::f16 multiplies, by their code.
enum class Tcgen05Input : std::uint8_t { kF16 = 0, kBf16 = 1 };
/// And the types of D.
enum class Tcgen05Output : std::uint8_t { kF16 = 0, kF32 = 1 };

/// The fields before they are packed. The defaults are those of a dense bf16 multiplication of K-major
/// operands.
struct InstructionDescriptor {
  std::uint32_t m = 128;  // 64 or 128; for a pair of CTAs 128 or 256
  std::uint32_t n = 128;
  Tcgen05Output d = Tcgen05Output::kF32;
  Tcgen05Input a = Tcgen05Input::kBf16;
  Tcgen05Input b = Tcgen05Input::kBf16;
  bool negate_a = false;
  bool negate_b = false;
  bool transpose_a = false;
  bool transpose_b = false;

  bool operator==(const InstructionDescriptor&) const = default;
};

constexpr std::uint32_t encode(const InstructionDescriptor& descriptor) {
  return static_cast<std::uint32_t>(descriptor.d) << 4 | static_cast<std::uint32_t>(descriptor.a) << 7 |
         static_cast<std::uint32_t>(descriptor.b) << 10 | std::uint32_t{descriptor.negate_a} << 13 |
         std::uint32_t{descriptor.negate_b} << 14 | std::uint32_t{descriptor.transpose_a} << 15 |
         std::uint32_t{descriptor.transpose_b} << 16 | (descriptor.n >> 3 & 0x3fu) << 17 |
         (descriptor.m >> 4 & 0x1fu) << 24;
}

/// The inverse of encode(), of bits without a fault.
constexpr InstructionDescriptor decode_instruction(std::uint32_t bits) {
  const auto is_set = [bits](int bit) { return (bits >> bit & 1u) != 0; };
  return {.m = (bits >> 24 & 0x1fu) << 4,
          .n = (bits >> 17 & 0x3fu) << 3,
          .d = static_cast<Tcgen05Output>(bits >> 4 & 3u),
          .a = static_cast<Tcgen05Input>(bits >> 7 & 7u),
          .b = static_cast<Tcgen05Input>(bits >> 10 & 7u),
          .negate_a = is_set(13),
          .negate_b = is_set(14),
          .transpose_a = is_set(15),
          .transpose_b = is_set(16)};
}

/// What is wrong with bits that are no dense .kind::f16 descriptor for so many CTAs, or nullptr. PTX ISA,
/// "Instruction descriptor", "Matrix Shape".
constexpr const char* instruction_descriptor_fault(std::uint32_t bits, int ctas = 1) {
  if ((bits & 7u) != 0) return "it asks for a sparse matrix, which is tcgen05.mma.sp's";
  if ((bits >> 3 & 1u) != 0) return "it saturates integers, which .kind::f16 does not have";
  if ((bits >> 6 & 1u) != 0 || (bits >> 23 & 1u) != 0 || (bits >> 29 & 1u) != 0)
    return "a reserved bit (6, 23 or 29) is set";
  if ((bits >> 30) != 0) return "it shifts B, which is tcgen05.mma.ws's";
  if ((bits >> 4 & 3u) > 1) return "the type of D (bits 4-5) is neither f16 nor f32";
  if ((bits >> 7 & 7u) > 1 || (bits >> 10 & 7u) > 1) return "a type of A or B is neither f16 nor bf16";
  if ((bits >> 7 & 7u) != (bits >> 10 & 7u)) return "the types of A and B differ";
  const std::uint32_t m = (bits >> 24 & 0x1fu) << 4;
  const std::uint32_t n = (bits >> 17 & 0x3fu) << 3;
  if (ctas == 1 && m != 64 && m != 128) return "M is neither 64 nor 128";
  if (ctas == 2 && m != 128 && m != 256)
    return "M is neither 128 nor 256, but a pair of CTAs needs one of them";
  const std::uint32_t step = ctas == 1 && m == 64 ? 8 : 16;
  if (n < step || n > 256 || n % step != 0)
    return ctas == 2 ? "N is not a multiple of 16 from 16 to 256, but a pair of CTAs needs that"
           : m == 64 ? "N is not a multiple of 8 from 8 to 256"
                     : "N is not a multiple of 16 from 16 to 256, but M = 128 needs that";
  return nullptr;
}

/// A place in tensor memory: the lane in the upper half, the column in the lower one. PTX ISA, "Tensor Memory
/// Addressing".
constexpr std::uint32_t tensor_memory_address(std::uint32_t base, std::uint32_t lane, std::uint32_t column) {
  return base + (lane << 16) + column;
}

}  // namespace gemm::ptx
