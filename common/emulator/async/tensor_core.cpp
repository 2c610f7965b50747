#include "emulator/async/tensor_core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

// The host's widest vectors, picked when the program starts: AVX-512, AVX2 with fused multiply-add, or what
// every x86-64 has. Not under the sanitizers: they start after that.
#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define GEMM_FOR_WIDE_VECTORS __attribute__((target_clones("avx512f", "arch=x86-64-v3", "default")))
#else
#define GEMM_FOR_WIDE_VECTORS
#endif

namespace emulator {
namespace {

constexpr unsigned kLanes = 16;
constexpr unsigned kColumnBlock = 16;
constexpr unsigned kColumns = 4;  // at a time: their accumulators stay in registers over the whole depth
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Words = std::uint32_t __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));

/// The operands of a slab as values: A transposed, so that a vector holds rows of one column.
template <typename Vector, unsigned kDepth>
struct Operands {
  using Value = std::remove_cvref_t<decltype(Vector{}[0])>;
  alignas(64) Value a[kDepth][kSlabRows];     // [k][m]
  alignas(64) Value b[kColumnBlock][kDepth];  // [n][k], some of the columns: a fiber's stack is small
};

/// 16 rows of four columns of D. Inlined into each function that is compiled for several vector units.
template <typename Vector, unsigned kDepth>
[[gnu::always_inline]] inline void multiply_columns(const Operands<Vector, kDepth>& operands, unsigned row,
                                                    unsigned column, bool accumulate, float* d,
                                                    unsigned pitch) {
  float* const to = d + std::size_t{column} * pitch + row;
  Vector sums[kColumns] = {};
  if (accumulate) {
#pragma GCC unroll 4
    for (unsigned i = 0; i < kColumns; ++i)
      std::memcpy(&sums[i], to + std::size_t{i} * pitch, sizeof sums[i]);
  }
#pragma GCC unroll 32
  for (unsigned k = 0; k < kDepth; ++k) {
    Vector part;
    std::memcpy(&part, &operands.a[k][row], sizeof part);
#pragma GCC unroll 4
    for (unsigned i = 0; i < kColumns; ++i) sums[i] += part * operands.b[column + i][k];
  }
#pragma GCC unroll 4
  for (unsigned i = 0; i < kColumns; ++i) std::memcpy(to + std::size_t{i} * pitch, &sums[i], sizeof sums[i]);
}

/// value_of_b(column, k) is an element of B.
template <typename Vector, unsigned kDepth, typename ValueOfB>
[[gnu::always_inline]] inline void multiply_all(Operands<Vector, kDepth>& operands, ValueOfB value_of_b,
                                                unsigned n, bool accumulate, float* d, unsigned pitch) {
  for (unsigned first = 0; first < n; first += kColumnBlock) {
    const unsigned columns = std::min(n - first, kColumnBlock);
    for (unsigned column = 0; column < columns; ++column) {
      for (unsigned k = 0; k < kDepth; ++k) operands.b[column][k] = value_of_b(first + column, k);
    }
    for (unsigned row = 0; row < kSlabRows; row += kLanes) {
      for (unsigned column = 0; column < columns; column += kColumns)
        multiply_columns(operands, row, column, accumulate, d + std::size_t{first} * pitch, pitch);
    }
  }
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr int kFp8Depth = 32;
// Of fp8 a vector is what AVX2 compares at once: comparisons of longer ones are done lane by lane.
constexpr unsigned kFp8Lanes = 8;
constexpr unsigned kFp8Vectors = kSlabRows / kFp8Lanes;
using Integers = std::int32_t __attribute__((vector_size(kFp8Lanes * sizeof(std::int32_t))));
using Fp8Floats = float __attribute__((vector_size(kFp8Lanes * sizeof(float))));
constexpr int kFp8Fraction = 13;
constexpr int kNoExponent = -1000;  // of a zero

/// What an fp8 factor is: significand * 2^(exponent - fraction bits of the type), a multiple of 2^unit.
struct Fp8Factor {
  std::int32_t significand = 0;
  std::int32_t exponent = kNoExponent;
  std::int32_t unit = -kNoExponent;
  float value = 0;
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
    factor.value = fp8_value(type, static_cast<std::uint8_t>(bits));
    factor.finite = std::isfinite(factor.value);
    factor.significand = static_cast<int>(bits & ((1u << fraction) - 1)) + (field > 0 ? 1 << fraction : 0);
    if (factor.significand != 0) {
      factor.exponent = std::max(field, 1) - bias;
      factor.unit =
          factor.exponent - fraction + std::countr_zero(static_cast<std::uint32_t>(factor.significand));
    }
    if ((bits & 0x80u) != 0) factor.significand = -factor.significand;
  }
  return factors;
}

