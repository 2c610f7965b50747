// The wrappers that exist on Hopper (sm_90a) only, each against a model of its own on the host. For other
// targets the kernels are empty and the tests are skipped.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "device.h"
#include "gemm/problem/bf16.h"
#include "gemm/problem/types.h"
#include "ptx/atomic.cuh"
#include "ptx/cluster.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/descriptor.h"
#include "ptx/elect.cuh"
#include "ptx/fence.cuh"
#include "ptx/griddepcontrol.cuh"
#include "ptx/launch.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mbarrier_wait.cuh"
#include "ptx/memory.cuh"
#include "ptx/prefetch.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_map.h"
#include "ptx/tensormap.cuh"
#include "ptx/tma.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_transposed.cuh"

// Not anonymous: nvcc and the test framework both rely on that name.
namespace hopper_wrappers_test {

namespace ptx = gemm::ptx;

using gemm::bf16;
using gpu_test::DeviceArray;
using gpu_test::Random;
using ptx::Swizzle;

constexpr ptx::LaunchShape kOneWarp{.grid = {1}, .block = {32}};

__device__ void wait_for(std::uint64_t* barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

// ---- elect.sync ----

__global__ void elect_kernel(std::uint32_t* out) {
  if constexpr (ptx::kHasWgmma) {
    for (unsigned i = 0; i < 4; ++i) out[i * 32 + threadIdx.x] = ptx::elect_sync() ? 1 : 0;
  }
}

TEST_CASE("elect.sync: one lane, always the same") {
  if (gpu_test::skip_without_hopper()) return;
  const DeviceArray<std::uint32_t> out(4 * 32);
  ptx::launch(elect_kernel, kOneWarp, nullptr, out.get());
  const auto result = out.read();
  const std::vector<std::uint32_t> first(result.begin(), result.begin() + 32);
  CHECK(std::accumulate(first.begin(), first.end(), 0u) == 1);
  for (int i = 1; i < 4; ++i) CHECK(std::equal(first.begin(), first.end(), result.begin() + i * 32));
}

// ---- stmatrix ----

enum class Store { kX1, kX2, kX4, kX1Trans, kX2Trans, kX4Trans };

/// Lane i holds registers 4i .. 4i + 3, of two 16-bit numbers each, and hands in row rows[i].
template <Store kStore>
__global__ void stmatrix_kernel(const int* rows, std::uint16_t* out) {
  if constexpr (ptx::kHasWgmma) {
    __shared__ alignas(16) std::uint16_t tile[32][8];
    const unsigned lane = threadIdx.x;
    for (unsigned i = lane; i < 32 * 8; i += 32) tile[i / 8][i % 8] = 0xffff;
    __syncwarp();
    std::uint32_t r4[4];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t number = 2 * (lane * 4 + i);
      r4[i] = (number + 1) << 16 | number;
    }
    const std::uint32_t r1[1] = {r4[0]};
    const std::uint32_t r2[2] = {r4[0], r4[1]};
    void* row = tile[rows[lane]];
    if constexpr (kStore == Store::kX1) ptx::stmatrix_x1(row, r1);
    if constexpr (kStore == Store::kX2) ptx::stmatrix_x2(row, r2);
    if constexpr (kStore == Store::kX4) ptx::stmatrix_x4(row, r4);
    if constexpr (kStore == Store::kX1Trans) ptx::stmatrix_x1_trans(row, r1);
    if constexpr (kStore == Store::kX2Trans) ptx::stmatrix_x2_trans(row, r2);
    if constexpr (kStore == Store::kX4Trans) ptx::stmatrix_x4_trans(row, r4);
    __syncwarp();
    for (unsigned i = lane; i < 32 * 8; i += 32) out[i] = tile[i / 8][i % 8];
  }
}

template <Store kStore>
void check_stmatrix(int matrices, bool transposed) {
  std::vector<int> rows(32);
  std::iota(rows.begin(), rows.end(), 0);
  Random random(static_cast<std::uint64_t>(matrices));
  for (int i = 31; i > 0; --i)
    std::swap(rows[static_cast<std::size_t>(i)], rows[static_cast<std::size_t>(random.below(i + 1))]);
  const DeviceArray<int> device_rows(rows);
  const DeviceArray<std::uint16_t> out(32 * 8);
  ptx::launch(stmatrix_kernel<kStore>, kOneWarp, nullptr, device_rows.get(), out.get());
  std::vector<std::uint16_t> expected(32 * 8, 0xffff);
  for (int lane = 0; lane < 32; ++lane) {
    for (int matrix = 0; matrix < matrices; ++matrix) {
      for (int half = 0; half < 2; ++half) {
        const int i = lane / 4;
        const int j = 2 * (lane % 4) + half;
        const int row = transposed ? j : i;
        const int column = transposed ? i : j;
        const int place = rows[static_cast<std::size_t>(8 * matrix + row)] * 8 + column;
        expected[static_cast<std::size_t>(place)] =
            static_cast<std::uint16_t>(2 * (lane * 4 + matrix) + half);
      }
    }
  }
  CHECK(out.read() == expected);
}

TEST_CASE("stmatrix: which lane's element goes where, to rows anywhere") {
  if (gpu_test::skip_without_hopper()) return;
  check_stmatrix<Store::kX1>(1, false);
  check_stmatrix<Store::kX2>(2, false);
  check_stmatrix<Store::kX4>(4, false);
  check_stmatrix<Store::kX1Trans>(1, true);
  check_stmatrix<Store::kX2Trans>(2, true);
  check_stmatrix<Store::kX4Trans>(4, true);
}

// ---- mbarrier ----

constexpr int kPhases = 6;

/// For every phase: what test_wait says of either parity before and after the arrivals.
__global__ void mbarrier_phase_kernel(std::uint32_t* out) {
  if constexpr (ptx::kHasWgmma) {
    __shared__ std::uint64_t barrier;
    if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 32);
    __syncwarp();
    for (int phase = 0; phase < kPhases; ++phase) {
      if (threadIdx.x == 0) {
        out[phase * 4 + 0] = ptx::mbarrier_test_wait_parity(&barrier, 0);
        out[phase * 4 + 1] = ptx::mbarrier_test_wait_parity(&barrier, 1);
      }
      __syncwarp();
      ptx::mbarrier_arrive(&barrier);
      wait_for(&barrier, static_cast<std::uint32_t>(phase % 2));
      if (threadIdx.x == 0) {
        out[phase * 4 + 2] = ptx::mbarrier_test_wait_parity(&barrier, 0);
        out[phase * 4 + 3] = ptx::mbarrier_test_wait_parity(&barrier, 1);
      }
      __syncwarp();
    }
    if (threadIdx.x == 0) ptx::mbarrier_inval(&barrier);
  }
}

/// What was pending before each of two arrivals, and 1 behind a phase that no copy has ended.
__global__ void mbarrier_by_hand_kernel(std::uint32_t* out) {
  if constexpr (ptx::kHasWgmma) {
    __shared__ std::uint64_t barrier;
    if (threadIdx.x != 0) return;
    ptx::mbarrier_init(&barrier, 4);
    out[0] = ptx::mbarrier_pending_count(ptx::mbarrier_arrive_no_complete(&barrier, 2));
    out[1] = ptx::mbarrier_pending_count(ptx::mbarrier_arrive_no_complete(&barrier, 1));
    ptx::mbarrier_arrive_expect_tx(&barrier, 64);
    ptx::mbarrier_complete_tx(&barrier, 48);
    ptx::mbarrier_complete_tx(&barrier, 16);
    wait_for(&barrier, 0);
    out[2] = 1;
  }
}

TEST_CASE("mbarrier: pending_count is that of before, and complete_tx ends a phase") {
  if (gpu_test::skip_without_hopper()) return;
  const DeviceArray<std::uint32_t> out(3);
  ptx::launch(mbarrier_by_hand_kernel, kOneWarp, nullptr, out.get());
  CHECK(out.read() == std::vector<std::uint32_t>{4, 2, 1});
}

