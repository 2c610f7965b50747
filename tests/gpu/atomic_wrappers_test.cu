// ld.acquire, st.release and their relaxed forms between CTAs, and the workspace that flags live in.
#include <algorithm>
#include <utility>
#include <vector>

#include "device.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "ptx/atomic.cuh"
#include "ptx/launch.cuh"
#include "ptx/workspace.h"
#include "step_table.h"

// Not anonymous: nvcc and the test framework both rely on that name.
namespace atomic_wrappers_test {

namespace ptx = gemm::ptx;

using gpu_test::DeviceArray;

constexpr int kThreads = 256;

__global__ void store_then_load(std::uint32_t* words) {
  ptx::st_relaxed_gpu(words, 7);
  ptx::st_release_gpu(words + 1, 8);
  words[2] = ptx::ld_relaxed_gpu(words) + 10;
  words[3] = ptx::ld_acquire_gpu(words + 1) + 10;
}

TEST_CASE("ld.acquire, ld.relaxed, st.release, st.relaxed: the word that they name") {
  if (gpu_test::skip_without_gpu()) return;
  const DeviceArray<std::uint32_t> words(std::vector<std::uint32_t>(5, 0));
  ptx::launch(store_then_load, {.grid = {1}, .block = {1}}, nullptr, words.get());
  CHECK(words.read() == std::vector<std::uint32_t>{7, 8, 17, 18, 0});
}

/// Each even CTA passes messages to the odd one behind it, through `values` and a flag of their own; the
/// receiver lowers the flag when all of its threads have read.
__global__ void pass_messages(int* values, std::uint32_t* flags, int* wrong, int rounds) {
  const unsigned pair = blockIdx.x / 2;
  int* const mine = values + pair * kThreads;
  std::uint32_t* const flag = flags + pair;
  const unsigned neighbour = (threadIdx.x + 37) % kThreads;  // not what the same thread wrote
  for (int round = 0; round < rounds; ++round) {
    const bool sender = blockIdx.x % 2 == 0;
    if (threadIdx.x == 0) {
      while (ptx::ld_acquire_gpu(flag) != (sender ? 0u : 1u)) {
      }
    }
    __syncthreads();
    if (sender) {
      mine[threadIdx.x] = round * kThreads + static_cast<int>(threadIdx.x);
    } else if (mine[neighbour] != round * kThreads + static_cast<int>(neighbour)) {
      atomicAdd(wrong, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) ptx::st_release_gpu(flag, sender ? 1 : 0);
  }
}

TEST_CASE("release and acquire: a hundred thousand messages between CTAs arrive whole") {
  if (gpu_test::skip_without_gpu()) return;
  constexpr int kPairs = 32;
  constexpr int kRounds = 3000;
  const DeviceArray<int> values(kPairs * kThreads);
  const DeviceArray<std::uint32_t> flags(std::vector<std::uint32_t>(kPairs, 0));
  const DeviceArray<int> wrong(std::vector<int>{0});
  ptx::launch(
      pass_messages,
      {.grid = {2 * kPairs}, .block = {kThreads}, .cluster = {}, .shared_bytes = 0, .co_resident = true},
      nullptr, values.get(), flags.get(), wrong.get(), kRounds);
  CHECK(wrong.read() == std::vector<int>{0});
}

/// Every thread adds its number to two words and 1000 to two others.
__global__ void add_up(std::uint32_t* words, std::uint32_t* before) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  ptx::red_add_relaxed_gpu(words, thread);
  before[thread] = ptx::atom_add_acq_rel_gpu(words + 1, 1000);
  ptx::red_add_release_gpu(words + 3, thread);
  before[gridDim.x * blockDim.x + thread] = ptx::atom_add_relaxed_gpu(words + 4, 1000);
}

TEST_CASE("red.add and atom.add: every addition counts, and atom says what was there") {
  if (gpu_test::skip_without_gpu()) return;
  constexpr std::uint32_t kCount = 200 * kThreads;
  const DeviceArray<std::uint32_t> words(std::vector<std::uint32_t>{7, 7, 7, 7, 7});
  const DeviceArray<std::uint32_t> before(2 * kCount);
  ptx::launch(add_up, {.grid = {200}, .block = {kThreads}}, nullptr, words.get(), before.get());
  constexpr std::uint32_t kSum = 7 + kCount * (kCount - 1) / 2;
  CHECK(words.read() == std::vector<std::uint32_t>{kSum, 7 + 1000 * kCount, 7, kSum, 7 + 1000 * kCount});
  std::vector<std::uint32_t> seen = before.read();
  std::sort(seen.begin(), seen.begin() + kCount);
  std::sort(seen.begin() + kCount, seen.end());
  std::vector<std::uint32_t> expected(2 * kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) expected[i] = expected[kCount + i] = 7 + 1000 * i;
  CHECK(seen == expected);
}

/// Every thread adds a small integer, and the largest of all numbers is looked for. Two words get one
/// addition each.
__global__ void add_and_find_largest(float* sum, std::uint32_t* largest, float rounded, float subnormal) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  ptx::red_add_relaxed_gpu(sum, static_cast<float>(thread % 8));
  ptx::red_max_relaxed_gpu(largest, thread * 2654435761u % 1000003u);
  if (thread != 0) return;
  ptx::red_add_relaxed_gpu(sum + 1, rounded);
  ptx::red_add_relaxed_gpu(sum + 2, subnormal);
  ptx::red_max_relaxed_gpu(largest + 1, 0x7fc00000u);  // a NaN's bits are above those of infinity
  ptx::red_max_relaxed_gpu(largest + 2, 5);
}