const std::array<Fp8Factor, 256>& fp8_factors(gemm::Type type) {
  static const std::array<Fp8Factor, 256> kE4m3 = make_factors(gemm::Type::kE4m3);
  static const std::array<Fp8Factor, 256> kE5m2 = make_factors(gemm::Type::kE5m2);
  return type == gemm::Type::kE4m3 ? kE4m3 : kE5m2;
}

/// Of some factors: are all finite, the largest exponent, and what all are multiples of.
struct Fp8Range {
  bool finite = true;
  int largest = kNoExponent;
  int unit = -kNoExponent;

  void add(const Fp8Factor& factor) {
    finite = finite && factor.finite;
    largest = std::max(largest, factor.exponent);
    unit = std::min(unit, factor.unit);
  }
};

/// 8 rows of A, transposed; or, with integers and floats in the place of vectors, a row of B.
template <typename Integer, typename Float>
struct Fp8Operand {
  Integer significand[kFp8Depth];
  Integer exponent[kFp8Depth];
  Float value[kFp8Depth];
  Fp8Range range;
};
using Fp8Rows = Fp8Operand<Integers, Fp8Floats>;
using Fp8Column = Fp8Operand<std::int32_t, float>;

Fp8Column unpack(gemm::Type type, const std::uint8_t* row) {
  const std::array<Fp8Factor, 256>& factors = fp8_factors(type);
  Fp8Column to;
  for (int k = 0; k < kFp8Depth; ++k) {
    const Fp8Factor& factor = factors[row[k]];
    to.significand[k] = factor.significand;
    to.exponent[k] = factor.exponent;
    to.value[k] = factor.value;
    to.range.add(factor);
  }
  return to;
}

/// 2^exponent, of a normal number.
constexpr float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
}

[[gnu::always_inline]] inline bool any(const Integers& lanes) {
  std::uint64_t words[kFp8Lanes / 2];
  std::memcpy(words, &lanes, sizeof words);
  std::uint64_t all = 0;
  for (const std::uint64_t word : words) all |= word;
  return all != 0;
}

/// The low 10 of a binary32's 23 bits of fraction, which an accumulator does not have.
constexpr std::int32_t kCutBits = (1 << (23 - kFp8Fraction)) - 1;

/// sums += a * b where nothing that is added loses a bit on the way: all are multiples of what is kept of the
/// largest. Then only the sum is cut, and binary32 has room for it. False where that is not certain, and
/// nothing is done.
[[gnu::always_inline]] inline bool add_exactly(const Fp8Rows& a, const Fp8Column& b, Fp8Floats& sums) {
  const int largest = a.range.largest + b.range.largest;
  const int unit = a.range.unit + b.range.unit;
  if (!a.range.finite || !b.range.finite || largest < -100 || largest - kFp8Fraction > unit) return false;
  Integers bits;
  std::memcpy(&bits, &sums, sizeof bits);
  const Fp8Floats in_units = sums * power_of_two(kFp8Fraction - largest);
  const float most = power_of_two(unit + kFp8Fraction + 1);
  const Integers inexact = (bits & kCutBits) != 0;
  const Integers large = !(sums < most && sums > -most);  // NaN, too
  const Integers broken =
      __builtin_convertvector(__builtin_convertvector(in_units, Integers), Fp8Floats) != in_units;
  if (any(inexact | large | broken)) return false;
  Fp8Floats parts[4] = {sums};
#pragma GCC unroll 8
  for (int k = 0; k < kFp8Depth; k += 4) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) parts[i] += a.value[k + i] * b.value[k + i];
  }
  sums = parts[0] + parts[1] + (parts[2] + parts[3]);
  std::memcpy(&bits, &sums, sizeof bits);
  bits &= ~kCutBits;
  std::memcpy(&sums, &bits, sizeof bits);
  sums += 0.0f;  // -0 becomes 0
  return true;
}