TEST_CASE("mbarrier: the parity of the last complete phase passes, a fresh barrier passes parity 1") {
  if (gpu_test::skip_without_hopper()) return;
  const DeviceArray<std::uint32_t> out(kPhases * 4);
  ptx::launch(mbarrier_phase_kernel, kOneWarp, nullptr, out.get());
  const auto result = out.read();
  for (std::uint32_t phase = 0; phase < kPhases; ++phase) {
    INFO("phase " << phase);
    const std::uint32_t even = phase % 2;  // before: the phase before this one is complete
    CHECK(result[phase * 4 + 0] == even);
    CHECK(result[phase * 4 + 1] == 1 - even);
    CHECK(result[phase * 4 + 2] == 1 - even);
    CHECK(result[phase * 4 + 3] == even);
  }
}

__global__ void cp_async_mbarrier_kernel(const std::uint32_t* from, std::uint32_t* to) {
  if constexpr (ptx::kHasWgmma) {
    __shared__ std::uint64_t barrier;
    __shared__ std::uint32_t buffer[32];
    if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 32);
    __syncwarp();
    ptx::cp_async_ca_4(&buffer[threadIdx.x], from + threadIdx.x);
    ptx::cp_async_mbarrier_arrive_noinc(&barrier);
    wait_for(&barrier, 0);
    to[threadIdx.x] = buffer[31 - threadIdx.x];
  }
}

TEST_CASE("cp.async.mbarrier.arrive.noinc: the barrier completes with the copies") {
  if (gpu_test::skip_without_hopper()) return;
  std::vector<std::uint32_t> values(32);
  std::iota(values.begin(), values.end(), 500u);
  const DeviceArray<std::uint32_t> from(values);
  const DeviceArray<std::uint32_t> to(32);
  ptx::launch(cp_async_mbarrier_kernel, kOneWarp, nullptr, from.get(), to.get());
  std::reverse(values.begin(), values.end());
  CHECK(to.read() == values);
}

// ---- TMA loads ----

struct alignas(1024) TmaTile {
  unsigned char bytes[64 * 1024];
  std::uint64_t barrier;
};

struct Coordinates {
  int c[5] = {0, 0, 0, 0, 0};
};

template <int kRank>
__device__ void tma_load(void* shared, const ptx::TensorMap* map, const Coordinates& at,
                         std::uint64_t* barrier) {
  const int* c = at.c;
  if constexpr (kRank == 1) ptx::cp_async_bulk_tensor_1d(shared, map, c[0], barrier);
  if constexpr (kRank == 2) ptx::cp_async_bulk_tensor_2d(shared, map, c[0], c[1], barrier);
  if constexpr (kRank == 3) ptx::cp_async_bulk_tensor_3d(shared, map, c[0], c[1], c[2], barrier);
  if constexpr (kRank == 4) ptx::cp_async_bulk_tensor_4d(shared, map, c[0], c[1], c[2], c[3], barrier);
  if constexpr (kRank == 5) ptx::cp_async_bulk_tensor_5d(shared, map, c[0], c[1], c[2], c[3], c[4], barrier);
}

/// Loads one box and copies shared memory out as it is.
template <int kRank>
__global__ void tma_load_kernel(const __grid_constant__ ptx::TensorMap map, Coordinates at,
                                std::uint32_t bytes, unsigned char* out) {
  if constexpr (ptx::kHasWgmma) {
    TmaTile& tile = ptx::dynamic_shared<TmaTile>();
    if (threadIdx.x == 0) {
      ptx::prefetch_tensormap(&map);
      ptx::mbarrier_init(&tile.barrier, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      // Half of the bytes with the arrival and half before it: both ways of expecting are used.
      ptx::mbarrier_expect_tx(&tile.barrier, bytes / 2);
      tma_load<kRank>(tile.bytes, &map, at, &tile.barrier);
      ptx::mbarrier_arrive_expect_tx(&tile.barrier, bytes - bytes / 2);
    }
    wait_for(&tile.barrier, 0);
    for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = tile.bytes[i];
  }
}

constexpr ptx::LaunchShape kTmaShape{
    .grid = {1}, .block = {128}, .cluster = {}, .shared_bytes = sizeof(TmaTile)};

/// The value of the tensor at an index, as raw bytes of the element; elements outside are 0.
struct HostTensor {
  ptx::TensorMapSpec spec;
  std::vector<unsigned char> memory;

  explicit HostTensor(ptx::TensorMapSpec description) : spec(description) {
    std::uint64_t bytes =
        spec.rank == 1 ? spec.extent[0] * element() : spec.stride_bytes[last()] * spec.extent[last()];
    memory.resize(bytes);
    Random random(bytes);
    for (unsigned char& byte : memory) byte = static_cast<unsigned char>(1 + random.below(255));
  }
  std::size_t last() const { return static_cast<std::size_t>(spec.rank - 1); }
  std::uint64_t element() const { return static_cast<std::uint64_t>(ptx::element_bytes(spec.element)); }

  /// Where the element is in memory, or -1 outside.
  std::int64_t place(const Coordinates& at) const {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d <= last(); ++d) {
      if (at.c[d] < 0 || static_cast<std::uint64_t>(at.c[d]) >= spec.extent[d]) return -1;
      const std::uint64_t stride = d == 0 ? element() : spec.stride_bytes[d];
      offset += static_cast<std::int64_t>(stride) * at.c[d];
    }
    return offset;
  }

  /// Calls body(index of the element in the box, its coordinates in the tensor), innermost dimension first.
  template <typename Body>
  void for_box(const Coordinates& at, const Body& body) const {
    const std::uint32_t count = ptx::box_bytes(spec) / static_cast<std::uint32_t>(element());
    for (std::uint32_t i = 0; i < count; ++i) {
      Coordinates here = at;
      std::uint32_t rest = i;
      for (std::size_t d = 0; d <= last(); ++d) {
        here.c[d] += static_cast<int>(rest % spec.box[d]);
        rest /= spec.box[d];
      }
      body(i, here);
    }
  }

  /// What shared memory holds after a load.
  std::vector<unsigned char> loaded(const Coordinates& at) const {
    std::vector<unsigned char> tile(ptx::box_bytes(spec));
    for_box(at, [&](std::uint32_t i, const Coordinates& here) {
      const std::int64_t from = place(here);
      for (std::uint32_t byte = 0; byte < element(); ++byte) {
        const std::uint32_t to = i * static_cast<std::uint32_t>(element()) + byte;
        tile[ptx::swizzled(to, spec.swizzle)] = from < 0 ? 0 : memory[static_cast<std::size_t>(from) + byte];
      }
    });
    return tile;
  }
};

template <int kRank>
void check_load(const ptx::TensorMapSpec& description, const std::vector<Coordinates>& places) {
  HostTensor tensor(description);
  const DeviceArray<unsigned char> memory(tensor.memory);
  tensor.spec.base = memory.get();
  const ptx::TensorMap map = ptx::make_tensor_map(tensor.spec);
  const std::uint32_t bytes = ptx::box_bytes(tensor.spec);
  for (const Coordinates& at : places) {
    const DeviceArray<unsigned char> out(bytes);
    ptx::launch(tma_load_kernel<kRank>, kTmaShape, nullptr, map, at, bytes, out.get());
    const auto result = out.read();
    const auto expected = tensor.loaded(at);
    const auto difference = std::mismatch(result.begin(), result.end(), expected.begin());
    INFO("rank " << kRank << " at " << at.c[0] << ", " << at.c[1] << ", " << at.c[2]
                 << ", first difference at byte " << difference.first - result.begin());
    CHECK(difference.first == result.end());
  }
}

/// One link of a chain: every word one more, on what the link before has left.
__global__ void add_one_kernel(int* words) {
  if constexpr (ptx::kHasWgmma) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
    words[blockIdx.x * blockDim.x + threadIdx.x] += 1;
  }
}

