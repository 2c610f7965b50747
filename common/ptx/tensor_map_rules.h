// What a tensor map describes, and the rules it must keep. Checked before the driver sees it, because the
// driver answers every violation with the same CUDA_ERROR_INVALID_VALUE.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "ptx/swizzle_mode.h"

namespace gemm::ptx {

inline constexpr int kMaxTensorRank = 5;

enum class TensorElement { kBf16, kFloat16, kFloat32, kUint8, kUint32 };

constexpr int element_bytes(TensorElement element) {
  switch (element) {
    case TensorElement::kUint8:
      return 1;
    case TensorElement::kBf16:
    case TensorElement::kFloat16:
      return 2;
    default:
      return 4;
  }
}

/// How much of a row the L2 fetches at once when the copy misses.
enum class L2Promotion { kNone, k64B, k128B, k256B };

/// How a tensor's channels lie in memory. Without interleave dimension 0 is the channels. An interleaved
/// tensor has them in slices of 16 or 32 bytes (NC/8HWC8 and NC/16HWC16, of 2-byte channels): dimension 0 is
/// W, in steps of a slice, the last dimension but one counts the slices, and the last one the images. PTX
/// ISA, "Interleave layout".
enum class Interleave : std::uint8_t { kNone, k16B, k32B };

constexpr int slice_bytes(Interleave interleave) {
  constexpr int kBytes[] = {0, 16, 32};
  return kBytes[static_cast<int>(interleave)];
}

/// What a map in im2col mode adds. A copy visits `pixels` pixels of a batch of images, W first, then H, D and
/// the images, inside a bounding box that the corners describe, and brings `box[0]` channels of each: the
/// rows of a matrix that a convolution multiplies. Arrays begin with W.
struct Im2col {
  std::uint32_t pixels = 0;                    // of a copy; 0: the map is tiled
  std::array<std::int32_t, 3> lower{};         // the box begins here, and ends
  std::array<std::int32_t, 3> upper{};         // this far from the last pixel
  std::array<std::uint32_t, 3> step{1, 1, 1};  // from one pixel to the next
  std::array<std::uint32_t, 3> offset{};  // of the instruction, added to each pixel's place: not in the map

  bool operator==(const Im2col&) const = default;
};

/// A tensor in global memory and the box that one copy moves. Dimension 0 is the innermost, contiguous one.
struct TensorMapSpec {
  const void* base = nullptr;  // in device memory
  TensorElement element = TensorElement::kBf16;
  int rank = 0;
  std::array<std::uint64_t, kMaxTensorRank> extent{};        // elements
  std::array<std::uint64_t, kMaxTensorRank> stride_bytes{};  // from one index to the next; [0] is not used
  std::array<std::uint32_t, kMaxTensorRank> box{};           // elements
  Swizzle swizzle = Swizzle::kNone;
  L2Promotion l2_promotion = L2Promotion::k128B;
  Im2col im2col{};  // its copies have a box of {channels, pixels, 1, ...}
  Interleave interleave = Interleave::kNone;
};

/// Bytes from one index of dimension 0 to the next.
constexpr int unit_bytes(const TensorMapSpec& spec) {
  return spec.interleave == Interleave::kNone ? element_bytes(spec.element) : slice_bytes(spec.interleave);
}
/// How many indices of a dimension a copy moves. Of an interleaved tensor it brings one slice, whatever the
/// box says there (seen on an H200).
constexpr std::uint32_t box_indices(const TensorMapSpec& spec, int dimension) {
  const bool is_slices = spec.interleave != Interleave::kNone && dimension == spec.rank - 2;
  return is_slices ? 1 : spec.box[static_cast<std::size_t>(dimension)];
}

/// A dense row-major matrix [rows][columns] of bf16 and the tile [box_rows][box_columns].
constexpr TensorMapSpec matrix_spec(const void* base, int rows, int columns, int box_rows, int box_columns,
                                    Swizzle swizzle) {
  TensorMapSpec spec;
  spec.base = base;
  spec.rank = 2;
  spec.extent = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)};
  spec.stride_bytes = {0, static_cast<std::uint64_t>(columns) * 2};
  spec.box = {static_cast<std::uint32_t>(box_columns), static_cast<std::uint32_t>(box_rows)};
  spec.swizzle = swizzle;
  return spec;
}

/// "" or the broken rule of a map in im2col mode. CUDA Driver API: cuTensorMapEncodeIm2col.
inline std::string violated_im2col_rule(const TensorMapSpec& spec) {
  constexpr std::uint32_t kMaxPixels = 1024;
  constexpr std::uint32_t kMaxStep = 8;
  constexpr int kCornerBits[] = {16, 8, 5};  // of ranks 3, 4 and 5
  if (spec.rank < 3)
    return "a tensor in im2col mode has rank " + std::to_string(spec.rank) + "; it must be 3, 4 or 5";
  if (spec.im2col.pixels > kMaxPixels)
    return "a column has " + std::to_string(spec.im2col.pixels) + " pixels; it must have 1 to 1024";
  if (spec.box[1] != spec.im2col.pixels)
    return "the box of a map in im2col mode must be the channels of a pixel and the pixels of a column";
  const std::int64_t limit = std::int64_t{1} << (kCornerBits[spec.rank - 3] - 1);
  for (int i = 1; i < spec.rank - 1; ++i) {
    const auto d = static_cast<std::size_t>(i);
    const std::string dimension = "dimension " + std::to_string(i);
    for (const std::int64_t corner : {spec.im2col.lower[d - 1], spec.im2col.upper[d - 1]}) {
      if (corner < -limit || corner >= limit)
        return "a corner of the bounding box is " + std::to_string(corner) + " in " + dimension +
               "; it must be " + std::to_string(-limit) + " to " + std::to_string(limit - 1);
    }
    if (spec.im2col.step[d - 1] == 0 || spec.im2col.step[d - 1] > kMaxStep)
      return "the element stride of " + dimension + " is " + std::to_string(spec.im2col.step[d - 1]) +
             "; it must be 1 to 8";
    if (static_cast<std::int64_t>(spec.extent[d]) - 1 + spec.im2col.upper[d - 1] < spec.im2col.lower[d - 1])
      return "the bounding box is empty in " + dimension;
  }
  return "";
}

