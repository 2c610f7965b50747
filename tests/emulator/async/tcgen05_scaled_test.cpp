// tcgen05.mma with .block_scale: its results in every kind and type, and for each rule a kernel that breaks
// it and a neighbour that does not.
#include <bit>
#include <cmath>
#include <random>

#include "emulator/tcgen05_tile.h"
#include "ptx/tcgen05_cp.cuh"
#include "ptx/tcgen05_mma_scaled.cuh"

namespace tcgen05_scaled_test {

using namespace emulator_test;

namespace {

using ptx::ScaledInput;
using ptx::ScaledInstruction;
using ptx::ScaledKind;
using ptx::ScaleType;

constexpr int kN = 40;  // two columns of scales, of which the second is half empty
constexpr int kRowBytes = 128;
constexpr int kPieces = 4;  // of 512 bytes: the scales of 128 rows and 4 blocks
constexpr std::uint32_t kColumns = 256;
constexpr std::uint32_t kScalesA = 64;
constexpr std::uint32_t kScalesB = 96;
constexpr std::uint32_t kOfA = 128;  // columns of A, where it is in tensor memory

struct alignas(1024) Shared {
  bf16 a[128 * kK];  // 128 rows of 128 bytes, 128-byte swizzle
  bf16 b[kN * kK];
  alignas(128) std::uint32_t scales_a[kPieces * 128];
  alignas(128) std::uint32_t scales_b[kPieces * 128];
  std::uint64_t done, other;
  std::uint32_t tensor_memory;
};

constexpr ptx::LaunchShape kShape = one_cta(128, sizeof(Shared));

/// What a kernel does wrong, or beside it.
enum class Fault {
  kNone,
  kCopiedByAnother,  // and not waited for
  kCopiedByAnotherAndWaited,
  kOverwritten,  // the scales of the first half, while it may read them
  kOverwrittenBehindWait,
  kOddId,
  kIdOfFour,
  kUnsignedScales,  // ue4m3 where there is no such thing
  kReservedBit,
  kLane,
  kBehindAllocation,
  kNoScalesOfB,
  kOneQuarter,  // the other three hold something else
  kOnAccumulator,
  kAInTensorMemory,
  kAInTensorMemoryNotExpanded,
};

struct Form {
  ScaledKind kind = ScaledKind::kMxf8f6f4;
  ScaledInput a = ScaledInput::kE4m3;
  ScaledInput b = ScaledInput::kE4m3;
  ScaleType scales = ScaleType::kUe8m0;
};

std::uint64_t __device__ piece(const std::uint32_t* scales, int index) {
  return ptx::tcgen05_encode({.address = ptx::shared_address(scales + index * 128),
                              .leading_bytes = 16,  // ignored
                              .stride_bytes = 128});
}

void __device__ copy_scales(Shared& shared, std::uint32_t base, Fault fault) {
  for (int i = 0; i < kPieces; ++i) {
    const auto column = static_cast<std::uint32_t>(4 * i);
    if (fault == Fault::kOneQuarter) {  // rows 0 to 127 of all pieces
      if (i == 0) ptx::tcgen05_cp_128x128b(base + kScalesA, piece(shared.scales_a, 0));
    } else {
      ptx::tcgen05_cp_32x128b_warpx4(base + kScalesA + column, piece(shared.scales_a, i));
    }
    if (fault != Fault::kNoScalesOfB)
      ptx::tcgen05_cp_32x128b_warpx4(base + kScalesB + column, piece(shared.scales_b, i));
  }
}

/// 32 elements of each row of A, a byte each.
void __device__ copy_a(ScaledInput type, std::uint32_t to, std::uint64_t from, bool expands) {
  const unsigned bits = expands ? ptx::bits_of(type) : 8;
  if (bits == 4) return ptx::tcgen05_cp_128x256b_b8x16_b4x16_p64(to, from);
  if (bits == 6) return ptx::tcgen05_cp_128x256b_b8x16_b6x16_p32(to, from);
  ptx::tcgen05_cp_128x256b(to, from);
}

void __device__ multiply_one(ScaledKind kind, std::uint32_t d, std::uint64_t a, std::uint64_t b,
                             std::uint32_t instruction, std::uint32_t scale_a, std::uint32_t scale_b,
                             bool accumulate) {
  switch (kind) {
    case ScaledKind::kMxf8f6f4:
      return ptx::tcgen05_mma_mxf8f6f4_ss(d, a, b, instruction, scale_a, scale_b, accumulate);
    case ScaledKind::kMxf4:
      return ptx::tcgen05_mma_mxf4_ss(d, a, b, instruction, scale_a, scale_b, accumulate);
    case ScaledKind::kMxf4Nvf4x2:
      return ptx::tcgen05_mma_mxf4nvf4_ss<2>(d, a, b, instruction, scale_a, scale_b, accumulate);
    case ScaledKind::kMxf4Nvf4x4:
      return ptx::tcgen05_mma_mxf4nvf4_ss<4>(d, a, b, instruction, scale_a, scale_b, accumulate);
  }
}

/// Multiplies 128 bytes of each row, in four instructions.
__global__ void multiply(Form form, const bf16* a, const bf16* b, const std::uint32_t* scales_a,
                         const std::uint32_t* scales_b, float* out, int faulty) {
  const auto fault = static_cast<Fault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, a, 128);
  fill(shared.b, b, kN);
  for (int i = static_cast<int>(threadIdx.x); i < kPieces * 128; i += 128) {
    ptx::st_shared(&shared.scales_a[i], ptx::ld_global(scales_a + i));
    ptx::st_shared(&shared.scales_b[i], ptx::ld_global(scales_b + i));
  }
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_alloc(&shared.tensor_memory, kColumns);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 1);
    ptx::mbarrier_init(&shared.other, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const std::uint32_t base = ptx::ld_shared(&shared.tensor_memory);
  const bool by_another = fault == Fault::kCopiedByAnother || fault == Fault::kCopiedByAnotherAndWaited;
  if (by_another) {
    if (threadIdx.x == 32) {
      ptx::tcgen05_fence_after_thread_sync();
      copy_scales(shared, base, fault);
      ptx::tcgen05_commit(&shared.other);
      if (fault == Fault::kCopiedByAnotherAndWaited) wait(&shared.other, 0);
      ptx::tcgen05_fence_before_thread_sync();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    if (!by_another) copy_scales(shared, base, fault);
    const std::uint32_t bits =
        ptx::encode(form.kind, ScaledInstruction{.n = kN, .a = form.a, .b = form.b, .scales = form.scales}) ^
        (fault == Fault::kUnsignedScales ? 1u << 23 : 0u) ^ (fault == Fault::kReservedBit ? 1u << 6 : 0u);
    const int vector = ptx::scale_vector(form.kind);
    for (int i = 0; i < 4; ++i) {
      const int scale = i * vector;
      auto id = static_cast<std::uint32_t>(scale % 4);
      if (fault == Fault::kOddId) id = 1;
      if (fault == Fault::kIdOfFour) id = 2;
      auto scale_a = base + kScalesA + static_cast<std::uint32_t>(scale / 4 * 4);
      auto scale_b = base + kScalesB + static_cast<std::uint32_t>(scale / 4 * 4);
      if (fault == Fault::kLane) scale_a = ptx::tensor_memory_address(scale_a, 32, 0);
      if (fault == Fault::kBehindAllocation) scale_b = base + kColumns - 1;
      if (fault == Fault::kOnAccumulator) scale_b = base;
      if ((fault == Fault::kOverwritten || fault == Fault::kOverwrittenBehindWait) && i == 2) {
        if (fault == Fault::kOverwrittenBehindWait) {
          ptx::tcgen05_commit(&shared.other);
          wait(&shared.other, 0);
          ptx::tcgen05_fence_after_thread_sync();
        }
        ptx::tcgen05_cp_32x128b_warpx4(base + kScalesA, piece(shared.scales_a, 0));
      }
      if (fault == Fault::kAInTensorMemory || fault == Fault::kAInTensorMemoryNotExpanded) {
        const std::uint32_t a_columns = base + kOfA + static_cast<std::uint32_t>(8 * i);
        copy_a(form.a, a_columns, descriptor(shared.a, 16 * i), fault == Fault::kAInTensorMemory);
        ptx::tcgen05_mma_mxf8f6f4_ts(base, a_columns, descriptor(shared.b, 16 * i),
                                     ptx::with_scale_ids(bits, id), scale_a, scale_b, i > 0);
        continue;
      }
      multiply_one(form.kind, base, descriptor(shared.a, 16 * i), descriptor(shared.b, 16 * i),
                   ptx::with_scale_ids(bits, id), scale_a, scale_b, i > 0);
    }
    ptx::tcgen05_commit(&shared.done);
  }
  wait(&shared.done, 0);
  if (fault == Fault::kCopiedByAnother) wait(&shared.other, 0);
  ptx::tcgen05_fence_after_thread_sync();
  for (int column = 0; column < kN; column += 8) {
    float values[8];
    ptx::tcgen05_ld_32x32b_x8(values, lane_address(base) + static_cast<std::uint32_t>(column));
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 8; ++i)
      ptx::st_global(out + static_cast<int>(threadIdx.x) * kN + column + i, values[i]);
  }
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(base, kColumns);
}

/// A format by its fields, so that nothing here decodes as the emulator does.
struct Format {
  int exponent_bits, fraction_bits;
  int bits() const { return 1 + exponent_bits + fraction_bits; }
  double value(unsigned code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const auto fraction = static_cast<double>(code & ((1u << fraction_bits) - 1)) / (1 << fraction_bits);
    const auto exponent = static_cast<int>(code >> fraction_bits & ((1u << exponent_bits) - 1));
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return (code >> (exponent_bits + fraction_bits) & 1) != 0 ? -magnitude : magnitude;
  }
};

Format format_of(const Form& form, ScaledInput type) {
  if (form.kind != ScaledKind::kMxf8f6f4) return {2, 1};
  switch (type) {
    case ScaledInput::kE4m3:
      return {4, 3};
    case ScaledInput::kE5m2:
      return {5, 2};
    case ScaledInput::kE2m3:
      return {2, 3};
    case ScaledInput::kE3m2:
      return {3, 2};
    default:
      return {2, 1};
  }
}

/// Rows of 128 bytes, and the numbers in them: [row][element].
struct Rows {
  std::vector<bf16> bytes;
  std::vector<double> values;
  int elements = 0;
};

Rows random_rows(const Form& form, ScaledInput type, int rows, std::mt19937& random) {
  const Format format = format_of(form, type);
  const bool packed = form.kind != ScaledKind::kMxf8f6f4;
  Rows made;
  made.elements = packed ? 256 : 128;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(rows * kRowBytes));
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < made.elements; ++k) {
      unsigned code = random() & ((1u << format.bits()) - 1);
      if (format.bits() == 8 && (code & 0x78u) == 0x78u) code ^= 0x40u;  // no NaN and no infinity
      made.values.push_back(format.value(code));
      // Where it lies, in bits: 16 elements have 16 bytes, or 8 where they are packed.
      const int first = packed ? 4 * k : k / 16 * 128 + k % 16 * format.bits();
      for (int bit = 0; bit < format.bits(); ++bit) {
        const int at = row * kRowBytes * 8 + first + bit;
        if ((code >> bit & 1) != 0)
          bytes[static_cast<std::size_t>(at / 8)] |= static_cast<std::uint8_t>(1 << at % 8);
      }
    }
  }
  for (std::size_t i = 0; i < bytes.size(); i += 2)
    made.bytes.push_back(std::bit_cast<bf16>(static_cast<std::uint16_t>(bytes[i] | bytes[i + 1] << 8)));
  return made;
}

