// tcgen05: what it computes, and for each rule a kernel that breaks it and a neighbour that does not.
#include <bit>
#include <cstring>

#include "emulator/report/course_rules.h"
#include "emulator/tcgen05_tile.h"

namespace tcgen05_test {

using namespace emulator_test;

namespace {

using ptx::InstructionDescriptor;
using ptx::Swizzle;

constexpr int kMaxN = 256;

struct alignas(1024) Shared {
  bf16 a[128 * kK];    // [m][k], rows of 128 bytes, 128-byte swizzle
  bf16 b[kMaxN * kK];  // [n][k]
  std::uint64_t full, done, other;
  std::uint32_t tensor_memory;
};

constexpr ptx::LaunchShape shape(unsigned threads = 128) {
  return one_cta(threads, sizeof(Shared));
}

/// Issues the multiplications of a whole tile.
void __device__ multiply_tile(const Shared& shared, std::uint32_t d, std::uint32_t instruction,
                              bool accumulate = false) {
  for (int k = 0; k < kK; k += 16)
    ptx::tcgen05_mma_f16_ss(d, descriptor(shared.a, k), descriptor(shared.b, k), instruction,
                            accumulate || k > 0);
}

/// What a kernel does wrong.
enum class Fault {
  kNone,
  kReadBeforeCommit,  // no thread waits for the commit
  kNoCommit,
  kNoFenceAfter,          // between the wait and tcgen05.ld
  kNoFenceAfterOperands,  // between __syncthreads and tcgen05.mma
  kNoWaitLd,
  kRegistersWritten,
  kForeignLanes,
  kCommitByAnother,
  kLeak,
  kEarlyDealloc,
  kWrongDealloc,
  kSmallAlloc,
  kOddAlloc,
  kLargeAlloc,
  kGrowingAlloc,
  kAllocAfterRelinquish,
  kOutsideColumns,
  kAfterDealloc,
  kAccumulateUninitialised,
  kHopperDescriptor,
  kDescriptorVersion,
  kUnknownSwizzle,
  kInstructionShape,
  kInstructionTypes,
  kReservedBit,
  kTwoIssuers,
  kNoProxyFence,
  kOperandOverwritten,
  kMisplacedAccumulator,
  kExitBeforeCommit,
  kTwoAccumulators,
  kDeallocUnread,
  kArrivalNotAwaited,  // of an earlier commit, at another mbarrier
  kArrivalAwaited,     // no fault
  kInvalidated,
  kAwaitedInvalidated,  // no fault
};

/// D = A * B^T, 128 x kN, by one thread, with one thing wrong.
template <int kN>
__global__ void multiply(const bf16* a, const bf16* b, float* out, int faulty) {
  const auto fault = static_cast<Fault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  constexpr std::uint32_t kColumns = kN < 32 ? 32 : kN;
  fill(shared.a, a, 128);
  fill(shared.b, b, kN);
  if (fault != Fault::kNoProxyFence) ptx::fence_proxy_async_shared_cta();
  if (warp == 0) {
    std::uint32_t columns = kColumns;
    if (fault == Fault::kSmallAlloc) columns = 16;
    if (fault == Fault::kOddAlloc) columns = 96;
    if (fault == Fault::kLargeAlloc) columns = 1024;
    ptx::tcgen05_alloc(&shared.tensor_memory, columns);
    if (fault == Fault::kGrowingAlloc) ptx::tcgen05_alloc(&shared.tensor_memory, 2 * columns);
    ptx::tcgen05_relinquish_alloc_permit();
    if (fault == Fault::kAllocAfterRelinquish) ptx::tcgen05_alloc(&shared.tensor_memory, columns);
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.done, 1);
    ptx::mbarrier_init(&shared.other, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  std::uint32_t instruction = ptx::encode(InstructionDescriptor{.m = 128, .n = kN});
  if (fault == Fault::kInstructionShape) instruction = ptx::encode(InstructionDescriptor{.m = 128, .n = 24});
  if (fault == Fault::kInstructionTypes) instruction |= 2u << 7;
  if (fault == Fault::kReservedBit) instruction |= 1u << 23;
  if (threadIdx.x == 0) {
    if (fault != Fault::kNoFenceAfterOperands) ptx::tcgen05_fence_after_thread_sync();
    if (fault == Fault::kHopperDescriptor) {
      ptx::tcgen05_mma_f16_ss(d, ptx::k_major_descriptor(ptx::shared_address(shared.a), Swizzle::k128B),
                              descriptor(shared.b, 0), instruction, false);
    } else if (fault == Fault::kDescriptorVersion) {
      ptx::tcgen05_mma_f16_ss(d, descriptor(shared.a, 0) ^ std::uint64_t{3} << 46, descriptor(shared.b, 0),
                              instruction, false);
    } else if (fault == Fault::kUnknownSwizzle) {
      ptx::tcgen05_mma_f16_ss(d, descriptor(shared.a, 0) | std::uint64_t{3} << 61, descriptor(shared.b, 0),
                              instruction, false);
    } else if (fault == Fault::kMisplacedAccumulator) {
      multiply_tile(shared, ptx::tensor_memory_address(d, 32, 0), instruction);
    } else if (fault == Fault::kOutsideColumns) {
      multiply_tile(shared, d + 16, instruction);
    } else {
      multiply_tile(shared, d, instruction, fault == Fault::kAccumulateUninitialised);
    }
    if (fault == Fault::kTwoAccumulators) {
      // Another shape over the first one's columns, not waited for.
      multiply_tile(shared, d, ptx::encode(InstructionDescriptor{.m = 64, .n = kN}));
    }
    if (fault >= Fault::kArrivalNotAwaited) ptx::tcgen05_commit(&shared.other);
    if (fault != Fault::kNoCommit && fault != Fault::kCommitByAnother) ptx::tcgen05_commit(&shared.done);
    if (fault == Fault::kExitBeforeCommit) ptx::tcgen05_commit(&shared.other);
  }
  if (threadIdx.x == 32 && fault == Fault::kCommitByAnother) ptx::tcgen05_commit(&shared.done);
  if (threadIdx.x == 32 && fault == Fault::kTwoIssuers) {
    ptx::tcgen05_fence_after_thread_sync();
    multiply_tile(shared, d, instruction);
    ptx::tcgen05_commit(&shared.other);
  }
  if (fault == Fault::kOperandOverwritten && threadIdx.x == 64)
    ptx::st_shared(&shared.b[0], gemm::to_bf16(1));
  if (fault == Fault::kNoCommit) {
    wait(&shared.done, 1);  // passes: a fresh barrier
  } else if (fault != Fault::kReadBeforeCommit) {
    wait(&shared.done, 0);
  }
  if (fault == Fault::kTwoIssuers) wait(&shared.other, 0);
  if (fault != Fault::kNoFenceAfter || warp != 2) ptx::tcgen05_fence_after_thread_sync();
  if (fault == Fault::kEarlyDealloc && warp == 0) ptx::tcgen05_dealloc(d, kColumns);
  const std::uint32_t lanes = fault == Fault::kForeignLanes
                                  ? ptx::tensor_memory_address(d, (threadIdx.x / 32 + 1) % 4 * 32, 0)
                                  : lane_address(d);
  for (int column = 0; column < kN; column += 32) {
    float values[32];
    ptx::tcgen05_ld_32x32b_x32(values, lanes + static_cast<std::uint32_t>(column));
    if (fault == Fault::kRegistersWritten) values[3] = 0;
    if (fault != Fault::kNoWaitLd) ptx::tcgen05_wait_ld();
    for (int i = 0; i < 32; ++i)
      ptx::st_global(out + static_cast<int>(threadIdx.x) * kN + column + i, 1.0f * values[i]);
    if (fault == Fault::kNoWaitLd) ptx::tcgen05_wait_ld();
  }
  ptx::tcgen05_fence_before_thread_sync();
  if (fault == Fault::kDeallocUnread && warp == 0) ptx::tcgen05_dealloc(d, kColumns);
  if (threadIdx.x == 64) {
    if (fault == Fault::kArrivalAwaited || fault == Fault::kAwaitedInvalidated) wait(&shared.other, 0);
    if (fault == Fault::kInvalidated || fault == Fault::kAwaitedInvalidated)
      ptx::mbarrier_inval(&shared.other);
  }
  __syncthreads();
  if (fault == Fault::kAfterDealloc) {
    if (warp == 0) ptx::tcgen05_dealloc(d, kColumns);
    __syncthreads();
    float values[8];
    ptx::tcgen05_ld_32x32b_x8(values, lanes);
    ptx::tcgen05_wait_ld();
  } else if (warp == 0 && fault != Fault::kLeak && fault != Fault::kEarlyDealloc &&
             fault != Fault::kDeallocUnread) {
    ptx::tcgen05_dealloc(d, fault == Fault::kWrongDealloc ? 2 * kColumns : kColumns);
  }
}

template <int kN>
Outcome run_multiply(Fault fault) {
  const DeviceArray<bf16> a(arange(128 * kK, 3), "A");
  const DeviceArray<bf16> b(arange(static_cast<std::size_t>(kN) * kK, 11), "B");
  DeviceArray<float> out(128 * kN);
  return run(multiply<kN>, shape(), a.get(), b.get(), out.get(), static_cast<int>(fault));
}

template <int kN>
void check_exact() {
  const std::vector<bf16> a = arange(128 * kK, 3);
  const std::vector<bf16> b = arange(static_cast<std::size_t>(kN) * kK, 11);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(128 * kN);
  require_passes(run(multiply<kN>, shape(), device_a.get(), device_b.get(), out.get(), 0));
  CHECK(count_wrong(out.host(), a, b, kK) == 0);
}

}  // namespace

TEST_CASE("tcgen05 mma multiplies what the descriptors describe") {
  check_exact<32>();
  check_exact<64>();
  check_exact<256>();
}

TEST_CASE("a correct tcgen05 kernel passes under every schedule") {
  CHECK_PASSES(run_multiply<32>(Fault::kNone));
}

TEST_CASE("an accumulator is read behind its commit, a fence, and before nothing else") {
  // A warp may come before the multiplication is even issued.
  const Rules early{"tcgen05-mma-not-waited", "tensor-memory-uninitialised"};
  CHECK_BREAKS_ONE_OF(early, run_multiply<32>(Fault::kReadBeforeCommit));
  CHECK_BREAKS_ONE_OF(early, run_multiply<32>(Fault::kNoCommit));
  CHECK_BREAKS("tcgen05-fence", run_multiply<32>(Fault::kNoFenceAfter));
  const Rules by_another{"tcgen05-commit-thread", "tensor-memory-uninitialised"};
  CHECK_BREAKS_ONE_OF(by_another, run_multiply<32>(Fault::kCommitByAnother));
  CHECK(run_multiply<32>(Fault::kCommitByAnother).rule == "tcgen05-commit-thread");
}

TEST_CASE("tcgen05 mma reads shared memory behind a fence, proxies included") {
  CHECK_BREAKS("tcgen05-fence", run_multiply<32>(Fault::kNoFenceAfterOperands));
  CHECK_BREAKS("proxy-fence", run_multiply<32>(Fault::kNoProxyFence));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-operand-overwritten", "tcgen05-operand-race", "proxy-fence"}),
                      run_multiply<32>(Fault::kOperandOverwritten));
  const emulator::ScopedCourseRule off(emulator::CourseRule::kTensorOperandFence, false);
  CHECK(run_multiply<32>(Fault::kNoFenceAfterOperands).rule == "passed");
}

TEST_CASE("registers of tcgen05 ld belong to it until the wait") {
  CHECK_BREAKS("tcgen05-ld-not-waited", run_multiply<32>(Fault::kNoWaitLd));
  CHECK_BREAKS("tcgen05-registers-written", run_multiply<32>(Fault::kRegistersWritten));
  const emulator::ScopedCourseRule off(emulator::CourseRule::kTensorLoadWait, false);
  CHECK(run_multiply<32>(Fault::kNoWaitLd).rule == "passed");
}

TEST_CASE("a warp reaches its own quarter of the lanes") {
  CHECK_BREAKS("tensor-memory-lanes", run_multiply<32>(Fault::kForeignLanes));
  {
    const emulator::ScopedCourseRule off(emulator::CourseRule::kTensorMemoryAddress, false);
    CHECK(run_multiply<32>(Fault::kForeignLanes).rule == "passed");
  }
  CHECK_BREAKS("tensor-memory-lanes", run_multiply<32>(Fault::kMisplacedAccumulator));
}

TEST_CASE("tensor memory is allocated in powers of two, and by the rules") {
  CHECK_BREAKS("tensor-memory-alloc", run_multiply<32>(Fault::kSmallAlloc));
  CHECK_BREAKS("tensor-memory-alloc", run_multiply<32>(Fault::kOddAlloc));
  CHECK_BREAKS("tensor-memory-alloc", run_multiply<32>(Fault::kLargeAlloc));
  CHECK_BREAKS("tensor-memory-alloc", run_multiply<32>(Fault::kGrowingAlloc));
  CHECK_BREAKS("tensor-memory-alloc", run_multiply<32>(Fault::kAllocAfterRelinquish));
  CHECK_BREAKS("tensor-memory-unallocated", run_multiply<32>(Fault::kOutsideColumns));
}

TEST_CASE("tensor memory is deallocated once, whole, and when nothing uses it") {
  CHECK_BREAKS("tensor-memory-leak", run_multiply<32>(Fault::kLeak));
  CHECK_BREAKS("tensor-memory-dealloc", run_multiply<32>(Fault::kWrongDealloc));
  CHECK_BREAKS("tensor-memory-unallocated", run_multiply<32>(Fault::kAfterDealloc));
  CHECK_BREAKS_ONE_OF((Rules{"tensor-memory-dealloc", "tensor-memory-unallocated"}),
                      run_multiply<32>(Fault::kEarlyDealloc));
  int unread = 0;
  under_all_schedules([&] {
    const Outcome outcome = run_multiply<32>(Fault::kDeallocUnread);
    INFO(outcome.report);
    CHECK(outcome.rule != "passed");
    if (outcome.rule != "tensor-memory-dealloc") return;
    CHECK(contains(outcome.report, "a barrier for all warps that use the tensor memory"));
    unread += contains(outcome.report, "has not read its lanes yet") ? 1 : 0;
  });
  CHECK(unread > 0);
}

TEST_CASE("descriptors of tcgen05 are not those of wgmma") {
  CHECK_BREAKS("tcgen05-descriptor", run_multiply<32>(Fault::kHopperDescriptor));
  CHECK_BREAKS("tcgen05-descriptor", run_multiply<32>(Fault::kDescriptorVersion));
  CHECK_BREAKS("tcgen05-descriptor", run_multiply<32>(Fault::kUnknownSwizzle));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply<32>(Fault::kInstructionShape));
  CHECK(contains(run_multiply<32>(Fault::kInstructionShape).report, "the PTX ISA's table has steps of 8"));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply<32>(Fault::kInstructionTypes));
  CHECK_BREAKS("tcgen05-instruction-descriptor", run_multiply<32>(Fault::kReservedBit));
}

