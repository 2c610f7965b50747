#include "emulator/report/course_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "harness/backend/backend.h"

namespace emulator {
namespace {

constexpr bool in_order() {
  for (std::size_t i = 0; i < kCourseRules.size(); ++i) {
    if (static_cast<std::size_t>(kCourseRules[i].rule) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the table is indexed by the enumeration");

std::uint64_t bits_of(const std::vector<std::string>& names, const std::string& source) {
  std::uint64_t bits = 0;
  for (const std::string& name : names) {
    const auto* found = std::find_if(kCourseRules.begin(), kCourseRules.end(),
                                     [&](const CourseRuleEntry& entry) { return name == entry.name; });
    if (found == kCourseRules.end()) {
      std::string known;
      for (const CourseRuleEntry& entry : kCourseRules) {
        known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
      }
      throw harness::Error(fmt::format(
          "{}: '{}' is not a rule that can be switched on or off; these rules are: {}", source, name, known));
    }
    bits |= course_rule_bit(found->rule);
  }
  return bits;
}

void apply(std::uint64_t allow, std::uint64_t strict) {
  if (const std::uint64_t both = allow & strict; both != 0) {
    for (const CourseRuleEntry& entry : kCourseRules) {
      if ((both & course_rule_bit(entry.rule)) != 0)
        throw harness::Error(
            fmt::format("the rule '{}' is switched both on and off; leave one of the two out", entry.name));
    }
  }
  course_rules_on = (course_rules_on & ~allow) | strict;
}

std::vector<std::string> names_in(const char* variable) {
  std::vector<std::string> names;
  const char* text = std::getenv(variable);
  if (text == nullptr) return names;
  std::string name;
  for (const char* c = text;; ++c) {
    if (*c != ',' && *c != '\0') {
      name += *c;
      continue;
    }
    if (!name.empty()) names.push_back(name);
    name.clear();
    if (*c == '\0') return names;
  }
}

}  // namespace

void switch_course_rules(const std::vector<std::string>& allow, const std::vector<std::string>& strict) {
  apply(bits_of(allow, "--allow"), bits_of(strict, "--strict"));
}

void read_course_rules_of_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr const char* kAllow = "GEMM_STEPS_ALLOW";
    constexpr const char* kStrict = "GEMM_STEPS_STRICT";
    apply(bits_of(names_in(kAllow), kAllow), bits_of(names_in(kStrict), kStrict));
  });
}

}  // namespace emulator
