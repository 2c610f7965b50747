#include "harness/base/files.h"

#include <cerrno>
#include <fstream>

namespace harness {
namespace {

namespace fs = std::filesystem;

fs::path partial(const fs::path& path) {
  return path.string() + ".partial";
}

/// Where symbolic links lead, whether or not there is a file; an empty path when they go round in circles.
fs::path target(fs::path path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::error_code error;
  for (int links = 0; fs::is_symlink(path, error); ++links) {
    if (links == kMostLinks) return {};
    const fs::path link = fs::read_symlink(path, error);
    if (error) return {};
    path = link.is_absolute() ? link : path.parent_path() / link;
  }
  return path;
}

bool is_ordinary(const fs::path& path) {
  std::error_code ignored;
  return !fs::exists(path, ignored) || fs::is_regular_file(path, ignored);
}

std::error_code write(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary);
  stream << text;
  stream.close();
  return stream ? std::error_code() : std::error_code(errno == 0 ? EIO : errno, std::generic_category());
}

}  // namespace

std::error_code write_file(const fs::path& name, const std::string& text) {
  if (name.empty()) return std::make_error_code(std::errc::no_such_file_or_directory);
  if (!is_ordinary(name)) return write(name, text);
  const fs::path path = target(name);
  if (path.empty()) return std::make_error_code(std::errc::too_many_symbolic_link_levels);
  std::error_code error = write(partial(path), text);
  if (!error) fs::rename(partial(path), path, error);
  std::error_code ignored;
  if (error) fs::remove(partial(path), ignored);
  return error;
}

bool can_write_file(const fs::path& name) {
  std::error_code ignored;
  if (name.empty() || fs::is_directory(name, ignored)) return false;
  if (!is_ordinary(name)) return std::ofstream(name, std::ios::app).is_open();
  const fs::path path = target(name);
  if (path.empty()) return false;
  const bool can = std::ofstream(partial(path)).is_open();
  fs::remove(partial(path), ignored);
  return can;
}

}  // namespace harness