TEST_CASE("multiplications are in order within one thread, one shape and one accumulator") {
  CHECK_BREAKS("tensor-memory-uninitialised", run_multiply<32>(Fault::kAccumulateUninitialised));
  CHECK_BREAKS("tensor-memory-race", run_multiply<32>(Fault::kTwoIssuers));
  CHECK_BREAKS("tensor-memory-race", run_multiply<32>(Fault::kTwoAccumulators));
}

namespace {

/// One thread multiplies into two accumulators in turn. Each has an order of its own.
__global__ void two_in_turn(const bf16* a, const bf16* b, float* out) {
  constexpr int kN = 32;
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, a, 128);
  fill(shared.b, b, kN);
  ptx::fence_proxy_async_shared_cta();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 2 * kN);
  make_barrier(&shared.done);
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (threadIdx.x == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    for (int k = 0; k < kK; k += 16) {
      for (std::uint32_t i = 0; i < 2; ++i)
        ptx::tcgen05_mma_f16_ss(d + i * kN, descriptor(shared.a, k), descriptor(shared.b, k),
                                ptx::encode(InstructionDescriptor{.m = 128, .n = kN}), k > 0);
    }
    ptx::tcgen05_commit(&shared.done);
  }
  wait(&shared.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  for (int i = 0; i < 2; ++i) {
    float values[kN];
    ptx::tcgen05_ld_32x32b_x32(values, lane_address(d) + static_cast<std::uint32_t>(i * kN));
    ptx::tcgen05_wait_ld();
    for (int column = 0; column < kN; ++column)
      ptx::st_global(out + (static_cast<int>(threadIdx.x) * 2 + i) * kN + column, values[column]);
  }
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(d, 2 * kN);
}

}  // namespace