/// Scales of 128 rows and 16 blocks, in pieces; and their values, [row][block].
struct Scales {
  std::vector<std::uint32_t> words;
  std::vector<double> values;
};

Scales random_scales(ScaleType type, std::mt19937& random) {
  std::vector<std::uint8_t> bytes(kPieces * 512);
  Scales made;
  for (int row = 0; row < 128; ++row) {
    for (int block = 0; block < 16; ++block) {
      const auto code =
          static_cast<unsigned>(type == ScaleType::kUe8m0 ? 120 + random() % 15 : random() % 0x7f);
      bytes[static_cast<std::size_t>(block / 4 * 512 + row % 32 * 16 + row / 32 * 4 + block % 4)] =
          static_cast<std::uint8_t>(code);
      made.values.push_back(type == ScaleType::kUe8m0 ? std::ldexp(1.0, static_cast<int>(code) - 127)
                                                      : Format{4, 3}.value(code));
    }
  }
  for (std::size_t i = 0; i < bytes.size(); i += 4)
    made.words.push_back(bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 |
                         static_cast<std::uint32_t>(bytes[i + 3]) << 24);
  return made;
}

Outcome run_multiply(const Form& form, Fault fault = Fault::kNone, bool is_right = true) {
  std::mt19937 random(7);
  const Rows a = random_rows(form, form.a, 128, random);
  const Rows b = random_rows(form, form.b, kN, random);
  const Scales scales_a = random_scales(form.scales, random);
  const Scales scales_b = random_scales(form.scales, random);
  const DeviceArray<bf16> device_a(a.bytes, "A");
  const DeviceArray<bf16> device_b(b.bytes, "B");
  const DeviceArray<std::uint32_t> device_scales_a(scales_a.words, "scales of A");
  const DeviceArray<std::uint32_t> device_scales_b(scales_b.words, "scales of B");
  DeviceArray<float> out(128 * kN);
  const Outcome outcome = run(multiply, kShape, form, device_a.get(), device_b.get(), device_scales_a.get(),
                              device_scales_b.get(), out.get(), static_cast<int>(fault));
  if (outcome.rule != "passed") return outcome;
  const std::vector<float> host = out.host();
  const int block = form.kind == ScaledKind::kMxf4Nvf4x4 ? 16 : 32;
  int wrong = 0;
  for (int i = 0; i < 128; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int first = 0; first < a.elements; first += a.elements / 4) {
        double part = 0;  // of an instruction, which rounds once
        for (int k = first; k < first + a.elements / 4; ++k)
          part += a.values[static_cast<std::size_t>(i * a.elements + k)] *
                  scales_a.values[static_cast<std::size_t>(i * 16 + k / block)] *
                  b.values[static_cast<std::size_t>(j * a.elements + k)] *
                  scales_b.values[static_cast<std::size_t>(j * 16 + k / block)];
        sum = static_cast<float>(static_cast<double>(sum) + part);
      }
      wrong += host[static_cast<std::size_t>(i * kN + j)] != sum;
    }
  }
  CHECK((wrong == 0) == is_right);
  return outcome;
}

