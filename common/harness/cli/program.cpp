#include "harness/cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"
#include "harness/record/commit.h"

namespace harness {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
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
  if (const std::size_t at = message.find(" was given a disallowed flag override"); at != std::string::npos)
    return fmt::format("{}{} takes no value: write it without one, or leave it out",
                       message[0] == '-' ? "" : "--", message.substr(0, at));
  if (dynamic_cast<const CLI::ConversionError*>(&error) == nullptr) return message;
  const std::size_t from = message.find("--");
  const std::size_t equals = message.find(" = ");
  if (from == std::string::npos || equals == std::string::npos) return message;
  return fmt::format("{} is '{}', which is not a number in its range", message.substr(from, equals - from),
                     message.substr(equals + 3));
}

/// A flag is given or left out; CLI11 would also take --check=0.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0) option->disable_flag_override();
  }
  for (CLI::App* part : app.get_subcommands([](CLI::App*) { return true; })) refuse_values_of_flags(*part);
}

/// Flags that had another name once.
constexpr std::pair<const char*, const char*> kRenamedFlags[] = {{"--mutants", "--inject-faults"}};

/// "" or what an unknown flag is called now.
std::string renamed(const std::string& flag, const std::vector<std::string>& known) {
  for (const auto& [before, now] : kRenamedFlags) {
    if (flag == before && std::find(known.begin(), known.end(), now) != known.end())
      return fmt::format("{} is called {} now", before, now);
  }
  return "";
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

std::string name_problem(const std::string& text) {
  return text.empty() ? "the name is empty; name one, or leave the flag out" : "";
}

namespace {

std::string number_problem(const std::string& text, const char* what, double least, double most) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, status] = std::from_chars(text.data(), end, number);
  if (parsed == end && status == std::errc() && number >= least && number <= most) return "";
  return fmt::format("'{}' is not a {} from {} to {}", text, what, least, most);
}

}  // namespace

std::string seconds_problem(const std::string& text) {
  return number_problem(text, "number of seconds", 0.1, 3600);
}

std::string factor_problem(const std::string& text) {
  return number_problem(text, "factor", -65536, 65536);
}

std::string parse_sentence(const CLI::App& app, const std::vector<std::string>& arguments,
                           const CLI::ParseError& error) {
  const std::vector<std::string> known = option_names(app);
  for (const std::string& argument : arguments) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (flag.rfind("--", 0) != 0 || flag == "--" ||
        std::find(known.begin(), known.end(), flag) != known.end())
      continue;
    if (std::string now = renamed(flag, known); !now.empty()) return now;
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

void add_common_flags(CLI::App& app) {
  app.set_version_flag("--version", fmt::format("{}: {}", app.get_name(), build_description()),
                       "Print from which sources this program was built, and when");
  refuse_values_of_flags(app);
}

std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv) {
  add_common_flags(app);
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", prose(app.help()));
    return kExitOk;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    throw Error(parse_sentence(app, {argv + 1, argv + argc}, error));
  }
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  return guarded([&] {
    if (const std::optional<int> status = parse_arguments(app, argc, argv)) return *status;
    return body();
  });
}

}  // namespace harness
