// The tensor map: its bits, the box that it describes, and what an instruction must respect that uses it.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/machine/where.h"
#include "ptx/tensor_map_rules.h"

namespace emulator {

/// The emulator's tensor map: 128 bytes that say what TensorMapSpec says, with a checksum.
struct TensorMapBits {
  std::uint64_t words[16];
};
TensorMapBits encode_tensor_map(const gemm::ptx::TensorMapSpec& spec);
/// False when the bits are not a tensor map.
bool decode_tensor_map(const TensorMapBits& bits, gemm::ptx::TensorMapSpec& spec);

using Coordinates = std::array<std::int32_t, gemm::ptx::kMaxTensorRank>;

/// Bytes of a row of the box, and from one row to the next in shared memory: with a swizzle every row takes
/// its whole span, as an H200 does it. Those of an interleaved tensor lie one behind the other.
inline std::uint32_t box_row_bytes(const gemm::ptx::TensorMapSpec& spec) {
  return spec.box[0] * static_cast<std::uint32_t>(gemm::ptx::unit_bytes(spec));
}
inline std::uint32_t box_row_pitch(const gemm::ptx::TensorMapSpec& spec) {
  return spec.swizzle == gemm::ptx::Swizzle::kNone || spec.interleave != gemm::ptx::Interleave::kNone
             ? box_row_bytes(spec)
             : static_cast<std::uint32_t>(gemm::ptx::span_bytes(spec.swizzle));
}
/// Bytes of shared memory that the box takes, with the unused ends of its rows.
inline std::uint32_t box_footprint(const gemm::ptx::TensorMapSpec& spec) {
  return gemm::ptx::box_bytes(spec) / box_row_bytes(spec) * box_row_pitch(spec);
}
/// Calls visit(place in shared memory, byte of the packed box) for every 16 bytes of a box at `offset`.
template <typename Visit>
void for_box_chunks(const gemm::ptx::TensorMapSpec& spec, std::uint32_t offset, Visit visit) {
  const std::uint32_t row_bytes = box_row_bytes(spec);
  const std::uint32_t pitch = box_row_pitch(spec);
  const std::uint32_t bytes = gemm::ptx::box_bytes(spec);
  for (std::uint32_t row = 0; row * row_bytes < bytes; ++row) {
    for (std::uint32_t at = 0; at < row_bytes; at += 16) {
      visit(gemm::ptx::swizzled(offset + row * pitch + at, spec.swizzle), row * row_bytes + at);
    }
  }
}

/// Decodes the map, and reports when an instruction with `rank` coordinates cannot use it, with .im2col or
/// without.
gemm::ptx::TensorMapSpec use_tensor_map(const char* what, const TensorMapBits& map, int rank, Where where,
                                        bool im2col = false);

/// Reports a column that starts outside the bounding box, or offsets that are out of range (im2col), and a
/// box that starts inside a 16-byte unit of a row. The latter is not in the PTX ISA; an H200 answers such an
/// instruction with cudaErrorIllegalInstruction.
void check_coordinates(const char* what, const gemm::ptx::TensorMapSpec& spec,
                       const std::int32_t* coordinates, Where where);

/// Reports what only stores must not do, found on an H200: coordinates below 0 are illegal instructions, and
/// the last 16-byte unit of a row is written as a whole.
void check_store(const char* what, const gemm::ptx::TensorMapSpec& spec, const std::int32_t* coordinates,
                 Where where);

}  // namespace emulator
