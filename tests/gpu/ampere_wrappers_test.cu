// The wrappers that exist from compute capability 8.0 on, each against a model of its own on the host.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "device.h"
#include "gemm/problem/bf16.h"
#include "ptx/convert.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/launch.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/math.cuh"
#include "ptx/memory.cuh"
#include "ptx/mma_sync.cuh"
#include "ptx/named_barrier.cuh"
#include "ptx/shared.cuh"

// Not anonymous: nvcc and the test framework both rely on that name.
namespace ampere_wrappers_test {

namespace ptx = gemm::ptx;

using gpu_test::DeviceArray;
using gpu_test::Random;

constexpr ptx::LaunchShape kOneWarp{.grid = {1}, .block = {32}};

// ---- math ----

__global__ void math_kernel(const float* input, float4* output, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const float x = input[i];
  output[i] = {ptx::tanh_approx_f32(x), ptx::ex2_approx_ftz_f32(x), ptx::rcp_approx_ftz_f32(x),
               ptx::max_nan_f32(x, 0.0f)};
}

TEST_CASE("tanh, ex2 and rcp are as exact as documented, and max keeps NaN") {
  if (gpu_test::skip_without_gpu()) return;
  std::vector<float> values{0.0f, -0.0f, std::bit_cast<float>(0x7fc00000u)};
  for (float size = 1e-6f; size < 90; size *= 1.003f) {
    values.push_back(size);
    values.push_back(-size);
  }
  const int count = static_cast<int>(values.size());
  const DeviceArray<float> input(values);
  const DeviceArray<float4> output(values.size());
  ptx::launch(math_kernel, {.grid = {static_cast<unsigned>(count / 256 + 1)}, .block = {256}}, nullptr,
              input.get(), output.get(), count);
  const auto results = output.read();
  const auto ulps = [](double exact, float got) {
    const double unit = std::nextafter(std::abs(got), INFINITY) - std::abs(got);
    return std::abs(exact - static_cast<double>(got)) / unit;
  };
  CHECK(std::isnan(results[2].w));
  for (std::size_t i = 3; i < values.size(); ++i) {
    const auto x = static_cast<double>(values[i]);
    INFO("x = " << x);
    CHECK(std::abs(static_cast<double>(results[i].x) / std::tanh(x) - 1) <= 0x1p-11);
    CHECK(ulps(std::exp2(x), results[i].y) <= 2.5);
    CHECK(ulps(1 / x, results[i].z) <= 1);
    CHECK(results[i].w == std::max(values[i], 0.0f));
  }
}

__global__ void packed_kernel(const std::uint32_t* input, std::uint32_t* fma, std::uint32_t* lop, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  fma[i] = ptx::fma_rn_bf16x2(input[3 * i], input[3 * i + 1], input[3 * i + 2]);
  lop[i] = ptx::lop3_and_or(input[3 * i], input[3 * i + 1], input[3 * i + 2]);
}

/// To 8 bits of significand, once, ties to even.
std::uint32_t bf16_of(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const int shift = std::max(exponent - 8, -133);  // the smallest subnormal number is 2^-133
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(fraction, exponent - shift)), shift);
  return std::bit_cast<std::uint32_t>(static_cast<float>(rounded)) >> 16;
}

