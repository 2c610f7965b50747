#include "emulator/async/tensor_map.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "emulator/async/descriptor_cache.h"
#include "emulator/async/global_cells.h"
#include "emulator/async/hopper.h"
#include "emulator/memory/device_memory.h"
#include "emulator/report/report.h"
#include "ptx/tensor_map.h"

namespace emulator {
namespace {

constexpr const char* kTensorMapSection = "PTX ISA, \"cp.async.bulk.tensor\"";
constexpr std::uint64_t kMagic = 0x656d756d61700001u;

std::uint64_t checksum(const TensorMapBits& bits) {
  std::uint64_t sum = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 15; ++i) sum = (sum ^ bits.words[i]) * 0x100000001b3u + (sum >> 29);
  return sum;
}

constexpr unsigned kIm2colBit = 63;               // of word 2
constexpr unsigned kInterleaveBit = 48;           // two bits of word 2
constexpr std::size_t kPixelDimensions = 3;       // W, H, D
constexpr std::size_t kFirstCorner = 13 * 4 + 2;  // of 16 bits each: six, behind the box

void set_corner(TensorMapBits& bits, std::size_t i, std::int32_t value) {
  const std::size_t at = kFirstCorner + i;
  bits.words[at / 4] |= std::uint64_t{static_cast<std::uint16_t>(value)} << (at % 4 * 16);
}
std::int32_t corner(const TensorMapBits& bits, std::size_t i) {
  const std::size_t at = kFirstCorner + i;
  return static_cast<std::int16_t>(bits.words[at / 4] >> (at % 4 * 16));
}

void check_pixels(const char* what, const gemm::ptx::TensorMapSpec& spec, const std::int32_t* coordinates,
                  Where where) {
  constexpr std::uint32_t kOffsetBits[] = {16, 8, 5};  // of ranks 3, 4 and 5
  HopperEngine& engine = hopper_engine(what, where);
  const std::uint32_t offsets = 1u << kOffsetBits[spec.rank - 3];
  for (int i = 1; i < spec.rank - 1; ++i) {
    const auto d = static_cast<std::size_t>(i);
    const std::int64_t first = spec.im2col.lower[d - 1];
    const std::int64_t last = static_cast<std::int64_t>(spec.extent[d]) - 1 + spec.im2col.upper[d - 1];
    if (coordinates[i] < first || coordinates[i] > last) {
      engine.fail(
          "tma-coordinates",
          Report("{}: the first pixel lies outside the bounding box", what)
              .at(where, running_thread())
              .line("box", "coordinate {} is {}, the box goes from {} to {}", i, coordinates[i], first, last)
              .rule("the coordinates of D, H and W must lie within the bounding box",
                    "PTX ISA, \"Tensors\": \"im2col mode\""));
    }
    if (spec.im2col.offset[d - 1] >= offsets) {
      engine.fail("tma-coordinates",
                  Report("{}: an im2col offset is out of range", what)
                      .at(where, running_thread())
                      .line("offset", "{} in dimension {}", spec.im2col.offset[d - 1], i)
                      .rule(fmt::format("im2col offsets for a tensor of rank {} must be below {}", spec.rank,
                                        offsets),
                            "PTX ISA, \"Tensors\": \"im2col mode\""));
    }
  }
}

}  // namespace

