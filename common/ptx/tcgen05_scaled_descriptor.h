// What a block-scaled tcgen05.mma is told: the kind, and 32 bits about the instruction. And where its scales
// are in tensor memory.
//
// PTX ISA, "Instruction descriptor", .kind::mxf8f6f4, .kind::mxf4 and .kind::mxf4nvf4:
//   bits  0-1   0                          bits 15-16  transpose A, B; 4-bit kinds: 0
//   bit   2     sparse                     bits 17-22  N / 8
//   bit   3     0                          bit  23     type of the scales: 0 ue4m3, 1 ue8m0
//   bits  4-5   B's scale factor ID        bits 24-26  0
//   bit   6     0                          bits 27-28  M / 128
//   bits  7-9   type of A                  bits 29-30  A's scale factor ID
//   bits 10-12  type of B                  bit  31     4-bit kinds: 0 K = 64, 1 K = 96
//   bits 13-14  negate A, B
//
// PTX ISA, "Block Scaling": row i of A and row j of B have 1, 2 or 4 scales of a byte each (.scale_vec::1X,
// ::2X, ::4X). "Scale Factor A ID", "Scale Factor B ID": those of row i are bytes of the word in lane i % 32,
// column i / 32; the ID says from which byte on. All four quarters of the lanes hold the same.
#pragma once

#include <cstdint>

namespace gemm::ptx {

/// .kind::*.block_scale, with its scale vector.
enum class ScaledKind : std::uint8_t {
  kMxf8f6f4,    // elements of 8, 6 and 4 bits, a ue8m0 for 32 of them: 1X
  kMxf4,        // e2m1, a ue8m0 for 32: 2X
  kMxf4Nvf4x2,  // the same, .kind::mxf4nvf4
  kMxf4Nvf4x4,  // e2m1, a ue4m3 or ue8m0 for 16: 4X
};

/// Scales of a row that one instruction reads.
constexpr int scale_vector(ScaledKind kind) {
  return kind == ScaledKind::kMxf8f6f4 ? 1 : kind == ScaledKind::kMxf4Nvf4x4 ? 4 : 2;
}
/// Elements of K that one instruction multiplies: 32 bytes of a row.
constexpr int scaled_depth(ScaledKind kind) {
  return kind == ScaledKind::kMxf8f6f4 ? 32 : 64;
}
/// Elements that share a scale.
constexpr int scale_block(ScaledKind kind) {
  return scaled_depth(kind) / scale_vector(kind);
}

/// The types of elements, by their code in .kind::mxf8f6f4. In the 4-bit kinds e2m1 is 1.
enum class ScaledInput : std::uint8_t { kE4m3 = 0, kE5m2 = 1, kE2m3 = 3, kE3m2 = 4, kE2m1 = 5 };
constexpr unsigned bits_of(ScaledInput type) {
  return type == ScaledInput::kE2m1 ? 4 : type == ScaledInput::kE2m3 || type == ScaledInput::kE3m2 ? 6 : 8;
}
/// The types of scales.
enum class ScaleType : std::uint8_t { kUe4m3 = 0, kUe8m0 = 1 };

/// The fields before they are packed, of a dense multiplication of K-major operands.
struct ScaledInstruction {
  std::uint32_t m = 128;  // for a pair of CTAs also 256
  std::uint32_t n = 128;
  ScaledInput a = ScaledInput::kE4m3;
  ScaledInput b = ScaledInput::kE4m3;
  ScaleType scales = ScaleType::kUe8m0;
  std::uint32_t scale_a_id = 0;
  std::uint32_t scale_b_id = 0;
  bool negate_a = false;
  bool negate_b = false;