// ---- a pair ----

constexpr int kPairN = 48;
constexpr int kPairRows = kPairN / 2;  // of B in each CTA

enum class PairFault { kNone, kScalesOfOwnRows, kCopiesForOneCta };

/// 32 bytes of each row in one instruction for two CTAs: each has 128 rows of A with their scales, half of
/// the rows of B, and the scales of all of them.
__global__ void multiply_in_pair(const bf16* a, const bf16* b, const std::uint32_t* scales_a,
                                 const std::uint32_t* scales_b, float* out, int faulty) {
  const auto fault = static_cast<PairFault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  fill(shared.a, a + rank * 128 * kK, 128);
  fill(shared.b, b + rank * kPairRows * kK, kPairRows);
  for (int i = static_cast<int>(threadIdx.x); i < 128; i += 128) {
    ptx::st_shared(&shared.scales_a[i], ptx::ld_global(scales_a + rank * 128 + i));
    const bool is_other = fault == PairFault::kScalesOfOwnRows && i / 32 != static_cast<int>(rank);
    ptx::st_shared(&shared.scales_b[i], is_other ? 0x7f7f7f7fu : ptx::ld_global(scales_b + i));
  }
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_alloc<2>(&shared.tensor_memory, kColumns);
  cluster_sync();
  const std::uint32_t base = ptx::ld_shared(&shared.tensor_memory);
  if (threadIdx.x == 0 && rank == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    if (fault == PairFault::kCopiesForOneCta) {
      ptx::tcgen05_cp_32x128b_warpx4(base + kScalesA, piece(shared.scales_a, 0));
    } else {
      ptx::tcgen05_cp_32x128b_warpx4<2>(base + kScalesA, piece(shared.scales_a, 0));
    }
    ptx::tcgen05_cp_32x128b_warpx4<2>(base + kScalesB, piece(shared.scales_b, 0));
    ptx::tcgen05_mma_mxf8f6f4_ss<2>(
        base, descriptor(shared.a, 0), descriptor(shared.b, 0),
        ptx::encode(ScaledKind::kMxf8f6f4, ScaledInstruction{.m = 256, .n = kPairN}), base + kScalesA,
        base + kScalesB, false);
    ptx::tcgen05_commit_multicast<2>(&shared.done, 3);
  }
  __syncwarp();
  while (!ptx::mbarrier_try_wait_parity_cluster(&shared.done, 0)) {
  }
  ptx::tcgen05_fence_after_thread_sync();
  for (int column = 0; column < kPairN; column += 8) {
    float values[8];
    ptx::tcgen05_ld_32x32b_x8(values, lane_address(base) + static_cast<std::uint32_t>(column));
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 8; ++i)
      ptx::st_global(out + (rank * 128 + threadIdx.x) * kPairN + static_cast<unsigned>(column + i),
                     values[i]);
  }
  __syncthreads();
  cluster_sync();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc<2>(base, kColumns);
}

