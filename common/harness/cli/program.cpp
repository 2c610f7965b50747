#include "harness/cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <limits>

#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names{"--help"};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const CLI::App* part : app.get_subcommands(nullptr)) {  // groups of options too
    for (const std::string& name : option_names(*part)) names.push_back(name);
  }
  return names;
}

/// What CLI11 says, in words: "Could not convert: --rows = abc" -> "--rows is 'abc', which is not a number in
/// its range"; "--json: 1 required TEXT missing" -> "--json needs a value".
std::string in_words(const CLI::ParseError& error) {
  std::string message = error.what();
  if (const std::size_t at = message.find(": 1 required "); at != std::string::npos)
    return message.substr(0, at) + " needs a value";
  if (dynamic_cast<const CLI::ConversionError*>(&error) == nullptr) return message;
  const std::size_t from = message.find("--");
  const std::size_t equals = message.find(" = ");
  if (from == std::string::npos || equals == std::string::npos) return message;
  return fmt::format("{} is '{}', which is not a number in its range", message.substr(from, equals - from),
                     message.substr(equals + 3));
}

}  // namespace

std::string seed_problem(const std::string& text) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, status] = std::from_chars(text.data(), end, seed);
  if (parsed == end && status == std::errc() && !text.empty()) return "";
  return fmt::format("'{}' is not a whole number from 0 to {}", text,
                     std::numeric_limits<std::uint64_t>::max());
}

std::string file_problem(const std::string& text) {
  return text.empty() ? "the file's name is empty" : "";
}

std::string parse_sentence(const CLI::App& app, const std::vector<std::string>& arguments,
                           const CLI::ParseError& error) {
  const std::vector<std::string> known = option_names(app);
  for (const std::string& argument : arguments) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (flag.rfind("--", 0) != 0 || flag == "--" ||
        std::find(known.begin(), known.end(), flag) != known.end())
      continue;
    const std::string nearest = nearest_match(flag, known);
    return nearest.empty() ? fmt::format("unknown flag '{}'; --help lists the known ones", flag)
                           : fmt::format("unknown flag '{}'; did you mean '{}'?", flag, nearest);
  }
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_name().empty()) commands.push_back(command->get_name());
  }
  if (!commands.empty() && app.get_subcommands().empty()) {
    const std::string names = fmt::format("{}", fmt::join(commands, " or "));
    return arguments.empty() ? fmt::format("begin with {} (--help explains)", names)
                             : fmt::format("'{}' is unknown here; begin with {}", arguments[0], names);
  }
  return fmt::format("{} (--help explains)", in_words(error));
}

int guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const EmulatorReport& report) {
    clear_progress();
    fmt::print(stderr, "{}\n", report.what());
    return kExitEmulator;
  } catch (const std::exception& error) {
    clear_progress();
    std::fflush(stdout);
    fmt::print(stderr, "error: {}\n", error.what());
    return kExitUsage;
  }
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    fmt::print(stderr, "error: {}\n", parse_sentence(app, arguments, error));
    return kExitUsage;
  }
  return guarded(body);
}

}  // namespace harness
