// Partials of a tile that has more peers than a warpgroup has threads to wait for them.
#include "gemm/schedule/partials.cuh"

#include <cstddef>
#include <vector>

#include "emulator/emulator_test.h"
#include "gemm/schedule/decomposition.h"

using namespace emulator_test;

namespace partials_test {

using T = gemm::WgmmaTiling<64, 16, 64, 1>;
constexpr int kPeers = 130;
constexpr int kCount = T::kN / 2;  // accumulators per thread

/// A number for every accumulator of every thread.
__device__ float number(int thread, int accumulator) {
  return static_cast<float>(thread * 64 + accumulator);
}

/// One warpgroup stores the partials of all peers, and the other one adds them.
__global__ void add_peers(void* workspace, float* out) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const gemm::Partials<T> partials(workspace, kPeers);
  gemm::WarpgroupTile<T> tile;
  if (threadIdx.x < 128) {
    for (int slot = 0; slot < kPeers; ++slot) {
      for (int i = 0; i < kCount; ++i) tile.accumulators[0][i] = number(thread, i) + static_cast<float>(slot);
      partials.store_partials(tile, slot, 0);
    }
    return;
  }
  for (int i = 0; i < kCount; ++i) tile.accumulators[0][i] = 0;
  partials.fixup(tile, gemm::SlotRange{0, kPeers}, 0);
  for (int i = 0; i < kCount; ++i) ptx::st_global(out + thread * kCount + i, tile.accumulators[0][i]);
}

TEST_CASE("partials of 130 peers are waited for by 128 threads, and added") {
  under_schedules(4, [] {
    DeviceArray<unsigned char> workspace(
        std::vector<unsigned char>(kPeers * gemm::Partials<T>::kBytesPerSlot), "workspace");
    DeviceArray<float> out(std::size_t{128} * kCount);
    const Outcome outcome = run(add_peers, one_cta(256), static_cast<void*>(workspace.get()), out.get());
    INFO(outcome.report);
    REQUIRE(outcome.rule == "passed");
    const std::vector<float> sums = out.host();
    int right = 0;
    for (int i = 0; i < 128 * kCount; ++i)
      right += sums[static_cast<std::size_t>(i)] ==
               kPeers * number(i / kCount, i % kCount) + kPeers * (kPeers - 1) / 2.0F;
    CHECK(right == 128 * kCount);
  });
}

}  // namespace partials_test
