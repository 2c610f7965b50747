#include "descriptor_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "command_line.h"

namespace play {
namespace {

namespace ptx = gemm::ptx;

constexpr std::uint32_t kUnit = 16;         // bytes
constexpr std::uint32_t kBlockRows = 8;     // of the blocks that a tile is made of
constexpr std::uint32_t kBlockBytes = 128;  // of one without a swizzle

struct BitRange {
  int first;
  int last;
};
constexpr BitRange kReserved[] = {{14, 15}, {30, 31}, {46, 48}, {52, 61}};

void examine_swizzled(const ptx::MatrixDescriptor& d, std::uint32_t rows, DescriptorFindings& findings) {
  const auto span = static_cast<std::uint32_t>(ptx::span_bytes(d.swizzle));
  const auto period = static_cast<std::uint32_t>(ptx::period_bytes(d.swizzle));
  const std::uint32_t in_row = d.address % span;
  const std::uint32_t pattern_row = d.address / span % kBlockRows;
  if (in_row + 2 * kUnit > span) {
    findings.wrong.push_back(fmt::format(
        "the address is {} bytes into a row of {} bytes, so 16 elements of K do not fit into the rest of it",
        in_row, span));
  } else if (in_row % (2 * kUnit) != 0) {
    findings.odd.push_back(fmt::format(
        "the address is {} bytes into row 0; steps of 16 elements along K are multiples of 32 bytes",
        in_row));
  } else if (in_row != 0) {
    findings.notes.push_back(
        fmt::format("the address is {} bytes into row 0: k starts at {} of the row's {} elements", in_row,
                    in_row / 2, span / 2));
  }
  if (pattern_row != 0) {
    findings.odd.push_back(
        fmt::format("row 0 lies on row {} of the swizzle's pattern, which begins at multiples of {}: this is "
                    "right only if it is row {} of a tile that begins there",
                    pattern_row, period, pattern_row));
  }
  if (d.base_offset != 0) {
    findings.odd.push_back(fmt::format(
        "the base offset is {}, but only a tile that does not start at a multiple of {} needs one",
        d.base_offset, period));
  }
  if (rows > kBlockRows && d.stride_bytes < period) {
    findings.wrong.push_back(
        fmt::format("the stride is {} bytes, so rows 8 to 15 overlap rows 0 to 7; 8 rows of {} bytes are {}",
                    d.stride_bytes, span, period));
  } else if (d.stride_bytes % period != 0) {
    findings.odd.push_back(
        fmt::format("the stride is {} bytes, which is not a multiple of {}: rows 8 to 15 start inside the "
                    "swizzle's pattern",
                    d.stride_bytes, period));
  } else if (d.stride_bytes != period) {
    findings.odd.push_back(fmt::format("the stride is {} bytes; in a dense tile, as TMA writes it, it is {}",
                                       d.stride_bytes, period));
  }
  if (d.leading_bytes != 0 && d.leading_bytes != kUnit) {
    findings.odd.push_back(fmt::format(
        "the leading offset is {} bytes, but a swizzled K-major operand ignores it; is the stride meant?",
        d.leading_bytes));
  }
}

void examine_plain(const ptx::MatrixDescriptor& d, std::uint32_t rows, DescriptorFindings& findings) {
  if (d.base_offset != 0)
    findings.wrong.push_back(
        "there is a base offset but no swizzle; only swizzled layouts have a base offset");
  if (d.leading_bytes < kBlockBytes) {
    findings.wrong.push_back(
        fmt::format("the leading offset is {} bytes, so k 8 to 15 overlap k 0 to 7; blocks of 8 rows x 16 "
                    "bytes are 128 bytes",
                    d.leading_bytes));
  }
  if (rows > kBlockRows && d.stride_bytes < kBlockBytes) {
    findings.wrong.push_back(
        fmt::format("the stride is {} bytes, so rows 8 to 15 overlap rows 0 to 7; blocks of 8 rows x 16 "
                    "bytes are 128 bytes",
                    d.stride_bytes));
  }
  if (rows > kBlockRows && d.leading_bytes == d.stride_bytes && d.leading_bytes >= kBlockBytes) {
    findings.wrong.push_back(
        fmt::format("the leading offset and the stride are both {} bytes: the block after block 0 along K is "
                    "the one below it",
                    d.leading_bytes));
  }
  if (d.leading_bytes % kBlockBytes != 0 || d.stride_bytes % kBlockBytes != 0)
    findings.odd.push_back(
        "the leading offset or the stride is not a multiple of 128 bytes, the size of a block");
}

}  // namespace

std::uint32_t operand_address(const ptx::MatrixDescriptor& d, std::uint32_t row, std::uint32_t unit) {
  const std::uint32_t block = d.address + row / kBlockRows * d.stride_bytes;
  if (d.swizzle == ptx::Swizzle::kNone) return block + row % kBlockRows * kUnit + unit * d.leading_bytes;
  const std::uint32_t linear =
      block + row % kBlockRows * static_cast<std::uint32_t>(ptx::span_bytes(d.swizzle)) + unit * kUnit;
  const std::uint32_t shift = d.base_offset << 7;
  return ptx::swizzled(linear - shift, d.swizzle) + shift;
}

DescriptorFindings examine_descriptor(std::uint64_t bits, std::uint32_t rows) {
  DescriptorFindings findings;
  const ptx::MatrixDescriptor d = ptx::decode(bits);
  for (const BitRange& range : kReserved) {
    const std::uint64_t value =
        bits >> range.first & ((std::uint64_t{1} << (range.last - range.first + 1)) - 1);
    if (value != 0) {
      findings.wrong.push_back(fmt::format(
          "bits {} to {} hold {:#x}, but they belong to no field of a wgmma descriptor and must be 0",
          range.first, range.last, value));
    }
  }
  if (d.swizzle == ptx::Swizzle::kNone) {
    examine_plain(d, rows, findings);
  } else {
    examine_swizzled(d, rows, findings);
  }
  std::uint32_t end = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t unit = 0; unit < 2; ++unit) end = std::max(end, operand_address(d, row, unit) + kUnit);
  }
  if (end > kSharedBytes) {
    findings.wrong.push_back(fmt::format(
        "{} rows reach up to byte {}; a CTA has at most {} bytes of shared memory", rows, end, kSharedBytes));
  }
  return findings;
}

}  // namespace play
