#include "emulator/async/tensor_core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

// The host's widest vectors, picked when the program starts. Not under the sanitizers: they start after that.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define GEMM_FOR_WIDE_VECTORS __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define GEMM_FOR_WIDE_VECTORS
#endif

namespace emulator {
namespace {

constexpr unsigned kLanes = 16;
constexpr unsigned kVectors = kSlabRows / kLanes;
constexpr unsigned kColumns = 2;  // at a time: their accumulators stay in registers over the whole depth
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr int kFp8Depth = 32;
constexpr int kFp8Fraction = 13;
constexpr int kNoExponent = -1000;  // of a zero

/// What an fp8 factor is: significand * 2^(exponent - fraction bits of the type).
struct Fp8Factor {
  std::int32_t significand = 0;
  std::int32_t exponent = kNoExponent;
  bool finite = true;
};

constexpr int fp8_fraction(gemm::Type type) {
  return type == gemm::Type::kE4m3 ? 3 : 2;
}

float fp8_value(gemm::Type type, std::uint8_t bits) {
  return type == gemm::Type::kE4m3 ? gemm::to_float(gemm::e4m3{bits}) : gemm::to_float(gemm::e5m2{bits});
}

std::array<Fp8Factor, 256> make_factors(gemm::Type type) {
  const int fraction = fp8_fraction(type);
  const int bias = type == gemm::Type::kE4m3 ? 7 : 15;
  std::array<Fp8Factor, 256> factors;
  for (unsigned bits = 0; bits < 256; ++bits) {
    Fp8Factor& factor = factors[bits];
    const int field = static_cast<int>(bits & 0x7fu) >> fraction;
    factor.finite = std::isfinite(fp8_value(type, static_cast<std::uint8_t>(bits)));
    factor.significand = static_cast<int>(bits & ((1u << fraction) - 1)) + (field > 0 ? 1 << fraction : 0);
    if (factor.significand != 0) factor.exponent = std::max(field, 1) - bias;
    if ((bits & 0x80u) != 0) factor.significand = -factor.significand;
  }
  return factors;
}

const std::array<Fp8Factor, 256>& fp8_factors(gemm::Type type) {
  static const std::array<Fp8Factor, 256> kE4m3 = make_factors(gemm::Type::kE4m3);
  static const std::array<Fp8Factor, 256> kE5m2 = make_factors(gemm::Type::kE5m2);
  return type == gemm::Type::kE4m3 ? kE4m3 : kE5m2;
}

/// A row of an operand.
struct Fp8Row {
  std::int32_t significand[kFp8Depth];
  std::int32_t exponent[kFp8Depth];
  bool finite = true;
};

void unpack(gemm::Type type, const std::uint8_t* row, Fp8Row& to) {
  const std::array<Fp8Factor, 256>& factors = fp8_factors(type);
  to.finite = true;
  for (int k = 0; k < kFp8Depth; ++k) {
    const Fp8Factor& factor = factors[row[k]];
    to.significand[k] = factor.significand;
    to.exponent[k] = factor.exponent;
    to.finite = to.finite && factor.finite;
  }
}

/// A row's operands, sums and alignments stay in registers: 16 rows at a time, and the whole depth.
using Integers = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

/// An accumulator: significand * 2^(exponent - 23).
struct Aligned {
  std::int32_t significand = 0;
  std::int32_t exponent = kNoExponent;
};

Aligned split(float c) {
  if (c == 0) return {};
  const int exponent = std::max(std::ilogb(c), -126);
  return {static_cast<std::int32_t>(std::ldexp(c, 23 - exponent)), exponent};
}

/// `sum` in units of 2^(largest - 13), of which as many bits are kept as the accumulator has.
float join(std::int32_t sum, int largest) {
  const int excess = std::bit_width(static_cast<std::uint32_t>(std::abs(sum))) - (kFp8Fraction + 1);
  if (excess > 0) sum = sum / (1 << excess) * (1 << excess);
  return sum == 0 ? 0 : std::ldexp(static_cast<float>(sum), largest - kFp8Fraction);
}

/// 16 rows of A, transposed.
struct Fp8Rows {
  Integers significand[kFp8Depth];
  Integers exponent[kFp8Depth];
};

/// Infinities and NaNs: what any order of additions gives.
float add_special(SlabTypes types, const std::uint8_t* a, const std::uint8_t* b, float c) {
  for (int k = 0; k < kFp8Depth; ++k) c += fp8_value(types.a, a[k]) * fp8_value(types.b, b[k]);
  return c;
}

/// Operands that are exact in binary32, whose sums are formed there: bf16, fp16, tf32.
float float_element(gemm::Type type, const std::uint8_t* row, unsigned k) {
  std::uint32_t wide = 0;
  std::uint16_t half = 0;
  if (type == gemm::Type::kTf32) {
    std::memcpy(&wide, row + 4 * k, sizeof wide);
    return gemm::to_float(gemm::tf32{wide});
  }
  std::memcpy(&half, row + 2 * k, sizeof half);
  return type == gemm::Type::kFp16 ? gemm::to_float(gemm::fp16{half}) : from_bf16(half);
}

const std::uint8_t* bytes_of_row(const SlabRow& row) {
  return reinterpret_cast<const std::uint8_t*>(row);
}

GEMM_FOR_WIDE_VECTORS
void multiply_floats(SlabTypes types, const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate,
                     float* d, unsigned pitch) {
  const unsigned depth = types.depth();
  alignas(64) float columns_of_a[kSlabDepth][kSlabRows];
  for (unsigned row = 0; row < kSlabRows; ++row) {
    for (unsigned k = 0; k < depth; ++k)
      columns_of_a[k][row] = float_element(types.a, bytes_of_row(a[row]), k);
  }
  for (unsigned column = 0; column < n; ++column) {
    Vector sums[kVectors] = {};
    if (accumulate) std::memcpy(sums, d + column * pitch, sizeof sums);
    for (unsigned k = 0; k < depth; ++k) {
      const float factor = float_element(types.b, bytes_of_row(b[column]), k);
      for (unsigned v = 0; v < kVectors; ++v) {
        Vector part;
        std::memcpy(&part, &columns_of_a[k][v * kLanes], sizeof part);
        sums[v] += part * factor;
      }
    }
    std::memcpy(d + column * pitch, sums, sizeof sums);
  }
}

/// An int8, extended to 32 bits, modulo 2^32.
std::uint32_t extended(std::uint8_t bits) {
  return (bits ^ 0x80u) - 0x80u;
}

GEMM_FOR_WIDE_VECTORS
void multiply_integers(const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                       unsigned pitch) {
  using Words = std::uint32_t __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));
  alignas(64) std::uint32_t columns_of_a[kSlabBytes][kSlabRows];
  for (unsigned row = 0; row < kSlabRows; ++row) {
    for (unsigned k = 0; k < kSlabBytes; ++k) columns_of_a[k][row] = extended(bytes_of_row(a[row])[k]);
  }
  for (unsigned column = 0; column < n; ++column) {
    Words sums[kVectors] = {};
    if (accumulate) std::memcpy(sums, d + column * pitch, sizeof sums);
    for (unsigned k = 0; k < kSlabBytes; ++k) {
      const auto factor = extended(bytes_of_row(b[column])[k]);
      for (unsigned v = 0; v < kVectors; ++v) {
        Words part;
        std::memcpy(&part, &columns_of_a[k][v * kLanes], sizeof part);
        sums[v] += part * factor;
      }
    }
    std::memcpy(d + column * pitch, sums, sizeof sums);
  }
}