TEST_CASE("each of two accumulators of a thread has its multiplications in order") {
  const std::vector<bf16> a = arange(128 * kK, 3);
  const std::vector<bf16> b = arange(32 * kK, 11);
  std::vector<bf16> both_accumulators = b;
  both_accumulators.insert(both_accumulators.end(), b.begin(), b.end());
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(128 * 64);
  under_all_schedules([&] {
    require_passes(run(two_in_turn, shape(), device_a.get(), device_b.get(), out.get()));
    CHECK(count_wrong(out.host(), a, both_accumulators, kK) == 0);
  });
}

TEST_CASE("a CTA does not end before its last commit has arrived") {
  CHECK_BREAKS("exit-in-flight", run_multiply<32>(Fault::kExitBeforeCommit));
}

TEST_CASE(
    "commit-arrival: a CTA does not end, and an mbarrier is not invalidated, before a commit has arrived "
    "there") {
  CHECK_BREAKS("exit-in-flight", run_multiply<32>(Fault::kArrivalNotAwaited));
  CHECK_PASSES(run_multiply<32>(Fault::kArrivalAwaited));
  CHECK_BREAKS("mbarrier-invalidated-in-use", run_multiply<32>(Fault::kInvalidated));
  CHECK_PASSES(run_multiply<32>(Fault::kAwaitedInvalidated));
  check_text(run_multiply<32>(Fault::kArrivalNotAwaited).report,
             {"tcgen05.commit at tests/emulator/async/tcgen05_test.cpp:", "the last of 1 at this mbarrier",
              "--allow commit-arrival"});
  const emulator::ScopedCourseRule off(emulator::CourseRule::kCommitArrival, false);
  CHECK_PASSES(run_multiply<32>(Fault::kArrivalNotAwaited));
  CHECK_BREAKS("exit-in-flight", run_multiply<32>(Fault::kExitBeforeCommit));
}

