// Step 22: what the steps before taught, in one kernel, and for each shape the configuration that suits it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "choice.h"
#include "gemm/cluster_tile.cuh"
#include "gemm/decomposition.h"
#include "gemm/gemm.h"
#include "gemm/ordered_barrier.cuh"
#include "gemm/partials.cuh"
#include "gemm/raster.h"
#include "gemm/ring.cuh"
#include "gemm/roles.h"
#include "gemm/step.h"
#include "gemm/store_tile.cuh"
#include "gemm/tma_tile.cuh"
#include "gemm/wgmma_tile.cuh"
#include "ptx/atomic.cuh"
#include "ptx/cluster.cuh"
#include "ptx/core.cuh"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tma.cuh"
#include "ptx/workspace.h"

namespace gemm::step_22 {

// Lesson: until now everybody worked out for himself what comes next, with divisions, in registers that sums
// need. Here the producer does, and posts each piece in shared memory for the team (the warpgroups that share
// a tile) that multiplies it. What is needed at the end of a piece is read at its end.
struct alignas(16) Multiply {
  int k_tiles;  // 0: there is no more work
  int at;       // 2 * the stage of the first k-tile + the parity to wait for there
  int leave;    // the slot for the sums; -1: finish the tile
  int fetched;  // slots whose sums follow in the ring
};
struct alignas(8) Add {
  int first_slot, slots;  // whose sums the team adds by itself
};
struct alignas(8) Finish {
  int row, column;  // of the tile in D
};

inline constexpr int kPosts = 4;

struct Posts {
  Multiply multiply[kPosts];
  Add add[kPosts];
  Finish finish[kPosts];
  std::uint64_t posted[kPosts];  // count 1, the producer
  std::uint64_t taken[kPosts];   // count: the warps of a team

  __device__ __forceinline__ void init(int warps_of_a_team) {
    for (int i = 0; i < kPosts; ++i) {
      ptx::mbarrier_init(&posted[i], 1);
      ptx::mbarrier_init(&taken[i], static_cast<std::uint32_t>(warps_of_a_team));
    }
  }
  __device__ __forceinline__ void post(PipelineState<kPosts>& at, const Multiply& first, const Add& then,
                                       const Finish& last) {
    ptx::mbarrier_wait_parity(&taken[at.stage], at.phase, {"producer", "taken", at.stage, 0});
    ptx::st_shared(&multiply[at.stage], first);
    ptx::st_shared(&add[at.stage], then);
    ptx::st_shared(&finish[at.stage], last);
    ptx::mbarrier_arrive(&posted[at.stage]);
    at.advance();
  }
  /// Waits for the next post. What it says is the same in all lanes, and the compiler knows that it is.
  __device__ __forceinline__ Multiply next(const PipelineState<kPosts>& at) {
    ptx::mbarrier_wait_parity(&posted[at.stage], at.phase, {"consumer", "posted", at.stage, 0});
    const Multiply first = ptx::ld_shared(&multiply[at.stage]);
    return {warp_uniform(first.k_tiles), warp_uniform(first.at), warp_uniform(first.leave),
            warp_uniform(first.fetched)};
  }
  __device__ __forceinline__ Add slots(const PipelineState<kPosts>& at) {
    return ptx::ld_shared(&add[at.stage]);
  }
  /// Reads the last part and gives the post back.
  __device__ __forceinline__ Finish take(PipelineState<kPosts>& at, int teams) {
    const Finish last = ptx::ld_shared(&finish[at.stage]);
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(&taken[at.stage]);
    at.advance(teams);
    return last;
  }
};

/// How often all CTAs meet. `counters`: arrivals at all meetings, CTAs that are done; zero between launches.
struct Pace {
  std::uint32_t* counters;
  int period;    // k-tiles between two meetings, at least 2; 0: nobody waits for anybody
  int meetings;  // of the CTA with the most k-tiles
};

// Lesson: the L2 reads a line once for all CTAs that ask for it at about the same time, and later ones cost
// another read, perhaps of DRAM. CTAs that start together drift apart: nothing holds them. So every few
// k-tiles the producers meet, while the stages they have filled keep the tensor cores busy. Each arrives one
// k-tile early, so that the others know by the time they ask. The bytes saved are watts, and watts are clock.
class InStep {
 public:
  __device__ __forceinline__ explicit InStep(const Pace& pace) : pace_(pace) {}

