// Fences of threads that neither write nor read the flag: fence.sc orders them, fence.acq_rel does not.
#include "emulator/emulator_test.h"
#include "ptx/atomic.cuh"
#include "ptx/fence.cuh"

namespace fence_order_test {

using namespace emulator_test;

namespace {

enum Writers { kEach, kEachAcquireRelease, kFlagRaiser, kNobody };
enum Readers { kEachReader, kFlagReader, kFlagAcquirer };
constexpr unsigned kThreads = 64;

/// CTA 0 writes data and raises a flag; CTA 1 waits for the flag and reads the data.
__global__ void hands_over(int* data, std::uint32_t* flag, int* out, int writers, int readers) {
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0) {
    ptx::st_global(data + t, static_cast<int>(t));
    if (writers == kEach) __threadfence();
    if (writers == kEachAcquireRelease) ptx::fence_acq_rel_gpu();
    __syncthreads();
    if (t != 0) return;
    if (writers == kFlagRaiser) __threadfence();
    ptx::st_relaxed_gpu(flag, 1);
    return;
  }
  if (t == 0) {
    while ((readers == kFlagAcquirer ? ptx::ld_acquire_gpu(flag) : ptx::ld_relaxed_gpu(flag)) == 0) {
    }
    if (readers == kFlagReader) __threadfence();
  }
  __syncthreads();
  if (readers == kEachReader) __threadfence();
  ptx::st_global(out + t, ptx::ld_global(data + kThreads - 1 - t));
}

const ptx::LaunchShape kTwo{.grid = {2}, .block = {kThreads}, .co_resident = true};

}  // namespace

TEST_CASE("fence.sc of every thread, a barrier, and a relaxed flag hand data over") {
  const auto outcome_of = [](Writers writers, Readers readers) {
    DeviceArray<int> data(kThreads);
    DeviceArray<int> out(kThreads);
    DeviceArray<std::uint32_t> flag(1);
    flag.fill(0);
    return run(hands_over, kTwo, data.get(), flag.get(), out.get(), static_cast<int>(writers),
               static_cast<int>(readers));
  };
  // The fences of the flag's own threads need no other ones; fence.sc of any threads will do.
  for (const Writers writers : {kEach, kFlagRaiser}) {
    CHECK_PASSES(outcome_of(writers, kEachReader));
    CHECK_PASSES(outcome_of(writers, kFlagReader));
  }
  CHECK_PASSES(outcome_of(kFlagRaiser, kFlagAcquirer));
  // A fence.acq_rel releases only together with a write of its own thread, and an acquire is no fence.sc.
  for (const Readers readers : {kEachReader, kFlagReader, kFlagAcquirer})
    CHECK_BREAKS("global-race", outcome_of(kEachAcquireRelease, readers));
  CHECK_BREAKS("global-race", outcome_of(kEach, kFlagAcquirer));
  CHECK_BREAKS("global-race", outcome_of(kNobody, kEachReader));
  CHECK(contains(outcome_of(kEach, kFlagAcquirer).report, "comes before the barrier (or the acquire)"));
  CHECK(contains(outcome_of(kNobody, kEachReader).report, "missing  a release: "));
}

}  // namespace fence_order_test
