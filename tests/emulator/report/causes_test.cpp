// What reports say beyond the broken rule: the k-tile, the label of a wait, which two stores these are, what
// is missing.
#include "emulator/hopper_test.h"

namespace causes_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;

struct Labels {
  std::uint64_t full[2];
};

/// Breaks a rule behind a wait that said what it is for, and perhaps one that did not.
__global__ void labelled(bool unlabelled_wait) {
  auto& shared = ptx::dynamic_shared<Labels>();
  for (std::uint64_t& barrier : shared.full) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::mbarrier_arrive(&barrier);
  }
  ptx::mbarrier_wait_parity(&shared.full[0], 0, {"consumer", "full", 0, 3});
  if (unlabelled_wait) wait(&shared.full[1], 0);
  static_cast<void>(ptx::ld_shared(reinterpret_cast<const int*>(&shared) + 100));
}

struct alignas(1024) Stores {
  bf16 d[2][64][64];
};

/// Two warpgroups store the same box of D, or each its own.
__global__ void two_stores(ptx::TensorMap d_map, int distance) {
  auto& shared = ptx::dynamic_shared<Stores>();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int thread = static_cast<int>(threadIdx.x) % 128;
  for (int i = thread; i < 64 * 64; i += 128)
    ptx::st_shared(&shared.d[warpgroup][i / 64][i % 64], gemm::to_bf16(1));
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (thread != 0) return;
  ptx::cp_async_bulk_tensor_2d_store(&d_map, 0, warpgroup * distance, shared.d[warpgroup]);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

/// CTAs store boxes of D so many rows apart.
__global__ void stores_of_ctas(ptx::TensorMap d_map, int distance) {
  auto& shared = ptx::dynamic_shared<Stores>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 64 * 64; i += 128) ptx::st_shared(&shared.d[0][i / 64][i % 64], gemm::to_bf16(1));
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (thread != 0) return;
  ptx::cp_async_bulk_tensor_2d_store(&d_map, 0, static_cast<int>(blockIdx.x) * distance, shared.d[0]);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group<0>();
}

/// Two k-tiles of A pass through one row of shared memory; `barriers`: bit 0 behind the write, bit 1 behind
/// the read.
__global__ void plain_tiles(const float* a, int barriers, float* out) {
  __shared__ float tile[64];
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int k_tile = 0; k_tile < 2; ++k_tile) {
    ptx::st_shared(&tile[thread], ptx::ld_global(a + 64 * k_tile + thread));
    if (barriers & 1) __syncthreads();
    sum += ptx::ld_shared(&tile[63 - thread]);
    if (barriers & 2) __syncthreads();
  }
  ptx::st_global(out + thread, sum);
}

/// Two warpgroups store the rows of a tile of D, `apart` rows apart, as if each had 64.
__global__ void rows_of_warpgroups(bf16* d, int n, int apart) {
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int row = warpgroup * apart + static_cast<int>(threadIdx.x) % 64;
  if (threadIdx.x % 128 < 64) ptx::st_global(d + row * n + 5, gemm::to_bf16(1));
}

struct Rows {
  float value[2][96];
  float behind[64];
};

/// Each warpgroup writes a row of its own, the first `count` threads an element each.
__global__ void writes_rows(int count) {
  auto& shared = ptx::dynamic_shared<Rows>();
  const int thread = static_cast<int>(threadIdx.x) % 128;
  if (thread < count) ptx::st_shared(shared.value[threadIdx.x / 128] + thread, 1.0f);
}

/// Two elements, the second `step` further.
__global__ void two_elements_of(const bf16* matrix, int index, int step, bf16* out) {
  ptx::st_global(out, ptx::ld_global(matrix + index));
  ptx::st_global(out, ptx::ld_global(matrix + index + step));
}

__global__ void element_of(const bf16* matrix, int index, bf16* out) {
  ptx::st_global(out, ptx::ld_global(matrix + index));
}

}  // namespace

TEST_CASE("global-race: two warpgroups that store the same element of D") {
  const DeviceArray<bf16> d(std::vector<bf16>(128 * 40), "D");
  const emulator::ScopedOptions scope(problem(40, 16));
  CHECK(run(rows_of_warpgroups, one_cta(256), d.get(), 40, 64).rule == "passed");
  check_report(run(rows_of_warpgroups, one_cta(256), d.get(), 40, 32), "global-race",
               {", column 5 of D, in tile (0, 0)", "both store this element: their rows in the tile overlap"},
               {"a barrier"});
}

TEST_CASE("shared-race: a warpgroup goes on behind the end of its row") {
  const ptx::LaunchShape shape = one_cta(256, sizeof(Rows));
  CHECK_PASSES(run(writes_rows, shape, 96));
  CHECK_BREAKS("shared-race", run(writes_rows, shape, 128));
  CHECK(schedules_that_say("shared-race",
                           {"a bound: warpgroup 0 writes value[0] at ",
                            "although it has only 384. Those bytes are value[1], which warpgroup 1 writes"},
                           {"warpgroup 1 writes value[0]"},
                           [&] { return run(writes_rows, shape, 128); }) > 10);
}