TEST_CASE("griddepcontrol: a chain of dependent launches sees what the one before has written") {
  if (gpu_test::skip_without_hopper()) return;
  constexpr int kLinks = 200;
  const DeviceArray<int> words(std::vector<int>(512 * 64, 0));
  for (int i = 0; i < kLinks; ++i)
    ptx::launch(add_one_kernel, {.grid = {512}, .block = {64}, .dependent = true}, nullptr, words.get());
  for (const int word : words.read()) REQUIRE(word == kLinks);
}

/// Loads one box with a cache hint and copies shared memory out as it is.
constexpr int kChangedRows = 8;
constexpr int kChangedColumns = 32;

/// Makes a map of `pattern` for every second row of `rows`, loads its box and returns it. Prefetches on the
/// way.
__global__ void changed_map_kernel(const __grid_constant__ ptx::TensorMap pattern, bool in_global,
                                   ptx::TensorMap* map, const std::uint32_t* rows, std::uint32_t count,
                                   std::uint32_t* out) {
  if constexpr (ptx::kHasWgmma) {
    __shared__ alignas(128) std::uint32_t tile[kChangedRows * kChangedColumns];
    __shared__ alignas(128) ptx::TensorMap own;
    __shared__ std::uint64_t full;
    constexpr std::uint64_t kStride = 2 * kChangedColumns * sizeof(std::uint32_t);
    const unsigned lane = threadIdx.x;
    if (lane == 0) {
      ptx::mbarrier_init(&full, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    if (lane == 0 && in_global) {
      *map = pattern;
      ptx::tensormap_replace_global_address_global(map, rows);
      ptx::tensormap_replace_global_dim_global<1>(map, count);
      ptx::tensormap_replace_global_stride_global<0>(map, kStride);
      ptx::fence_proxy_tensormap_release_gpu();
    } else if (lane == 0) {
      own = pattern;
      ptx::tensormap_replace_global_address_shared(&own, rows);
      ptx::tensormap_replace_global_dim_shared<1>(&own, count);
      ptx::tensormap_replace_global_stride_shared<0>(&own, kStride);
    }
    __syncwarp();
    if (!in_global) ptx::tensormap_cp_fenceproxy_release_gpu(map, &own);
    ptx::prefetch_global_l1(rows + lane);
    ptx::prefetch_global_l2(rows + lane);
    ptx::prefetch_global_l2_evict_last(rows + lane);
    ptx::prefetchu_l1(rows + lane);
    if (lane == 0) {
      ptx::fence_proxy_tensormap_acquire_gpu(map);
      ptx::cp_async_bulk_prefetch_l2(rows, 128);
      ptx::cp_async_bulk_prefetch_tensor_2d_l2(map, 0, 0);
      ptx::mbarrier_arrive_expect_tx(&full, sizeof tile);
      ptx::cp_async_bulk_tensor_2d(tile, map, 0, 0, &full);
    }
    wait_for(&full, 0);
    for (unsigned i = lane; i < kChangedRows * kChangedColumns; i += 32) out[i] = tile[i];
  }
}

TEST_CASE("tensormap.replace: a map that was changed, in shared and in global memory, moves other rows") {
  if (gpu_test::skip_without_hopper()) return;
  std::vector<std::uint32_t> words(64 * kChangedColumns);
  std::iota(words.begin(), words.end(), 1u);
  const DeviceArray<std::uint32_t> rows(words);
  ptx::TensorMapSpec spec;
  spec.base = rows.get();
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 2;
  spec.extent = {kChangedColumns, 1};
  spec.stride_bytes = {0, kChangedColumns * sizeof(std::uint32_t)};
  spec.box = {kChangedColumns, kChangedRows};
  const ptx::TensorMap pattern = ptx::make_tensor_map(spec);
  constexpr std::size_t kFirst = 7;
  constexpr std::uint32_t kCount = 5;
  std::vector<std::uint32_t> expected(kChangedRows * kChangedColumns, 0);
  for (std::size_t i = 0; i < kCount * kChangedColumns; ++i)
    expected[i] = words[(kFirst + 2 * (i / kChangedColumns)) * kChangedColumns + i % kChangedColumns];
  for (const bool in_global : {false, true}) {
    INFO("changed in " << (in_global ? "global" : "shared") << " memory");
    const DeviceArray<ptx::TensorMap> map(1);
    const DeviceArray<std::uint32_t> out(expected.size());
    const std::uint32_t* first = rows.get() + kFirst * kChangedColumns;
    ptx::launch(changed_map_kernel, kOneWarp, nullptr, pattern, in_global, map.get(), first, kCount,
                out.get());
    CHECK(out.read() == expected);
  }
}

__global__ void tma_load_with_hint_kernel(const __grid_constant__ ptx::TensorMap map, Coordinates at,
                                          std::uint32_t bytes, unsigned char* out) {
  if constexpr (ptx::kHasWgmma) {
    TmaTile& tile = ptx::dynamic_shared<TmaTile>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&tile.barrier, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const std::uint64_t policy = ptx::createpolicy_fractional_l2_evict_first();
      ptx::mbarrier_arrive_expect_tx(&tile.barrier, bytes);
      ptx::cp_async_bulk_tensor_2d_cache_hint(tile.bytes, &map, at.c[0], at.c[1], &tile.barrier, policy);
    }
    wait_for(&tile.barrier, 0);
    for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = tile.bytes[i];
  }
}

TEST_CASE("TMA load with a cache hint: moves what one without moves") {
  if (gpu_test::skip_without_hopper()) return;
  ptx::TensorMapSpec spec;
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 2;
  spec.extent = {40, 30};
  spec.stride_bytes = {0, 48 * 4};
  spec.box = {32, 8};
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k128B}) {
    spec.swizzle = swizzle;
    HostTensor tensor(spec);
    const DeviceArray<unsigned char> memory(tensor.memory);
    tensor.spec.base = memory.get();
    const ptx::TensorMap map = ptx::make_tensor_map(tensor.spec);
    const std::uint32_t bytes = ptx::box_bytes(tensor.spec);
    for (const Coordinates& at : {Coordinates{{0, 0}}, Coordinates{{4, 5}}, Coordinates{{32, 28}}}) {
      const DeviceArray<unsigned char> out(bytes);
      ptx::launch(tma_load_with_hint_kernel, kTmaShape, nullptr, map, at, bytes, out.get());
      INFO("at " << at.c[0] << ", " << at.c[1]);
      CHECK(out.read() == tensor.loaded(at));
    }
  }
}

/// Copies bytes to one place in shared memory full of 0xee, and shared memory out as it is then.
__global__ void bulk_copy_kernel(const unsigned char* source, std::uint32_t bytes, std::uint32_t shift,
                                 std::uint32_t footprint, unsigned char* out) {
  if constexpr (ptx::kHasWgmma) {
    TmaTile& tile = ptx::dynamic_shared<TmaTile>();
    for (std::uint32_t i = threadIdx.x; i < footprint; i += blockDim.x) tile.bytes[i] = 0xee;
    ptx::fence_proxy_async_shared_cta();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&tile.barrier, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::mbarrier_arrive_expect_tx(&tile.barrier, bytes);
      ptx::cp_async_bulk(tile.bytes + shift, source, bytes, &tile.barrier);
    }
    wait_for(&tile.barrier, 0);
    for (std::uint32_t i = threadIdx.x; i < footprint; i += blockDim.x) out[i] = tile.bytes[i];
  }
}

TEST_CASE("bulk copy: moves its bytes from and to any multiple of 16, and nothing else") {
  if (gpu_test::skip_without_hopper()) return;
  constexpr std::uint32_t kFootprint = 64 * 1024;
  std::vector<unsigned char> bytes(kFootprint);
  Random random(5);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.below(256));
  const DeviceArray<unsigned char> source(bytes);
  struct Copy {
    std::uint32_t from, bytes, shift;
  };
  for (const Copy& copy : {Copy{0, 16, 0}, Copy{16, 48, 128}, Copy{48, 4096, 1024}, Copy{0, 32768, 16},
                           Copy{kFootprint - 1008, 1008, kFootprint - 1008}, Copy{0, kFootprint, 0}}) {
    const DeviceArray<unsigned char> out(kFootprint);
    ptx::launch(bulk_copy_kernel, kTmaShape, nullptr, source.get() + copy.from, copy.bytes, copy.shift,
                kFootprint, out.get());
    std::vector<unsigned char> expected(kFootprint, 0xee);
    std::copy_n(bytes.begin() + copy.from, copy.bytes, expected.begin() + copy.shift);
    INFO(copy.bytes << " bytes from number " << copy.from << " to number " << copy.shift);
    CHECK(out.read() == expected);
  }
}

