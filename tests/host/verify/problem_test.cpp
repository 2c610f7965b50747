// Words of the command line: shapes, steps, ranges.
#include "harness/base/problem.h"

#include <string>
#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/cli/selection.h"

namespace {

using harness::is_shape;

struct Course {
  std::vector<gemm::Step> steps;
  std::vector<const gemm::Step*> pointers;

  Course() {
    for (const char* name : {"01_naive", "02_shared_tile", "03_register_tile", "22_mix"}) {
      gemm::Step step;
      step.name = name;
      for (const char* variant : {"64", "128"}) {
        gemm::Variant one;
        one.name = variant;
        step.variants.push_back(one);
      }
      steps.push_back(step);
    }
    for (const gemm::Step& step : steps) pointers.push_back(&step);
  }

  /// "01:64 02:128 | 128x128x128": what the words select.
  std::string select(const std::vector<std::string>& words) const {
    const harness::Selection selection = harness::select_words(pointers, words);
    std::string text;
    for (const harness::Entry& entry : selection.entries)
      text += entry.step->name.substr(0, 2) + ':' + entry.variant->name + ' ';
    for (const gemm::Shape& shape : selection.shapes) text += "| " + harness::to_string(shape);
    return text;
  }

  /// What is said about words that are refused.
  std::string refusal(const std::vector<std::string>& words) const {
    try {
      return "accepted: " + select(words);
    } catch (const harness::Error& error) {
      return error.what();
    }
  }
};

std::string refused_shape(const std::string& word) {
  try {
    return "accepted: " + harness::to_string(harness::parse_shape(word));
  } catch (const harness::Error& error) {
    return error.what();
  }
}

TEST_CASE("three digits or more, or MxNxK, are a shape, and all else names a step") {
  for (const char* word :
       {"100", "4096", "007", "16x16x16", "1X2x3", "4096x", "x4", "12345678901", "128k", "100.5"})
    CHECK(is_shape(word));
  for (const char* word :
       {"1", "01", "64", "", "01_naive", "22_mix", "mix", "01-07", "1-7", "all", "03:64", "03:100"})
    CHECK_FALSE(is_shape(word));
}

TEST_CASE("a small cube is spelled out, and a sentence says so") {
  CHECK(harness::to_string(harness::parse_shape("128")) == "128x128x128");
  CHECK(harness::to_string(harness::parse_shape("16x16x16")) == "16x16x16");
  CHECK(refused_shape("64") ==
        "'64' is not a size: one or two digits name a step, so write that cube as 64x64x64");
  CHECK(contains(refused_shape("02"), "2x2x2"));
  CHECK(contains(refused_shape("0"), "at least 1"));
  CHECK(contains(refused_shape("000"), "at least 1"));
  CHECK(contains(refused_shape("999999"), "too large"));
  for (const char* word : {"", "x", "1x2", "4096x", "naive", "1x2x3x4", "128k"})
    CHECK(contains(refused_shape(word), "is not a size"));
}

TEST_CASE("words of a comparison: steps, variants, ranges and shapes in any order") {
  const Course course;
  CHECK(course.select({"01", "2", "register_tile"}) == "01:64 02:64 03:64 ");
  CHECK(course.select({"128", "01"}) == "01:64 | 128x128x128");
  CHECK(course.select({"01-03"}) == "01:64 02:64 03:64 ");
  CHECK(course.select({"2-30"}) == "02:64 03:64 22:64 ");
  CHECK(course.select({"all"}) == "01:64 02:64 03:64 22:64 ");
  CHECK(course.select({"01:128", "02-03:all"}) == "01:128 02:64 02:128 03:64 03:128 ");
  CHECK(course.select({"01:64,128", "16x8x4"}) == "01:64 01:128 | 16x8x4");
}

TEST_CASE("words that name nothing are refused with what would be right") {
  const Course course;
  CHECK(course.refusal({"01", "64"}).find("unknown step '64'") == 0);
  CHECK(contains(course.refusal({"01", "64"}), "a cube of that size is 64x64x64"));
  CHECK(contains(course.refusal({"nave"}), "did you mean '01_naive'"));
  CHECK_FALSE(contains(course.refusal({"nave"}), "cube"));
  CHECK(course.refusal({"03-01"}) == "the range 03-01 goes backwards: write 01-03");
  CHECK(course.refusal({"40-49"}) == "there is no step from 40 to 49; the steps are 01_naive to 22_mix");
  CHECK(contains(course.refusal({"01:"}), "names no variant after its colon"));
  CHECK(course.refusal({"01-02:65"}).find("unknown variant of 01_naive '65'") == 0);
}

}  // namespace

TEST_CASE("a suite without steps races the one that chooses a variant by shape, and the one before it") {
  Course course;
  const auto names = [&] {
    std::string text;
    for (const harness::Entry& entry : harness::last_two(course.pointers))
      text += entry.step->name.substr(0, 2) + ':' + entry.variant->name + ' ';
    return text;
  };
  CHECK(names() == "03:64 22:64 ");  // none of them chooses
  course.steps[2].variants.front().choose = [](const gemm::Shape&) { return gemm::Choice{}; };
  CHECK(names() == "02:64 03:64 ");
  course.steps[1].epilogue.beta = 1;  // another problem
  CHECK(names() == "01:64 03:64 ");
}
