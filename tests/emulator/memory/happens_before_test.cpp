// Vector clocks on their own.
#include "emulator/memory/happens_before.h"

#include <map>

#include "catch.h"
#include "emulator/machine/machine.h"

namespace happens_before_test {

using emulator::make_stamp;
using emulator::VectorClock;

TEST_CASE("a stamp keeps CTA, thread and time apart") {
  const emulator::Stamp stamp = make_stamp(0x3fffff, 1023, 0xffffffffu);
  CHECK(emulator::stamp_cta(stamp) == 0x3fffff);
  CHECK(emulator::stamp_thread(stamp) == 1023);
  CHECK(emulator::stamp_time(stamp) == 0xffffffffu);
  CHECK(emulator::cta_key(0) == 1);  // 0 is no CTA
  CHECK(emulator::cta_key(emulator::kAgentKey) < emulator::kAgentKey);
}

TEST_CASE("a clock covers what was added, and earlier times of the same thread") {
  VectorClock clock;
  CHECK_FALSE(clock.covers(make_stamp(1, 5, 1)));
  clock.add(make_stamp(1, 5, 7));
  CHECK(clock.covers(make_stamp(1, 5, 7)));
  CHECK(clock.covers(make_stamp(1, 5, 3)));
  CHECK_FALSE(clock.covers(make_stamp(1, 5, 8)));
  CHECK_FALSE(clock.covers(make_stamp(1, 6, 7)));
  CHECK_FALSE(clock.covers(make_stamp(2, 5, 7)));
}

TEST_CASE("a base covers every thread of its CTA") {
  VectorClock clock;
  clock.raise_base(3, 10);
  CHECK(clock.covers(make_stamp(3, 1000, 9)));
  CHECK_FALSE(clock.covers(make_stamp(3, 1000, 10)));
  clock.raise_base(3, 4);  // never back
  CHECK(clock.covers(make_stamp(3, 1000, 9)));
  clock.forget(3);
  CHECK_FALSE(clock.covers(make_stamp(3, 1000, 9)));
}

TEST_CASE("copies share pages without sharing changes") {
  VectorClock a;
  a.add(make_stamp(1, 40, 5));
  VectorClock b = a;
  b.add(make_stamp(1, 40, 9));
  CHECK_FALSE(a.covers(make_stamp(1, 40, 9)));
  CHECK(b.covers(make_stamp(1, 40, 9)));
  VectorClock c;
  c.join(b);
  c.unshare();
  b.add(make_stamp(1, 40, 11));
  CHECK_FALSE(c.covers(make_stamp(1, 40, 11)));
}

TEST_CASE("join_only takes over one CTA") {
  VectorClock a;
  a.add(make_stamp(1, 0, 5));
  a.add(make_stamp(2, 0, 5));
  VectorClock b;
  b.join_only(2, a);
  CHECK(b.covers(make_stamp(2, 0, 5)));
  CHECK_FALSE(b.covers(make_stamp(1, 0, 5)));
}

TEST_CASE("clocks agree with a plain table of times") {
  emulator::Random random(7);
  constexpr std::size_t kClocks = 6;
  VectorClock clocks[kClocks];
  std::map<std::pair<unsigned, unsigned>, unsigned> tables[kClocks];  // (CTA, thread) -> time
  for (int step = 0; step < 3000; ++step) {
    const std::size_t i = random.below(kClocks);
    if (random.below(3) == 0) {
      const std::size_t j = random.below(kClocks);
      clocks[i].join(clocks[j]);
      for (const auto& [who, time] : tables[j]) tables[i][who] = std::max(tables[i][who], time);
    } else {
      const unsigned cta = 1 + random.below(3);
      const unsigned thread = random.below(100);
      const unsigned time = 1 + random.below(50);
      clocks[i].add(make_stamp(cta, thread, time));
      unsigned& known = tables[i][{cta, thread}];
      known = std::max(known, time);
    }
    const std::size_t k = random.below(kClocks);
    const unsigned cta = 1 + random.below(3);
    const unsigned thread = random.below(100);
    const unsigned time = 1 + random.below(50);
    const auto found = tables[k].find({cta, thread});
    const bool expected = found != tables[k].end() && found->second >= time;
    if (clocks[k].covers(make_stamp(cta, thread, time)) != expected) FAIL("step " << step);
  }
}

}  // namespace happens_before_test
