#include "harness/record/report_parts.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace harness {
namespace {

constexpr std::size_t kIndent = 2;   // of a report's lines
constexpr std::size_t kColumn = 11;  // where what follows a label begins

/// "bytes" of "  bytes    shared + 0"; "" where a line has no label.
std::string label_of(std::string_view line) {
  if (line.size() < kColumn || line.substr(0, kIndent) != "  " || line[kColumn - 1] != ' ') return {};
  std::size_t end = kIndent;
  while (end < kColumn && std::isalpha(static_cast<unsigned char>(line[end]))) ++end;
  if (line.substr(end, kColumn - end).find_first_not_of(' ') != std::string_view::npos) return {};
  return std::string(line.substr(kIndent, end - kIndent));
}

bool is_of_path(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("_./+-~@%", c) != nullptr ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// The lines of " (in reduce.cuh:12, line 20)" at the beginning of the text, from the outermost on: those
/// without a file are in the one before. Removes them from the text.
nlohmann::ordered_json take_inner_places(std::string_view& text, std::string file) {
  constexpr std::string_view kBegin = " (in ";
  nlohmann::ordered_json inside = nlohmann::ordered_json::array();
  const std::size_t end = text.find(')');
  if (!text.starts_with(kBegin) || end == std::string_view::npos) return inside;
  for (std::string_view rest = text.substr(kBegin.size(), end - kBegin.size()); !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(", "));
    rest.remove_prefix(std::min(one.size() + 2, rest.size()));
    constexpr std::string_view kLine = "line ";
    const std::size_t colon = one.rfind(':');
    if (!one.starts_with(kLine) && colon == std::string_view::npos) return nlohmann::ordered_json::array();
    if (!one.starts_with(kLine)) file = one.substr(0, colon);
    const std::string line(one.substr(one.starts_with(kLine) ? kLine.size() : colon + 1));
    inside.push_back({{"file", file}, {"line", std::strtol(line.c_str(), nullptr, 10)}});
  }
  text.remove_prefix(end + 1);
  return inside;
}

/// Adds every "file:line" of the text.
void add_places(std::string_view text, const std::string& role, const std::string& file,
                nlohmann::ordered_json& places) {
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    std::size_t end = colon + 1;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    std::size_t begin = colon;
    while (begin > 0 && is_of_path(text[begin - 1])) --begin;
    // A blank in the name of the kernel's file is part of it.
    if (!file.empty() && colon >= file.size() && text.substr(colon - file.size(), file.size()) == file)
      begin = colon - file.size();
    const std::string_view path = text.substr(begin, colon - begin);
    if (end == colon + 1 || path.find_first_of("./") == std::string_view::npos) continue;
    nlohmann::ordered_json place = {
        {"role", role},
        {"file", std::string(path)},
        {"line", std::strtol(std::string(text.substr(colon + 1, end - colon - 1)).c_str(), nullptr, 10)}};
    std::string_view behind = text.substr(end);
    if (nlohmann::ordered_json inside = take_inner_places(behind, std::string(path)); !inside.empty()) {
      place["inside"] = std::move(inside);
      text = behind;
      colon = std::string_view::npos;  // the search goes on at the beginning of what is left
    }
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
}

/// Splits "sentence (source)"; the source may have parentheses of its own.
void add_rule(const std::string& text, nlohmann::ordered_json& report) {
  std::size_t open = std::string::npos;
  if (!text.empty() && text.back() == ')') {
    int depth = 0;
    for (open = text.size(); open-- > 0;) {
      if (text[open] == ')') ++depth;
      if (text[open] == '(' && --depth == 0) break;
    }
  }
  if (open == std::string::npos || open == 0) {
    report["requirement"] = text;
    return;
  }
  report["requirement"] = text.substr(0, open - 1);
  const std::string source = text.substr(open + 1, text.size() - open - 2);
  if (source.starts_with("docs/")) {
    report["page"] = source;
  } else if (source != "this course") {
    report["manual"] = source;
  }
}

}  // namespace

nlohmann::ordered_json report_parts(const std::string& rule, const std::string& text,
                                    const std::string& file) {
  nlohmann::ordered_json report = {{"rule", rule}};
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  nlohmann::ordered_json places = nlohmann::ordered_json::array();
  std::string_view rest = text;
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (is_first) {
      const std::size_t colon = line.find(": ");
      report["summary"] = std::string(colon == std::string_view::npos ? line : line.substr(colon + 2));
      continue;
    }
    const std::string label = label_of(line);
    const std::string said(line.substr(label.empty() ? std::min(kIndent, line.size()) : kColumn));
    lines.push_back({{"label", label}, {"text", said}});
    if (label == "rule") add_rule(said, report);
    if (label == "missing") report["missing"] = said;
    if (label == "stricter") {
      const std::size_t flag = said.find("--allow ");
      if (flag != std::string::npos) {
        const std::size_t begin = flag + std::strlen("--allow ");
        report["allow"] = said.substr(begin, said.find(' ', begin) - begin);
      }
    }
    if (label != "rule" && label != "stricter" && label != "again")
      add_places(said, label.empty() ? "thread" : label, file, places);
  }
  report["places"] = places;
  report["lines"] = lines;
  report["text"] = text;
  return report;
}

}  // namespace harness
