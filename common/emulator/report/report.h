// The sentences that reports are made of.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "emulator/machine/machine.h"
#include "emulator/machine/where.h"
#include "emulator/memory/happens_before.h"
#include "emulator/report/course_rules.h"

namespace emulator {

/// "thread (3,0,0) (warp 0, lane 3) of CTA (1,0,0)", and what the thread has last waited for, if it said.
std::string name_thread(const Thread& thread);
/// The thread behind a stamp, in a grid.
std::string name_thread(const Grid& grid, Stamp stamp);
/// "(1,0,0)".
std::string text(const uint3& id);
/// The CTA with this key; in a run of several devices "(1,0,0) of rank 1".
std::string name_cta(const Grid& grid, std::uint32_t key);
std::string name_cta(const Cta& cta);
/// "threads 0-31, 64-95" from sorted numbers; `noun` is singular.
std::string ranges(const std::string& noun, const std::vector<std::uint32_t>& numbers);
/// Where the CTA's threads are, one line for each group that waits at the same place; with `polls`, also what
/// those that can run poll.
std::string places_of_threads(const Cta& cta, bool polls = false);

/// One report: a headline and facts under it, the broken rule last. A text with more arguments is a format of
/// fmt's.
class Report {
 public:
  explicit Report(std::string headline) : text_(std::move(headline)) {}
  template <typename First, typename... Rest>
  Report(fmt::format_string<First, Rest...> headline, First&& first, Rest&&... rest)
      : Report(fmt::format(headline, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
  Report& line(const std::string& label, const std::string& value);
  template <typename First, typename... Rest>
  Report& line(const std::string& label, fmt::format_string<First, Rest...> value, First&& first,
               Rest&&... rest) {
    return line(label, fmt::format(value, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  /// Where the thread is that breaks the rule.
  Report& at(Where where, const Thread& thread);
  /// What would have kept the rule.
  Report& missing(const std::string& value) { return line("missing", value); }
  template <typename First, typename... Rest>
  Report& missing(fmt::format_string<First, Rest...> value, First&& first, Rest&&... rest) {
    return line("missing", value, std::forward<First>(first), std::forward<Rest>(rest)...);
  }
  /// Several lines, indented.
  Report& block(const std::string& lines);
  Report& rule(const std::string& sentence, const std::string& source);
  /// Behind the rule: that it is one of this course's own, and how to switch it off.
  Report& course_rule(CourseRule rule);
  const std::string& str() const { return text_; }

 private:
  std::string text_;
};

}  // namespace emulator
