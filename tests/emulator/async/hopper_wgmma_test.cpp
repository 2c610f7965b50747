// wgmma: what it computes, and what must be true before, during and after.
#include <bit>

#include "emulator/hopper_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/ldmatrix.cuh"

namespace hopper_wgmma_test {

using namespace emulator_test;

namespace {

using ptx::MatrixDescriptor;
using ptx::Swizzle;

constexpr int kMaxRows = 256;

/// Tiles of up to 256 rows x 64 elements of K, 128-byte rows.
struct alignas(1024) Shared {
  bf16 a[64 * 64];
  bf16 b[kMaxRows * 64];
  std::uint64_t full;
  bf16 scratch[64];
};

constexpr ptx::LaunchShape shape(unsigned threads) {
  return one_cta(threads, sizeof(Shared));
}

/// A layout of a K-major tile in shared memory.
struct Layout {
  Swizzle swizzle;
  int row_bytes;  // of the tile: K elements * 2
};

/// Byte offset of element (row, k) of a tile of `rows` rows.
constexpr std::uint32_t place(const Layout& layout, int rows, int row, int k) {
  if (layout.swizzle == Swizzle::kNone) {
    // Blocks of 8 rows x 16 bytes, first along the rows, then along K.
    return static_cast<std::uint32_t>(k / 8 * rows * 16 + row * 16 + k % 8 * 2);
  }
  return ptx::swizzled(static_cast<std::uint32_t>(row * layout.row_bytes + 2 * k), layout.swizzle);
}

std::uint64_t __device__ descriptor(const Layout& layout, int rows, const bf16* tile, int k) {
  if (layout.swizzle == Swizzle::kNone) {
    const auto leading = static_cast<std::uint32_t>(rows * 16);
    return ptx::encode({.address = ptx::shared_address(tile) + static_cast<std::uint32_t>(k / 8) * leading,
                        .leading_bytes = leading,
                        .stride_bytes = 128,
                        .swizzle = Swizzle::kNone});
  }
  return ptx::encode({.address = ptx::shared_address(tile) + static_cast<std::uint32_t>(2 * k),
                      .leading_bytes = 16,
                      .stride_bytes = static_cast<std::uint32_t>(8 * layout.row_bytes),
                      .swizzle = layout.swizzle});
}

void __device__ fill(bf16* tile, const bf16* source, int rows, int columns, const Layout& layout) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += static_cast<int>(blockDim.x)) {
    auto* to = reinterpret_cast<bf16*>(reinterpret_cast<unsigned char*>(tile) +
                                       place(layout, rows, i / columns, i % columns));
    ptx::st_shared(to, ptx::ld_global(source + i));
  }
}

/// d = a * b^T + a * b^T over K in steps of 16, with A in shared memory or in registers.
template <int kN>
__global__ void multiply(const bf16* a, const bf16* b, int k, Layout layout, int registers, float* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, a, 64, k, layout);
  fill(shared.b, b, kN, k, layout);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  float d[kN / 2];
  std::uint32_t fragments[4][4];
  const int thread = static_cast<int>(threadIdx.x);
  for (int step = 0; step < k / 16; ++step) {
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
      const int column = 16 * step + thread % 4 * 2 + i / 2 * 8;
      fragments[step][i] = ptx::ld_global(reinterpret_cast<const std::uint32_t*>(a + row * k + column));
    }
  }
  ptx::wgmma_fence();
  for (int step = 0; step < k / 16; ++step) {
    const std::uint64_t b_tile = descriptor(layout, kN, shared.b, 16 * step);
    if (registers) {
      ptx::wgmma_m64nNk16_f32_bf16_rs<kN>(d, fragments[step], b_tile, step > 0);
    } else {
      ptx::wgmma_m64nNk16_f32_bf16_ss<kN>(d, descriptor(layout, 64, shared.a, 16 * step), b_tile, step > 0);
    }
  }
  ptx::wgmma_commit_group();
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_fence_operand(d);
  store_accumulators<kN>(out, d);
}