TEST_CASE("fma.rn.bf16x2: one rounding in each half, and lop3: (a & b) | c") {
  if (gpu_test::skip_without_gpu()) return;
  // 2^-70 * 2^-63, and 3 * 2^-70 * 2^-63 + 2^-133: subnormal, and kept. A product that only its sum rounds.
  std::vector<std::uint32_t> input{0x1c801c80, 0x20002000, 0x00000000, 0x1cc01c80, 0x20802000,
                                   0x00010001, 0x3f813f81, 0x3f813f81, 0xbf80bf82};
  Random random(2);
  const auto half = [&random] {  // magnitudes from 2^-7 to 2^7: binary64 adds them exactly
    return (random.next() & 0x807fu) | static_cast<std::uint32_t>(120 + random.below(15)) << 7;
  };
  while (input.size() < 3 * 50'000) input.push_back(half() << 16 | half());
  const int count = static_cast<int>(input.size() / 3);
  const DeviceArray<std::uint32_t> device_input(input);
  const DeviceArray<std::uint32_t> fma(input.size() / 3);
  const DeviceArray<std::uint32_t> lop(input.size() / 3);
  ptx::launch(packed_kernel, {.grid = {static_cast<unsigned>(count / 256 + 1)}, .block = {256}}, nullptr,
              device_input.get(), fma.get(), lop.get(), count);
  const auto sums = fma.read();
  const auto bits = lop.read();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint32_t a = input[3 * i];
    const std::uint32_t b = input[3 * i + 1];
    const std::uint32_t c = input[3 * i + 2];
    const auto of = [](std::uint32_t word) { return static_cast<double>(std::bit_cast<float>(word)); };
    const double low = of(a << 16) * of(b << 16) + of(c << 16);
    const double high = of(a & 0xffff0000u) * of(b & 0xffff0000u) + of(c & 0xffff0000u);
    INFO("operands " << a << ", " << b << ", " << c);
    // A sum that is 0 has the sign of the rounding mode.
    const std::uint32_t expected = (high == 0 ? 0 : bf16_of(high)) << 16 | (low == 0 ? 0 : bf16_of(low));
    REQUIRE(sums[i] == expected);
    REQUIRE(bits[i] == ((a & b) | c));
  }
}

__global__ void packed_fp16_kernel(const std::uint32_t* input, std::uint32_t* fma) {
  const int i = static_cast<int>(threadIdx.x);
  fma[i] = ptx::fma_rn_f16x2(input[3 * i], input[3 * i + 1], input[3 * i + 2]);
}

TEST_CASE("fma.rn.f16x2: subnormal numbers are kept, ties go to even, what is too large is infinite") {
  if (gpu_test::skip_without_gpu()) return;
  const DeviceArray<std::uint32_t> input(std::vector<std::uint32_t>{0x000d0005, 0x78007800, 0xa400a400,
                                                                    0x10001000, 0x3c013c00, 0x3c003c00,
                                                                    0x7bff7bff, 0x3c003c00, 0x4c004b80});
  const DeviceArray<std::uint32_t> fma(3);
  ptx::launch(packed_fp16_kernel, {.grid = {1}, .block = {3}}, nullptr, input.get(), fma.get());
  CHECK(fma.read() == std::vector<std::uint32_t>{0x21009e00, 0x3c013c00, 0x7c007bff});
}

// ---- cvt ----

__global__ void convert_kernel(const float* input, std::uint16_t* single, std::uint32_t* pair, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  single[i] = ptx::cvt_rn_bf16_f32(input[i]).bits;
  pair[i] = ptx::cvt_rn_bf16x2_f32(input[i], input[(i + 1) % count]);
}

TEST_CASE("cvt.rn.bf16: the same bits as gemm::to_bf16") {
  if (gpu_test::skip_without_gpu()) return;
  std::vector<std::uint32_t> bits{0,          0x80000000, 0x7f800000, 0xff800000, 0x7f7fffff, 0x7fc00000,
                                  0x7f800001, 0xffffffff, 0x00000001, 0x00008000, 0x00018000, 0x3f808000,
                                  0x3f818000, 0x3f808001, 0x3f807fff, 0x7f7f8000};
  Random random(1);
  while (bits.size() < 100'000) bits.push_back(random.next());
  std::vector<float> values;
  for (const std::uint32_t word : bits) values.push_back(std::bit_cast<float>(word));
  const int count = static_cast<int>(values.size());
  const DeviceArray<float> input(values);
  const DeviceArray<std::uint16_t> single(values.size());
  const DeviceArray<std::uint32_t> pair(values.size());
  ptx::launch(convert_kernel, {.grid = {static_cast<unsigned>(count / 256 + 1)}, .block = {256}}, nullptr,
              input.get(), single.get(), pair.get(), count);
  const auto singles = single.read();
  const auto pairs = pair.read();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t low = gemm::to_bf16(values[i]).bits;
    const std::uint32_t high = gemm::to_bf16(values[(i + 1) % values.size()]).bits;
    INFO("input bits " << bits[i]);
    REQUIRE(singles[i] == low);
    REQUIRE(pairs[i] == (high << 16 | low));
  }
}

