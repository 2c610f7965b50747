#include "mbarrier_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "words.h"

namespace play {
namespace {

enum class Operand { kRequired, kOptional, kNone };

struct VerbRule {
  const char* name;
  Verb verb;
  Operand operand;
  const char* means;  // of the operand
};

constexpr VerbRule kVerbs[] = {
    {"init", Verb::kInit, Operand::kRequired, "the number of arrivals of a phase"},
    {"arrive", Verb::kArrive, Operand::kOptional, "how often"},
    {"expect", Verb::kExpect, Operand::kRequired, "a number of bytes"},
    {"arrive_expect", Verb::kArriveExpect, Operand::kRequired, "a number of bytes"},
    {"complete", Verb::kComplete, Operand::kRequired, "a number of bytes"},
    {"test", Verb::kTest, Operand::kRequired, "the parity of a phase"},
    {"wait", Verb::kWait, Operand::kRequired, "the parity of a phase"},
    {"inval", Verb::kInval, Operand::kNone, ""},
};

constexpr std::size_t kMostEvents = 1000;

const VerbRule& find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const VerbRule& rule : kVerbs) {
    if (name == rule.name) return rule;
    names.emplace_back(rule.name);
  }
  const std::string nearest = harness::nearest_match(name, names);
  std::string known;
  for (const std::string& word : names) known += (known.empty() ? "" : ", ") + word;
  throw harness::Error(fmt::format("unknown event '{}'{}; the events are {}", name,
                                   nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                                   known));
}

Event parse_event(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string& word : split(line, ' ')) {
    if (!word.empty() && word != "parity" && word != "bytes")
      words.push_back(word);  // "wait parity 0" reads well
  }
  const VerbRule& rule = find_verb(words[0]);
  if (words.size() > 2 || (words.size() == 2 && rule.operand == Operand::kNone)) {
    throw harness::Error(fmt::format("'{}' has too many words; write '{}{}', events separated by commas",
                                     line, rule.name, rule.operand == Operand::kNone ? "" : " NUMBER"));
  }
  Event event;
  event.verb = rule.verb;
  event.text = rule.name;
  if (words.size() == 2) {
    const std::uint64_t most =
        rule.verb == Verb::kArrive ? kMostEvents : std::numeric_limits<std::uint32_t>::max();
    event.value =
        static_cast<std::uint32_t>(parse_number(fmt::format("the number of '{}'", line), words[1], most));
    if (rule.verb != Verb::kArrive) event.text += fmt::format(" {}", event.value);
  } else if (rule.operand == Operand::kRequired) {
    throw harness::Error(fmt::format("'{}' lacks its number: {}", line, rule.means));
  } else {
    event.value = 1;
  }
  if (event.verb == Verb::kArrive && event.value == 0)
    throw harness::Error(
        fmt::format("'{}' does nothing; write 'arrive' or 'arrive N' with N of at least 1", line));
  if (event.verb == Verb::kComplete) {
    const std::uint32_t bytes = event.value;
    if (bytes == 0 || bytes % 16 != 0 || bytes > kMaxCopyBytes ||
        (bytes > kRowBytes && bytes % kRowBytes != 0)) {
      throw harness::Error(fmt::format(
          "'{}' cannot be one copy: its bytes are a multiple of 16 up to {}, or a multiple of {} up to {}",
          line, kRowBytes, kRowBytes, kMaxCopyBytes));
    }
  }
  return event;
}

}  // namespace

std::vector<Event> parse_script(const std::string& text) {
  std::string uniform;
  bool comment = false;
  for (const char c : text) {
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    if (!comment)
      uniform += c == ';' || c == '\n' ? ',' : std::isspace(static_cast<unsigned char>(c)) ? ' ' : c;
  }
  std::vector<Event> events;
  std::uint32_t space = 0;
  std::set<std::uint32_t> sizes;
  for (const std::string& line : split(uniform, ',')) {
    if (line.empty()) continue;
    const Event event = parse_event(line);
    const bool repeats = event.verb == Verb::kArrive;
    for (std::uint32_t i = 0; i < (repeats ? event.value : 1); ++i) events.push_back(event);
    if (events.size() > kMostEvents)
      throw harness::Error(
          fmt::format("the script has more than {} events; use at most that many", kMostEvents));
    if (event.verb == Verb::kComplete) {
      space += (event.value + kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
      sizes.insert(event.value);
      if (sizes.size() > kMaxCopySizes)
        throw harness::Error(
            fmt::format("the script's copies have more than {} different sizes; use fewer", kMaxCopySizes));
      if (space > kCopySpaceBytes) {
        throw harness::Error(
            fmt::format("the script's copies bring more than {} bytes in all, but the program's shared "
                        "memory holds only that much; use fewer or smaller copies",
                        kCopySpaceBytes));
      }
    }
  }
  if (events.empty()) throw harness::Error("the script has no events; begin with 'init 1'");
  return events;
}

}  // namespace play
