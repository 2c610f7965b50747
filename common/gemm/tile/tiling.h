// How a CTA's tile is divided among its warps and into mma.sync fragments.
#pragma once

namespace gemm {

/// The CTA multiplies a kM x kN tile, kK at a time, with a grid of kWarpsM x kWarpsN warps; every warp owns a
/// kWarpM x kWarpN part of it, made of m16n8 accumulator fragments.
template <int kTileM, int kTileN, int kTileK, int kGridM, int kGridN, int kCtas = 1>
struct Tiling {
  static constexpr int kM = kTileM;
  static constexpr int kN = kTileN;
  static constexpr int kK = kTileK;
  static constexpr int kWarpsM = kGridM;
  static constexpr int kWarpsN = kGridN;
  static constexpr int kCtasPerSm = kCtas;  // the register budget: 65536 / (kCtasPerSm * kThreads)
  static constexpr int kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kWarpM = kM / kWarpsM;
  static constexpr int kWarpN = kN / kWarpsN;
  static constexpr int kFragmentsM = kWarpM / 16;  // m16n8k16 rows
  static constexpr int kFragmentsN = kWarpN / 8;   // m16n8k16 columns
  static constexpr int kVectorsPerRow = kK / 8;    // 16-byte vectors

  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0, "a warp's part is made of 16 x 16 pairs of fragments");
  static_assert(kK % 16 == 0, "one mma.sync multiplies 16 deep");
};

}  // namespace gemm