template <int kN>
void check_multiply(const Layout& layout, int k, int registers) {
  const std::vector<bf16> a = arange(static_cast<std::size_t>(64 * k), 3);
  const std::vector<bf16> b = arange(static_cast<std::size_t>(kN * k), 11);
  DeviceArray<bf16> device_a(a, "A");
  DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(64 * kN);
  const Outcome outcome =
      run(multiply<kN>, shape(128), device_a.get(), device_b.get(), k, layout, registers, out.get());
  INFO("N " << kN << " K " << k << " swizzle " << ptx::span_bytes(layout.swizzle) << " " << outcome.report);
  REQUIRE(outcome.rule == "passed");
  CHECK(count_wrong(out.host(), a, b, static_cast<std::size_t>(k)) == 0);
}

template <int kN>
void check_every_layout() {
  for (const int registers : {0, 1}) {
    check_multiply<kN>({Swizzle::k128B, 128}, 64, registers);
    check_multiply<kN>({Swizzle::k64B, 64}, 32, registers);
    check_multiply<kN>({Swizzle::k32B, 32}, 16, registers);
    check_multiply<kN>({Swizzle::kNone, 64}, 32, registers);
  }
}

enum Fault {
  kNone,
  kNoFence,
  kRegistersChanged,
  kRegistersChangedFenced,  // fine
  kReadEarly,
  kReadWithGroupsLeft,
  kWriteEarly,
  kNoWait,
  kNotCommitted,
  kNoProxyFence,
  kProxyFenceByAnotherThread,
  kNoBarrier,
  kUnfilled,
  kOverwriteOperand,
  kOverwriteOperandElsewhere,
  kDifferentDescriptors,
  kDifferentPlaces,
  kOneWarpMissing,
  kDifferentScale,
  kOtherShapeInFlight,
  kFragmentChangedUnfenced,
  kFragmentOverwritten,
  kFragmentLoaded,
  kFragmentWritten,
  kFragmentLoadedBehindWait,  // fine
  kDescriptorStart,
  kDescriptorStride,
  kDescriptorEnd,
  kDescriptorBaseOffset,
  kTwoGroupsInOrder,  // fine
  kTakenAgain,        // without touching the accumulators: fine by the PTX ISA
  kOverwrittenUnfenced,
  kTakenAgainFenced,  // fine
  kWrittenBehindFence,
  kWrittenBeforeFence,  // fine
  kFragmentWrittenBehindFence,
  kFragmentWrittenBeforeFence,  // fine
  kWriteSeenByFenceOperand,
};

constexpr Layout kLayout{Swizzle::k128B, 128};

