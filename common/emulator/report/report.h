// The sentences that reports are made of.
#pragma once

#include <cstdint>
#include <string>
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
/// "threads 0-31, 64-95" from sorted numbers; `noun` is singular.
std::string ranges(const std::string& noun, const std::vector<std::uint32_t>& numbers);
/// Where the CTA's threads are, one line for each group that waits at the same place; with `polls`, also what
/// those that can run poll.
std::string places_of_threads(const Cta& cta, bool polls = false);

/// One report: a headline and facts under it, the broken rule last.
class Report {
 public:
  explicit Report(std::string headline) : text_(std::move(headline)) {}
  Report& line(const std::string& label, const std::string& value);
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
