// Tensor maps that a kernel changes, and what the copy engine knows of it. PTX ISA, "tensormap.replace",
// "tensormap.cp_fenceproxy", "membar, fence": fence.proxy.tensormap::generic.
#include "emulator/async/async_memory.h"
#include "emulator/hopper_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/tensormap.cuh"

namespace descriptor_cache_test {

using namespace emulator_test;
using ptx::TensorMap;

namespace {

constexpr int kColumns = 64;
constexpr int kBoxRows = 16;
constexpr std::uint32_t kBoxBytes = kColumns * kBoxRows * sizeof(bf16);

struct alignas(1024) Shared {
  bf16 tile[kBoxRows * kColumns];
  alignas(128) TensorMap map;
  std::uint64_t full;
};

constexpr ptx::LaunchShape shape(unsigned ctas) {
  return {.grid = {ctas}, .block = {64}, .cluster = {ctas}, .shared_bytes = sizeof(Shared)};
}

enum Fault {
  kNone,
  kInGlobalMemory,           // no fault: the change is made there
  kAcquiredByAnotherThread,  // no fault: a barrier follows
  kNoWarpSync,
  kNoRelease,
  kReleaseByAnother,
  kNoAcquire,
  kAcquireBefore,
  kNoBarrierBehindAcquire,
  kAcquireInOtherCta,
  kChangedMeanwhile,
  kMapInShared,
  kAcquireOfShared,
  kMisaligned,
  kNotAMap,
  kOddStride,
};

__device__ void copy_map(const TensorMap& from, TensorMap* to, bool shared) {
  for (unsigned i = 0; i < 8; ++i) {
    const uint4 piece = reinterpret_cast<const uint4*>(&from)[i];
    shared ? ptx::st_shared(reinterpret_cast<uint4*>(to) + i, piece)
           : ptx::st_global(reinterpret_cast<uint4*>(to) + i, piece);
  }
}

/// Loads and hands out one box, by thread 0.
__device__ void load(Shared& shared, const TensorMap* map, bf16* out) {
  const unsigned me = threadIdx.x;
  if (me == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, kBoxBytes);
    ptx::cp_async_bulk_tensor_2d(shared.tile, map, 0, 0, &shared.full);
  }
  wait(&shared.full, 0);
  for (unsigned i = me; i < kBoxRows * kColumns; i += 64)
    ptx::st_global(out + blockIdx.x * kBoxRows * kColumns + i, ptx::ld_shared(&shared.tile[i]));
}

__device__ void start(Shared& shared) {
  make_barrier(&shared.full);
  cluster_sync();
}

/// The first CTA makes a map of `pattern` for other rows, and every CTA uses it.
__global__ void changes(int fault, const TensorMap pattern, TensorMap* map, const bf16* rows,
                        std::uint32_t count, bf16* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const unsigned me = threadIdx.x;
  const bool in_global = fault == kInGlobalMemory || fault == kNoRelease || fault == kReleaseByAnother ||
                         fault == kChangedMeanwhile;
  start(shared);
  if (fault == kAcquireBefore && me == 0) ptx::fence_proxy_tensormap_acquire_gpu(map);
  const std::uint64_t stride = fault == kOddStride ? 24 : 2 * kColumns * sizeof(bf16);
  if (blockIdx.x == 0 && me < 32) {
    TensorMap* const own =
        fault == kMisaligned ? reinterpret_cast<TensorMap*>(&shared.tile[32]) : &shared.map;
    if (me == 0 && in_global) {
      copy_map(pattern, map, false);
      ptx::tensormap_replace_global_address_global(map, rows);
      ptx::tensormap_replace_global_dim_global<1>(map, count);
      ptx::tensormap_replace_global_stride_global<0>(map, stride);
      if (fault != kNoRelease && fault != kReleaseByAnother) ptx::fence_proxy_tensormap_release_gpu();
    } else if (me == 0) {
      copy_map(fault == kNotAMap ? TensorMap{} : pattern, own, true);
      ptx::tensormap_replace_global_address_shared(own, rows);
      ptx::tensormap_replace_global_dim_shared<1>(own, count);
      ptx::tensormap_replace_global_stride_shared<0>(own, stride);
    }
    if (fault != kNoWarpSync) __syncwarp();
    if (!in_global) ptx::tensormap_cp_fenceproxy_release_gpu(map, &shared.map);
  }
  __syncthreads();
  if (fault == kReleaseByAnother && me == 32 && blockIdx.x == 0) ptx::fence_proxy_tensormap_release_gpu();
  cluster_sync();
  const bool other_thread = fault == kAcquiredByAnotherThread || fault == kNoBarrierBehindAcquire;
  const bool acquires =
      fault != kNoAcquire && fault != kAcquireBefore && !(fault == kAcquireInOtherCta && blockIdx.x == 1);
  if (acquires && me == (other_thread ? 32u : 0u))
    ptx::fence_proxy_tensormap_acquire_gpu(fault == kAcquireOfShared ? &shared.map : map);
  if (fault != kNoBarrierBehindAcquire) __syncthreads();
  if (fault == kChangedMeanwhile && me == 33) ptx::tensormap_replace_global_dim_global<1>(map, 1);
  load(shared, fault == kMapInShared ? &shared.map : map, out);
  cluster_sync();
}

/// Uses a map that is there.
__global__ void uses(bool acquires, const TensorMap* map, bf16* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  start(shared);
  if (acquires && threadIdx.x == 0) ptx::fence_proxy_tensormap_acquire_sys(map);
  load(shared, map, out);
}

enum Use {
  kWaited,    // no fault
  kOtherMap,  // no fault: the copy under way uses another map
  kLoadUnderWay,
  kStoreUnderWay,
  kStoreRead,        // no fault: of a store, that its reads are over is enough
  kWaitedByAnother,  // no fault: a barrier hands it on
  kWaitedElsewhere,  // and here none does
  kInGlobalUnderWay,
};

/// A copy with a map, and the map is changed again behind it. Lane 0 copies, and the first warp changes.
__global__ void changes_again(int use, const TensorMap pattern, TensorMap* maps, bf16* rows) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const unsigned me = threadIdx.x;
  const bool stores = use == kStoreUnderWay || use == kStoreRead;
  const bool by_another = use == kWaitedByAnother || use == kWaitedElsewhere;
  start(shared);
  if (me >= 32) {
    if (by_another) wait(&shared.full, 0);
    if (use == kWaitedByAnother) ptx::bar_sync(1, 64);
    return;
  }
  if (me == 0) copy_map(pattern, &shared.map, true);
  __syncwarp();
  ptx::tensormap_cp_fenceproxy_release_gpu(maps, &shared.map);
  if (me == 0) {
    ptx::fence_proxy_tensormap_acquire_gpu(maps);
    if (stores) {
      for (unsigned i = 0; i < kBoxRows * kColumns; ++i) ptx::st_shared(&shared.tile[i], bf16{});
      ptx::fence_proxy_async_shared_cta();
      ptx::cp_async_bulk_tensor_2d_store(maps, 0, 0, shared.tile);
      ptx::cp_async_bulk_commit_group();
      if (use == kStoreRead) ptx::cp_async_bulk_wait_group_read<0>();
    } else {
      ptx::mbarrier_arrive_expect_tx(&shared.full, kBoxBytes);
      ptx::cp_async_bulk_tensor_2d(shared.tile, maps, 0, 0, &shared.full);
      if (use == kWaited) wait(&shared.full, 0);
    }
  }
  if (use == kWaitedByAnother) ptx::bar_sync(1, 64);
  __syncwarp();
  if (use == kInGlobalUnderWay) {
    if (me == 0) ptx::tensormap_replace_global_address_global(maps, rows + kColumns);
  } else {
    ptx::tensormap_cp_fenceproxy_release_gpu(use == kOtherMap ? maps + 1 : maps, &shared.map);
  }
  if (me == 0 && stores) ptx::cp_async_bulk_wait_group<0>();
  if (me == 0 && !stores) wait(&shared.full, 0);
}

