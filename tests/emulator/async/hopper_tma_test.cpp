// TMA: what loads and stores move where, what must be expected and awaited, what they may overwrite.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "emulator/hopper_test.h"
#include "ptx/atomic.cuh"
#include "ptx/cp_async.cuh"

namespace hopper_tma_test {

using namespace emulator_test;

namespace {

using ptx::Swizzle;
using ptx::TensorElement;
using ptx::TensorMap;
using ptx::TensorMapSpec;

constexpr int kTileBytes = 16 * 1024;

struct alignas(1024) Shared {
  unsigned char tile[2][kTileBytes];
  std::uint64_t full[2];
};

constexpr ptx::LaunchShape shape(unsigned threads) {
  return one_cta(threads, sizeof(Shared));
}

/// Barriers with a count of 1, visible to all threads and to the copy engine.
__device__ void set_up(Shared& shared) {
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : shared.full) ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init_release_cluster();
  }
  __syncthreads();
}

struct Coordinates {
  int c[5];
};

__device__ void load(Shared& shared, const TensorMap& map, int rank, const Coordinates& at) {
  unsigned char* tile = shared.tile[0];
  std::uint64_t* full = &shared.full[0];
  if (rank == 1) ptx::cp_async_bulk_tensor_1d(tile, &map, at.c[0], full);
  if (rank == 2) ptx::cp_async_bulk_tensor_2d(tile, &map, at.c[0], at.c[1], full);
  if (rank == 3) ptx::cp_async_bulk_tensor_3d(tile, &map, at.c[0], at.c[1], at.c[2], full);
  if (rank == 4) ptx::cp_async_bulk_tensor_4d(tile, &map, at.c[0], at.c[1], at.c[2], at.c[3], full);
  if (rank == 5) ptx::cp_async_bulk_tensor_5d(tile, &map, at.c[0], at.c[1], at.c[2], at.c[3], at.c[4], full);
}

/// Fills memory with 0xee, waits for the copy that issue(shared) issues in one thread, and copies what is
/// there then out.
template <typename Issue>
__device__ void dump_after(std::uint32_t bytes, std::uint32_t footprint, std::uint32_t* out, Issue issue) {
  auto& shared = ptx::dynamic_shared<Shared>();
  for (std::uint32_t i = threadIdx.x; i < footprint / 4; i += blockDim.x) {
    ptx::st_shared(reinterpret_cast<std::uint32_t*>(shared.tile[0]) + i, 0xeeeeeeeeu);
  }
  ptx::fence_proxy_async_shared_cta();
  set_up(shared);
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full[0], bytes);
    issue(shared);
  }
  wait(&shared.full[0], 0);
  for (std::uint32_t i = threadIdx.x; i < footprint / 4; i += blockDim.x) {
    ptx::st_global(out + i, ptx::ld_shared(reinterpret_cast<const std::uint32_t*>(shared.tile[0]) + i));
  }
}

/// Loads one box.
__global__ void load_and_dump(TensorMap map, int rank, Coordinates at, std::uint32_t bytes,
                              std::uint32_t footprint, std::uint32_t* out) {
  dump_after(bytes, footprint, out, [&](Shared& shared) { load(shared, map, rank, at); });
}

/// What the box must look like: straight from the definition, element by element.
std::vector<unsigned char> expected_box(const TensorMapSpec& spec, const Coordinates& at,
                                        const std::vector<unsigned char>& tensor) {
  const auto size = static_cast<std::uint32_t>(ptx::element_bytes(spec.element));
  const std::uint32_t rows = ptx::box_bytes(spec) / (spec.box[0] * size);
  // With a swizzle a row takes its whole span; what a shorter row leaves keeps the 0xee of before.
  const std::uint32_t pitch = spec.swizzle == Swizzle::kNone
                                  ? spec.box[0] * size
                                  : static_cast<std::uint32_t>(ptx::span_bytes(spec.swizzle));
  std::vector<unsigned char> box(rows * pitch, 0xee);
  for (std::uint32_t i = 0; i < rows * spec.box[0]; ++i) {
    std::uint32_t rest = i;
    std::uint64_t source = 0;
    bool inside = true;
    for (int d = 0; d < spec.rank; ++d) {
      const auto dimension = static_cast<std::size_t>(d);
      const std::int64_t index = at.c[d] + static_cast<std::int64_t>(rest % spec.box[dimension]);
      rest /= spec.box[dimension];
      inside = inside && index >= 0 && index < static_cast<std::int64_t>(spec.extent[dimension]);
      source += static_cast<std::uint64_t>(index) * (d == 0 ? size : spec.stride_bytes[dimension]);
    }
    const std::uint32_t place = i / spec.box[0] * pitch + i % spec.box[0] * size;
    for (std::uint32_t byte = 0; byte < size; ++byte) {
      box[ptx::swizzled(place + byte, spec.swizzle)] = inside ? tensor[source + byte] : 0;
    }
  }
  return box;
}

void check_load(TensorMapSpec spec, const Coordinates& at) {
  std::uint64_t bytes = spec.extent[0] * static_cast<std::uint64_t>(ptx::element_bytes(spec.element));
  for (int d = 1; d < spec.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    spec.stride_bytes[i] = (bytes + 15) / 16 * 16;
    bytes = spec.stride_bytes[i] * spec.extent[i];
  }
  std::vector<unsigned char> tensor(bytes);
  for (std::size_t i = 0; i < tensor.size(); ++i)
    tensor[i] = static_cast<unsigned char>(i * 37 + i / 251 + 1);
  DeviceArray<unsigned char> source(tensor, "T");
  spec.base = source.get();
  const std::uint32_t box = ptx::box_bytes(spec);
  const std::vector<unsigned char> expected = expected_box(spec, at, tensor);
  DeviceArray<std::uint32_t> out(expected.size() / 4);
  INFO("rank " << spec.rank << " box " << box << " swizzle " << ptx::span_bytes(spec.swizzle));
  require_passes(run(load_and_dump, shape(64), ptx::make_tensor_map(spec), spec.rank, at, box,
                     static_cast<std::uint32_t>(expected.size()), out.get()));
  const std::vector<std::uint32_t> words = out.host();
  CHECK(std::memcmp(words.data(), expected.data(), expected.size()) == 0);
}

TensorMapSpec spec_of(TensorElement element, std::vector<std::uint32_t> extent,
                      std::vector<std::uint32_t> box, Swizzle swizzle = Swizzle::kNone) {
  TensorMapSpec spec;
  spec.element = element;
  spec.rank = static_cast<int>(extent.size());
  for (std::size_t i = 0; i < extent.size(); ++i) {
    spec.extent[i] = extent[i];
    spec.box[i] = box[i];
  }
  spec.swizzle = swizzle;
  return spec;
}

/// A matrix [rows][columns] of bf16 in device memory with a map of it.
struct Matrix {
  Matrix(int rows, int columns, int box_rows, int box_columns, Swizzle swizzle = Swizzle::k128B)
      : values(arange(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)), "M"),
        map(ptx::make_tensor_map(
            ptx::matrix_spec(values.get(), rows, columns, box_rows, box_columns, swizzle))) {}
  DeviceArray<bf16> values;
  TensorMap map;
};

