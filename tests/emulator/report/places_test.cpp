// How a report writes a place whose callers are known.
#include "emulator/report/places.h"

#include "catch.h"

using emulator::place_with_callers;

TEST_CASE("a place begins with the kernel's line, and the lines that it calls follow") {
  CHECK(place_with_callers({"k.cu:9"}) == "k.cu:9");
  CHECK(place_with_callers({"wrappers.cuh:3", "k.cu:9"}) == "k.cu:9 (in wrappers.cuh:3)");
  CHECK(place_with_callers({"k.cu:3", "k.cu:9"}) == "k.cu:9 (in line 3)");
  CHECK(place_with_callers({"a.h:1", "a.h:7", "k.cu:9"}) == "k.cu:9 (in a.h:7, line 1)");
  CHECK(place_with_callers({}).empty());
}

TEST_CASE("a place begins with the last line outside headers, or with the outermost one") {
  CHECK(place_with_callers({"a.h:1", "k.cu:9", "launcher.h:5"}) == "k.cu:9 (in a.h:1)");
  CHECK(place_with_callers({"a.h:1", "b.hpp:2"}) == "b.hpp:2 (in a.h:1)");
}

TEST_CASE("of many callers, the first and the last two are shown") {
  CHECK(place_with_callers({"a.h:1", "b.h:2", "c.h:3", "d.h:4", "e.h:5", "k.cu:9"}) ==
        "k.cu:9 (in e.h:5, b.h:2, a.h:1)");
}