/// sums += a * b with everything aligned to the largest exponent, and cut. False where a number is not finite
/// or the result may be subnormal, and nothing is done.
[[gnu::always_inline]] inline bool add_aligned(int fraction, const Fp8Rows& a, const Fp8Column& b,
                                               Fp8Floats& sums) {
  Integers bits;
  std::memcpy(&bits, &sums, sizeof bits);
  const Integers field = bits >> 23 & 255;
  if (!a.range.finite || !b.range.finite || any(field == 255)) return false;
  const Integers mantissa = bits & 0x7fffff;
  Integers significand = field == 0 ? mantissa : mantissa | 1 << 23;  // * 2^(exponent - 23)
  const Integers exponent =
      significand == 0 ? Integers{} + kNoExponent : (field == 0 ? Integers{} + 1 : field) - 127;
  Integers largest = exponent;
  for (int k = 0; k < kFp8Depth; ++k) {
    const Integers of_product = a.exponent[k] + b.exponent[k];
    largest = of_product > largest ? of_product : largest;
  }
  const Integers none = largest <= kNoExponent / 2;
  if (any((none == 0) & ((largest < -100) | (largest > 100)))) return false;
  largest = none ? Integers{} : largest;
  const Integers most = Integers{} + 31;  // places that a part can be moved
  Integers places = 23 - kFp8Fraction + largest - exponent;
  Integers kept = significand >> (places < most ? places : most);
  Integers sum = bits < 0 ? -kept : kept;  // in units of 2^(largest - 13)
  for (int k = 0; k < kFp8Depth; ++k) {
    const Integers product = a.significand[k] * b.significand[k];
    places = largest - (a.exponent[k] + b.exponent[k]);
    kept =
        ((product < 0 ? -product : product) << (kFp8Fraction - fraction)) >> (places < most ? places : most);
    sum += product < 0 ? -kept : kept;
  }
  sums = __builtin_convertvector(sum, Fp8Floats);
  std::memcpy(&bits, &sums, sizeof bits);
  bits &= ~kCutBits;  // of which as many bits are kept as the accumulator has
  std::memcpy(&sums, &bits, sizeof bits);
  const Integers scale = (largest - kFp8Fraction + 127) << 23;
  Fp8Floats factor;
  std::memcpy(&factor, &scale, sizeof factor);
  sums *= factor;
  return true;
}

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

/// One sum: infinities and NaNs, for which any order of additions gives the same, and the ends of binary32's
/// range.
float add_one(SlabTypes types, const std::uint8_t* a, const std::uint8_t* b, float c) {
  const std::array<Fp8Factor, 256>& factors_a = fp8_factors(types.a);
  const std::array<Fp8Factor, 256>& factors_b = fp8_factors(types.b);
  const int fraction = fp8_fraction(types.a) + fp8_fraction(types.b);
  bool finite = std::isfinite(c);
  float any_order = c;
  const Aligned start = finite ? split(c) : Aligned{};
  int largest = start.exponent;
  for (int k = 0; k < kFp8Depth; ++k) {
    const Fp8Factor& x = factors_a[a[k]];
    const Fp8Factor& y = factors_b[b[k]];
    finite = finite && x.finite && y.finite;
    any_order += x.value * y.value;
    largest = std::max(largest, x.exponent + y.exponent);
  }
  if (!finite) return any_order;
  const auto kept = [](std::int32_t value, int places) {
    const std::int32_t magnitude = std::abs(value) >> std::min(places, 31);
    return value < 0 ? -magnitude : magnitude;
  };
  std::int32_t sum = kept(start.significand, 23 - kFp8Fraction + largest - start.exponent);
  for (int k = 0; k < kFp8Depth; ++k) {
    const Fp8Factor& x = factors_a[a[k]];
    const Fp8Factor& y = factors_b[b[k]];
    sum += kept(x.significand * y.significand * (1 << (kFp8Fraction - fraction)),
                largest - (x.exponent + y.exponent));
  }
  const int excess = std::bit_width(static_cast<std::uint32_t>(std::abs(sum))) - (kFp8Fraction + 1);
  if (excess > 0) sum = sum / (1 << excess) * (1 << excess);
  return sum == 0 ? 0 : std::ldexp(static_cast<float>(sum), largest - kFp8Fraction);
}