enum Fault {
  kNone,
  kNoWait,
  kWaitOfOneThread,  // fine: a barrier follows
  kNoBarrierAfterOneWait,
  kSmall,
  kSmallByOneLoad,
  kLarge,
  kNothingExpected,
  kTwoExpecters,
  kExpectAfterIssue,  // fine: the arrival comes last
  kNoInitFence,
  kNoRelease,
  kWrongParity,
  kExitWithoutWait,
  kOverMyOwnRead,
  kGenericWriteUnfenced,
  kGenericWriteFenced,  // fine
  kRank,
  kMisaligned,
  kDoesNotFit,
  kNotAMap,
  kStoreIntoPending,
};

constexpr std::uint32_t kBox = 64 * 64 * 2;

/// Two loads of 64 x 64 into one stage, read by all threads, twice.
__global__ void two_rounds(TensorMap map, int fault, float* sums) {
  auto& shared = ptx::dynamic_shared<Shared>();
  if (fault == kNoInitFence) {
    if (threadIdx.x == 0) ptx::mbarrier_init(&shared.full[0], 1);
    __syncthreads();
  } else {
    set_up(shared);
  }
  std::uint64_t* full = &shared.full[0];
  if (fault == kNotAMap) map.words[3] ^= 1;
  if (fault == kGenericWriteUnfenced || fault == kGenericWriteFenced) {
    ptx::st_shared(reinterpret_cast<int*>(shared.tile[0]) + threadIdx.x, 1);
    if (fault == kGenericWriteFenced) ptx::fence_proxy_async_shared_cta();
    __syncthreads();
  }
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    unsigned char* tile = shared.tile[0];
    if (fault == kMisaligned) tile += 64;
    if (fault == kDoesNotFit) tile = shared.tile[1] + kTileBytes - 1024;
    const std::uint32_t bytes = fault == kSmall            ? 2 * kBox - 16
                                : fault == kSmallByOneLoad ? kBox
                                : fault == kLarge          ? 2 * kBox + 16
                                                           : 2 * kBox;
    if (fault == kWrongParity) {
      // In phase 0 parity 1 counts as complete; nothing has even been issued.
      wait(full, 1);
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      if (fault != kExpectAfterIssue && fault != kNothingExpected)
        ptx::mbarrier_arrive_expect_tx(full, bytes);
      ptx::cp_async_bulk_tensor_2d(tile, &map, 0, 64 * round, full);
      if (fault == kRank) ptx::cp_async_bulk_tensor_3d(tile, &map, 0, 0, 0, full);
      ptx::cp_async_bulk_tensor_2d(tile + kBox, &map, 64, 64 * round, full);
      if (fault == kExpectAfterIssue) ptx::mbarrier_arrive_expect_tx(full, bytes);
      if (fault == kNothingExpected) ptx::mbarrier_arrive(full);
      if (fault == kOverMyOwnRead) sum += gemm::to_float(ptx::ld_shared(reinterpret_cast<const bf16*>(tile)));
    }
    if (fault == kTwoExpecters && threadIdx.x == 1) ptx::mbarrier_arrive_expect_tx(full, bytes);
    if (fault == kStoreIntoPending && threadIdx.x == 0) ptx::st_shared(tile, static_cast<unsigned char>(1));
    if (fault == kExitWithoutWait) return;
    const auto parity = static_cast<std::uint32_t>(round);
    if (fault == kWaitOfOneThread || fault == kNoBarrierAfterOneWait) {
      if (threadIdx.x == 5) wait(full, parity);
      if (fault == kWaitOfOneThread) __syncthreads();
    } else if (fault != kNoWait && fault != kWrongParity) {
      wait(full, parity);
    }
    if (fault == kNoWait || fault == kWrongParity) __syncthreads();  // the loads have been issued
    for (std::uint32_t i = threadIdx.x; i < 2 * kBox / 2; i += blockDim.x) {
      sum += gemm::to_float(ptx::ld_shared(reinterpret_cast<const bf16*>(tile) + i));
    }
    ptx::fence_proxy_async_shared_cta();
    if (fault != kNoRelease) __syncthreads();
  }
  ptx::st_global(sums + threadIdx.x, sum);
}

Outcome run_two_rounds(int fault) {
  static const Matrix kMatrix(128, 128, 64, 64);
  DeviceArray<float> sums(64);
  Outcome outcome = run(two_rounds, shape(64), kMatrix.map, fault, sums.get());
  if (outcome.rule == "passed") {
    float sum = 0;
    for (const float value : sums.host()) sum += value;
    float expected = 0;
    for (const bf16 value : arange(128 * 128)) expected += gemm::to_float(value);
    CHECK(sum == expected);
  }
  return outcome;
}

/// A tensor map of a matrix that is larger than its buffer, or a buffer that has not been filled.
Outcome run_on_matrix(const bf16* base, int rows, int columns) {
  DeviceArray<std::uint32_t> out(kBox / 4);
  const TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(base, rows, columns, 64, 64, Swizzle::k128B));
  return run(load_and_dump, shape(64), map, 2, Coordinates{{0, 64}}, kBox, kBox, out.get());
}

/// Global memory written by the kernel itself, then loaded.
__global__ void write_then_load(TensorMap map, bf16* matrix, int fence, float* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  set_up(shared);
  for (int i = static_cast<int>(threadIdx.x); i < 64 * 64; i += static_cast<int>(blockDim.x)) {
    ptx::st_global(matrix + i, gemm::to_bf16(2));
  }
  if (fence == 1) ptx::fence_proxy_async_global();
  if (fence == 2) ptx::fence_proxy_async();
  if (fence == 3) ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  if (fence == 4) ptx::fence_proxy_async();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full[0], kBox);
    ptx::cp_async_bulk_tensor_2d(shared.tile[0], &map, 0, 0, &shared.full[0]);
  }
  wait(&shared.full[0], 0);
  ptx::st_global(result + threadIdx.x,
                 gemm::to_float(ptx::ld_shared(reinterpret_cast<const bf16*>(shared.tile[0]) + threadIdx.x)));
}

enum StoreFault {
  kStoreFine,
  kStoreNoFence,
  kStoreFenceTooLate,
  kStoreNoBarrier,
  kStoreReuseUnread,
  kStoreReuseRead,  // fine
  kStoreNoWaitAtExit,
  kStoreNoCommit,
  kStoreReadBack,
  kStoreReadBackWaited,  // fine
  kStoreReadBackWaitedForReadOnly,
  kStoreUnwritten,
};

