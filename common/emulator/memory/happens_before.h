// Which accesses are ordered: vector clocks, and the objects that threads synchronise through.
//
// Every emulated thread counts time; an access is stamped with (CTA, thread, time). A thread knows, for every
// other thread, up to which time that one's accesses are ordered before its own: its vector clock. Releasing
// into a synchronisation object stores what the thread knows and then advances its time; acquiring from the
// object adds what it holds. Two accesses race when neither's stamp is covered by the other's clock.
//
// Clocks of 1024 threads would be large, so they are kept the way barriers make them: per CTA one `base` (all
// accesses of that CTA with a time below it are known, which is what a __syncthreads leaves behind) and, only
// where a thread knows more about a warp, a page with 32 times.
#pragma once

#include <cstdint>
#include <vector>

namespace emulator {

/// CTA key (22 bits, never 0), thread in the CTA (10 bits), time (32 bits, from 1). 0 means "never".
using Stamp = std::uint64_t;

constexpr Stamp make_stamp(std::uint32_t cta_key, std::uint32_t thread, std::uint32_t time) {
  return static_cast<Stamp>(cta_key) << 42 | static_cast<Stamp>(thread) << 32 | time;
}
constexpr std::uint32_t stamp_cta(Stamp stamp) {
  return static_cast<std::uint32_t>(stamp >> 42);
}
constexpr std::uint32_t stamp_thread(Stamp stamp) {
  return static_cast<std::uint32_t>(stamp >> 32) & 1023u;
}
constexpr std::uint32_t stamp_time(Stamp stamp) {
  return static_cast<std::uint32_t>(stamp);
}
/// Keys from here on belong to asynchronous agents, not to CTAs.
inline constexpr std::uint32_t kAgentKey = 1u << 21;
constexpr std::uint32_t cta_key(std::uint64_t linear_cta) {
  return static_cast<std::uint32_t>(linear_cta % (kAgentKey - 1)) + 1;
}

/// 32 times, shared between the clocks of one OS thread until one of them changes it.
struct ClockPage {
  alignas(16) std::uint32_t times[32];
  int references;
  ClockPage* next_free;
};
void give_page_back(ClockPage* page);

class PageReference {
 public:
  PageReference() = default;
  PageReference(const PageReference& other) : page_(other.page_) {
    if (page_) ++page_->references;
  }
  PageReference(PageReference&& other) noexcept : page_(other.page_) { other.page_ = nullptr; }
  PageReference& operator=(PageReference other) noexcept {
    ClockPage* page = page_;
    page_ = other.page_;
    other.page_ = page;
    return *this;
  }
  ~PageReference() { reset(); }
  void reset() {
    if (page_ && --page_->references == 0) give_page_back(page_);
    page_ = nullptr;
  }
  explicit operator bool() const { return page_ != nullptr; }
  bool same(const PageReference& other) const { return page_ == other.page_; }
  const ClockPage& read() const { return *page_; }
  ClockPage& write();  // unshared, created with zeros if there was none
  void unshare() {
    if (page_ && page_->references != 1) copy();
  }

 private:
  void copy();
  ClockPage* page_ = nullptr;
};

class VectorClock {
 public:
  /// Whether the access stamped so happened before everything that this clock's owner does from now on.
  bool covers(Stamp stamp) const;
  void join(const VectorClock& other);
  /// Only what the other clock knows about one CTA: what a fence of CTA scope makes visible.
  void join_only(std::uint32_t cta_key, const VectorClock& other);
  /// Keeps only what the other clock knows too.
  void meet(const VectorClock& other);
  void add(Stamp stamp);
  /// Whether anything that a thread of this CTA did is known.
  bool knows_of(std::uint32_t cta_key) const;
  /// All accesses of this CTA below `base` are known.
  void raise_base(std::uint32_t cta_key, std::uint32_t base);
  /// Drops what is known about one CTA (because its threads now share a base that covers it).
  void forget(std::uint32_t cta_key);
  void clear() { parts_.clear(); }
  bool empty() const { return parts_.empty(); }
  /// Copies shared pages, so that another OS thread may own the clock.
  void unshare();

 private:
  struct Part {
    std::uint32_t key = 0;
    std::uint32_t base = 1;
    std::vector<PageReference> pages;  // by warp; shorter than the CTA where the rest is unknown
  };
  Part& part(std::uint32_t key);
  const Part* find(std::uint32_t key) const;
  static void join_part(Part& mine, const Part& theirs);
  std::vector<Part> parts_;
};

/// What passes happens-before from one thread to another: a barrier phase, a flag in memory, an mbarrier.
/// See Thread::release_into and Thread::acquire_from in machine.h.
struct SyncObject {
  VectorClock clock;
  VectorClock execution;                         // see Thread::execution
  VectorClock sequential_past, sequential_seen;  // see Thread::sequential_past
};

}  // namespace emulator