TEST_CASE("red.add.f32 and red.max.u32: sums round to nearest even, subnormals are 0, the largest stays") {
  if (gpu_test::skip_without_gpu()) return;
  constexpr std::uint32_t kCount = 200 * kThreads;
  const DeviceArray<float> sums(std::vector<float>{1, 0x1p24F, 0, 9});
  const DeviceArray<std::uint32_t> largest(std::vector<std::uint32_t>{0, 0x7f800000u, 7, 9});
  ptx::launch(add_and_find_largest, {.grid = {200}, .block = {kThreads}}, nullptr, sums.get(), largest.get(),
              3.0F, 0x1p-140F);
  std::uint32_t expected = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) expected = std::max(expected, i * 2654435761u % 1000003u);
  CHECK(sums.read() == std::vector<float>{1 + kCount / 8 * 28, 0x1p24F + 4, 0, 9});
  CHECK(largest.read() == std::vector<std::uint32_t>{expected, 0x7fc00000u, 7, 9});
}

/// Each CTA writes a value for each thread and counts itself; the last one adds up what all have written.
__global__ void last_one_adds(const int* round, int* values, std::uint32_t* count, int* sum) {
  __shared__ bool is_last;
  values[blockIdx.x * blockDim.x + threadIdx.x] = *round + static_cast<int>(blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) is_last = ptx::atom_add_acq_rel_gpu(count, 1) + 1 == gridDim.x;
  __syncthreads();
  if (!is_last) return;
  for (unsigned cta = 0; cta < gridDim.x; ++cta) {
    // Not what the same thread wrote, and not kept by the compiler.
    const volatile int* const theirs = values + cta * blockDim.x;
    atomicAdd(sum, theirs[(threadIdx.x + 37) % blockDim.x]);
  }
  if (threadIdx.x == 0) ptx::st_relaxed_gpu(count, 0);
}