/// All threads fill a tile, one thread stores it, the tile is used again.
__global__ void fill_and_store(TensorMap map, bf16* matrix, int fault) {
  auto& shared = ptx::dynamic_shared<Shared>();
  auto* tile = reinterpret_cast<bf16*>(shared.tile[0]);
  const auto thread = static_cast<std::uint32_t>(threadIdx.x);
  auto fill = [&](float value) {
    for (std::uint32_t i = thread; i < 64 * 64; i += blockDim.x) {
      if (fault == kStoreUnwritten && i == 777) continue;
      ptx::st_shared(reinterpret_cast<bf16*>(reinterpret_cast<unsigned char*>(tile) +
                                             ptx::swizzled(2 * i, Swizzle::k128B)),
                     gemm::to_bf16(value + static_cast<float>(i % 64)));
    }
  };
  for (int round = 0; round < 2; ++round) {
    fill(static_cast<float>(64 * round));
    if (fault != kStoreNoFence && fault != kStoreFenceTooLate) ptx::fence_proxy_async_shared_cta();
    if (fault != kStoreNoBarrier) __syncthreads();
    if (thread == 0) {
      if (fault == kStoreFenceTooLate) ptx::fence_proxy_async_shared_cta();
      ptx::cp_async_bulk_tensor_2d_store(&map, 0, 64 * round, tile);
      if (fault != kStoreNoCommit) ptx::cp_async_bulk_commit_group();
      if (fault == kStoreReadBackWaited) ptx::cp_async_bulk_wait_group<0>();
      if (fault != kStoreReuseUnread && !(fault == kStoreNoWaitAtExit && round == 1)) {
        ptx::cp_async_bulk_wait_group_read<0>();
      }
      if (fault >= kStoreReadBack && fault <= kStoreReadBackWaitedForReadOnly) {
        ptx::st_global(matrix + 128 * 64, ptx::ld_global(matrix + 64 * 64 * round));
      }
    }
    __syncthreads();
  }
}

Outcome run_store(int fault) {
  DeviceArray<bf16> matrix(128 * 64 + 1, "D");
  matrix.fill(0xff);
  const TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(matrix.get(), 128, 64, 64, 64, Swizzle::k128B));
  Outcome outcome = run(fill_and_store, shape(96), map, matrix.get(), fault);
  if (outcome.rule == "passed") {
    const std::vector<bf16> host = matrix.host();
    int wrong = 0;
    for (int i = 0; i < 128 * 64; ++i) {
      wrong +=
          gemm::to_float(host[static_cast<std::size_t>(i)]) != static_cast<float>(i % 64 + i / 4096 * 64);
    }
    CHECK(wrong == 0);
  }
  return outcome;
}

/// Stores a box that hangs over the right and lower edge, of an odd number of columns.
__global__ void store_at_the_edge(TensorMap map, int c0, int c1) {
  auto& shared = ptx::dynamic_shared<Shared>();
  auto* tile = reinterpret_cast<bf16*>(shared.tile[0]);
  for (std::uint32_t i = threadIdx.x; i < 16 * 8; i += blockDim.x) ptx::st_shared(tile + i, gemm::to_bf16(5));
  ptx::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor_2d_store(&map, c0, c1, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group<0>();
  }
}

/// cp.async brings a tile of 16 x 8, an mbarrier says so, one thread stores it.
__global__ void store_what_was_copied(TensorMap map, const bf16* source, int fenced) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread == 0) ptx::mbarrier_init(&shared.full[0], 16);
  __syncthreads();
  ptx::cp_async_cg_16(shared.tile[0] + 16 * thread, source + 8 * thread);
  if (fenced) {
    ptx::cp_async_wait_all();
    ptx::fence_proxy_async_shared_cta();
    ptx::mbarrier_arrive(&shared.full[0]);
  } else {
    ptx::cp_async_mbarrier_arrive_noinc(&shared.full[0]);
  }
  wait(&shared.full[0], 0);
  if (thread == 0) {
    ptx::cp_async_bulk_tensor_2d_store(&map, 0, 0, shared.tile[0]);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group<0>();
  }
}

}  // namespace

TEST_CASE("TMA loads: ranks, boxes, swizzles, edges") {
  const Coordinates zero{};
  check_load(spec_of(TensorElement::kFloat32, {100}, {64}), zero);
  check_load(spec_of(TensorElement::kFloat32, {100}, {64}), {{80}});
  check_load(spec_of(TensorElement::kUint8, {200}, {128}), {{-16}});
  for (const Swizzle swizzle : {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B}) {
    const auto span = static_cast<std::uint32_t>(ptx::span_bytes(swizzle));
    check_load(spec_of(TensorElement::kBf16, {200, 70}, {span / 2, 40}, swizzle), {{8, 3}});
    check_load(spec_of(TensorElement::kBf16, {197, 70}, {span / 2, 40}, swizzle), {{192, 60}});
    check_load(spec_of(TensorElement::kBf16, {200, 70}, {span / 2, 40}, swizzle), {{-8, -17}});
    check_load(spec_of(TensorElement::kBf16, {200, 70}, {span / 2, 40}, swizzle), {{200, 0}});
    check_load(spec_of(TensorElement::kFloat32, {33, 9}, {span / 4, 9}, swizzle), {{4, 1}});
    check_load(spec_of(TensorElement::kUint8, {90, 20}, {span, 16}, swizzle), {{16, 10}});
  }
  // Rows shorter than the swizzle's span leave the rest of it alone.
  check_load(spec_of(TensorElement::kBf16, {64, 64}, {16, 64}, Swizzle::k128B), {{16, 0}});
  check_load(spec_of(TensorElement::kBf16, {64, 10, 6}, {24, 5, 3}, Swizzle::k64B), {{8, 1, 2}});
  check_load(spec_of(TensorElement::kBf16, {24, 10, 6}, {16, 8, 4}), {{8, 4, 5}});
  check_load(spec_of(TensorElement::kBf16, {64, 10, 6}, {64, 8, 4}, Swizzle::k128B), {{0, -2, 3}});
  check_load(spec_of(TensorElement::kFloat32, {8, 5, 4, 3}, {4, 4, 4, 2}), {{4, 2, 0, 2}});
  check_load(spec_of(TensorElement::kBf16, {16, 5, 4, 3, 3}, {8, 4, 2, 3, 2}, Swizzle::k32B),
             {{8, 1, 1, 1, 1}});
}

TEST_CASE("proxy-fence: cp.async is of the generic proxy, however its end is known") {
  const std::vector<bf16> values = arange(16 * 8);
  const DeviceArray<bf16> source(values);
  DeviceArray<bf16> result(16 * 8, "D");
  const TensorMap map = ptx::make_tensor_map(ptx::matrix_spec(result.get(), 16, 8, 16, 8, Swizzle::kNone));
  CHECK_PASSES(run(store_what_was_copied, shape(16), map, source.get(), 1));
  CHECK(std::memcmp(result.host().data(), values.data(), sizeof(bf16) * values.size()) == 0);
  CHECK_BREAKS("proxy-fence", run(store_what_was_copied, shape(16), map, source.get(), 0));
}

TEST_CASE("make_tensor_map refuses what breaks a rule") {
  DeviceArray<bf16> matrix(64 * 64);
  auto make = [&](int rows, int columns, int box_rows, int box_columns, int shift) {
    return ptx::make_tensor_map(
        ptx::matrix_spec(matrix.get() + shift, rows, columns, box_rows, box_columns, Swizzle::k128B));
  };
  CHECK_NOTHROW(make(64, 64, 64, 64, 0));
  CHECK_THROWS_AS(make(64, 64, 64, 64, 1), std::invalid_argument);
  CHECK_THROWS_AS(make(64, 60, 64, 64, 0), std::invalid_argument);
  CHECK_THROWS_AS(make(64, 64, 257, 64, 0), std::invalid_argument);
  CHECK_THROWS_AS(make(64, 64, 64, 128, 0), std::invalid_argument);
}

