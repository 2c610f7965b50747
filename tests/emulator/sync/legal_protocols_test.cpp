// Protocols of published kernels that are legal, beside their neighbours that are not; and rules that can be
// switched off.
#include "emulator/hopper_test.h"
#include "emulator/report/course_rules.h"
#include "ptx/cp_async.cuh"

namespace legal_protocols_test {

using namespace emulator_test;
using emulator::CourseRule;
using emulator::ScopedCourseRule;

namespace {

struct alignas(1024) Shared {
  bf16 tile[64 * 64];
  std::uint64_t full;
  std::uint64_t empty;
};

constexpr ptx::LaunchShape cluster_of_two(unsigned threads) {
  return {.grid = {2}, .block = {threads}, .cluster = {2}, .shared_bytes = sizeof(Shared)};
}

enum Order { kInitFence, kFullFence, kNoFence, kWrongFence };

/// Initialises, hands the mbarriers on through a relaxed arrival at the cluster's barrier, and lets each CTA
/// arrive at the other's.
__global__ void relaxed_start(int order, int tail) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    if (order == kInitFence) ptx::fence_mbarrier_init_release_cluster();
    if (order == kFullFence) ptx::fence_acq_rel_cluster();
    if (order == kWrongFence) ptx::fence_acq_rel_cta();
  }
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
  const std::uint32_t peer = ptx::cluster_ctarank() ^ 1;
  if (threadIdx.x == 32) ptx::mbarrier_arrive_cluster(ptx::mapa(ptx::shared_address(&shared.full), peer));
  // No CTA ends before the peer's arrival is there: all it needs is its own wait.
  if (tail != 0 && threadIdx.x == 0) wait(&shared.full, 0);
}

__global__ void relaxed_hands_on_data(int* words, int fenced) {
  const unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
  ptx::st_global(words + me, static_cast<int>(me));
  if (fenced == 1) ptx::fence_acq_rel_cluster();
  if (fenced == 2) ptx::fence_mbarrier_init_release_cluster();
  ptx::barrier_cluster_arrive_relaxed();
  ptx::barrier_cluster_wait();
  ptx::ld_global(words + (me ^ blockDim.x));
}

__global__ void raises_to(int) {
  if (threadIdx.x / 128 == 1) {
    ptx::setmaxnreg_inc<248>();
  } else {
    ptx::setmaxnreg_dec<40>();
  }
}

/// Fills `columns` of the tile's 64 columns and `rows` of its 64 rows, and stores all of it.
__global__ void stores_partly_filled(ptx::TensorMap map, int rows, int columns) {
  auto& shared = ptx::dynamic_shared<Shared>();
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += static_cast<int>(blockDim.x)) {
    for (int column = 0; column < columns; ++column)
      ptx::st_shared(shared.tile + 64 * row + column, gemm::to_bf16(static_cast<float>(row)));
  }
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor_2d_store(&map, 0, 0, shared.tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read<0>();
  }
}

__global__ void elects(int* lanes) {
  if (ptx::elect_sync()) ptx::st_global(lanes + threadIdx.x / 32, static_cast<int>(threadIdx.x % 32));
}

enum FenceOfStore { kByEachWriter, kByTheStorer, kByTheStorerTooEarly };

