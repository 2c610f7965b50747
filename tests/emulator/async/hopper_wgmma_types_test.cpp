// wgmma with operands that are not bf16: what it computes, type by type, and what must agree.
#include "ptx/wgmma_types.cuh"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "emulator/async/tensor_core.h"
#include "emulator/hopper_test.h"
#include "harness/verify/types/typed.h"

namespace hopper_wgmma_types_test {

using namespace emulator_test;

namespace {

using emulator::SlabTypes;
using gemm::Type;

constexpr int kN = 48;
constexpr int kRowBytes = 128;  // four slabs

struct alignas(1024) Shared {
  unsigned char a[64 * kRowBytes];
  unsigned char b[kN * kRowBytes];
};

/// Which instruction; the two that stand for mistakes use bf16's on other types' accumulators.
enum Form { kF16, kTf32, kE4m3E4m3, kE4m3E5m2, kE5m2E4m3, kE5m2E5m2, kS8 };
constexpr SlabTypes kTypes[] = {{Type::kFp16, Type::kFp16}, {Type::kTf32, Type::kTf32},
                                {Type::kE4m3, Type::kE4m3}, {Type::kE4m3, Type::kE5m2},
                                {Type::kE5m2, Type::kE4m3}, {Type::kE5m2, Type::kE5m2},
                                {Type::kInt8, Type::kInt8}};

void __device__ fill(unsigned char* tile, const std::uint32_t* source, int rows) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kRowBytes / 4; i += static_cast<int>(blockDim.x)) {
    const std::uint32_t place = ptx::swizzled(static_cast<std::uint32_t>(4 * i), ptx::Swizzle::k128B);
    ptx::st_shared(reinterpret_cast<std::uint32_t*>(tile + place), ptx::ld_global(source + i));
  }
}

template <int kForm, typename Sum>
void __device__ issue(Sum (&d)[kN / 2], std::uint64_t a, std::uint64_t b, int accumulate) {
  if constexpr (kForm == kF16) ptx::wgmma_m64nNk16_f32_f16_ss<kN>(d, a, b, accumulate);
  if constexpr (kForm == kTf32) ptx::wgmma_m64nNk8_f32_tf32_ss<kN>(d, a, b, accumulate);
  if constexpr (kForm == kE4m3E4m3) ptx::wgmma_m64nNk32_f32_e4m3_e4m3_ss<kN>(d, a, b, accumulate);
  if constexpr (kForm == kE4m3E5m2) ptx::wgmma_m64nNk32_f32_e4m3_e5m2_ss<kN>(d, a, b, accumulate);
  if constexpr (kForm == kE5m2E4m3) ptx::wgmma_m64nNk32_f32_e5m2_e4m3_ss<kN>(d, a, b, accumulate);
  if constexpr (kForm == kE5m2E5m2) ptx::wgmma_m64nNk32_f32_e5m2_e5m2_ss<kN>(d, a, b, accumulate);
  if constexpr (kForm == kS8) ptx::wgmma_m64nNk32_s32_s8_ss<kN>(d, a, b, accumulate);
}

enum Fault { kNone, kReadEarly, kOtherTypeInFlight, kOneWarpOfAnotherType };