// ---- ld, st ----

template <typename T>
__global__ void copy_through_shared_kernel(const T* from, T* to) {
  __shared__ T buffer[32];
  const unsigned lane = threadIdx.x;
  ptx::st_shared(&buffer[lane], ptx::ld_global(from + lane));
  __syncwarp();
  ptx::st_global(to + lane, ptx::ld_shared(&buffer[31 - lane]));
}

template <typename T>
void check_copy() {
  std::vector<unsigned char> bytes(32 * sizeof(T));
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(7));
  const DeviceArray<unsigned char> from(bytes);
  const DeviceArray<unsigned char> to(bytes.size());
  ptx::launch(copy_through_shared_kernel<T>, kOneWarp, nullptr, reinterpret_cast<const T*>(from.get()),
              reinterpret_cast<T*>(to.get()));
  const auto result = to.read();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t element = 31 - i / sizeof(T);
    REQUIRE(result[i] == bytes[element * sizeof(T) + i % sizeof(T)]);
  }
}

TEST_CASE("ld, st: every access size, through global and shared memory") {
  if (gpu_test::skip_without_gpu()) return;
  check_copy<unsigned char>();
  check_copy<std::uint16_t>();
  check_copy<std::uint32_t>();
  check_copy<uint2>();
  check_copy<uint4>();
}

__global__ void copy_past_l1_kernel(const uint4* from, uint4* to) {
  ptx::st_global(to + threadIdx.x, ptx::ld_global_no_allocate(from + 31 - threadIdx.x));
}

TEST_CASE("ld.global.L1::no_allocate: all 16 bytes, in their order") {
  if (gpu_test::skip_without_gpu()) return;
  std::vector<std::uint32_t> words(4 * 32);
  std::iota(words.begin(), words.end(), 7u);
  const DeviceArray<std::uint32_t> from(words);
  const DeviceArray<std::uint32_t> to(words.size());
  ptx::launch(copy_past_l1_kernel, kOneWarp, nullptr, reinterpret_cast<const uint4*>(from.get()),
              reinterpret_cast<uint4*>(to.get()));
  const auto result = to.read();
  for (std::size_t i = 0; i < words.size(); ++i) REQUIRE(result[i] == words[(31 - i / 4) * 4 + i % 4]);
}

// ---- dynamic shared memory ----

struct Layout {
  std::uint32_t words[64];
};

__global__ void dynamic_shared_kernel(std::uint32_t* out) {
  Layout& layout = ptx::dynamic_shared<Layout>();
  layout.words[threadIdx.x] = threadIdx.x;
  __syncwarp();
  if (threadIdx.x == 0) {
    out[0] = ptx::shared_address(&layout) % ptx::kDynamicSharedAlignment;
    out[1] = ptx::shared_address(&layout.words[5]) - ptx::shared_address(&layout.words[0]);
    out[2] = layout.words[31];
  }
}

TEST_CASE("dynamic shared memory: aligned to 1024 bytes, addressed in bytes") {
  if (gpu_test::skip_without_gpu()) return;
  const DeviceArray<std::uint32_t> out(3);
  ptx::launch(dynamic_shared_kernel,
              {.grid = {1}, .block = {32}, .cluster = {}, .shared_bytes = sizeof(Layout)}, nullptr,
              out.get());
  CHECK(out.read() == std::vector<std::uint32_t>{0, 20, 31});
}

