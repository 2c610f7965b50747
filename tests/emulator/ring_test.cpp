// The ring's methods, and the tiles that TMA brings into its stages, shallow ones included.
#include "gemm/ring.cuh"
#include "gemm/cluster_tile.cuh"
#include "gemm/swizzle.h"
#include "gemm/tma_tile.cuh"
#include "hopper_test.h"

using namespace emulator_test;

namespace {

constexpr int kStages = 2;
constexpr int kRows = 64;
constexpr int kColumns = 128;

template <int kK>
using Tiles = gemm::WgmmaTiling<kRows, kColumns, kK, 1>;

enum Wait { kAcquire, kConsume };

int waits_at = 0;  // the line that the report must name

/// One thread waits for an arrival that never comes.
__global__ void waits_in_vain(int what) {
  auto& ring = ptx::dynamic_shared<gemm::Ring<Tiles<64>, kStages>>();
  ring.init(1);
  gemm::PipelineState<kStages> state{0, 1};
  ring.producer_acquire(state, 0);  // a fresh stage is free
  state.advance();
  if (what == kAcquire) {
    waits_at = __LINE__ + 1;
    ring.producer_acquire({1, 0}, 7);
  } else {
    waits_at = __LINE__ + 1;
    ring.consumer_wait({1, 0}, 8);
  }
}

__global__ void asks(int* answers) {
  auto& ring = ptx::dynamic_shared<gemm::Ring<Tiles<64>, kStages>>();
  const gemm::PipelineState<kStages> first{0, 0};
  ring.init(2);
  ptx::st_global(answers, static_cast<int>(ring.consumer_try_wait(first)));
  ptx::mbarrier_arrive(&ring.full[0]);
  ptx::st_global(answers + 1, static_cast<int>(ring.consumer_try_wait(first)));
  ring.consumer_wait(first, 0);
  ring.consumer_release(first);
  ptx::st_global(answers + 2, static_cast<int>(ptx::mbarrier_test_wait_parity(&ring.empty[0], 0)));
  ring.consumer_release(first);
  ring.producer_acquire(first, 2);  // both readers have released it
}

/// CTA i of a cluster C writes its tile of A and of B, as it finds them in shared memory, behind those of the
/// other CTAs.
template <typename T, typename C>
__global__ void load(const __grid_constant__ ptx::TensorMap a_map,
                     const __grid_constant__ ptx::TensorMap b_map, bf16* a, bf16* b) {
  auto& ring = ptx::dynamic_shared<gemm::Ring<T, 1>>();
  const C cluster;
  if (threadIdx.x == 0) {
    ring.init(1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
  if (threadIdx.x == 0) {
    const int row = cluster.m * T::kM;
    const int column = cluster.n * T::kN;
    if constexpr (C::kCtas > 1) {
      gemm::load_shares<T>(ring.stage[0], &ring.full[0], &a_map, &b_map, row, column, T::kK, cluster);
    } else {
      gemm::load_tiles<T>(ring.stage[0], &ring.full[0], &a_map, &b_map, row, column, T::kK);
    }
    ring.consumer_wait({0, 0}, 0);
    const auto copy = [&](const auto& panels, int rows, bf16* out) {
      for (int i = 0; i < rows; ++i) {
        for (int k = 0; k < T::kK; ++k) {
          const auto* panel = reinterpret_cast<const char*>(&panels[k / T::kPanelK]);
          const int place = gemm::swizzle<2 * T::kPanelK>((i * T::kPanelK + k % T::kPanelK) * 2);
          ptx::st_global(out + i * T::kK + k, ptx::ld_shared(reinterpret_cast<const bf16*>(panel + place)));
        }
      }
    };
    copy(ring.stage[0].a, T::kM, a + cluster.rank * T::kM * T::kK);
    copy(ring.stage[0].b, T::kN, b + cluster.rank * T::kN * T::kK);
  }
  ptx::barrier_cluster_arrive();
  ptx::barrier_cluster_wait();
}

/// The second k-tile of three, with every tile of the cluster.
template <int kK, int kClusterM, int kClusterN>
void check_loads() {
  using T = Tiles<kK>;
  using C = gemm::Cluster<kClusterM, kClusterN>;
  const int k = 3 * kK;
  const int m = C::kM * T::kM;
  const int n = C::kN * T::kN;
  const std::vector<bf16> a = arange(static_cast<std::size_t>(m * k));
  const std::vector<bf16> b = arange(static_cast<std::size_t>(n * k), 5);
  const DeviceArray<bf16> a_memory(a);
  const DeviceArray<bf16> b_memory(b);
  const DeviceArray<bf16> a_out(static_cast<std::size_t>(C::kCtas * T::kM * kK));
  const DeviceArray<bf16> b_out(static_cast<std::size_t>(C::kCtas * T::kN * kK));
  const ptx::TensorMap a_map = gemm::operand_map<T>(a_memory.get(), m, k, T::kM / C::kN);
  const ptx::TensorMap b_map = gemm::operand_map<T>(b_memory.get(), n, k, T::kN / C::kM);
  const ptx::LaunchShape shape{
      .grid = {C::kCtas}, .block = {32}, .cluster = {C::kCtas}, .shared_bytes = sizeof(gemm::Ring<T, 1>)};
  INFO("k-tile of " << kK << ", cluster of " << C::kM << " x " << C::kN);
  CHECK_PASSES(run(load<T, C>, shape, a_map, b_map, a_out.get(), b_out.get()));
  const auto differences = [&](const std::vector<bf16>& out, const std::vector<bf16>& matrix, int rows,
                               bool of_m) {
    int different = 0;
    for (int rank = 0; rank < C::kCtas; ++rank) {
      const C cluster{.rank = rank};
      const int first = (of_m ? cluster.m : cluster.n) * rows;
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < kK; ++j) {
          const auto found = static_cast<std::size_t>((rank * rows + i) * kK + j);
          const auto expected = static_cast<std::size_t>((first + i) * k + kK + j);
          different += out[found].bits != matrix[expected].bits;
        }
      }
    }
    return different;
  };
  CHECK(differences(a_out.host(), a, T::kM, true) == 0);
  CHECK(differences(b_out.host(), b, T::kN, false) == 0);
}

}  // namespace