/// With so many wrong elements, unless a rule is broken.
Outcome run_pair(PairFault fault, int& wrong) {
  std::mt19937 random(7);
  const Rows a = random_rows({}, ScaledInput::kE4m3, 256, random);
  const Rows b = random_rows({}, ScaledInput::kE4m3, kPairN, random);
  Scales scales[3];  // of the rows of A in each CTA, and of B: only the first blocks are used
  for (Scales& one : scales) one = random_scales(ScaleType::kUe8m0, random);
  std::vector<std::uint32_t> words(scales[0].words.begin(), scales[0].words.begin() + 128);
  words.insert(words.end(), scales[1].words.begin(), scales[1].words.begin() + 128);
  const DeviceArray<bf16> device_a(a.bytes, "A");
  const DeviceArray<bf16> device_b(b.bytes, "B");
  const DeviceArray<std::uint32_t> device_scales_a(words, "scales of A");
  const DeviceArray<std::uint32_t> device_scales_b(scales[2].words, "scales of B");
  DeviceArray<float> out(256 * kPairN);
  const Outcome outcome =
      run(multiply_in_pair, {.grid = {2}, .block = {128}, .cluster = {2}, .shared_bytes = sizeof(Shared)},
          device_a.get(), device_b.get(), device_scales_a.get(), device_scales_b.get(), out.get(),
          static_cast<int>(fault));
  wrong = 0;
  if (outcome.rule != "passed") return outcome;
  const std::vector<float> host = out.host();
  for (int i = 0; i < 256; ++i) {
    for (int j = 0; j < kPairN; ++j) {
      double sum = 0;
      for (int k = 0; k < 32; ++k)
        sum +=
            a.values[static_cast<std::size_t>(i * 128 + k)] * b.values[static_cast<std::size_t>(j * 128 + k)];
      sum *= scales[i / 128].values[static_cast<std::size_t>(i % 128 * 16)] *
             scales[2].values[static_cast<std::size_t>(j * 16)];
      wrong += host[static_cast<std::size_t>(i * kPairN + j)] != static_cast<float>(sum);
    }
  }
  return outcome;
}

