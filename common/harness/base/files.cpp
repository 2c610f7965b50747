#include "harness/base/files.h"

#include <cerrno>
#include <fstream>

namespace harness {
namespace {

namespace fs = std::filesystem;

fs::path partial(const fs::path& path) {
  return path.string() + ".partial";
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

std::error_code write_file(const fs::path& path, const std::string& text) {
  if (!is_ordinary(path)) return write(path, text);
  std::error_code error = write(partial(path), text);
  if (!error) fs::rename(partial(path), path, error);
  std::error_code ignored;
  if (error) fs::remove(partial(path), ignored);
  return error;
}

bool can_write_file(const fs::path& path) {
  if (path.empty() || fs::is_directory(path)) return false;
  if (!is_ordinary(path)) return std::ofstream(path, std::ios::app).is_open();
  const bool can = std::ofstream(partial(path)).is_open();
  std::error_code ignored;
  fs::remove(partial(path), ignored);
  return can;
}

}  // namespace harness