/// All threads write a tile, thread 0 stores it.
__global__ void fenced_by(ptx::TensorMap map, int fence) {
  auto& shared = ptx::dynamic_shared<Shared>();
  for (unsigned i = threadIdx.x; i < 64 * 64; i += blockDim.x)
    ptx::st_shared(shared.tile + i, gemm::to_bf16(1.0f));
  if (fence == kByEachWriter || (fence == kByTheStorerTooEarly && threadIdx.x == 0))
    ptx::fence_proxy_async_shared_cta();
  ptx::bar_sync(1, blockDim.x);
  if (threadIdx.x == 0) {
    if (fence == kByTheStorer) ptx::fence_proxy_async_shared_cta();
    ptx::cp_async_bulk_tensor_2d_store(&map, 0, 0, shared.tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read<0>();
  }
}

/// cp.async copies a tile that is stored; the fence stands in front of the wait for the copies, or behind it.
__global__ void fences_copies(ptx::TensorMap map, const bf16* source, int behind) {
  auto& shared = ptx::dynamic_shared<Shared>();
  for (unsigned i = threadIdx.x * 8; i < 64 * 64; i += blockDim.x * 8)
    ptx::cp_async_cg_16(shared.tile + i, source + i);
  if (!behind) ptx::fence_proxy_async_shared_cta();
  ptx::cp_async_wait_all();
  if (behind) ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor_2d_store(&map, 0, 0, shared.tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read<0>();
  }
}

enum FenceOfReader { kBehindTheRead, kBeforeTheRead, kBehindTheArrival, kNoReadFence, kByTheLoader };

/// Thread 0 loads a tile, the threads of the other warp read it and release it, and thread 0 loads it again.
__global__ void loads_twice(ptx::TensorMap map, int fence) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::mbarrier_init(&shared.empty, 32);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  for (std::uint32_t round = 0; round < 2; ++round) {
    if (threadIdx.x == 0) {
      wait(&shared.empty, round ^ 1);
      if (fence == kByTheLoader) ptx::fence_proxy_async_shared_cta();
      ptx::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.tile);
      ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, 0, &shared.full);
      if (round == 1) wait(&shared.full, round);
    }
    if (threadIdx.x < 32) continue;
    wait(&shared.full, round);
    if (fence == kBeforeTheRead) ptx::fence_proxy_async_shared_cta();
    ptx::ld_shared(shared.tile + threadIdx.x);
    if (fence == kBehindTheRead) ptx::fence_proxy_async_shared_cta();
    ptx::mbarrier_arrive(&shared.empty);
    if (fence == kBehindTheArrival) ptx::fence_proxy_async_shared_cta();
  }
}

/// Reads a row of which nothing was written, and adds it to something or to nothing.
__global__ void reads_what_it_ignores(float* out, int adds) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::st_shared(reinterpret_cast<float*>(shared.tile) + threadIdx.x, 1.0f);
  const float unwritten = ptx::ld_shared(reinterpret_cast<float*>(shared.tile) + 64 + threadIdx.x);
  const float written = ptx::ld_shared(reinterpret_cast<float*>(shared.tile) + threadIdx.x);
  ptx::st_global(out + threadIdx.x, adds != 0 ? written + 0.0f * unwritten : written);
}

enum Ending { kWaits, kStoreInFlight, kLoadInFlight };

__global__ void ends(ptx::TensorMap map, int ending, int init_fence) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    if (init_fence != 0) ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, sizeof shared.tile);
    ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, 0, &shared.full);
    if (ending == kLoadInFlight) return;
    wait(&shared.full, 0);
    ptx::cp_async_bulk_tensor_2d_store(&map, 0, 0, shared.tile);
    if (ending == kStoreInFlight) return;
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read<0>();
  }
}

struct Matrix {
  Matrix(int rows, int columns)
      : values(arange(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)), "M"),
        map(ptx::make_tensor_map(
            ptx::matrix_spec(values.get(), rows, columns, 64, 64, ptx::Swizzle::kNone))) {}
  DeviceArray<bf16> values;
  ptx::TensorMap map;
};

bool same_bits(const std::vector<bf16>& one, const std::vector<bf16>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](bf16 a, bf16 b) { return a.bits == b.bits; });
}

}  // namespace

TEST_CASE("mbarriers behind fence.mbarrier_init and a relaxed arrival of the cluster") {
  CHECK_PASSES(run(relaxed_start, cluster_of_two(64), kInitFence, 1));
  CHECK_PASSES(run(relaxed_start, cluster_of_two(64), kFullFence, 1));
  CHECK_BREAKS("mbarrier-uninitialised", run(relaxed_start, cluster_of_two(64), kNoFence, 1));
  CHECK_BREAKS("mbarrier-uninitialised", run(relaxed_start, cluster_of_two(64), kWrongFence, 1));
}

TEST_CASE("a wait for the peer's arrival of default scope keeps a CTA alive") {
  CHECK_PASSES(run(relaxed_start, cluster_of_two(64), kInitFence, 1));
  CHECK_BREAKS("cluster-exit", run(relaxed_start, cluster_of_two(64), kInitFence, 0));
}

