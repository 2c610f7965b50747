// What step 12 taught: a producer's warpgroup behind the consumers', and the registers that each may have.
#pragma once

#include <algorithm>

namespace gemm {

/// A CTA with tiling T and kConsumers consumer warpgroups, numbers 0 to kConsumers - 1, and the producer's
/// warpgroup behind them. setmaxnreg moves registers from it to the consumers. PTX ISA, "setmaxnreg":
/// multiples of 8, and together no more than the CTA started with.
template <typename T, int kConsumers = T::kWarpgroups>
struct Roles {
  // ANCHOR: roles
  static constexpr int kProducerWarp = 4 * kConsumers;
  static constexpr int kThreads = 128 * (kConsumers + 1);
  static constexpr int kAtStart = std::min(256, 65536 / T::kCtasPerSm / kThreads / 8 * 8);
  static constexpr int kProducerRegisters = kConsumers < 3 ? 40 : 32;
  static constexpr int kConsumerRegisters =
      std::min(256, (kAtStart * (kConsumers + 1) - kProducerRegisters) / kConsumers / 8 * 8);
  // ANCHOR_END: roles
};

}  // namespace gemm
