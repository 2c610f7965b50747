// What reports say of what is missing: whose copy or store has the same destination, which bound, which
// arrival, which lanes, which word nobody sets.
#include <memory>
#include <utility>

#include "emulator/async/async_memory.h"
#include "emulator/hopper_test.h"
#include "emulator/report/causes/groups.h"
#include "emulator/report/causes/tile_owners.h"
#include "harness/backend/outside_stores.h"
#include "ptx/atomic.cuh"

namespace what_is_missing_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;

// ---- Copies

struct alignas(1024) Tiles {
  bf16 tile[64][64];
  std::uint64_t full;
};

/// Each CTA of a cluster of two loads half a tile into both; or the same half, or by another mask.
__global__ void shares(ptx::TensorMap map, int second_half, unsigned mask) {
  auto& shared = ptx::dynamic_shared<Tiles>();
  const auto rank = static_cast<int>(ptx::cluster_ctarank());
  make_barrier(&shared.full);
  cluster_sync();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full, 64 * 64 * 2);
    ptx::cp_async_bulk_tensor_2d_multicast(shared.tile[rank * second_half], &map, 0, rank * 32, &shared.full,
                                           static_cast<std::uint16_t>(mask));
    wait(&shared.full, 0);
  }
  cluster_sync();
}

/// CTA 0 loads a tile into both CTAs of its cluster. Each expects the bytes of its own, or the first alone.
__global__ void one_loads_for_both(ptx::TensorMap map, bool both_expect) {
  auto& shared = ptx::dynamic_shared<Tiles>();
  const bool first = ptx::cluster_ctarank() == 0;
  make_barrier(&shared.full);
  cluster_sync();
  if (threadIdx.x == 0) {
    if (first || both_expect) ptx::mbarrier_arrive_expect_tx(&shared.full, 64 * 64 * 2);
    if (first) ptx::cp_async_bulk_tensor_2d_multicast(shared.tile, &map, 0, 0, &shared.full, 0x3);
    wait(&shared.full, 0);
  }
  cluster_sync();
}

struct alignas(1024) TwoTiles {
  bf16 tile[128][64];
  std::uint64_t full[1];
  std::uint64_t empty[1];
  std::uint64_t late;
};

/// Two boxes of 64 rows, the second one to this row of shared memory.
__global__ void two_boxes(ptx::TensorMap map, int second) {
  auto& shared = ptx::dynamic_shared<TwoTiles>();
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&shared.full[0], 1);
  ptx::fence_mbarrier_init_release_cluster();
  ptx::mbarrier_arrive_expect_tx(&shared.full[0], 2 * 64 * 64 * 2);
  ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, 0, &shared.full[0]);
  ptx::cp_async_bulk_tensor_2d(shared.tile[second], &map, 0, 64, &shared.full[0]);
  wait(&shared.full[0], 0);
}

/// One box, at this row of the matrix.
__global__ void one_box(ptx::TensorMap map, int row) {
  auto& shared = ptx::dynamic_shared<TwoTiles>();
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&shared.full[0], 1);
  ptx::fence_mbarrier_init_release_cluster();
  ptx::mbarrier_arrive_expect_tx(&shared.full[0], 64 * 64 * 2);
  ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, row, &shared.full[0]);
  wait(&shared.full[0], 0);
}

/// A row of 64, this one.
__global__ void one_row(ptx::TensorMap map, int row) {
  auto& shared = ptx::dynamic_shared<TwoTiles>();
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&shared.full[0], 1);
  ptx::fence_mbarrier_init_release_cluster();
  ptx::mbarrier_arrive_expect_tx(&shared.full[0], 64 * 2);
  ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, row, &shared.full[0]);
  wait(&shared.full[0], 0);
}

/// A lane of each of the first `warps` warps loads the tile: `meant` of them are meant to.
__global__ void warps_load(ptx::TensorMap map, unsigned warps, unsigned meant) {
  auto& shared = ptx::dynamic_shared<TwoTiles>();
  make_barrier(&shared.full[0], meant);
  __syncthreads();
  if (threadIdx.x / 32 < warps && threadIdx.x % 32 == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full[0], 64 * 64 * 2);
    ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, 0, &shared.full[0]);
  }
  wait(&shared.full[0], 0);
}