  __device__ __forceinline__ void before_k_tile() {
    if (pace_.period == 0) return;
    --until_;
    if (until_ == 1) {
      ++met_;
      ptx::red_add_relaxed_gpu(&pace_.counters[0], 1);
    }
    if (until_ > 0) return;
    until_ = pace_.period;
    while (ptx::ld_relaxed_gpu(&pace_.counters[0]) < static_cast<std::uint32_t>(met_) * gridDim.x) {
    }
  }
  /// Nobody waits for this CTA any more: its arrivals at all later meetings count at once, so that the others
  /// may go on a little early. The last one to leave makes ready for the next launch.
  __device__ __forceinline__ void leave() {
    if (pace_.period == 0) return;
    ptx::red_add_relaxed_gpu(&pace_.counters[0], static_cast<std::uint32_t>(pace_.meetings - met_));
    if (ptx::atom_add_acq_rel_gpu(&pace_.counters[1], 1) + 1 < gridDim.x) return;
    ptx::st_relaxed_gpu(&pace_.counters[0], 0);
    ptx::st_relaxed_gpu(&pace_.counters[1], 0);
  }

 private:
  Pace pace_;
  int until_ = 2;
  int met_ = 0;
};

// Lesson: a thread with 192 sums has registers for four or five loads at a time, and each takes hundreds of
// clocks. The ring has room for more than 100 KB. So the producer fetches the sums that others left, behind
// the k-tiles of the piece that finishes the tile, and the consumers find them in the stages.

/// A slot in equal parts: as many vectors (four sums each) of all threads as fit into a stage.
template <typename T>
struct SlotParts {
  static constexpr int kVectors = [] {  // of a part
    int vectors = WgmmaTiles<T>::kBytes / (16 * T::kThreads);
    while (Partials<T>::kVectors % vectors != 0) --vectors;
    return vectors;
  }();
  static constexpr int kCount = Partials<T>::kVectors / kVectors;
  static constexpr std::uint32_t kBytes = 16 * T::kThreads * kVectors;

  /// At the end of the stage: in front may be rows of A that were cleared once and must stay so.
  static __device__ __forceinline__ float4* place(WgmmaTiles<T>& stage) {
    return reinterpret_cast<float4*>(&stage) + (WgmmaTiles<T>::kBytes - kBytes) / 16;
  }
};

/// Waits for the sums of a slot and starts their copies into the ring. The producer's thread calls it.
template <typename T, int kStages>
__device__ __forceinline__ void fetch_sums(Ring<T, kStages>& ring, PipelineState<kStages>& fill,
                                           const Partials<T>& partials, int slot) {
  using Parts = SlotParts<T>;
  for (int warpgroup = 0; warpgroup < T::kWarpgroups; ++warpgroup) partials.wait(slot, warpgroup);
  for (int part = 0; part < Parts::kCount; ++part) {
    ring.producer_acquire(fill, part);
    ptx::mbarrier_arrive_expect_tx(&ring.full[fill.stage], Parts::kBytes);
    ptx::cp_async_bulk(Parts::place(ring.stage[fill.stage]),
                       partials.vectors_of(slot, part * Parts::kVectors), Parts::kBytes,
                       &ring.full[fill.stage]);
    fill.advance();
  }
}

/// Adds the sums of a slot that was fetched. A warpgroup calls it; release(): it has read the stage. Uses
/// named barrier 1 + (number of the warpgroup in the CTA).
template <typename T, int kStages, typename Release>
__device__ __forceinline__ void add_fetched(WarpgroupTile<T>& tile, int warpgroup, Ring<T, kStages>& ring,
                                            PipelineState<kStages>& read, Release release) {
  using Parts = SlotParts<T>;
#pragma unroll
  for (int part = 0; part < Parts::kCount; ++part) {
    ring.consumer_wait(read, part);
    const float4* const vectors = Parts::place(ring.stage[read.stage]) + warpgroup * 128 + threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < Parts::kVectors; ++i) {
      Partials<T>::add(tile, part * Parts::kVectors + i, ptx::ld_shared(vectors + T::kThreads * i));
    }
    ptx::bar_sync(1 + threadIdx.x / 128, 128);  // one thread speaks for the warpgroup
    release();
    read.advance();
  }
}