// ---- ldmatrix ----

constexpr int kRowsInShared = 64;

enum class Load { kX1, kX2, kX4, kX1Trans, kX2Trans, kX4Trans };

/// rows[lane]: which 16-byte row of shared memory the lane hands in. out[lane][register].
template <Load kLoad>
__global__ void ldmatrix_kernel(const int* rows, std::uint32_t* out) {
  __shared__ alignas(16) std::uint16_t tile[kRowsInShared][8];
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < kRowsInShared * 8; i += 32) tile[i / 8][i % 8] = static_cast<std::uint16_t>(i);
  __syncwarp();
  const void* row = tile[rows[lane]];
  std::uint32_t r1[1];
  std::uint32_t r2[2];
  std::uint32_t r4[4] = {0, 0, 0, 0};
  if constexpr (kLoad == Load::kX1) ptx::ldmatrix_x1(r1, row);
  if constexpr (kLoad == Load::kX2) ptx::ldmatrix_x2(r2, row);
  if constexpr (kLoad == Load::kX4) ptx::ldmatrix_x4(r4, row);
  if constexpr (kLoad == Load::kX1Trans) ptx::ldmatrix_x1_trans(r1, row);
  if constexpr (kLoad == Load::kX2Trans) ptx::ldmatrix_x2_trans(r2, row);
  if constexpr (kLoad == Load::kX4Trans) ptx::ldmatrix_x4_trans(r4, row);
  if constexpr (kLoad == Load::kX1 || kLoad == Load::kX1Trans) r4[0] = r1[0];
  if constexpr (kLoad == Load::kX2 || kLoad == Load::kX2Trans) {
    r4[0] = r2[0];
    r4[1] = r2[1];
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) out[lane * 4 + i] = r4[i];
}

template <Load kLoad>
void check_ldmatrix(int matrices, bool transposed) {
  Random random(static_cast<std::uint64_t>(matrices) + 10);
  std::vector<int> rows;
  for (int lane = 0; lane < 32; ++lane) rows.push_back(random.below(kRowsInShared));
  const DeviceArray<int> device_rows(rows);
  const DeviceArray<std::uint32_t> out(32 * 4);
  ptx::launch(ldmatrix_kernel<kLoad>, kOneWarp, nullptr, device_rows.get(), out.get());
  const auto result = out.read();
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < matrices; ++matrix) {
      const auto element = [&](int row, int column) {
        return static_cast<std::uint32_t>(rows[static_cast<std::size_t>(8 * matrix + row)] * 8 + column);
      };
      const int i = lane / 4;
      const int j = 2 * (lane % 4);
      const std::uint32_t low = transposed ? element(j, i) : element(i, j);
      const std::uint32_t high = transposed ? element(j + 1, i) : element(i, j + 1);
      INFO("lane " << lane << " matrix " << matrix);
      REQUIRE(result[static_cast<std::size_t>(lane * 4 + matrix)] == (high << 16 | low));
    }
  }
}

TEST_CASE("ldmatrix: which lane gets which element, from rows anywhere") {
  if (gpu_test::skip_without_gpu()) return;
  check_ldmatrix<Load::kX1>(1, false);
  check_ldmatrix<Load::kX2>(2, false);
  check_ldmatrix<Load::kX4>(4, false);
  check_ldmatrix<Load::kX1Trans>(1, true);
  check_ldmatrix<Load::kX2Trans>(2, true);
  check_ldmatrix<Load::kX4Trans>(4, true);
}

// ---- mma.sync ----

