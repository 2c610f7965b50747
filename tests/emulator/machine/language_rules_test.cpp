// Rules of the language and of the launch: __launch_bounds__, __grid_constant__, convergence.
#include "emulator/hopper_test.h"
#include "emulator/machine/launch/launch_bounds.h"
#include "emulator/report/course_rules.h"
#include "emulator/report/kernel_source.h"
#include "emulator/report/narrow_offsets.h"
#include "gemm/tile/tile_source.cuh"
#include "gemm/tile/tiling.h"
#include "ptx/ldmatrix.cuh"

using namespace emulator_test;

namespace {

template <int kThreads>
__global__ void __launch_bounds__(2 * kThreads, 1) bounded(std::uint32_t* out) {
  ptx::st_global(out + threadIdx.x, threadIdx.x);
}

__global__ void __launch_bounds__(96) bounded_by_a_number(std::uint32_t* out) {
  ptx::st_global(out + threadIdx.x, threadIdx.x);
}

__global__ void unbounded(std::uint32_t* out) {
  ptx::st_global(out + threadIdx.x, threadIdx.x);
}

enum Way { kApart, kTogetherAgain, kAllLanes, kPolls, kWholeWarps, kBehindShuffle, kBehindSyncthreads };

/// Lanes take a branch; then the warp executes bar.sync, which is .aligned.
__global__ void branches(int way) {
  auto& barrier = ptx::dynamic_shared<std::uint64_t>();
  make_barrier(&barrier, 64);
  __syncthreads();
  const bool taken = way == kAllLanes || (way == kWholeWarps ? threadIdx.x >= 32 : threadIdx.x % 32 == 5);
  if (way == kPolls) {
    ptx::mbarrier_arrive(&barrier);
    wait(&barrier, 0);  // some lanes ask more often than others
  } else if (taken) {
    __threadfence();
  }
  if (way == kTogetherAgain) __syncwarp();
  if (way == kBehindShuffle) __any_sync(0xffffffffu, 1);
  if (way == kBehindSyncthreads) __syncthreads();
  ptx::bar_sync(1, 64);
}

/// Two warps read what both have written, with .aligned instructions only. Which lane's read takes the long
/// way through the emulator's checks is chance.
__global__ void reads_together(int) {
  auto& tile = ptx::dynamic_shared<std::uint32_t[32][4]>();
  for (std::uint32_t round = 0; round < 3; ++round) {
    const uint4 row{threadIdx.x, round, 0, 1};
    if (threadIdx.x % 2 == round % 2) ptx::st_shared(reinterpret_cast<uint4*>(&tile[threadIdx.x / 2]), row);
    __syncthreads();
    std::uint32_t fragments[4];
    for (int i = 0; i < 3; ++i) ptx::ldmatrix_x4(fragments, &tile[(threadIdx.x + 8u * i) % 32]);
    __syncthreads();
  }
}

Outcome run_branches(int way) {
  return run(branches, one_cta(64, 64), way);
}

}  // namespace

namespace gemm::narrow_offsets_test {
namespace {

__global__ void multiplies_in_32_bits(float*, int) {}

const emulator::KernelSource kNarrowSource("narrow_offsets_test", "tests/emulator/narrow.cuh", R"(
__global__ void multiplies_in_32_bits(float* matrix, int n) {
  ptx::st_global(matrix + (blockIdx.x * n + threadIdx.x), 0.0f);  // not row * n
}
)");

}  // namespace
}  // namespace gemm::narrow_offsets_test