namespace {

/// Two tiles one after the other in one accumulator: the epilogue's warps against the issuer's next tile.
enum class Handover { kComplete, kNoBarrier, kNoFenceBefore, kNoFenceAfter, kNoWaitLd, kSameParity };

__global__ void two_tiles(const bf16* a, const bf16* b, float* out, int variant) {
  const auto handover = static_cast<Handover>(variant);
  constexpr int kN = 32;
  auto& shared = ptx::dynamic_shared<Shared>();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  fill(shared.a, a, 128);
  fill(shared.b, b, kN);
  ptx::fence_proxy_async_shared_cta();
  if (warp == 4) ptx::tcgen05_alloc(&shared.tensor_memory, 32);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 128);  // "empty": the accumulator has been read
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (warp == 4) {
    if (threadIdx.x == 128) {
      ptx::tcgen05_fence_after_thread_sync();
      for (int tile = 0; tile < 3; ++tile) {
        if (tile > 0 && handover != Handover::kNoBarrier)
          wait(&shared.full, static_cast<std::uint32_t>(tile - 1) & 1);
        if (handover != Handover::kNoFenceAfter) ptx::tcgen05_fence_after_thread_sync();
        multiply_tile(shared, d, ptx::encode(InstructionDescriptor{.m = 128, .n = kN}));
        ptx::tcgen05_commit(&shared.done);
        if (handover == Handover::kNoBarrier) wait(&shared.done, static_cast<std::uint32_t>(tile) & 1);
      }
    }
  } else {
    for (int tile = 0; tile < 3; ++tile) {
      ptx::mbarrier_wait_parity(&shared.done,
                                handover == Handover::kSameParity ? 0 : static_cast<std::uint32_t>(tile) & 1,
                                {"epilogue", "done", 0, 0});
      ptx::tcgen05_fence_after_thread_sync();
      float values[32];
      ptx::tcgen05_ld_32x32b_x32(values, lane_address(d));
      if (handover != Handover::kNoWaitLd) ptx::tcgen05_wait_ld();
      if (handover != Handover::kNoFenceBefore) ptx::tcgen05_fence_before_thread_sync();
      ptx::mbarrier_arrive(&shared.full);
      if (handover == Handover::kNoWaitLd) ptx::tcgen05_wait_ld();
      for (int i = 0; i < kN; ++i)
        ptx::st_global(out + static_cast<int>(threadIdx.x) * kN + i, 1.0f * values[i]);
    }
  }
  __syncthreads();
  if (warp == 4) ptx::tcgen05_dealloc(d, 32);
}

Outcome run_two_tiles(Handover handover) {
  const DeviceArray<bf16> a(arange(128 * kK, 3), "A");
  const DeviceArray<bf16> b(arange(32 * kK, 11), "B");
  DeviceArray<float> out(128 * 32);
  return run(two_tiles, shape(160), a.get(), b.get(), out.get(), static_cast<int>(handover));
}

}  // namespace

TEST_CASE("an accumulator is overwritten when its readers are through") {
  CHECK_PASSES(run_two_tiles(Handover::kComplete));
  CHECK_BREAKS("tcgen05-fence", run_two_tiles(Handover::kNoFenceBefore));
  CHECK_BREAKS("tcgen05-fence", run_two_tiles(Handover::kNoFenceAfter));
  CHECK_BREAKS("tensor-memory-overwritten", run_two_tiles(Handover::kNoWaitLd));
  CHECK_BREAKS_ONE_OF((Rules{"tensor-memory-overwritten", "tcgen05-mma-not-waited"}),
                      run_two_tiles(Handover::kNoBarrier));
}

TEST_CASE("tensor-memory-overwritten: the reader was let through by a phase that it had seen before") {
  int named = 0;
  under_all_schedules([&] {
    const Outcome outcome = run_two_tiles(Handover::kSameParity);
    INFO(outcome.report);
    CHECK(outcome.rule != "passed");
    const bool overwritten = outcome.rule == "tensor-memory-overwritten";
    named +=
        overwritten && contains(outcome.report, " for phase 1 (parity 1) of mbarrier ") &&
                contains(outcome.report, "was satisfied by phase 0, which an earlier wait had already seen")
            ? 1
            : 0;
    CHECK(!(overwritten && contains(outcome.report, "missing  tcgen05.wait::ld")));
    // Who has waited for each phase once lacks something else.
    CHECK(!contains(run_two_tiles(Handover::kNoWaitLd).report, "an earlier wait had already seen"));
  });
  CHECK(named > 0);
}