TEST_CASE("a relaxed arrival of the cluster hands on what a fence made releasable, and nothing else") {
  DeviceArray<int> words(128);
  CHECK_PASSES(run(relaxed_hands_on_data, cluster_of_two(64), words.get(), 1));
  CHECK_BREAKS("global-race", run(relaxed_hands_on_data, cluster_of_two(64), words.get(), 2));
  CHECK_BREAKS("global-race", run(relaxed_hands_on_data, cluster_of_two(64), words.get(), 0));
}

TEST_CASE("setmaxnreg.inc to what ptxas gives each of 256 threads") {
  CHECK_PASSES(run(raises_to, one_cta(256), 0));
}

TEST_CASE("a bulk store of a box whose padding lies outside the tensor") {
  const Matrix narrow(64, 40);
  CHECK_PASSES(run(stores_partly_filled, one_cta(64, sizeof(Shared)), narrow.map, 64, 40));
  CHECK_BREAKS("shared-uninitialised",
               run(stores_partly_filled, one_cta(64, sizeof(Shared)), narrow.map, 64, 32));
  const Matrix flat(40, 64);
  CHECK_PASSES(run(stores_partly_filled, one_cta(64, sizeof(Shared)), flat.map, 40, 64));
  CHECK_BREAKS("shared-uninitialised",
               run(stores_partly_filled, one_cta(64, sizeof(Shared)), flat.map, 39, 64));
}

TEST_CASE("elect.sync: any lane, or the lowest") {
  DeviceArray<int> lanes(8);
  std::set<int> any;
  std::set<int> lowest;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const emulator::Elect elect : {emulator::Elect::kSeed, emulator::Elect::kLowest}) {
      emulator::Options options;
      options.seed = seed;
      options.elect = elect;
      const emulator::ScopedOptions scope(options);
      CHECK(run(elects, one_cta(256), lanes.get()).rule == "passed");
      for (const int lane : lanes.host()) (elect == emulator::Elect::kLowest ? lowest : any).insert(lane);
    }
  }
  CHECK(any.size() > 16);
  CHECK(lowest == std::set<int>{0});
}

TEST_CASE("exit-in-flight and mbarrier-init-fence can be switched off") {
  const Matrix matrix(64, 64);
  const ptx::LaunchShape shape = one_cta(32, sizeof(Shared));
  CHECK_PASSES(run(ends, shape, matrix.map, kWaits, 1));
  for (const Ending ending : {kStoreInFlight, kLoadInFlight}) {
    CHECK_BREAKS("exit-in-flight", run(ends, shape, matrix.map, ending, 1));
    CHECK(contains(run(ends, shape, matrix.map, ending, 1).report, "--allow exit-in-flight"));
    const ScopedCourseRule off(CourseRule::kExitInFlight, false);
    CHECK_PASSES(run(ends, shape, matrix.map, ending, 1));
  }
  CHECK(same_bits(matrix.values.host(), arange(64 * 64)));
  CHECK_BREAKS("mbarrier-init-fence", run(ends, shape, matrix.map, kWaits, 0));
  CHECK(contains(run(ends, shape, matrix.map, kWaits, 0).report, "--allow mbarrier-init-fence"));
  const ScopedCourseRule off(CourseRule::kMbarrierInitFence, false);
  CHECK_PASSES(run(ends, shape, matrix.map, kWaits, 0));
}

TEST_CASE("proxy-fence-by-writer: a fence by the storing thread, behind the barrier") {
  const Matrix matrix(64, 64);
  const ptx::LaunchShape shape = one_cta(64, sizeof(Shared));
  const auto outcome_of = [&](FenceOfStore fence) { return run(fenced_by, shape, matrix.map, fence); };
  CHECK_PASSES(outcome_of(kByEachWriter));
  CHECK_BREAKS("proxy-fence", outcome_of(kByTheStorer));
  CHECK(contains(outcome_of(kByTheStorer).report, "--allow proxy-fence-by-writer"));
  CHECK(contains(outcome_of(kByTheStorer).report, "has executed fence.proxy.async at"));
  // A fence that comes before the barrier is not behind the writes of others.
  CHECK_BREAKS("proxy-fence", outcome_of(kByTheStorerTooEarly));
  CHECK_FALSE(contains(outcome_of(kByTheStorerTooEarly).report, "--allow"));
  const ScopedCourseRule off(CourseRule::kProxyFenceByWriter, false);
  CHECK_PASSES(outcome_of(kByTheStorer));
  CHECK_PASSES(outcome_of(kByEachWriter));
  CHECK_BREAKS("proxy-fence", outcome_of(kByTheStorerTooEarly));
}