/// Clusters of two CTAs, one above the other, take tiles of 64 x 32 of a D of 192 x 64 in turn.
__global__ void takes_tiles(bf16* d, int step) {
  const int rank = static_cast<int>(blockIdx.x) % 2;
  for (int tile = static_cast<int>(blockIdx.x) / 2; tile < 4; tile += step) {
    const int row = (tile % 2 * 2 + rank) * 64;
    if (row < 192) ptx::st_global(d + row * 64 + tile / 2 * 32, gemm::to_bf16(1));
  }
}

/// Warp 0 loads two tiles into one stage, which three warps release. `late`: the last one waits for the first
/// tile when the second one is there.
__global__ void three_readers(ptx::TensorMap map, unsigned count, bool late) {
  auto& shared = ptx::dynamic_shared<TwoTiles>();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&shared.full[0], 1);
    ptx::mbarrier_init(&shared.empty[0], count);
    ptx::mbarrier_init(&shared.late, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  if (threadIdx.x == 0) {
    for (std::uint32_t i = 0; i < 2; ++i) {
      if (i > 0) wait(&shared.empty[0], 0);
      ptx::mbarrier_arrive_expect_tx(&shared.full[0], 64 * 64 * 2);
      ptx::cp_async_bulk_tensor_2d(shared.tile, &map, 0, 0, &shared.full[0]);
    }
    wait(&shared.full[0], 1);
    ptx::mbarrier_arrive(&shared.late);
    return;
  }
  if (late && threadIdx.x / 32 == 3) wait(&shared.late, 0);
  for (std::uint32_t i = 0; i < 2; ++i) {
    wait(&shared.full[0], i);
    ptx::mbarrier_arrive(&shared.empty[0]);
  }
}

struct alignas(1024) Tile {
  bf16 d[64][64];
};

/// CTA 0 stores rows 0 to 63 of D with one box, CTA 1 an element of row `row` with a thread.
__global__ void two_owners(ptx::TensorMap d_map, bf16* d, int row) {
  auto& shared = ptx::dynamic_shared<Tile>();
  if (blockIdx.x == 1) {
    if (threadIdx.x == 0) ptx::st_global(d + row * 64 + 5, gemm::to_bf16(1));
    return;
  }
  fill_tile(shared.d);
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_tensor_2d_store(&d_map, 0, 0, shared.d);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

__global__ void stores_at(ptx::TensorMap d_map, int column) {
  auto& shared = ptx::dynamic_shared<Tile>();
  fill_tile(shared.d);
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_tensor_2d_store(&d_map, column, 0, shared.d);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

/// The last of three tiles goes to a map of whole tiles, of which there are `tiles`.
__global__ void stores_tile(ptx::TensorMap tiles) {
  auto& shared = ptx::dynamic_shared<Tile>();
  fill_tile(shared.d);
  if (threadIdx.x != 0) return;
  ptx::cp_async_bulk_tensor_3d_store(&tiles, 0, 0, 2, shared.d);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

// ---- Bounds

__global__ void reads_at(const bf16* vector, int index, bf16* out) {
  ptx::st_global(out, ptx::ld_global(vector + index));
}

// ---- Shared memory

/// Each warpgroup writes its own part of a table, or the first.
__global__ void own_parts(int stride) {
  auto& shared = ptx::dynamic_shared<Tile>();
  const auto thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  ptx::st_shared(&shared.d[0][0] + (thread / 128 * stride + thread % 128), gemm::to_bf16(1));
}

// ---- Barriers

struct Entries {
  std::uint64_t sent[2];
};

/// Thread 64 sends an entry for each warp of two, or one entry fewer.
__global__ void sends(int entries) {
  auto& shared = ptx::dynamic_shared<Entries>();
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : shared.sent) ptx::mbarrier_init(&barrier, 1);
  }
  __syncthreads();
  if (threadIdx.x == 64) {
    for (int i = 0; i < entries; ++i) ptx::mbarrier_arrive(&shared.sent[i]);
  }
  if (threadIdx.x < 64) wait(&shared.sent[threadIdx.x / 32], 0);
}

/// One thread arrives at a barrier of `count`, and waits for it.
__global__ void arrives_alone(unsigned count) {
  auto& shared = ptx::dynamic_shared<Entries>();
  if (threadIdx.x != 0) return;
  ptx::mbarrier_init(&shared.sent[0], count);
  ptx::mbarrier_arrive(&shared.sent[0]);
  wait(&shared.sent[0], 0);
}

__global__ void lanes_leave(int* out, unsigned lanes) {
  if (threadIdx.x >= lanes) return;
  ptx::st_global(out + threadIdx.x, static_cast<int>(ptx::elect_sync()));
}

/// Warp 1 waits for warp 0, whose lanes from `lanes` on return before an instruction of the whole warp.
__global__ void lanes_leave_others_waiting(unsigned lanes) {
  auto& shared = ptx::dynamic_shared<Entries>();
  if (threadIdx.x == 0) ptx::mbarrier_init(&shared.sent[0], 1);
  __syncthreads();
  if (threadIdx.x == 32) wait(&shared.sent[0], 0);
  if (threadIdx.x >= lanes) return;
  static_cast<void>(ptx::elect_sync());
  if (threadIdx.x == 0) ptx::mbarrier_arrive(&shared.sent[0]);
}

// ---- Words in global memory

/// Thread 0 sets a word, thread 32 waits for this one or for the next.
__global__ void waits_for_word(std::uint32_t* flags, int index) {
  if (threadIdx.x == 0) ptx::st_release_gpu(&flags[0], 1u);
  if (threadIdx.x == 32) {
    while (ptx::ld_acquire_gpu(&flags[index]) == 0) {
    }
  }
}

/// Thread 0 adds to a counter that thread 32 wants to be 6.
__global__ void waits_for_count(std::uint32_t* counter, std::uint32_t add) {
  if (threadIdx.x == 0) ptx::atom_add_acq_rel_gpu(&counter[0], add);
  if (threadIdx.x == 32) {
    while (ptx::ld_acquire_gpu(&counter[0]) != 6) {
    }
  }
}

}  // namespace

