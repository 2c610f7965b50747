#include "tile_device.h"

#include <numeric>

#include "harness/backend/backend.h"
#include "harness/backend/device_array.h"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"

namespace play {
namespace {

namespace ptx = gemm::ptx;

using harness::DeviceArray;

constexpr unsigned kThreads = 128;

struct alignas(1024) Shared {
  unsigned char memory[kMaxTilePlace + 128 * kMaxTileRows + 1024];
  std::uint64_t full;
};

/// Fills `bytes` bytes of shared memory from `begin` on with kUntouched, loads the tile, and copies them out.
__global__ void tile_kernel(const __grid_constant__ ptx::TensorMap map, std::uint32_t tile_bytes,
                            std::uint32_t at, std::uint32_t begin, std::uint32_t bytes, std::uint32_t* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  auto* words = reinterpret_cast<std::uint32_t*>(shared.memory + begin);
  for (std::uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x) ptx::st_shared(words + i, 0xffffffffu);
  ptx::fence_proxy_async_shared_cta();  // the copy engine overwrites what these stores wrote
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, tile_bytes);
    ptx::cp_async_bulk_tensor_2d(shared.memory + at, &map, 0, 0, &shared.full);
  }
  ptx::mbarrier_wait_parity(&shared.full, 0, {"reader", "full", 0, 0});
  for (std::uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
    ptx::st_global(out + i, ptx::ld_shared(words + i));
  }
}

}  // namespace

std::vector<std::uint16_t> load_tile(std::uint32_t rows, std::uint32_t row_bytes, std::uint32_t at,
                                     std::uint32_t begin, std::uint32_t bytes, ptx::Swizzle swizzle) {
  const std::uint32_t columns = row_bytes / 2;
  std::vector<std::uint16_t> tile(std::size_t{rows} * columns);
  std::iota(tile.begin(), tile.end(), std::uint16_t{0});
  const DeviceArray<std::uint16_t> source(tile, "the tile");
  const DeviceArray<std::uint16_t> out(std::vector<std::uint16_t>(bytes / 2), "what arrived");
  const ptx::TensorMap map =
      ptx::make_tensor_map(ptx::matrix_spec(source.get(), static_cast<int>(rows), static_cast<int>(columns),
                                            static_cast<int>(rows), static_cast<int>(columns), swizzle));
  ptx::launch(tile_kernel, {.block = {kThreads}, .shared_bytes = sizeof(Shared)}, nullptr, map,
              rows * row_bytes, at, begin, bytes, reinterpret_cast<std::uint32_t*>(out.get()));
  harness::synchronize();
  return out.host();
}

}  // namespace play