/// d = a * b^T over four slabs of 32 bytes.
template <int kForm, typename Sum>
__global__ void multiply(const std::uint32_t* a, const std::uint32_t* b, int fault, Sum* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  fill(shared.a, a, 64);
  fill(shared.b, b, kN);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  Sum d[kN / 2];
  ptx::wgmma_fence();
  const int thread = static_cast<int>(threadIdx.x);
  for (int slab = 0; slab < 4; ++slab) {
    const auto bytes = static_cast<std::uint32_t>(32 * slab);
    const std::uint64_t a_tile =
        ptx::k_major_descriptor(ptx::shared_address(shared.a) + bytes, ptx::Swizzle::k128B);
    const std::uint64_t b_tile =
        ptx::k_major_descriptor(ptx::shared_address(shared.b) + bytes, ptx::Swizzle::k128B);
    if constexpr (kForm == kE4m3E4m3) {
      if ((fault == kOtherTypeInFlight && slab == 3) ||
          (fault == kOneWarpOfAnotherType && thread / 32 == 2)) {
        ptx::wgmma_m64nNk32_f32_e4m3_e5m2_ss<kN>(d, a_tile, b_tile, slab > 0);
        continue;
      }
    }
    issue<kForm>(d, a_tile, b_tile, slab > 0);
  }
  ptx::wgmma_commit_group();
  if (fault != kReadEarly) ptx::wgmma_wait_group<0>();
  if constexpr (kForm == kS8) {
    if (ptx::cvt_rn_f32_s32(d[3]) == 1.5f) d[3] = 0;  // reads it
  } else {
    if (ptx::cvt_rn_satfinite_e4m3x2_f32(d[2], d[3]) == 0x7f7e) d[3] = 0;
  }
  ptx::wgmma_wait_group<0>();
  ptx::wgmma_fence_operand(d);
  store_accumulators<kN>(out, d);
}

using Bytes = std::vector<unsigned char>;

/// Random bytes; exponents that are all ones are left out, and for 16 and 32 bits kept near 0.
Bytes random_operand(Type type, int rows, std::uint64_t seed) {
  Bytes bytes(static_cast<std::size_t>(rows) * kRowBytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 33);
  };
  const auto size = static_cast<std::size_t>(gemm::bytes_of(type));
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    std::uint32_t bits = next();
    if (type == Type::kFp16) bits = (bits & 0x83ffu) | (12 + next() % 6) << 10;
    if (type == Type::kTf32) bits = (bits << 1 & 0x807fffffu) | (122 + next() % 10) << 23;
    if (type == Type::kE4m3 && (bits & 0x7fu) == 0x7fu) bits ^= 1;
    if (type == Type::kE5m2 && (bits & 0x7cu) == 0x7cu) bits ^= 0x40;
    std::memcpy(&bytes[i], &bits, size);
  }
  return bytes;
}

float element(Type type, const unsigned char* row, int k) {
  const unsigned char* at = row + k * gemm::bytes_of(type);
  if (type == Type::kE4m3) return gemm::to_float(gemm::e4m3{*at});
  if (type == Type::kE5m2) return gemm::to_float(gemm::e5m2{*at});
  if (type == Type::kInt8) return static_cast<float>(static_cast<std::int8_t>(*at));
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(gemm::bytes_of(type)));
  if (type == Type::kFp16) return gemm::to_float(gemm::fp16{static_cast<std::uint16_t>(bits)});
  return gemm::to_float(gemm::tf32{bits});
}

/// The exponent of a factor by the rule: a subnormal has that of the smallest normal number.
int exponent_of(Type type, float value) {
  return std::max(std::ilogb(value), type == Type::kE4m3 ? -6 : -14);
}

/// One fp8 instruction, by its rule, in binary64.
float add_slab(SlabTypes types, const unsigned char* a, const unsigned char* b, float c) {
  int largest = c == 0 ? -9999 : std::ilogb(c);
  for (int k = 0; k < 32; ++k) {
    const float x = element(types.a, a, k);
    const float y = element(types.b, b, k);
    if (x != 0 && y != 0) largest = std::max(largest, exponent_of(types.a, x) + exponent_of(types.b, y));
  }
  if (largest == -9999) return 0;
  const auto cut = [](double value, int exponent) {
    return std::ldexp(std::trunc(std::ldexp(value, 13 - exponent)), exponent - 13);
  };
  double sum = cut(static_cast<double>(c), largest);
  for (int k = 0; k < 32; ++k) {
    sum += cut(static_cast<double>(element(types.a, a, k)) * static_cast<double>(element(types.b, b, k)),
               largest);
  }
  return sum == 0 ? 0 : static_cast<float>(cut(sum, std::ilogb(sum)));
}

