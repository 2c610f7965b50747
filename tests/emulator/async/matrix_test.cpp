// ldmatrix and mma.sync.
#include <bit>

#include "emulator/emulator_test.h"
#include "gemm/problem/bf16.h"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma_sync.cuh"

namespace matrix_test {

using namespace emulator_test;

namespace {

struct Tile {
  alignas(16) std::uint16_t rows[33][8];
};

/// Fills 32 rows so that element (row, column) is row * 8 + column; lane i hands in row i ^ flip.
template <int kMatrices, bool kTrans>
__global__ void load(int flip, bool barrier, int offset, std::uint32_t* result) {
  Tile& tile = ptx::dynamic_shared<Tile>();
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int i = 0; i < 8; ++i) {
    ptx::st_shared(&tile.rows[lane][i], static_cast<std::uint16_t>(lane * 8 + i));
  }
  if (barrier) __syncwarp();
  const auto* row = reinterpret_cast<const std::uint8_t*>(tile.rows[lane ^ flip]) + offset;
  std::uint32_t r[kMatrices];
  if constexpr (kTrans) {
    if constexpr (kMatrices == 1) ptx::ldmatrix_x1_trans(r, row);
    if constexpr (kMatrices == 2) ptx::ldmatrix_x2_trans(r, row);
    if constexpr (kMatrices == 4) ptx::ldmatrix_x4_trans(r, row);
  } else {
    if constexpr (kMatrices == 1) ptx::ldmatrix_x1(r, row);
    if constexpr (kMatrices == 2) ptx::ldmatrix_x2(r, row);
    if constexpr (kMatrices == 4) ptx::ldmatrix_x4(r, row);
  }
  for (int i = 0; i < kMatrices; ++i) ptx::st_global(result + lane * kMatrices + i, r[i]);
}

template <int kMatrices, bool kTrans>
void check_load(int flip) {
  DeviceArray<std::uint32_t> result(32 * kMatrices);
  CHECK_PASSES(run(load<kMatrices, kTrans>, one_cta(32, sizeof(Tile)), flip, true, 0, result.get()));
  const std::vector<std::uint32_t> got = result.host();
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < kMatrices; ++matrix) {
      auto element = [&](int row, int column) {
        return static_cast<std::uint32_t>(((matrix * 8 + row) ^ flip) * 8 + column);
      };
      const int g = lane / 4;
      const int t = lane % 4 * 2;
      const std::uint32_t low = kTrans ? element(t, g) : element(g, t);
      const std::uint32_t high = kTrans ? element(t + 1, g) : element(g, t + 1);
      CHECK(got[static_cast<std::size_t>(lane * kMatrices + matrix)] == (high << 16 | low));
    }
  }
}

__global__ void only_some_lanes(int limit, std::uint32_t* result) {
  Tile& tile = ptx::dynamic_shared<Tile>();
  for (int i = 0; i < 8; ++i) ptx::st_shared(&tile.rows[threadIdx.x][i], static_cast<std::uint16_t>(i));
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= limit) return;
  std::uint32_t r[1];
  ptx::ldmatrix_x1(r, tile.rows[threadIdx.x]);
  ptx::st_global(result + threadIdx.x, r[0]);
}

/// Lanes from `limit` on go past the instruction, to a barrier of the CTA.
__global__ void others_go_on(int limit, std::uint32_t* result) {
  Tile& tile = ptx::dynamic_shared<Tile>();
  for (int i = 0; i < 8; ++i) ptx::st_shared(&tile.rows[threadIdx.x][i], static_cast<std::uint16_t>(i));
  __syncthreads();
  std::uint32_t r[1] = {};
  if (static_cast<int>(threadIdx.x) < limit) ptx::ldmatrix_x1(r, tile.rows[threadIdx.x]);
  __syncthreads();
  ptx::st_global(result + threadIdx.x, r[0]);
}

/// The same instruction, but not at the same place: .aligned forbids it.
__global__ void two_places(bool split, std::uint32_t* result) {
  Tile& tile = ptx::dynamic_shared<Tile>();
  for (int i = 0; i < 8; ++i) ptx::st_shared(&tile.rows[threadIdx.x][i], static_cast<std::uint16_t>(i));
  __syncthreads();
  std::uint32_t r[1];
  if (split && threadIdx.x < 16) {
    ptx::ldmatrix_x1(r, tile.rows[threadIdx.x]);
  } else {
    ptx::ldmatrix_x1(r, tile.rows[threadIdx.x]);
  }
  ptx::st_global(result + threadIdx.x, r[0]);
}

/// Rows of the second matrix are never written. x1 does not touch them.
template <int kMatrices>
__global__ void unwritten_rows(std::uint32_t* result) {
  Tile& tile = ptx::dynamic_shared<Tile>();
  if (threadIdx.x < 8) {
    for (int i = 0; i < 8; ++i) ptx::st_shared(&tile.rows[threadIdx.x][i], static_cast<std::uint16_t>(i));
  }
  __syncthreads();
  std::uint32_t r[kMatrices];
  if constexpr (kMatrices == 1) ptx::ldmatrix_x1(r, tile.rows[threadIdx.x]);
  if constexpr (kMatrices == 2) ptx::ldmatrix_x2(r, tile.rows[threadIdx.x]);
  ptx::st_global(result + threadIdx.x, r[0]);
}

