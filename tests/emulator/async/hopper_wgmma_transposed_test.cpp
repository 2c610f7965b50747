// wgmma with MN-major operands: what it computes for every layout, and what its descriptors must say.
#include "ptx/wgmma_transposed.cuh"

#include "emulator/hopper_test.h"

namespace hopper_wgmma_transposed_test {

using namespace emulator_test;

namespace {

using ptx::MatrixDescriptor;
using ptx::Swizzle;

constexpr int kDepth = 32;  // elements of K: two slabs
constexpr int kMaxRows = 256;

struct alignas(1024) Shared {
  bf16 a[64 * 64];
  bf16 b[kMaxRows * 64];
  std::uint64_t full;
};

constexpr ptx::LaunchShape shape() {
  return one_cta(128, sizeof(Shared));
}

/// How a tile lies in shared memory, kDepth deep.
struct Layout {
  Swizzle swizzle;
  bool mn_major;

  constexpr int span() const { return swizzle == Swizzle::kNone ? 16 : ptx::span_bytes(swizzle); }
};

/// Byte offset of element (row, k). An MN-major panel has a line of one span for each k.
constexpr std::uint32_t place(const Layout& layout, int rows, int row, int k) {
  const int span = layout.span();
  if (!layout.mn_major && layout.swizzle == Swizzle::kNone)  // blocks, first along the rows, then along K
    return static_cast<std::uint32_t>(k / 8 * rows * 16 + row * 16 + k % 8 * 2);
  if (layout.mn_major && layout.swizzle == Swizzle::kNone)
    return static_cast<std::uint32_t>(k / 8 * rows * 16 + row / 8 * 128 + k % 8 * 16 + row % 8 * 2);
  if (!layout.mn_major) {
    const int panel = k * 2 / span;
    return ptx::swizzled(static_cast<std::uint32_t>((panel * rows + row) * span + k * 2 % span),
                         layout.swizzle);
  }
  const int panel = row * 2 / span;
  return ptx::swizzled(static_cast<std::uint32_t>((panel * kDepth + k) * span + row * 2 % span),
                       layout.swizzle);
}

/// Of the slab that begins at k, a multiple of 16.
std::uint64_t __device__ descriptor(const Layout& layout, int rows, const bf16* tile, int k) {
  const std::uint32_t begin = ptx::shared_address(tile) + [&] {
    if (layout.swizzle == Swizzle::kNone) return static_cast<std::uint32_t>(k / 8 * rows * 16);
    if (layout.mn_major) return static_cast<std::uint32_t>(k * layout.span());
    return static_cast<std::uint32_t>(k * 2 / layout.span() * rows * layout.span() + k * 2 % layout.span());
  }();
  const auto eight_lines = static_cast<std::uint32_t>(8 * layout.span());
  if (layout.swizzle == Swizzle::kNone)  // K-major and MN-major: leading along K, stride along the rows
    return ptx::encode({.address = begin,
                        .leading_bytes = static_cast<std::uint32_t>(rows * 16),
                        .stride_bytes = 128,
                        .swizzle = Swizzle::kNone});
  if (layout.mn_major)
    return ptx::mn_major_descriptor(begin, layout.swizzle,
                                    static_cast<std::uint32_t>(kDepth * layout.span()));
  return ptx::encode(
      {.address = begin, .leading_bytes = 16, .stride_bytes = eight_lines, .swizzle = layout.swizzle});
}

void __device__ fill(bf16* tile, const bf16* source, int rows, const Layout& layout) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kDepth; i += static_cast<int>(blockDim.x)) {
    auto* to = reinterpret_cast<bf16*>(reinterpret_cast<unsigned char*>(tile) +
                                       place(layout, rows, i / kDepth, i % kDepth));
    ptx::st_shared(to, ptx::ld_global(source + i));
  }
}

/// d = a * b^T, a [64][kDepth], b [kN][kDepth].
template <int kN, int kTnspA, int kTnspB, bool kHalf, bool kRegisters>
__global__ void multiply(const bf16* a, const bf16* b, Swizzle swizzle, float* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const Layout layout_a{swizzle, kTnspA != 0};
  const Layout layout_b{swizzle, kTnspB != 0};
  fill(shared.a, a, 64, layout_a);
  fill(shared.b, b, kN, layout_b);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  std::uint32_t fragments[kDepth / 16][4];
  for (int step = 0; step < kDepth / 16; ++step) {
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
      const int column = 16 * step + thread % 4 * 2 + i / 2 * 8;
      fragments[step][i] = ptx::ld_global(reinterpret_cast<const std::uint32_t*>(a + row * kDepth + column));
    }
  }
  float d[kN / 2];
  ptx::wgmma_fence();
  for (int step = 0; step < kDepth / 16; ++step) {
    const std::uint64_t a_tile = descriptor(layout_a, 64, shared.a, 16 * step);
    const std::uint64_t b_tile = descriptor(layout_b, kN, shared.b, 16 * step);
    if constexpr (kRegisters && kHalf) {
      ptx::wgmma_m64nNk16_f32_f16_rs<kN, kTnspB>(d, fragments[step], b_tile, step > 0);
    } else if constexpr (kRegisters) {
      ptx::wgmma_m64nNk16_f32_bf16_rs<kN, kTnspB>(d, fragments[step], b_tile, step > 0);
    } else if constexpr (kHalf) {
      ptx::wgmma_m64nNk16_f32_f16_ss<kN, kTnspA, kTnspB>(d, a_tile, b_tile, step > 0);
    } else {
      ptx::wgmma_m64nNk16_f32_bf16_ss<kN, kTnspA, kTnspB>(d, a_tile, b_tile, step > 0);
    }
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_fence_operand(d);
  store_accumulators<kN>(out, d);
}