TensorMapBits encode_tensor_map(const gemm::ptx::TensorMapSpec& spec) {
  TensorMapBits bits{};
  bits.words[0] = kMagic;
  bits.words[1] = reinterpret_cast<std::uintptr_t>(spec.base);
  bits.words[2] = static_cast<std::uint64_t>(spec.rank) | static_cast<std::uint64_t>(spec.element) << 8 |
                  static_cast<std::uint64_t>(spec.swizzle) << 16 |
                  static_cast<std::uint64_t>(spec.l2_promotion) << 24 |
                  static_cast<std::uint64_t>(spec.interleave) << kInterleaveBit;
  for (std::size_t i = 0; i < gemm::ptx::kMaxTensorRank; ++i) {
    bits.words[3 + i] = spec.extent[i];
    if (i > 0) bits.words[7 + i] = spec.stride_bytes[i];
    bits.words[i < 3 ? 12 : 13] |= static_cast<std::uint64_t>(spec.box[i]) << (i % 3 * 16);
  }
  if (spec.im2col.pixels != 0) {
    bits.words[2] |= std::uint64_t{1} << kIm2colBit;
    for (std::size_t i = 0; i < kPixelDimensions; ++i) {
      bits.words[2] |= std::uint64_t{spec.im2col.step[i]} << (32 + i * 4);
      set_corner(bits, i, spec.im2col.lower[i]);
      set_corner(bits, kPixelDimensions + i, spec.im2col.upper[i]);
    }
  }
  bits.words[15] = checksum(bits);
  return bits;
}

bool decode_tensor_map(const TensorMapBits& bits, gemm::ptx::TensorMapSpec& spec) {
  if (bits.words[0] != kMagic || bits.words[15] != checksum(bits)) return false;
  spec = {};
  spec.base = reinterpret_cast<const void*>(bits.words[1]);
  spec.rank = static_cast<int>(bits.words[2] & 0xff);
  spec.element = static_cast<gemm::ptx::TensorElement>(bits.words[2] >> 8 & 0xff);
  spec.swizzle = static_cast<gemm::ptx::Swizzle>(bits.words[2] >> 16 & 0xff);
  spec.l2_promotion = static_cast<gemm::ptx::L2Promotion>(bits.words[2] >> 24 & 0xff);
  spec.interleave = static_cast<gemm::ptx::Interleave>(bits.words[2] >> kInterleaveBit & 3);
  for (std::size_t i = 0; i < gemm::ptx::kMaxTensorRank; ++i) {
    spec.extent[i] = bits.words[3 + i];
    if (i > 0) spec.stride_bytes[i] = bits.words[7 + i];
    spec.box[i] = static_cast<std::uint32_t>(bits.words[i < 3 ? 12 : 13] >> (i % 3 * 16) & 0xffff);
  }
  if ((bits.words[2] >> kIm2colBit & 1) != 0) {
    spec.im2col.pixels = spec.box[1];
    for (std::size_t i = 0; i < kPixelDimensions; ++i) {
      spec.im2col.step[i] = static_cast<std::uint32_t>(bits.words[2] >> (32 + i * 4) & 0xf);
      spec.im2col.lower[i] = corner(bits, i);
      spec.im2col.upper[i] = corner(bits, kPixelDimensions + i);
    }
  }
  return true;
}

/// A map in global memory that the kernel itself is to write, and has not.
static void explain_unwritten_map(Report& report, const TensorMapBits& map) {
  const auto address = reinterpret_cast<std::uintptr_t>(&map);
  if (find_buffer(address) == nullptr) return;
  report.line("map", name_address(address));
  bool written = false;
  for_global_cells(address, sizeof map, [&](const Cell& cell) { written = written || cell.write != 0; });
  if (!written)
    report.missing(
        "the map itself: no thread has written there in this launch so far. The thread that makes the map "
        "must signal the thread that copies, which must wait for the signal before it acquires the map");
}