/// Operands that are exact in binary32, whose sums are formed there: bf16, fp16, tf32.
float float_element(gemm::Type type, const std::uint8_t* row, unsigned k) {
  std::uint32_t wide = 0;
  std::uint16_t half = 0;
  if (type == gemm::Type::kTf32) {
    std::memcpy(&wide, row + std::size_t{4} * k, sizeof wide);
    return gemm::to_float(gemm::tf32{wide});
  }
  std::memcpy(&half, row + std::size_t{2} * k, sizeof half);
  return type == gemm::Type::kFp16 ? gemm::to_float(gemm::fp16{half}) : from_bf16(half);
}

const std::uint8_t* bytes_of_row(const SlabRow& row) {
  return reinterpret_cast<const std::uint8_t*>(row);
}

template <unsigned kDepth>
[[gnu::always_inline]] inline void multiply_floats(SlabTypes types, const SlabRow* a, const SlabRow* b,
                                                   unsigned n, bool accumulate, float* d, unsigned pitch) {
  Operands<Floats, kDepth> operands;
  for (unsigned row = 0; row < kSlabRows; ++row) {
    for (unsigned k = 0; k < kDepth; ++k)
      operands.a[k][row] = float_element(types.a, bytes_of_row(a[row]), k);
  }
  multiply_all(
      operands,
      [&](unsigned column, unsigned k) { return float_element(types.b, bytes_of_row(b[column]), k); }, n,
      accumulate, d, pitch);
}

GEMM_FOR_WIDE_VECTORS
void multiply_halves(SlabTypes types, const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate,
                     float* d, unsigned pitch) {
  multiply_floats<kSlabDepth>(types, a, b, n, accumulate, d, pitch);
}

GEMM_FOR_WIDE_VECTORS
void multiply_tf32(SlabTypes types, const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch) {
  multiply_floats<kSlabDepth / 2>(types, a, b, n, accumulate, d, pitch);
}

/// An int8, extended to 32 bits, modulo 2^32.
std::uint32_t extended(std::uint8_t bits) {
  return (bits ^ 0x80u) - 0x80u;
}

GEMM_FOR_WIDE_VECTORS
void multiply_integers(const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                       unsigned pitch) {
  Operands<Words, kSlabBytes> operands;
  for (unsigned row = 0; row < kSlabRows; ++row) {
    for (unsigned k = 0; k < kSlabBytes; ++k) operands.a[k][row] = extended(bytes_of_row(a[row])[k]);
  }
  multiply_all(
      operands, [&](unsigned column, unsigned k) { return extended(bytes_of_row(b[column])[k]); }, n,
      accumulate, d, pitch);
}