TEST_CASE("atom.acq_rel: the last CTA sees what all wrote before they came") {
  if (gpu_test::skip_without_gpu()) return;
  constexpr int kCtas = 264;
  const DeviceArray<int> values(kCtas * kThreads);
  DeviceArray<int> round(1);
  DeviceArray<int> sum(1);
  const DeviceArray<std::uint32_t> count(std::vector<std::uint32_t>{0});
  for (int launch = 0; launch < 300; ++launch) {
    round.upload({launch});  // every launch writes something else
    sum.upload({0});
    ptx::launch(last_one_adds, {.grid = {kCtas}, .block = {kThreads}}, nullptr, round.get(), values.get(),
                count.get(), sum.get());
    if (sum.read() != std::vector<int>{kThreads * (kCtas * launch + kCtas * (kCtas - 1) / 2)})
      FAIL("launch " << launch << ": " << sum.read()[0]);
  }
  CHECK(count.read() == std::vector<std::uint32_t>{0});
}

/// A stream that lives as long as its scope.
class OwnStream {
 public:
  OwnStream() { REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ptx::Stream get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

TEST_CASE("workspace: zeroed, one for each stream, kept between launches") {
  if (gpu_test::skip_without_gpu()) return;
  constexpr std::size_t kBytes = 1 << 20;
  const OwnStream one;
  const OwnStream other;
  ptx::Workspace workspace(kBytes);
  void* const first = workspace.of(one.get());
  REQUIRE(first != nullptr);
  std::vector<unsigned char> bytes(kBytes, 1);
  harness::copy_to_host(bytes.data(), first, kBytes);
  CHECK(bytes == std::vector<unsigned char>(kBytes, 0));
  CHECK(workspace.of(one.get()) == first);
  CHECK(workspace.of(other.get()) != first);
  CHECK(workspace.of(nullptr) != first);
  CHECK(ptx::Workspace(0).of(one.get()) == nullptr);
}

TEST_CASE("workspace: one that is too large says how large") {
  if (gpu_test::skip_without_gpu()) return;
  ptx::Workspace workspace(std::size_t{1} << 50);
  try {
    workspace.of(nullptr);
    FAIL("a petabyte was had");
  } catch (const std::runtime_error& error) {
    CHECK(contains(std::string(error.what()), "1125899906842624 bytes could not be had"));
  }
}

/// For every variant: one plan on two streams and another plan on one of them, 500 times.
void check_overlapping_launches(const gemm::Step& step) {
  for (const gemm::Variant& variant : step.variants) {
    for (const gemm::Shape& shape : {gemm::Shape{1152, 1152, 2048}, {256, 520, 8200}}) {
      INFO(variant.name << " " << harness::to_string(shape));
      harness::Workload first(shape, harness::Pattern::kNormal, 5);
      harness::Workload second(shape, harness::Pattern::kNormal, 5);
      first.poison();
      second.poison();
      const OwnStream one;
      const OwnStream other;
      // One plan on two streams, and one plan on a stream of its own: the same inputs, so the same bits.
      const gemm::Launcher shared_plan = variant.prepare(first.gemm());
      const gemm::Launcher own_plan = variant.prepare(second.gemm());
      for (int launch = 0; launch < 500; ++launch) {
        shared_plan(one.get());
        shared_plan(other.get());
        own_plan(one.get());
      }
      harness::synchronize();
      CHECK(first.check(variant.tile).ok);
      CHECK(second.check(variant.tile).ok);
      const auto same = [](gemm::bf16 x, gemm::bf16 y) { return x.bits == y.bits; };
      const std::vector<gemm::bf16> d = first.image().d;
      CHECK(std::ranges::equal(d, second.image().d, same));
    }
  }
}

TEST_CASE("18_stream_k: a thousand launches on two streams that overlap") {
  if (gpu_test::skip_without_hopper()) return;
  check_overlapping_launches(harness::find_step(gemm::all_steps(), "18"));
}

TEST_CASE("22_peak: a thousand launches on two streams that overlap") {
  if (gpu_test::skip_without_hopper()) return;
  check_overlapping_launches(harness::find_step(gemm::all_steps(), "22"));
}

}  // namespace atomic_wrappers_test
