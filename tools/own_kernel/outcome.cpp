#include "outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr int kSchema = 1;           // docs/schemas/emulate.schema.json
constexpr std::size_t kIndent = 2;   // of a report's lines
constexpr std::size_t kColumn = 11;  // where what follows a label begins

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value ? value : "";
}

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
    const nlohmann::ordered_json place = {
        {"role", role},
        {"file", std::string(path)},
        {"line", std::strtol(std::string(text.substr(colon + 1, end - colon - 1)).c_str(), nullptr, 10)}};
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

std::string told_of_signal(int signal) {
  const char* const name = sigabbrev_np(signal);
  return fmt::format("the host code was ended by {}",
                     name ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal));
}

nlohmann::ordered_json begin_document() {
  return {{"schema", kSchema}, {"file", variable("EMULATE_FILE")}};
}

nlohmann::ordered_json document_of_error(const std::string& kind, const std::string& message) {
  nlohmann::ordered_json document = begin_document();
  document["result"] = "not judged";
  document["exit_status"] = 2;
  document["reports"] = nlohmann::ordered_json::array();
  document["error"] = {{"kind", kind}, {"message", message}};
  document["not_checked"] = {"anything"};
  return document;
}

std::vector<std::string> command_of(const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& arguments_of_main) {
  const nlohmann::json caller = nlohmann::json::parse(variable("EMULATE_COMMAND"), nullptr, false);
  std::vector<std::string> words;
  if (caller.is_array()) words = caller.get<std::vector<std::string>>();
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (!arguments_of_main.empty()) words.emplace_back("--");
  words.insert(words.end(), arguments_of_main.begin(), arguments_of_main.end());
  return words;
}

nlohmann::ordered_json report_of(const Outcome& outcome) {
  const std::string file = variable("EMULATE_FILE");
  nlohmann::ordered_json report = {{"rule", outcome.rule}};
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  nlohmann::ordered_json places = nlohmann::ordered_json::array();
  std::string_view rest = outcome.text;
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
    const std::string text(line.substr(label.empty() ? std::min(kIndent, line.size()) : kColumn));
    lines.push_back({{"label", label}, {"text", text}});
    if (label == "rule") add_rule(text, report);
    if (label == "missing") report["missing"] = text;
    if (label == "stricter") {
      const std::size_t flag = text.find("--allow ");
      if (flag != std::string::npos) {
        const std::size_t begin = flag + std::strlen("--allow ");
        report["allow"] = text.substr(begin, text.find(' ', begin) - begin);
      }
    }
    if (label != "rule" && label != "stricter" && label != "again")
      add_places(text, label.empty() ? "thread" : label, file, places);
  }
  report["places"] = places;
  report["lines"] = lines;
  report["text"] = outcome.text;
  return report;
}
