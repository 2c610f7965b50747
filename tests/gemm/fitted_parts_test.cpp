// The parts of step 21 by themselves: which CTAs of a cluster share what, how often producers meet, and where
// a store is clipped.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/hopper_test.h"
#include "gemm/fitted/fitted_cluster.cuh"
#include "gemm/fitted/fitted_store.cuh"
#include "gemm/pipeline/lockstep.cuh"

using namespace emulator_test;

namespace fitted_parts_test {

using gemm::ClusterShape;
using gemm::Decomposition;
using gemm::FittedCluster;

template <typename Check>
void for_shapes(const Check& check) {
  for (const int m : {1, 2, 4, 8}) {
    for (const int n : {1, 2, 4, 8}) {
      if (m * n > 8) continue;
      INFO(m << " x " << n);
      check(FittedCluster(ClusterShape{m, n}));
    }
  }
}

TEST_CASE("FittedCluster: every rank has a place of its own, and its tile follows from it") {
  for_shapes([](FittedCluster cluster) {
    for (cluster.rank = 0; cluster.rank < cluster.shape.ctas(); ++cluster.rank) {
      CHECK(cluster.m() == cluster.rank % cluster.shape.m);
      CHECK(cluster.n() == cluster.rank / cluster.shape.m);
      const gemm::TilePosition tile = cluster.tile({3, 5});
      CHECK(tile.m == 3 * cluster.shape.m + cluster.m());
      CHECK(tile.n == 5 * cluster.shape.n + cluster.n());
    }
  });
}

TEST_CASE("FittedCluster: masks and peers are the CTAs with the same rows or the same columns") {
  for_shapes([](FittedCluster cluster) {
    for (cluster.rank = 0; cluster.rank < cluster.shape.ctas(); ++cluster.rank) {
      unsigned rows = 0;
      unsigned columns = 0;
      for (int other = 0; other < cluster.shape.ctas(); ++other) {
        if (other % cluster.shape.m == cluster.m()) rows |= 1u << other;
        if (other / cluster.shape.m == cluster.n()) columns |= 1u << other;
      }
      CHECK(cluster.row_mask() == rows);
      CHECK(cluster.column_mask() == columns);
      int peers = 0;
      for (int other = 0; other < 128; ++other) {
        const bool expected = other < 8 && ((rows | columns) >> other & 1u) != 0;
        peers += expected;
        if (cluster.is_peer(other) != expected) FAIL("rank " << cluster.rank << ", CTA " << other);
      }
      CHECK(cluster.peers() == peers);
    }
  });
}

TEST_CASE("shares_columns: a share begins where the swizzle does") {
  CHECK(gemm::shares_columns({1, 8}, 104));
  CHECK(gemm::shares_columns({2, 1}, 176));
  CHECK_FALSE(gemm::shares_columns({2, 1}, 104));
  CHECK(gemm::shares_columns({4, 2}, 96));
  CHECK_FALSE(gemm::shares_columns({4, 1}, 176));
}

TEST_CASE("lockstep_barriers: as many as the worker with the most k-tiles arrives at") {
  for (const int workers : {1, 2, 3, 5, 7}) {
    for (const int tiles : {1, 2, 3, 8, 15}) {
      for (const int k_tiles : {1, 2, 5, 16, 33}) {
        for (int stream_k_tiles = 0; stream_k_tiles <= tiles; stream_k_tiles += 1 + tiles / 4) {
          const Decomposition all{tiles, k_tiles, workers, stream_k_tiles, 1};
          int most = 0;
          for (int worker = 0; worker < workers; ++worker) {
            gemm::TileScheduler scheduler(all, worker);
            int mine = 0;
            for (gemm::WorkTile work; scheduler.next(work);) mine += work.count();
            most = std::max(most, mine);
          }
          INFO(workers << " workers, " << tiles << " tiles of " << k_tiles << ", " << stream_k_tiles
                       << " stream-K tiles");
          CHECK(gemm::lockstep_barriers(all, 0) == 0);
          for (const int period : {2, 4, 16}) {
            // It arrives before its k-tiles 1, 1 + period, ...; no fewer barriers than that, and one more at
            // most where the worker with the longest range has not the most tiles.
            const int arrivals = (most + period - 1) / period;
            const int barriers = gemm::lockstep_barriers(all, period);
            CHECK(barriers >= arrivals);
            CHECK(barriers <= arrivals + (k_tiles + period - 1) / period);
          }
        }
      }
    }
  }
}

struct alignas(1024) Chunk {
  bf16 d[64][64];
};

/// Stores a chunk of ones at (x, y) of tile z.
__global__ void store_chunk_of_ones(ptx::TensorMap map, int x, int y, int z) {
  auto& chunk = ptx::dynamic_shared<Chunk>();
  for (int i = static_cast<int>(threadIdx.x); i < 64 * 64; i += 32)
    ptx::st_shared(&chunk.d[0][0] + i, gemm::to_bf16(1));
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x > 0) return;
  ptx::cp_async_bulk_tensor_3d_store(&map, x, y, z, chunk.d);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

/// What a chunk at column `begin` of tile `tile` and at `row` writes: the ones in D, by place.
template <int kN>
void check_clipping(int m, int n, bool transposed, int row, int tile, int begin) {
  INFO("tiles " << kN << " wide, D " << m << " x " << n << (transposed ? ", transposed" : "") << ", row "
                << row << ", tile " << tile << ", column " << begin);
  const DeviceArray<bf16> d(std::vector<bf16>(static_cast<std::size_t>(m * n)), "D");
  const ptx::TensorMap map = gemm::tile_map<kN>(d.get(), m, n, transposed);
  const Outcome outcome = run(store_chunk_of_ones, one_cta(32, sizeof(Chunk)), map, transposed ? row : begin,
                              transposed ? begin : row, tile);
  INFO(outcome.report);
  REQUIRE(outcome.rule == "passed");
  const std::vector<bf16> result = d.host();
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const int along = transposed ? i : j;  // columns of the tiles' matrix
      const int across = transposed ? j : i;
      const bool inside = along >= tile * kN + begin && along < tile * kN + std::min(begin + 64, kN) &&
                          across >= row && across < row + 64;
      wrong += (gemm::to_float(result[static_cast<std::size_t>(i * n + j)]) == 1) != inside;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("tile_map: a chunk that hangs over its tile is clipped there, and at D's edge") {
  for (const bool transposed : {false, true}) {
    for (const int tile : {0, 1, 2}) {
      check_clipping<72>(transposed ? 3 * 72 + 5 : 130, transposed ? 136 : 3 * 72 + 8, transposed, 64, tile,
                         64);
      check_clipping<40>(transposed ? 3 * 40 : 100, transposed ? 104 : 3 * 40, transposed, 64, tile, 0);
      check_clipping<104>(transposed ? 3 * 104 + 1 : 65, transposed ? 72 : 3 * 104, transposed, 0, tile, 64);
    }
  }
}

}  // namespace fitted_parts_test