/// What the host decides.
struct Plan {
  Decomposition decomposition;
  GroupedRaster raster;
  int a_rows;  // of A that a stage gets: the tile's, or with few rows all of A's, rounded up to 8
};

template <typename T, int kStages, int kTeams>
struct Shared {
  Ring<T, kStages> ring;
  StoreBuffers d[kTeams * T::kWarpgroups];
  OrderedBarrierStorage<kTeams> order;
  Posts posts;
};

/// load_tiles for few rows: a_rows of A; and a B that is read once, so the L2 lets it go first.
template <typename T>
__device__ __forceinline__ void load_streamed(WgmmaTiles<T>& tiles, std::uint64_t* full,
                                              const ptx::TensorMap* a_map, const ptx::TensorMap* b_map,
                                              int tile_row, int tile_column, int k0, int a_rows,
                                              std::uint64_t policy) {
  ptx::mbarrier_arrive_expect_tx(full, static_cast<std::uint32_t>(2 * (a_rows + T::kN) * T::kK));
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    const int k = k0 + panel * T::kPanelK;
    ptx::cp_async_bulk_tensor_2d_cache_hint(tiles.b[panel], b_map, k, tile_column, full, policy);
    ptx::cp_async_bulk_tensor_2d(tiles.a[panel], a_map, k, tile_row, full);
  }
}

/// Zeroes the rows of A that no copy writes. All threads of warpgroup 0, the only one that reads them, call
/// it. Uses named barrier 1.
template <typename T, int kStages>
__device__ __forceinline__ void clear_unused_rows(Ring<T, kStages>& ring, int a_rows) {
  const int vectors = (T::kM - a_rows) * T::kPanelK / 8;
  for (auto& stage : ring.stage) {
    for (auto& panel : stage.a) {
      for (int i = static_cast<int>(threadIdx.x); i < vectors; i += 128) {
        ptx::st_shared(reinterpret_cast<int4*>(panel[a_rows]) + i, int4{});
      }
    }
  }
  ptx::fence_proxy_async_shared_cta();
  ptx::bar_sync(1, 128);
}

// Lesson: the L2 does not serve several SMs together when rows do not start on its sectors (K an odd multiple
// of 8). There the clusters of step 16 are worth their bond: two CTAs, with tiles below each other, load half
// of B each, for both.

/// The CTAs of a cluster wait for each other; without clusters, the threads of the CTA.
template <typename C>
__device__ __forceinline__ void cluster_sync() {
  if constexpr (C::kCtas > 1) {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  } else {
    __syncthreads();
  }
}

/// Of the tiles that a cluster works on, this CTA's.
template <typename C>
__device__ __forceinline__ TilePosition tile_of(TilePosition position) {
  if constexpr (C::kCtas > 1) position = cluster_tile(position, C());
  return position;
}

/// Three warpgroups, with 128 sums and 160 registers a thread, have none left for adding others' sums.
template <typename T>
inline constexpr bool kPassesSums = T::kWarpgroups < 3;