/// Fragments as documented in mma_sync.cuh, loaded element by element. a[16][16], b[8][16], c and d[16][8].
__global__ void mma_kernel(const gemm::bf16* a, const gemm::bf16* b, const float* c, float* d) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  const auto pair = [](const gemm::bf16* row, int k) {
    return static_cast<std::uint32_t>(row[k + 1].bits) << 16 | row[k].bits;
  };
  const std::uint32_t a_fragment[4] = {pair(a + g * 16, 2 * t), pair(a + (g + 8) * 16, 2 * t),
                                       pair(a + g * 16, 2 * t + 8), pair(a + (g + 8) * 16, 2 * t + 8)};
  const std::uint32_t b_fragment[2] = {pair(b + g * 16, 2 * t), pair(b + g * 16, 2 * t + 8)};
  float accumulators[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) accumulators[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  ptx::mma_m16n8k16_bf16(accumulators, a_fragment, b_fragment);
#pragma unroll
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = accumulators[i];
}

TEST_CASE("mma.sync m16n8k16: d += a * b^T with the documented fragments") {
  if (gpu_test::skip_without_gpu()) return;
  Random random(3);
  std::vector<gemm::bf16> a;
  std::vector<gemm::bf16> b;
  std::vector<float> c;
  for (int i = 0; i < 16 * 16; ++i) a.push_back(gemm::to_bf16(static_cast<float>(random.below(41) - 20)));
  for (int i = 0; i < 8 * 16; ++i) b.push_back(gemm::to_bf16(static_cast<float>(random.below(41) - 20)));
  for (int i = 0; i < 16 * 8; ++i) c.push_back(static_cast<float>(random.below(2001) - 1000));
  const DeviceArray<gemm::bf16> device_a(a);
  const DeviceArray<gemm::bf16> device_b(b);
  const DeviceArray<float> device_c(c);
  const DeviceArray<float> d(c.size());
  ptx::launch(mma_kernel, kOneWarp, nullptr, device_a.get(), device_b.get(), device_c.get(), d.get());
  const auto result = d.read();
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float expected = c[row * 8 + column];
      for (std::size_t k = 0; k < 16; ++k)
        expected += gemm::to_float(a[row * 16 + k]) * gemm::to_float(b[column * 16 + k]);
      INFO("row " << row << " column " << column);
      REQUIRE(result[row * 8 + column] == expected);  // integers: exact
    }
  }
}

// ---- cp.async ----

enum class Copy { kCa4, kCa8, kCa16, kCg16 };
constexpr int copy_bytes(Copy copy) {
  return copy == Copy::kCa4 ? 4 : copy == Copy::kCa8 ? 8 : 16;
}

/// Lane i copies source_bytes[i] bytes; the destination is dirty before.
template <Copy kCopy>
__global__ void cp_async_kernel(const unsigned char* from, const int* source_bytes, unsigned char* to) {
  constexpr int kBytes = copy_bytes(kCopy);
  __shared__ alignas(16) unsigned char buffer[32 * kBytes];
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < sizeof buffer; i += 32) buffer[i] = 0xee;
  __syncwarp();
  void* shared = buffer + lane * kBytes;
  const void* global = from + lane * kBytes;
  if constexpr (kCopy == Copy::kCa4) ptx::cp_async_ca_4(shared, global, source_bytes[lane]);
  if constexpr (kCopy == Copy::kCa8) ptx::cp_async_ca_8(shared, global, source_bytes[lane]);
  if constexpr (kCopy == Copy::kCa16) ptx::cp_async_ca_16(shared, global, source_bytes[lane]);
  if constexpr (kCopy == Copy::kCg16) ptx::cp_async_cg_16(shared, global, source_bytes[lane]);
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  __syncwarp();
  for (unsigned i = lane; i < sizeof buffer; i += 32) to[i] = buffer[i];
}

template <Copy kCopy>
void check_cp_async() {
  constexpr int kBytes = copy_bytes(kCopy);
  std::vector<unsigned char> bytes(32 * kBytes);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  std::vector<int> source_bytes;
  for (int lane = 0; lane < 32; ++lane) source_bytes.push_back(lane % (kBytes + 1));
  const DeviceArray<unsigned char> from(bytes);
  const DeviceArray<int> device_source_bytes(source_bytes);
  const DeviceArray<unsigned char> to(bytes.size());
  ptx::launch(cp_async_kernel<kCopy>, kOneWarp, nullptr, from.get(), device_source_bytes.get(), to.get());
  const auto result = to.read();
  for (int i = 0; i < 32 * kBytes; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const bool copied = i % kBytes < source_bytes[index / kBytes];
    INFO("copy of " << kBytes << " bytes, lane " << i / kBytes << ", byte " << i % kBytes);
    REQUIRE(result[index] == (copied ? bytes[index] : 0));
  }
}