namespace gemm::language_rules_test {
namespace {

__global__ void copies_its_map(ptx::TensorMap map, int) {
  static_cast<void>(map);
}
__global__ void copies_its_map_too(ptx::TensorMap map, int) {
  static_cast<void>(map);
}

const emulator::KernelSource kSource("language_rules_test", "tests/emulator/machine/language_rules_test.cpp",
                                     R"(
__global__ void copies_its_map(
    ptx::TensorMap map, int) {
)");

}  // namespace
}  // namespace gemm::language_rules_test

TEST_CASE("launch-bounds: no more threads than the kernel is compiled for") {
  DeviceArray<std::uint32_t> out(256);
  CHECK(emulator::launch_bounds(ptx::kernel_handle(unbounded)) == 0);
#if defined(__x86_64__) && !defined(__clang__)
  CHECK(emulator::launch_bounds(ptx::kernel_handle(bounded<32>)) == 64);
  CHECK(emulator::launch_bounds(ptx::kernel_handle(bounded<64>)) == 128);
  CHECK(emulator::launch_bounds(ptx::kernel_handle(bounded_by_a_number)) == 96);
  CHECK(run(bounded<32>, one_cta(65), out.get()).rule == "launch-bounds");
  CHECK(run(bounded<32>, one_cta(128), out.get()).rule == "launch-bounds");
  check_report(
      run(bounded_by_a_number, one_cta(128), out.get()), "launch-bounds",
      {"a block of (128,1,1) has 128 threads, but the kernel is compiled for 96", "bounded_by_a_number"});
#endif
  CHECK(run(bounded<32>, one_cta(64), out.get()).rule == "passed");
  CHECK(run(bounded<64>, one_cta(128), out.get()).rule == "passed");
  CHECK(run(bounded<64>, one_cta(32), out.get()).rule == "passed");
  CHECK(run(bounded_by_a_number, one_cta(96), out.get()).rule == "passed");
  CHECK(run(unbounded, one_cta(256), out.get()).rule == "passed");
}

TEST_CASE("grid-constant: tensor maps that a kernel takes by value are found in its source") {
  const auto found = emulator::copied_tensor_maps(R"source(
template <typename T, int kStages>
__global__ void __launch_bounds__(T::kThreads + (kStages > 2 ? 128 : 0), T::kCtas)
    one(Gemm gemm, const __grid_constant__ ptx::TensorMap a_map,
        const ptx::TensorMap b_map, Pair<int, float> pair = {1, 2},
        ptx::TensorMap /* by value */ d_map) {
  two(ptx::TensorMap x);
}
// __global__ void three(ptx::TensorMap map)
__global__ void four(const ptx::TensorMap* in_global_memory, const __grid_constant__ CUtensorMap map);
__global__ __launch_bounds__(128) void five(int, CUtensorMap map) {}
void six(ptx::TensorMap map) {}
const char* seven = "__global__ void" "eight(ptx::TensorMap map)" "__global__ void nine(ptx::TensorMap map)";
constexpr char kQuote = '"';  // "
constexpr int kThousand = 1'000;
/**/__global__ void ten(const ptx::TensorMap map);
)source");
  REQUIRE(found.size() == 4);
  CHECK(found[0].kernel == "one");
  CHECK(found[0].parameter == "b_map");
  CHECK(found[0].line == 5);
  CHECK(found[1].parameter == "d_map");
  CHECK(found[1].line == 6);
  CHECK(found[2].kernel == "five");
  CHECK(found[2].parameter == "map");
  CHECK(found[3].kernel == "ten");
  CHECK(found[3].line == 16);
  CHECK(emulator::copied_tensor_maps("__global__ void unfinished(ptx::TensorMap").size() <= 1);
  CHECK(emulator::copied_tensor_maps("__global__").empty());
  CHECK(emulator::initialised_member("    ptx::mbarrier_init(&shared.main_loads_begun, 1);") ==
        "main_loads_begun");
  CHECK(emulator::initialised_member("ptx::mbarrier_init(&full[i], 1);").empty());
  CHECK(emulator::initialised_member("  // ptx::mbarrier_init(&begun, 1)").empty());
  CHECK(emulator::source_line("common/gemm/no_such_file.h", 3).empty());
}

TEST_CASE("grid-constant: a kernel whose source says so is not launched") {
  check_report(run(gemm::language_rules_test::copies_its_map, one_cta(32), ptx::TensorMap{}, 1),
               "grid-constant",
               {"the kernel copies_its_map takes the tensor map map by value",
                "tests/emulator/machine/language_rules_test.cpp:3"});
  // Another kernel, whose name begins like it.
  CHECK(run(gemm::language_rules_test::copies_its_map_too, one_cta(32), ptx::TensorMap{}, 1).rule ==
        "passed");
}

TEST_CASE("convergence: lanes come together before an .aligned instruction, in strict mode") {
  CHECK_PASSES(run_branches(kApart));
  const emulator::ScopedCourseRule strict(emulator::CourseRule::kConvergence, true);
  CHECK_BREAKS("convergence", run_branches(kApart));
  for (const Way way : {kTogetherAgain, kAllLanes, kPolls, kWholeWarps, kBehindShuffle, kBehindSyncthreads}) {
    INFO("way " << way);
    CHECK_PASSES(run_branches(way));
  }
  CHECK_PASSES(run(reads_together, one_cta(64, 512), 0));
  check_report(run_branches(kApart), "convergence", {"lane 5", "--strict convergence has switched it on"});
}

TEST_CASE("tiles beyond 2^31 elements are read where they are") {
  constexpr int kSize = 262144;
  constexpr std::int64_t kColumns = kSize;
  using Source = gemm::TileSource<gemm::Tiling<128, 128, 64, 2, 2>, 128>;
  threadIdx = {};
  const auto* matrix = reinterpret_cast<const bf16*>(std::uintptr_t{1} << 40);  // nothing is read
  const Source source(matrix, kSize - 128, kSize, kSize);                       // of thread 0
  CHECK(source.first - matrix == (kColumns - 128) * kColumns);
  CHECK(source.address(Source::kVectors - 1, kSize - 64) - matrix ==
        (kColumns - 128 + std::int64_t{Source::kVectors - 1} * Source::kRowStep) * kColumns + kColumns - 64);
}

TEST_CASE("narrow-offset: products of sizes in 32 bits are found in a kernel's source") {
  const auto products = [](const std::string& code) {
    std::vector<std::string> found;
    for (const emulator::NarrowOffset& offset : emulator::narrow_offsets(code))
      found.push_back(offset.product);
    return found;
  };
  using Products = std::vector<std::string>;
  CHECK(products("ptx::ld_global(gemm.a + row * k + column);") == Products{"row * k"});
  CHECK(products("gemm.d[(row + 8) * n];") == Products{"(row + 8) * n"});
  CHECK(products("gemm.d + static_cast<std::int64_t>(row * n) + column;") == Products{"row * n"});
  CHECK(products("const std::int64_t at = row * n + column; ptx::st_global(gemm.d + at, x);") ==
        Products{"row * n"});
  CHECK(products("const int i = row * lda; const int j = i + 4; matrix[j];") == Products{"row * lda"});
  CHECK(products("__global__ void f(const float* __restrict__ in, int rows) { in[rows * blockIdx.x]; }") ==
        Products{"rows * blockIdx.x"});
  CHECK(products("gemm.b + std::min(column + r * T::kGroups, n - 1) * k;") ==
        Products{"std::min(column + r * T::kGroups, n - 1) * k"});
  CHECK(products("float4* values; Partials(void* workspace, int slots) : "
                 "values(static_cast<float4*>(workspace)), flags(values + slots * T::kM * T::kN / 4) {}") ==
        Products{"slots * T::kM * T::kN"});
  // In 64 bits from the first product on, small, or not global memory.
  for (const char* fine :
       {"gemm.d + offset(row * 2, column, n);", "gemm.d + static_cast<std::int64_t>(row) * n + column;",
        "gemm.d + std::int64_t{row} * n;", "gemm.d + (std::size_t)row * n + column;",
        "gemm.d + 1ll * row * n;", "const std::int64_t first = row; gemm.d + first * n;", "matrix + 8 * n;",
        "matrix + threadIdx.x * n;", "matrix + std::min(rows - row, 128) * n;",
        "for (int i = 0; i < 4; ++i) matrix[i * n];",
        "const int lane4 = threadIdx.x % 32 / 4; matrix + lane4 * n;", "tile[row * n];",
        "shared.a.element + row * n;", "flags[slot * T::kWarpgroups + warpgroup];",
        "gemm.d + offset(row, 0, n) + column;", "const int area = gemm.shape.m * gemm.shape.n;"}) {
    INFO(fine);
    CHECK(products(fine).empty());
  }
  for (const emulator::HeaderSource& header : emulator::header_sources()) {
    INFO(header.path);
    CHECK(emulator::narrow_offsets(emulator::without_comments(header.text)).empty());
  }
  CHECK(emulator::header_sources().size() > 10);
  for (const char* broken : {"gemm.d + (", "gemm.d[", "gemm", "gemm.d + row *", "__global__", "* matrix ="})
    products(broken);

  DeviceArray<float> out(32);
  check_report(run(gemm::narrow_offsets_test::multiplies_in_32_bits, one_cta(32), out.get(), 1),
               "narrow-offset", {"tests/emulator/narrow.cuh:3", "computed in 32 bits: blockIdx.x * n"});
  const emulator::ScopedCourseRule off(emulator::CourseRule::kNarrowOffset, false);
  CHECK(run(gemm::narrow_offsets_test::multiplies_in_32_bits, one_cta(32), out.get(), 1).rule == "passed");
}