/// Two multiplications of 64 x 16 x 16 with a fault between.
__global__ void two_groups(const bf16* source, int fault, float* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  if (fault != kUnfilled) fill(shared.a, source, 64, 64, kLayout);
  fill(shared.b, source, 16, 64, kLayout);
  if (fault != kNoProxyFence && !(fault == kProxyFenceByAnotherThread && thread == 77)) {
    ptx::fence_proxy_async_shared_cta();
  }
  if (fault != kNoBarrier) __syncthreads();
  if (fault == kProxyFenceByAnotherThread && thread == 0) ptx::fence_proxy_async_shared_cta();
  float d[8] = {};
  float other[32] = {};
  std::uint32_t fragment[4] = {};
  if (fault != kNoFence) ptx::wgmma_fence();
  MatrixDescriptor a{.address = ptx::shared_address(shared.a),
                     .leading_bytes = 16,
                     .stride_bytes = 1024,
                     .swizzle = Swizzle::k128B};
  if (fault == kDescriptorStart) a.address += 112;
  if (fault == kDescriptorStride) a.stride_bytes = 16384;
  if (fault == kDescriptorEnd) a.address = 0x3c000;
  if (fault == kDescriptorBaseOffset) {
    a.swizzle = Swizzle::kNone;
    a.base_offset = 1;
  }
  if (fault == kDifferentDescriptors && thread == 40) a.address += 32;
  const std::uint64_t a_tile = ptx::encode(a);
  const std::uint64_t b_tile = descriptor(kLayout, 16, shared.b, 0);
  if (fault == kOneWarpMissing && thread >= 96) return;
  if (fault == kDifferentPlaces && thread < 32) {
    ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, 0);
  } else if (fault == kFragmentChangedUnfenced || fault == kFragmentOverwritten) {
    ptx::wgmma_m64nNk16_f32_bf16_rs<16>(d, fragment, b_tile, 0);
  } else {
    ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, fault == kDifferentScale && thread == 3);
  }
  if (fault != kNotCommitted) ptx::wgmma_commit_group();
  if (fault == kReadEarly) ptx::st_global(out + thread, d[0] + 1);
  if ((fault == kWriteEarly || fault == kWriteSeenByFenceOperand) && thread == 17) d[2] = 0;
  if (fault == kWriteSeenByFenceOperand) ptx::wgmma_fence_operand(d);
  if (fault == kOtherShapeInFlight)
    ptx::wgmma_m64nNk16_f32_bf16_ss<64>(reinterpret_cast<float(&)[32]>(d), a_tile,
                                        descriptor(kLayout, 64, shared.a, 0), 1);
  if (fault == kOverwriteOperand) {
    __syncthreads();
    if (thread == 5) ptx::st_shared(shared.a + 64, gemm::to_bf16(9));
  }
  const bool two =
      fault == kReadWithGroupsLeft || fault == kTwoGroupsInOrder || fault == kFragmentOverwritten;
  if (two) {
    if (fault == kFragmentOverwritten) {
      fragment[1] = 0x3f803f80u;
      ptx::wgmma_fence();
      ptx::wgmma_m64nNk16_f32_bf16_rs<16>(d, fragment, b_tile, 1);
    } else {
      ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, 1);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
    if (fault == kReadWithGroupsLeft) ptx::st_global(out + thread, d[0]);
  }
  if (fault == kFragmentLoaded || fault == kFragmentWritten || fault == kFragmentLoadedBehindWait) {
    ptx::wgmma_fence();
    ptx::wgmma_m64nNk16_f32_bf16_rs<16>(d, fragment, b_tile, 0);
    ptx::wgmma_commit_group();
    if (fault == kFragmentLoadedBehindWait) ptx::wgmma_wait_group<0>();
    if (fault == kFragmentWritten && thread == 99) {
      fragment[2] = 0x40004000u;
    } else if (fault != kFragmentWritten) {
      ptx::ldmatrix_x4(fragment, shared.a + 64 * (thread % 32));
    }
  }
  if (fault != kNoWait) ptx::wgmma_wait_group<0>();
  if (fault == kOverwriteOperandElsewhere && thread == 0) {
    ptx::wgmma_wait_group<0>();
  }
  if (fault == kWrittenBehindFence || fault == kWrittenBeforeFence) {
    if (fault == kWrittenBeforeFence && thread == 37) d[6] = 0.25f;
    ptx::wgmma_fence();
    if (fault == kWrittenBehindFence && thread == 37) d[6] = 0.25f;
    ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, 0);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }
  if (fault == kFragmentWrittenBehindFence || fault == kFragmentWrittenBeforeFence) {
    for (int i = 0; i < 2; ++i) {
      if (fault == kFragmentWrittenBeforeFence && thread == 99) fragment[2] += 0x3f803f80u;
      ptx::wgmma_fence();
      if (fault == kFragmentWrittenBehindFence && thread == 99) fragment[2] += 0x3f803f80u;
      ptx::wgmma_m64nNk16_f32_bf16_rs<16>(d, fragment, b_tile, 0);
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
    }
  }
  if (fault == kTakenAgain || fault == kTakenAgainFenced || fault == kOverwrittenUnfenced) {
    if (fault == kOverwrittenUnfenced && thread == 21) d[5] = 0.5f;
    if (fault == kTakenAgainFenced) ptx::wgmma_fence();
    ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, fault != kOverwrittenUnfenced);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }
  if (fault == kRegistersChanged || fault == kRegistersChangedFenced || fault == kFragmentChangedUnfenced) {
    for (float& value : d) value *= 2;
    fragment[0] = 0x40004000u;
    if (fault == kRegistersChangedFenced) ptx::wgmma_fence();
    if (fault == kFragmentChangedUnfenced) {
      ptx::wgmma_m64nNk16_f32_bf16_rs<16>(d, fragment, b_tile, 0);
    } else {
      ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, 1);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }
  if (fault == kNoWait) return;
  ptx::st_global(out + thread, d[0] + other[0]);
}