TEST_CASE("two CTAs whose copies have one destination: both masks, and the CTA that gets both") {
  const DeviceArray<bf16> a(std::vector<bf16>(64 * 64), "A");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 64, 64, 32, 64, Swizzle::k128B));
  const ptx::LaunchShape two{.grid = {2}, .block = {32}, .cluster = {2}, .shared_bytes = sizeof(Tiles)};
  CHECK_PASSES(run(shares, two, map, 32, 0x3));
  CHECK_BREAKS_ONE_OF((Rules{"load-overwrites", "load-not-waited"}), run(shares, two, map, 0, 0x3));
  const auto same = [&] { return run(shares, two, map, 0, 0x3); };
  CHECK(reports_that_say("load-overwrites", "a separate destination for each copy of phase 0 of", same) > 0);
  CHECK(reports_that_say("load-not-waited", "is set in 0x3 and in 0x3", same) > 0);
}

TEST_CASE("multicast-mask: the bits that name no CTA, and which do") {
  const DeviceArray<bf16> a(std::vector<bf16>(64 * 64), "A");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 64, 64, 32, 64, Swizzle::k128B));
  const ptx::LaunchShape two{.grid = {2}, .block = {32}, .cluster = {2}, .shared_bytes = sizeof(Tiles)};
  CHECK(
      reports_that_say("multicast-mask",
                       "a CTA for bit 2: the cluster's ranks are 0 to 1, and the mask for all of them is 0x3",
                       [&] { return run(shares, two, map, 32, 0x5); }) > 50);
}

TEST_CASE("store-not-waited: a box of one CTA and a thread of another one store the same row of D") {
  DeviceArray<bf16> d(std::vector<bf16>(128 * 64), "D");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(d.get(), 128, 64, 64, 64, Swizzle::k128B));
  const ptx::LaunchShape two{.grid = {2}, .block = {128}, .shared_bytes = sizeof(Tile)};
  CHECK_PASSES(run(two_owners, two, map, d.get(), 64));
  emulator::Options options;
  options.os_threads = 1;  // CTA 0 comes first
  const emulator::ScopedOptions scope(options);
  check_report(
      run(two_owners, two, map, d.get(), 40), "store-not-waited",
      {"both store this element. A box that extends past", "box of 64 x 64 at (0, 0) of D, so rows 0 to 63",
       "each element of D must be stored by only one CTA"});
}

