// Named barriers, elect, setmaxnreg, stmatrix.
#include "emulator/hopper_test.h"

namespace hopper_warps_test {

using namespace emulator_test;

namespace {

struct Shared {
  alignas(16) bf16 tile[32 * 40];
  int words[256];
};

constexpr ptx::LaunchShape shape(unsigned threads) {
  return one_cta(threads, sizeof(Shared));
}

enum Fault {
  kNone,
  kCountTooSmall,
  kCountTooLarge,
  kDifferentCounts,
  kNotMultiple,
  kNumber,
  kHalfWarp,
  kTwice,
  kNoBarrier,
  kArriveOnly
};

/// Warps 0 and 1 produce, warps 2 and 3 consume; barrier 1 says full, barrier 2 says
/// empty. Warp 4 has no part.
__global__ void full_and_empty(int fault, int* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const unsigned thread = threadIdx.x;
  const std::uint32_t count = fault == kCountTooSmall   ? 96
                              : fault == kCountTooLarge ? 160
                              : fault == kNotMultiple   ? 100
                                                        : 128;
  const std::uint32_t full = fault == kNumber ? 16 : 1;
  if (thread >= 128) return;
  int sum = 0;
  for (int round = 0; round < 3; ++round) {
    if (thread < 64) {
      ptx::st_shared(&shared.words[thread], round * 100 + static_cast<int>(thread));
      if (fault == kHalfWarp && thread % 32 >= 16) continue;
      if (fault == kTwice && thread == 7) ptx::bar_arrive(full, count);
      ptx::bar_arrive(full, fault == kDifferentCounts && thread == 40 ? 96 : count);
      if (fault != kArriveOnly) ptx::bar_sync(2, 128);
    } else {
      if (fault != kNoBarrier) ptx::bar_sync(full, count);
      sum += ptx::ld_shared(&shared.words[127 - thread]);
      ptx::bar_sync(2, 128);
    }
  }
  if (thread >= 64) ptx::st_global(result + thread - 64, sum);
}

Outcome run_barriers(int fault) {
  DeviceArray<int> result(64);
  Outcome outcome = run(full_and_empty, shape(160), fault, result.get());
  if (outcome.rule == "passed") {
    const std::vector<int> host = result.host();
    for (int i = 0; i < 64; ++i) CHECK(host[static_cast<std::size_t>(i)] == 300 + 3 * (63 - i));
  }
  return outcome;
}

__global__ void barrier_zero(int* result) {
  auto& shared = ptx::dynamic_shared<Shared>();
  ptx::st_shared(&shared.words[threadIdx.x], 1);
  ptx::bar_sync(0, blockDim.x);
  ptx::st_global(result + threadIdx.x, ptx::ld_shared(&shared.words[(threadIdx.x + 5) % blockDim.x]));
}

__global__ void elects(int lanes, int* result) {
  if (static_cast<int>(threadIdx.x % 32) >= lanes) return;
  const bool first = ptx::elect_sync();
  const bool second = ptx::elect_sync();
  ptx::st_global(result + threadIdx.x, first == second ? static_cast<int>(first) : 100);
}

enum Reduction { kReduces, kMeetsSync, kMeetsArrive, kTwoReductions };

/// Two warps count, and a third one has a barrier of its own; then all of the CTA at barrier 0.
__global__ void reduces(int fault, std::uint32_t* result) {
  const unsigned me = threadIdx.x;
  std::uint32_t count = 0;
  if (me < 64) {
    const bool second = me >= 32;
    if (fault == kMeetsSync && second) {
      ptx::bar_sync(1, 64);
    } else if (fault == kMeetsArrive && second) {
      ptx::bar_arrive(1, 64);
    } else if (fault == kTwoReductions && second) {
      count = ptx::bar_red_or(1, 64, true) ? 1 : 0;
    } else {
      count = ptx::bar_red_popc(1, 64, me % 3 == 0);
    }
    count += ptx::bar_red_and(1, 64, me < 64) ? 100 : 0;
    count += ptx::bar_red_and(1, 64, me != 63) ? 1000 : 0;
  } else {
    count = ptx::bar_red_or(2, 32, me == 70) ? 10000 : 0;
  }
  count += 100000 * ptx::bar_red_popc(0, 96, me % 2 == 0);
  ptx::st_global(result + me, count);
}

/// Warpgroup 0 releases, the others ask for more.
template <int kLow, int kHigh>
__global__ void changes_registers(int fault) {
  const unsigned warpgroup = threadIdx.x / 128;
  if (warpgroup == 0) {
    if (fault == 1 && threadIdx.x == 5) {
      ptx::setmaxnreg_dec<24>();
    } else if (fault != 2 && fault != 3) {
      ptx::setmaxnreg_dec<kLow>();
    } else if (fault == 3 && threadIdx.x < 96) {
      ptx::setmaxnreg_dec<kLow>();
    }
  } else {
    ptx::setmaxnreg_inc<kHigh>();
    if (fault == 4) ptx::setmaxnreg_inc<40>();
  }
}

enum Store { kX1, kX2, kX4, kX1Trans, kX2Trans, kX4Trans, kMisaligned, kRace };

/// Each lane's registers are its own number and the matrix'; stored, read back by all.
__global__ void stores_matrices(int kind, std::uint16_t* out) {
  auto& shared = ptx::dynamic_shared<Shared>();
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t r[4];
  for (std::uint32_t i = 0; i < 4; ++i) r[i] = (i << 8 | lane << 2 | 1) << 16 | i << 8 | lane << 2;
  // Rows of 80 bytes.
  bf16* row = shared.tile + lane * 40 + (kind == kMisaligned && lane == 3 ? 1 : 0);
  if (kind == kX1) ptx::stmatrix_x1(row, {r[0]});
  if (kind == kX2) ptx::stmatrix_x2(row, {r[0], r[1]});
  if (kind == kX4 || kind == kMisaligned || kind == kRace) ptx::stmatrix_x4(row, r);
  if (kind == kX1Trans) ptx::stmatrix_x1_trans(row, {r[0]});
  if (kind == kX2Trans) ptx::stmatrix_x2_trans(row, {r[0], r[1]});
  if (kind == kX4Trans) ptx::stmatrix_x4_trans(row, r);
  if (kind != kRace) __syncwarp();
  const unsigned matrices = kind == kX1 || kind == kX1Trans ? 1 : kind == kX2 || kind == kX2Trans ? 2 : 4;
  if (lane < 8 * matrices) {
    for (unsigned i = 0; i < 8; ++i) {
      ptx::st_global(out + lane * 8 + i,
                     ptx::ld_shared(reinterpret_cast<const std::uint16_t*>(shared.tile + lane * 40 + i)));
    }
  }
}

void check_stmatrix(int kind, int matrices, bool transposed) {
  DeviceArray<std::uint16_t> out(32 * 8);
  CHECK_PASSES(run(stores_matrices, shape(32), kind, out.get()));
  const std::vector<std::uint16_t> host = out.host();
  int wrong = 0;
  for (int matrix = 0; matrix < matrices; ++matrix) {
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) {
        const int row = transposed ? j : i;
        const int column = transposed ? i : j;
        const int lane = 4 * row + column / 2;
        const int expected = matrix << 8 | lane << 2 | (column & 1);
        wrong += host[static_cast<std::size_t>((8 * matrix + i) * 8 + j)] != expected;
      }
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("named barriers hand over between some warps") {
  CHECK_PASSES(run_barriers(kNone));
  DeviceArray<int> result(96);
  CHECK_PASSES(run(barrier_zero, shape(96), result.get()));
}

TEST_CASE("bar.red counts, and all threads of the round learn the result") {
  DeviceArray<std::uint32_t> result(96);
  CHECK_PASSES(run(reduces, shape(96), kReduces, result.get()));
  const std::vector<std::uint32_t> host = result.host();
  for (std::size_t i = 0; i < 96; ++i) CHECK(host[i] == 100000 * 48 + (i < 64 ? 22 + 100 : 10000));
}

TEST_CASE("named-barrier: bar.red meets another instruction at its barrier") {
  DeviceArray<std::uint32_t> result(96);
  for (const int fault : {kMeetsSync, kMeetsArrive, kTwoReductions}) {
    INFO("fault " << fault);
    CHECK_BREAKS("named-barrier", run(reduces, shape(96), fault, result.get()));
  }
}

TEST_CASE("named-barrier: counts and numbers") {
  CHECK_BREAKS("named-barrier", run_barriers(kDifferentCounts));
  CHECK_BREAKS("named-barrier", run_barriers(kNotMultiple));
  CHECK_BREAKS("named-barrier", run_barriers(kNumber));
  CHECK_BREAKS("named-barrier", run_barriers(kTwice));
  CHECK_BREAKS("deadlock", run_barriers(kCountTooLarge));
  const Outcome outcome = run_barriers(kCountTooLarge);
  CHECK(contains(outcome.report,
                 "named barrier 1: 128 of 160 threads have arrived: threads 64-127 (bar_sync), threads 0-63 "
                 "(bar_arrive)"));
}

TEST_CASE("named-barrier: a count that is too small") {
  // The round ends without the last warp, which starts a round of its own.
  const Rules rules{"named-barrier", "shared-race", "deadlock", "shared-uninitialised"};
  CHECK_BREAKS_ONE_OF(rules, run_barriers(kCountTooSmall));
}

TEST_CASE("named-barrier: half a warp") {
  const Rules rules{"named-barrier", "deadlock"};
  CHECK_BREAKS_ONE_OF(rules, run_barriers(kHalfWarp));
}

TEST_CASE("shared-race: one side of a named barrier is missing") {
  const Rules reader{"shared-race", "shared-uninitialised", "named-barrier"};
  CHECK_BREAKS_ONE_OF(reader, run_barriers(kNoBarrier));
  const Rules writer{"shared-race", "named-barrier"};
  CHECK_BREAKS_ONE_OF(writer, run_barriers(kArriveOnly));
}

TEST_CASE("elect_sync: one lane, the same every time, of the seed's choice") {
  std::set<int> lanes;
  under_all_schedules([&] {
    DeviceArray<int> result(64);
    require_passes(run(elects, shape(64), 32, result.get()));
    const std::vector<int> host = result.host();
    for (std::size_t warp = 0; warp < 2; ++warp) {
      const auto begin = host.begin() + static_cast<std::ptrdiff_t>(32 * warp);
      CHECK(std::count(begin, begin + 32, 1) == 1);
      CHECK(std::count(begin, begin + 32, 0) == 31);
      lanes.insert(static_cast<int>(std::find(begin, begin + 32, 1) - begin));
    }
  });
  CHECK(lanes.size() > 10);
  DeviceArray<int> result(64);
  CHECK_BREAKS("warp-divergence", run(elects, shape(64), 31, result.get()));
}

TEST_CASE("setmaxnreg: a budget that works out") {
  // 65536 / 384 threads: 168 registers each at the start, 504 for the three warpgroups.
  CHECK_PASSES(run(changes_registers<40, 232>, one_cta(384), 0));
  CHECK_PASSES(run(changes_registers<24, 240>, one_cta(384), 0));
  CHECK_PASSES(run(changes_registers<24, 256>, one_cta(256), 0));
  CHECK_PASSES(
      run(changes_registers<40, 232>, one_cta(256), 0));  // ptxas takes 232, not the 248 of the bounds
}

TEST_CASE("setmaxnreg: more than the register file holds") {
  CHECK_BREAKS("setmaxnreg", run(changes_registers<40, 240>, one_cta(384), 0));
  const Outcome outcome = run(changes_registers<40, 240>, one_cta(384), 0);
  check_text(outcome.report, {"64512 registers in the CTA's pool", "warpgroup 0 has 40 per thread"});
  CHECK(contains(outcome.report,
                 "40 + 240 + 240 = 520 registers, counting one thread of each warpgroup, but there are only "
                 "3 x 168 = 504"));
}

TEST_CASE("setmaxnreg: not by the whole warpgroup, or not at all") {
  CHECK_BREAKS("setmaxnreg", run(changes_registers<40, 232>, one_cta(384), 1));
  CHECK_BREAKS("setmaxnreg", run(changes_registers<40, 232>, one_cta(384), 2));
  CHECK_BREAKS("setmaxnreg", run(changes_registers<40, 232>, one_cta(384), 3));
  CHECK(contains(run(changes_registers<40, 232>, one_cta(384), 3).report,
                 "to 40 registers, by the other warps of warpgroup 0 of CTA (0,0,0): warps 0-2 executed it"));
  CHECK_BREAKS("setmaxnreg", run(changes_registers<40, 232>, one_cta(384), 4));
  CHECK_BREAKS("setmaxnreg", run(changes_registers<40, 232>, one_cta(352), 0));
}

TEST_CASE("stmatrix") {
  check_stmatrix(kX1, 1, false);
  check_stmatrix(kX2, 2, false);
  check_stmatrix(kX4, 4, false);
  check_stmatrix(kX1Trans, 1, true);
  check_stmatrix(kX2Trans, 2, true);
  check_stmatrix(kX4Trans, 4, true);
  DeviceArray<std::uint16_t> out(32 * 8);
  CHECK_BREAKS("shared-misaligned", run(stores_matrices, shape(32), kMisaligned, out.get()));
  const Rules rules{"shared-race", "shared-uninitialised"};
  CHECK_BREAKS_ONE_OF(rules, run(stores_matrices, shape(32), kRace, out.get()));
}

}  // namespace hopper_warps_test