/// One warp: d = c + a * b^T with fragments loaded as the PTX ISA lays them out.
__global__ void multiply(const gemm::bf16* a, const gemm::bf16* b, const float* c, float* d, int lanes) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= lanes) return;
  const int g = lane / 4;
  const int t = lane % 4 * 2;
  auto pair = [](const gemm::bf16* matrix, int row, int k) {
    return static_cast<std::uint32_t>(ptx::ld_global(matrix + row * 16 + k + 1).bits) << 16 |
           ptx::ld_global(matrix + row * 16 + k).bits;
  };
  const std::uint32_t a_fragment[4] = {pair(a, g, t), pair(a, g + 8, t), pair(a, g, t + 8),
                                       pair(a, g + 8, t + 8)};
  const std::uint32_t b_fragment[2] = {pair(b, g, t), pair(b, g, t + 8)};
  float sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = ptx::ld_global(c + (g + i / 2 * 8) * 8 + t + i % 2);
  ptx::mma_m16n8k16_bf16(sum, a_fragment, b_fragment);
  for (int i = 0; i < 4; ++i) ptx::st_global(d + (g + i / 2 * 8) * 8 + t + i % 2, sum[i]);
}

}  // namespace

TEST_CASE("ldmatrix spreads rows over the lanes as mma.sync wants them") {
  for (const int flip : {0, 5}) {
    check_load<1, false>(flip);
    check_load<2, false>(flip);
    check_load<4, false>(flip);
    check_load<1, true>(flip);
    check_load<2, true>(flip);
    check_load<4, true>(flip);
  }
}

TEST_CASE("warp-divergence: ldmatrix wants all lanes") {
  DeviceArray<std::uint32_t> result(32);
  CHECK_BREAKS("warp-divergence", run(only_some_lanes, one_cta(32, sizeof(Tile)), 31, result.get()));
  CHECK_PASSES(run(only_some_lanes, one_cta(32, sizeof(Tile)), 32, result.get()));
  CHECK_BREAKS("warp-divergence", run(only_some_lanes, one_cta(31, sizeof(Tile)), 32, result.get()));
}

TEST_CASE("warp-divergence: the lanes that have gone past an aligned instruction") {
  DeviceArray<std::uint32_t> result(32);
  const auto run_until = [&](int limit) {
    return run(others_go_on, one_cta(32, sizeof(Tile)), limit, result.get());
  };
  CHECK_PASSES(run_until(32));
  CHECK_BREAKS("warp-divergence", run_until(20));
  check_report(run_until(20), "warp-divergence",
               {"lanes 20-31 in warp 0 of CTA (0,0,0) at tests/emulator/async/matrix_test.cpp",
                "they have taken another branch and wait at", "(PTX ISA, \"ldmatrix\")"});
}

TEST_CASE("warp-divergence: ldmatrix is executed by all lanes at one place") {
  DeviceArray<std::uint32_t> result(32);
  CHECK_BREAKS("warp-divergence", run(two_places, one_cta(32, sizeof(Tile)), true, result.get()));
  CHECK(contains(run(two_places, one_cta(32, sizeof(Tile)), true, result.get()).report,
                 "it is one instruction for the whole warp"));
  CHECK_PASSES(run(two_places, one_cta(32, sizeof(Tile)), false, result.get()));
}

TEST_CASE("shared-misaligned: ldmatrix wants rows at multiples of 16 bytes") {
  DeviceArray<std::uint32_t> result(128);
  CHECK_BREAKS("shared-misaligned", run(load<4, false>, one_cta(32, sizeof(Tile)), 0, true, 8, result.get()));
  CHECK_BREAKS("shared-misaligned", run(load<1, true>, one_cta(32, sizeof(Tile)), 0, true, 2, result.get()));
}

TEST_CASE("shared-race: ldmatrix reads what other lanes wrote, with no barrier between") {
  DeviceArray<std::uint32_t> result(128);
  CHECK_BREAKS("shared-race", run(load<4, false>, one_cta(32, sizeof(Tile)), 0, false, 0, result.get()));
  CHECK_BREAKS("shared-race", run(load<4, true>, one_cta(32, sizeof(Tile)), 0, false, 0, result.get()));
}

TEST_CASE("shared-uninitialised: ldmatrix reads only the matrices it is asked for") {
  DeviceArray<std::uint32_t> result(32);
  CHECK_PASSES(run(unwritten_rows<1>, one_cta(32, sizeof(Tile)), result.get()));
  CHECK_BREAKS("shared-uninitialised", run(unwritten_rows<2>, one_cta(32, sizeof(Tile)), result.get()));
}

TEST_CASE("mma.sync multiplies bf16 and adds in fp32") {
  std::vector<gemm::bf16> a(16 * 16);
  std::vector<gemm::bf16> b(8 * 16);
  std::vector<float> c(16 * 8);
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = gemm::to_bf16(static_cast<float>(static_cast<int>(i * 37 % 19) - 9));
  for (std::size_t i = 0; i < b.size(); ++i)
    b[i] = gemm::to_bf16(static_cast<float>(static_cast<int>(i * 53 % 17) - 8));
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i) * 0.25f;
  DeviceArray<gemm::bf16> da(a);
  DeviceArray<gemm::bf16> db(b);
  DeviceArray<float> dc(c);
  DeviceArray<float> dd(c.size());
  CHECK_PASSES(run(multiply, one_cta(32), da.get(), db.get(), dc.get(), dd.get(), 32));
  const std::vector<float> d = dd.host();
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      float sum = c[m * 8 + n];
      for (std::size_t k = 0; k < 16; ++k)
        sum += gemm::to_float(a[m * 16 + k]) * gemm::to_float(b[n * 16 + k]);
      CHECK(d[m * 8 + n] == sum);
    }
  }
}

TEST_CASE("warp-divergence: mma.sync wants all lanes") {
  DeviceArray<gemm::bf16> a(std::vector<gemm::bf16>(256));
  DeviceArray<float> c(std::vector<float>(128));
  DeviceArray<float> d(128);
  CHECK_BREAKS("warp-divergence", run(multiply, one_cta(32), a.get(), a.get(), c.get(), d.get(), 24));
}

}  // namespace matrix_test