/// Passes words on through global memory: CTA 0 writes them, CTA 1 copies them.
__global__ void bulk_copy_of_written_kernel(std::uint32_t* words, std::uint32_t count, std::uint32_t* flag,
                                            std::uint32_t* out) {
  if constexpr (ptx::kHasWgmma) {
    TmaTile& tile = ptx::dynamic_shared<TmaTile>();
    if (blockIdx.x == 0) {
      for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) ptx::st_global(words + i, 3 * i + 1);
      ptx::fence_proxy_async_global();
      __syncthreads();
      if (threadIdx.x == 0) ptx::st_release_gpu(flag, 1);
      return;
    }
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&tile.barrier, 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      while (ptx::ld_acquire_gpu(flag) == 0) {
      }
      ptx::mbarrier_arrive_expect_tx(&tile.barrier, 4 * count);
      ptx::cp_async_bulk(tile.bytes, words, 4 * count, &tile.barrier);
    }
    wait_for(&tile.barrier, 0);
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x)
      out[i] = reinterpret_cast<const std::uint32_t*>(tile.bytes)[i];
  }
}

TEST_CASE("bulk copy: of what another CTA wrote, fenced, behind a flag") {
  if (gpu_test::skip_without_hopper()) return;
  constexpr std::uint32_t kCount = 8192;
  ptx::LaunchShape two = kTmaShape;
  two.grid = {2};
  two.co_resident = true;
  std::vector<std::uint32_t> expected(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) expected[i] = 3 * i + 1;
  const DeviceArray<std::uint32_t> words(kCount);
  const DeviceArray<std::uint32_t> flag(std::vector<std::uint32_t>(1, 0));
  const DeviceArray<std::uint32_t> out(kCount);
  ptx::launch(bulk_copy_of_written_kernel, two, nullptr, words.get(), kCount, flag.get(), out.get());
  CHECK(out.read() == expected);
}

TEST_CASE("TMA load: every rank, boxes inside and over every edge") {
  if (gpu_test::skip_without_hopper()) return;
  ptx::TensorMapSpec spec;
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 1;
  spec.extent = {100};
  spec.box = {32};
  check_load<1>(spec, {{{0}}, {{8}}, {{80}}, {{-4}}, {{200}}});

  spec.rank = 2;
  spec.extent = {40, 30};
  spec.stride_bytes = {0, 48 * 4};
  spec.box = {16, 8};
  check_load<2>(spec, {{{0, 0}}, {{4, 5}}, {{32, 28}}, {{-4, -3}}, {{40, 0}}});

  spec.rank = 3;
  spec.extent = {8, 6, 5};
  spec.stride_bytes = {0, 8 * 4, 6 * 8 * 4};
  spec.box = {4, 4, 2};
  check_load<3>(spec, {{{0, 0, 0}}, {{4, 3, 4}}, {{-4, -1, 2}}});

  spec.rank = 4;
  spec.extent = {8, 6, 5, 3};
  spec.stride_bytes = {0, 8 * 4, 6 * 8 * 4, 5 * 6 * 8 * 4};
  spec.box = {4, 4, 2, 2};
  check_load<4>(spec, {{{0, 0, 0, 0}}, {{4, 3, 4, 2}}, {{-4, -1, 2, 1}}});

  spec.rank = 5;
  spec.extent = {8, 6, 5, 3, 4};
  spec.stride_bytes = {0, 8 * 4, 6 * 8 * 4, 5 * 6 * 8 * 4, 3 * 5 * 6 * 8 * 4};
  spec.box = {4, 4, 2, 2, 3};
  check_load<5>(spec, {{{0, 0, 0, 0, 0}}, {{4, 3, 4, 2, 3}}, {{-4, -1, 2, 1, -2}}});
}

/// A column of pixels in im2col mode.
template <int kRank>
__global__ void im2col_load_kernel(const __grid_constant__ ptx::TensorMap map, Coordinates at,
                                   Coordinates offset, std::uint32_t bytes, unsigned char* to) {
  if constexpr (ptx::kHasWgmma) {
    TmaTile& tile = ptx::dynamic_shared<TmaTile>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&tile.barrier, 1);
      ptx::fence_mbarrier_init_release_cluster();
      ptx::mbarrier_arrive_expect_tx(&tile.barrier, bytes);
      const auto w = static_cast<std::uint16_t>(offset.c[1]);
      const auto h = static_cast<std::uint16_t>(offset.c[2]);
      const auto d = static_cast<std::uint16_t>(offset.c[3]);
      if constexpr (kRank == 3)
        ptx::cp_async_bulk_tensor_3d_im2col(tile.bytes, &map, at.c[0], at.c[1], at.c[2], &tile.barrier, w);
      if constexpr (kRank == 4)
        ptx::cp_async_bulk_tensor_4d_im2col(tile.bytes, &map, at.c[0], at.c[1], at.c[2], at.c[3],
                                            &tile.barrier, w, h);
      if constexpr (kRank == 5)
        ptx::cp_async_bulk_tensor_5d_im2col(tile.bytes, &map, at.c[0], at.c[1], at.c[2], at.c[3], at.c[4],
                                            &tile.barrier, w, h, d);
    }
    __syncthreads();
    wait_for(&tile.barrier, 0);
    for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) to[i] = tile.bytes[i];
  }
}

/// Against pixel after pixel of the bounding box, W first.
template <int kRank>
void check_im2col(const ptx::TensorMapSpec& description, const Coordinates& at, const Coordinates& offset) {
  HostTensor tensor(description);
  const DeviceArray<unsigned char> memory(tensor.memory);
  tensor.spec.base = memory.get();
  const ptx::TensorMapSpec& spec = tensor.spec;
  const std::uint32_t bytes = ptx::box_bytes(spec);
  const DeviceArray<unsigned char> out(bytes);
  ptx::launch(im2col_load_kernel<kRank>, kTmaShape, nullptr, ptx::make_tensor_map(spec), at, offset, bytes,
              out.get());
  std::vector<unsigned char> expected(bytes);
  const std::uint32_t element = tensor.element();
  Coordinates pixel = at;
  for (std::uint32_t i = 0; i < spec.im2col.pixels; ++i) {
    for (std::uint32_t c = 0; c < spec.box[0]; ++c) {
      Coordinates here = pixel;
      here.c[0] += static_cast<int>(c);
      for (int d = 1; d < kRank - 1; ++d) here.c[d] += offset.c[d];
      const std::int64_t from = tensor.place(here);
      for (std::uint32_t byte = 0; byte < element; ++byte) {
        if (from >= 0)
          expected[(i * spec.box[0] + c) * element + byte] =
              tensor.memory[static_cast<std::size_t>(from) + byte];
      }
    }
    int d = 1;
    for (; d < kRank - 1; ++d) {
      const auto k = static_cast<std::size_t>(d - 1);
      pixel.c[d] += static_cast<int>(spec.im2col.step[k]);
      if (pixel.c[d] <= static_cast<int>(spec.extent[k + 1]) - 1 + spec.im2col.upper[k]) break;
      pixel.c[d] = spec.im2col.lower[k];
    }
    if (d == kRank - 1) ++pixel.c[d];
  }
  INFO("rank " << kRank);
  CHECK(out.read() == expected);
}

