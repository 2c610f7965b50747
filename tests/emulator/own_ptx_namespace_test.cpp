// A reader's file may have a namespace ptx of its own: ours is gemm::ptx. First a stand-in for <cuda/ptx>
// (libcu++) and the alias that its documentation recommends, then our headers, in one translation unit.
namespace cuda::ptx {
inline int mbarrier_init() {
  return 42;
}
inline int launch() {
  return 43;
}
}  // namespace cuda::ptx
namespace ptx = cuda::ptx;

#include "17_ping_pong/kernel.cuh"
#include "catch.h"
#include "gemm/cluster_tile.cuh"
#include "gemm/cp_async_tile.cuh"
#include "gemm/mma_tile.cuh"
#include "gemm/ordered_barrier.cuh"
#include "gemm/partials.cuh"
#include "gemm/ring.cuh"
#include "gemm/store_tile.cuh"
#include "gemm/tile_source.cuh"
#include "gemm/tma_tile.cuh"
#include "harness/backend/backend.h"
#include "harness/backend/device_array.h"
#include "ptx/atomic.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/workspace.h"

namespace {

__global__ void both_kernel(int* out) {
  auto& barrier = gemm::ptx::dynamic_shared<std::uint64_t>();
  gemm::ptx::mbarrier_init(&barrier, 1);
  gemm::ptx::mbarrier_arrive(&barrier);
  gemm::ptx::st_global(out, gemm::ptx::mbarrier_test_wait_parity(&barrier, 0) ? ptx::mbarrier_init() : 0);
}

}  // namespace

TEST_CASE("a file may have a namespace ptx of its own beside our headers") {
  const harness::DeviceArray<int> out(1);
  gemm::ptx::launch(both_kernel, {.block = {1}, .shared_bytes = 8}, nullptr, out.get());
  CHECK(out.host()[0] == 42);
  CHECK(ptx::launch() == 43);
}
