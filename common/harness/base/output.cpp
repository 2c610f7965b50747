#include "harness/base/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <system_error>

#include "harness/backend/backend.h"
#include "harness/base/files.h"

namespace harness {

void check_writable(const std::string& path) {
  if (!can_write_file(path))
    throw Error(fmt::format("cannot write '{}': check that the folder exists and is writable", path));
}

void write_json(const std::string& path, const nlohmann::json& json) {
  write_text(path, json.dump(1) + '\n');
}

void write_text(const std::string& path, const std::string& text) {
  if (const std::error_code error = write_file(path, text))
    throw Error(fmt::format("cannot write '{}': {}", path, error.message()));
}

void show_progress(const std::string& line) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

void clear_progress() {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace harness