TEST_CASE("TMA load in im2col mode: pixels, padding, steps and offsets") {
  if (gpu_test::skip_without_hopper()) return;
  ptx::TensorMapSpec spec;
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 3;
  spec.extent = {16, 10, 3};
  spec.stride_bytes = {0, 16 * 4, 10 * 16 * 4};
  spec.box = {8, 24, 1, 1, 1};
  spec.im2col.pixels = 24;
  spec.im2col.lower = {-1, 0, 0};
  spec.im2col.upper = {-1, 0, 0};
  check_im2col<3>(spec, {{0, -1, 0}}, {{0, 0}});
  check_im2col<3>(spec, {{8, 3, 1}}, {{0, 2}});
  spec.im2col.step = {2, 1, 1};
  check_im2col<3>(spec, {{0, 1, 0}}, {{0, 1}});

  spec.rank = 4;
  spec.extent = {16, 9, 7, 2};
  spec.stride_bytes = {0, 16 * 4, 9 * 16 * 4, 7 * 9 * 16 * 4};
  spec.im2col.lower = {-1, -1, 0};
  spec.im2col.upper = {-1, -1, 0};
  spec.im2col.step = {1, 1, 1};
  check_im2col<4>(spec, {{0, -1, -1, 0}}, {{0, 0, 0}});
  check_im2col<4>(spec, {{8, 4, 3, 1}}, {{0, 2, 1}});
  spec.im2col.step = {2, 3, 1};
  check_im2col<4>(spec, {{0, -1, 2, 0}}, {{0, 1, 2}});

  spec.rank = 5;
  spec.extent = {16, 5, 4, 6, 2};
  spec.stride_bytes = {0, 16 * 4, 5 * 16 * 4, 4 * 5 * 16 * 4, 6 * 4 * 5 * 16 * 4};
  spec.im2col.lower = {0, -1, -1};
  spec.im2col.upper = {-1, -1, -1};
  spec.im2col.step = {1, 1, 2};
  check_im2col<5>(spec, {{0, 0, -1, -1, 0}}, {{0, 0, 0, 0}});
  check_im2col<5>(spec, {{8, 2, 1, 1, 0}}, {{0, 1, 2, 2}});
}

TEST_CASE("TMA load: the swizzles put every byte where ptx::swizzled says") {
  if (gpu_test::skip_without_hopper()) return;
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    INFO("swizzle span " << ptx::span_bytes(swizzle));
    const int columns = swizzle == Swizzle::kNone ? 64 : ptx::span_bytes(swizzle) / 2;
    check_load<2>(ptx::matrix_spec(nullptr, 100, 200, 64, columns, swizzle),
                  {{{0, 0}}, {{64, 32}}, {{176, 90}}, {{-8, -5}}, {{16, 1}}});
    check_load<2>(ptx::matrix_spec(nullptr, 300, 72, 256, columns, swizzle), {{{0, 0}}, {{8, 60}}});
  }
}

// ---- TMA stores ----

template <int kRank>
__global__ void tma_store_kernel(const __grid_constant__ ptx::TensorMap map, Coordinates at,
                                 std::uint32_t bytes, const unsigned char* from) {
  if constexpr (ptx::kHasWgmma) {
    TmaTile& tile = ptx::dynamic_shared<TmaTile>();
    for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) tile.bytes[i] = from[i];
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    if (threadIdx.x == 0) {
      if constexpr (kRank == 2) ptx::cp_async_bulk_tensor_2d_store(&map, at.c[0], at.c[1], tile.bytes);
      if constexpr (kRank == 3)
        ptx::cp_async_bulk_tensor_3d_store(&map, at.c[0], at.c[1], at.c[2], tile.bytes);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read<0>();
      ptx::cp_async_bulk_wait_group<0>();
    }
    __syncthreads();
  }
}

template <int kRank>
void check_store(const ptx::TensorMapSpec& description, const std::vector<Coordinates>& places) {
  HostTensor tensor(description);
  const std::uint32_t bytes = ptx::box_bytes(tensor.spec);
  std::vector<unsigned char> tile(bytes);
  Random random(bytes + 1);
  for (unsigned char& byte : tile) byte = static_cast<unsigned char>(random.next());
  const DeviceArray<unsigned char> from(tile);
  for (const Coordinates& at : places) {
    const DeviceArray<unsigned char> memory(tensor.memory);
    tensor.spec.base = memory.get();
    ptx::launch(tma_store_kernel<kRank>, kTmaShape, nullptr, ptx::make_tensor_map(tensor.spec), at, bytes,
                from.get());
    auto expected = tensor.memory;
    tensor.for_box(at, [&](std::uint32_t i, const Coordinates& here) {
      const std::int64_t to = tensor.place(here);
      if (to < 0) return;
      for (std::uint32_t byte = 0; byte < tensor.element(); ++byte) {
        expected[static_cast<std::size_t>(to) + byte] =
            tile[ptx::swizzled(i * static_cast<std::uint32_t>(tensor.element()) + byte, tensor.spec.swizzle)];
      }
    });
    INFO("rank " << kRank << " at " << at.c[0] << ", " << at.c[1]);
    CHECK(memory.read() == expected);
  }
}

TEST_CASE("TMA store: writes what lies inside the tensor and nothing else, padding between rows included") {
  if (gpu_test::skip_without_hopper()) return;
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    const int columns = swizzle == Swizzle::kNone ? 64 : ptx::span_bytes(swizzle) / 2;
    ptx::TensorMapSpec spec = ptx::matrix_spec(nullptr, 100, 104, 64, columns, swizzle);
    spec.stride_bytes[1] = 112 * 2;
    check_store<2>(spec, {{{0, 0}}, {{24, 50}}, {{88, 90}}, {{200, 0}}});
  }
  ptx::TensorMapSpec spec;
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 3;
  spec.extent = {8, 6, 5};
  spec.stride_bytes = {0, 12 * 4, 7 * 12 * 4};
  spec.box = {4, 4, 2};
  check_store<3>(spec, {{{0, 0, 0}}, {{4, 3, 4}}, {{0, 5, 3}}});
}

// ---- clusters ----

/// out[cta]: rank, size, and what the neighbour wrote before it arrived here.
__global__ void cluster_kernel(std::uint32_t* message, std::uint32_t* out) {
  if constexpr (ptx::kHasWgmma) {
    __shared__ std::uint64_t barrier;
    const std::uint32_t rank = ptx::cluster_ctarank();
    const std::uint32_t size = ptx::cluster_nctarank();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&barrier, 1 + 1);
      ptx::fence_mbarrier_init_release_cluster();
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (threadIdx.x == 0) {
      const std::uint32_t neighbour = (rank + 1) % size;
      const std::uint32_t remote = ptx::mapa(ptx::shared_address(&barrier), neighbour);
      message[blockIdx.x] = 1000 + blockIdx.x;
      ptx::mbarrier_arrive_release_cluster(remote);
      ptx::mbarrier_arrive_cluster(remote);
      while (!ptx::mbarrier_try_wait_parity_cluster(&barrier, 0)) {
      }
      const std::uint32_t first = blockIdx.x - rank;
      out[blockIdx.x * 3 + 0] = rank;
      out[blockIdx.x * 3 + 1] = size;
      out[blockIdx.x * 3 + 2] = message[first + (rank + size - 1) % size];
    }
    // No CTA exits while a neighbour may still arrive here.
    ptx::fence_acq_rel_cluster();
    ptx::barrier_cluster_arrive_relaxed();
    ptx::barrier_cluster_wait();
  }
}

TEST_CASE("clusters: rank, size, mapa, remote arrival and the cluster barrier") {
  if (gpu_test::skip_without_hopper()) return;
  for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
    constexpr std::uint32_t kCtas = 16;
    const DeviceArray<std::uint32_t> message(kCtas);
    const DeviceArray<std::uint32_t> out(kCtas * 3);
    ptx::launch(cluster_kernel, {.grid = {kCtas}, .block = {64}, .cluster = {size}}, nullptr, message.get(),
                out.get());
    const auto result = out.read();
    for (std::uint32_t cta = 0; cta < kCtas; ++cta) {
      const std::uint32_t rank = cta % size;
      INFO("cluster of " << size << ", CTA " << cta);
      CHECK(result[cta * 3] == rank);
      CHECK(result[cta * 3 + 1] == size);
      CHECK(result[cta * 3 + 2] == 1000 + cta - rank + (rank + size - 1) % size);
    }
  }
}

