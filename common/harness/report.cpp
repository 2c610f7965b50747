#include "harness/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/backend.h"

namespace harness {
namespace {

std::string cannot_write(const std::string& path) {
  return fmt::format("cannot write '{}': check that the folder exists and is writable", path);
}

}  // namespace

void check_writable(const std::string& path) {
  const std::string partial = path + ".partial";
  const bool writable = std::ofstream(partial).is_open() && !std::filesystem::is_directory(path);
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  if (!writable) throw Error(cannot_write(path));
}

void write_json(const std::string& path, const nlohmann::json& json) {
  write_text(path, json.dump(1) + '\n');
}

void write_text(const std::string& path, const std::string& text) {
  const std::string partial = path + ".partial";
  {
    std::ofstream file(partial);
    file << text;
    file.flush();
    if (!file) {
      std::error_code ignored;
      std::filesystem::remove(partial, ignored);
      throw Error(cannot_write(path));
    }
  }
  std::error_code status;
  std::filesystem::rename(partial, path, status);
  if (status) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw Error(fmt::format("cannot write '{}': {}", path, status.message()));
  }
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