TEST_CASE("store-not-waited: the groups of a row that two CTAs store, and the one that stores past its end") {
  DeviceArray<bf16> d(std::vector<bf16>(128 * 64), "D");
  const DeviceArray<int> counts(std::vector<int>{48, 64}, "counts");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(d.get(), 128, 64, 64, 64, Swizzle::k128B));
  const ptx::LaunchShape two{.grid = {2}, .block = {128}, .shared_bytes = sizeof(Tile)};
  emulator::Options options = problem(64, 64);
  options.tile_m = 64;
  options.tile_n = 64;
  options.os_threads = 1;  // CTA 0 comes first
  const emulator::ScopedOptions scope(options);
  const auto report_with = [&](const std::vector<gemm::GroupRows>& groups, int capacity, const int* of) {
    emulator::note_groups(groups, capacity, of);
    const std::string report = run(two_owners, two, map, d.get(), 40).report;
    emulator::note_groups({}, 0, nullptr);
    return report;
  };
  const std::string box = report_with({{0, 40}, {40, 90}}, 0, nullptr);
  check_text(box,
             {"row 40 belongs to group 1 (rows 40 to 89). CTA (0,0,0) stores a box of rows 0 to 63 for "
              "group 0 (rows 0 to 39), in its tile of rows 0 to 63",
              "missing  an end of that store at row 39, the last row of group 0: 24 of its 64 rows lie"});
  // Groups of a capacity, the first of which has a count that is higher.
  check_text(report_with({{0, 32}, {32, 64}}, 32, counts.get()),
             {"group 0 has the count 48 on the device, and room for 32 rows, 0 to 31"});
  CHECK(contains(report_with({{0, 128}}, 0, nullptr), "both store this element. A box that extends past"));
}

TEST_CASE("global-out-of-bounds: the column of D, the workspace that is too small, the owner that is gone") {
  const DeviceArray<bf16> d(std::vector<bf16>(30 * 40), "D");
  const DeviceArray<bf16> out(1, "out");
  const emulator::ScopedOptions scope(problem(40, 48));
  const DeviceArray<bf16> bias(std::vector<bf16>(40), "bias");
  CHECK(run(reads_at, one_cta(1), bias.get(), 39, out.get()).rule == "passed");
  check_report(
      run(reads_at, one_cta(1), bias.get(), 42, out.get()), "global-out-of-bounds",
      {"each column of D, and D has 40: this is the entry for column 42", "a tile extends past column 39"});
  const DeviceArray<bf16> rows(std::vector<bf16>(30), "bias");
  CHECK(contains(run(reads_at, one_cta(1), rows.get(), 31, out.get()).report,
                 "each row of D, and D has 30: this is the entry for row 31"));
  const DeviceArray<bf16> workspace(std::vector<bf16>(64), "workspace");
  CHECK(contains(run(reads_at, one_cta(1), workspace.get(), 66, out.get()).report,
                 "6 bytes: the step's plan requested 128 (workspace_bytes)"));
  const DeviceArray<bf16> table(std::vector<bf16>(64), "table");
  CHECK(run(reads_at, one_cta(1), table.get(), 63, out.get()).rule == "passed");
  check_text(
      run(reads_at, one_cta(1), table.get(), 66, out.get()).report,
      {"table has 64 entries of 2 bytes, and this is the entry with index 66", "index 63 is the last one"});
  auto freed = std::make_unique<DeviceArray<bf16>>(std::vector<bf16>(64), "table");
  const bf16* const pointer = freed->get();
  freed.reset();
  check_text(run(reads_at, one_cta(1), pointer, 4, out.get()).report,
             {"an owner that lives until the kernel has run"}, {"element"});
}

TEST_CASE("shared-race: two warpgroups that write the same bytes at one place have none of their own") {
  const int bytes = sizeof(Tile);
  const auto once = [&](int stride) { return run(own_parts, one_cta(256, bytes), stride); };
  CHECK_SAYS("shared-race", "separate bytes for each warpgroup: warpgroups ", once(0));
  CHECK_PASSES(once(128));
}