template <typename Sum>
Sum expected(SlabTypes types, const unsigned char* a, const unsigned char* b) {
  const int depth = static_cast<int>(types.depth());
  if constexpr (std::is_same_v<Sum, std::int32_t>) {
    std::int64_t sum = 0;
    for (int k = 0; k < kRowBytes; ++k)
      sum += static_cast<int>(static_cast<std::int8_t>(a[k])) * static_cast<std::int8_t>(b[k]);
    return static_cast<std::int32_t>(sum);
  } else {
    float sum = 0;
    for (int slab = 0; slab < 4; ++slab) {
      if (gemm::is_fp8(types.a)) {
        sum = add_slab(types, a + 32 * slab, b + 32 * slab, sum);
        continue;
      }
      for (int k = depth * slab; k < depth * (slab + 1); ++k)
        sum = std::fma(element(types.a, a, k), element(types.b, b, k), sum);
    }
    return sum;
  }
}

const std::uint32_t* words(const DeviceArray<unsigned char>& array) {
  return reinterpret_cast<const std::uint32_t*>(array.get());
}

template <int kForm, typename Sum = float>
void check_form() {
  const SlabTypes types = kTypes[kForm];
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Bytes a = random_operand(types.a, 64, seed);
    const Bytes b = random_operand(types.b, kN, seed + 100);
    DeviceArray<unsigned char> device_a(a, "A");
    DeviceArray<unsigned char> device_b(b, "B");
    DeviceArray<Sum> out(64 * kN);
    const Outcome outcome = run(multiply<kForm, Sum>, one_cta(128, sizeof(Shared)), words(device_a),
                                words(device_b), static_cast<int>(kNone), out.get());
    INFO(gemm::name_of(types.a) << " * " << gemm::name_of(types.b) << " " << outcome.report);
    REQUIRE(outcome.rule == "passed");
    const std::vector<Sum> host = out.host();
    int wrong = 0;
    for (int i = 0; i < 64; ++i) {
      for (int j = 0; j < kN; ++j) {
        wrong += host[static_cast<std::size_t>(i * kN + j)] !=
                 expected<Sum>(types, &a[static_cast<std::size_t>(i) * kRowBytes],
                               &b[static_cast<std::size_t>(j) * kRowBytes]);
      }
    }
    CHECK(wrong == 0);
  }
}

template <int kForm, typename Sum = float>
Outcome with_fault(int fault) {
  const DeviceArray<unsigned char> a(random_operand(kTypes[kForm].a, 64, 7), "A");
  const DeviceArray<unsigned char> b(random_operand(kTypes[kForm].b, kN, 8), "B");
  DeviceArray<Sum> out(64 * kN);
  return run(multiply<kForm, Sum>, one_cta(128, sizeof(Shared)), words(a), words(b), fault, out.get());
}

TEST_CASE("wgmma of every type computes what its rule says, bit for bit") {
  check_form<kF16>();
  check_form<kTf32>();
  check_form<kE4m3E4m3>();
  check_form<kE4m3E5m2>();
  check_form<kE5m2E4m3>();
  check_form<kE5m2E5m2>();
  check_form<kS8, std::int32_t>();
}

TEST_CASE("accumulators in flight have one type, and all threads execute the same instruction") {
  under_all_schedules([] {
    CHECK(with_fault<kE4m3E4m3>(kOtherTypeInFlight).rule == "wgmma-registers");
    CHECK(with_fault<kE4m3E4m3>(kOneWarpOfAnotherType).rule == "wgmma-divergence");
  });
}

TEST_CASE("accumulators in integers must be waited for like others") {
  const Rules rules{"wgmma-accumulator-read"};
  CHECK_BREAKS_ONE_OF(rules, with_fault<kS8, std::int32_t>(kReadEarly));
  CHECK_BREAKS_ONE_OF(rules, with_fault<kE4m3E4m3>(kReadEarly));
}