GEMM_FOR_WIDE_VECTORS
void multiply_fp8(SlabTypes types, const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                  unsigned pitch) {
  const int fraction = fp8_fraction(types.a) + fp8_fraction(types.b);
  Fp8Row row;
  bool finite_a[kSlabRows];
  Fp8Rows rows_of_a[kVectors];
  for (unsigned i = 0; i < kSlabRows; ++i) {
    unpack(types.a, bytes_of_row(a[i]), row);
    finite_a[i] = row.finite;
    for (int k = 0; k < kFp8Depth; ++k) {
      rows_of_a[i / kLanes].significand[k][i % kLanes] = row.significand[k];
      rows_of_a[i / kLanes].exponent[k][i % kLanes] = row.exponent[k];
    }
  }
  for (unsigned column = 0; column < n; ++column) {
    unpack(types.b, bytes_of_row(b[column]), row);
    for (unsigned v = 0; v < kVectors; ++v) {
      float* const sums = d + column * pitch + v * kLanes;
      Integers significand{};
      Integers exponent = significand + kNoExponent;
      for (unsigned lane = 0; lane < kLanes && accumulate; ++lane) {
        if (!std::isfinite(sums[lane])) continue;
        const Aligned c = split(sums[lane]);
        significand[lane] = c.significand;
        exponent[lane] = c.exponent;
      }
      const Fp8Rows& rows = rows_of_a[v];
      Integers largest = exponent;
      for (int k = 0; k < kFp8Depth; ++k) {
        const Integers of_product = rows.exponent[k] + row.exponent[k];
        largest = of_product > largest ? of_product : largest;
      }
      const Integers most = Integers{} + 31;  // places that a part can be moved
      Integers places = 23 - kFp8Fraction + largest - exponent;
      Integers kept = (significand < 0 ? -significand : significand) >> (places < most ? places : most);
      Integers sum = significand < 0 ? -kept : kept;  // in units of 2^(largest - 13)
      for (int k = 0; k < kFp8Depth; ++k) {
        const Integers product = rows.significand[k] * row.significand[k];
        places = largest - (rows.exponent[k] + row.exponent[k]);
        kept = ((product < 0 ? -product : product) << (kFp8Fraction - fraction)) >>
               (places < most ? places : most);
        sum += product < 0 ? -kept : kept;
      }
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        const unsigned i = v * kLanes + lane;
        const float before = accumulate ? sums[lane] : 0;
        sums[lane] = finite_a[i] && row.finite && std::isfinite(before)
                         ? join(sum[lane], largest[lane])
                         : add_special(types, bytes_of_row(a[i]), bytes_of_row(b[column]), before);
      }
    }
  }
}

}  // namespace

