#include "outcome.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "harness/record/report_parts.h"

namespace {

constexpr int kSchema = 1;  // docs/schemas/emulate.schema.json

std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value ? value : "";
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
  return harness::report_parts(outcome.rule, outcome.text, variable("EMULATE_FILE"));
}
