// Step 18's own shapes: tiles against SMs, k-tiles against work tiles, launches behind each other, and
// results that are the same bit for bit.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "catch.h"
#include "gemm/schedule/decomposition.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "harness/verify/workload/workload.h"
#include "launches.h"
#include "schedules.h"

namespace {

/// D of inputs whose large products cancel out over the whole of K: what is left is mostly rounding, which
/// depends on the order of the additions.
class CancellingSums {
 public:
  explicit CancellingSums(const gemm::Shape& shape) : shape_(shape) {
    a_ = upload(shape.m, "A", true);
    b_ = upload(shape.n, "B", false);
    d_ = harness::device_allocate(elements(shape.m, shape.n) * sizeof(gemm::bf16), "D");
  }
  ~CancellingSums() {
    for (void* memory : {a_, b_, d_}) harness::device_free(memory);
  }
  CancellingSums(const CancellingSums&) = delete;
  CancellingSums& operator=(const CancellingSums&) = delete;

  gemm::Gemm gemm() const {
    return {shape_, static_cast<gemm::bf16*>(a_), static_cast<gemm::bf16*>(b_), static_cast<gemm::bf16*>(d_)};
  }
  /// The bits of D after one more launch.
  std::vector<std::uint16_t> run(const gemm::Launcher& start) const {
    std::vector<std::uint16_t> bits(elements(shape_.m, shape_.n));
    harness::fill_device(d_, 0xff, bits.size() * sizeof(gemm::bf16));
    start(nullptr);
    harness::synchronize();
    harness::copy_to_host(bits.data(), d_, bits.size() * sizeof(gemm::bf16));
    return bits;
  }

 private:
  static std::size_t elements(int rows, int columns) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
  /// The second half of a row is the first, negated if `odd`: the sum of all products is 0.
  void* upload(int rows, const char* name, bool odd) {
    std::vector<gemm::bf16> values(elements(rows, shape_.k));
    std::uint32_t state = 1;
    const int half = shape_.k / 2;
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < shape_.k; ++k) {
        gemm::bf16& value = values[elements(row, shape_.k) + static_cast<std::size_t>(k)];
        if (k < half) {
          state = state * 1664525 + 1013904223;
          value = gemm::to_bf16(static_cast<float>(state >> 16) / 1000);
        } else {
          const float first =
              gemm::to_float(values[elements(row, shape_.k) + static_cast<std::size_t>(k - half)]);
          value = gemm::to_bf16(odd ? -first : first);
        }
      }
    }
    void* const memory = harness::device_allocate(values.size() * sizeof(gemm::bf16), name);
    harness::copy_to_device(memory, values.data(), values.size() * sizeof(gemm::bf16));
    return memory;
  }

  gemm::Shape shape_;
  void* a_;
  void* b_;
  void* d_;
};

}  // namespace

TEST_CASE("fewer tiles than SMs, as many, one more, and fewer k-tiles than work tiles, twice",
          "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (int sms = 1; sms <= 7; ++sms) {
    harness::control_emulator({.schedule_seed = static_cast<std::uint64_t>(sms), .sm_count = sms});
    for (std::size_t i = 0; i < step_under_test().variants.size(); ++i) {
      const gemm::Variant& variant = step_under_test().variants[i];
      INFO(sms << " SMs");
      // Each variant meets each case with two or three numbers of SMs.
      const int which = (sms + static_cast<int>(i)) % 3;
      if (sms - 1 + which > 0) verify_twice(variant, shape_of(variant, sms - 1 + which, 1 + which));
      if (which == 0) verify_twice(variant, shape_of(variant, 1, 2));  // split_k4: two work tiles, not four
      if (which == 1) verify_twice(variant, shape_of(variant, 2, 5 + sms));  // work tiles that wrap
    }
  }
  harness::control_emulator({});
}

TEST_CASE("the hybrid has stream-K tiles and data-parallel tiles behind them", "[emulator]") {
  if (skip_without_emulator()) return;
  constexpr int kSms = 3;
  harness::control_emulator({.sm_count = kSms});
  const gemm::Variant& hybrid = variant_named("hybrid");
  // Two waves and a third: K must be long for stream-K tiles to be worth it.
  constexpr int kTiles = 7;
  constexpr int kKTiles = 60;
  const gemm::Decomposition all = gemm::decompose(gemm::Split::kHybrid, kTiles, kKTiles, kSms);
  REQUIRE(all.stream_k_tiles > 0);
  REQUIRE(all.stream_k_tiles < kTiles);
  verify_twice(hybrid, shape_of(hybrid, kTiles, kKTiles));
  CHECK(hybrid.workspace_bytes(shape_of(hybrid, kTiles, kKTiles)) ==
        static_cast<std::int64_t>(kSms) * (128 * 256 * 4 + 2 * 4));
  CHECK(hybrid.workspace_bytes(shape_of(hybrid, kTiles, 1)) == 0);
  harness::control_emulator({});
}

TEST_CASE("the same bits in every run, whichever CTA comes first", "[emulator][slow]") {
  if (skip_without_emulator()) return;
  for (const gemm::Variant& variant : step_under_test().variants) {
    // Two tiles among five workers: up to four pass partials to one tile.
    const CancellingSums sums(shape_of(variant, 2, 11));
    std::vector<std::uint16_t> first;
    under_schedules(4, 5, [&](std::uint64_t) {
      const gemm::Launcher start = variant.prepare(sums.gemm());
      for (int launch = 1; launch <= 2; ++launch) {
        const std::vector<std::uint16_t> bits = sums.run(start);
        if (first.empty()) first = bits;
        INFO(variant.name << ", launch " << launch);
        CHECK((bits == first));
      }
    });
  }
}

TEST_CASE("the bits do depend on where K is cut", "[emulator]") {
  // Otherwise the test above would show nothing.
  if (skip_without_emulator()) return;
  harness::control_emulator({.sm_count = 5});
  const CancellingSums sums(shape_of(step_under_test().variants.front(), 2, 11));
  const auto bits = [&](const char* name) { return sums.run(variant_named(name).prepare(sums.gemm())); };
  CHECK_FALSE((bits("data_parallel") == bits("stream_k")));
  CHECK_FALSE((bits("split_k2") == bits("split_k4")));
  harness::control_emulator({});
}

TEST_CASE("launches in a row give the same bits", "[device]") {
  if (skip_where_step_cannot_run()) return;
  const bool emulated = harness::device_info().is_emulator;
  const gemm::Shape shape = emulated ? gemm::Shape{131, 40, 520} : gemm::Shape{1152, 1152, 8192};
  const CancellingSums sums(shape);
  for (const gemm::Variant& variant : step_under_test().variants) {
    const gemm::Launcher start = variant.prepare(sums.gemm());
    const std::vector<std::uint16_t> first = sums.run(start);
    for (int launch = 2; launch <= (emulated ? 3 : 20); ++launch) {
      INFO(variant.name << ", launch " << launch);
      CHECK((sums.run(start) == first));
    }
  }
}