/// "" or the broken rule of an interleaved tensor. CUDA Driver API: cuTensorMapEncodeTiled,
/// cuTensorMapEncodeIm2col.
inline std::string violated_interleave_rule(const TensorMapSpec& spec) {
  constexpr std::uint64_t kAlignment = 32;
  if (spec.rank < 3)
    return "an interleaved tensor has rank " + std::to_string(spec.rank) + "; it must be 3, 4 or 5";
  if (spec.interleave != Interleave::k32B) return "";
  const std::uint64_t past = reinterpret_cast<std::uintptr_t>(spec.base) % kAlignment;
  if (past != 0)
    return "the base address of a tensor with slices of 32 bytes is " + std::to_string(past) +
           " bytes past a multiple of 32; it must be 32-byte aligned";
  for (int i = 1; i < spec.rank; ++i) {
    const std::uint64_t stride = spec.stride_bytes[static_cast<std::size_t>(i)];
    if (stride % kAlignment != 0)
      return "the stride of dimension " + std::to_string(i) + " of a tensor with slices of 32 bytes is " +
             std::to_string(stride) + " bytes; it must be a multiple of 32";
  }
  if (spec.swizzle != Swizzle::k32B)
    return "a tensor with slices of 32 bytes has another swizzle than that of 32 bytes, which it needs";
  return "";
}

/// "" when the specification keeps all rules, otherwise one sentence that names the broken one.
/// CUDA Driver API, "Tensor Map Object Management": cuTensorMapEncodeTiled.
inline std::string violated_rule(const TensorMapSpec& spec) {
  constexpr std::uint64_t kBaseAlignment = 16;
  constexpr std::uint64_t kStrideAlignment = 16;
  constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32;
  constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
  constexpr std::uint32_t kMaxBox = 256;
  auto text = [](std::uint64_t value) { return std::to_string(value); };

  if (spec.rank < 1 || spec.rank > kMaxTensorRank)
    return "the tensor's rank is " + std::to_string(spec.rank) + "; it must be 1 to 5";
  if (spec.base == nullptr) return "the tensor's base address is null; it must be device memory";
  const auto base = reinterpret_cast<std::uintptr_t>(spec.base);
  if (base % kBaseAlignment != 0) {
    return "the tensor's base address is " + text(base % kBaseAlignment) +
           " bytes past a multiple of 16; it must be 16-byte aligned";
  }
  for (int i = 0; i < spec.rank; ++i) {
    const auto d = static_cast<std::size_t>(i);
    const std::string dimension = "dimension " + std::to_string(i);
    if (spec.extent[d] == 0 || spec.extent[d] > kMaxExtent)
      return "the tensor's " + dimension + " has " + text(spec.extent[d]) +
             " elements; it must have 1 to 2^32";
    if ((i == 0 || spec.im2col.pixels == 0) && (spec.box[d] == 0 || spec.box[d] > kMaxBox))
      return "the box has " + text(spec.box[d]) + " elements in " + dimension + "; it must have 1 to 256";
    if (i == 0) continue;
    if (spec.stride_bytes[d] % kStrideAlignment != 0) {
      return "the stride of " + dimension + " is " + text(spec.stride_bytes[d]) +
             " bytes; it must be a multiple of 16 (rows of a bf16 matrix: a multiple of 8 elements)";
    }
    if (spec.stride_bytes[d] >= kMaxStride)
      return "the stride of " + dimension + " is " + text(spec.stride_bytes[d]) +
             " bytes; it must be below 2^40";
    if (spec.stride_bytes[d] == 0 &&
        spec.extent[d] > 1)  // of one element nobody asks how far it is to the next
      return "the stride of " + dimension + " is 0; a tensor map cannot repeat a row";
  }
  const std::uint64_t inner =
      std::uint64_t{spec.box[0]} * static_cast<std::uint64_t>(element_bytes(spec.element));
  if (inner % 16 != 0) return "a row of the box is " + text(inner) + " bytes; it must be a multiple of 16";
  if (spec.interleave != Interleave::kNone) {
    std::string broken = violated_interleave_rule(spec);
    if (!broken.empty()) return broken;
  }
  const auto span = static_cast<std::uint64_t>(span_bytes(spec.swizzle));
  if (spec.swizzle != Swizzle::kNone && spec.interleave == Interleave::kNone && inner > span) {
    return "a row of the box is " + text(inner) + " bytes, longer than the swizzle's span of " + text(span) +
           " bytes; use a narrower box or a wider swizzle";
  }
  if (spec.im2col.pixels != 0) return violated_im2col_rule(spec);
  return "";
}

/// Bytes that one load expects to its mbarrier: the whole box, also where it hangs over the tensor's edge.
constexpr std::uint32_t box_bytes(const TensorMapSpec& spec) {
  auto bytes = static_cast<std::uint32_t>(unit_bytes(spec));
  for (int i = 0; i < spec.rank; ++i) bytes *= box_indices(spec, i);
  return bytes;
}

}  // namespace gemm::ptx
