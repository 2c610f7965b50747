// Loops over all cores of the host.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace harness {

/// Calls body(begin, end) for consecutive ranges of at most `grain` that together cover [0, count), on all
/// cores. The calls of one thread come in ascending order. `body` must not throw.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (;;) {
      const std::int64_t begin = next.fetch_add(grain);
      if (begin >= count) return;
      body(begin, std::min(begin + grain, count));
    }
  };
  const std::int64_t pieces = (count + grain - 1) / grain;
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  struct Helpers {  // of std::jthread, which not every C++ library has yet, no more than this is needed
    std::vector<std::thread> threads;
    ~Helpers() {
      for (std::thread& thread : threads) thread.join();
    }
  } helpers;
  for (std::int64_t i = 1; i < std::min(cores, pieces); ++i) helpers.threads.emplace_back(work);
  work();
}

/// A grain for rows of `columns` elements: about 64 Ki elements, enough to be worth a thread.
constexpr std::int64_t row_grain(std::int64_t columns) {
  constexpr std::int64_t kElements = 1 << 16;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, columns));
}

}  // namespace harness
