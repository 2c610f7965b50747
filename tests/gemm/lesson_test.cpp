// What a step taught and what common/gemm made of it: one does the work of the other, and where it does not,
// the library's comment says why. (queue_plans_test.cpp has both queues of step 19, lockstep_test.cpp
// both barriers of step 20, node_test.cpp both trees of step 32; tests/tools/builds/test_moved_kernel.py
// compares what should be the same word for word.)
#include <cstdint>
#include <string>
#include <vector>

#include "../../steps/11_mbarrier_ring/kernel.cuh"
#include "../../steps/15_tma_store/kernel.cuh"
#include "../../steps/16_cluster_multicast/kernel.cuh"
#include "../../steps/18_stream_k/kernel.cuh"
#include "emulator/emulator_test.h"
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/schedule/partials.cuh"

using namespace emulator_test;

namespace lesson_test {

using gemm::bf16;
using gemm::TilePosition;
using gemm::WarpgroupTile;

using OneWarpgroup = gemm::WgmmaTiling<64, 16, 64, 1>;
using TwoWarpgroups = gemm::WgmmaTiling<128, 16, 64, 2>;

/// A number for every accumulator of every thread.
__device__ float number(int thread, int accumulator) {
  return static_cast<float>(thread * 64 + accumulator);
}

/// Every thread hands its accumulators to itself, through slot 1 of 2.
template <typename T, typename Writer, typename Reader>
__global__ void hand_over(void* workspace, float* out) {
  constexpr int kCount = T::kN / 2;
  const int thread = static_cast<int>(threadIdx.x);
  WarpgroupTile<T> given;
  WarpgroupTile<T> sum;
  for (int i = 0; i < kCount; ++i) {
    given.accumulators[0][i] = number(thread, i);
    sum.accumulators[0][i] = 0;
  }
  Writer(workspace, 2).store_partials(given, 1, thread / 128);
  Reader(workspace, 2).fixup(sum, 1, thread / 128);
  for (int i = 0; i < kCount; ++i) ptx::st_global(out + thread * kCount + i, sum.accumulators[0][i]);
}

/// Whether every accumulator arrives where it came from; what the emulator says of the launch is in
/// `outcome`.
template <typename T, typename Writer, typename Reader>
bool hands_over(Outcome& outcome) {
  constexpr int kCount = T::kN / 2;
  DeviceArray<unsigned char> workspace(std::vector<unsigned char>(2 * gemm::Partials<T>::kBytesPerSlot),
                                       "workspace");
  DeviceArray<float> out(static_cast<std::size_t>(T::kThreads * kCount));
  outcome =
      run(hand_over<T, Writer, Reader>, one_cta(T::kThreads), static_cast<void*>(workspace.get()), out.get());
  if (outcome.rule != "passed") return false;
  const std::vector<float> sums = out.host();
  int right = 0;
  for (int i = 0; i < T::kThreads * kCount; ++i)
    right += sums[static_cast<std::size_t>(i)] == number(i / kCount, i % kCount);
  return right == T::kThreads * kCount;
}

TEST_CASE("lesson and library: step 18's partials, which one warpgroup may pass from one to the other") {
  using One = OneWarpgroup;
  using Two = TwoWarpgroups;
  Outcome outcome{"", ""};
  under_all_schedules([&] {
    CHECK(hands_over<One, gemm::step_18::Partials<One>, gemm::Partials<One>>(outcome));
    CHECK(hands_over<One, gemm::Partials<One>, gemm::step_18::Partials<One>>(outcome));
    CHECK(hands_over<Two, gemm::step_18::Partials<Two>, gemm::step_18::Partials<Two>>(outcome));
    CHECK(hands_over<Two, gemm::Partials<Two>, gemm::Partials<Two>>(outcome));
    // Of two warpgroups one would read what the other one has written, and no barrier orders that.
    CHECK_FALSE(hands_over<Two, gemm::step_18::Partials<Two>, gemm::Partials<Two>>(outcome));
    CHECK(outcome.rule == "global-race");
  });
  CHECK(gemm::step_18::Partials<Two>::kBytesPerSlot == gemm::Partials<Two>::kBytesPerSlot);
}

TEST_CASE("lesson and library: step 11's place in the ring") {
  gemm::step_11::PipelineState<5> lesson;
  gemm::PipelineState<5> library;
  for (int i = 0; i < 4 * 5 + 1; ++i) {
    gemm::PipelineState<5> at_once;
    at_once.advance(i);
    CHECK((lesson.stage == library.stage && lesson.phase == library.phase));
    CHECK((lesson.stage == at_once.stage && lesson.phase == at_once.phase));
    lesson.advance();
    library.advance();
  }
}

template <int kM, int kN>
void check_clusters() {
  using Lesson = gemm::step_16::Cluster<kM, kN>;
  for (int rank = 0; rank < kM * kN; ++rank) {
    INFO(kM << " x " << kN << ", CTA " << rank);
    const Lesson lesson{.rank = rank};
    gemm::FittedCluster library(gemm::ClusterShape{kM, kN});
    library.rank = rank;
    CHECK(lesson.row_mask() == library.row_mask());
    CHECK(lesson.column_mask() == library.column_mask());
    CHECK(Lesson::kPeers == library.peers());
    CHECK(gemm::step_16::cluster_tile(TilePosition{3, 5}, lesson) == library.tile({3, 5}));
    for (int other = 0; other < kM * kN; ++other) CHECK(lesson.is_peer(other) == library.is_peer(other));
  }
}

TEST_CASE("lesson and library: step 16's clusters, where their shape is an argument") {
  check_clusters<1, 1>();
  check_clusters<2, 1>();
  check_clusters<1, 2>();
  check_clusters<2, 2>();
  check_clusters<4, 2>();
  check_clusters<2, 4>();
  check_clusters<8, 1>();
  check_clusters<1, 8>();
}

template <typename T>
using Store = void (*)(const WarpgroupTile<T>&, gemm::StoreBuffers&, const ptx::TensorMap*, int);

template <typename T>
__device__ void store_as_taught(const WarpgroupTile<T>& tile, gemm::StoreBuffers& buffers,
                                const ptx::TensorMap* d_map, int row) {
  gemm::step_15::store_tile<T, true>(tile, buffers.d, d_map, row, 0);
}
template <typename T>
__device__ void store_by_library(const WarpgroupTile<T>& tile, gemm::StoreBuffers& buffers,
                                 const ptx::TensorMap* d_map, int row) {
  gemm::store_tile<T>(tile, buffers, d_map, row, 0);
}

/// Stores two tiles below each other: the second one meets the buffers of the first.
template <typename T, Store<T> kStore>
__global__ void store_twice(ptx::TensorMap d_map) {
  auto& buffers = ptx::dynamic_shared<gemm::StoreBuffers[T::kWarpgroups]>();
  WarpgroupTile<T> tile;
  for (int i = 0; i < T::kN / 2; ++i) tile.accumulators[0][i] = number(static_cast<int>(threadIdx.x) % 32, i);
  for (int i = 0; i < 2; ++i) kStore(tile, buffers[threadIdx.x / 128], &d_map, i * T::kM);
  if (gemm::stores_tile()) ptx::cp_async_bulk_wait_group<0>();
}

template <typename T, Store<T> kStore>
std::vector<float> stored(Outcome& outcome) {
  DeviceArray<bf16> d(std::vector<bf16>(static_cast<std::size_t>(2 * T::kM * T::kN)), "D");
  outcome = run(store_twice<T, kStore>, one_cta(T::kThreads, sizeof(gemm::StoreBuffers[T::kWarpgroups])),
                gemm::store_map(d.get(), 2 * T::kM, T::kN));
  std::vector<float> values;
  for (const bf16 value : d.host()) values.push_back(gemm::to_float(value));
  return values;
}

TEST_CASE("lesson and library: step 15's store, and why the library waits for one more where tiles are odd") {
  Outcome lesson{"", ""};
  Outcome library{"", ""};
  using Even = gemm::WgmmaTiling<128, 128, 64, 2>;
  const std::vector<float> d = stored<Even, store_as_taught<Even>>(lesson);
  CHECK((d == stored<Even, store_by_library<Even>>(library) && d.back() != 0));
  CHECK((lesson.rule == "passed" && library.rule == "passed"));
  using Odd = gemm::WgmmaTiling<64, 64, 64, 1>;
  under_all_schedules([&] {
    stored<Odd, store_by_library<Odd>>(library);
    CHECK(library.rule == "passed");
    stored<Odd, store_as_taught<Odd>>(lesson);
    CHECK(lesson.rule == "store-source-overwritten");
  });
}

}  // namespace lesson_test
