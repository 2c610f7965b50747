// Groups of cooperative groups inside a warp: tiles of tiles, groups by predicate and by label, and what they
// can do.
//
// Broken on purpose: -D WHOLE_TILE (one side of a branch sums over the whole tile, which the other threads do
// not reach), -D PLAIN_ADD (the first thread of each group adds to a counter without an atomic), -D
// OTHER_PARENT (a tile of 8 inside a tile of 16 is mistaken for one of the CTA).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace cg = cooperative_groups;

/// How many values are odd, and the sums of the odd and of the even ones.
__global__ void odd_and_even(const int* values, int count, int* odds, int* sums) {
  const cg::grid_group grid = cg::this_grid();
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  for (int i = static_cast<int>(grid.thread_rank()); i < count; i += static_cast<int>(grid.size())) {
    const int value = values[i];
    const cg::coalesced_group alike = cg::binary_partition(tile, value % 2 != 0);
    if (value % 2 != 0) {
      const int sum = cg::reduce(alike, value, cg::plus<int>());
      if (alike.thread_rank() == 0) {
        atomicAdd(odds, static_cast<int>(alike.size()));
        atomicAdd(&sums[1], sum);
      }
    } else {
#ifdef WHOLE_TILE
      const int sum = cg::reduce(tile, value, cg::plus<int>());
#else
      const int sum = cg::reduce(alike, value, cg::plus<int>());
#endif
#ifdef PLAIN_ADD
      if (alike.thread_rank() == 0) sums[0] += sum;
#else
      if (alike.thread_rank() == 0) atomicAdd(&sums[0], sum);
#endif
    }
    tile.sync();
  }
}

/// A histogram with one atomic for each distinct value of a warp, whatever the value.
__global__ void histogram_by_label(const int* values, int* bins, unsigned* groups) {
  const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  const int value = values[blockIdx.x * blockDim.x + threadIdx.x];
  const cg::coalesced_group alike = cg::labeled_partition(tile, value);
  if (alike.thread_rank() == 0) {
    atomicAdd(&bins[value], static_cast<int>(alike.num_threads()));
    // Each group of the tile has a number of its own.
    atomicOr(&groups[blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32], 1u << alike.meta_group_rank());
    if (alike.meta_group_rank() >= alike.meta_group_size()) atomicAdd(&bins[value], 1000);
  }
}

/// The smallest value of each tile of 8, by the tiles of 16 that it lies in.
__global__ void tiles_of_tiles(const int* values, int* smallest, unsigned* bits) {
  __shared__ int of_tile[16];
  const auto wide = cg::tiled_partition<16>(cg::this_thread_block());
#ifdef OTHER_PARENT
  const auto narrow = cg::tiled_partition<8>(cg::this_thread_block());
#else
  const auto narrow = cg::tiled_partition<8>(wide);
#endif
  const int value = values[threadIdx.x];
  const int least = cg::reduce(narrow, value, cg::less<int>());
  const unsigned any_bit = cg::reduce(narrow, 1u << (value & 7), cg::bit_or<unsigned>());
  int* const place = &of_tile[wide.meta_group_rank() * 2 + narrow.meta_group_rank()];
  cg::invoke_one(narrow, [&] { *place = least; });
  if (narrow.match_any(value) >> narrow.thread_rank() & 1u) atomicOr(&bits[threadIdx.x / 8], any_bit);
  cg::sync(cg::this_thread_block());
  if (threadIdx.x < blockDim.x / 8) smallest[threadIdx.x] = of_tile[threadIdx.x];
}

void check_kernel(emulate::Run& run) {
  constexpr int kCount = 1000;  // no multiple of a CTA
  const std::vector<int> values = run.small_integers<int>(kCount);
  int odds = 0;
  std::vector<int> sums(2);
  for (const int value : values) {
    odds += value % 2 != 0 ? 1 : 0;
    sums[value % 2 != 0 ? 1 : 0] += value;
  }
  const int* in = run.buffer("values", values);
  int* got_odds = run.buffer("odds", std::vector<int>(1));
  int* got_sums = run.buffer("sums", std::vector<int>(2));
  // The last round of the loop has whole warps only: 1024 threads, and a tile's threads stay together.
  odd_and_even<<<4, 128>>>(in, kCount / 32 * 32, got_odds, got_sums);
  for (int i = kCount / 32 * 32; i < kCount; ++i) {
    odds -= values[static_cast<std::size_t>(i)] % 2 != 0 ? 1 : 0;
    sums[values[static_cast<std::size_t>(i)] % 2 != 0 ? 1 : 0] -= values[static_cast<std::size_t>(i)];
  }
  run.expect_equal("odds", run.host(got_odds), std::vector<int>{odds});
  run.expect_equal("sums", run.host(got_sums), sums);

  constexpr int kBins = 5;
  constexpr int kCtas = 3;
  std::vector<int> labels = run.small_integers<int>(128 * kCtas);
  for (int& label : labels) label += 2;
  std::vector<int> bins(kBins);
  std::vector<unsigned> groups(4 * kCtas);
  for (std::size_t warp = 0; warp < groups.size(); ++warp) {
    std::array<bool, kBins> seen{};
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const auto label = static_cast<std::size_t>(labels[warp * 32 + lane]);
      ++bins[label];
      if (!seen[label]) groups[warp] = groups[warp] << 1 | 1u;
      seen[label] = true;
    }
  }
  int* got_bins = run.buffer("bins", std::vector<int>(kBins));
  unsigned* got_groups = run.buffer("groups", std::vector<unsigned>(groups.size()));
  const int* in_labels = run.buffer("labels", labels);
  histogram_by_label<<<kCtas, 128>>>(in_labels, got_bins, got_groups);
  run.expect_equal("bins", run.host(got_bins), bins);
  run.expect_equal("groups", run.host(got_groups), groups);

  std::vector<int> least(16, 1000);
  std::vector<unsigned> bits(16);
  for (std::size_t i = 0; i < 128; ++i) {
    least[i / 8] = std::min(least[i / 8], labels[i]);
    bits[i / 8] |= 1u << (labels[i] & 7);
  }
  int* smallest = run.buffer<int>("smallest", 16);
  unsigned* got_bits = run.buffer("bits", std::vector<unsigned>(16));
  tiles_of_tiles<<<1, 128>>>(in_labels, smallest, got_bits);
  run.expect_equal("smallest", run.host(smallest), least);
  run.expect_equal("bits", run.host(got_bits), bits);
}
