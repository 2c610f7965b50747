// What a model of speed must know of a GPU.
#pragma once

namespace gemm {

/// Clocks and bandwidth are the highest that the card says of itself.
struct Card {
  int sms = 132;
  double clock_mhz = 1980;
  double dram_bytes_per_us = 4.8e6;
};

/// Of an H200 SXM: where there is no GPU to ask.
inline constexpr Card kH200{};

}  // namespace gemm