TEST_CASE("make_tensor_map refuses what breaks a rule of interleaved layouts") {
  DeviceArray<bf16> tensor(64 * 1024);
  const auto right = [&](ptx::Interleave interleave) {
    ptx::TensorMapSpec spec;
    spec.base = tensor.get();
    spec.rank = 4;
    spec.extent = {8, 4, 2, 2};  // W, H, slices, images
    spec.stride_bytes = {0, 256, 1024, 2048};
    spec.box = {8, 4, 8, 1};  // pixels, rows, channels, images
    spec.interleave = interleave;
    if (interleave == ptx::Interleave::k32B) {
      spec.box[2] = 16;
      spec.swizzle = Swizzle::k32B;
    }
    return spec;
  };
  const ptx::TensorMapSpec narrow = right(ptx::Interleave::k16B);
  const ptx::TensorMapSpec wide = right(ptx::Interleave::k32B);
  CHECK(ptx::violated_rule(narrow).empty());
  CHECK(ptx::violated_rule(wide).empty());
  CHECK(ptx::box_bytes(narrow) == 8 * 4 * 16);
  CHECK(ptx::box_bytes(wide) == 8 * 4 * 32);
  ptx::TensorMapSpec slices = narrow;
  slices.box[2] = 16;  // two slices: an H200 brings one
  CHECK(ptx::box_bytes(slices) == 8 * 4 * 16);

  ptx::TensorMapSpec spec = narrow;
  spec.rank = 2;
  CHECK(contains(ptx::violated_rule(spec), "an interleaved tensor has rank 2; it must be 3, 4 or 5"));
  spec.rank = 3;
  CHECK(ptx::violated_rule(spec).empty());

  spec = wide;
  spec.base = tensor.get() + 8;
  CHECK(contains(ptx::violated_rule(spec), "16 bytes past a multiple of 32"));
  spec = narrow;
  spec.base = tensor.get() + 8;
  CHECK(ptx::violated_rule(spec).empty());

  spec = wide;
  spec.stride_bytes[2] = 1040;
  CHECK(contains(ptx::violated_rule(spec), "1040 bytes; it must be a multiple of 32"));
  spec = narrow;
  spec.stride_bytes[2] = 1040;
  CHECK(ptx::violated_rule(spec).empty());

  spec = wide;
  spec.swizzle = Swizzle::kNone;
  CHECK(contains(ptx::violated_rule(spec), "needs the 32-byte swizzle"));
  spec = narrow;
  spec.swizzle = Swizzle::k32B;  // rows of 128 bytes: longer than the span, which is no rule here
  CHECK(ptx::violated_rule(spec).empty());
  spec.interleave = ptx::Interleave::kNone;
  spec.box = {32, 4, 1, 1};
  CHECK(contains(ptx::violated_rule(spec), "longer than the swizzle's span"));

  spec = narrow;
  spec.box[0] = 4;  // 8 bytes of channels would be: the driver refuses it for interleaved maps, too
  CHECK(contains(ptx::violated_rule(spec), "8 bytes; it must be a multiple of 16"));
}

TEST_CASE("a load, its barrier, all threads wait") {
  CHECK_PASSES(run_two_rounds(kNone));
  CHECK_PASSES(run_two_rounds(kWaitOfOneThread));
  CHECK_PASSES(run_two_rounds(kExpectAfterIssue));
  CHECK_PASSES(run_two_rounds(kGenericWriteFenced));
}

TEST_CASE("load-not-waited") {
  CHECK_BREAKS("load-not-waited", run_two_rounds(kNoWait));
  CHECK_BREAKS("load-not-waited", run_two_rounds(kWrongParity));
  CHECK_BREAKS("load-not-waited", run_two_rounds(kOverMyOwnRead));
  CHECK_BREAKS("load-not-waited", run_two_rounds(kStoreIntoPending));
  CHECK_BREAKS_ONE_OF((Rules{"load-not-waited", "load-overwrites", "shared-uninitialised"}),
                      run_two_rounds(kNoBarrierAfterOneWait));
  check_report(run_two_rounds(kWrongParity), "load-not-waited",
               {"full[0] (shared + 0x8000)", "passed at once", "box of 64 x 64 at (0, 0) of M"});
}

TEST_CASE("expect-tx-small") {
  CHECK_BREAKS("expect-tx-small", run_two_rounds(kSmall));
  CHECK(contains(run_two_rounds(kSmall).report, "16 bytes arrived that were not expected"));
}

TEST_CASE("expect-tx-small: the bytes of one load of two") {
  // A first load that lands before the second is issued completes the phase.
  CHECK_BREAKS_ONE_OF((Rules{"expect-tx-small", "load-not-waited"}), run_two_rounds(kSmallByOneLoad));
}

TEST_CASE("expect-tx-small: nothing expected") {
  CHECK_BREAKS("expect-tx-small", run_two_rounds(kNothingExpected));
}

TEST_CASE("deadlock: more bytes expected than come") {
  CHECK_BREAKS("deadlock", run_two_rounds(kLarge));
  check_report(run_two_rounds(kLarge), "deadlock", {"16 of 16400 expected bytes are missing"});
}

TEST_CASE("mbarrier-arrivals: two threads expect the bytes") {
  CHECK_BREAKS_ONE_OF((Rules{"mbarrier-arrivals", "load-not-waited", "expect-tx-small", "deadlock"}),
                      run_two_rounds(kTwoExpecters));
}

TEST_CASE("mbarrier-init-fence") {
  CHECK_BREAKS("mbarrier-init-fence", run_two_rounds(kNoInitFence));
}

TEST_CASE("load-overwrites: the stage is still being read") {
  // A thread that comes late finds the next tile in the stage, or a phase whose parity it cannot tell from
  // its own.
  CHECK_BREAKS_ONE_OF((Rules{"load-overwrites", "load-not-waited", "deadlock"}), run_two_rounds(kNoRelease));
}

TEST_CASE("exit-in-flight: no thread waits for the load") {
  CHECK_BREAKS("exit-in-flight", run_two_rounds(kExitWithoutWait));
}

TEST_CASE("proxy-fence: a load over bytes that ordinary stores wrote") {
  CHECK_BREAKS("proxy-fence", run_two_rounds(kGenericWriteUnfenced));
}

TEST_CASE("loads that cannot be") {
  CHECK_BREAKS("tensor-map-rank", run_two_rounds(kRank));
  CHECK_BREAKS("tma-alignment", run_two_rounds(kMisaligned));
  CHECK_BREAKS("shared-out-of-bounds", run_two_rounds(kDoesNotFit));
  CHECK_BREAKS("tensor-map-invalid", run_two_rounds(kNotAMap));
}

TEST_CASE("tma-alignment: the box starts inside a 16-byte unit") {
  const Matrix matrix(64, 64, 64, 64);
  DeviceArray<std::uint32_t> out(kBox / 4);
  for (const int column : {1, 7, -4}) {
    CHECK_BREAKS("tma-alignment", run(load_and_dump, shape(64), matrix.map, 2, Coordinates{{column, 0}}, kBox,
                                      kBox, out.get()));
    CHECK_BREAKS("tma-alignment", run(store_at_the_edge, shape(32), matrix.map, column, 0));
  }
  CHECK_PASSES(run(load_and_dump, shape(64), matrix.map, 2, Coordinates{{-8, 0}}, kBox, kBox, out.get()));
}

