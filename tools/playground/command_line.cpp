#include "command_line.h"

#include <fmt/format.h>

#include <fstream>
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

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw harness::Error(fmt::format("the file '{}' cannot be written", path));
}

}  // namespace play