namespace {

/// A goes through tensor memory: tcgen05.st, then a multiplication that reads it there.
enum class FromMemory {
  kComplete,
  kNoWaitSt,
  kNoFenceBefore,
  kNothingStored,
  kOverwrittenBehind,   // no fault: A is stored again when its multiplications are known to be over
  kOverwritten,         // nobody waits for them
  kOverwrittenNoFence,  // behind the wait for them
  kBothHalves,          // no fault: M = 64 twice, at lane 0 and at lane 16
  kLanesDiffer,         // D at lane 16, A at lane 0
  kLane32,
};

__global__ void a_in_tensor_memory(const bf16* a, const bf16* b, float* out, int variant) {
  const auto how = static_cast<FromMemory>(variant);
  const unsigned m = how >= FromMemory::kBothHalves ? 64 : 128;
  auto& shared = ptx::dynamic_shared<Shared>();
  const auto thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  fill(shared.b, b, 32);
  ptx::fence_proxy_async_shared_cta();
  if (warp == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 64);
  if (thread == 0) ptx::mbarrier_init(&shared.done, 1);
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (how != FromMemory::kNothingStored) {
    const int row = m == 128 ? thread : warp * 16 + thread % 16;
    std::uint32_t words[32];  // two elements of K each
    for (int i = 0; i < kK / 2; ++i)
      words[i] = ptx::ld_global(reinterpret_cast<const std::uint32_t*>(a + row * kK + 2 * i));
    ptx::tcgen05_st_32x32b_x32(lane_address(d) + 32, words);
    if (how != FromMemory::kNoWaitSt) ptx::tcgen05_wait_st();
    if (how != FromMemory::kNoFenceBefore) ptx::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();
  if (how == FromMemory::kNoWaitSt) ptx::tcgen05_wait_st();
  if (thread == 0) {
    ptx::tcgen05_fence_after_thread_sync();
    for (std::uint32_t lane = 0; lane < (m == 64 ? 32u : 16u); lane += 16) {
      const std::uint32_t of_a = how == FromMemory::kLanesDiffer ? 0 : lane;
      const std::uint32_t of_d = how == FromMemory::kLane32 ? 32 : lane;
      for (std::uint32_t k = 0; k < kK; k += 16)
        ptx::tcgen05_mma_f16_ts(ptx::tensor_memory_address(d, of_d, 0),
                                ptx::tensor_memory_address(d, of_a, 32 + k / 2),
                                descriptor(shared.b, static_cast<int>(k)),
                                ptx::encode(InstructionDescriptor{.m = m, .n = 32}), k > 0);
    }
    ptx::tcgen05_commit(&shared.done);
  }
  const bool overwrites = how >= FromMemory::kOverwrittenBehind && how <= FromMemory::kOverwrittenNoFence;
  if (overwrites) {
    __syncthreads();  // the multiplications are issued
    if (how != FromMemory::kOverwritten) wait(&shared.done, 0);
    if (how == FromMemory::kOverwrittenBehind) ptx::tcgen05_fence_after_thread_sync();
    const std::uint32_t zeros[8] = {};
    ptx::tcgen05_st_32x32b_x8(lane_address(d) + 32, zeros);
    ptx::tcgen05_wait_st();
  }
  wait(&shared.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  const int row = m == 128 ? thread : warp * 16 + thread % 16;
  float values[32];
  ptx::tcgen05_ld_32x32b_x32(values, lane_address(d));
  ptx::tcgen05_wait_ld();
  // With M = 64 both halves of a warp's lanes have the same rows, each from its own multiplications.
  float* const to = out + (m == 64 && thread % 32 < 16 ? 64 * 32 : 0) + row * 32;
  for (int i = 0; i < 32; ++i) ptx::st_global(to + i, values[i]);
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(d, 64);
}

Outcome run_a_in_tensor_memory(FromMemory how, std::vector<float>* result = nullptr) {
  const DeviceArray<bf16> a(arange(128 * kK, 3), "A");
  const DeviceArray<bf16> b(arange(32 * kK, 11), "B");
  DeviceArray<float> out(128 * 32);
  const Outcome outcome =
      run(a_in_tensor_memory, shape(), a.get(), b.get(), out.get(), static_cast<int>(how));
  if (result) *result = out.host();
  return outcome;
}

}  // namespace

TEST_CASE("A may come from tensor memory, behind wait st and both fences") {
  const std::vector<bf16> a = arange(128 * kK, 3);
  const std::vector<bf16> b = arange(32 * kK, 11);
  const auto check = [&](FromMemory how, unsigned rows) {
    under_all_schedules([&] {
      std::vector<float> result;
      require_passes(run_a_in_tensor_memory(how, &result));
      const std::vector<bf16> rows_of_a(a.begin(), a.begin() + rows * kK);
      CHECK(count_wrong(result, rows_of_a, b, kK, 128 / rows) == 0);
    });
  };
  check(FromMemory::kComplete, 128);
  check(FromMemory::kBothHalves, 64);
  // The wait comes behind the barrier: before the multiplication, or not.
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-st-not-waited", "tensor-memory-race"}),
                      run_a_in_tensor_memory(FromMemory::kNoWaitSt));
  CHECK_BREAKS("tcgen05-fence", run_a_in_tensor_memory(FromMemory::kNoFenceBefore));
  CHECK_BREAKS("tensor-memory-uninitialised", run_a_in_tensor_memory(FromMemory::kNothingStored));
}

TEST_CASE("with M = 64 an accumulator starts at lane 0 or 16, and A in tensor memory where D does") {
  CHECK_PASSES(run_a_in_tensor_memory(FromMemory::kBothHalves));
  CHECK_BREAKS("tensor-memory-lanes", run_a_in_tensor_memory(FromMemory::kLanesDiffer));
  CHECK_BREAKS("tensor-memory-lanes", run_a_in_tensor_memory(FromMemory::kLane32));
}

TEST_CASE("A in tensor memory belongs to the multiplication until a wait has seen its commit, and a fence") {
  CHECK_PASSES(run_a_in_tensor_memory(FromMemory::kOverwrittenBehind));
  CHECK_BREAKS("tensor-memory-overwritten", run_a_in_tensor_memory(FromMemory::kOverwritten));
  CHECK_BREAKS("tcgen05-fence", run_a_in_tensor_memory(FromMemory::kOverwrittenNoFence));
}

namespace {

/// Two CTAs of an SM want more columns than it has; the second goes on when the first gives them back.
__global__ void crowd(int gives_back) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::tcgen05_alloc(&shared.tensor_memory, 512);
  ptx::tcgen05_relinquish_alloc_permit();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  __syncwarp();
  if (gives_back) ptx::tcgen05_dealloc(d, 512);
}

__global__ void twice() {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::tcgen05_alloc(&shared.tensor_memory, 512);
  ptx::tcgen05_alloc(&shared.tensor_memory, 32);
}

/// Only some lanes come.
__global__ void one_lane() {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 32);
}

}  // namespace

