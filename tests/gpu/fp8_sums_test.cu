// What a Hopper GPU's tensor cores make of fp8 products, against the model that the emulator and the verifier
// have of it (harness/verify/types/fp8_sum.h), bit for bit.
#include <bit>
#include <cstdint>
#include <vector>

#include "device.h"
#include "gemm/problem/types.h"
#include "gemm/tile/typed_slab.cuh"
#include "harness/verify/types/fp8_sum.h"
#include "ptx/descriptor.h"
#include "ptx/fence.cuh"
#include "ptx/launch.cuh"
#include "ptx/shared.cuh"
#include "ptx/wgmma.cuh"

// Not anonymous: nvcc and the test framework both rely on that name.
namespace fp8_sums_test {

namespace ptx = gemm::ptx;

using gpu_test::DeviceArray;
using gpu_test::Random;

constexpr int kRows = 64;
constexpr int kColumns = 64;
constexpr int kSlab = 32;  // elements, and bytes, of a row in one instruction

struct Slabs {
  alignas(1024) std::uint8_t a[kRows * kSlab];
  alignas(1024) std::uint8_t b[kColumns * kSlab];
};

/// d[kRows][kColumns] = a[kRows][k] * b[kColumns][k]^T, one instruction after the other into the same
/// accumulators.
template <typename A, typename B>
__global__ void __launch_bounds__(128, 1)
    fp8_sums_kernel(const std::uint8_t* a, const std::uint8_t* b, int k, float* d) {
  if constexpr (ptx::kHasWgmma) {
    Slabs& slabs = ptx::dynamic_shared<Slabs>();
    const int thread = static_cast<int>(threadIdx.x);
    float sums[kColumns / 2];
#pragma unroll
    for (float& sum : sums) sum = 12345;  // the first instruction ignores it
    for (int first = 0; first < k; first += kSlab) {
      for (int i = thread; i < kRows * kSlab; i += 128) {
        const auto place = ptx::swizzled(static_cast<std::uint32_t>(i), ptx::Swizzle::k32B);
        slabs.a[place] = a[i / kSlab * k + first + i % kSlab];
        slabs.b[place] = b[i / kSlab * k + first + i % kSlab];
      }
      ptx::fence_proxy_async_shared_cta();
      __syncthreads();
      ptx::wgmma_fence_operand(sums);
      ptx::wgmma_fence();
      gemm::multiply_slab<A, B, kColumns>(
          sums, ptx::k_major_descriptor(ptx::shared_address(slabs.a), ptx::Swizzle::k32B),
          ptx::k_major_descriptor(ptx::shared_address(slabs.b), ptx::Swizzle::k32B), first > 0);
      ptx::wgmma_commit_group();
      ptx::wgmma_wait_group<0>();
      ptx::wgmma_fence_operand(sums);
      __syncthreads();
    }
    const int row = thread / 32 * 16 + thread % 32 / 4;
    const int column = thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i)
      d[(row + i / 2 % 2 * 8) * kColumns + i / 4 * 8 + column + i % 2] = sums[i];
  }
}

/// What the elements are drawn from.
enum class Draw { kAllBits, kNearOne, kFewLarge };

template <typename T>
std::uint8_t drawn(Draw draw, Random& random) {
  constexpr int kFraction = std::is_same_v<T, gemm::e4m3> ? 3 : 2;
  constexpr std::uint32_t kLargest = std::is_same_v<T, gemm::e4m3> ? 0x7e : 0x7b;  // behind it: Inf, NaN
  const std::uint32_t sign = random.next() & 0x80u;
  std::uint32_t magnitude = random.next() % (kLargest + 1);
  if (draw != Draw::kAllBits) {  // within a factor of 8 of 1
    const std::uint32_t one = (std::is_same_v<T, gemm::e4m3> ? 7u : 15u) << kFraction;
    magnitude = one - (3u << kFraction) + random.next() % (6u << kFraction);
    if (draw == Draw::kFewLarge && random.below(16) > 0) magnitude = random.next() % (4u << kFraction);
  }
  return static_cast<std::uint8_t>(sign | magnitude);
}

template <typename A, typename B>
void check_sums(gemm::Type type_a, gemm::Type type_b) {
  int different = 0;
  std::string first;
  for (const Draw draw : {Draw::kAllBits, Draw::kNearOne, Draw::kFewLarge}) {
    for (const int k : {32, 64, 256, 4096}) {
      Random random(static_cast<std::uint64_t>(k) * 8 + static_cast<std::uint64_t>(draw));
      std::vector<std::uint8_t> a(static_cast<std::size_t>(kRows * k));
      std::vector<std::uint8_t> b(static_cast<std::size_t>(kColumns * k));
      for (std::uint8_t& bits : a) bits = drawn<A>(draw, random);
      for (std::uint8_t& bits : b) bits = drawn<B>(draw, random);
      const DeviceArray<std::uint8_t> device_a(a);
      const DeviceArray<std::uint8_t> device_b(b);
      const DeviceArray<float> d(static_cast<std::size_t>(kRows) * kColumns);
      ptx::launch(fp8_sums_kernel<A, B>,
                  {.grid = {1}, .block = {128}, .cluster = {}, .shared_bytes = sizeof(Slabs)}, nullptr,
                  device_a.get(), device_b.get(), k, d.get());
      const std::vector<float> result = d.read();
      for (int i = 0; i < kRows * kColumns; ++i) {
        const float expected = harness::fp8_chain({type_a, type_b, gemm::Type::kFp32},
                                                  &a[static_cast<std::size_t>(i / kColumns * k)],
                                                  &b[static_cast<std::size_t>(i % kColumns * k)], k);
        const float got = result[static_cast<std::size_t>(i)];
        if (std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected)) continue;
        if (different++ < 8)
          first += "K " + std::to_string(k) + ", draw " + std::to_string(static_cast<int>(draw)) + ", row " +
                   std::to_string(i / kColumns) + ", column " + std::to_string(i % kColumns) + ": " +
                   std::to_string(got) + " instead of " + std::to_string(expected) + "\n";
      }
    }
  }
  INFO(first);
  CHECK(different == 0);
}

TEST_CASE("fp8: the tensor cores sum as the emulator does, bit for bit, on random numbers") {
  if (gpu_test::skip_without_hopper()) return;
  using gemm::Type;
  check_sums<gemm::e4m3, gemm::e4m3>(Type::kE4m3, Type::kE4m3);
  check_sums<gemm::e4m3, gemm::e5m2>(Type::kE4m3, Type::kE5m2);
  check_sums<gemm::e5m2, gemm::e4m3>(Type::kE5m2, Type::kE4m3);
  check_sums<gemm::e5m2, gemm::e5m2>(Type::kE5m2, Type::kE5m2);
}

}  // namespace fp8_sums_test