TEST_CASE("deadlock: who arrives at such barriers and has returned, or the count that would fit") {
  CHECK_PASSES(run(sends, one_cta(96, sizeof(Entries)), 2));
  CHECK_BREAKS("deadlock", run(sends, one_cta(96, sizeof(Entries)), 1));
  CHECK(reports_that_say(
            "deadlock",
            "The threads that arrive at sent[] have moved on: thread (64,0,0) (warp 2, lane 0) of CTA "
            "(0,0,0) has returned",
            [] { return run(sends, one_cta(96, sizeof(Entries)), 1); }) > 50);
  check_report(run(sends, one_cta(96, sizeof(Entries)), 0), "deadlock",
               {"sent[0] (shared + 0x0), or another of sent[] (waited for by threads 0-31 of"});
  CHECK_PASSES(run(arrives_alone, one_cta(1, sizeof(Entries)), 1u));
  CHECK(reports_that_say("deadlock", "A count of 1 would match",
                         [] { return run(arrives_alone, one_cta(1, sizeof(Entries)), 2u); }) > 50);
}

TEST_CASE("deadlock: bytes that came to a CTA that expects none, and a reader that a count leaves out") {
  const DeviceArray<bf16> a(std::vector<bf16>(64 * 64), "A");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 64, 64, 64, 64, Swizzle::k128B));
  const ptx::LaunchShape two{.grid = {2}, .block = {32}, .cluster = {2}, .shared_bytes = sizeof(Tiles)};
  CHECK_PASSES(run(one_loads_for_both, two, map, true));
  CHECK_BREAKS("deadlock", run(one_loads_for_both, two, map, false));
  const auto alone = [&] { return run(one_loads_for_both, two, map, false); };
  CHECK(reports_that_say("deadlock", "mbarrier.arrive.expect_tx of 8192 bytes at mbarrier full", alone) > 50);
  CHECK(reports_that_say("deadlock", ", in CTA (1,0,0), as at ", alone) > 50);
  const ptx::LaunchShape four_warps = one_cta(128, sizeof(TwoTiles));
  CHECK_PASSES(run(three_readers, four_warps, map, 3u, false));
  CHECK_BREAKS("deadlock", run(three_readers, four_warps, map, 2u, true));
  CHECK(reports_that_say("deadlock", "the arrival of warp 3 of CTA (0,0,0) at mbarrier empty[0]",
                         [&] { return run(three_readers, four_warps, map, 2u, true); }) > 50);
  // The count is right, and the last one waits for what comes behind it.
  check_report(run(three_readers, four_warps, map, 3u, true), "deadlock", {}, {"the count there"});
}

TEST_CASE("deadlock: lanes that have returned, where others wait for an mbarrier") {
  const ptx::LaunchShape shape = one_cta(64, sizeof(Entries));
  CHECK_PASSES(run(lanes_leave_others_waiting, shape, 32u));
  CHECK(reports_that_say("deadlock", "lanes 12-31 of warp 0 of CTA (0,0,0): the mask 0xffffffff",
                         [&] { return run(lanes_leave_others_waiting, shape, 12u); }) > 50);
}

TEST_CASE("a box that is larger than the distance of two destinations") {
  const DeviceArray<bf16> a(std::vector<bf16>(128 * 64), "A");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 128, 64, 64, 64, Swizzle::k128B));
  const ptx::LaunchShape one = one_cta(1, sizeof(TwoTiles));
  CHECK_PASSES(run(two_boxes, one, map, 64));
  const auto apart = [&](int rows) { return [&, rows] { return run(two_boxes, one, map, rows); }; };
  const char* const twice = "the box of the tensor map is 2 times too large";
  CHECK(reports_that_say("load-not-waited", twice, apart(32)) +
            reports_that_say("load-overwrites", twice, apart(32)) >
        50);
  CHECK(reports_that_say("load-not-waited", "there is one copy too many", apart(0)) +
            reports_that_say("load-overwrites", "there is one copy too many", apart(0)) >
        50);
}