/// A map of `count` rows, and a load of row 24 on.
__global__ void far_away(const TensorMap pattern, TensorMap* map, std::uint32_t count) {
  auto& shared = ptx::dynamic_shared<Shared>();
  start(shared);
  if (threadIdx.x >= 32) return;
  if (threadIdx.x == 0) {
    copy_map(pattern, &shared.map, true);
    ptx::tensormap_replace_global_dim_shared<1>(&shared.map, count);
  }
  __syncwarp();
  ptx::tensormap_cp_fenceproxy_release_gpu(map, &shared.map);
  if (threadIdx.x != 0) return;
  ptx::fence_proxy_tensormap_acquire_gpu(map);
  ptx::mbarrier_arrive_expect_tx(&shared.full, kBoxBytes);
  ptx::cp_async_bulk_tensor_2d(shared.tile, map, 0, 24, &shared.full);
  wait(&shared.full, 0);
}

constexpr int kRows = 64;

TensorMap map_of(const bf16* rows) {
  return ptx::make_tensor_map(
      ptx::matrix_spec(rows, kBoxRows, kColumns, kBoxRows, kColumns, ptx::Swizzle::kNone));
}

/// Every second row of the matrix from row 4 on, 5 of them.
Outcome run_changes(int fault, unsigned ctas = 1) {
  const std::vector<bf16> values = arange(kRows * kColumns);
  const DeviceArray<bf16> rows(values, "rows");
  const DeviceArray<TensorMap> map(1, "map");
  const DeviceArray<bf16> out(ctas * kBoxRows * kColumns, "out");
  Outcome outcome = run(changes, shape(ctas), fault, map_of(rows.get()), map.get(), rows.get() + 4 * kColumns,
                        5u, out.get());
  if (outcome.rule == "passed") {
    const std::vector<bf16> host = out.host();
    int wrong = 0;
    for (std::size_t i = 0; i < host.size(); ++i) {
      const std::size_t row = i / kColumns % kBoxRows;
      const std::uint16_t expected = row < 5 ? values[(4 + 2 * row) * kColumns + i % kColumns].bits : 0;
      wrong += host[i].bits != expected;
    }
    CHECK(wrong == 0);
  }
  return outcome;
}

