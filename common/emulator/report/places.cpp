#include "emulator/report/places.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "emulator/machine/where.h"

namespace emulator {
namespace {

std::string_view file_of(std::string_view line) {
  return line.substr(0, line.rfind(':'));
}

bool is_in_header(std::string_view line) {
  const std::string_view file = file_of(line);
  const std::size_t dot = file.rfind('.');
  if (dot == std::string_view::npos) return true;
  const std::string_view ending = file.substr(dot);
  return ending != ".cu" && ending != ".cpp" && ending != ".cc" && ending != ".cxx";
}

/// Looked up once: to ask costs a process.
const std::vector<std::string>& known_lines(std::uintptr_t instruction) {
  static std::mutex mutex;
  static std::map<std::uintptr_t, std::vector<std::string>> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(instruction);
  if (is_new) found->second = lines_of_instruction(instruction);
  return found->second;
}

}  // namespace

std::string short_place(std::string_view path, unsigned line) {
  std::size_t begin = std::string_view::npos;
  for (const char* folder : {"steps/", "tests/", "common/"}) {
    const std::size_t found = path.rfind(folder);
    if (found != std::string_view::npos && (found == 0 || path[found - 1] == '/')) {
      begin = found;
      break;
    }
  }
  if (begin == std::string_view::npos) {
    // Another project's: its path as the project gave it, if that is a relative one.
    const bool is_relative = path.substr(0, 2) == "./" || (!path.empty() && path[0] != '/' && path[0] != '.');
    begin = is_relative ? (path[0] == '.' ? 2 : 0) : path.rfind('/') + 1;
  }
  return fmt::format("{}:{}", path.substr(begin), line);
}

std::string place_with_callers(const std::vector<std::string>& lines) {
  constexpr std::size_t kShown = 4;  // that are called there
  if (lines.empty()) return {};
  std::size_t outer = lines.size() - 1;
  while (outer > 0 && is_in_header(lines[outer])) --outer;
  if (is_in_header(lines[outer])) outer = lines.size() - 1;
  std::string inside;
  std::string_view shown = lines[outer];
  for (std::size_t i = outer; i-- > 0;) {
    const bool is_left_out = outer > kShown && i + 1 < outer && i > 1;  // of many: the first and the last two
    if (is_left_out || lines[i] == shown) continue;
    const std::string_view file = file_of(lines[i]);
    inside += inside.empty() ? "" : ", ";
    inside += file == file_of(shown) ? "line " + lines[i].substr(file.size() + 1) : lines[i];
    shown = lines[i];
  }
  return inside.empty() ? lines[outer] : fmt::format("{} (in {})", lines[outer], inside);
}

std::string Where::text() const {
  if (packed_ == 0 || !file()) return "(unknown place)";
  if (line() != 0) return *file() == '(' ? std::string(file()) : short_place(file(), line());
  const std::string place = place_with_callers(known_lines(reinterpret_cast<std::uintptr_t>(file())));
  return place.empty() ? "(unknown place)" : place;
}

std::string Where::innermost() const {
  if (packed_ == 0 || !file() || line() != 0) return text();
  const std::vector<std::string>& lines = known_lines(reinterpret_cast<std::uintptr_t>(file()));
  return lines.empty() ? "(unknown place)" : lines.front();
}

}  // namespace emulator
