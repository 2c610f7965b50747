// The counters at the beginning of the workspace of step 21: there is room for those of every plan.
#include <algorithm>

#include "22_peak/plans.h"
#include "emulator/emulator_test.h"
#include "gemm/fitted/reduction.cuh"

namespace fitted_counters_test {

using namespace gemm;
using namespace gemm::step_22;

TEST_CASE("fitted counters: two of a lockstep and those of a reduction fit, with every plan") {
  int most = 0;
  for (int sms = 1; sms <= 400; sms = sms < 8 ? sms + 1 : sms * 5 / 4) {
    Card card = kH200;
    card.sms = sms;
    for (const Shape& shape : {Shape{1, 8, 8}, Shape{64, 6464, 4960}, Shape{3000, 5000, 7000},
                               Shape{2048, 2048, 2048}, Shape{8192, 8192, 128}, Shape{128, 16384, 16384}}) {
      for (const FittedTile& tile : kTiles) {
        for (const FittedPlan& plan : plans_of(tile, shape, card))
          most = std::max(most, plan.stream_k_tiles * plan.cluster.ctas());
      }
    }
  }
  CHECK(most >= 400);  // there are plans with many
  CHECK(static_cast<std::size_t>(2 + most + 1) * sizeof(std::uint32_t) <=
        FixUp<WgmmaTiling<64, 64, 64, 1>>::kCounterBytes);
}

}  // namespace fitted_counters_test
