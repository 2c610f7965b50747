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
#include "gemm/epilogue/store_tile.cuh"
#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/schedule/partials.cuh"
#include "gemm/tile/cluster_tile.cuh"
#include "gemm/tile/cp_async_tile.cuh"
#include "gemm/tile/mma_tile.cuh"
#include "gemm/tile/tile_source.cuh"
#include "gemm/tile/tma_tile.cuh"
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