TEST_CASE("an allocation waits for columns, and for ever where nobody gives any back") {
  ptx::LaunchShape two = shape(32);
  two.grid = {2};
  two.co_resident = true;
  two.ctas_per_sm = 2;
  two.shared_bytes = 64 * 1024;
  CHECK_PASSES(run(crowd, two, 1));
  CHECK_BREAKS_ONE_OF((Rules{"tensor-memory-exhausted", "tensor-memory-leak"}), run(crowd, two, 0));
  CHECK_BREAKS("tensor-memory-exhausted", run(twice, shape(32)));
  CHECK_BREAKS("warp-divergence", run(one_lane, shape(32)));
}

namespace {

/// CTA 0 loads tiles into both CTAs of a cluster. Each multiplies them, and its tensor cores tell CTA 0.
enum class Multicast {
  kComplete,
  kToEverybody,      // both CTAs are told, and CTA 1 tells CTA 0 that it has heard it
  kOwnOnly,          // CTA 1 tells itself
  kOwnOnlyAndCount,  // and CTA 0 expects one arrival
  kMaskTooWide,
  kMaskEmpty,
  kPeerGone,  // CTA 0 returns without having heard of the last tile
};

constexpr int kRounds = 3;

struct alignas(1024) ClusterShared {
  bf16 a[128 * kK];
  bf16 b[32 * kK];
  std::uint64_t full, empty, done;
  std::uint32_t tensor_memory;
};

__global__ void commit_to_a_peer(ptx::TensorMap a, ptx::TensorMap b, float* out, int variant) {
  const auto fault = static_cast<Multicast>(variant);
  auto& shared = ptx::dynamic_shared<ClusterShared>();
  const std::uint32_t rank = ptx::cluster_ctarank();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 32);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, fault == Multicast::kToEverybody && rank == 0 ? 2 : 1);
    ptx::mbarrier_init(&shared.empty, fault == Multicast::kOwnOnlyAndCount ? 1 : 2);
    ptx::mbarrier_init(&shared.done, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  cluster_sync();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (threadIdx.x == 32) {
    for (int round = 0; round < kRounds; ++round) {
      const std::uint32_t parity = static_cast<std::uint32_t>(round) & 1;
      if (rank == 0 || fault == Multicast::kToEverybody) wait(&shared.empty, 1 - parity);
      // CTA 0's tensor cores tell CTA 1 of the next phase only after it has seen this one.
      if (rank == 1 && fault == Multicast::kToEverybody)
        ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(&shared.full), 0));
      ptx::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.a + sizeof shared.b);
      if (rank == 0) {
        ptx::cp_async_bulk_tensor_2d_multicast(shared.a, &a, kK * round, 0, &shared.full, 3);
        ptx::cp_async_bulk_tensor_2d_multicast(shared.b, &b, kK * round, 0, &shared.full, 3);
      } else {
        wait(&shared.full, parity);  // no more than one phase ahead
      }
    }
    // The arrivals of the last round, which nothing orders before those at `done`.
    if (fault != Multicast::kPeerGone && (rank == 0 || fault == Multicast::kToEverybody))
      wait(&shared.empty, 1 - kRounds % 2);
  }
  if (threadIdx.x == 0) {
    for (int round = 0; round < kRounds; ++round) {
      wait(&shared.full, static_cast<std::uint32_t>(round) & 1);
      ptx::tcgen05_fence_after_thread_sync();
      for (int k = 0; k < kK; k += 16)
        ptx::tcgen05_mma_f16_ss(d, descriptor(shared.a, k), descriptor(shared.b, k),
                                ptx::encode(InstructionDescriptor{.m = 128, .n = 32}), round > 0 || k > 0);
      std::uint16_t ctas = 1;
      if (fault == Multicast::kToEverybody) ctas = 3;
      if (fault == Multicast::kOwnOnly || fault == Multicast::kOwnOnlyAndCount)
        ctas = static_cast<std::uint16_t>(1u << rank);
      if (fault == Multicast::kMaskTooWide) ctas = 5;
      if (fault == Multicast::kMaskEmpty) ctas = 0;
      ptx::tcgen05_commit_multicast(&shared.empty, ctas);
    }
    ptx::tcgen05_commit(&shared.done);
  }
  wait(&shared.done, 0);
  ptx::tcgen05_fence_after_thread_sync();
  float values[32];
  ptx::tcgen05_ld_32x32b_x32(values, lane_address(d));
  ptx::tcgen05_wait_ld();
  for (int i = 0; i < 32; ++i)
    ptx::st_global(out + (static_cast<int>(rank * 128 + threadIdx.x)) * 32 + i, values[i]);
  __syncthreads();
  if (threadIdx.x / 32 == 0) ptx::tcgen05_dealloc(d, 32);
  if (fault != Multicast::kPeerGone) cluster_sync();
}

