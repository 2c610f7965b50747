// The little language of play_mbarrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace play {

enum class Verb : std::uint32_t { kInit, kArrive, kExpect, kArriveExpect, kComplete, kTest, kWait, kInval };

struct Event {
  Verb verb = Verb::kInit;
  std::uint32_t value = 0;
  std::string text;  // "complete 512"

  bool operator==(const Event&) const = default;
};

inline constexpr std::uint32_t kMaxCopyBytes = 64 * 1024;     // of one `complete`
inline constexpr std::uint32_t kCopySpaceBytes = 192 * 1024;  // of all of them
inline constexpr std::uint32_t kCopyAlignment = 128;
inline constexpr std::size_t kMaxCopySizes = 16;  // that differ
inline constexpr std::uint32_t kRowBytes = 1024;  // a longer copy is rows of this

/// "init 2, expect 1024; arrive": events separated by commas, semicolons or ends of lines; # starts a
/// comment. "arrive 3" becomes three events, so that no event completes more than one phase. Throws
/// harness::Error that names the event, what is wrong with it and what would be right. What is wrong for the
/// barrier only (too many arrivals, a parity of 2) is left for the barrier to find.
std::vector<Event> parse_script(const std::string& text);

}  // namespace play