TEST_CASE("the tensor lies in its buffer") {
  const Matrix matrix(128, 64, 64, 64);
  CHECK_PASSES(run_on_matrix(matrix.values.get(), 128, 64));
  CHECK_BREAKS("global-out-of-bounds", run_on_matrix(matrix.values.get(), 129, 64));
  DeviceArray<bf16> unwritten(128 * 64);
  CHECK_BREAKS("global-uninitialised", run_on_matrix(unwritten.get(), 128, 64));
}

TEST_CASE("proxy-fence: a load of what this kernel wrote") {
  const Matrix matrix(64, 64, 64, 64);
  DeviceArray<float> result(64);
  auto run_with = [&](int fence) {
    return run(write_then_load, shape(64), matrix.map, matrix.values.get(), fence, result.get());
  };
  CHECK_BREAKS("proxy-fence", run_with(0));
  CHECK_PASSES(run_with(1));
  for (const float value : result.host()) CHECK(value == 2);
  CHECK_PASSES(run_with(2));
  CHECK_BREAKS("proxy-fence", run_with(3));
  CHECK_BREAKS("proxy-fence", run_with(4));  // behind the barrier it covers no other thread's write
}

TEST_CASE("TMA stores") {
  CHECK_PASSES(run_store(kStoreFine));
  CHECK_PASSES(run_store(kStoreReadBackWaited));
}

TEST_CASE("proxy-fence: a store of unfenced writes") {
  CHECK_BREAKS("proxy-fence", run_store(kStoreNoFence));
  CHECK_BREAKS("proxy-fence", run_store(kStoreFenceTooLate));
  check_report(run_store(kStoreNoFence), "proxy-fence",
               {"a bulk store reads bytes that ordinary stores wrote", "box of 64 x 64 at (0, 0) of D"});
}

TEST_CASE("store-source-race: no barrier between fence and store") {
  // What no thread has written yet when the store is issued counts as unwritten.
  CHECK_BREAKS_ONE_OF((Rules{"store-source-race", "shared-uninitialised"}), run_store(kStoreNoBarrier));
}

TEST_CASE("store-source-overwritten: reuse before wait_group.read") {
  CHECK_BREAKS("store-source-overwritten", run_store(kStoreReuseUnread));
}

TEST_CASE("store-not-waited: reading back too early") {
  CHECK_BREAKS("store-not-waited", run_store(kStoreReadBack));
  CHECK_BREAKS("store-not-waited", run_store(kStoreReadBackWaitedForReadOnly));
}

TEST_CASE("exit-in-flight: stores that no thread has waited for") {
  CHECK_BREAKS("exit-in-flight", run_store(kStoreNoWaitAtExit));
  CHECK_BREAKS_ONE_OF((Rules{"exit-in-flight", "store-source-overwritten"}), run_store(kStoreNoCommit));
}

TEST_CASE("shared-uninitialised: a store of unwritten bytes") {
  CHECK_BREAKS("shared-uninitialised", run_store(kStoreUnwritten));
}

TEST_CASE("tma-coordinates: a store before the tensor") {
  const Matrix matrix(64, 64, 64, 64);
  CHECK_BREAKS("tma-coordinates", run(store_at_the_edge, shape(32), matrix.map, -8, 0));
  CHECK_BREAKS("tma-coordinates", run(store_at_the_edge, shape(32), matrix.map, 0, -1));
}

TEST_CASE("store-past-row: rows that end inside a 16-byte unit") {
  TensorMapSpec spec = spec_of(TensorElement::kBf16, {21, 11}, {16, 8});
  DeviceArray<bf16> matrix(11 * 24);
  matrix.fill(0);
  spec.base = matrix.get();
  spec.stride_bytes[1] = 2 * 24;
  const TensorMap map = ptx::make_tensor_map(spec);
  CHECK_BREAKS("store-past-row", run(store_at_the_edge, shape(32), map, 16, 0));
  CHECK_PASSES(run(store_at_the_edge, shape(32), map, 0, 0));
}

TEST_CASE("a store leaves alone what is outside the tensor") {
  constexpr int kRows = 11;
  constexpr int kPitch = 32;  // 24 columns in rows of 64 bytes
  TensorMapSpec spec = spec_of(TensorElement::kBf16, {24, kRows}, {16, 8});
  DeviceArray<bf16> matrix(kRows * kPitch);
  spec.base = matrix.get();
  spec.stride_bytes[1] = 2 * kPitch;
  const TensorMap map = ptx::make_tensor_map(spec);
  under_all_schedules([&] {
    matrix.fill(0);
    require_passes(run(store_at_the_edge, shape(32), map, 16, 6));
    const std::vector<bf16> host = matrix.host();
    int wrong = 0;
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kPitch; ++column) {
        const bool inside = row >= 6 && column >= 16 && column < 24;
        wrong +=
            gemm::to_float(host[static_cast<std::size_t>(row * kPitch + column)]) != (inside ? 5.0f : 0.0f);
      }
    }
    CHECK(wrong == 0);
  });
}

namespace {

enum class Policy { kCreated, kNone, kMadeUp };

/// Loads a box of 64 x 8 words with a cache hint and copies it out.
__global__ void load_with_hint(TensorMap map, Policy which, bool awaited, std::uint32_t* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  set_up(shared);
  if (threadIdx.x == 0) {
    std::uint64_t policy = 0;
    if (which == Policy::kCreated) policy = ptx::createpolicy_fractional_l2_evict_first();
    if (which == Policy::kMadeUp) policy = 0x1234567890abcdef;
    ptx::mbarrier_arrive_expect_tx(&shared.full[0], 64 * 8 * 4);
    ptx::cp_async_bulk_tensor_2d_cache_hint(shared.tile[0], &map, 32, 4, &shared.full[0], policy);
  }
  if (awaited) wait(&shared.full[0], 0);
  for (std::uint32_t i = threadIdx.x; i < 64 * 8; i += blockDim.x) {
    ptx::st_global(out + i, ptx::ld_shared(reinterpret_cast<const std::uint32_t*>(shared.tile[0]) + i));
  }
  wait(&shared.full[0], 0);
}

}  // namespace

TEST_CASE("a load with a cache hint moves what one without moves, and must be awaited like it") {
  std::vector<std::uint32_t> tensor(128 * 16);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::uint32_t>(i) * 3 + 1;
  DeviceArray<std::uint32_t> source(tensor, "T");
  TensorMapSpec spec;
  spec.element = TensorElement::kUint32;
  spec.rank = 2;
  spec.extent = {128, 16};
  spec.stride_bytes = {0, 128 * 4};
  spec.box = {64, 8};
  spec.base = source.get();
  const TensorMap map = ptx::make_tensor_map(spec);
  const DeviceArray<std::uint32_t> out(std::vector<std::uint32_t>(64 * 8, 0), "out");
  CHECK_PASSES(run(load_with_hint, shape(64), map, Policy::kCreated, true, out.get()));
  const std::vector<std::uint32_t> box = out.host();
  for (std::uint32_t i = 0; i < 64 * 8; ++i) CHECK(box[i] == tensor[(4 + i / 64) * 128 + 32 + i % 64]);
  CHECK_BREAKS_ONE_OF((Rules{"load-not-waited", "load-overwrites"}),
                      run(load_with_hint, shape(64), map, Policy::kCreated, false, out.get()));
}

