// What is inside an mbarrier. The PTX ISA calls the object opaque; this is how an H200 keeps it, found by
// reading the word after each event. Good for looking at barriers, never for programming with them.
//
//   bits  1-20  minus the count of mbarrier.init
//   bits 21-41  minus the bytes expected and not yet there (tx-count)
//   bits 43-62  minus the arrivals that are missing in this phase
//   bit  63     the phase's parity
//
// On the GPU the unit that executes mbarrier instructions keeps the word in a cache of its own: an ordinary
// load sees it only behind mbarrier.inval. In the emulator memory is always up to date.
#pragma once

#include <cstdint>

namespace gemm::ptx {

struct MbarrierWord {
  std::uint32_t count = 0;    // arrivals that complete a phase
  std::uint32_t pending = 0;  // of them, missing in this phase
  std::int32_t tx = 0;        // bytes expected and not yet there; negative: more came than were expected
  std::uint32_t parity = 0;

  bool operator==(const MbarrierWord&) const = default;
};

constexpr std::uint64_t encode(const MbarrierWord& word) {
  constexpr std::uint64_t kCountMask = (std::uint64_t{1} << 20) - 1;
  constexpr std::uint64_t kTxMask = (std::uint64_t{1} << 21) - 1;
  auto minus = [](std::int64_t value, std::uint64_t mask) {
    return static_cast<std::uint64_t>(-value) & mask;
  };
  return minus(word.count, kCountMask) << 1 | minus(word.tx, kTxMask) << 21 |
         minus(word.pending, kCountMask) << 43 | static_cast<std::uint64_t>(word.parity & 1u) << 63;
}

constexpr MbarrierWord decode_mbarrier(std::uint64_t bits) {
  // The negated field, of `width` bits.
  auto field = [bits](int shift, int width) {
    const std::uint64_t range = std::uint64_t{1} << width;
    return (range - (bits >> shift & (range - 1))) & (range - 1);
  };
  const std::uint64_t tx = field(21, 21);
  constexpr std::uint64_t kTxRange = std::uint64_t{1} << 21;
  return {.count = static_cast<std::uint32_t>(field(1, 20)),
          .pending = static_cast<std::uint32_t>(field(43, 20)),
          .tx = static_cast<std::int32_t>(tx < kTxRange / 2 ? static_cast<std::int64_t>(tx)
                                                            : static_cast<std::int64_t>(tx) -
                                                                  static_cast<std::int64_t>(kTxRange)),
          .parity = static_cast<std::uint32_t>(bits >> 63)};
}

}  // namespace gemm::ptx