/// The same small integers as fp16.
std::vector<bf16> as_half(std::vector<bf16> values) {
  for (bf16& value : values) value.bits = gemm::to_fp16(gemm::to_float(value)).bits;
  return values;
}

template <int kN, int kTnspA, int kTnspB, bool kHalf = false, bool kRegisters = false>
void check_multiply(Swizzle swizzle) {
  const std::vector<bf16> a = arange(64 * kDepth, 3);
  const std::vector<bf16> b = arange(kN * kDepth, 11);
  DeviceArray<bf16> device_a(kHalf ? as_half(a) : a, "A");
  DeviceArray<bf16> device_b(kHalf ? as_half(b) : b, "B");
  DeviceArray<float> out(64 * kN);
  const Outcome outcome = run(multiply<kN, kTnspA, kTnspB, kHalf, kRegisters>, shape(), device_a.get(),
                              device_b.get(), swizzle, out.get());
  INFO("N " << kN << " tnsp " << kTnspA << kTnspB << " swizzle " << ptx::span_bytes(swizzle) << " "
            << outcome.report);
  REQUIRE(outcome.rule == "passed");
  CHECK(count_wrong(out.host(), a, b, kDepth) == 0);
}

template <int kN>
void check_every_layout() {
  for (const Swizzle swizzle : {Swizzle::k128B, Swizzle::k64B, Swizzle::k32B, Swizzle::kNone}) {
    check_multiply<kN, 1, 1>(swizzle);
    check_multiply<kN, 1, 0>(swizzle);
    check_multiply<kN, 0, 1>(swizzle);
    check_multiply<kN, 0, 1, false, true>(swizzle);
  }
}

enum Fault {
  kNone,
  kStridesExchanged,
  kLeadingOfOneLine,
  kAdvancedInTheSpan,
  kSecondHalfOfASpan,  // fine: 32 columns
  kBoxesExchanged,     // fine: of both operands alike
  kLinesTwice,
  kSwizzle,
  kOneWarpKMajor,
  kTransposedLater,  // fine: accumulators have no layout of their operands
};

/// D = x^T * y, 64 x 128, of matrices [16][64] and [16][128] that TMA brings in panels of 64 columns and 8
/// lines.
__global__ void load_and_multiply(const __grid_constant__ ptx::TensorMap x,
                                  const __grid_constant__ ptx::TensorMap y, int fault, float* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  make_barrier(&shared.full);
  __syncthreads();
  const bool exchanged = fault == kBoxesExchanged;
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, 16 * 128 * 3);
    for (int half = 0; half < 2; ++half) {
      const int k = fault == kLinesTwice ? 0 : 8 * (exchanged ? 1 - half : half);
      ptx::cp_async_bulk_tensor_2d(shared.a + half * 8 * 64, &x, 0, k, &shared.full);
      for (int panel = 0; panel < 2; ++panel)
        ptx::cp_async_bulk_tensor_2d(shared.b + (panel * 16 + half * 8) * 64, &y, 64 * panel, k,
                                     &shared.full);
    }
  }
  wait(&shared.full, 0);
  MatrixDescriptor a{.address = ptx::shared_address(shared.a),
                     .leading_bytes = 2048,
                     .stride_bytes = 1024,
                     .swizzle = Swizzle::k128B};
  MatrixDescriptor b = a;
  b.address = ptx::shared_address(shared.b);
  if (fault == kStridesExchanged) std::swap(b.leading_bytes, b.stride_bytes);
  if (fault == kLeadingOfOneLine) b.leading_bytes = 16;
  if (fault == kAdvancedInTheSpan) a.address += 32;
  if (fault == kSecondHalfOfASpan) b.address += 64;
  if (fault == kSwizzle) b.swizzle = Swizzle::k64B;
  float d[64] = {};
  ptx::wgmma_fence();
  if (fault == kSecondHalfOfASpan) {
    ptx::wgmma_m64nNk16_f32_bf16_ss<32, 1, 1>(reinterpret_cast<float(&)[16]>(d), ptx::encode(a),
                                              ptx::encode(b), 0);
  } else if (fault == kOneWarpKMajor ||
             fault == kTransposedLater) {  // 8 rows: K-major, they are there as well
    auto& eight = reinterpret_cast<float(&)[4]>(d);
    if (fault == kOneWarpKMajor && threadIdx.x / 32 == 1) {
      ptx::wgmma_m64nNk16_f32_bf16_ss<8, 1, 0>(eight, ptx::encode(a), ptx::encode(b), 0);
    } else {
      ptx::wgmma_m64nNk16_f32_bf16_ss<8, 1, 1>(eight, ptx::encode(a), ptx::encode(b), 0);
    }
    if (fault == kTransposedLater)
      ptx::wgmma_m64nNk16_f32_bf16_ss<8, 1, 0>(eight, ptx::encode(a), ptx::encode(b), 1);
  } else {
    ptx::wgmma_m64nNk16_f32_bf16_ss<128, 1, 1>(d, ptx::encode(a), ptx::encode(b), 0);
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  store_accumulators<128>(out, d);
}