template <typename T, int kStages, int kTeams, typename C, bool kStreamed>
__global__ void __launch_bounds__(Roles<T, kTeams * T::kWarpgroups>::kThreads, 1)
    peak_kernel(Plan plan, Pace pace, void* workspace, const __grid_constant__ ptx::TensorMap a_map,
                const __grid_constant__ ptx::TensorMap b_map, const __grid_constant__ ptx::TensorMap d_map) {
  using R = Roles<T, kTeams * T::kWarpgroups>;
  static_assert(!kStreamed || SlotParts<T>::kBytes <= 2 * T::kN * T::kK, "sums leave A's cleared rows alone");
  auto& shared = ptx::dynamic_shared<Shared<T, kStages, kTeams>>();
  auto& ring = shared.ring;
  const int warp = warp_index();
  constexpr bool kClusters = C::kCtas > 1;
  constexpr bool kPasses = kPassesSums<T> && !kClusters;

  if (threadIdx.x == 0) {
    ring.init(T::kWarpgroups * C::kPeers);  // one team reads a stage, and those of the peers
    shared.order.init(4 * T::kWarpgroups);
    shared.posts.init(4 * T::kWarpgroups);
    ptx::fence_mbarrier_init_release_cluster();
  }
  if (threadIdx.x == 32 * R::kProducerWarp) {
    ptx::prefetch_tensormap(&a_map);
    ptx::prefetch_tensormap(&b_map);
    ptx::prefetch_tensormap(&d_map);
  }
  cluster_sync<C>();  // nobody signals a barrier that is not initialised

  if (warp >= R::kProducerWarp) {
    ptx::setmaxnreg_dec<R::kProducerRegisters>();
    if (warp == R::kProducerWarp && ptx::elect_sync()) {
      const int worker = static_cast<int>(blockIdx.x) / C::kCtas;
      const std::uint64_t policy = ptx::createpolicy_fractional_l2_evict_first();
      TileScheduler work(plan.decomposition, worker);
      InStep in_step(pace);
      PipelineState<kPosts> post{0, 1};
      PipelineState<kStages> fill{0, 1};
      for (WorkTile piece; work.next(piece);) {
        const TilePosition tile = tile_of<C>(plan.raster.at(piece.tile));
        SlotRange rest;
        if (piece.slot < 0) rest = peers_of(plan.decomposition, piece, worker);
        const int row = tile.m * T::kM;
        const int column = tile.n * T::kN;
        // Sums in the ring, in front of the other team's k-tiles, would hold that team up: there the
        // consumers load them by themselves.
        const bool fetches = kTeams == 1 || work.done();
        const Multiply first{piece.count(), 2 * fill.stage + static_cast<int>(fill.phase ^ 1), piece.slot,
                             fetches ? rest.count() : 0};
        shared.posts.post(post, first, {rest.first, rest.count() - first.fetched}, {row, column});
        for (int i = 0; i < piece.count(); ++i) {
          in_step.before_k_tile();
          ring.producer_acquire(fill, i);
          const int k = piece.k_tile(i) * T::kK;
          if constexpr (kStreamed) {
            load_streamed<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, row, column, k,
                             plan.a_rows, policy);
          } else if constexpr (kClusters) {
            load_shares<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, row, column, k,
                           C());
          } else {
            load_tiles<T>(ring.stage[fill.stage], &ring.full[fill.stage], &a_map, &b_map, row, column, k);
          }
          fill.advance();
        }
        for (int i = 0; kPasses && i < first.fetched; ++i) {
          fetch_sums(ring, fill, Partials<T>(workspace, plan.decomposition.slots()), rest.first + i);
        }
      }
      in_step.leave();
      for (int team = 0; team < kTeams; ++team) shared.posts.post(post, {}, {}, {});
    }
  } else {
    ptx::setmaxnreg_inc<R::kConsumerRegisters>();
    const int team = warp / 4 / T::kWarpgroups;
    const int member = warp / 4 % T::kWarpgroups;
    const bool releases = threadIdx.x % 128 == 0;
    static_assert(!kStreamed || kTeams * T::kWarpgroups == 1, "the one consumer warpgroup is number 0");
    // The first copies are on their way.
    if (kStreamed && plan.a_rows < T::kM) clear_unused_rows(ring, plan.a_rows);
    WarpgroupTile<T> warpgroup;
    OrderedBarrier<kTeams> order(shared.order, team);
    PipelineState<kPosts> post{team, 0};
    for (Multiply work; (work = shared.posts.next(post)).k_tiles > 0;) {
      PipelineState<kStages> read{work.at / 2, static_cast<std::uint32_t>(work.at % 2)};
      PipelineState<kStages> release = read;
      const auto release_stage = [&] {
        if constexpr (kClusters) {
          release_to_peers(&ring.empty[release.stage], C());
        } else {
          if (releases) ring.consumer_release(release);
        }
        release.advance();
      };
      order.wait(kMainloop, read.stage, 0);
      for (int i = 0; i < work.k_tiles; ++i) {
        ring.consumer_wait(read, i);
        warpgroup.issue(ring.stage[read.stage], i == 0);
        read.advance();
        warpgroup.template wait<1>();
        if (i > 0) release_stage();
      }
      order.arrive(kMainloop);
      warpgroup.template wait<0>();
      release_stage();
      for (int i = 0; kPasses && i < work.fetched; ++i) {
        add_fetched(warpgroup, member, ring, read, release_stage);
      }
      order.wait(kEpilogue, release.stage, work.k_tiles - 1);
      if (kPasses && work.leave >= 0) {
        const Partials<T> partials(workspace, plan.decomposition.slots());
        shared.posts.take(post, kTeams);
        partials.template store_partials<true>(warpgroup, work.leave, member);
      } else {
        if (kTeams > 1) {
          const Partials<T> partials(workspace, plan.decomposition.slots());
          const Add slots = shared.posts.slots(post);
          for (int i = 0; i < slots.slots; ++i) partials.fixup(warpgroup, slots.first_slot + i, member);
        }
        const Finish finish = shared.posts.take(post, kTeams);
        store_tile<T>(warpgroup, shared.d[warp / 4], &d_map, finish.row, finish.column);
      }
      order.arrive(kEpilogue);
    }
    if (stores_tile()) ptx::cp_async_bulk_wait_group<0>();
  }
  if constexpr (kClusters) {
    __syncwarp();
    cluster_sync<C>();  // nobody leaves while a peer may still send to, or signal, his shared memory
  }
}

