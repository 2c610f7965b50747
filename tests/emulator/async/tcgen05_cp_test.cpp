// tcgen05.cp and tcgen05.shift: what they move, and for each rule a kernel that breaks it and a neighbour
// that does not.
#include <bit>

#include "emulator/tcgen05_tile.h"
#include "ptx/tcgen05_cp.cuh"

namespace tcgen05_cp_test {

using namespace emulator_test;

namespace {

using ptx::InstructionDescriptor;
using ptx::Swizzle;

constexpr int kN = 32;
constexpr std::uint32_t kColumns = 64;
constexpr std::uint32_t kOfA = 32;  // columns of A behind those of D

struct alignas(1024) Shared {
  bf16 a[128 * kK];  // rows of 128 bytes, 128-byte swizzle
  bf16 b[kN * kK];
  std::uint64_t done, other;
  std::uint32_t tensor_memory;
};

constexpr ptx::LaunchShape kShape = one_cta(128, sizeof(Shared));

enum class Form { k128x256b, k128x128b, k4x256b, k64x128b02, k64x128b01, k32x128b };

/// Copies elements of 8 bits as they are, or expands those of 4 or 6 bits.
template <int kGroup = 1>
void __device__ copy(Form form, std::uint32_t to, std::uint64_t from, int bits = 8) {
  const auto one_of = [&](auto bytes, auto elements_of_4, auto elements_of_6) {
    bits == 4 ? elements_of_4(to, from) : bits == 6 ? elements_of_6(to, from) : bytes(to, from);
  };
#define COPIES(NAME)                                                                  \
  one_of([](auto... is) { ptx::tcgen05_cp_##NAME<kGroup>(is...); },                   \
         [](auto... is) { ptx::tcgen05_cp_##NAME##_b8x16_b4x16_p64<kGroup>(is...); }, \
         [](auto... is) { ptx::tcgen05_cp_##NAME##_b8x16_b6x16_p32<kGroup>(is...); })
  switch (form) {
    case Form::k128x256b:
      return COPIES(128x256b);
    case Form::k128x128b:
      return COPIES(128x128b);
    case Form::k4x256b:
      return COPIES(4x256b);
    case Form::k64x128b02:
      return COPIES(64x128b_warpx2_02_13);
    case Form::k64x128b01:
      return COPIES(64x128b_warpx2_01_23);
    default:
      return COPIES(32x128b_warpx4);
  }
#undef COPIES
}

/// Word i of what a copy makes of a row, from the element of 16 bits `first` on, bit by bit.
std::uint32_t expected_word(const std::vector<bf16>& a, int first, int i, int bits) {
  const auto bit = [&](int at) {
    return std::bit_cast<std::uint16_t>(a[static_cast<std::size_t>(first + at / 16)]) >> at % 16 & 1;
  };
  std::uint32_t word = 0;
  for (int byte = 0; byte < 4; ++byte) {
    const int element = 4 * i + byte;
    for (int b = 0; b < bits; ++b) {
      const int from = element / 16 * 128 + element % 16 * bits + b;
      word |= static_cast<std::uint32_t>(bit(from)) << (8 * byte + (8 - bits) / 2 + b);
    }
  }
  return word;
}

/// The row of the source that comes to a lane, or -1.
int row_of(Form form, int lane) {
  switch (form) {
    case Form::k4x256b:
      return lane % 32 == 0 ? lane / 32 : -1;
    case Form::k64x128b02:
      return lane % 64;
    case Form::k64x128b01:
      return lane / 64 * 32 + lane % 32;
    case Form::k32x128b:
      return lane % 32;
    default:
      return lane;
  }
}

bool is_wide(Form form) {
  return form == Form::k128x256b || form == Form::k4x256b;
}

/// What a kernel does wrong.
enum class Fault {
  kNone,
  kReadBeforeCommit,
  kNoFenceAfter,
  kCommitByAnother,
  kNoProxyFence,
  kNoFenceAfterSource,
  kSourceOverwritten,
  kLanes,
  kUnallocated,
  kDescriptor,
  kTwice,  // a second copy to the same columns, not waited for
  kTwiceWaited,
  kExit,
  kShift,        // behind the copy, waited for
  kShiftAtOnce,  // not waited for
  kShiftLane,
  kShiftUnwritten,
};

/// Copies rows of A to tensor memory, and reads 8 columns of all lanes.
__global__ void move(const bf16* a, std::uint32_t* out, int forms, int faulty, int bits) {
  const auto form = static_cast<Form>(forms);
  const auto fault = static_cast<Fault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, a, 128);
  if (fault != Fault::kNoProxyFence) ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_alloc(&shared.tensor_memory, kColumns);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 1);
    ptx::mbarrier_init(&shared.other, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (form != Form::k128x256b) {  // what the copy leaves
    ptx::tcgen05_fence_after_thread_sync();
    const std::uint32_t zeros[8] = {};
    ptx::tcgen05_st_32x32b_x8(lane_address(d), zeros);
    ptx::tcgen05_wait_st();
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    if (fault != Fault::kNoFenceAfterSource) ptx::tcgen05_fence_after_thread_sync();
    std::uint64_t source = descriptor(shared.a, 16);
    if (fault == Fault::kDescriptor) source ^= std::uint64_t{3} << 46;
    std::uint32_t to = d;
    if (fault == Fault::kLanes) to = ptx::tensor_memory_address(d, 32, 0);
    if (fault == Fault::kUnallocated) to = d + kColumns - 4;
    if (fault == Fault::kShiftUnwritten) {
      ptx::tcgen05_shift_down(d + 32);
    } else {
      copy(form, to, source, bits);
    }
    if (fault == Fault::kTwice) copy(form, d, source);
    if (fault == Fault::kTwiceWaited || fault == Fault::kShift) {
      ptx::tcgen05_commit(&shared.other);
      wait(&shared.other, 0);
      ptx::tcgen05_fence_after_thread_sync();
      if (fault == Fault::kTwiceWaited) copy(form, d, source);
    }
    if (fault == Fault::kShift || fault == Fault::kShiftAtOnce)
      ptx::tcgen05_shift_down(ptx::tensor_memory_address(d, 32, 0));
    if (fault == Fault::kShiftLane) ptx::tcgen05_shift_down(ptx::tensor_memory_address(d, 16, 0));
    if (fault != Fault::kCommitByAnother) ptx::tcgen05_commit(&shared.done);
  }
  if (fault == Fault::kCommitByAnother && threadIdx.x == 32) ptx::tcgen05_commit(&shared.done);
  if (fault == Fault::kSourceOverwritten && threadIdx.x == 64)
    ptx::st_shared(&shared.a[16], gemm::to_bf16(1));
  if (fault != Fault::kExit) {
    if (fault != Fault::kReadBeforeCommit) wait(&shared.done, 0);
    if (fault != Fault::kNoFenceAfter || threadIdx.x / 32 != 2) ptx::tcgen05_fence_after_thread_sync();
    float values[8];
    ptx::tcgen05_ld_32x32b_x8(values, lane_address(d));
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 8; ++i)
      ptx::st_global(out + 8 * threadIdx.x + i, std::bit_cast<std::uint32_t>(values[i]));
    if (fault == Fault::kReadBeforeCommit) wait(&shared.done, 0);
  }
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(d, kColumns);
}

Outcome run_move(Form form, Fault fault = Fault::kNone, int bits = 8) {
  const std::vector<bf16> a = arange(128 * kK, 3);
  const DeviceArray<bf16> device_a(a, "A");
  DeviceArray<std::uint32_t> out(std::vector<std::uint32_t>(128 * 8, 0), "out");
  const Outcome outcome =
      run(move, kShape, device_a.get(), out.get(), static_cast<int>(form), static_cast<int>(fault), bits);
  if (outcome.rule != "passed") return outcome;
  const std::vector<std::uint32_t> host = out.host();
  int wrong = 0;
  for (int lane = 0; lane < 128; ++lane) {
    // Shifted: lanes 33 to 63 have what was one lane before.
    const int from = fault == Fault::kShift && lane / 32 == 1 && lane > 32 ? lane - 1 : lane;
    const int row = row_of(form, from);
    for (int i = 0; i < 8; ++i) {
      std::uint32_t expected = 0;
      if (row >= 0 && i < (is_wide(form) ? 8 : 4)) expected = expected_word(a, row * kK + 16, i, bits);
      wrong += host[static_cast<std::size_t>(8 * lane + i)] != expected;
    }
  }
  CHECK(wrong == 0);
  return outcome;
}

enum class Order {
  kCopyThenMultiply,  // A in tensor memory: no wait
  kMultiplyThenCopy,  // over its A
  kMultiplyWaitCopy,
  kMultiplyShiftMultiply,  // over its A: no wait
};

/// Multiplies with A in tensor memory.
__global__ void multiply(const bf16* a, const bf16* b, float* out, int orders) {
  const auto order = static_cast<Order>(orders);
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, a, 128);
  fill(shared.b, b, kN);
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_alloc(&shared.tensor_memory, kColumns);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 1);
    ptx::mbarrier_init(&shared.other, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (threadIdx.x == 0) {
    const std::uint32_t instruction = ptx::encode(InstructionDescriptor{.m = 128, .n = kN});
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_cp_128x256b(d + kOfA, descriptor(shared.a, 0));
    ptx::tcgen05_mma_f16_ts(d, d + kOfA, descriptor(shared.b, 0), instruction, false);
    if (order == Order::kMultiplyWaitCopy) {
      ptx::tcgen05_commit(&shared.other);
      wait(&shared.other, 0);
      ptx::tcgen05_fence_after_thread_sync();
    }
    if (order == Order::kMultiplyThenCopy || order == Order::kMultiplyWaitCopy) {
      ptx::tcgen05_cp_128x256b(d + kOfA, descriptor(shared.a, 16));
      ptx::tcgen05_mma_f16_ts(d, d + kOfA, descriptor(shared.b, 16), instruction, true);
    }
    if (order == Order::kMultiplyShiftMultiply) {
      for (std::uint32_t lane = 0; lane < 128; lane += 32)
        ptx::tcgen05_shift_down(ptx::tensor_memory_address(d + kOfA, lane, 0));
      ptx::tcgen05_mma_f16_ts(d, d + kOfA, descriptor(shared.b, 16), instruction, true);
    }
    ptx::tcgen05_commit(&shared.done);
  }
  wait(&shared.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  float values[kN];
  ptx::tcgen05_ld_32x32b_x32(values, lane_address(d));
  ptx::tcgen05_wait_ld();
  for (int i = 0; i < kN; ++i) ptx::st_global(out + static_cast<int>(threadIdx.x) * kN + i, values[i]);
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(d, kColumns);
}

Outcome run_multiply(Order order) {
  const std::vector<bf16> a = arange(128 * kK, 3);
  const std::vector<bf16> b = arange(kN * kK, 11);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(128 * kN);
  const Outcome outcome =
      run(multiply, kShape, device_a.get(), device_b.get(), out.get(), static_cast<int>(order));
  if (outcome.rule != "passed") return outcome;
  const auto dot = [&](int row, int column, int k_of_a, int k_of_b) {
    float sum = 0;
    for (int k = 0; k < 16; ++k)
      sum += gemm::to_float(a[static_cast<std::size_t>(row * kK + k_of_a + k)]) *
             gemm::to_float(b[static_cast<std::size_t>(column * kK + k_of_b + k)]);
    return sum;
  };
  const std::vector<float> host = out.host();
  int wrong = 0;
  for (int i = 0; i < 128; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = dot(i, j, 0, 0);
      if (order == Order::kMultiplyWaitCopy) sum += dot(i, j, 16, 16);
      if (order == Order::kMultiplyShiftMultiply) sum += dot(i % 32 == 0 ? i : i - 1, j, 0, 16);
      wrong += host[static_cast<std::size_t>(i * kN + j)] != sum;
    }
  }
  CHECK(wrong == 0);
  return outcome;
}

/// What a pair does wrong.
enum class PairFault { kNone, kShifts, kPeerWithoutSource, kNotTold };

/// Each CTA of a pair copies its own rows.
__global__ void copy_for_pair(const bf16* a, std::uint32_t* out, int forms, int faulty, int bits) {
  const auto form = static_cast<Form>(forms);
  const auto fault = static_cast<PairFault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  if (rank == 0 || fault != PairFault::kPeerWithoutSource) fill(shared.a, a + rank * 128 * kK, 128);
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 1);
    ptx::mbarrier_init(&shared.other, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  cluster_sync();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_alloc<2>(&shared.tensor_memory, kColumns);
  cluster_sync();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  const std::uint32_t zeros[8] = {};
  ptx::tcgen05_st_32x32b_x8(lane_address(d), zeros);
  ptx::tcgen05_wait_st();
  ptx::tcgen05_fence_before_thread_sync();
  cluster_sync();
  if (threadIdx.x == 0 && rank == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    copy<2>(form, d, descriptor(shared.a, 0), bits);
    if (fault == PairFault::kShifts) {  // nothing orders it behind the copy
      ptx::tcgen05_commit_multicast<2>(&shared.other, 3);
      wait(&shared.other, 0);
      ptx::tcgen05_fence_after_thread_sync();
      ptx::tcgen05_shift_down<2>(ptx::tensor_memory_address(d, 32, 0));
    }
    ptx::tcgen05_commit_multicast<2>(&shared.done, 3);
  }
  __syncwarp();
  if (fault != PairFault::kNotTold || rank == 0) {
    while (!ptx::mbarrier_try_wait_parity_cluster(&shared.done, 0)) {
    }
  }
  if (fault == PairFault::kShifts && rank == 1) wait(&shared.other, 0);
  ptx::tcgen05_fence_after_thread_sync();
  float values[8];
  ptx::tcgen05_ld_32x32b_x8(values, lane_address(d));
  ptx::tcgen05_wait_ld();
  ptx::st_global(out + rank * 128 + threadIdx.x, std::bit_cast<std::uint32_t>(values[0]));
  if (fault == PairFault::kNotTold) wait(&shared.done, 0);
  __syncthreads();
  cluster_sync();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc<2>(d, kColumns);
}

Outcome run_pair(Form form, PairFault fault = PairFault::kNone, int bits = 8) {
  const std::vector<bf16> a = arange(256 * kK, 3);
  const DeviceArray<bf16> device_a(a, "A");
  DeviceArray<std::uint32_t> out(std::vector<std::uint32_t>(256, 0), "out");
  const Outcome outcome =
      run(copy_for_pair, {.grid = {2}, .block = {128}, .cluster = {2}, .shared_bytes = sizeof(Shared)},
          device_a.get(), out.get(), static_cast<int>(form), static_cast<int>(fault), bits);
  if (outcome.rule != "passed") return outcome;
  const std::vector<std::uint32_t> host = out.host();
  int wrong = 0;
  for (int i = 0; i < 256; ++i) {
    const int lane = i % 128;
    const bool is_shifted = fault == PairFault::kShifts && lane / 32 == 1 && lane > 32;
    const int row = row_of(form, is_shifted ? lane - 1 : lane);
    std::uint32_t expected = 0;
    if (row >= 0) expected = expected_word(a, (i / 128 * 128 + row) * kK, 0, bits);
    wrong += host[static_cast<std::size_t>(i)] != expected;
  }
  CHECK(wrong == 0);
  return outcome;
}

}  // namespace

TEST_CASE("tcgen05 cp brings rows of shared memory to the lanes of its shape") {
  CHECK_PASSES(run_move(Form::k128x256b));
  for (const Form form : {Form::k4x256b, Form::k128x128b, Form::k64x128b02, Form::k64x128b01, Form::k32x128b})
    CHECK(run_move(form).rule == "passed");
}

TEST_CASE("tcgen05 cp expands elements of 4 and of 6 bits to the middle of bytes") {
  for (const int bits : {4, 6}) {
    INFO(bits);
    for (const Form form : {Form::k128x256b, Form::k4x256b, Form::k128x128b, Form::k64x128b02,
                            Form::k64x128b01, Form::k32x128b}) {
      CHECK(run_move(form, Fault::kNone, bits).rule == "passed");
      CHECK(run_pair(form, PairFault::kNone, bits).rule == "passed");
    }
    CHECK_BREAKS("proxy-fence", run_move(Form::k128x256b, Fault::kNoProxyFence, bits));
    CHECK_BREAKS("tensor-memory-race", run_move(Form::k128x256b, Fault::kTwice, bits));
  }
  check_text(run_move(Form::k128x256b, Fault::kNoProxyFence, 4).report,
             {"tcgen05_cp_128x256b_b8x16_b4x16_p64"});
}

TEST_CASE("what tcgen05 cp has written is read behind its commit and a fence") {
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-cp-not-waited", "tensor-memory-uninitialised"}),
                      run_move(Form::k128x256b, Fault::kReadBeforeCommit));
  CHECK_BREAKS("tcgen05-fence", run_move(Form::k128x256b, Fault::kNoFenceAfter));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-commit-thread", "tensor-memory-uninitialised"}),
                      run_move(Form::k128x256b, Fault::kCommitByAnother));
  CHECK_BREAKS_ONE_OF((Rules{"exit-in-flight", "tensor-memory-dealloc"}),
                      run_move(Form::k128x256b, Fault::kExit));
}