enum Use {
  kUseRelu,
  kUseSum,
  kUseScale,
  kUseCompare,
  kUseCompareBehindWait,  // of what was read before
  kUseDouble,
  kUseInteger,
  kUseShuffle,
  kUsePair,
  kUseOthers,      // infinities and NaNs of other variables: fine
  kUseBehindWait,  // fine
  kUninitialised,
  kFirstWrittenBehindFence,
  kFirstWrittenBeforeFence,  // fine
  kDeclaredBehindFence,      // fine: scale-d is 0
};

/// Keeps a value alive that nothing stores.
template <typename T>
void consume(const T& value) {
  asm volatile("" ::"m"(value));
}

/// What a thread does with its accumulators between issue and wait.
__global__ void use_early(const bf16* source, int use, float* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, source, 64, 64, kLayout);
  fill(shared.b, source, 16, 64, kLayout);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  const std::uint64_t a_tile = descriptor(kLayout, 64, shared.a, 0);
  const std::uint64_t b_tile = descriptor(kLayout, 16, shared.b, 0);
  const bool mine = threadIdx.x == 70;
  if (use == kDeclaredBehindFence) {
    for (int i = 0; i < 3; ++i) {
      ptx::wgmma_fence();
      float d[8];
      ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, 0);
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      ptx::st_global(out + threadIdx.x, d[0]);
    }
    return;
  }
  float d[8];
  if (use == kFirstWrittenBeforeFence || use == kFirstWrittenBehindFence) {
    for (float& value : d) value = 0;
    ptx::wgmma_fence_operand(d);
  }
  if (use == kFirstWrittenBeforeFence && mine) d[3] = 1;
  ptx::wgmma_fence();
  if (use == kFirstWrittenBehindFence && mine) d[3] = 1;
  const bool adds =
      use == kUninitialised || use == kFirstWrittenBeforeFence || use == kFirstWrittenBehindFence;
  ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, a_tile, b_tile, adds);
  ptx::wgmma_commit_group();
  if (use == kUseBehindWait) ptx::wgmma_wait_group<0>();
  if (use == kUseRelu || use == kUseBehindWait) {
    for (float& value : d) value = max(value, 0.0f);
  }
  if (use == kUseSum && mine) consume(d[1] + d[2]);
  if (use == kUseScale && mine) {
    float scaled[8];
    for (int i = 0; i < 8; ++i) scaled[i] = 0.5f * d[i];
    consume(scaled);
  }
  if (use == kUseCompare && mine) consume(d[4] > 1.0f);
  if (use == kUseDouble && mine) consume(static_cast<double>(d[5]));
  if (use == kUseInteger && mine) consume(static_cast<int>(d[6]));
  if (use == kUseShuffle) consume(__shfl_xor_sync(0xffffffffu, d[0], 1));
  if (use == kUsePair) ptx::st_global(reinterpret_cast<float2*>(out) + threadIdx.x, float2{0, d[7]});
  if (use == kUseOthers) {
    volatile float infinity = HUGE_VALF;
    volatile float nan = NAN;
    for (int i = 0; i < 3; ++i) {
      consume(infinity - infinity);
      consume(nan < 1.0f);
      consume(max(nan + 0.0f, 0.0f));
      consume(static_cast<int>(infinity + 0.0f));
      consume(0.0f * infinity);
    }
  }
  const float early = d[4];
  ptx::wgmma_wait_group<0>();
  if (use == kUseCompareBehindWait && mine) consume(early > 1.0f);
  if (use != kUsePair) ptx::st_global(out + threadIdx.x, d[0]);
}

Outcome run_use(int use) {
  static const DeviceArray<bf16> kSource(arange(64 * 64), "S");
  DeviceArray<float> out(256);
  return run(use_early, shape(128), kSource.get(), use, out.get());
}