  bool operator==(const ScaledInstruction&) const = default;
};

namespace scaled_field {
inline constexpr std::uint32_t kPackedE2m1 = 1;  // its code in the 4-bit kinds
constexpr bool is_input(std::uint32_t code) {
  return code == 0 || code == 1 || (code >= 3 && code <= 5);
}
}  // namespace scaled_field

constexpr std::uint32_t encode(ScaledKind kind, const ScaledInstruction& instruction) {
  const bool packed = kind != ScaledKind::kMxf8f6f4;
  const auto code = [packed](ScaledInput type) {
    return packed ? scaled_field::kPackedE2m1 : static_cast<std::uint32_t>(type);
  };
  return (instruction.scale_b_id & 3u) << 4 | code(instruction.a) << 7 | code(instruction.b) << 10 |
         std::uint32_t{instruction.negate_a} << 13 | std::uint32_t{instruction.negate_b} << 14 |
         (instruction.n >> 3 & 0x3fu) << 17 | static_cast<std::uint32_t>(instruction.scales) << 23 |
         (instruction.m >> 7 & 3u) << 27 | (instruction.scale_a_id & 3u) << 29;
}

/// The inverse of encode(), of bits without a fault.
constexpr ScaledInstruction decode_scaled(ScaledKind kind, std::uint32_t bits) {
  const bool packed = kind != ScaledKind::kMxf8f6f4;
  const auto type = [&](int shift) {
    return packed ? ScaledInput::kE2m1 : static_cast<ScaledInput>(bits >> shift & 7u);
  };
  return {.m = (bits >> 27 & 3u) << 7,
          .n = (bits >> 17 & 0x3fu) << 3,
          .a = type(7),
          .b = type(10),
          .scales = static_cast<ScaleType>(bits >> 23 & 1u),
          .scale_a_id = bits >> 29 & 3u,
          .scale_b_id = bits >> 4 & 3u,
          .negate_a = (bits >> 13 & 1u) != 0,
          .negate_b = (bits >> 14 & 1u) != 0};
}

/// The descriptor with other IDs: what changes from one instruction of a k-tile to the next.
constexpr std::uint32_t with_scale_ids(std::uint32_t bits, std::uint32_t id) {
  return (bits & ~(3u << 4 | 3u << 29)) | id << 4 | id << 29;
}

/// What is wrong with bits that are no dense, K-major descriptor of this kind for so many CTAs, or nullptr.
/// PTX ISA, "Instruction descriptor", "Matrix Shape", "Valid combinations of scale_vectorsize with types and
/// MMA-Kind".
constexpr const char* scaled_instruction_fault(ScaledKind kind, std::uint32_t bits, int ctas = 1) {
  const bool packed = kind != ScaledKind::kMxf8f6f4;
  if ((bits & 4u) != 0) return "it asks for a sparse matrix, which is tcgen05.mma.sp's";
  if ((bits & 3u) != 0 || (bits >> 3 & 1u) != 0 || (bits >> 6 & 1u) != 0 || (bits >> 24 & 7u) != 0)
    return "a reserved bit (0, 1, 3, 6 or 24-26) is set";
  if (packed && (bits >> 12 & 1u) != 0) return "bit 12 is set, which the 4-bit kinds reserve";
  if (packed && (bits >> 15 & 3u) != 0)
    return "A or B is transposed (bits 15-16), which the 4-bit kinds cannot do";
  if (!packed && (bits >> 31) != 0) return "a reserved bit (31) is set";
  const std::uint32_t a = bits >> 7 & 7u;
  const std::uint32_t b = bits >> 10 & 7u;
  if (packed && (a != scaled_field::kPackedE2m1 || b != scaled_field::kPackedE2m1))
    return "a type of A or B is not e2m1, which is 1 in the 4-bit kinds";
  if (!packed && (!scaled_field::is_input(a) || !scaled_field::is_input(b)))
    return "a type of A or B is none of e4m3, e5m2, e2m3, e3m2 and e2m1 (0, 1, 3, 4, 5)";
  if ((bits >> 23 & 1u) == 0 && kind != ScaledKind::kMxf4Nvf4x4)
    return "the scales are ue4m3 (bit 23 is 0), which only .kind::mxf4nvf4 with .scale_vec::4X has";
  const std::uint32_t id_a = bits >> 29 & 3u;
  const std::uint32_t id_b = bits >> 4 & 3u;
  if (scale_vector(kind) == 2 && (id_a % 2 != 0 || id_b % 2 != 0))
    return "a scale factor ID is neither 0 nor 2, where the two scales of .scale_vec::2X begin";
  if (scale_vector(kind) == 4 && (id_a != 0 || id_b != 0))
    return "a scale factor ID is not 0, where the four scales of .scale_vec::4X begin";
  const std::uint32_t m = (bits >> 27 & 3u) << 7;
  const std::uint32_t n = (bits >> 17 & 0x3fu) << 3;
  if (ctas == 1 && m != 128) return "M is not 128";
  if (ctas == 2 && m != 128 && m != 256)
    return "M is neither 128 nor 256, but a pair of CTAs needs one of them";
  const std::uint32_t step = ctas == 1 ? 8 : 16;
  if (n < step || n > 256 || n % step != 0)
    return ctas == 1 ? "N is not a multiple of 8 from 8 to 256" : "N is not a multiple of 16 from 16 to 256";
  return nullptr;
}

/// The columns of tensor memory that hold the scales of so many rows, for one ID.
constexpr std::uint32_t scale_columns(std::uint32_t rows) {
  return (rows + 31) / 32;
}

/// The byte of a scale in a piece of 512 bytes that tcgen05.cp.32x128b.warpx4 copies: scales of 128 rows and
/// 4 blocks of K. Its row r of 16 bytes is lane r, and its word c is column c.
constexpr int scale_offset(int row, int block) {
  return row % 32 * 16 + row / 32 % 4 * 4 + block % 4;
}

}  // namespace gemm::ptx
