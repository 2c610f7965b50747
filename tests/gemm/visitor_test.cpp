// The lifecycle of step 31's visitors: which hook is called when, and how often.
#include <string>
#include <vector>

#include "../../steps/31_visitors/kernel.cuh"
#include "emulator/emulator_test.h"

using namespace emulator_test;

namespace visitor_test {

using gemm::bf16;
using gemm::step_31::Chain;
using gemm::step_31::EmptyNode;
using gemm::step_31::Place;

std::vector<std::string> calls;

/// Thread 0 of the CTA writes down which hook of which node it calls.
template <int kName>
struct Recorder : EmptyNode {
  static void note(const char* hook) {
    if (threadIdx.x == 0) calls.push_back(hook + std::to_string(kName));
  }
  void begin(const Place&) { note("begin "); }
  void begin_loop(const Place& at) {
    if (threadIdx.x == 0)
      calls.push_back("begin_loop " + std::to_string(at.row) + " " + std::to_string(at.column) + " ");
  }
  void previsit(const Place&) { note("previsit "); }
  void visit(float (&x)[2], int unit, int half) {
    x[0] = static_cast<float>(unit);
    x[1] = static_cast<float>(half);
    note("visit ");
  }
  void reduce(bf16 (*)[64]) { note("reduce "); }
  void postreduce(const Place&) { note("postreduce "); }
  void tma_store(const Place&) { note("tma_store "); }
  void end_loop(const Place&) { note("end_loop "); }
  void end(const Place&) { note("end "); }
};

using Tile = gemm::WgmmaTiling<128, 192, 64, 1>;
using Visitor = Chain<Recorder<1>, Recorder<2>>;

TEST_CASE("a visitor's hooks are called in the order of its lifecycle, node by node") {
  const gemm::Shape shape{128, 192, 64};
  const DeviceArray<bf16> a(std::vector<bf16>(128 * 64), "A");
  const DeviceArray<bf16> b(std::vector<bf16>(192 * 64), "B");
  const DeviceArray<bf16> d(std::vector<bf16>(128 * 192), "D");
  const gemm::TileMaps maps = gemm::tile_maps<Tile>(gemm::Gemm{shape, a.get(), b.get(), d.get()});
  calls.clear();
  const ptx::LaunchShape launch{.grid = {},
                                .block = {384},
                                .cluster = {},
                                .shared_bytes = sizeof(gemm::step_31::Shared<Tile, 4, Visitor>)};
  const Outcome outcome = run(gemm::step_31::visitor_kernel<Tile, 4, Visitor>, launch, shape,
                              gemm::VisitorArguments{1, nullptr}, maps.a, maps.b, maps.d);
  INFO(outcome.report);
  REQUIRE(outcome.rule == "passed");
  std::vector<std::string> expected;
  const auto both = [&](const std::string& hook) {
    expected.push_back(hook + " 1");
    expected.push_back(hook + " 2");
  };
  both("begin");
  for (const int row : {0, 64}) {
    for (const int column : {0, 64, 128}) {
      const std::string loop = "begin_loop " + std::to_string(row) + " " + std::to_string(column) + " ";
      expected.insert(expected.end(), 2, loop);
      both("previsit");
      for (int fragment = 0; fragment < 16; ++fragment) both("visit");
      both("reduce");
      both("postreduce");
      both("tma_store");
      both("end_loop");
    }
  }
  both("end");
  CHECK(calls == expected);
  // And a fragment is where unit and half say: column unit * 8, row half * 8 of the warp's 16.
  const std::vector<bf16> result = d.host();
  for (int row = 0; row < 128; ++row) {
    for (int column = 0; column < 192; ++column) {
      const float wanted = static_cast<float>(column % 2 == 0 ? column % 64 / 8 : row % 16 / 8);
      CHECK(gemm::to_float(result[static_cast<std::size_t>(row * 192 + column)]) == wanted);
    }
  }
}

}  // namespace visitor_test