/// Every thread stores 16 bytes into every other CTA of its cluster, in two phases; out: what came, of each
/// source.
__global__ void st_async_kernel(float4* out) {
  if constexpr (ptx::kHasWgmma) {
    __shared__ alignas(16) float4 got[8][64];  // [source][thread]
    __shared__ std::uint64_t arrived;
    const std::uint32_t rank = ptx::cluster_ctarank();
    const std::uint32_t size = ptx::cluster_nctarank();
    const auto bytes = static_cast<std::uint32_t>((size - 1) * blockDim.x * sizeof(float4));
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&arrived, 1);
      ptx::fence_mbarrier_init_release_cluster();
      ptx::mbarrier_arrive_expect_tx(&arrived, bytes);
    }
    for (std::uint32_t phase = 0; phase < 2; ++phase) {
      ptx::barrier_cluster_arrive();
      ptx::barrier_cluster_wait();
      for (std::uint32_t other = 0; other < size; ++other) {
        if (other == rank) continue;
        const auto value = static_cast<float>(blockIdx.x * 1000 + threadIdx.x);
        ptx::st_async(ptx::mapa(ptx::shared_address(&got[rank][threadIdx.x]), other),
                      make_float4(value, static_cast<float>(phase), static_cast<float>(other), -value),
                      ptx::mapa(ptx::shared_address(&arrived), other));
      }
      ptx::mbarrier_wait_parity_cluster(&arrived, phase, {"consumer", "arrived", 0, 0});
      for (std::uint32_t source = 0; source < size; ++source) {
        if (source != rank)
          out[((blockIdx.x * 2 + phase) * 8 + source) * blockDim.x + threadIdx.x] =
              ptx::ld_shared(&got[source][threadIdx.x]);
      }
      __syncthreads();
      if (phase == 0 && threadIdx.x == 0) ptx::mbarrier_arrive_expect_tx(&arrived, bytes);
    }
  }
}

TEST_CASE("st.async: what all CTAs of a cluster store is there behind the wait, phase after phase") {
  if (gpu_test::skip_without_hopper()) return;
  for (const std::uint32_t size : {2u, 3u, 5u, 8u}) {
    const std::uint32_t ctas = 2 * size;
    constexpr std::uint32_t kThreads = 64;
    const DeviceArray<float4> out(ctas * 2 * 8 * kThreads);
    ptx::launch(st_async_kernel, {.grid = {ctas}, .block = {kThreads}, .cluster = {size}}, nullptr,
                out.get());
    const auto result = out.read();
    int wrong = 0;
    for (std::uint32_t cta = 0; cta < ctas; ++cta) {
      for (std::uint32_t phase = 0; phase < 2; ++phase) {
        for (std::uint32_t source = 0; source < size; ++source) {
          if (source == cta % size) continue;
          for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
            const float4& got = result[((cta * 2 + phase) * 8 + source) * kThreads + thread];
            const auto value = static_cast<float>((cta - cta % size + source) * 1000 + thread);
            wrong += got.x == value && got.y == static_cast<float>(phase) &&
                             got.z == static_cast<float>(cta % size) && got.w == -value
                         ? 0
                         : 1;
          }
        }
      }
    }
    INFO("clusters of " << size);
    CHECK(wrong == 0);
  }
}

/// CTA 0 loads one box into both CTAs of its cluster.
template <int kRank, bool kHint>
__global__ void multicast_kernel(const __grid_constant__ ptx::TensorMap map, Coordinates at,
                                 std::uint32_t bytes, unsigned char* out) {
  if constexpr (ptx::kHasWgmma) {
    TmaTile& tile = ptx::dynamic_shared<TmaTile>();
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(&tile.barrier, 1);
      ptx::fence_mbarrier_init_release_cluster();
      ptx::mbarrier_arrive_expect_tx(&tile.barrier, bytes);
    }
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
    if (threadIdx.x == 0 && ptx::cluster_ctarank() == 0) {
      constexpr std::uint16_t kBoth = 3;
      if constexpr (kRank == 2 && kHint)
        ptx::cp_async_bulk_tensor_2d_multicast_cache_hint(tile.bytes, &map, at.c[0], at.c[1], &tile.barrier,
                                                          kBoth,
                                                          ptx::createpolicy_fractional_l2_evict_first());
      if constexpr (kRank == 2 && !kHint)
        ptx::cp_async_bulk_tensor_2d_multicast(tile.bytes, &map, at.c[0], at.c[1], &tile.barrier, kBoth);
      if constexpr (kRank == 3)
        ptx::cp_async_bulk_tensor_3d_multicast(tile.bytes, &map, at.c[0], at.c[1], at.c[2], &tile.barrier,
                                               kBoth);
    }
    wait_for(&tile.barrier, 0);
    for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x)
      out[blockIdx.x * bytes + i] = tile.bytes[i];
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
  }
}

template <int kRank, bool kHint = false>
void check_multicast(const ptx::TensorMapSpec& description, const Coordinates& at) {
  HostTensor tensor(description);
  const DeviceArray<unsigned char> memory(tensor.memory);
  tensor.spec.base = memory.get();
  const std::uint32_t bytes = ptx::box_bytes(tensor.spec);
  const DeviceArray<unsigned char> out(2 * bytes);
  ptx::LaunchShape shape = kTmaShape;
  shape.grid = {2};
  shape.cluster = {2};
  ptx::launch(multicast_kernel<kRank, kHint>, shape, nullptr, ptx::make_tensor_map(tensor.spec), at, bytes,
              out.get());
  auto expected = tensor.loaded(at);
  expected.insert(expected.end(), expected.begin(), expected.begin() + bytes);
  CHECK(out.read() == expected);
}

TEST_CASE("TMA multicast: one load fills the same place in both CTAs") {
  if (gpu_test::skip_without_hopper()) return;
  check_multicast<2>(ptx::matrix_spec(nullptr, 200, 128, 128, 64, Swizzle::k128B), {{64, 100}});
  check_multicast<2, true>(ptx::matrix_spec(nullptr, 200, 128, 128, 64, Swizzle::k128B), {{64, 100}});
  ptx::TensorMapSpec spec;
  spec.element = ptx::TensorElement::kUint32;
  spec.rank = 3;
  spec.extent = {8, 6, 5};
  spec.stride_bytes = {0, 8 * 4, 6 * 8 * 4};
  spec.box = {4, 4, 2};
  check_multicast<3>(spec, {{4, 3, 4}});
}

// ---- wgmma ----

constexpr int kM = 64;

/// A tile in shared memory: element (row, k) of a K-major tile of `rows` rows, kSpan bytes of K wide.
template <Swizzle kSwizzle>
__device__ std::uint32_t tile_offset(int row, int k) {
  if constexpr (kSwizzle == Swizzle::kNone) {
    // Blocks of 8 rows x 16 bytes, 128 contiguous bytes each: along K first, then the next 8 rows.
    constexpr int kBlocks = 2;  // K = 16
    return static_cast<std::uint32_t>(((row / 8 * kBlocks + k / 8) * 8 + row % 8) * 16 + k % 8 * 2);
  } else {
    return ptx::swizzled(static_cast<std::uint32_t>(row * ptx::span_bytes(kSwizzle) + k * 2), kSwizzle);
  }
}

template <Swizzle kSwizzle>
__device__ std::uint64_t tile_descriptor(const void* tile) {
  const std::uint32_t address = ptx::shared_address(tile);
  if constexpr (kSwizzle == Swizzle::kNone)
    return ptx::encode({.address = address, .leading_bytes = 128, .stride_bytes = 256, .swizzle = kSwizzle});
  return ptx::k_major_descriptor(address, kSwizzle);
}