struct Loaded {
  Outcome outcome;
  std::vector<float> d;
};

Loaded run_loaded(int fault) {
  const DeviceArray<bf16> x(arange(16 * 64, 5), "X");
  const DeviceArray<bf16> y(arange(16 * 128, 9), "Y");
  const auto map = [](const bf16* matrix, int columns) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, 16, columns, 8, 64, Swizzle::k128B));
  };
  DeviceArray<float> out(64 * 128);
  Outcome outcome = run(load_and_multiply, shape(), map(x.get(), 64), map(y.get(), 128), fault, out.get());
  return {std::move(outcome), out.host()};
}

Outcome with_fault(int fault) {
  return run_loaded(fault).outcome;
}

}  // namespace

TEST_CASE("wgmma with MN-major operands computes, for every layout") {
  check_every_layout<8>();
  check_every_layout<24>();
  check_every_layout<256>();
  check_multiply<40, 1, 1>(Swizzle::k128B);
  check_multiply<136, 1, 1>(Swizzle::k64B);
  check_multiply<248, 0, 1>(Swizzle::k128B);
}

TEST_CASE("wgmma with MN-major fp16 computes") {
  check_multiply<40, 1, 1, true>(Swizzle::k128B);
  check_multiply<40, 0, 1, true>(Swizzle::k64B);
  check_multiply<40, 1, 0, true>(Swizzle::k32B);
  check_multiply<40, 0, 1, true, true>(Swizzle::k128B);
  check_multiply<40, 0, 0, true, true>(Swizzle::k128B);
}

TEST_CASE("wgmma with MN-major tiles that TMA brought, and the correct neighbours of its rules") {
  const Loaded loaded = run_loaded(kNone);
  INFO(loaded.outcome.report);
  REQUIRE(loaded.outcome.rule == "passed");
  const std::vector<bf16> x = arange(16 * 64, 5);
  const std::vector<bf16> y = arange(16 * 128, 9);
  int wrong = 0;
  for (std::size_t i = 0; i < 64 * 128; ++i) {
    float expected = 0;
    for (std::size_t k = 0; k < 16; ++k)
      expected += gemm::to_float(x[k * 64 + i / 128]) * gemm::to_float(y[k * 128 + i % 128]);
    wrong += loaded.d[i] != expected;
  }
  CHECK(wrong == 0);
  CHECK(run_loaded(kBoxesExchanged).d == loaded.d);
  CHECK_PASSES(with_fault(kBoxesExchanged));
  CHECK_PASSES(with_fault(kSecondHalfOfASpan));
  CHECK_PASSES(with_fault(kTransposedLater));
}

TEST_CASE("wgmma-descriptor: of an MN-major operand") {
  CHECK_BREAKS("wgmma-descriptor", with_fault(kStridesExchanged));
  CHECK_BREAKS("wgmma-descriptor", with_fault(kLeadingOfOneLine));
  CHECK(contains(with_fault(kLeadingOfOneLine).report,
                 "missing  a leading offset of 2048 bytes in the descriptor instead of 16"));
  CHECK_BREAKS("wgmma-descriptor", with_fault(kAdvancedInTheSpan));
  CHECK_BREAKS("wgmma-descriptor", with_fault(kLinesTwice));
  CHECK_BREAKS("wgmma-descriptor", with_fault(kSwizzle));
}

TEST_CASE("wgmma-divergence: all threads say the same of tnspA") {
  CHECK_BREAKS("wgmma-divergence", with_fault(kOneWarpKMajor));
}

}  // namespace hopper_wgmma_transposed_test