Outcome run_commit_to_a_peer(Multicast fault) {
  const std::vector<bf16> a = arange(128 * kK * kRounds, 3);
  const std::vector<bf16> b = arange(32 * kK * kRounds, 11);
  const DeviceArray<bf16> device_a(a, "A");
  const DeviceArray<bf16> device_b(b, "B");
  DeviceArray<float> out(2 * 128 * 32);
  const auto map = [](const bf16* matrix, unsigned rows) {
    return ptx::make_tensor_map(ptx::matrix_spec(matrix, rows, kK * kRounds, rows, kK, Swizzle::k128B));
  };
  const Outcome outcome = run(
      commit_to_a_peer, {.grid = {2}, .block = {128}, .cluster = {2}, .shared_bytes = sizeof(ClusterShared)},
      map(device_a.get(), 128), map(device_b.get(), 32), out.get(), static_cast<int>(fault));
  if (outcome.rule != "passed") return outcome;
  CHECK(count_wrong(out.host(), a, b, kK * kRounds, 2) == 0);
  return outcome;
}

struct alignas(1024) CommitRing {
  bf16 a[128 * kK];
  bf16 b[32 * kK];
  std::uint64_t full, empty, done;
  std::uint32_t tensor_memory;
};

/// B is loaded twice and multiplied once; the commit on which its place is released stands behind the
/// multiplication, or before it.
__global__ void commit_releases(ptx::TensorMap b_map, const bf16* a, int before) {
  auto& shared = ptx::dynamic_shared<CommitRing>();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  fill(shared.a, a, 128);
  ptx::fence_proxy_async_shared_cta();
  if (warp == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 32);
  if (threadIdx.x == 0) {
    for (std::uint64_t* barrier : {&shared.full, &shared.empty, &shared.done}) ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (threadIdx.x == 0) {
    wait(&shared.full, 0);
    ptx::tcgen05_fence_after_thread_sync();
    if (before) ptx::tcgen05_commit(&shared.empty);
    for (int k = 0; k < kK; k += 16)
      ptx::tcgen05_mma_f16_ss(d, descriptor(shared.a, k), descriptor(shared.b, k),
                              ptx::encode(InstructionDescriptor{.m = 128, .n = 32}), k > 0);
    if (!before) ptx::tcgen05_commit(&shared.empty);
    ptx::tcgen05_commit(&shared.done);
    wait(&shared.full, 1);
  }
  if (threadIdx.x == 32) {
    for (unsigned round = 0; round < 2; ++round) {
      wait(&shared.empty, 1 - round);
      ptx::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.b);
      ptx::cp_async_bulk_tensor_2d(shared.b, &b_map, 0, 0, &shared.full);
    }
  }
  wait(&shared.done, 0);
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(d, 32);
}

/// A commit arrives at a barrier that expects bytes, and no other arrival.
__global__ void commit_to_full() {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&shared.full, 1);
  ptx::fence_mbarrier_init_release_cluster();
  ptx::mbarrier_arrive_expect_tx(&shared.full, 16);
  ptx::tcgen05_commit(&shared.full);
  wait(&shared.full, 0);
}

}  // namespace

TEST_CASE("a commit tells the CTAs of a mask, each when the multiplications are done") {
  CHECK_PASSES(run_commit_to_a_peer(Multicast::kComplete));
  CHECK_PASSES(run_commit_to_a_peer(Multicast::kToEverybody));
  CHECK_BREAKS("deadlock", run_commit_to_a_peer(Multicast::kOwnOnly));
  CHECK_BREAKS("multicast-mask", run_commit_to_a_peer(Multicast::kMaskTooWide));
  CHECK_BREAKS("multicast-mask", run_commit_to_a_peer(Multicast::kMaskEmpty));
  CHECK_BREAKS_ONE_OF((Rules{"load-overwrites", "load-not-waited", "mbarrier-arrivals", "expect-tx-small"}),
                      run_commit_to_a_peer(Multicast::kOwnOnlyAndCount));
  CHECK_BREAKS_ONE_OF((Rules{"cluster-exit", "exit-in-flight"}), run_commit_to_a_peer(Multicast::kPeerGone));
}

TEST_CASE("load-overwrites: a commit stands before the multiplication that it should cover") {
  const DeviceArray<bf16> a(arange(128 * kK, 3), "A");
  const DeviceArray<bf16> b(arange(32 * kK, 11), "B");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(b.get(), 32, kK, 32, kK, Swizzle::k128B));
  const auto run_releases = [&](int before) {
    return run(commit_releases, one_cta(128, sizeof(CommitRing)), map, a.get(), before);
  };
  CHECK_PASSES(run_releases(0));
  int named = 0;
  under_all_schedules([&] {
    const Outcome outcome = run_releases(1);
    INFO(outcome.report);
    CHECK(outcome.rule != "passed");
    if (outcome.rule != "load-overwrites") return;
    CHECK(contains(outcome.report, "after the tcgen05.mma at tests/emulator/async/tcgen05_test.cpp:"));
    ++named;
  });
  CHECK(named > 0);
}

TEST_CASE("a commit arrives where an arrival is missing") {
  CHECK_BREAKS("mbarrier-arrivals", run(commit_to_full, shape(32)));
}

TEST_CASE("reports of tcgen05 name the place, the columns and what is missing") {
  std::string early;
  under_all_schedules([&] {
    const Outcome outcome = run_multiply<32>(Fault::kReadBeforeCommit);
    if (outcome.rule == "tcgen05-mma-not-waited") early = outcome.report;
  });
  check_text(early,
             {"tcgen05_test.cpp", "of tensor memory", "a wait for the mbarrier on which the commit at"});
  under_all_schedules([] {  // the wait comes, but behind the arrival: at whatever time
    check_text(run_two_tiles(Handover::kNoWaitLd).report, {"tcgen05.wait::ld by warp"});
  });
  check_text(run_multiply<32>(Fault::kOutsideColumns).report,
             {"allocated columns", "missing  64 columns in the tcgen05.alloc at ",
              "which allocates 32: columns 16 to 47 after its first one are used here"});
  CHECK_FALSE(contains(run_multiply<32>(Fault::kAfterDealloc).report, "columns in the tcgen05.alloc"));
  check_text(run_multiply<32>(Fault::kLeak).report, {"tcgen05.dealloc by a whole warp"});
  check_text(run_multiply<32>(Fault::kHopperDescriptor).report, {"bits 46-48 are not 0b001"});
}