Outcome run_changes_again(int use) {
  const DeviceArray<bf16> rows(arange(kRows * kColumns), "rows");
  const DeviceArray<TensorMap> maps(2, "maps");
  return run(changes_again, shape(1), use, map_of(rows.get()), maps.get(), rows.get());
}

}  // namespace

TEST_CASE("tensormap-in-use: a tensor map changes while a copy that uses it is under way") {
  CHECK_PASSES(run_changes_again(kWaited));
  CHECK_PASSES(run_changes_again(kOtherMap));
  CHECK_PASSES(run_changes_again(kWaitedByAnother));
  CHECK_PASSES(run_changes_again(kStoreRead));
  CHECK_BREAKS("tensormap-in-use", run_changes_again(kLoadUnderWay));
  CHECK(contains(run_changes_again(kLoadUnderWay).report, "a load that signals"));
  CHECK_BREAKS("tensormap-in-use", run_changes_again(kWaitedElsewhere));
  CHECK_BREAKS("tensormap-in-use", run_changes_again(kInGlobalUnderWay));
  CHECK_BREAKS("tensormap-in-use", run_changes_again(kStoreUnderWay));
  CHECK(contains(run_changes_again(kStoreUnderWay).report, "a bulk store of"));
}

TEST_CASE("reports say what a tensor map describes, what it was copied from, and who ends its use") {
  check_text(run_changes(kNoAcquire).report, {"map      map + 0, copied from map (shared + ",
                                              "): a map of rows + 512, extents 64 x 5, boxes of 64 x 16"});
  check_text(run_changes(kNoRelease).report, {"map      map + 0: a map of rows + 512, extents 64 x 5"});
  check_text(run_changes_again(kStoreUnderWay).report,
             {"missing  cp.async.bulk.wait_group.read<0> by thread (0,0,0)"});
  CHECK(contains(run_changes_again(kLoadUnderWay).report,
                 "missing  a wait for the copy (for a load, at its mbarrier"));
}

TEST_CASE("a load far away from what a map covers names who made the map so short") {
  const DeviceArray<bf16> rows(arange(kRows * kColumns), "rows");
  const DeviceArray<TensorMap> map(1, "map");
  emulator::Options options = emulator::options();
  options.n = kRows;
  options.k = kColumns;
  options.tile_m = options.tile_n = options.k_tile = 16;
  const emulator::ScopedOptions scope(options);
  emulator::take_outside_loads();
  CHECK(run(far_away, shape(1), map_of(rows.get()), map.get(), 16u).rule == "passed");
  CHECK(emulator::take_outside_loads().empty());
  CHECK(run(far_away, shape(1), map_of(rows.get()), map.get(), 5u).rule == "passed");
  check_text(emulator::take_outside_loads(),
             {"but the map has 5 rows there, as set by the tensormap.replace at "});
}

TEST_CASE("a tensor map is changed in shared or global memory, released, acquired and used") {
  CHECK_PASSES(run_changes(kNone));
  CHECK_PASSES(run_changes(kInGlobalMemory));
  CHECK_PASSES(run_changes(kAcquiredByAnotherThread));
  CHECK_PASSES(run_changes(kNone, 2));
  CHECK_PASSES(run_changes(kInGlobalMemory, 2));
}

