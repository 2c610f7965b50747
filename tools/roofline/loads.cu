// What loads cost a kernel whose tensor cores are never idle: the main loop of step 15 with some of its loads
// left out.
#include <cuda_runtime.h>

#include <memory>
#include <numeric>
#include <string>

#include "bench.h"
#include "device_clock.cuh"
#include "gemm/launch/tensor_maps.cuh"
#include "gemm/pipeline/ring.cuh"
#include "gemm/pipeline/roles.h"
#include "gemm/schedule/raster.h"
#include "gemm/tile/tma_tile.cuh"
#include "gemm/tile/wgmma_tile.cuh"
#include "ptx/convert.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/memory.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tma.cuh"

namespace roofline {
namespace {

namespace ptx = gemm::ptx;

using Tile = gemm::WgmmaTiling<128, 256, 64, 2>;
using Role = gemm::Roles<Tile>;
constexpr int kStages = 4;
constexpr int kGroup = 16;           // rows of tiles in a raster group, as in step 15
constexpr int kColumns = 32;         // of tiles: N = 8192
constexpr int kKTiles = 128;         // of a tile: K = 8192
constexpr int kRepeatedKTiles = 16;  // what stays in the L2
using Shared = gemm::Ring<Tile, kStages>;

/// Where the k-tiles of an operand come from.
enum class Source {
  kMemory,   // every k-tile of every tile, as in a GEMM
  kL2,       // the first k-tiles of the tile again and again
  kOneTile,  // the same, and all CTAs load those of one tile
  kNowhere,  // only the first kStages k-tiles are loaded; the rest multiplies what is there
};

struct Sources {
  Source a;
  Source b;
};

/// The number of the k-tile that is loaded in place of number `i`.
__device__ __forceinline__ int k_tile_of(Source source, int i) {
  return source == Source::kMemory ? i : i % kRepeatedKTiles;
}

/// A persistent CTA multiplies tiles, and keeps no result.
__global__ void __launch_bounds__(Role::kThreads, 1)
    loads_kernel(gemm::TileGrid tiles, Sources sources, const __grid_constant__ ptx::TensorMap a_map,
                 const __grid_constant__ ptx::TensorMap b_map, CtaTime* times, std::uint32_t* sink) {
  auto& ring = ptx::dynamic_shared<Shared>();
  const int warp = gemm::warp_index();
  if (threadIdx.x == 0) {
    ring.init(Tile::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  const CtaStopwatch stopwatch;  // begins with a barrier of the CTA

  const int first = static_cast<int>(blockIdx.x);
  const int step = static_cast<int>(gridDim.x);
  float total = 0;
  if (warp >= Role::kProducerWarp) {
    ptx::setmaxnreg_dec<Role::kProducerRegisters>();
    if (warp == Role::kProducerWarp && ptx::elect_sync()) {
      gemm::PipelineState<kStages> fill{0, 1};
      int loaded = 0;
      for (int index = first; index < tiles.count(); index += step) {
        const auto tile = gemm::tile_at(index, tiles, {gemm::RasterOrder::kGrouped, kGroup});
        const int row = sources.a == Source::kOneTile ? 0 : tile.m * Tile::kM;
        const int column = sources.b == Source::kOneTile ? 0 : tile.n * Tile::kN;
        for (int i = 0; i < kKTiles; ++i, ++loaded) {
          ring.producer_acquire(fill, i);
          auto& stage = ring.stage[fill.stage];
          std::uint64_t* const full = &ring.full[fill.stage];
          const bool a = loaded < kStages || sources.a != Source::kNowhere;
          const bool b = loaded < kStages || sources.b != Source::kNowhere;
          ptx::mbarrier_arrive_expect_tx(
              full, static_cast<std::uint32_t>((a ? sizeof(stage.a) : 0) + (b ? sizeof(stage.b) : 0)));
          if (a)
            ptx::cp_async_bulk_tensor_2d(stage.a[0], &a_map, k_tile_of(sources.a, i) * Tile::kK, row, full);
          if (b)
            ptx::cp_async_bulk_tensor_2d(stage.b[0], &b_map, k_tile_of(sources.b, i) * Tile::kK, column,
                                         full);
          fill.advance();
        }
      }
    }
  } else {
    ptx::setmaxnreg_inc<Role::kConsumerRegisters>();
    gemm::WarpgroupTile<Tile> warpgroup;
    gemm::PipelineState<kStages> read{0, 0};
    gemm::PipelineState<kStages> release{0, 0};
    const bool releases = threadIdx.x % 128 == 0;
    const auto release_stage = [&] {
      if (releases) ring.consumer_release(release);
      release.advance();
    };
    for (int index = first; index < tiles.count(); index += step) {
      for (int i = 0; i < kKTiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      warpgroup.template wait<0>();
      release_stage();
    }
    for (const float accumulator : warpgroup.accumulators[0]) total += accumulator;
  }
  stopwatch.stop(times);
  sink[blockIdx.x * blockDim.x + threadIdx.x] = __float_as_uint(total);
}

__global__ void fill_kernel(std::uint32_t* pairs, std::size_t count) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const auto index = static_cast<std::uint32_t>(2 * i);
    pairs[i] = ptx::cvt_rn_bf16x2_f32(random_float(index), random_float(index + 1));
  }
}

/// A and B of the measurement. The grid of tiles is a multiple of the number of SMs, so that all CTAs have as
/// many.
struct Operands {
  explicit Operands(int sm_count)
      : tiles{sm_count / std::gcd(sm_count, kColumns), kColumns},
        a(static_cast<std::size_t>(tiles.m) * Tile::kM * kK, "A"),
        b(static_cast<std::size_t>(tiles.n) * Tile::kN * kK, "B") {
    for (DeviceArray<gemm::bf16>* operand : {&a, &b}) {
      ptx::launch(fill_kernel, {.grid = {1024}, .block = {256}}, nullptr,
                  reinterpret_cast<std::uint32_t*>(operand->get()), operand->bytes() / 4);
    }
    harness::synchronize();
  }

  static constexpr int kK = kKTiles * Tile::kK;
  gemm::TileGrid tiles;
  DeviceArray<gemm::bf16> a;
  DeviceArray<gemm::bf16> b;
};

std::string name_of(Source source) {
  switch (source) {
    case Source::kMemory:
      return "memory";
    case Source::kL2:
      return "l2";
    case Source::kOneTile:
      return "one tile";
    default:
      return "nowhere";
  }
}

Probe loads_probe(const Bench& bench, const std::shared_ptr<Operands>& operands, Sources sources) {
  const int sm_count = bench.device().sm_count;
  const double k_tiles = static_cast<double>(operands->tiles.count() / sm_count) * kKTiles;
  const nlohmann::json parameters = {{"a", name_of(sources.a)}, {"b", name_of(sources.b)}};
  const std::string what =
      "a 128 x 256 x 64 k-tile in the main loop of step 15, no epilogue, N = K = 8192; where A and B come "
      "from";
  constexpr double kClocks = 1024;  // 2 clocks per column for every 64 rows
  return {
      .figures =
          {{.name = "loads.k_tile",
            .unit = "clocks",
            .what = what,
            .parameters = parameters,
            .least = 0.99 * kClocks},
           {.name = "loads.time", .unit = "us", .what = what + "; of all k-tiles", .parameters = parameters},
           {.name = "loads.clock", .unit = "MHz", .what = "SM clock meanwhile", .parameters = parameters}},
      .run =
          [&bench, operands, sources, k_tiles, sm_count](std::span<double> samples) {
            const auto maps = [&](const DeviceArray<gemm::bf16>& matrix, int rows, int box) {
              return gemm::operand_map<Tile>(matrix.get(), rows, Operands::kK, box);
            };
            const auto a_map = maps(operands->a, operands->tiles.m * Tile::kM, Tile::kM);
            const auto b_map = maps(operands->b, operands->tiles.n * Tile::kN, Tile::kN);
            const LaunchTime time = bench.timed(
                [&] {
                  ptx::launch(loads_kernel, bench.one_cta_per_sm(Role::kThreads, sizeof(Shared)), nullptr,
                              operands->tiles, sources, a_map, b_map, bench.times(), bench.sink());
                },
                sm_count);
            samples[0] = time.cycles / k_tiles;
            samples[1] = time.ns * 1e-3;
            samples[2] = time.clock_mhz;
          },
      .idle_ms = kIdleMs};
}

}  // namespace

void add_loads(Bench& bench) {
  constexpr int kHopper = 90;
  if (bench.device().compute_capability != kHopper) return;
  const auto operands = std::make_shared<Operands>(bench.device().sm_count);
  using enum Source;
  for (const Sources sources :
       {Sources{kMemory, kMemory}, Sources{kNowhere, kMemory}, Sources{kMemory, kNowhere},
        Sources{kNowhere, kNowhere}, Sources{kL2, kL2}, Sources{kOneTile, kOneTile}})
    bench.add(loads_probe(bench, operands, sources));
}

}  // namespace roofline
