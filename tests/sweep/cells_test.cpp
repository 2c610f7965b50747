// The cells of the sweep: what fits, what is timed, that every kernel is right, and the map in the terminal.
#include "cell.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/base/problem.h"
#include "harness/record/record.h"
#include "harness/verify/workload/workload.h"
#include "map.h"

namespace {

using harness::Completion;
using sweep::Cell;

const std::vector<Cell>& cells() {
  static const std::vector<Cell> all = sweep::all_cells();
  return all;
}

const Cell& cell_of(int m, int k) {
  return *std::find_if(cells().begin(), cells().end(),
                       [=](const Cell& cell) { return cell.m == m && cell.k == k; });
}

void verify(const gemm::Variant& variant, const gemm::Shape& shape, Completion completion,
            std::uint64_t seed) {
  INFO(variant.name << " " << harness::to_string(shape) << " completion " << static_cast<int>(completion)
                    << " seed " << seed);
  harness::control_emulator({.schedule_seed = seed, .completion = completion});
  harness::Workload workload(shape, harness::Pattern::kExact, seed);
  workload.poison();
  variant.prepare(workload.gemm())(nullptr);
  harness::synchronize();
  const harness::CheckResult result = workload.check(variant.tile);
  INFO(result.report);
  CHECK(result.ok);
  harness::control_emulator({});
}

harness::ContestantRecord contestant(const std::string& variant, double ratio) {
  return {.name = sweep::kContestant,
          .variant = variant,
          .median_us = 1000 / ratio,
          .tflops = 800 * ratio,
          .to_cublaslt = {ratio, ratio, ratio}};
}

}  // namespace

TEST_CASE("shared memory decides how many stages fit") {
  // 256 x 128 x 64: 48 KB a stage, four of them, 1 KB for barriers, 32 KB of store buffers: 225 KB of 227.
  CHECK(sweep::shared_bytes(256, 64, 4) == 225 * 1024);
  CHECK(sweep::most_stages(256, 64) == 4);
  // 64 x 128 x 32: 12 KB a stage and 16 KB of store buffers: 17 stages are 221 KB, the next would be 233.
  CHECK(sweep::shared_bytes(64, 32, 17) == 221 * 1024);
  CHECK(sweep::most_stages(64, 32) == 17);
  CHECK(sweep::most_stages(128, 192) == 2);
  CHECK(sweep::most_stages(128, 256) == 1);
}

TEST_CASE("every size is one cell, and either has kernels or a reason") {
  REQUIRE(cells().size() == sweep::kTileM.size() * sweep::kTileK.size());
  std::size_t place = 0;
  for (const int m : sweep::kTileM) {
    for (const int k : sweep::kTileK) {
      const Cell& cell = cells()[place++];
      INFO(sweep::tile_name(m, k));
      CHECK(cell.m == m);
      CHECK(cell.k == k);
      CHECK(cell.variants.empty() != cell.limits.empty());
      if (cell.limits.empty()) {
        CHECK(cell.variants.front().stages == 2);
        CHECK(cell.variants.back().stages == cell.most_stages);
      }
    }
  }
}

TEST_CASE("five consumer warpgroups start with too few registers") {
  CHECK(sweep::registers_at_start(320) == 80);  // 65536 / (6 * 128) = 85.3, in units of 8
  for (const int m : {64, 128, 192, 256}) CHECK(sweep::registers_suffice(m));
  const Cell& cell = cell_of(320, 64);
  REQUIRE(cell.limits.size() == 1);
  CHECK(cell.limits.front().what == "registers");
  CHECK(cell.limits.front().why.find("768 threads") != std::string::npos);
  CHECK(cell_of(320, 128).limits.size() == 2);
  const Cell& deep = cell_of(256, 192);
  REQUIRE(deep.limits.size() == 1);
  CHECK(deep.limits.front().what == "shared memory");
  CHECK(deep.limits.front().why.find("147456 bytes") != std::string::npos);
}

TEST_CASE("every tile is right with every number of stages", "[slow]") {
  for (const Cell& cell : cells()) {
    for (const gemm::Variant& variant : cell.variants)
      verify(variant, {cell.m + 5, 264, 600}, Completion::kRandom, 1);
  }
}

// Rows of 64 bytes are the sweep's own; the ring at its edges is where a wrong layout or phase would show.
TEST_CASE("k-tiles of 32 are right at every number of k-tiles") {
  for (const int m : {64, 128, 192, 256}) {
    const Cell& cell = cell_of(m, 32);
    for (const gemm::Variant* variant : {&cell.variants.front(), &cell.variants.back()}) {
      const int stages = variant->stages;
      for (const int k_tiles : {1, stages - 1, stages, stages + 1, 2 * stages + 1}) {
        verify(*variant, {m + 3, 40, k_tiles * 32}, Completion::kLatest, 2);
        verify(*variant, {5, 136, k_tiles * 32 - 8}, Completion::kEarliest, 3);
        verify(*variant, {m + 1, 136, k_tiles * 32 - 16}, Completion::kRandom, 4);
      }
    }
  }
}

TEST_CASE("the map shows the fastest number of stages and what does not fit") {
  harness::ShapeRecord shape;
  shape.contestants = {contestant("256x128x64_stages2", 0.9), contestant("256x128x64_stages4", 0.975),
                       contestant("256x128x64_stages3", 0.95)};
  const std::string text = sweep::map_text(cells(), shape);
  INFO(text);
  CHECK(text.find("speed relative to cuBLASLt") != std::string::npos);
  CHECK(text.find("0.975, 4") != std::string::npos);
  CHECK(text.find("0.950") == std::string::npos);
  CHECK(text.find("320x128x32 does not fit, registers: 5 consumer warpgroups") != std::string::npos);
  for (harness::ContestantRecord& record : shape.contestants) record.to_cublaslt = {};
  CHECK(sweep::map_text(cells(), shape).find("780, 4") != std::string::npos);

  const nlohmann::json json = sweep::cells_json(cells());
  REQUIRE(json.size() == cells().size());
  CHECK(json.front().dump() ==
        R"({"instructions":2,"k":32,"limits":[],"m":64,"most_stages":17,"n":128,"warpgroups":1})");
  CHECK(json.back()["limits"].size() == 2);
}