TEST_CASE("tcgen05 cp reads shared memory behind fences, and until its commit") {
  CHECK_BREAKS("proxy-fence", run_move(Form::k128x256b, Fault::kNoProxyFence));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-operand-overwritten", "tcgen05-operand-race", "proxy-fence"}),
                      run_move(Form::k128x256b, Fault::kSourceOverwritten));
  CHECK_BREAKS("tcgen05-fence", run_move(Form::k128x256b, Fault::kNoFenceAfterSource));
  CHECK_BREAKS("tcgen05-descriptor", run_move(Form::k128x256b, Fault::kDescriptor));
}

TEST_CASE("tcgen05 cp and shift write columns of their CTA from the right lane on") {
  CHECK_BREAKS("tensor-memory-lanes", run_move(Form::k128x256b, Fault::kLanes));
  CHECK_BREAKS("tensor-memory-unallocated", run_move(Form::k128x256b, Fault::kUnallocated));
  CHECK_BREAKS("tensor-memory-lanes", run_move(Form::k128x256b, Fault::kShiftLane));
  CHECK_BREAKS("tensor-memory-uninitialised", run_move(Form::k128x256b, Fault::kShiftUnwritten));
}

TEST_CASE("two copies, and a shift behind a copy, are in no order without a wait") {
  CHECK_BREAKS("tensor-memory-race", run_move(Form::k128x256b, Fault::kTwice));
  CHECK_PASSES(run_move(Form::k128x256b, Fault::kTwiceWaited));
  CHECK_BREAKS("tensor-memory-race", run_move(Form::k128x256b, Fault::kShiftAtOnce));
  CHECK_PASSES(run_move(Form::k128x256b, Fault::kShift));
}