Outcome run_two_groups(int fault) {
  static const DeviceArray<bf16> kSource(arange(64 * 64), "S");
  DeviceArray<float> out(128);
  return run(two_groups, shape(128), kSource.get(), fault, out.get());
}

/// Warpgroup 1 multiplies, a thread of warpgroup 0 overwrites the operand behind a barrier that comes before
/// or after the wait.
__global__ void hand_back(const bf16* source, int early, float* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, source, 64, 64, kLayout);
  fill(shared.b, source, 16, 64, kLayout);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  float d[8];
  if (threadIdx.x >= 128) {
    ptx::wgmma_fence();
    ptx::wgmma_m64nNk16_f32_bf16_ss<16>(d, descriptor(kLayout, 64, shared.a, 0),
                                        descriptor(kLayout, 16, shared.b, 0), 0);
    ptx::wgmma_commit_group();
    if (early == 0) ptx::wgmma_wait_group<0>();
    if (early == 2) ptx::wgmma_wait_group<1>();  // which leaves it
  }
  __syncthreads();
  if (threadIdx.x == 3) ptx::st_shared(shared.b, gemm::to_bf16(9));
  if (threadIdx.x >= 128) {
    ptx::wgmma_wait_group<0>();
    ptx::st_global(out + threadIdx.x - 128, d[0]);
  }
}

enum TmaFault {
  kTmaNone,
  kTmaNoWait,
  kTmaOneWarpWaits,
  kTmaSwizzle,
  kTmaStride,
  kTmaBaseOffset,
  kTmaOutside,
  kTmaRefill,
  kTmaRefillWaited
};

/// A tile comes by TMA and is multiplied by itself.
__global__ void load_and_multiply(ptx::TensorMap map, int fault, float* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  make_barrier(&shared.full);
  __syncthreads();
  auto load = [&](int row) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, 64 * 128);
    ptx::cp_async_bulk_tensor_2d(shared.a, &map, 0, row, &shared.full);
  };
  if (threadIdx.x == 0) load(0);
  if (fault == kTmaOneWarpWaits ? threadIdx.x < 32 : fault != kTmaNoWait) wait(&shared.full, 0);
  if (fault == kTmaNoWait) __syncthreads();
  const Layout layout{fault == kTmaSwizzle ? Swizzle::k64B : Swizzle::k128B, fault == kTmaStride ? 64 : 128};
  float d[32];
  ptx::wgmma_fence();
  std::uint64_t tile = descriptor(layout, 64, shared.a, 0);
  if (fault == kTmaBaseOffset) tile |= std::uint64_t{2} << 49;
  if (fault == kTmaOutside) tile += 128 / 16;
  ptx::wgmma_m64nNk16_f32_bf16_ss<64>(d, tile, tile, 0);
  ptx::wgmma_commit_group();
  if (fault == kTmaRefillWaited) {
    ptx::wgmma_wait_group<0>();
    __syncthreads();
  }
  if (fault == kTmaRefill || fault == kTmaRefillWaited) {
    if (threadIdx.x == 0) load(64);
    wait(&shared.full, 1);
  }
  ptx::wgmma_wait_group<0>();
  store_accumulators<64>(out, d);
}

Outcome run_load_and_multiply(int fault) {
  const DeviceArray<bf16> source(arange(128 * 64), "S");
  const ptx::TensorMap map =
      ptx::make_tensor_map(ptx::matrix_spec(source.get(), 128, 64, 64, 64, Swizzle::k128B));
  DeviceArray<float> out(64 * 64);
  return run(load_and_multiply, shape(128), map, fault, out.get());
}

__global__ void lonely(int) {
  ptx::wgmma_fence();
}

}  // namespace

TEST_CASE("wgmma computes, for every N and layout") {
  check_every_layout<8>();
  check_every_layout<16>();
  check_every_layout<64>();
  check_every_layout<256>();
  const Layout layout{Swizzle::k128B, 128};
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    (check_multiply<8 * (kIndex + 1)>(layout, 32, kIndex % 2), ...);
  }
  (std::make_integer_sequence<int, 32>{});
}

