// Which lines of the sources an instruction of the program comes from.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulator/report/places.h"
#include "emulator/report/symbols.h"

namespace emulator {
namespace {

/// The program's file, as another process finds it.
std::string program_file() {
  std::string program = fmt::format("/proc/{}/exe", getpid());
#if !defined(__x86_64__)
  // Under qemu-user that is qemu itself to other processes.
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length > 0 && length < static_cast<ssize_t>(sizeof path))
    program = fmt::format("'{}'", std::string_view(path, static_cast<std::size_t>(length)));
#endif
  return program;
}

bool is_users(std::string_view path) {
  for (const char* other : {"/common/emulator/", "/common/own_kernel/", "/include/gemm_emulator/"}) {
    if (path.find(other) != std::string_view::npos) return false;
  }
  return path.substr(0, 5) != "/usr/";
}

}  // namespace

std::vector<std::string> lines_of_instruction(std::uintptr_t instruction) {
  std::vector<std::string> lines;
  if (instruction == 0) return lines;
  const std::string command =
      fmt::format("addr2line -i -e {} {:#x} 2>/dev/null", program_file(), instruction - load_address());
  std::FILE* output = popen(command.c_str(), "r");
  if (!output) return lines;
  char line[4096];
  while (std::fgets(line, sizeof line, output)) {
    const std::string_view text(line, std::strcspn(line, " \n"));
    const std::size_t colon = text.rfind(':');
    if (text.empty() || text[0] == '?' || colon == std::string_view::npos || !is_users(text)) continue;
    const auto number = static_cast<unsigned>(std::strtoul(line + colon + 1, nullptr, 10));
    if (number != 0) lines.push_back(short_place(text.substr(0, colon), number));
  }
  pclose(output);
  return lines;
}

}  // namespace emulator
