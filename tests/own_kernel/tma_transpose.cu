// A transpose by TMA: a tile is loaded through one tensor map, transposed in shared memory, and stored
// through another.
//
// Broken on purpose, one at a time: -D of NO_FENCE (no fence.proxy.async before the store), NO_WAIT (the tile
// is read before it has arrived), NO_READ_WAIT (the CTA ends while its store is still reading),
// ONE_BARRIER_LESS (nothing orders the transpose and the store).
#include <cuda.h>
#include <cuda_runtime.h>

#include <cuda/ptx>

#include <cstdint>
#include <vector>

namespace ptx = cuda::ptx;

constexpr int kTile = 32;

__global__ void __launch_bounds__(256)
    transpose(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(128) float tile[kTile][kTile];
  __shared__ alignas(128) float turned[kTile][kTile];
  __shared__ std::uint64_t full;
  const int x = static_cast<int>(blockIdx.x) * kTile;
  const int y = static_cast<int>(blockIdx.y) * kTile;

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::int32_t from[2] = {x, y};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &in, from, &full);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
  }
#ifndef NO_WAIT
  while (!ptx::mbarrier_try_wait_parity(&full, 0)) {
  }
#endif
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile; i += static_cast<int>(blockDim.x))
    turned[i % kTile][i / kTile] = tile[i / kTile][i % kTile];
#ifndef NO_FENCE
  ptx::fence_proxy_async(ptx::space_shared);
#endif
#ifndef ONE_BARRIER_LESS
  __syncthreads();
#endif
  if (threadIdx.x == 0) {
    const std::int32_t to[2] = {y, x};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, to, turned);
    ptx::cp_async_bulk_commit_group();
#ifndef NO_READ_WAIT
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#endif
  }
}

static CUtensorMap make_map(const float* memory, int rows, int columns) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result);
  const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride[] = {static_cast<cuuint64_t>(columns) * sizeof(float)};
  const cuuint32_t box[] = {kTile, kTile};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(memory), extent, stride, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

void check_kernel(emulate::Run& run) {
  const int rows = 72;
  const int columns = 100;
  const std::vector<float> values = run.uniform<float>(rows * columns);
  const float* in = run.buffer("in", values);
  float* out = run.buffer<float>("out", rows * columns);
  const dim3 grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  transpose<<<grid, 256>>>(make_map(in, rows, columns), make_map(out, columns, rows));
  std::vector<float> expected(values.size());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j)
      expected[static_cast<std::size_t>(j * rows + i)] = values[static_cast<std::size_t>(i * columns + j)];
  }
  run.expect_equal("out", run.host(out), expected);
}