namespace {

/// Loads a column of an image in im2col mode, or uses its map as another one.
__global__ void load_column(TensorMap map, bool im2col, int w, std::uint16_t offset, std::uint32_t bytes,
                            std::uint32_t* out) {
  dump_after(bytes, bytes, out, [&](Shared& shared) {
    if (im2col) {
      ptx::cp_async_bulk_tensor_3d_im2col(shared.tile[0], &map, 0, w, 0, &shared.full[0], offset);
    } else {
      ptx::cp_async_bulk_tensor_3d(shared.tile[0], &map, 0, w, 0, &shared.full[0]);
    }
  });
}

/// Two rows of 10 pixels of 8 channels; columns of 12 pixels, from a box that begins one pixel before a row
/// and ends one before its end.
TensorMapSpec columns_of(const void* base) {
  TensorMapSpec spec;
  spec.base = base;
  spec.element = TensorElement::kUint32;
  spec.rank = 3;
  spec.extent = {8, 10, 2};
  spec.stride_bytes = {0, 8 * 4, 10 * 8 * 4};
  spec.box = {8, 12, 1};
  spec.im2col.pixels = 12;
  spec.im2col.lower = {-1};
  spec.im2col.upper = {-1};
  return spec;
}

}  // namespace

TEST_CASE("a column in im2col mode: padding, steps, and the pixels behind the last image") {
  std::vector<std::uint32_t> image(2 * 10 * 8);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint32_t>(i) + 1;
  const DeviceArray<std::uint32_t> source(image, "image");
  const DeviceArray<std::uint32_t> out(12 * 8);
  for (const std::uint32_t step : {1u, 2u}) {
    for (const int offset : {0, 1, 3}) {
      TensorMapSpec spec = columns_of(source.get());
      spec.im2col.step[0] = step;
      CHECK_PASSES(run(load_column, shape(64), ptx::make_tensor_map(spec), true, 3,
                       static_cast<std::uint16_t>(offset), 12u * 8 * 4, out.get()));
      const std::vector<std::uint32_t> column = out.host();
      int w = 3, n = 0;
      for (std::size_t pixel = 0; pixel < 12; ++pixel) {
        const int at = w + offset;
        for (std::size_t c = 0; c < 8; ++c) {
          const bool inside = at >= 0 && at < 10 && n < 2;
          CHECK(column[pixel * 8 + c] ==
                (inside ? image[static_cast<std::size_t>((n * 10 + at) * 8) + c] : 0));
        }
        w += static_cast<int>(step);
        if (w > 8) {
          w = -1;
          ++n;
        }
      }
    }
  }
}

TEST_CASE(
    "tensor-map-mode: a map in im2col mode, and an instruction in tiled mode, and the other way round") {
  const DeviceArray<std::uint32_t> source(std::vector<std::uint32_t>(2 * 10 * 8, 1), "image");
  const DeviceArray<std::uint32_t> out(12 * 8);
  TensorMapSpec spec = columns_of(source.get());
  constexpr std::uint32_t kBytes = 12 * 8 * 4;
  constexpr std::uint16_t kNoOffset = 0;
  CHECK_BREAKS("tensor-map-mode", run(load_column, shape(64), ptx::make_tensor_map(spec), false, 0, kNoOffset,
                                      kBytes, out.get()));
  spec.im2col = {};
  CHECK_BREAKS("tensor-map-mode", run(load_column, shape(64), ptx::make_tensor_map(spec), true, 0, kNoOffset,
                                      kBytes, out.get()));
}

TEST_CASE("tma-coordinates: a column that starts outside the bounding box") {
  const DeviceArray<std::uint32_t> source(std::vector<std::uint32_t>(2 * 10 * 8, 1), "image");
  const DeviceArray<std::uint32_t> out(12 * 8);
  const TensorMap map = ptx::make_tensor_map(columns_of(source.get()));
  constexpr std::uint32_t kBytes = 12 * 8 * 4;
  constexpr std::uint16_t kNoOffset = 0;
  for (const int w : {-2, 9}) {
    CHECK_BREAKS("tma-coordinates", run(load_column, shape(64), map, true, w, kNoOffset, kBytes, out.get()));
  }
  for (const int w : {-1, 8})
    CHECK_PASSES(run(load_column, shape(64), map, true, w, kNoOffset, kBytes, out.get()));
}

TEST_CASE("the rules of a map in im2col mode") {
  const DeviceArray<std::uint32_t> source(std::vector<std::uint32_t>(2 * 10 * 8, 1), "image");
  const auto broken = [&](auto change) {
    TensorMapSpec spec = columns_of(source.get());
    change(spec);
    return ptx::violated_rule(spec);
  };
  CHECK(broken([](TensorMapSpec&) {}).empty());
  CHECK(contains(broken([](TensorMapSpec& s) { s.rank = 2; }), "must be 3, 4 or 5"));
  CHECK(contains(broken([](TensorMapSpec& s) { s.im2col.pixels = s.box[1] = 1025; }), "1025 pixels"));
  CHECK(contains(broken([](TensorMapSpec& s) { s.box[1] = 8; }), "the pixels of a column"));
  CHECK(contains(broken([](TensorMapSpec& s) { s.im2col.lower[0] = -32769; }), "-32768 to 32767"));
  CHECK(contains(broken([](TensorMapSpec& s) { s.im2col.upper[0] = -11; }), "empty in dimension 1"));
  CHECK(contains(broken([](TensorMapSpec& s) { s.im2col.step[0] = 9; }), "must be 1 to 8"));
}

TEST_CASE("cache-policy: a hint that createpolicy did not make") {
  DeviceArray<std::uint32_t> source(std::vector<std::uint32_t>(128 * 16, 1), "T");
  TensorMapSpec spec;
  spec.element = TensorElement::kUint32;
  spec.rank = 2;
  spec.extent = {128, 16};
  spec.stride_bytes = {0, 128 * 4};
  spec.box = {64, 8};
  spec.base = source.get();
  const TensorMap map = ptx::make_tensor_map(spec);
  const DeviceArray<std::uint32_t> out(64 * 8);
  for (const Policy policy : {Policy::kNone, Policy::kMadeUp}) {
    CHECK_BREAKS("cache-policy", run(load_with_hint, shape(64), map, policy, true, out.get()));
  }
}

// ---- cp.async.bulk: a plain copy of bytes ----

namespace {

constexpr std::uint32_t kPlain = 4096;  // bytes of the copies below, but for those that try other sizes

/// Copies `bytes` bytes to `shift`.
__global__ void copy_and_dump(const unsigned char* source, std::uint32_t bytes, std::uint32_t shift,
                              std::uint32_t footprint, std::uint32_t* out) {
  dump_after(bytes, footprint, out, [&](Shared& shared) {
    ptx::cp_async_bulk(shared.tile[0] + shift, source, bytes, &shared.full[0]);
  });
}

std::vector<unsigned char> different_bytes(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 37 + i / 251 + 1);
  return bytes;
}