TEST_CASE("proxy-fence-by-writer: a fence in front of the wait for the writer's copies is behind none") {
  const Matrix matrix(64, 64);
  const DeviceArray<bf16> source(arange(64 * 64), "source");
  const ptx::LaunchShape shape = one_cta(64, sizeof(Shared));
  const auto outcome_of = [&](int behind) {
    return run(fences_copies, shape, matrix.map, source.get(), behind);
  };
  CHECK_PASSES(outcome_of(1));
  CHECK_BREAKS("proxy-fence", outcome_of(0));
  CHECK_FALSE(contains(outcome_of(0).report, "--allow"));
  const ScopedCourseRule off(CourseRule::kProxyFenceByWriter, false);
  CHECK_PASSES(outcome_of(1));
  CHECK_BREAKS("proxy-fence", outcome_of(0));
}

TEST_CASE("proxy-fence-after-read: a copy overwrites what threads have read") {
  const Matrix matrix(64, 64);
  const ptx::LaunchShape shape = one_cta(64, sizeof(Shared));
  const auto outcome_of = [&](FenceOfReader fence) { return run(loads_twice, shape, matrix.map, fence); };
  CHECK_PASSES(outcome_of(kBehindTheRead));
  for (const FenceOfReader fence : {kBeforeTheRead, kBehindTheArrival, kNoReadFence}) {
    CHECK_BREAKS("proxy-fence-after-read", outcome_of(fence));
    CHECK(contains(outcome_of(fence).report, "--allow proxy-fence-after-read switches it off"));
    CHECK(contains(outcome_of(fence).report, "the arrival may overtake"));
  }
  const char* const late =
      "fence    it has executed one since, but only after it had signalled to the loading thread";
  CHECK(contains(outcome_of(kBehindTheArrival).report, late));
  CHECK_FALSE(contains(outcome_of(kNoReadFence).report, late));
  const ScopedCourseRule off(CourseRule::kProxyFenceAfterRead, false);
  for (const FenceOfReader fence : {kBehindTheRead, kBeforeTheRead, kBehindTheArrival, kNoReadFence})
    CHECK_PASSES(outcome_of(fence));
}

TEST_CASE("proxy-fence-by-reader: a fence by the thread that loads, after its wait for the readers") {
  const Matrix matrix(64, 64);
  const ptx::LaunchShape shape = one_cta(64, sizeof(Shared));
  const auto outcome_of = [&](FenceOfReader fence) { return run(loads_twice, shape, matrix.map, fence); };
  CHECK_BREAKS("proxy-fence-by-reader", outcome_of(kByTheLoader));
  check_report(outcome_of(kByTheLoader), "proxy-fence-by-reader",
               {"fence    fence.proxy.async at ", "by thread (0,0,0)", "--allow proxy-fence-by-reader"});
  {
    const ScopedCourseRule off(CourseRule::kProxyFenceByReader, false);
    CHECK_PASSES(outcome_of(kByTheLoader));
    CHECK_BREAKS("proxy-fence-after-read", outcome_of(kNoReadFence));
  }
  const ScopedCourseRule off(CourseRule::kProxyFenceAfterRead, false);
  CHECK_PASSES(outcome_of(kByTheLoader));
}

TEST_CASE("shared-uninitialised can be switched off: what is read then makes the result NaN") {
  DeviceArray<float> out(32);
  const ptx::LaunchShape shape = one_cta(32, sizeof(Shared));
  for (const int adds : {0, 1}) {
    CHECK_BREAKS("shared-uninitialised", run(reads_what_it_ignores, shape, out.get(), adds));
    CHECK(
        contains(run(reads_what_it_ignores, shape, out.get(), adds).report, "--allow shared-uninitialised"));
    const ScopedCourseRule off(CourseRule::kSharedUninitialised, false);
    CHECK_PASSES(run(reads_what_it_ignores, shape, out.get(), adds));
    for (const float value : out.host()) CHECK((adds != 0 ? value != value : value == 1.0f));
  }
}

}  // namespace legal_protocols_test
