// Tensor maps that a kernel changes: groups of rows, anywhere in memory, are loaded through one map.
//
// Broken on purpose: -D NO_WARP_SYNC (the warp copies the map while one lane is still changing it), -D
// NO_ACQUIRE (the copy engine may use the old map), -D NO_RELEASE (a change in global memory is not
// released), -D CTA_RELEASE (the change is released only at CTA scope), -D ACQUIRE_ELSEWHERE (only the other
// CTA of the cluster has acquired the map), -D NO_START_ACQUIRE (a map that the host wrote is used without an
// acquire), -D TOO_MANY_ROWS (the map has more rows than the group).
#include <cooperative_groups.h>
#include <cuda.h>

#include <cuda/ptx>

#include <cstdint>
#include <cstring>
#include <vector>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int kColumns = 32;
constexpr int kBoxRows = 8;

struct Group {
  const int* rows;
  unsigned count;
  unsigned long long stride;  // in bytes
};

/// One box, from the top of the tensor, by one warp: rows that are not there are zero.
__device__ void load_box(int (*tile)[kColumns], const CUtensorMap* map, std::uint64_t* full, unsigned parity,
                         int* out) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full,
                                   kBoxRows * kColumns * sizeof(int));
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, map, {0, 0}, full);
  }
  while (!ptx::mbarrier_try_wait_parity(full, parity)) {
  }
  for (int row = 0; row < kBoxRows; ++row) out[row * kColumns + threadIdx.x] = tile[row][threadIdx.x];
  ptx::fence_proxy_async(ptx::space_shared);  // for the next box
  __syncwarp();
}

__device__ void start(std::uint64_t* full) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncwarp();
}

/// Each CTA has a map of its own in global memory, and a copy in shared memory that it changes for each
/// group.
__global__ void in_shared_memory(const __grid_constant__ CUtensorMap pattern, CUtensorMap* maps,
                                 const Group* groups, int count, int* out) {
  __shared__ alignas(128) CUtensorMap mine;
  __shared__ alignas(128) int tile[kBoxRows][kColumns];
  __shared__ std::uint64_t full;
  start(&full);
  if (threadIdx.x == 0) mine = pattern;
  CUtensorMap* map = maps + blockIdx.x;
  unsigned parity = 0;
  for (int i = static_cast<int>(blockIdx.x); i < count; i += static_cast<int>(gridDim.x)) {
    if (threadIdx.x == 0) {
      ptx::tensormap_replace_global_address(ptx::space_shared, &mine, groups[i].rows);
      ptx::tensormap_replace_global_dim(ptx::space_shared, &mine, ptx::n32_t<1>(), groups[i].count);
      ptx::tensormap_replace_global_stride(ptx::space_shared, &mine, ptx::n32_t<0>(), groups[i].stride);
    }
#ifndef NO_WARP_SYNC
    __syncwarp();
#endif
    ptx::tensormap_cp_fenceproxy(ptx::sem_release, ptx::scope_gpu, map, &mine, ptx::n32_t<128>());
#ifndef NO_ACQUIRE
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, map, ptx::n32_t<128>());
#endif
    load_box(tile, map, &full, parity, out + i * kBoxRows * kColumns);
    parity ^= 1;
  }
}

/// The first CTA of the cluster changes a map in global memory, and both use it.
__global__ void __cluster_dims__(2, 1, 1) in_global_memory(const __grid_constant__ CUtensorMap pattern,
                                                           CUtensorMap* map, const Group* group, int* out) {
  __shared__ alignas(128) int tile[kBoxRows][kColumns];
  __shared__ std::uint64_t full;
  const cg::cluster_group cluster = cg::this_cluster();
  start(&full);
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    *map = pattern;
    ptx::tensormap_replace_global_address(ptx::space_global, map, group->rows);
    ptx::tensormap_replace_global_dim(ptx::space_global, map, ptx::n32_t<1>(), group->count);
    ptx::tensormap_replace_global_stride(ptx::space_global, map, ptx::n32_t<0>(), group->stride);
#if defined(CTA_RELEASE)
    ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_cta);
#elif !defined(NO_RELEASE)
    ptx::fence_proxy_tensormap_generic(ptx::sem_release, ptx::scope_gpu);
#endif
  }
  cluster.sync();
#ifdef ACQUIRE_ELSEWHERE
  if (cluster.block_rank() == 1)
#endif
    if (threadIdx.x == 0)
      ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_gpu, map, ptx::n32_t<128>());
  load_box(tile, map, &full, 0, out + blockIdx.x * kBoxRows * kColumns);
  cluster.sync();
}

/// The host has written the map.
__global__ void of_the_host(const CUtensorMap* map, int* out) {
  __shared__ alignas(128) int tile[kBoxRows][kColumns];
  __shared__ std::uint64_t full;
  start(&full);
#ifndef NO_START_ACQUIRE
  if (threadIdx.x == 0)
    ptx::fence_proxy_tensormap_generic(ptx::sem_acquire, ptx::scope_sys, map, ptx::n32_t<128>());
#endif
  load_box(tile, map, &full, 0, out);
}

void check_kernel(emulate::Run& run) {
  constexpr int kGroups = 5;
  // Group i has i + 1 rows, and its rows are i + 1 times as far apart as they are long.
  std::vector<int> memory(4096);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<int>(i);
  int* rows = run.buffer("rows", memory);
  std::vector<Group> groups;
  std::vector<int> expected;
  for (unsigned i = 0; i < kGroups; ++i) {
#ifdef TOO_MANY_ROWS
    const unsigned count = 1000;
#else
    const unsigned count = i + 1;
#endif
    groups.push_back({rows + 600 * i, count, (i + 1) * kColumns * sizeof(int)});
    for (unsigned row = 0; row < kBoxRows; ++row) {
      for (unsigned column = 0; column < kColumns; ++column)
        expected.push_back(row <= i ? static_cast<int>(600 * i + row * (i + 1) * kColumns + column) : 0);
    }
  }

  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found);
  CUtensorMap pattern;
  const cuuint64_t extents[] = {kColumns, 1};
  const cuuint64_t strides[] = {kColumns * sizeof(int)};
  const cuuint32_t box[] = {kColumns, kBoxRows};
  const cuuint32_t steps[] = {1, 1};
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &pattern, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, rows, extents, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

  const Group* list = run.buffer("groups", groups);
  CUtensorMap* maps = run.buffer<CUtensorMap>("maps", 2);
  int* out = run.buffer<int>("out", expected.size());
  in_shared_memory<<<2, 32>>>(pattern, maps, list, kGroups, out);
  run.expect_equal("out of in_shared_memory", run.host(out), expected);

  constexpr std::size_t kTile = kBoxRows * kColumns;
  int* twice = run.buffer<int>("twice", 2 * kTile);
  in_global_memory<<<2, 32>>>(pattern, maps, list + 3, twice);
  std::vector<int> third(expected.begin() + 3 * kTile, expected.begin() + 4 * kTile);
  third.insert(third.end(), third.begin(), third.begin() + kTile);
  run.expect_equal("twice", run.host(twice), third);

  const CUtensorMap* own = run.buffer("own", std::vector<CUtensorMap>{pattern});
  int* once = run.buffer<int>("once", kTile);
  of_the_host<<<1, 32>>>(own, once);
  std::vector<int> first(kTile, 0);
  for (int i = 0; i < kColumns; ++i) first[static_cast<std::size_t>(i)] = i;
  run.expect_equal("once", run.host(once), first);
}