GEMM_FOR_WIDE_VECTORS
void multiply_fp8(SlabTypes types, const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                  unsigned pitch) {
  const int fraction = fp8_fraction(types.a) + fp8_fraction(types.b);
  const std::array<Fp8Factor, 256>& factors = fp8_factors(types.a);
  Fp8Rows rows_of_a[kFp8Vectors];
  for (unsigned i = 0; i < kSlabRows; ++i) {
    Fp8Rows& rows = rows_of_a[i / kFp8Lanes];
    for (int k = 0; k < kFp8Depth; ++k) {
      const Fp8Factor& factor = factors[bytes_of_row(a[i])[k]];
      rows.significand[k][i % kFp8Lanes] = factor.significand;
      rows.exponent[k][i % kFp8Lanes] = factor.exponent;
      rows.value[k][i % kFp8Lanes] = factor.value;
      rows.range.add(factor);
    }
  }
  for (unsigned column = 0; column < n; ++column) {
    const Fp8Column column_of_b = unpack(types.b, bytes_of_row(b[column]));
    for (unsigned v = 0; v < kFp8Vectors; ++v) {
      float* const to = d + std::size_t{column} * pitch + std::size_t{v} * kFp8Lanes;
      Fp8Floats sums{};
      if (accumulate) std::memcpy(&sums, to, sizeof sums);
      if (!add_exactly(rows_of_a[v], column_of_b, sums) &&
          !add_aligned(fraction, rows_of_a[v], column_of_b, sums)) {
        for (unsigned lane = 0; lane < kFp8Lanes; ++lane)
          sums[lane] =
              add_one(types, bytes_of_row(a[v * kFp8Lanes + lane]), bytes_of_row(b[column]), sums[lane]);
      }
      std::memcpy(to, &sums, sizeof sums);
    }
  }
}

using gemm::ptx::ScaledInput;
using gemm::ptx::ScaledKind;

/// `width` bits of a row from bit `first` on; the lower bits come first.
std::uint8_t bits_of_row(const std::uint8_t* row, unsigned first, unsigned width) {
  std::uint16_t word = row[first / 8];
  if (first % 8 + width > 8) word = static_cast<std::uint16_t>(word | row[first / 8 + 1] << 8);
  return static_cast<std::uint8_t>(word >> first % 8 & ((1u << width) - 1));
}

/// Element k of a row. In .kind::mxf8f6f4 16 elements have 16 bytes, whatever they are.
float scaled_element(ScaledKind kind, ScaledInput type, const std::uint8_t* row, unsigned k) {
  if (kind != ScaledKind::kMxf8f6f4) return gemm::to_float(gemm::e2m1{bits_of_row(row, 4 * k, 4)});
  const std::uint8_t* const group = row + std::size_t{k / 16} * 16;
  const unsigned i = k % 16;
  switch (type) {
    case ScaledInput::kE4m3:
      return gemm::to_float(gemm::e4m3{group[i]});
    case ScaledInput::kE5m2:
      return gemm::to_float(gemm::e5m2{group[i]});
    case ScaledInput::kE2m3:
      return gemm::to_float(gemm::e2m3{bits_of_row(group, 6 * i, 6)});
    case ScaledInput::kE3m2:
      return gemm::to_float(gemm::e3m2{bits_of_row(group, 6 * i, 6)});
    case ScaledInput::kE2m1:
      break;
  }
  return gemm::to_float(gemm::e2m1{bits_of_row(group, 4 * i, 4)});
}

/// A row as the numbers that it stands for, one every `pitch`.
void unpack_scaled(ScaledKind kind, ScaledInput type, gemm::ptx::ScaleType scales, bool negate,
                   const SlabRow& row, const RowScales& of_row, double* to, std::size_t pitch) {
  const auto depth = static_cast<unsigned>(gemm::ptx::scaled_depth(kind));
  const auto block = static_cast<unsigned>(gemm::ptx::scale_block(kind));
  for (unsigned k = 0; k < depth; ++k) {
    const std::uint8_t bits = of_row[k / block];
    const float scale = scales == gemm::ptx::ScaleType::kUe8m0 ? gemm::to_float(gemm::ue8m0{bits})
                                                               : gemm::to_float(gemm::ue4m3{bits});
    const double value =
        static_cast<double>(scale) * static_cast<double>(scaled_element(kind, type, bytes_of_row(row), k));
    to[k * pitch] = negate ? -value : value;
  }
}

using Doubles = double __attribute__((vector_size(8 * sizeof(double))));

constexpr std::size_t kUnitBytes = 16;

}  // namespace

