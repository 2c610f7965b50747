// Lines for terminals of any width.
#include "harness/base/output.h"

#include <string>

#include "catch.h"

namespace {

using harness::folded;

TEST_CASE("lines that fit stay as they are") {
  for (const char* text : {"", "one", "one two three", "  a   table    row", "two\nlines\n", "\n\n"})
    CHECK(folded(text, 20) == text);
}

TEST_CASE("what follows a break stands below the last column") {
  CHECK(folded("  name    a b c d e f g h", 18) == "  name    a b c d\n          e f g h");
  CHECK(folded("  a  name  1 2 3 4 5 6", 19) == "  a  name  1 2 3 4\n           5 6");
}

TEST_CASE("without a column, or with one too far right, it stands further in than the line") {
  CHECK(folded("one two three four five", 12) == "one two\n    three\n    four\n    five");
  CHECK(folded("  one two three", 12) == "  one two\n      three");
  CHECK(folded("a long command line  what it does", 24) == "a long command line\n    what it does");
  CHECK(folded("          deep in the line", 18) == "          deep in\n          the line");
}

TEST_CASE("a word that is longer than a line is not broken") {
  CHECK(folded("a 0123456789012345678901234567890 b", 20) == "a\n    0123456789012345678901234567890\n    b");
}

TEST_CASE("letters are counted, not bytes") {
  CHECK(folded("\u00b5\u00b5\u00b5\u00b5 \u00b5\u00b5\u00b5\u00b5", 9) ==
        "\u00b5\u00b5\u00b5\u00b5 \u00b5\u00b5\u00b5\u00b5");
}

TEST_CASE("every line is broken by itself") {
  CHECK(folded("one two three four\nshort\n", 10) == "one two\n    three\n    four\nshort\n");
}

TEST_CASE("a table that is too wide has its first column on lines of its own") {
  const std::string table =
      "place       what    times\nfile.cu:1   load       10\nfile.cu:1   store       5\n";
  CHECK(harness::fitted_table(table, 0) == table);
  CHECK(harness::fitted_table(table, 30) == table);
  CHECK(harness::fitted_table(table, 20) ==
        "place\n  what  times\nfile.cu:1\n  load     10\n  store     5\n");
}

TEST_CASE("one of a thing has no s") {
  CHECK(harness::counted(0, "round") == "0 rounds");
  CHECK(harness::counted(1, "round") == "1 round");
  CHECK(harness::counted(2, "round") == "2 rounds");
}

}  // namespace
