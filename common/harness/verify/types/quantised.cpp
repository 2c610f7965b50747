#include "harness/verify/types/quantised.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "gemm/problem/types.h"
#include "ptx/tcgen05_scaled_descriptor.h"

namespace harness {
namespace {

using gemm::Type;

constexpr int kBlock = gemm::kNvBlock;
constexpr float kSixth = 1.0f / 6;  // of the largest e2m1
constexpr int kPieceRows = 128;
constexpr int kPieceBlocks = 4;
constexpr std::size_t kPieceBytes = 512;

int blocks_of(const gemm::Shape& shape) {
  return shape.n / kBlock;
}

/// [rows][blocks], whole pieces of them.
int padded_rows(const gemm::Shape& shape) {
  return gemm::ceil_div(shape.m, kPieceRows) * kPieceRows;
}
int padded_blocks(const gemm::Shape& shape) {
  return gemm::ceil_div(blocks_of(shape), kPieceBlocks) * kPieceBlocks;
}

std::uint8_t scale_of(float largest) {
  return gemm::to_e4m3(largest * kSixth).bits;
}
/// What elements are multiplied with.
float inverse_of(std::uint8_t scale) {
  const float value = gemm::to_float(gemm::ue4m3{scale});
  return value == 0 ? 0 : 1 / value;
}
float larger(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? std::nanf("") : std::max(a, b);
}
float element(float value, float inverse) {
  return gemm::to_float(gemm::to_e2m1(value * inverse));
}

}  // namespace

std::size_t quantised_scales_begin(const gemm::Shape& shape) {
  return static_cast<std::size_t>(gemm::offset(shape.m, 0, shape.n)) / 2;
}

std::size_t quantised_bytes(const gemm::Shape& shape) {
  return quantised_scales_begin(shape) +
         static_cast<std::size_t>(gemm::offset(padded_rows(shape), 0, padded_blocks(shape)));
}

std::size_t quantised_scale_byte(const gemm::Shape& shape, int row, int block) {
  const std::int64_t piece =
      gemm::offset(row / kPieceRows, block / kPieceBlocks, padded_blocks(shape) / kPieceBlocks);
  return quantised_scales_begin(shape) + static_cast<std::size_t>(piece) * kPieceBytes +
         static_cast<std::size_t>(gemm::ptx::scale_offset(row, block));
}

std::vector<std::uint8_t> quantised(const gemm::Shape& shape, const std::vector<float>& values) {
  std::vector<std::uint8_t> d(quantised_bytes(shape));
  for (int row = 0; row < shape.m; ++row) {
    for (int block = 0; block < blocks_of(shape); ++block) {
      const std::int64_t first = gemm::offset(row, block * kBlock, shape.n);
      float largest = 0;
      for (std::int64_t i = first; i < first + kBlock; ++i)
        largest = larger(largest, std::abs(values[static_cast<std::size_t>(i)]));
      const std::uint8_t scale = scale_of(largest);
      d[quantised_scale_byte(shape, row, block)] = scale;
      for (std::int64_t i = first; i < first + kBlock; ++i)
        put_bits(Type::kE2m1, d.data(), i,
                 gemm::to_e2m1(values[static_cast<std::size_t>(i)] * inverse_of(scale)).bits);
    }
  }
  return d;
}

QuantisedAcceptance quantised_acceptance(const gemm::Shape& shape, const TypedAcceptance& values,
                                         const std::vector<std::uint8_t>& d) {
  const std::vector<float>& low = values.low;
  const std::vector<float>& high = values.high.empty() ? values.low : values.high;
  QuantisedAcceptance acceptance;
  acceptance.elements.low.resize(low.size());
  if (!values.high.empty()) acceptance.elements.high.resize(low.size());
  for (int row = 0; row < padded_rows(shape); ++row) {
    for (int block = 0; block < padded_blocks(shape); ++block) {
      const std::uint8_t got = d[quantised_scale_byte(shape, row, block)];
      if (row >= shape.m || block >= blocks_of(shape)) {
        acceptance.stray += got != 0;
        continue;
      }
      const auto first = static_cast<std::size_t>(gemm::offset(row, block * kBlock, shape.n));
      float least = 0;  // that the largest magnitude can be
      float most = 0;
      for (std::size_t i = first; i < first + kBlock; ++i) {
        const bool has_zero = low[i] < 0 && high[i] > 0;
        least = larger(least, has_zero ? 0 : std::min(std::abs(low[i]), std::abs(high[i])));
        most = larger(most, larger(std::abs(low[i]), std::abs(high[i])));
      }
      if (std::isnan(most)) least = most;
      const BlockScale scale{got, scale_of(least), scale_of(most)};
      acceptance.scales.push_back(scale);
      const float inverse = inverse_of(scale.is_right() ? got : scale.low);
      for (std::size_t i = first; i < first + kBlock; ++i) {
        acceptance.elements.low[i] = element(low[i], inverse);
        if (!values.high.empty()) acceptance.elements.high[i] = element(high[i], inverse);
      }
    }
  }
  return acceptance;
}

std::string explain_quantised(const QuantisedAcceptance& acceptance, const TypedAcceptance& values,
                              const std::vector<std::size_t>& wrong, const std::vector<std::uint8_t>& d) {
  if (wrong.empty() || !values.high.empty()) return "";
  const auto got = [&](std::size_t index) {
    return decode(Type::kE2m1, bits_at(Type::kE2m1, d.data(), static_cast<std::int64_t>(index)));
  };
  const auto scale = [&](std::size_t index) { return acceptance.scales[index / kBlock]; };
  const auto neighbours = [&](std::size_t index, int by) {  // the scale that another block should have
    const auto block = static_cast<std::int64_t>(index / kBlock) + by;
    const auto last = static_cast<std::int64_t>(acceptance.scales.size()) - 1;
    return acceptance.scales[static_cast<std::size_t>(std::clamp<std::int64_t>(block, 0, last))].low;
  };
  const auto largest = [&](std::size_t index) {
    float value = 0;
    for (std::size_t i = index / kBlock * kBlock; i < (index / kBlock + 1) * kBlock; ++i)
      value = larger(value, std::abs(values.low[i]));
    return value;
  };
  struct Candidate {
    const char* text;
    std::function<bool(std::size_t)> fits;
  };
  const Candidate candidates[] = {
      {"The two elements of each byte are exchanged: that of the lower column is the lower half.",
       [&](std::size_t i) { return scale(i).is_right() && got(i) == acceptance.elements.low[i ^ 1]; }},
      {"The elements are divided by a scale that is not rounded yet: the next product multiplies by the one "
       "that is stored.",
       [&](std::size_t i) {
         return scale(i).is_right() && got(i) == element(values.low[i], 1 / (largest(i) / 6));
       }},
      {"These are the scales of the largest of 32 elements, not of 16.",
       [&](std::size_t i) {
         return scale(i).got == std::max(scale(i).low, neighbours(i, (i / kBlock) % 2 == 0 ? 1 : -1));
       }},
      {"These are the scales of the next block of 16 columns.",
       [&](std::size_t i) { return scale(i).got == neighbours(i, 1); }},
      {"These are the scales of the previous block of 16 columns.",
       [&](std::size_t i) { return scale(i).got == neighbours(i, -1); }},
      {"These are the scales of the other block of each pair: the word of a row has the lowest block in its "
       "lowest byte.",
       [&](std::size_t i) { return scale(i).got == neighbours(i, (i / kBlock) % 2 == 0 ? 1 : -1); }}};
  for (const Candidate& candidate : candidates) {
    if (std::all_of(wrong.begin(), wrong.end(), candidate.fits)) return fmt::format("  {}\n", candidate.text);
  }
  return "";
}

}  // namespace harness