TEST_CASE("global-out-of-bounds: the row, the column and the k-tile behind a matrix") {
  const DeviceArray<bf16> a(std::vector<bf16>(30 * 48), "A");
  const DeviceArray<bf16> out(1, "out");
  const emulator::ScopedOptions scope(problem(40, 48));
  CHECK(run(element_of, one_cta(1), a.get(), 29 * 48 + 47, out.get()).rule == "passed");
  check_report(run(element_of, one_cta(1), a.get(), 31 * 48 + 20, out.get()), "global-out-of-bounds",
               {"row 31 of A, which has 30 rows; column 20, in k-tile 1",
                "a bound: A has rows 0 to 29, of K = 48 columns"});
  CHECK(run(two_elements_of, one_cta(1), a.get(), 29 * 48 + 8, 32, out.get()).rule == "passed");
  const Outcome along = run(two_elements_of, one_cta(1), a.get(), 29 * 48 + 24, 32, out.get());
  check_text(
      along.report,
      {"row 30 of A, which has 30 rows; column 8, in k-tile 0; or, along row 29, column 56, beyond K = 48",
       "a bound along K: the thread's last load was of row 29, column 24"});
  check_report(run(element_of, one_cta(1), a.get(), -1, out.get()), "global-out-of-bounds", {}, {"element"});
}

TEST_CASE("the label of a wait is forgotten at the next wait that says nothing") {
  const Outcome fresh = run(labelled, one_cta(1, sizeof(Labels)), false);
  check_text(fresh.report, {"after its wait as consumer of k-tile 3, stage 0"});
  check_report(run(labelled, one_cta(1, sizeof(Labels)), true), "shared-out-of-bounds", {}, {"k-tile"});
}

TEST_CASE("store-not-waited: two warpgroups store the same tile") {
  DeviceArray<bf16> d(std::vector<bf16>(128 * 64), "D");
  const auto run_stores = [&](int distance) {
    return run(two_stores, one_cta(256, sizeof(Stores)),
               ptx::make_tensor_map(ptx::matrix_spec(d.get(), 128, 64, 64, 64, Swizzle::k128B)), distance);
  };
  CHECK_PASSES(run_stores(64));
  CHECK_BREAKS("store-not-waited", run_stores(0));
  const std::string same = run_stores(0).report;
  check_text(same, {"box of 64 x 64 at (0, 0) of D", "of CTA (0,0,0) store the same tile of D"});
  CHECK((contains(same, "warpgroup 0 and warpgroup 1") || contains(same, "warpgroup 1 and warpgroup 0")));
  CHECK(contains(run_stores(32).report, "store overlapping tiles of D"));
}

TEST_CASE("store-not-waited: the boxes of two CTAs have rows in common") {
  DeviceArray<bf16> d(std::vector<bf16>(128 * 64), "D");
  ptx::LaunchShape two = one_cta(128, sizeof(Stores));
  two.grid = {2};
  const auto run_stores = [&](int distance) {
    return run(stores_of_ctas, two,
               ptx::make_tensor_map(ptx::matrix_spec(d.get(), 128, 64, 64, 64, Swizzle::k128B)), distance);
  };
  CHECK_PASSES(run_stores(64));
  CHECK_BREAKS("store-not-waited", run_stores(24));
  check_text(run_stores(24).report,
             {"rows 24 to 63 are in both",
              "missing  an end of the upper box at row 23: it reaches 40 rows too far"});
  CHECK_FALSE(contains(run_stores(0).report, "are in both"));
}

TEST_CASE("races of plain tiles name the k-tile and the barrier that is missing, or no k-tile at all") {
  DeviceArray<float> out(64);
  // Of two bytes each, as those of the steps: a row of 256 elements is 128 floats.
  DeviceArray<float> a(std::vector<float>(128, 1.0f), "A");
  emulator::Options options;
  options.k = 256;
  options.k_tile = 128;
  for (int seed = 1; seed <= 20; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    const emulator::ScopedOptions scope(options);
    CHECK(run(plain_tiles, one_cta(64), a.get(), 3, out.get()).rule == "passed");
    const Outcome behind_read = run(plain_tiles, one_cta(64), a.get(), 1, out.get());
    INFO(behind_read.report);
    CHECK(behind_read.rule == "shared-race");
    CHECK((contains(behind_read.report, "the bytes hold k-tile 1") ||
           contains(behind_read.report, "the bytes hold k-tile 0, the write is of k-tile 1")));
    CHECK(contains(behind_read.report, "in the next iteration"));
    const Outcome behind_write = run(plain_tiles, one_cta(64), a.get(), 2, out.get());
    INFO(behind_write.report);
    CHECK((behind_write.rule == "shared-race" || behind_write.rule == "shared-uninitialised"));
    CHECK_FALSE(contains(behind_write.report, "k-tile 1"));
    const Outcome neither = run(plain_tiles, one_cta(64), a.get(), 0, out.get());
    CHECK((neither.rule == "shared-race" || neither.rule == "shared-uninitialised"));
  }
}

}  // namespace causes_test