TEST_CASE("ring: a wait is reported with its role, its stage, its k-tile, and the kernel's line") {
  const int bytes = sizeof(gemm::Ring<Tiles<64>, kStages>);
  const Outcome producer = run(waits_in_vain, one_cta(1, bytes), static_cast<int>(kAcquire));
  INFO(producer.report);
  CHECK(producer.rule == "deadlock");
  CHECK(contains(producer.report, "ring_test.cpp:" + std::to_string(waits_at) + " "));
  CHECK(contains(producer.report, "as producer of k-tile 7, stage 1"));
  CHECK(contains(producer.report, "'empty'"));
  const Outcome consumer = run(waits_in_vain, one_cta(1, bytes), static_cast<int>(kConsume));
  INFO(consumer.report);
  CHECK(consumer.rule == "deadlock");
  CHECK(contains(consumer.report, "ring_test.cpp:" + std::to_string(waits_at) + " "));
  CHECK(contains(consumer.report, "as consumer of k-tile 8, stage 1"));
  CHECK(contains(consumer.report, "'full'"));
}

TEST_CASE("ring: a stage is full when its k-tile has come, and empty when every reader has released it") {
  const DeviceArray<int> answers(3);
  const int bytes = sizeof(gemm::Ring<Tiles<64>, kStages>);
  CHECK_PASSES(run(asks, one_cta(1, bytes), answers.get()));
  CHECK(answers.host() == std::vector<int>{0, 1, 0});
}

TEST_CASE("tiles: TMA brings k-tiles of every depth, whole and in shares") {
  check_loads<32, 1, 1>();
  check_loads<64, 1, 1>();
  check_loads<128, 1, 1>();
  check_loads<32, 2, 1>();
  check_loads<32, 1, 2>();
  check_loads<128, 2, 2>();
}