/// The outcome of copying `bytes` bytes from number `from` on of a buffer of kTileBytes to `shift`.
Outcome run_copy(std::uint32_t from, std::uint32_t bytes, std::uint32_t shift = 0) {
  static const std::vector<unsigned char> kBytes = different_bytes(kTileBytes);
  static const DeviceArray<unsigned char> kSource(kBytes, "bytes");
  constexpr std::uint32_t kFootprint = 2 * kTileBytes;
  const DeviceArray<std::uint32_t> out(kFootprint / 4);
  const Outcome outcome =
      run(copy_and_dump, shape(64), kSource.get() + from, bytes, shift, kFootprint, out.get());
  if (outcome.rule == "passed") {
    std::vector<unsigned char> expected(kFootprint, 0xee);
    std::copy_n(kBytes.begin() + from, bytes, expected.begin() + shift);
    const std::vector<std::uint32_t> words = out.host();
    CHECK(std::memcmp(words.data(), expected.data(), kFootprint) == 0);
  }
  return outcome;
}

enum class PlainFault {
  kNone,
  kNoWait,
  kSmall,
  kLarge,
  kNothingExpected,
  kNoRelease,
  kExitWithoutWait,
  kGenericWriteUnfenced,
  kGenericWriteFenced,  // fine
  kTwoCopies,           // fine: the barrier counts the bytes of both
  kOneOfTwoAnnounced,
};

/// Two rounds through one stage, read by all threads; `sums`: of the words that each thread has read.
__global__ void copy_twice(const std::uint32_t* source, PlainFault fault, std::uint32_t* sums) {
  auto& shared = ptx::dynamic_shared<Shared>();
  set_up(shared);
  std::uint64_t* const full = &shared.full[0];
  auto* const tile = reinterpret_cast<std::uint32_t*>(shared.tile[0]);
  if (fault == PlainFault::kGenericWriteUnfenced || fault == PlainFault::kGenericWriteFenced) {
    ptx::st_shared(tile + threadIdx.x, 1u);
    if (fault == PlainFault::kGenericWriteFenced) ptx::fence_proxy_async_shared_cta();
    __syncthreads();
  }
  const bool two = fault == PlainFault::kTwoCopies || fault == PlainFault::kOneOfTwoAnnounced;
  std::uint32_t sum = 0;
  for (int round = 0; round < 2; ++round) {
    const std::uint32_t* const from = source + round * (kPlain / 4);
    if (threadIdx.x == 0) {
      std::uint32_t expected = kPlain;
      if (fault == PlainFault::kSmall) expected -= 16;
      if (fault == PlainFault::kLarge) expected += 16;
      if (fault == PlainFault::kOneOfTwoAnnounced) expected /= 2;
      if (fault != PlainFault::kNothingExpected) ptx::mbarrier_arrive_expect_tx(full, expected);
      if (two) {
        ptx::cp_async_bulk(tile, from, kPlain / 2, full);
        ptx::cp_async_bulk(tile + kPlain / 8, from + kPlain / 8, kPlain / 2, full);
      } else {
        ptx::cp_async_bulk(tile, from, kPlain, full);
      }
      if (fault == PlainFault::kNothingExpected) ptx::mbarrier_arrive(full);
    }
    if (fault == PlainFault::kExitWithoutWait) return;
    if (fault == PlainFault::kNoWait) {
      __syncthreads();  // the copy has been issued
    } else {
      wait(full, static_cast<std::uint32_t>(round));
    }
    for (std::uint32_t i = threadIdx.x; i < kPlain / 4; i += blockDim.x) sum += ptx::ld_shared(tile + i);
    ptx::fence_proxy_async_shared_cta();
    if (fault != PlainFault::kNoRelease) __syncthreads();
  }
  ptx::st_global(sums + threadIdx.x, sum);
}

Outcome run_copies(PlainFault fault) {
  std::vector<std::uint32_t> words(2 * kPlain / 4);
  std::uint32_t expected = 0;
  for (std::size_t i = 0; i < words.size(); ++i) expected += words[i] = static_cast<std::uint32_t>(i * i + 1);
  const DeviceArray<std::uint32_t> source(words, "words");
  const DeviceArray<std::uint32_t> sums(64);
  Outcome outcome = run(copy_twice, shape(64), source.get(), fault, sums.get());
  if (outcome.rule == "passed") {
    std::uint32_t sum = 0;
    for (const std::uint32_t value : sums.host()) sum += value;
    CHECK(sum == expected);
  }
  return outcome;
}

/// Looks at barrier and bytes as soon as the copy has been issued, past all checks.
__global__ void look_at_once(const std::uint32_t* source, std::uint32_t* seen) {
  auto& shared = ptx::dynamic_shared<Shared>();
  set_up(shared);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(shared.tile[0]);
  constexpr std::uint32_t kLast = kPlain / 4 - 1;
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full[0], kPlain);
    ptx::cp_async_bulk(shared.tile[0], source, kPlain, &shared.full[0]);
    const std::uint32_t first = words[0];
    const std::uint32_t last = words[kLast];
    ptx::st_global(seen + 1, first);
    ptx::st_global(seen + 2, last);
    ptx::st_global(seen, ptx::mbarrier_test_wait_parity(&shared.full[0], 0) ? 1u : 0u);
  }
  wait(&shared.full[0], 0);
  if (threadIdx.x == 0) ptx::st_global(seen + 3, ptx::ld_shared(words + kLast));
}

enum class Handover {
  kNoFence,
  kFence,
  kFenceOfAllMemory,
  kFenceOfSharedMemory,
  kFenceOfTheReader,
  kNoBarrier
};

/// Global memory written by the kernel itself, then copied.
__global__ void write_then_copy(std::uint32_t* words, Handover how, std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  set_up(shared);
  for (std::uint32_t i = threadIdx.x; i < kPlain / 4; i += blockDim.x) ptx::st_global(words + i, 3 * i);
  if (how == Handover::kFence || how == Handover::kNoBarrier) ptx::fence_proxy_async_global();
  if (how == Handover::kFenceOfAllMemory) ptx::fence_proxy_async();
  if (how == Handover::kFenceOfSharedMemory) ptx::fence_proxy_async_shared_cta();
  if (how != Handover::kNoBarrier) __syncthreads();
  if (how == Handover::kFenceOfTheReader) ptx::fence_proxy_async();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&shared.full[0], kPlain);
    ptx::cp_async_bulk(shared.tile[0], words, kPlain, &shared.full[0]);
  }
  wait(&shared.full[0], 0);
  for (std::uint32_t i = threadIdx.x; i < kPlain / 4; i += blockDim.x)
    ptx::st_global(result + i, ptx::ld_shared(reinterpret_cast<const std::uint32_t*>(shared.tile[0]) + i));
}

/// One CTA writes words, another one waits for a flag and copies them.
__global__ void leave_and_copy(std::uint32_t* words, std::uint32_t* flag, bool fenced,
                               std::uint32_t* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  set_up(shared);
  if (blockIdx.x == 0) {
    for (std::uint32_t i = threadIdx.x; i < kPlain / 4; i += blockDim.x) ptx::st_global(words + i, 5 * i);
    if (fenced) ptx::fence_proxy_async_global();
    __syncthreads();
    if (threadIdx.x == 0) ptx::st_release_gpu(flag, 1);
    return;
  }
  if (threadIdx.x == 0) {
    while (ptx::ld_acquire_gpu(flag) == 0) {
    }
    ptx::mbarrier_arrive_expect_tx(&shared.full[0], kPlain);
    ptx::cp_async_bulk(shared.tile[0], words, kPlain, &shared.full[0]);
  }
  wait(&shared.full[0], 0);
  for (std::uint32_t i = threadIdx.x; i < kPlain / 4; i += blockDim.x)
    ptx::st_global(result + i, ptx::ld_shared(reinterpret_cast<const std::uint32_t*>(shared.tile[0]) + i));
}

}  // namespace

