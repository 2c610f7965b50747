#include "emulator/memory/happens_before.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace emulator {
namespace {

// Pages come and go with every warp barrier: keep the free ones of this OS thread.
constinit thread_local ClockPage* free_pages = nullptr;
struct FreePages {
  ~FreePages() {
    while (free_pages != nullptr) delete std::exchange(free_pages, free_pages->next_free);
  }
};

ClockPage* allocate_page() {
  if (free_pages != nullptr) return std::exchange(free_pages, free_pages->next_free);
  thread_local const FreePages deleted_with_the_thread;
  static_cast<void>(deleted_with_the_thread);
  return new ClockPage;
}

/// Of two pages: does each know of something later than the other one?
struct Comparison {
  bool first_is_later;
  bool second_is_later;
};
Comparison compare(const ClockPage& first, const ClockPage& second) {
  using Four = std::uint32_t __attribute__((vector_size(16)));
  using Mask = std::int32_t __attribute__((vector_size(16)));
  Mask first_is_later{};
  Mask second_is_later{};
  for (int i = 0; i < 32; i += 4) {
    Four a;
    Four b;
    std::memcpy(&a, first.times + i, sizeof a);
    std::memcpy(&b, second.times + i, sizeof b);
    first_is_later |= a > b;
    second_is_later |= b > a;
  }
  const auto any = [](const Mask& mask) { return (mask[0] | mask[1] | mask[2] | mask[3]) != 0; };
  return {any(first_is_later), any(second_is_later)};
}

}  // namespace

void give_page_back(ClockPage* page) {
  page->next_free = free_pages;
  free_pages = page;
}

ClockPage& PageReference::write() {
  if (!page_) {
    page_ = allocate_page();
    std::memset(page_->times, 0, sizeof page_->times);
    page_->references = 1;
  } else {
    unshare();
  }
  return *page_;
}

void PageReference::copy() {
  ClockPage* copy = allocate_page();
  std::memcpy(copy->times, page_->times, sizeof copy->times);
  copy->references = 1;
  --page_->references;
  page_ = copy;
}

bool VectorClock::covers(Stamp stamp) const {
  const std::uint32_t key = stamp_cta(stamp);
  for (const Part& part : parts_) {
    if (part.key != key) continue;
    if (stamp_time(stamp) < part.base) return true;
    const std::uint32_t thread = stamp_thread(stamp);
    const std::uint32_t warp = thread / 32;
    return warp < part.pages.size() && part.pages[warp] &&
           part.pages[warp].read().times[thread % 32] >= stamp_time(stamp);
  }
  return false;
}

VectorClock::Part& VectorClock::part(std::uint32_t key) {
  for (Part& part : parts_) {
    if (part.key == key) return part;
  }
  parts_.emplace_back();
  parts_.back().key = key;
  return parts_.back();
}

void VectorClock::join_part(Part& mine, const Part& theirs) {
  mine.base = std::max(mine.base, theirs.base);  // times in pages below the base say nothing, and do no harm
  if (mine.pages.size() < theirs.pages.size()) mine.pages.resize(theirs.pages.size());
  for (std::size_t warp = 0; warp < theirs.pages.size(); ++warp) {
    const PageReference& other = theirs.pages[warp];
    if (!other || mine.pages[warp].same(other)) continue;
    if (!mine.pages[warp]) {
      mine.pages[warp] = other;
      continue;
    }
    // Mostly one knows all that the other does: then nothing is copied, and both share a page.
    const auto [mine_is_later, other_is_later] = compare(mine.pages[warp].read(), other.read());
    if (!other_is_later) continue;
    if (!mine_is_later) {
      mine.pages[warp] = other;
      continue;
    }
    ClockPage& page = mine.pages[warp].write();
    const ClockPage& from = other.read();
    for (int lane = 0; lane < 32; ++lane) page.times[lane] = std::max(page.times[lane], from.times[lane]);
  }
}

void VectorClock::join(const VectorClock& other) {
  for (const Part& theirs : other.parts_) join_part(part(theirs.key), theirs);
}

void VectorClock::join_only(std::uint32_t key, const VectorClock& other) {
  for (const Part& theirs : other.parts_) {
    if (theirs.key == key) join_part(part(key), theirs);
  }
}

const VectorClock::Part* VectorClock::find(std::uint32_t key) const {
  for (const Part& part : parts_) {
    if (part.key == key) return &part;
  }
  return nullptr;
}

void VectorClock::meet(const VectorClock& other) {
  VectorClock both;
  for (const Part& mine : parts_) {
    const Part* const theirs = other.find(mine.key);
    if (theirs == nullptr) continue;
    // A time below the base is known even where a page does not say so.
    const auto known = [](const Part& part, std::size_t warp, std::size_t lane) {
      const bool page = warp < part.pages.size() && part.pages[warp];
      return std::max(part.base - 1, page ? part.pages[warp].read().times[lane] : 0u);
    };
    Part& common = both.part(mine.key);
    common.base = std::min(mine.base, theirs->base);
    common.pages.resize(std::max(mine.pages.size(), theirs->pages.size()));
    for (std::size_t warp = 0; warp < common.pages.size(); ++warp) {
      for (std::size_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t time = std::min(known(mine, warp, lane), known(*theirs, warp, lane));
        if (time >= common.base) common.pages[warp].write().times[lane] = time;
      }
    }
  }
  *this = std::move(both);
}

void VectorClock::add(Stamp stamp) {
  Part& mine = part(stamp_cta(stamp));
  const std::uint32_t thread = stamp_thread(stamp);
  if (mine.pages.size() <= thread / 32) mine.pages.resize(thread / 32 + 1);
  std::uint32_t& time = mine.pages[thread / 32].write().times[thread % 32];
  time = std::max(time, stamp_time(stamp));
}

bool VectorClock::knows_of(std::uint32_t key) const {
  const Part* const known = find(key);
  if (known == nullptr) return false;
  return known->base > 1 ||
         std::any_of(known->pages.begin(), known->pages.end(), [](const PageReference& page) {
           return page && std::any_of(std::begin(page.read().times), std::end(page.read().times),
                                      [](std::uint32_t time) { return time != 0; });
         });
}

void VectorClock::raise_base(std::uint32_t key, std::uint32_t base) {
  Part& mine = part(key);
  mine.base = std::max(mine.base, base);
}

void VectorClock::forget(std::uint32_t key) {
  std::erase_if(parts_, [key](const Part& part) { return part.key == key; });
}

void VectorClock::unshare() {
  for (Part& part : parts_) {
    for (PageReference& page : part.pages) page.unshare();
  }
}

}  // namespace emulator
