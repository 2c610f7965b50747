// Which rule of the course a report of the emulator is about.
#pragma once

#include <string>
#include <string_view>

namespace harness {

/// The name behind --allow, where the rule is stricter than the PTX ISA (Report::course_rule writes it); or
/// "".
inline std::string stricter_rule_of(std::string_view report) {
  constexpr std::string_view kBefore = "\n  stricter this rule is stricter than the PTX ISA; --allow ";
  const std::size_t at = report.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::string_view name = report.substr(at + kBefore.size());
  return std::string(name.substr(0, name.find(' ')));
}

}  // namespace harness