TEST_CASE("tensormap-release: a change of a tensor map without the writer's release fence") {
  CHECK_BREAKS("tensormap-release", run_changes(kNoRelease));
  CHECK_BREAKS("tensormap-release", run_changes(kNoRelease, 2));
  CHECK_BREAKS("tensormap-release", run_changes(kReleaseByAnother));
  CHECK(contains(run_changes(kReleaseByAnother).report, "--allow proxy-fence-by-writer"));
  const emulator::ScopedCourseRule allow(emulator::CourseRule::kProxyFenceByWriter, false);
  CHECK_PASSES(run_changes(kReleaseByAnother));
  CHECK_BREAKS("tensormap-release", run_changes(kNoRelease));
}

TEST_CASE(
    "tensormap-acquire: a changed tensor map is used without an acquire fence of the CTA after the change") {
  CHECK_BREAKS("tensormap-acquire", run_changes(kNoAcquire));
  CHECK(contains(run_changes(kNoAcquire).report, "after the change and before its use"));
  CHECK_BREAKS("tensormap-acquire", run_changes(kAcquireBefore));
  CHECK(contains(run_changes(kAcquireBefore).report, "which does not follow the release"));
  CHECK_BREAKS("tensormap-acquire", run_changes(kNoBarrierBehindAcquire));
  CHECK_BREAKS("tensormap-acquire", run_changes(kAcquireInOtherCta, 2));
  // Nothing of this is the course's reading alone.
  const emulator::ScopedCourseRule allow(emulator::CourseRule::kTensorMapAcquire, false);
  CHECK_BREAKS("tensormap-acquire", run_changes(kNoAcquire));
}

TEST_CASE("tensormap-acquire: the start of a kernel acquires no tensor map in global memory") {
  const DeviceArray<bf16> rows(arange(kRows * kColumns));
  const DeviceArray<bf16> out(kBoxRows * kColumns);
  const DeviceArray<TensorMap> map(std::vector<TensorMap>{map_of(rows.get())});
  CHECK_BREAKS("tensormap-acquire", run(uses, shape(1), false, map.get(), out.get()));
  CHECK(contains(run(uses, shape(1), false, map.get(), out.get()).report, "--allow tensormap-acquire"));
  CHECK_PASSES(run(uses, shape(1), true, map.get(), out.get()));
  const emulator::ScopedCourseRule allow(emulator::CourseRule::kTensorMapAcquire, false);
  CHECK_PASSES(run(uses, shape(1), false, map.get(), out.get()));
}

TEST_CASE("tensormap-stale: a map that has changed since an earlier launch used it, and is not acquired") {
  const DeviceArray<bf16> rows(arange(kRows * kColumns));
  const DeviceArray<bf16> out(kBoxRows * kColumns);
  const emulator::ScopedCourseRule allow(emulator::CourseRule::kTensorMapAcquire, false);
  emulator_test::under_all_schedules([&] {
    DeviceArray<TensorMap> map(std::vector<TensorMap>{map_of(rows.get())});
    CHECK(run(uses, shape(1), false, map.get(), out.get()).rule == "passed");
    CHECK(run(uses, shape(1), false, map.get(), out.get()).rule == "passed");
    map.upload({map_of(rows.get() + kColumns)});
    const Outcome outcome = run(uses, shape(1), false, map.get(), out.get());
    CHECK(outcome.rule == "tensormap-stale");
    CHECK(run(uses, shape(1), true, map.get(), out.get()).rule == "passed");
    CHECK(out.host()[0].bits == rows.host()[kColumns].bits);
  });
}

TEST_CASE("shared-race, global-race: a tensor map is memory, and lanes and threads race for it") {
  CHECK_BREAKS("shared-race", run_changes(kNoWarpSync));
  CHECK_BREAKS_ONE_OF((Rules{"global-race", "tensormap-in-use"}), run_changes(kChangedMeanwhile));
}

TEST_CASE("tensor-map-space, tensor-map-misaligned: where a tensor map lies") {
  CHECK_BREAKS("tensor-map-space", run_changes(kMapInShared));
  CHECK_BREAKS("tensor-map-space", run_changes(kAcquireOfShared));
  CHECK_BREAKS("tensor-map-misaligned", run_changes(kMisaligned));
}

TEST_CASE("tensor-map-invalid: what is changed is a map, and it keeps the rules of a map") {
  CHECK_BREAKS("tensor-map-invalid", run_changes(kNotAMap));
  CHECK_BREAKS("tensor-map-invalid", run_changes(kOddStride));
  CHECK(contains(run_changes(kOddStride).report, "it must be a multiple of 16"));
}

}  // namespace descriptor_cache_test