/// The number of `kConfigurations` that a variant is, and what it is made of.
template <int kNumber, typename Tiling, int kRingStages, int kConsumerTeams, typename C = Cluster<1, 1>,
          bool kStreamsB = false>
struct Configured {
  using T = Tiling;
  static constexpr Configuration kConfiguration = kConfigurations[kNumber];
  static constexpr auto* kKernel = peak_kernel<T, kRingStages, kConsumerTeams, C, kStreamsB>;
  static_assert(kConfiguration.tile.m == T::kM && kConfiguration.tile.n == T::kN &&
                    kConfiguration.tile.k == T::kK && kConfiguration.teams == kConsumerTeams &&
                    kConfiguration.cluster == C::kM && C::kN == 1,
                "the model speaks of what is built");
  static_assert(!kConfiguration.passes_sums() || kPassesSums<T>, "no plan has sums that nobody passes on");

  static ptx::LaunchShape launch_shape(const Shape&) {
    ptx::LaunchShape launch{.block = {Roles<T, kConsumerTeams * T::kWarpgroups>::kThreads},
                            .cluster = {C::kCtas},
                            .shared_bytes = sizeof(Shared<T, kRingStages, kConsumerTeams>)};
    launch.grid.x = ptx::resident_ctas(ptx::kernel_handle(kKernel), launch);
    return launch;
  }
  static int ctas() { return static_cast<int>(launch_shape({}).grid.x); }
  static Decomposition decomposition(const Shape& shape) {
    return predict(kConfiguration, shape, ctas()).decomposition;
  }
  static std::size_t slot_bytes(const Shape& shape) {
    return static_cast<std::size_t>(decomposition(shape).slots()) * Partials<T>::kBytesPerSlot;
  }
  static std::int64_t workspace_bytes(const Shape& shape) {
    const std::size_t counters = kConfiguration.period > 0 ? 2 * sizeof(std::uint32_t) : 0;
    return static_cast<std::int64_t>(slot_bytes(shape) + counters);
  }
  static double busiest_tiles(const Shape& shape) {
    return busiest_k_tiles(decomposition(shape)) / ceil_div(shape.k, T::kK);
  }
  static Launcher prepare(const Gemm& gemm) {
    const auto [m, n, k] = gemm.shape;
    const Plan plan{.decomposition = decomposition(gemm.shape),
                    .raster = {cluster_grid<T, C>(gemm.shape), band_of(kConfiguration, gemm.shape)},
                    .a_rows = kStreamsB ? std::min(T::kM, ceil_div(m, 8) * 8) : T::kM};
    auto launch = launch_shape(gemm.shape);
    launch.co_resident = workspace_bytes(gemm.shape) > 0;  // somebody waits for somebody
    const Pace pace{nullptr, kConfiguration.period,
                    kConfiguration.period == 0 ? 0 : meetings(plan.decomposition, kConfiguration.period)};
    // 256 bytes, where a row starts on a line.
    const auto promotion = k % 64 == 0 ? ptx::L2Promotion::k256B : ptx::L2Promotion::k128B;
    return [plan, pace, launch, counters = slot_bytes(gemm.shape),
            a_map = operand_map<T>(gemm.a, m, k, plan.a_rows, promotion),
            b_map = operand_map<T>(gemm.b, n, k, T::kN / C::kM, promotion), d_map = store_map(gemm.d, m, n),
            workspace = std::make_shared<ptx::Workspace>(workspace_bytes(gemm.shape))](ptx::Stream stream) {
      Pace here = pace;
      void* const memory = workspace->of(stream);
      if (pace.period > 0)
        here.counters = reinterpret_cast<std::uint32_t*>(static_cast<char*>(memory) + counters);
      ptx::launch(kKernel, launch, stream, plan, here, memory, a_map, b_map, d_map);
    };
  }
  static Variant variant(const char* summary) {
    return {.name = kConfiguration.name,
            .summary = summary,
            .tile = kConfiguration.tile,
            .stages = kRingStages,
            .traffic = wgmma_tile_traffic<T>(C::kM, C::kN),
            .kernel = ptx::kernel_handle(kKernel),
            .launch_shape = launch_shape,
            .prepare = prepare,
            .workspace_bytes = workspace_bytes,
            .busiest_tiles = busiest_tiles};
  }
};