void widen_elements(unsigned bits, std::uint8_t* unit) {
  std::uint8_t packed[kUnitBytes];
  std::copy_n(unit, kUnitBytes, packed);
  for (unsigned i = 0; i < kUnitBytes; ++i)
    unit[i] = static_cast<std::uint8_t>(bits_of_row(packed, bits * i, bits) << (8 - bits) / 2);
}

void pack_elements(unsigned bits, std::uint8_t* unit) {
  std::uint8_t packed[kUnitBytes] = {};
  for (unsigned i = 0; i < kUnitBytes; ++i) {
    const unsigned element = (unit[i] >> (8 - bits) / 2 & ((1u << bits) - 1)) << bits * i % 8;
    std::uint8_t* const to = packed + bits * i / 8;
    to[0] = static_cast<std::uint8_t>(to[0] | element);
    if (element > 0xff) to[1] = static_cast<std::uint8_t>(to[1] | element >> 8);
  }
  std::copy_n(packed, kUnitBytes, unit);
}

GEMM_FOR_WIDE_VECTORS
void multiply_scaled(ScaledKind kind, const gemm::ptx::ScaledInstruction& instruction, const SlabRow* a,
                     const SlabRow* b, const RowScales* scales_a, const RowScales* scales_b, bool accumulate,
                     float* d, unsigned pitch) {
  constexpr unsigned kRows = 2 * kSlabRows;
  constexpr unsigned kVectors = 4;  // at a time
  constexpr unsigned kWidth = sizeof(Doubles) / sizeof(double);
  const auto depth = static_cast<unsigned>(gemm::ptx::scaled_depth(kind));
  std::vector<double> rows(std::size_t{depth} * kRows);  // [k][m]
  for (unsigned row = 0; row < kRows; ++row)
    unpack_scaled(kind, instruction.a, instruction.scales, instruction.negate_a, a[row], scales_a[row],
                  &rows[row], kRows);
  double of_b[2 * kSlabBytes];
  for (unsigned column = 0; column < instruction.n; ++column) {
    unpack_scaled(kind, instruction.b, instruction.scales, instruction.negate_b, b[column], scales_b[column],
                  of_b, 1);
    float* const to = d + std::size_t{column} * pitch;
    for (unsigned row = 0; row < kRows; row += kVectors * kWidth) {
      Doubles sums[kVectors] = {};
      for (unsigned k = 0; k < depth; ++k) {
#pragma GCC unroll 4
        for (unsigned i = 0; i < kVectors; ++i) {
          Doubles part;
          std::memcpy(&part, &rows[std::size_t{k} * kRows + row + std::size_t{i} * kWidth], sizeof part);
          sums[i] += part * of_b[k];
        }
      }
      for (unsigned i = 0; i < kVectors * kWidth; ++i) {
        const double before = accumulate ? static_cast<double>(to[row + i]) : 0;
        to[row + i] = static_cast<float>(before + sums[i / kWidth][i % kWidth]);
      }
    }
  }
}

GEMM_FOR_WIDE_VECTORS
void multiply_slab(const SlabRow* a, const SlabRow* b, unsigned n, bool accumulate, float* d,
                   unsigned pitch) {
  Operands<Floats, kSlabDepth> operands;
  for (unsigned row = 0; row < kSlabRows; ++row) {
    for (unsigned k = 0; k < kSlabDepth; ++k) operands.a[k][row] = from_bf16(a[row][k]);
  }
  multiply_all(
      operands, [&](unsigned column, unsigned k) { return from_bf16(b[column][k]); }, n, accumulate, d,
      pitch);
}

std::uint32_t f16_bits(float value) {
  constexpr float kFirstInfinite = 65520;
  if (value >= kFirstInfinite) return 0x7c00;
  if (value <= -kFirstInfinite) return 0xfc00;
  return gemm::to_fp16(value).bits;
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
    (types.a == gemm::Type::kTf32 ? multiply_tf32 : multiply_halves)(types, a, b, n, accumulate, d, pitch);
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