template <int kN>
struct WgmmaTiles {
  unsigned char a[kM * 128];
  unsigned char b[(kN * 128 + 1023) / 1024 * 1024];
};

/// d[64][kN] = a[64][K] * b[kN][K]^T, K as wide as the swizzle's span (16 without one).
template <int kN, Swizzle kSwizzle, bool kAInRegisters>
__global__ void __launch_bounds__(128, 1) wgmma_kernel(const bf16* a, const bf16* b, float* d) {
  if constexpr (ptx::kHasWgmma) {
    constexpr int kK = kSwizzle == Swizzle::kNone ? 16 : ptx::span_bytes(kSwizzle) / 2;
    using Tiles = WgmmaTiles<kN>;
    Tiles& tiles = ptx::dynamic_shared<Tiles>();
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < kM * kK; i += 128)
      *reinterpret_cast<bf16*>(tiles.a + tile_offset<kSwizzle>(i / kK, i % kK)) = a[i];
    for (int i = thread; i < kN * kK; i += 128)
      *reinterpret_cast<bf16*>(tiles.b + tile_offset<kSwizzle>(i / kK, i % kK)) = b[i];
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();

    const int warp = thread / 32;
    const int g = thread % 32 / 4;
    const int t = thread % 4;
    const auto pair = [&](int row, int k) {
      return static_cast<std::uint32_t>(a[row * kK + k + 1].bits) << 16 | a[row * kK + k].bits;
    };
    std::uint32_t fragments[kK / 16][4];
#pragma unroll
    for (int slice = 0; slice < kK / 16; ++slice) {
      const int row = 16 * warp + g;
      const int k = 16 * slice + 2 * t;
      fragments[slice][0] = pair(row, k);
      fragments[slice][1] = pair(row + 8, k);
      fragments[slice][2] = pair(row, k + 8);
      fragments[slice][3] = pair(row + 8, k + 8);
    }
    const std::uint64_t a_descriptor = tile_descriptor<kSwizzle>(tiles.a);
    const std::uint64_t b_descriptor = tile_descriptor<kSwizzle>(tiles.b);
    float accumulators[kN / 2];
#pragma unroll
    for (int i = 0; i < kN / 2; ++i) accumulators[i] = 12345;  // scale_d = 0 must ignore it
    ptx::wgmma_fence_operand(accumulators);
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < kK / 16; ++slice) {
      const std::uint64_t step = static_cast<std::uint64_t>(slice) * 32 / 16;
      const int accumulate = slice > 0 ? 1 : 0;
      if constexpr (kAInRegisters) {
        ptx::wgmma_m64nNk16_f32_bf16_rs<kN>(accumulators, fragments[slice], b_descriptor + step, accumulate);
      } else {
        ptx::wgmma_m64nNk16_f32_bf16_ss<kN>(accumulators, a_descriptor + step, b_descriptor + step,
                                            accumulate);
      }
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_fence_operand(accumulators);
#pragma unroll
    for (int j = 0; j < kN / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = 16 * warp + g + i / 2 * 8;
        const int column = 8 * j + 2 * t + i % 2;
        d[row * kN + column] = accumulators[4 * j + i];
      }
    }
  }
}