using Tile128x256 = WgmmaTiling<128, 256, 64, 2>;
using Tile192x256 = WgmmaTiling<192, 256, 64, 3>;
using Tile128x192 = WgmmaTiling<128, 192, 64, 1>;

/// In the order of kConfigurations.
inline const std::vector<Variant>& configurations() {
  static const std::vector<Variant> all{
      Configured<number_of("128x256"), Tile128x256, 4, 1>::variant("two warpgroups share a tile"),
      Configured<number_of("128x256_in_step"), Tile128x256, 4, 1>::variant(
          "the same, and all CTAs stay at the same k"),
      Configured<number_of("192x256_in_step"), Tile192x256, 3, 1>::variant(
          "three warpgroups share a larger one, at the same k"),
      Configured<number_of("128x192_ping_pong"), Tile128x192, 4, 2>::variant("two teams on alternate tiles"),
      Configured<number_of("128x192_ping_pong_in_step"), Tile128x192, 4, 2>::variant(
          "the same, and all CTAs stay at the same k"),
      Configured<number_of("128x128_ping_pong"), WgmmaTiling<128, 128, 64, 1>, 6, 2>::variant(
          "two teams, smaller tiles"),
      Configured<number_of("64x128"), WgmmaTiling<64, 128, 64, 1>, 8, 1, Cluster<1, 1>, true>::variant(
          "few rows: B streams through"),
      Configured<number_of("64x64x128"), WgmmaTiling<64, 64, 128, 1>, 6, 1, Cluster<1, 1>, true>::variant(
          "fewer rows: narrow, deep tiles"),
      Configured<number_of("128x256_2x1"), Tile128x256, 4, 1, Cluster<2, 1>>::variant(
          "two CTAs share B: for rows that do not start on a sector")};
  return all;
}

inline int ctas() {
  return static_cast<int>(configurations().front().launch_shape({}).grid.x);
}

inline const Variant& chosen(const Shape& shape) {
  return configurations().at(static_cast<std::size_t>(choose(shape, ctas())));
}

/// The configurations, and before them one that stands for the one that is predicted to be fastest.
inline std::vector<Variant> variants() {
  std::vector<Variant> all = configurations();
  Variant by_shape = all.front();
  by_shape.name = "auto";
  by_shape.summary = "the one below that suits the shape";
  by_shape.launch_shape = [](const Shape& shape) { return chosen(shape).launch_shape(shape); };
  by_shape.prepare = [](const Gemm& gemm) { return chosen(gemm.shape).prepare(gemm); };
  by_shape.workspace_bytes = [](const Shape& shape) { return chosen(shape).workspace_bytes(shape); };
  by_shape.busiest_tiles = [](const Shape& shape) { return chosen(shape).busiest_tiles(shape); };
  by_shape.choose = [](const Shape& shape) { return Choice{chosen(shape).name, explain(shape, ctas())}; };
  all.insert(all.begin(), by_shape);
  return all;
}

inline const Step kStep{.name = "22_peak",
                        .title = "everything together, and the configuration that suits the shape",
                        .unit = MathUnit::kWgmma,
                        .architecture = Architecture::kSm90a,
                        .contract = {.n_multiple = 8, .k_multiple = 8},
                        .variants = variants()};

}  // namespace gemm::step_22
