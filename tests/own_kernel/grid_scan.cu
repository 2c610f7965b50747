// An inclusive scan of a whole array in one cooperative launch: a grid barrier separates the passes.
//
// Broken on purpose: -D NO_GRID_SYNC (other CTAs' sums may not be there yet), -D NOT_COOPERATIVE (not a
// cooperative launch).
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

#include <vector>

namespace cg = cooperative_groups;

__global__ void scan(const int* in, int* out, int* sums, int count) {
  const cg::grid_group grid = cg::this_grid();
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  __shared__ int warps[32];
  __shared__ int before;
  const int i = static_cast<int>(grid.thread_rank());
  int value = cg::inclusive_scan(warp, i < count ? in[i] : 0);
  if (warp.thread_rank() == 31) warps[warp.meta_group_rank()] = value;
  block.sync();
  for (unsigned w = 0; w < warp.meta_group_rank(); ++w) value += warps[w];
  if (block.thread_rank() == block.size() - 1) sums[grid.block_rank()] = value;
#ifndef NO_GRID_SYNC
  grid.sync();
#endif
  if (block.thread_rank() == 0) {
    before = 0;
    for (unsigned b = 0; b < grid.block_rank(); ++b) before += sums[b];
  }
  block.sync();
  if (i < count) out[i] = value + before;
}

void check_kernel(emulate::Run& run) {
  int count = 1000;
  const dim3 block(128);
  const dim3 grid(8);
  const std::vector<int> values = run.small_integers<int>(static_cast<size_t>(count));
  const int* in = run.buffer("in", values);
  int* out = run.buffer<int>("out", values.size());
  int* sums = run.buffer<int>("sums", grid.x);
#ifdef NOT_COOPERATIVE
  scan<<<grid, block>>>(in, out, sums, count);
#else
  void* arguments[] = {&in, &out, &sums, &count};
  cudaLaunchCooperativeKernel(scan, grid, block, arguments);
#endif
  std::vector<int> expected(values.size());
  int sum = 0;
  for (size_t i = 0; i < values.size(); ++i) expected[i] = sum += values[i];
  run.expect_equal("out", run.host(out), expected);
}