constexpr Form kPacked{ScaledKind::kMxf4, ScaledInput::kE2m1, ScaledInput::kE2m1, ScaleType::kUe8m0};
constexpr Form kNvfp4{ScaledKind::kMxf4Nvf4x4, ScaledInput::kE2m1, ScaledInput::kE2m1, ScaleType::kUe4m3};

}  // namespace

TEST_CASE("scaled instruction descriptors are the bits of the PTX ISA, and come back") {
  CHECK(ptx::encode(ScaledKind::kMxf8f6f4, {.m = 128,
                                            .n = 256,
                                            .a = ScaledInput::kE5m2,
                                            .b = ScaledInput::kE2m1,
                                            .scale_a_id = 2,
                                            .scale_b_id = 1}) ==
        (1u << 4 | 1u << 7 | 5u << 10 | 32u << 17 | 1u << 23 | 1u << 27 | 2u << 29));
  for (const ScaledKind kind : {ScaledKind::kMxf8f6f4, ScaledKind::kMxf4, ScaledKind::kMxf4Nvf4x4}) {
    const bool packed = kind != ScaledKind::kMxf8f6f4;
    const ScaledInput type = packed ? ScaledInput::kE2m1 : ScaledInput::kE3m2;
    const ScaledInstruction one{.n = 8, .a = type, .b = type, .negate_b = true};
    CHECK(ptx::decode_scaled(kind, ptx::encode(kind, one)) == one);
    CHECK(ptx::scaled_instruction_fault(kind, ptx::encode(kind, one)) == nullptr);
  }
  const std::uint32_t good = ptx::encode(ScaledKind::kMxf8f6f4, {});
  for (const std::uint32_t bits :
       {good | 4u, good | 1u, good | 1u << 6, good | 1u << 24, good | 1u << 31, good | 2u << 7,
        good | 7u << 10, good & ~(1u << 23), good & ~(3u << 27), good & ~(0x3fu << 17), good | 0x3fu << 17}) {
    INFO(bits);
    CHECK(ptx::scaled_instruction_fault(ScaledKind::kMxf8f6f4, bits) != nullptr);
  }
  CHECK(ptx::scaled_instruction_fault(ScaledKind::kMxf8f6f4, ptx::with_scale_ids(good, 3)) == nullptr);
  CHECK(ptx::scaled_instruction_fault(ScaledKind::kMxf8f6f4, (good & ~(1u << 27)) | 2u << 27) != nullptr);
  CHECK(ptx::scaled_instruction_fault(ScaledKind::kMxf8f6f4, (good & ~(1u << 27)) | 2u << 27, 2) == nullptr);
}