TEST_CASE("tcgen05 descriptors are encoded and decoded bit by bit") {
  const ptx::MatrixDescriptor tile{
      .address = 0x12340, .leading_bytes = 16, .stride_bytes = 1024, .swizzle = Swizzle::k128B};
  const std::uint64_t bits = ptx::tcgen05_encode(tile);
  CHECK(bits == (0x1234u | std::uint64_t{1} << 16 | std::uint64_t{64} << 32 | std::uint64_t{1} << 46 |
                 std::uint64_t{2} << 61));
  CHECK(ptx::tcgen05_decode(bits) == tile);
  CHECK(ptx::tcgen05_descriptor_fault(bits) == nullptr);
  CHECK(ptx::tcgen05_descriptor_fault(ptx::encode(tile)) != nullptr);
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B}) {
    const ptx::MatrixDescriptor other{
        .address = 64, .leading_bytes = 128, .stride_bytes = 256, .swizzle = swizzle};
    CHECK(ptx::tcgen05_decode(ptx::tcgen05_encode(other)) == other);
  }
  const std::uint32_t instruction = ptx::encode(InstructionDescriptor{.m = 128, .n = 256});
  CHECK(instruction == (1u << 4 | 1u << 7 | 1u << 10 | 32u << 17 | 8u << 24));
  CHECK(ptx::decode_instruction(instruction) == InstructionDescriptor{.m = 128, .n = 256});
  CHECK(ptx::instruction_descriptor_fault(instruction) == nullptr);
  CHECK(ptx::instruction_descriptor_fault(ptx::encode(InstructionDescriptor{.m = 64, .n = 8})) == nullptr);
  CHECK(ptx::instruction_descriptor_fault(ptx::encode(InstructionDescriptor{.m = 128, .n = 8})) != nullptr);
  CHECK(ptx::instruction_descriptor_fault(ptx::encode(InstructionDescriptor{.m = 32, .n = 8})) != nullptr);
  CHECK(ptx::instruction_descriptor_fault(ptx::encode(InstructionDescriptor{.m = 256, .n = 64}), 2) ==
        nullptr);
}

TEST_CASE("each fault of a tcgen05 descriptor has its sentence, and its neighbour none") {
  const auto fault = [](std::uint32_t bits, int ctas = 1) {
    const char* const found = ptx::instruction_descriptor_fault(bits, ctas);
    return std::string(found == nullptr ? "" : found);
  };
  const std::uint32_t right = ptx::encode(InstructionDescriptor{});
  const auto shape = [](std::uint32_t m, std::uint32_t n) {
    return ptx::encode(InstructionDescriptor{.m = m, .n = n});
  };
  CHECK(fault(right).empty());
  CHECK(contains(fault(right | 1u << 2), "sparse"));
  CHECK(contains(fault(right | 1u << 3), "saturates"));
  for (const int reserved : {6, 23, 29}) CHECK(contains(fault(right | 1u << reserved), "reserved"));
  CHECK(contains(fault(right | 1u << 30), "shifts B"));
  CHECK(contains(fault(right | 3u << 4), "type of D"));
  CHECK(contains(fault(right ^ 3u << 7), "type of A or B"));
  CHECK(contains(fault(right ^ 1u << 7), "types of A and B differ"));
  CHECK(fault(right ^ (1u << 7 | 1u << 10)).empty());  // f16 twice
  CHECK(fault(right | 15u << 13).empty());             // negated, transposed
  CHECK(contains(fault(shape(96, 128)), "neither 64 nor 128"));
  CHECK(contains(fault(shape(256, 128)), "neither 64 nor 128"));
  CHECK(contains(fault(shape(64, 128), 2), "neither 128 nor 256"));
  // N: steps of 8 with M = 64, of 16 with M = 128, of 16 for a pair.
  CHECK(fault(shape(64, 24)).empty());
  CHECK(contains(fault(shape(64, 0)), "not a multiple of 8"));
  CHECK(fault(shape(128, 48)).empty());
  CHECK(contains(fault(shape(128, 24)), "but M = 128 needs that"));
  CHECK(contains(fault(shape(64, 264)), "to 256"));
  for (const std::uint32_t m : {128u, 256u}) {
    CHECK(fault(shape(m, 16), 2).empty());
    CHECK(fault(shape(m, 48), 2).empty());
    CHECK(contains(fault(shape(m, 24), 2), "but a pair of CTAs needs that"));
  }
  const auto of_tile = [](std::uint64_t bits) {
    const char* const found = ptx::tcgen05_descriptor_fault(bits);
    return std::string(found == nullptr ? "" : found);
  };
  const std::uint64_t tile = ptx::tcgen05_k_major_descriptor(0x400, Swizzle::k128B);
  CHECK(of_tile(tile).empty());
  CHECK(of_tile(tile | std::uint64_t{7} << 49).empty());  // a base offset
  for (const int bit : {46, 47, 48})
    CHECK(contains(of_tile(tile ^ std::uint64_t{1} << bit), "bits 46-48 are not 0b001"));
  for (int bit = 53; bit <= 60; ++bit) CHECK(contains(of_tile(tile | std::uint64_t{1} << bit), "bits 53-60"));
  for (const int bit : {14, 15, 30, 31})
    CHECK(contains(of_tile(tile | std::uint64_t{1} << bit), "between the fields"));
  for (std::uint64_t code = 0; code < 8; ++code) {
    const bool is_known = code == 0 || code == 1 || code == 2 || code == 4 || code == 6;
    CHECK(of_tile((tile & ~(std::uint64_t{7} << 61)) | code << 61).empty() == is_known);
  }
}

}  // namespace tcgen05_test
