#include "harness/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>

namespace harness {
namespace {

namespace fs = std::filesystem;

fs::path partial(const fs::path& path) {
  return path.string() + ".partial";
}

constexpr int kMostLinks = 40;  // as many as Linux follows

/// Where symbolic links lead, whether or not there is a file; an empty path when they go round in circles.
fs::path target(fs::path path) {
  std::error_code error;
  for (int links = 0; fs::is_symlink(path, error); ++links) {
    if (links == kMostLinks) return {};
    const fs::path link = fs::read_symlink(path, error);
    if (error) return {};
    path = link.is_absolute() ? link : path.parent_path() / link;
  }
  return path;
}

/// The open file that a path stands for: /dev/fd/3, /dev/stdout, and links that lead there.
std::optional<int> open_descriptor(fs::path path) {
  std::error_code error;
  const fs::path descriptors = fs::canonical("/proc/self/fd", error);
  if (error) return std::nullopt;
  for (int links = 0; links < kMostLinks; ++links) {
    if (fs::canonical(path.parent_path(), error) == descriptors && !error) {
      const std::string name = path.filename().string();
      const char* const end = name.data() + name.size();
      int descriptor = -1;
      const auto [parsed, status] = std::from_chars(name.data(), end, descriptor);
      if (status == std::errc() && parsed == end) return descriptor;
      return std::nullopt;
    }
    if (!fs::is_symlink(path, error)) return std::nullopt;
    const fs::path link = fs::read_symlink(path, error);
    if (error) return std::nullopt;
    path = link.is_absolute() ? link : path.parent_path() / link;
  }
  return std::nullopt;
}

/// Through the descriptor itself: opened again, the file would be written from its beginning, over what the
/// program has printed there.
std::error_code write(int descriptor, std::string_view text) {
  std::fflush(stdout);
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return {errno, std::generic_category()};
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
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
  if (const std::optional<int> descriptor = open_descriptor(name)) return write(*descriptor, text);
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
  if (const std::optional<int> descriptor = open_descriptor(name)) {
    const int flags = fcntl(*descriptor, F_GETFL);
    return flags != -1 && (flags & O_ACCMODE) != O_RDONLY;
  }
  if (!is_ordinary(name)) return std::ofstream(name, std::ios::app).is_open();
  const fs::path path = target(name);
  if (path.empty()) return false;
  const bool can = std::ofstream(partial(path)).is_open();
  fs::remove(partial(path), ignored);
  return can;
}

}  // namespace harness
