// How a schedule has ended, and the document that --json makes of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// 0 and no text, a report (with the name of its rule), or a sentence about host code that could not go on.
struct Outcome {
  int status = 0;  // above 128: the signal that ended the process
  std::string rule;
  std::string text;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Outcome, status, rule, text)

/// "the host code was ended by SIGSEGV".
std::string told_of_signal(int signal);

/// The fields with which every document begins: its version and the kernel's file.
nlohmann::ordered_json begin_document();

/// The document of a run that ended before a report or a result could be told. `kind`: as in the schema.
nlohmann::ordered_json document_of_error(const std::string& kind, const std::string& message);

/// The command of the caller with these arguments, and behind -- those of the file's main.
std::vector<std::string> command_of(const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& arguments_of_main);

/// A report by its parts: the lines by their labels, and every place in a source that they name.
nlohmann::ordered_json report_of(const Outcome& outcome);