TEST_CASE("copies, shifts and multiplications of one thread are in order where the PTX ISA pipelines them") {
  CHECK_PASSES(run_multiply(Order::kCopyThenMultiply));
  CHECK_PASSES(run_multiply(Order::kMultiplyShiftMultiply));
  CHECK_PASSES(run_multiply(Order::kMultiplyWaitCopy));
  CHECK_BREAKS("tensor-memory-overwritten", run_multiply(Order::kMultiplyThenCopy));
}

TEST_CASE("with cta_group 2 each CTA copies its own, and shifts its own") {
  CHECK_PASSES(run_pair(Form::k128x128b));
  for (const Form form : {Form::k128x256b, Form::k4x256b, Form::k64x128b02, Form::k64x128b01, Form::k32x128b})
    CHECK(run_pair(form).rule == "passed");
  CHECK_PASSES(run_pair(Form::k128x256b, PairFault::kShifts));
  CHECK_BREAKS("tcgen05-operand-uninitialised", run_pair(Form::k128x128b, PairFault::kPeerWithoutSource));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-cp-not-waited", "tensor-memory-race", "tcgen05-st-not-waited",
                             "tensor-memory-overwritten"}),
                      run_pair(Form::k128x128b, PairFault::kNotTold));
}

TEST_CASE("reports of tcgen05 cp name it") {
  check_text(run_move(Form::k128x256b, Fault::kTwice).report, {"tcgen05.cp, operation"});
}

}  // namespace tcgen05_cp_test