TEST_CASE("cp.async: every size, every number of source bytes, zeros behind them") {
  if (gpu_test::skip_without_gpu()) return;
  check_cp_async<Copy::kCa4>();
  check_cp_async<Copy::kCa8>();
  check_cp_async<Copy::kCa16>();
  check_cp_async<Copy::kCg16>();
}

constexpr int kStages = 4;

/// A ring of stages, kStages - 1 groups ahead, as the multistage step uses it.
__global__ void cp_async_ring_kernel(const std::uint32_t* from, std::uint32_t* to, int tiles) {
  __shared__ std::uint32_t ring[kStages][32];
  const int lane = static_cast<int>(threadIdx.x);
  const auto load = [&](int tile) {
    if (tile < tiles) ptx::cp_async_ca_4(&ring[tile % kStages][lane], from + tile * 32 + lane);
    ptx::cp_async_commit_group();  // an empty group at the end keeps the count
  };
  for (int tile = 0; tile < kStages - 1; ++tile) load(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncwarp();
    to[tile * 32 + lane] = ring[tile % kStages][31 - lane];
    __syncwarp();
    load(tile + kStages - 1);
  }
  ptx::cp_async_wait_all();
}

TEST_CASE("cp.async: wait_group lets the oldest groups through, whatever the number of tiles") {
  if (gpu_test::skip_without_gpu()) return;
  for (const int tiles : {1, 2, 3, 4, 5, 9, 100}) {
    std::vector<std::uint32_t> values(static_cast<std::size_t>(tiles) * 32);
    std::iota(values.begin(), values.end(), 100u);
    const DeviceArray<std::uint32_t> from(values);
    const DeviceArray<std::uint32_t> to(values.size());
    ptx::launch(cp_async_ring_kernel, kOneWarp, nullptr, from.get(), to.get(), tiles);
    const auto result = to.read();
    for (std::size_t i = 0; i < values.size(); ++i) {
      INFO(tiles << " tiles, element " << i);
      REQUIRE(result[i] == values[i / 32 * 32 + 31 - i % 32]);
    }
  }
}

// ---- bar ----

/// Warp 0 produces, warp 1 consumes: full is barrier 1, empty is barrier 2.
__global__ void named_barrier_kernel(std::uint32_t* out, int rounds) {
  __shared__ std::uint32_t slot[32];
  const unsigned lane = threadIdx.x % 32;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x < 32) {
      if (round > 0) ptx::bar_sync(2, 64);
      slot[lane] = static_cast<std::uint32_t>(round) * 32 + lane;
      ptx::bar_arrive(1, 64);
    } else {
      ptx::bar_sync(1, 64);
      out[round * 32 + static_cast<int>(lane)] = slot[31 - lane];
      if (round + 1 < rounds) ptx::bar_arrive(2, 64);
    }
  }
}

TEST_CASE("bar.sync, bar.arrive: a producer and a consumer hand a slot back and forth") {
  if (gpu_test::skip_without_gpu()) return;
  constexpr int kRounds = 200;
  const DeviceArray<std::uint32_t> out(kRounds * 32);
  ptx::launch(named_barrier_kernel, {.grid = {1}, .block = {64}}, nullptr, out.get(), kRounds);
  const auto result = out.read();
  for (std::size_t i = 0; i < result.size(); ++i) REQUIRE(result[i] == i / 32 * 32 + 31 - i % 32);
}

}  // namespace ampere_wrappers_test