TEST_CASE("wgmma: the correct neighbours") {
  CHECK_PASSES(run_two_groups(kNone));
  CHECK_PASSES(run_two_groups(kTwoGroupsInOrder));
  CHECK_PASSES(run_two_groups(kRegistersChangedFenced));
  CHECK_PASSES(run_load_and_multiply(kTmaNone));
  CHECK_PASSES(run_load_and_multiply(kTmaRefillWaited));
}

TEST_CASE("wgmma-fence") {
  CHECK_BREAKS("wgmma-fence", run_two_groups(kNoFence));
  CHECK_BREAKS("wgmma-fence", run_two_groups(kRegistersChanged));
  CHECK_BREAKS("wgmma-fence", run_two_groups(kFragmentChangedUnfenced));
}

TEST_CASE("wgmma-fence-after-wait: accumulators that were handed back need a fence") {
  // Written since, even if the next wgmma overwrites them: that breaks a rule of the PTX ISA.
  CHECK_BREAKS("wgmma-fence", run_two_groups(kOverwrittenUnfenced));
  CHECK_PASSES(run_two_groups(kTakenAgainFenced));
  CHECK_BREAKS("wgmma-fence-after-wait", run_two_groups(kTakenAgain));
  check_report(run_two_groups(kTakenAgain), "wgmma-fence-after-wait",
               {"--allow wgmma-fence-after-wait switches it off"});
  const emulator::ScopedCourseRule off(emulator::CourseRule::kWgmmaFenceAfterWait, false);
  CHECK_PASSES(run_two_groups(kTakenAgain));
  CHECK_BREAKS("wgmma-fence", run_two_groups(kOverwrittenUnfenced));
}

TEST_CASE("rules that are this course's own are switched by name") {
  const std::uint64_t before = emulator::course_rules_on;
  emulator::switch_course_rules({"wgmma-fence-after-wait"}, {});
  CHECK(!emulator::course_rule_on(emulator::CourseRule::kWgmmaFenceAfterWait));
  emulator::switch_course_rules({}, {"wgmma-fence-after-wait"});
  CHECK(emulator::course_rules_on == (before | course_rule_bit(emulator::CourseRule::kWgmmaFenceAfterWait)));
  for (const auto& [allow, strict, sentence] :
       {std::tuple{std::vector<std::string>{"wgmma-fense"}, std::vector<std::string>{},
                   "--allow: 'wgmma-fense' is not a rule that can be switched on or off; these rules are: "
                   "wgmma-fence-after-wait"},
        std::tuple{
            std::vector<std::string>{"wgmma-fence-after-wait"},
            std::vector<std::string>{"wgmma-fence-after-wait"},
            "the rule 'wgmma-fence-after-wait' is switched both on and off; leave one of the two out"}}) {
    std::string said;
    try {
      emulator::switch_course_rules(allow, strict);
    } catch (const harness::Error& error) {
      said = error.what();
    }
    CHECK(said.rfind(sentence, 0) == 0);
  }
  emulator::course_rules_on = before;
}

TEST_CASE("wgmma-accumulator-read: before wait_group") {
  CHECK_BREAKS("wgmma-accumulator-read", run_two_groups(kReadEarly));
  CHECK_BREAKS("wgmma-accumulator-read", run_two_groups(kReadWithGroupsLeft));
  check_report(run_two_groups(kReadWithGroupsLeft), "wgmma-accumulator-read", {"2 committed, 1 waited for"});
}

TEST_CASE("wgmma-accumulator-read: arithmetic does not launder what was read") {
#if !defined(__aarch64__)  // whose arithmetic does not trap
  for (const Use use : {kUseRelu, kUseSum, kUseScale, kUseCompare, kUseCompareBehindWait, kUseDouble,
                        kUseInteger, kUseShuffle, kUsePair}) {
    INFO("use " << use);
    CHECK_BREAKS("wgmma-accumulator-read", run_use(use));
  }
  const Outcome outcome = run_use(kUseSum);
  check_text(outcome.report, {"thread (70,0,0)", "1 committed, 0 waited for", "hopper_wgmma_test.cpp:"});
#endif
}

