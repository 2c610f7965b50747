// libcu++ beside our headers: `namespace ptx = cuda::ptx`, as its documentation recommends, and gemm::ptx in
// one kernel.
#if __has_include(<cuda/ptx>)
#include <cuda/ptx>
namespace ptx = cuda::ptx;
#else  // a toolkit without libcu++
namespace cuda::ptx {
__device__ inline unsigned get_sreg_tid_x() {
  return threadIdx.x;
}
}  // namespace cuda::ptx
namespace ptx = cuda::ptx;
#endif

#include "device.h"
#include "gemm/pipeline/ordered_barrier.cuh"
#include "gemm/schedule/partials.cuh"
#include "gemm/tile/cluster_tile.cuh"
#include "gemm/tile/cp_async_tile.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"

namespace own_ptx_namespace_test {

using gpu_test::DeviceArray;

__global__ void both_kernel(unsigned* out) {
  gemm::ptx::st_global(out + threadIdx.x, static_cast<unsigned>(ptx::get_sreg_tid_x()) + 1);
}

TEST_CASE("libcu++'s namespace ptx and ours in one kernel") {
  if (gpu_test::skip_without_gpu()) return;
  const DeviceArray<unsigned> out(std::vector<unsigned>(4, 0));
  gemm::ptx::launch(both_kernel, {.block = {4}}, nullptr, out.get());
  CHECK(out.read() == std::vector<unsigned>{1, 2, 3, 4});
}

}  // namespace own_ptx_namespace_test
