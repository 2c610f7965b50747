#include "command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "harness/backend/backend.h"
#include "harness/cli/program.h"

namespace play {

namespace ptx = gemm::ptx;
int run(CLI::App& app, const std::vector<std::string>& arguments, Output& output,
        const std::function<int()>& body) {
  try {
    harness::add_common_flags(app);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app.parse(std::move(reversed));
    return body();
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> commands = app.get_subcommands();
    output.text += commands.empty() ? app.help() : commands.back()->help(app.get_name());
    return harness::kExitOk;
  } catch (const CLI::CallForVersion& version) {
    output.text += fmt::format("{}\n", version.what());
    return harness::kExitOk;
  } catch (const CLI::ParseError& error) {
    output.errors += fmt::format("error: {}\n", harness::parse_sentence(app, arguments, error));
    return harness::kExitUsage;
  } catch (const harness::EmulatorReport& report) {
    output.errors += fmt::format("{}\n", report.what());
    return harness::kExitEmulator;
  } catch (const std::exception& error) {
    output.errors += fmt::format("error: {}\n", error.what());
    return harness::kExitUsage;
  }
}

int example(const std::string& name, Program program, const std::string& words, Output& output) {
  output.text += fmt::format("for example tools/play {} {} (--help explains)\n", name, words);
  return program(split(words, ' '), output);
}

std::uint64_t parse_number(const std::string& what, const std::string& text, std::uint64_t most) {
  const bool hexadecimal = text.rfind("0x", 0) == 0 || text.rfind("0X", 0) == 0;
  const char* const begin = text.data() + (hexadecimal ? 2 : 0);
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [parsed, status] = std::from_chars(begin, end, value, hexadecimal ? 16 : 10);
  if (begin == end || parsed != end || status != std::errc() || value > most) {
    throw harness::Error(fmt::format(
        "{} is '{}'; it must be a whole number from 0 to {}, in decimal or as 0x...", what, text, most));
  }
  return value;
}

ptx::Swizzle parse_swizzle(const std::string& text) {
  std::string word = text;
  for (const char* suffix : {"bytes", "B", "b"}) {
    const std::string ending = suffix;
    if (word.size() > ending.size() &&
        word.compare(word.size() - ending.size(), ending.size(), ending) == 0) {
      word.resize(word.size() - ending.size());
      break;
    }
  }
  if (word == "none" || word == "0") return ptx::Swizzle::kNone;
  if (word == "32") return ptx::Swizzle::k32B;
  if (word == "64") return ptx::Swizzle::k64B;
  if (word == "128") return ptx::Swizzle::k128B;
  throw harness::Error(fmt::format("the swizzle is '{}'; it must be none, 32, 64 or 128", text));
}

std::string swizzle_name(ptx::Swizzle swizzle) {
  return swizzle == ptx::Swizzle::kNone ? "none" : fmt::format("{} bytes", ptx::span_bytes(swizzle));
}

bool require_hopper() {
  const harness::DeviceInfo device = harness::device_info();
  // sm_90a is code for compute capability 9.0 and for nothing newer.
  if (device.compute_capability != 90) {
    throw harness::Error(fmt::format(
        "{} has compute capability {}.{}; this program is compiled for 9.0 (Hopper), or for the emulator",
        device.name, device.compute_capability / 10, device.compute_capability % 10));
  }
  return device.is_emulator;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::size_t first = text.find_first_not_of(" \t\r\n", begin);
    if (first >= end) {
      parts.emplace_back();
    } else {
      const std::size_t last = text.find_last_not_of(" \t\r\n", end - 1);
      parts.push_back(text.substr(first, last - first + 1));
    }
    begin = end + 1;
  }
  return parts;
}

}  // namespace play