TEST_CASE("which CTA stored which tile, and a step in CTAs where it is one in clusters") {
  const emulator::ScopedOptions scope(problem(64, 64));
  const ptx::LaunchShape shape{.grid = {4}, .block = {1}, .cluster = {2}};
  const auto owners = [&](int step) {
    const DeviceArray<bf16> d(std::vector<bf16>(192 * 64), "D");
    CHECK(run(takes_tiles, shape, d.get(), step).rule == "passed");
    return emulator::tile_owners();
  };
  check_text(owners(2), {"6 of 6 tiles of D were stored: CTA (0,0,0) stored (0, 0), (0, 1); CTA (1,0,0)"},
             {harness::kStepOfCtas});
  check_text(owners(4),
             {"3 of 6 tiles of D were stored", harness::kStepOfCtas, "advance by 4, the number of CTAs"});
}

TEST_CASE("two warps load the same tile") {
  const DeviceArray<bf16> a(std::vector<bf16>(64 * 64), "A");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 64, 64, 64, 64, Swizzle::k128B));
  const emulator::ScopedOptions scope(problem(64, 64));
  const ptx::LaunchShape shape = one_cta(64, sizeof(TwoTiles));
  CHECK_PASSES(run(warps_load, shape, map, 1u, 1u));
  CHECK_SAYS("load-overwrites",
             "one loading warp instead of two: warps 0 and 1 of CTA (0,0,0) both load the same box for "
             "mbarrier full",
             run(warps_load, shape, map, 2u, 1u));
}

TEST_CASE("notes on tensor maps that cannot be those of their matrix") {
  const DeviceArray<bf16> a(std::vector<bf16>(128 * 64), "A");
  const DeviceArray<bf16> table(std::vector<bf16>(64 * 64), "scales");
  const emulator::ScopedOptions scope(problem(64, 64));
  const ptx::LaunchShape one = one_cta(1, sizeof(TwoTiles));
  emulator::take_outside_loads();
  const auto notes = [&](const ptx::TensorMapSpec& spec, int row) {
    CHECK(run(one_box, one, ptx::make_tensor_map(spec), row).rule == "passed");
    return emulator::take_outside_loads();
  };
  const ptx::TensorMapSpec right = ptx::matrix_spec(a.get(), 128, 64, 64, 64, Swizzle::k128B);
  CHECK(notes(right, 0).empty());
  ptx::TensorMapSpec part = right;  // every other row
  part.extent[1] = 64;
  part.stride_bytes[1] *= 2;
  CHECK(notes(part, 0).empty());
  ptx::TensorMapSpec exchanged = right;
  std::swap(exchanged.extent[0], exchanged.extent[1]);
  check_text(notes(exchanged, 0), {"the map for A has 128 columns and 64 rows, and its rows begin 128 bytes "
                                   "(64 elements) apart: the two extents are exchanged"});
  ptx::TensorMapSpec pitch = right;
  pitch.stride_bytes[1] = 96;
  pitch.extent[1] = 100;
  CHECK(contains(notes(pitch, 0), "which is less than the length of a row, so rows overlap"));
  // A table without its last row.
  ptx::TensorMapSpec floor = ptx::matrix_spec(table.get(), 64, 64, 1, 64, Swizzle::k128B);
  CHECK(run(one_row, one, ptx::make_tensor_map(floor), 63).rule == "passed");
  CHECK(emulator::take_outside_loads().empty());
  floor.extent[1] = 63;
  CHECK(run(one_row, one, ptx::make_tensor_map(floor), 63).rule == "passed");
  check_text(emulator::take_outside_loads(),
             {"the box begins after the last row that the tensor map covers",
              "box of 64 x 1 at (0, 63) of scales, but the map has 63 rows there"});
}

TEST_CASE("notes on tensor maps: rows and K are exchanged, and the pitch is theirs") {
  const DeviceArray<bf16> b(std::vector<bf16>(64 * 256), "B");
  const emulator::ScopedOptions scope(problem(256, 64));
  const ptx::LaunchShape one = one_cta(1, sizeof(TwoTiles));
  emulator::take_outside_loads();
  const auto notes = [&](int rows, int columns, int row) {
    const ptx::TensorMap map =
        ptx::make_tensor_map(ptx::matrix_spec(b.get(), rows, columns, 64, 64, Swizzle::k128B));
    CHECK(run(one_box, one, map, row).rule == "passed");
    return emulator::take_outside_loads();
  };
  CHECK(notes(256, 64, 192).empty());
  check_text(notes(64, 256, 192),
             {"the map for B has the extents {256, 64} and rows 512 bytes apart, which is the MN-major "
              "layout (64 rows of 256 elements)",
              "are those for the K-major layout, with the extents {64, 256} and rows 128 bytes apart"});
}