TEST_CASE("wgmma: NaNs and infinities of others may be computed with in flight") {
  CHECK_PASSES(run_use(kUseOthers));
  CHECK_PASSES(run_use(kUseBehindWait));
}

TEST_CASE("wgmma: operands may hold NaNs and infinities") {
  std::vector<bf16> values = arange(64 * 64);
  values[5].bits = 0x7f80;    // infinity
  values[77].bits = 0xff80;   // and minus infinity
  values[130].bits = 0x7fc0;  // a quiet NaN
  values[200].bits = 0x7fad;  // a signalling one that looks like the upper half of poison
  const DeviceArray<bf16> source(values, "S");
  DeviceArray<float> out(256);
  CHECK_PASSES(run(use_early, shape(128), source.get(), int{kUseBehindWait}, out.get()));
  CHECK_PASSES(run(use_early, shape(128), source.get(), int{kUseOthers}, out.get()));
}

TEST_CASE("wgmma-accumulator-uninitialised: added to what nobody has written") {
  CHECK_BREAKS("wgmma-accumulator-uninitialised", run_use(kUninitialised));
  CHECK_PASSES(run_use(kDeclaredBehindFence));
}

TEST_CASE("wgmma-fence: registers that change between fence and issue") {
  CHECK_BREAKS("wgmma-fence", run_two_groups(kWrittenBehindFence));
  CHECK_PASSES(run_two_groups(kWrittenBeforeFence));
  CHECK_BREAKS("wgmma-fence", run_two_groups(kFragmentWrittenBehindFence));
  CHECK_PASSES(run_two_groups(kFragmentWrittenBeforeFence));
  CHECK_BREAKS("wgmma-fence", run_use(kFirstWrittenBehindFence));
  CHECK_PASSES(run_use(kFirstWrittenBeforeFence));
  check_report(run_two_groups(kWrittenBehindFence), "wgmma-fence",
               {"register 6 of 8: row 25, column 10 of the 64 x 16 tile", "0.25 now", "precedes the write"});
  check_report(run_two_groups(kFragmentWrittenBehindFence), "wgmma-fence",
               {"2 of 4 of the fragment; 0x3f803f80 then, 0x7f007f00 now"});
}

TEST_CASE("wgmma-accumulator-written: in flight") {
  CHECK_BREAKS("wgmma-accumulator-written", run_two_groups(kWriteSeenByFenceOperand));
  check_report(run_two_groups(kWriteSeenByFenceOperand), "wgmma-accumulator-written",
               {"register 2 of 8", "noticed"});
  CHECK_BREAKS("wgmma-accumulator-written", run_two_groups(kWriteEarly));
}

TEST_CASE("wgmma-fragment-overwritten") {
  CHECK_BREAKS("wgmma-fragment-overwritten", run_two_groups(kFragmentOverwritten));
  // Nothing takes the fragment again: the write itself shows, or the wait behind it does.
  CHECK_BREAKS("wgmma-fragment-overwritten", run_two_groups(kFragmentLoaded));
  CHECK_BREAKS("wgmma-fragment-overwritten", run_two_groups(kFragmentWritten));
  CHECK_PASSES(run_two_groups(kFragmentLoadedBehindWait));
  CHECK(contains(run_two_groups(kFragmentLoaded).report, "ldmatrix"));
  check_report(run_two_groups(kFragmentWritten), "wgmma-fragment-overwritten",
               {"thread (99,0,0)", "2 of 4: 0x00000000 then, 0x40004000 now",
                "a wgmma.wait_group that covers the wgmma at"});
}

TEST_CASE("exit-in-flight: wgmma") {
  CHECK_BREAKS("exit-in-flight", run_two_groups(kNoWait));
  CHECK_BREAKS_ONE_OF((Rules{"exit-in-flight", "wgmma-accumulator-read"}), run_two_groups(kNotCommitted));
}

TEST_CASE("proxy-fence: wgmma reads unfenced writes") {
  CHECK_BREAKS("proxy-fence", run_two_groups(kNoProxyFence));
  CHECK_BREAKS("proxy-fence", run_two_groups(kProxyFenceByAnotherThread));
  check_report(run_two_groups(kProxyFenceByAnotherThread), "proxy-fence", {"thread (77,0,0)", "a["});
}