float fp8_sum(std::vector<float> a, std::vector<float> b, float c) {
  std::uint8_t row_a[32] = {};
  std::uint8_t row_b[32] = {};
  for (std::size_t i = 0; i < a.size(); ++i) row_a[i] = gemm::to_e4m3(a[i]).bits;
  for (std::size_t i = 0; i < b.size(); ++i) row_b[i] = gemm::to_e4m3(b[i]).bits;
  return emulator::add_fp8_products({Type::kE4m3, Type::kE4m3}, row_a, row_b, c);
}

TEST_CASE("an fp8 accumulator keeps 13 bits behind its leading one and cuts off the rest") {
  CHECK(fp8_sum({1}, {1}, 8191) == 8192);
  CHECK(fp8_sum({1}, {1}, 16382) == 16383);        // 14 bits
  CHECK(fp8_sum({1}, {1}, 16384) == 16384);        // the unit is 2 now: 1 is cut off
  CHECK(fp8_sum({1, 1}, {1, 1}, 16384) == 16384);  // each of them, not their sum
  CHECK(fp8_sum({-1}, {1}, 16384) == 16384);       // towards 0
  CHECK(fp8_sum({2}, {1}, 16384) == 16386);
  CHECK(fp8_sum({16}, {16}, 0x1p-6f) == 256);  // the accumulator is cut off as well: its unit is 2^-5
  CHECK(fp8_sum({16}, {16}, 0x1p-5f) == 256.03125f);
  CHECK(fp8_sum({1.5f}, {1.5f}, 0) == 2.25f);
  CHECK(fp8_sum({}, {}, -3) == -3);
  CHECK(fp8_sum({448, -448}, {448, 448}, 0.5f) == 0);          // what cancels has cut off the rest before
  CHECK(fp8_sum({0, 1}, {448, 0x1p-9f}, 0x1p-9f) == 0x1p-8f);  // a product of 0 aligns nothing
  CHECK(std::isnan(fp8_sum({std::numeric_limits<float>::quiet_NaN()}, {1}, 0)));
  CHECK(std::isinf(fp8_sum({1}, {1}, std::numeric_limits<float>::infinity())));
}

TEST_CASE("an fp8 sum is off by much more than a binary32's, and by less than its bound") {
  const gemm::Types types{Type::kE4m3, Type::kE4m3, Type::kFp32};
  for (const int k : {256, 1024, 4096}) {
    const harness::TypedRules rules = harness::typed_rules({24, 24, k}, types, harness::Pattern::kNormal, 9);
    const Bytes a = harness::typed_input(rules.a, types.a);
    const Bytes b = harness::typed_input(rules.b, types.b);
    double largest = 0;  // error over norm
    for (int i = 0; i < 24 * 24; ++i) {
      const unsigned char* row_a = &a[static_cast<std::size_t>(i / 24) * static_cast<std::size_t>(k)];
      const unsigned char* row_b = &b[static_cast<std::size_t>(i % 24) * static_cast<std::size_t>(k)];
      float sum = 0;
      for (int slab = 0; slab < k; slab += 32)
        sum = emulator::add_fp8_products({types.a, types.b}, row_a + slab, row_b + slab, sum);
      double exact = 0;
      double squares = 0;
      for (int j = 0; j < k; ++j) {
        const double product =
            static_cast<double>(element(types.a, row_a, j)) * static_cast<double>(element(types.b, row_b, j));
        exact += product;
        squares += product * product;
      }
      largest = std::max(largest, std::abs(static_cast<double>(sum) - exact) / std::sqrt(squares));
    }
    INFO("K " << k << ": " << largest << " of the norm, bound " << harness::typed_error(types, k, 1));
    CHECK(largest < harness::typed_error(types, k, 1));
    CHECK(largest > 30 * 0x1p-24 * k / 32);
  }
}

}  // namespace

}  // namespace hopper_wgmma_types_test
