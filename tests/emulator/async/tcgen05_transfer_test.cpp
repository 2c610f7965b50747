// tcgen05.ld and tcgen05.st: which lanes a warp reaches, and who may read or overwrite what when. For each
// rule a kernel that breaks it and a neighbour that does not.
#include <bit>

#include "emulator/tcgen05_tile.h"

namespace tcgen05_transfer_test {

using namespace emulator_test;

namespace {

struct Shared {
  std::uint32_t tensor_memory;
};

constexpr ptx::LaunchShape kShape = one_cta(256, sizeof(Shared));
constexpr int kColumns = 8;

/// Warps 0 to 3 store; the same warps load, or from kOtherWarp on warps 4 to 7, which reach the same lanes.
enum class Fault {
  kNone,
  kNotWaited,  // no tcgen05.wait::st before the load
  kNeverStored,
  kForeignLanes,  // the store is to another warp's lanes
  kTwoAddresses,  // the lanes of a warp do not agree on where it is
  kOtherWarp,     // no fault
  kOtherNotWaited,
  kOtherNoFenceBefore,
  kOtherNoFenceAfter,
  kOtherNoBarrier,
};

__global__ void store_and_load(float* out, int faulty) {
  const auto fault = static_cast<Fault>(faulty);
  auto& shared = ptx::dynamic_shared<Shared>();
  const auto thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  if (warp == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 32);
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  if (warp < 4 && fault != Fault::kNeverStored) {
    std::uint32_t words[kColumns];
    for (int i = 0; i < kColumns; ++i)
      words[i] = std::bit_cast<std::uint32_t>(static_cast<float>(thread * kColumns + i));
    std::uint32_t to = lane_address(d);
    if (fault == Fault::kForeignLanes)
      to = ptx::tensor_memory_address(d, static_cast<std::uint32_t>((warp + 1) % 4 * 32), 0);
    if (fault == Fault::kTwoAddresses) to += threadIdx.x % 2 * kColumns;
    ptx::tcgen05_st_32x32b_x8(to, words);
    if (fault != Fault::kNotWaited && fault != Fault::kOtherNotWaited) ptx::tcgen05_wait_st();
    if (fault != Fault::kOtherNoFenceBefore) ptx::tcgen05_fence_before_thread_sync();
  }
  const bool by_another = fault >= Fault::kOtherWarp;
  if (by_another && fault != Fault::kOtherNoBarrier) __syncthreads();
  if (warp < 4 && fault == Fault::kOtherNotWaited) ptx::tcgen05_wait_st();
  if ((warp < 4) != by_another) {
    if (fault != Fault::kOtherNoFenceAfter) ptx::tcgen05_fence_after_thread_sync();
    float values[kColumns];
    ptx::tcgen05_ld_32x32b_x8(values, lane_address(d));
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < kColumns; ++i) ptx::st_global(out + thread % 128 * kColumns + i, values[i]);
  }
  if (warp < 4 && fault == Fault::kNotWaited) ptx::tcgen05_wait_st();
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(d, 32);
}

Outcome run_store_and_load(Fault fault) {
  DeviceArray<float> out(128 * kColumns);
  const Outcome outcome = run(store_and_load, kShape, out.get(), static_cast<int>(fault));
  if (outcome.rule != "passed") return outcome;
  const std::vector<float> host = out.host();
  int wrong = 0;
  for (std::size_t i = 0; i < host.size(); ++i) wrong += host[i] != static_cast<float>(i);
  CHECK(wrong == 0);
  return outcome;
}

/// Warps 4 to 7 store over what warps 0 to 3 have loaded.
enum class Overwrite { kComplete, kNotWaited, kNoFenceBefore, kNoFenceAfter, kNoBarrier };

__global__ void load_and_overwrite(int variant) {
  const auto how = static_cast<Overwrite>(variant);
  auto& shared = ptx::dynamic_shared<Shared>();
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  if (warp == 0) ptx::tcgen05_alloc(&shared.tensor_memory, 32);
  __syncthreads();
  const std::uint32_t d = ptx::ld_shared(&shared.tensor_memory);
  const std::uint32_t words[kColumns] = {};
  float values[kColumns];
  if (warp < 4) {
    ptx::tcgen05_st_32x32b_x8(lane_address(d), words);
    ptx::tcgen05_wait_st();
    ptx::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();  // so that the stores are in order, whatever becomes of the load
  ptx::tcgen05_fence_after_thread_sync();
  if (warp < 4) {
    ptx::tcgen05_ld_32x32b_x8(values, lane_address(d));
    if (how != Overwrite::kNotWaited) ptx::tcgen05_wait_ld();
    if (how != Overwrite::kNoFenceBefore) ptx::tcgen05_fence_before_thread_sync();
  }
  if (how != Overwrite::kNoBarrier) __syncthreads();
  if (warp >= 4) {
    if (how != Overwrite::kNoFenceAfter) ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_st_32x32b_x8(lane_address(d), words);
    ptx::tcgen05_wait_st();
  } else if (how == Overwrite::kNotWaited) {
    ptx::tcgen05_wait_ld();
  }
  __syncthreads();
  if (warp == 0) ptx::tcgen05_dealloc(d, 32);
}

Outcome run_overwrite(Overwrite how) {
  return run(load_and_overwrite, kShape, static_cast<int>(how));
}

/// One lane wants another number of columns, or the address elsewhere.
__global__ void lanes_disagree(int on_the_address) {
  struct Two {
    std::uint32_t place[2];
  };
  auto& shared = ptx::dynamic_shared<Two>();
  const bool odd = threadIdx.x == 31;
  ptx::tcgen05_alloc(&shared.place[odd && on_the_address ? 1 : 0], odd && !on_the_address ? 64 : 32);
}

}  // namespace

TEST_CASE("warp w reaches the lanes from 32 (w mod 4) on, and all its lanes say the same address") {
  CHECK_PASSES(run_store_and_load(Fault::kNone));
  CHECK_PASSES(run_store_and_load(Fault::kOtherWarp));
  CHECK_BREAKS("tensor-memory-lanes", run_store_and_load(Fault::kForeignLanes));
  CHECK_BREAKS("tensor-memory-lanes", run_store_and_load(Fault::kTwoAddresses));
  CHECK(contains(run_store_and_load(Fault::kTwoAddresses).report, "with different addresses"));
}

TEST_CASE("what tcgen05 st writes is there after wait st, for another warp after both fences and a barrier") {
  CHECK_BREAKS("tcgen05-st-not-waited", run_store_and_load(Fault::kNotWaited));
  CHECK_BREAKS("tensor-memory-uninitialised", run_store_and_load(Fault::kNeverStored));
  CHECK_BREAKS("tcgen05-fence", run_store_and_load(Fault::kOtherNoFenceBefore));
  CHECK_BREAKS("tcgen05-fence", run_store_and_load(Fault::kOtherNoFenceAfter));
  CHECK_BREAKS_ONE_OF((Rules{"tcgen05-st-not-waited", "tensor-memory-race"}),
                      run_store_and_load(Fault::kOtherNotWaited));
  CHECK_BREAKS_ONE_OF((Rules{"tensor-memory-race", "tcgen05-st-not-waited", "tensor-memory-uninitialised"}),
                      run_store_and_load(Fault::kOtherNoBarrier));
}

TEST_CASE("tcgen05 st overwrites what another warp has loaded after its wait ld, both fences and a barrier") {
  CHECK_PASSES(run_overwrite(Overwrite::kComplete));
  CHECK_BREAKS("tensor-memory-overwritten", run_overwrite(Overwrite::kNotWaited));
  CHECK_BREAKS("tcgen05-fence", run_overwrite(Overwrite::kNoFenceBefore));
  CHECK_BREAKS("tcgen05-fence", run_overwrite(Overwrite::kNoFenceAfter));
  // A load that comes behind the store meets one that is not ordered before it.
  CHECK_BREAKS_ONE_OF((Rules{"tensor-memory-overwritten", "tensor-memory-race", "tcgen05-st-not-waited"}),
                      run_overwrite(Overwrite::kNoBarrier));
}

TEST_CASE("the lanes of a warp allocate the same columns to the same place") {
  const ptx::LaunchShape shape = one_cta(32, 2 * sizeof(Shared));
  CHECK_BREAKS("tensor-memory-alloc", run(lanes_disagree, shape, 0));
  CHECK_BREAKS("tensor-memory-alloc", run(lanes_disagree, shape, 1));
  CHECK(contains(run(lanes_disagree, shape, 0).report, "with different operands"));
}

}  // namespace tcgen05_transfer_test