TEST_CASE("wgmma-operand-race: no barrier behind the fence") {
  // What no thread has written yet counts as unwritten.
  CHECK_BREAKS_ONE_OF((Rules{"wgmma-operand-race", "wgmma-operand-uninitialised"}),
                      run_two_groups(kNoBarrier));
}

TEST_CASE("wgmma-operand-uninitialised") {
  CHECK_BREAKS("wgmma-operand-uninitialised", run_two_groups(kUnfilled));
}

TEST_CASE("wgmma-operand-overwritten") {
  CHECK_BREAKS("wgmma-operand-overwritten", run_two_groups(kOverwriteOperand));
  const DeviceArray<bf16> source(arange(64 * 64), "S");
  DeviceArray<float> out(128);
  CHECK_BREAKS("wgmma-operand-overwritten", run(hand_back, shape(256), source.get(), 1, out.get()));
  const auto says = [&](int early, const char* text) {
    check_report(run(hand_back, shape(256), source.get(), early, out.get()), "wgmma-operand-overwritten",
                 {text});
  };
  says(1, "  missing  wgmma.wait_group of warpgroup 1 of CTA (0,0,0), and a barrier after it, before ");
  says(2, "when 1 group was committed: it leaves the latest 1 in flight, and this wgmma belongs to group 1");
  says(2, "  missing  wgmma.wait_group<0> by warpgroup 1 of CTA (0,0,0) instead of wait_group<1>");
  CHECK_PASSES(run(hand_back, shape(256), source.get(), 0, out.get()));
}

TEST_CASE("wgmma-divergence") {
  CHECK_BREAKS("wgmma-divergence", run_two_groups(kDifferentDescriptors));
  CHECK_BREAKS("wgmma-divergence", run_two_groups(kDifferentPlaces));
  CHECK_BREAKS("wgmma-divergence", run_two_groups(kDifferentScale));
}

TEST_CASE("deadlock: a warp of the warpgroup is missing") {
  CHECK_BREAKS("deadlock", run_two_groups(kOneWarpMissing));
  check_report(run_two_groups(kOneWarpMissing), "deadlock", {"has been executed only by threads 0-95"});
}

TEST_CASE("wgmma-registers: another shape in flight on the same registers") {
  CHECK_BREAKS("wgmma-registers", run_two_groups(kOtherShapeInFlight));
}

TEST_CASE("wgmma-warpgroup: not four warps") {
  CHECK_BREAKS("wgmma-warpgroup", run(lonely, shape(96), 0));
}

TEST_CASE("wgmma-descriptor") {
  CHECK_BREAKS("wgmma-descriptor", run_two_groups(kDescriptorStart));
  CHECK_BREAKS("wgmma-descriptor", run_two_groups(kDescriptorEnd));
  CHECK_BREAKS("wgmma-descriptor", run_two_groups(kDescriptorBaseOffset));
  CHECK_BREAKS("wgmma-operand-uninitialised", run_two_groups(kDescriptorStride));
  CHECK_BREAKS("wgmma-descriptor", run_load_and_multiply(kTmaSwizzle));
  CHECK_BREAKS("wgmma-descriptor", run_load_and_multiply(kTmaStride));
  CHECK_BREAKS("wgmma-descriptor", run_load_and_multiply(kTmaBaseOffset));
  CHECK_BREAKS("wgmma-operand-uninitialised", run_load_and_multiply(kTmaOutside));
}

TEST_CASE("load-not-waited: wgmma on a tile that is not there") {
  CHECK_BREAKS("load-not-waited", run_load_and_multiply(kTmaNoWait));
  CHECK_BREAKS_ONE_OF((Rules{"load-not-waited", "wgmma-operand-uninitialised"}),
                      run_load_and_multiply(kTmaOneWarpWaits));
}

TEST_CASE("load-overwrites: a stage that wgmma still reads") {
  CHECK_BREAKS_ONE_OF((Rules{"load-overwrites", "load-not-waited", "deadlock"}),
                      run_load_and_multiply(kTmaRefill));
}

}  // namespace hopper_wgmma_test
