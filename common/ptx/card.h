// What a model of speed must know of a GPU.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <string_view>

namespace gemm {

/// Clocks and bandwidth are the highest that the card says of itself.
struct Card {
  int sms = 132;
  double clock_mhz = 1980;
  double dram_bytes_per_us = 4.8e6;
  double l2_rate = 1;  // what an SM gets from the L2 in a clock, over what it gets on an H200
  // Clusters of 2, 4 and 8 CTAs that are resident at once, one CTA on an SM; 0: not asked. Fewer than the SMs
  // divided, because a cluster stays within a GPC.
  std::array<int, 3> clusters{};
  int device = 0;  // its number: two cards that are otherwise alike may hold different numbers of clusters
  auto operator<=>(const Card&) const =
      default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 sees a 0 in it

  constexpr int resident_clusters(int ctas) const {
    const int known =
        ctas == 1 ? sms
                  : clusters[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(ctas))) - 1];
    return known > 0 ? known : sms / ctas;
  }
};

/// Of an H200 SXM: where there is no GPU to ask.
inline constexpr Card kH200{.clusters = {66, 32, 16}};

/// Of an H100 SXM. The rate of its L2 is that with which the model of step 22 scatters least on the plans of
/// docs/results/plans_h100.txt.bz2.
inline constexpr Card kH100{.dram_bytes_per_us = 3.35e6, .l2_rate = 0.85, .clusters = {66, 32, 16}};

/// No attribute says how fast the L2 is, but the card's name does. One that was never measured is taken for
/// an H200.
constexpr double l2_rate_of(std::string_view name) {
  for (const std::string_view with_its_l2 : {"H100", "H800"}) {
    if (name.find(with_its_l2) != std::string_view::npos) return kH100.l2_rate;
  }
  return kH200.l2_rate;
}

}  // namespace gemm