gemm::ptx::TensorMapSpec use_tensor_map(const char* what, const TensorMapBits& map, int rank, Where where,
                                        bool im2col) {
  gemm::ptx::TensorMapSpec spec;
  HopperEngine& engine = hopper_engine(what, where);
  check_descriptor(what, map, where);
  if (!decode_tensor_map(map, spec)) {
    Report report("{} uses 128 bytes that are not a tensor map", what);
    report.at(where, running_thread());
    explain_unwritten_map(report, map);
    engine.fail("tensor-map-invalid",
                report.rule("the map must come unchanged from make_tensor_map, as a const __grid_constant__ "
                            "parameter or in constant or global memory",
                            kTensorMapSection));
  }
  // A kernel may have changed it, field by field.
  const bool may_have_changed = find_buffer(reinterpret_cast<std::uintptr_t>(&map)) != nullptr;
  const std::string broken = may_have_changed ? gemm::ptx::violated_rule(spec) : std::string();
  if (!broken.empty()) {
    engine.fail("tensor-map-invalid", Report("{} uses a tensor map that breaks a rule", what)
                                          .at(where, running_thread())
                                          .rule(broken, "CUDA Driver API, \"cuTensorMapEncodeTiled\""));
  }
  if (spec.rank != rank) {
    engine.fail("tensor-map-rank",
                Report("{} gives {} coordinates to a tensor of rank {}", what, rank, spec.rank)
                    .at(where, running_thread())
                    .rule("the instruction's dimension must be the map's rank", kTensorMapSection));
  }
  if ((spec.im2col.pixels != 0) != im2col) {
    engine.fail("tensor-map-mode",
                Report("{} uses a tensor map in {} mode", what, im2col ? "tiled" : "im2col")
                    .at(where, running_thread())
                    .rule("an instruction with .im2col needs a map from cuTensorMapEncodeIm2col, and every "
                          "other one a map from cuTensorMapEncodeTiled",
                          kTensorMapSection));
  }
  return spec;
}

void check_coordinates(const char* what, const gemm::ptx::TensorMapSpec& spec,
                       const std::int32_t* coordinates, Where where) {
  constexpr int kUnit = 16;
  if (spec.im2col.pixels != 0) check_pixels(what, spec, coordinates, where);
  const int bytes = coordinates[0] * gemm::ptx::unit_bytes(spec);
  if (bytes % kUnit == 0) return;
  hopper_engine(what, where)
      .fail("tma-alignment", Report("{}: the box starts inside a 16-byte unit of a row", what)
                                 .at(where, running_thread())
                                 .line("box", "innermost coordinate {}: {} bytes, {} past a multiple of 16",
                                       coordinates[0], bytes, ((bytes % kUnit) + kUnit) % kUnit)
                                 .rule("the innermost coordinate must be a multiple of 16 bytes (an H200 "
                                       "reports an illegal instruction otherwise)",
                                       kTensorMapSection));
}

void check_store(const char* what, const gemm::ptx::TensorMapSpec& spec, const std::int32_t* coordinates,
                 Where where) {
  constexpr std::uint64_t kUnit = 16;
  HopperEngine& engine = hopper_engine(what, where);
  for (int i = 0; i < spec.rank; ++i) {
    if (coordinates[i] >= 0) continue;
    engine.fail("tma-coordinates", Report("{}: a store starts before the tensor", what)
                                       .at(where, running_thread())
                                       .line("box", "coordinate {} is {}", i, coordinates[i])
                                       .rule("a store's coordinates must not be negative (an H200 reports an "
                                             "illegal instruction otherwise; loads may start outside)",
                                             kTensorMapSection));
  }
  const std::uint64_t row_bytes = spec.extent[0] * static_cast<std::uint64_t>(gemm::ptx::unit_bytes(spec));
  const auto box_end = static_cast<std::uint64_t>(coordinates[0]) + spec.box[0];
  if (row_bytes % kUnit == 0 || box_end <= spec.extent[0]) return;
  engine.fail("store-past-row", Report("{}: the store writes past the end of the tensor's rows", what)
                                    .at(where, running_thread())
                                    .line("rows", "{} bytes: {} bytes after each row are also written",
                                          row_bytes, kUnit - row_bytes % kUnit)
                                    .rule("a store writes whole 16-byte units (observed on an H200), so rows "
                                          "must be a multiple of 16 bytes long",
                                          kTensorMapSection));
}

}  // namespace emulator

gemm::ptx::TensorMap gemm::ptx::make_tensor_map(const TensorMapSpec& spec) {
  const std::string broken = violated_rule(spec);
  if (!broken.empty()) throw std::invalid_argument(broken);
  return emulator::encode_tensor_map(spec);
}