TEST_CASE("a plain bulk copy moves its bytes and nothing else") {
  for (const std::uint32_t bytes : {16u, 32u, 1008u, kPlain, static_cast<std::uint32_t>(kTileBytes)})
    CHECK_PASSES(run_copy(0, bytes));
  CHECK_PASSES(run_copy(16, kPlain));  // 16 bytes are alignment enough in global memory
  CHECK_PASSES(run_copy(kTileBytes - 48, 48, 1024));
  CHECK_PASSES(run_copy(48, kPlain, 2 * kTileBytes - kPlain));
}

TEST_CASE("a plain bulk copy, its barrier, all threads wait, twice") {
  CHECK_PASSES(run_copies(PlainFault::kNone));
  CHECK_PASSES(run_copies(PlainFault::kTwoCopies));
  CHECK_PASSES(run_copies(PlainFault::kGenericWriteFenced));
}

TEST_CASE("load-not-waited: a plain bulk copy") {
  CHECK_BREAKS("load-not-waited", run_copies(PlainFault::kNoWait));
}

TEST_CASE("a plain bulk copy may land late, and its destination is poisoned until then") {
  const DeviceArray<std::uint32_t> source(std::vector<std::uint32_t>(kPlain / 4, 7), "words");
  const DeviceArray<std::uint32_t> seen(4);
  const auto run_with = [&](emulator::Completion completion) {
    emulator::Options options;
    options.completion = completion;
    const emulator::ScopedOptions scope(options);
    require_passes(run(look_at_once, shape(32), source.get(), seen.get()));
    return seen.host();
  };
  // The barrier's answer, the first and the last word; the last word after the wait.
  CHECK(run_with(emulator::Completion::kLatest) ==
        std::vector<std::uint32_t>{0, 0xffffffffu, 0xffffffffu, 7});
  CHECK(run_with(emulator::Completion::kEarliest) == std::vector<std::uint32_t>{1, 7, 7, 7});
}

TEST_CASE("expect-tx-small, deadlock: the bytes of plain bulk copies are counted") {
  CHECK_BREAKS("expect-tx-small", run_copies(PlainFault::kSmall));
  CHECK(contains(run_copies(PlainFault::kSmall).report, "16 bytes arrived that were not expected"));
  CHECK_BREAKS("expect-tx-small", run_copies(PlainFault::kNothingExpected));
  CHECK_BREAKS_ONE_OF((Rules{"expect-tx-small", "load-not-waited"}),
                      run_copies(PlainFault::kOneOfTwoAnnounced));
  CHECK_BREAKS("deadlock", run_copies(PlainFault::kLarge));
  CHECK(contains(run_copies(PlainFault::kLarge).report, "16 of 4112 expected bytes are missing"));
}

TEST_CASE("load-overwrites: a plain bulk copy into a stage that is still being read") {
  CHECK_BREAKS_ONE_OF((Rules{"load-overwrites", "load-not-waited", "deadlock"}),
                      run_copies(PlainFault::kNoRelease));
}

TEST_CASE("exit-in-flight: no thread waits for the plain bulk copy") {
  CHECK_BREAKS("exit-in-flight", run_copies(PlainFault::kExitWithoutWait));
}

TEST_CASE("proxy-fence: a plain bulk copy over bytes that ordinary stores wrote") {
  CHECK_BREAKS("proxy-fence", run_copies(PlainFault::kGenericWriteUnfenced));
}

TEST_CASE("tma-alignment: sizes and addresses of a plain bulk copy") {
  for (const std::uint32_t bytes : {0u, 4u, 8u, 24u, kPlain + 8})
    CHECK_BREAKS("tma-alignment", run_copy(0, bytes));
  for (const std::uint32_t from : {1u, 4u, 8u, 24u}) CHECK_BREAKS("tma-alignment", run_copy(from, kPlain));
  for (const std::uint32_t shift : {4u, 8u}) CHECK_BREAKS("tma-alignment", run_copy(0, kPlain, shift));
  CHECK_PASSES(run_copy(32, kPlain + 16));
  CHECK(contains(run_copy(0, 24).report, "both addresses and the size must be multiples of 16"));
}

TEST_CASE("a plain bulk copy stays inside its buffer and inside shared memory") {
  CHECK_PASSES(run_copy(kTileBytes - 32, 32));
  CHECK_BREAKS("global-out-of-bounds", run_copy(kTileBytes - 32, 48));
  CHECK_BREAKS("global-out-of-bounds", run_copy(kTileBytes, 16));
  CHECK_PASSES(run_copy(0, 1024, 2 * kTileBytes - 1024));
  CHECK_BREAKS("shared-out-of-bounds", run_copy(0, kPlain, 2 * kTileBytes - 1024));
}

TEST_CASE("global-uninitialised: a plain bulk copy of what has not been written") {
  const DeviceArray<unsigned char> unwritten(kPlain);
  const DeviceArray<std::uint32_t> out(kPlain / 4);
  CHECK_BREAKS("global-uninitialised",
               run(copy_and_dump, shape(64), unwritten.get(), kPlain, 0u, kPlain, out.get()));
}

TEST_CASE("proxy-fence: a plain bulk copy of what this CTA wrote") {
  DeviceArray<std::uint32_t> words(kPlain / 4, "words");
  const DeviceArray<std::uint32_t> result(kPlain / 4);
  words.fill(0);
  const auto run_with = [&](Handover how) {
    return run(write_then_copy, shape(64), words.get(), how, result.get());
  };
  CHECK_BREAKS("proxy-fence", run_with(Handover::kNoFence));
  CHECK_PASSES(run_with(Handover::kFence));
  const std::vector<std::uint32_t> copied = result.host();
  for (std::uint32_t i = 0; i < kPlain / 4; ++i) CHECK(copied[i] == 3 * i);
  CHECK_PASSES(run_with(Handover::kFenceOfAllMemory));
  CHECK_BREAKS("proxy-fence", run_with(Handover::kFenceOfSharedMemory));
  CHECK_BREAKS("proxy-fence", run_with(Handover::kFenceOfTheReader));
  CHECK_BREAKS_ONE_OF((Rules{"global-race", "proxy-fence"}), run_with(Handover::kNoBarrier));
}

TEST_CASE("proxy-fence: a plain bulk copy of what another CTA wrote") {
  DeviceArray<std::uint32_t> words(kPlain / 4, "words");
  DeviceArray<std::uint32_t> flag(1, "flag");
  const DeviceArray<std::uint32_t> result(kPlain / 4);
  words.fill(0);
  ptx::LaunchShape two = shape(64);
  two.grid = {2};
  two.co_resident = true;
  const auto run_with = [&](bool fenced) {
    flag.fill(0);
    return run(leave_and_copy, two, words.get(), flag.get(), fenced, result.get());
  };
  CHECK_PASSES(run_with(true));
  const std::vector<std::uint32_t> copied = result.host();
  for (std::uint32_t i = 0; i < kPlain / 4; ++i) CHECK(copied[i] == 5 * i);
  CHECK_BREAKS("proxy-fence", run_with(false));
}

}  // namespace hopper_tma_test