TEST_CASE("notes on copies outside of their map: loads far away, stores beside the last tile") {
  const DeviceArray<bf16> a(std::vector<bf16>(64 * 64), "A");
  const ptx::TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(a.get(), 64, 64, 64, 64, Swizzle::k128B));
  const emulator::ScopedOptions scope(problem(64, 64));
  const ptx::LaunchShape one = one_cta(1, sizeof(TwoTiles));
  emulator::take_outside_loads();
  CHECK(run(one_box, one, map, 100).rule == "passed");  // the edge of a tile
  CHECK(emulator::take_outside_loads().empty());
  CHECK(run(one_box, one, map, 128).rule == "passed");
  check_text(
      emulator::take_outside_loads(),
      {"1 bulk load delivered only zeros", "box of 64 x 64 at (0, 128) of A, but the map has 64 rows there"});
  CHECK(emulator::take_outside_loads().empty());
  const ptx::LaunchShape tile = one_cta(128, sizeof(Tile));
  emulator::take_outside_stores();
  CHECK(run(stores_at, tile, map, 80).rule == "passed");
  CHECK(emulator::take_outside_stores().empty());
  CHECK(run(stores_at, tile, map, 128).rule == "passed");
  CHECK(contains(emulator::take_outside_stores(), "1 bulk store moved nothing"));
  for (const int whole : {2, 3}) {
    ptx::TensorMapSpec spec = ptx::matrix_spec(a.get(), 64, 64, 64, 64, Swizzle::k128B);
    const DeviceArray<bf16> d(std::vector<bf16>(3 * 64 * 64), "D");
    spec.base = d.get();
    spec.rank = 3;
    spec.extent[2] = static_cast<std::uint64_t>(whole);
    spec.stride_bytes[2] = sizeof(bf16) * 64 * 64;
    spec.box[2] = 1;
    CHECK(run(stores_tile, tile, ptx::make_tensor_map(spec)).rule == "passed");
    const std::string stores = emulator::take_outside_stores();
    INFO(stores);
    CHECK(stores.empty() == (whole == 3));
    CHECK(contains(stores, "the map ends at 2 along dimension 2: it has 2 whole tiles") == (whole == 2));
  }
}

TEST_CASE("warp-divergence: the lanes that the mask names and that have returned") {
  DeviceArray<int> out(32);
  CHECK(run(lanes_leave, one_cta(32), out.get(), 32u).rule == "passed");
  CHECK(reports_that_say("warp-divergence", "lanes 12-31 of warp 0 of CTA (0,0,0): the mask 0xffffffff",
                         [&] { return run(lanes_leave, one_cta(32), out.get(), 12u); }) > 50);
}

TEST_CASE("livelock: how the words beside one that nobody sets are written, and who lowered a counter") {
  const auto words = [](int index) {
    DeviceArray<std::uint32_t> flags(std::vector<std::uint32_t>(4), "flags");
    return run(waits_for_word, one_cta(64), flags.get(), index);
  };
  CHECK(words(0).rule == "passed");
  check_report(words(2), "livelock",
               {"no thread sets flags + 8", "flags + 0 (word -2 from there) by CTA (0,0,0) at ",
                "It lies 2 words after the last word that any thread has set"});
  const auto count = [](std::uint32_t add) {
    DeviceArray<std::uint32_t> counter(std::vector<std::uint32_t>(1, 5u), "counter");
    return run(waits_for_count, one_cta(64), counter.get(), add);
  };
  CHECK(count(1).rule == "passed");
  check_report(count(~0u), "livelock",
               {"which lowered it from 5 by 1 (an addition of 4294967295, which is -1)"});
}

}  // namespace what_is_missing_test