TEST_CASE("block-scaled multiplications are exact in every kind and type") {
  CHECK_PASSES(run_multiply({}));
  for (const ScaledInput a :
       {ScaledInput::kE4m3, ScaledInput::kE5m2, ScaledInput::kE2m3, ScaledInput::kE3m2, ScaledInput::kE2m1}) {
    for (const ScaledInput b : {ScaledInput::kE4m3, ScaledInput::kE2m1}) {
      INFO(static_cast<int>(a) << " " << static_cast<int>(b));
      CHECK(run_multiply({.a = a, .b = b}).rule == "passed");
    }
  }
  Form form = kPacked;
  CHECK(run_multiply(form).rule == "passed");
  form.kind = ScaledKind::kMxf4Nvf4x2;
  CHECK(run_multiply(form).rule == "passed");
  form.kind = ScaledKind::kMxf4Nvf4x4;
  CHECK(run_multiply(form).rule == "passed");
  CHECK(run_multiply(kNvfp4).rule == "passed");
}

TEST_CASE(
    "scales are read behind the copy that brings them: at once in its thread, behind a wait in another") {
  CHECK_BREAKS("tcgen05-cp-not-waited", run_multiply({}, Fault::kCopiedByAnother));
  CHECK_PASSES(run_multiply({}, Fault::kCopiedByAnotherAndWaited));
  CHECK_BREAKS("tensor-memory-uninitialised", run_multiply({}, Fault::kNoScalesOfB));
  CHECK_BREAKS("tcgen05-mma-not-waited", run_multiply({}, Fault::kOnAccumulator));
}

TEST_CASE("A of a block-scaled multiplication may be in tensor memory, a byte for each element") {
  for (const ScaledInput a :
       {ScaledInput::kE4m3, ScaledInput::kE5m2, ScaledInput::kE2m3, ScaledInput::kE3m2, ScaledInput::kE2m1}) {
    INFO(static_cast<int>(a));
    CHECK(run_multiply({.a = a}, Fault::kAInTensorMemory).rule == "passed");
  }
  for (const ScaledInput a : {ScaledInput::kE2m3, ScaledInput::kE2m1})  // packed, as in shared memory
    CHECK(run_multiply({.a = a}, Fault::kAInTensorMemoryNotExpanded, false).rule == "passed");
}

TEST_CASE("each CTA of a pair has the scales of its rows of A, and those of all rows of B") {
  int wrong = 0;
  CHECK_PASSES(run_pair(PairFault::kNone, wrong));
  CHECK(wrong == 0);
  CHECK(run_pair(PairFault::kScalesOfOwnRows, wrong).rule == "passed");
  CHECK(wrong > 1000);
  CHECK_BREAKS("tcgen05-cta-group", run_pair(PairFault::kCopiesForOneCta, wrong));
}

TEST_CASE("scales stay until the multiplications that read them are over") {
  CHECK_BREAKS("tensor-memory-overwritten", run_multiply({}, Fault::kOverwritten));
  CHECK_PASSES(run_multiply({}, Fault::kOverwrittenBehindWait));
  check_text(run_multiply({}, Fault::kOverwritten).report,
             {"overwrites scales", "tcgen05_cp_32x128b_warpx4"});
}

TEST_CASE("a scale factor ID begins a vector of scales, and the types are those of the kind") {
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply(kPacked, Fault::kOddId));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply(kNvfp4, Fault::kIdOfFour));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply({}, Fault::kUnsignedScales));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply(kPacked, Fault::kUnsignedScales));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply({}, Fault::kReservedBit));
  check_text(run_multiply(kPacked, Fault::kOddId).report, {"neither 0 nor 2"});
}

TEST_CASE("scales are in allocated columns, and the same in all quarters of the lanes") {
  CHECK_BREAKS("tensor-memory-lanes", run_multiply({}, Fault::kLane));
  CHECK_BREAKS("tensor-memory-unallocated", run_multiply({}, Fault::kBehindAllocation));
  CHECK_BREAKS("tensor-memory-scales", run_multiply({}, Fault::kOneQuarter));
}

}  // namespace tcgen05_scaled_test