template <int kN, Swizzle kSwizzle, bool kAInRegisters>
void check_wgmma() {
  constexpr std::size_t kK = kSwizzle == Swizzle::kNone ? 16 : ptx::span_bytes(kSwizzle) / 2;
  Random random(kN);
  std::vector<bf16> a;
  std::vector<bf16> b;
  for (std::size_t i = 0; i < kM * kK; ++i)
    a.push_back(gemm::to_bf16(static_cast<float>(random.below(41) - 20)));
  for (std::size_t i = 0; i < kN * kK; ++i)
    b.push_back(gemm::to_bf16(static_cast<float>(random.below(41) - 20)));
  const DeviceArray<bf16> device_a(a);
  const DeviceArray<bf16> device_b(b);
  const DeviceArray<float> d(static_cast<std::size_t>(kM) * kN);
  ptx::launch(wgmma_kernel<kN, kSwizzle, kAInRegisters>,
              {.grid = {1}, .block = {128}, .cluster = {}, .shared_bytes = sizeof(WgmmaTiles<kN>)}, nullptr,
              device_a.get(), device_b.get(), d.get());
  const auto result = d.read();
  int wrong = 0;
  int first = -1;
  for (int i = 0; i < kM * kN; ++i) {
    float expected = 0;
    for (std::size_t k = 0; k < kK; ++k) {
      expected += gemm::to_float(a[static_cast<std::size_t>(i / kN) * kK + k]) *
                  gemm::to_float(b[static_cast<std::size_t>(i % kN) * kK + k]);
    }
    if (result[static_cast<std::size_t>(i)] == expected) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  INFO("n " << kN << ", swizzle span " << ptx::span_bytes(kSwizzle) << ", a in "
            << (kAInRegisters ? "registers" : "shared memory") << ", first wrong: row " << first / kN
            << ", column " << first % kN);
  CHECK(wrong == 0);
}

template <bool kAInRegisters, int... kIndex>
void check_all_widths(std::integer_sequence<int, kIndex...>) {
  (check_wgmma<8 * (kIndex + 1), Swizzle::k128B, kAInRegisters>(), ...);
}

TEST_CASE("wgmma: all widths, both operands in shared memory") {
  if (gpu_test::skip_without_hopper()) return;
  check_all_widths<false>(std::make_integer_sequence<int, 32>());
}

TEST_CASE("wgmma: all widths, a in registers") {
  if (gpu_test::skip_without_hopper()) return;
  check_all_widths<true>(std::make_integer_sequence<int, 32>());
}

TEST_CASE("wgmma: all swizzles") {
  if (gpu_test::skip_without_hopper()) return;
  check_wgmma<64, Swizzle::kNone, false>();
  check_wgmma<64, Swizzle::k32B, false>();
  check_wgmma<64, Swizzle::k64B, false>();
  check_wgmma<256, Swizzle::k64B, true>();
  check_wgmma<8, Swizzle::kNone, true>();
}

// ---- wgmma with MN-major operands ----

/// Element (row, k) of an MN-major tile, kDepth of K deep: panels of 64 rows, a line of 128 bytes for each k.
constexpr int kDepth = 32;
__device__ std::uint32_t transposed_offset(int row, int k) {
  return static_cast<std::uint32_t>(row / 64 * kDepth * 128) +
         ptx::swizzled(static_cast<std::uint32_t>(k * 128 + row % 64 * 2), Swizzle::k128B);
}

/// d[64][kN] = a[64][kDepth] * b[kN][kDepth]^T, each operand K-major or MN-major in shared memory, of bf16
/// or, the same integers, fp16.
template <int kN, int kTnspA, int kTnspB, bool kHalf, bool kAInRegisters>
__global__ void __launch_bounds__(128, 1)
    transposed_kernel(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  if constexpr (ptx::kHasWgmma) {
    using Tiles = WgmmaTiles<std::max(kN, 64)>;
    Tiles& tiles = ptx::dynamic_shared<Tiles>();
    const int thread = static_cast<int>(threadIdx.x);
    const auto fill = [&](unsigned char* tile, const std::uint16_t* source, int rows, bool transposed) {
      for (int i = thread; i < rows * kDepth; i += 128) {
        const int row = i / kDepth;
        const int k = i % kDepth;
        const std::uint32_t offset =
            transposed ? transposed_offset(row, k) : tile_offset<Swizzle::k128B>(row, k);
        *reinterpret_cast<std::uint16_t*>(tile + offset) = source[i];
      }
    };
    fill(tiles.a, a, kM, kTnspA != 0);
    fill(tiles.b, b, kN, kTnspB != 0);
    ptx::fence_proxy_async_shared_cta();
    __syncthreads();
    const int row = thread / 32 * 16 + thread % 32 / 4;
    std::uint32_t fragments[kDepth / 16][4];
#pragma unroll
    for (int i = 0; i < kDepth / 16 * 4; ++i) {
      const std::uint16_t* pair =
          a + (row + i % 2 * 8) * kDepth + i / 4 * 16 + i % 4 / 2 * 8 + thread % 4 * 2;
      fragments[i / 4][i % 4] = static_cast<std::uint32_t>(pair[1]) << 16 | pair[0];
    }
    const auto descriptor = [](const void* tile, bool transposed, int slab) {
      const std::uint32_t address = ptx::shared_address(tile);
      return transposed ? ptx::advanced(ptx::mn_major_descriptor(address, Swizzle::k128B, kDepth * 128),
                                        static_cast<std::uint32_t>(slab * 16 * 128))
                        : ptx::advanced(ptx::k_major_descriptor(address, Swizzle::k128B),
                                        static_cast<std::uint32_t>(slab * 32));
    };
    float accumulators[kN / 2] = {};
    ptx::wgmma_fence_operand(accumulators);
    ptx::wgmma_fence();
#pragma unroll
    for (int slab = 0; slab < kDepth / 16; ++slab) {
      const std::uint64_t a_tile = descriptor(tiles.a, kTnspA != 0, slab);
      const std::uint64_t b_tile = descriptor(tiles.b, kTnspB != 0, slab);
      if constexpr (kAInRegisters && kHalf) {
        ptx::wgmma_m64nNk16_f32_f16_rs<kN, kTnspB>(accumulators, fragments[slab], b_tile, slab > 0);
      } else if constexpr (kAInRegisters) {
        ptx::wgmma_m64nNk16_f32_bf16_rs<kN, kTnspB>(accumulators, fragments[slab], b_tile, slab > 0);
      } else if constexpr (kHalf) {
        ptx::wgmma_m64nNk16_f32_f16_ss<kN, kTnspA, kTnspB>(accumulators, a_tile, b_tile, slab > 0);
      } else {
        ptx::wgmma_m64nNk16_f32_bf16_ss<kN, kTnspA, kTnspB>(accumulators, a_tile, b_tile, slab > 0);
      }
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
    ptx::wgmma_fence_operand(accumulators);
#pragma unroll
    for (int i = 0; i < kN / 2; ++i)
      d[(row + i / 2 % 2 * 8) * kN + i / 4 * 8 + thread % 4 * 2 + i % 2] = accumulators[i];
  }
}

template <int kN, int kTnspA, int kTnspB, bool kHalf, bool kAInRegisters>
void check_transposed() {
  Random random(kN);
  const auto integers = [&](int rows) {
    std::vector<float> values;
    for (int i = 0; i < rows * kDepth; ++i) values.push_back(static_cast<float>(random.below(41) - 20));
    return values;
  };
  const auto bits = [](const std::vector<float>& values) {
    std::vector<std::uint16_t> of;
    for (const float value : values)
      of.push_back(kHalf ? gemm::to_fp16(value).bits : gemm::to_bf16(value).bits);
    return of;
  };
  const std::vector<float> a = integers(kM);
  const std::vector<float> b = integers(kN);
  const DeviceArray<std::uint16_t> device_a(bits(a));
  const DeviceArray<std::uint16_t> device_b(bits(b));
  const DeviceArray<float> d(static_cast<std::size_t>(kM) * kN);
  ptx::launch(
      transposed_kernel<kN, kTnspA, kTnspB, kHalf, kAInRegisters>,
      {.grid = {1}, .block = {128}, .cluster = {}, .shared_bytes = sizeof(WgmmaTiles<std::max(kN, 64)>)},
      nullptr, device_a.get(), device_b.get(), d.get());
  const auto result = d.read();
  int wrong = 0;
  for (int i = 0; i < kM * kN; ++i) {
    float expected = 0;
    for (int k = 0; k < kDepth; ++k)
      expected +=
          a[static_cast<std::size_t>(i / kN * kDepth + k)] * b[static_cast<std::size_t>(i % kN * kDepth + k)];
    wrong += result[static_cast<std::size_t>(i)] != expected;
  }
  INFO("n " << kN << ", tnspA " << kTnspA << ", tnspB " << kTnspB << ", fp16 " << kHalf << ", a in registers "
            << kAInRegisters);
  CHECK(wrong == 0);
}

template <int kN, bool kHalf>
void check_every_transposition() {
  check_transposed<kN, 0, 0, kHalf, false>();
  check_transposed<kN, 0, 1, kHalf, false>();
  check_transposed<kN, 1, 0, kHalf, false>();
  check_transposed<kN, 1, 1, kHalf, false>();
  check_transposed<kN, 0, 0, kHalf, true>();
  check_transposed<kN, 0, 1, kHalf, true>();
}

TEST_CASE("wgmma: MN-major operands, with strides and leading offsets as descriptor.h says") {
  if (gpu_test::skip_without_hopper()) return;
  check_every_transposition<8, false>();
  check_every_transposition<64, false>();
  check_every_transposition<256, false>();
  check_every_transposition<136, true>();
}

// ---- setmaxnreg ----

/// A producer warpgroup gives registers to two consumers, which then need them all.
__global__ void __launch_bounds__(384, 1) setmaxnreg_kernel(const float* from, float* to) {
  if constexpr (ptx::kHasWgmma) {
    const unsigned thread = threadIdx.x;
    if (thread < 128) {
      ptx::setmaxnreg_dec<40>();
      to[thread] = from[thread];
    } else {
      ptx::setmaxnreg_inc<232>();
      float values[200];
#pragma unroll
      for (unsigned i = 0; i < 200; ++i) values[i] = from[(thread + i) % 384];
        // Every value is needed after the last load: they live in registers together.
#pragma unroll
      for (unsigned i = 0; i < 200; ++i) asm volatile("" : "+f"(values[i]));
      float sum = 0;
#pragma unroll
      for (unsigned i = 0; i < 200; ++i) sum += values[199 - i] * static_cast<float>(i % 3);
      to[thread] = sum;
    }
  }
}

TEST_CASE("setmaxnreg: a kernel that shifts registers between warpgroups runs and computes") {
  if (gpu_test::skip_without_hopper()) return;
  std::vector<float> values(384);
  std::iota(values.begin(), values.end(), 0.0f);
  const DeviceArray<float> from(values);
  const DeviceArray<float> to(384);
  ptx::launch(setmaxnreg_kernel, {.grid = {264}, .block = {384}}, nullptr, from.get(), to.get());
  const auto result = to.read();
  for (std::size_t thread = 0; thread < 384; ++thread) {
    float expected = values[thread];
    if (thread >= 128) {
      expected = 0;
      for (std::size_t i = 0; i < 200; ++i)
        expected += values[(thread + 199 - i) % 384] * static_cast<float>(i % 3);
    }
    INFO("thread " << thread);
    REQUIRE(result[thread] == expected);
  }
}

// ---- tensor maps ----

TEST_CASE("tensor maps: the rule that is broken is named, not the driver's error") {
  if (gpu_test::skip_without_hopper()) return;
  const DeviceArray<bf16> memory(128 * 128);
  const auto refused = [](const ptx::TensorMapSpec& spec, const std::string& words) {
    try {
      ptx::make_tensor_map(spec);
      return std::string("accepted");
    } catch (const std::invalid_argument& error) {
      const std::string what = error.what();
      return contains(what, words) ? std::string() : what;
    }
  };
  CHECK(refused(ptx::matrix_spec(memory.get() + 1, 64, 64, 8, 8, Swizzle::kNone), "16-byte aligned").empty());
  CHECK(refused(ptx::matrix_spec(memory.get(), 64, 60, 8, 8, Swizzle::kNone), "multiple of 16").empty());
  CHECK(refused(ptx::matrix_spec(memory.get(), 64, 64, 257, 8, Swizzle::kNone), "1 to 256").empty());
  CHECK(refused(ptx::matrix_spec(memory.get(), 64, 128, 8, 128, Swizzle::k128B), "swizzle's span").empty());
  CHECK_NOTHROW(ptx::make_tensor_map(ptx::matrix_spec(memory.get(), 64, 64, 64, 64, Swizzle::k128B)));
}

}  // namespace hopper_wrappers_test