GEMM_FOR_WIDE_VECTORS
void multiply_slab(const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch) {
  alignas(64) float columns_of_a[kSlabDepth][kSlabRows];
  for (unsigned row = 0; row < kSlabRows; ++row) {
    for (unsigned k = 0; k < kSlabDepth; ++k) columns_of_a[k][row] = from_bf16(a[row][k]);
  }
  for (unsigned first = 0; first < n; first += kColumns) {
    Vector sums[kColumns][kVectors] = {};
    for (unsigned i = 0; i < kColumns && accumulate; ++i)
      std::memcpy(sums[i], d + (first + i) * pitch, sizeof sums[i]);
    for (unsigned k = 0; k < kSlabDepth; ++k) {
#pragma GCC unroll 4
      for (unsigned v = 0; v < kVectors; ++v) {
        Vector column;
        std::memcpy(&column, &columns_of_a[k][v * kLanes], sizeof column);
#pragma GCC unroll 4
        for (unsigned i = 0; i < kColumns; ++i) sums[i][v] += column * from_bf16(b[first + i][k]);
      }
    }
    for (unsigned i = 0; i < kColumns; ++i) std::memcpy(d + (first + i) * pitch, sums[i], sizeof sums[i]);
  }
}

void multiply_slab(SlabTypes types, const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch) {
  if (types == SlabTypes{}) {
    multiply_slab(a, b, n, accumulate, d, pitch);
  } else if (types.a == gemm::Type::kInt8) {
    multiply_integers(a, b, n, accumulate, d, pitch);
  } else if (gemm::is_fp8(types.a)) {
    multiply_fp8(types, a, b, n, accumulate, d, pitch);
  } else {
    multiply_floats(types, a, b, n, accumulate, d, pitch);
  }
}

float add_fp8_products(SlabTypes types, const std::uint8_t* a, const std::uint8_t* b, float c) {
  SlabRow rows_of_a[kSlabRows] = {};
  SlabRow row_of_b[1];
  float d[kSlabRows] = {c};
  std::memcpy(rows_of_a[0], a, kSlabBytes);
  std::memcpy(row_of_b[0], b, kSlabBytes);
  multiply_fp8(types, rows_of_a, row_of_b, 1, true, d, kSlabRows);
  return d[0];
}

}  // namespace emulator
