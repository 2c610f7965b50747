#include "harness/base/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <vector>

#include "harness/backend/backend.h"
#include "harness/base/files.h"

namespace harness {
namespace {

constexpr int kProseColumns = 80;  // where there is no terminal
constexpr int kFewestColumns = 20;

/// 0 when the descriptor is no terminal.
int columns_of(int descriptor) {
  if (isatty(descriptor) == 0) return 0;
  winsize size{};
  const bool is_known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::max<int>(size.ws_col, kFewestColumns) : kProseColumns;
}

/// Columns of the terminal that stderr is, where a line can change on it; else 0.
int columns_of_progress() {
  const char* const terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return is_dumb ? 0 : columns_of(STDERR_FILENO);
}

/// A byte that begins a character of UTF-8.
bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u;
}

/// Characters of UTF-8, each taken for one column.
int columns_in(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), begins_character));
}

/// Where the text behind the line's last gap of two blanks or more begins; npos without one.
std::size_t last_column(std::string_view line) {
  const std::size_t gap = line.rfind("  ");
  const std::size_t first = line.find_first_not_of(' ');
  return gap == std::string_view::npos || first == std::string_view::npos || gap < first
             ? std::string_view::npos
             : gap + 2;
}

/// Lines that begin further in than that are columns themselves.
constexpr int kDeep = 8;
constexpr int kFurtherIn = 4;

std::string folded_line(std::string_view line, int columns) {
  if (columns_in(line) <= columns) return std::string(line);
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t column = last_column(line);
  int hang = static_cast<int>(begin);
  if (column != std::string_view::npos && 5 * columns_in(line.substr(0, column)) <= 3 * columns) {
    hang = columns_in(line.substr(0, column));
  } else if (hang < kDeep) {
    hang += kFurtherIn;
  }

  std::string text;
  int used = 0;
  bool is_empty = true;  // the line that grows
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const int length = columns_in(line.substr(word, end - word));
    const int blanks = static_cast<int>(word - at);
    if (!is_empty && used + blanks + length > columns) {
      text += '\n' + std::string(static_cast<std::size_t>(hang), ' ');
      used = hang;
    } else {
      text += line.substr(at, word - at);
      used += blanks;
    }
    text += line.substr(word, end - word);
    used += length;
    is_empty = false;
    at = end;
  }
  return text;
}

}  // namespace

void check_writable(const std::string& path) {
  if (std::filesystem::is_directory(path))
    throw Error(fmt::format("cannot write '{}': it is a folder; name a file in it", path));
  if (!can_write_file(path))
    throw Error(fmt::format("cannot write '{}': check that the folder exists and is writable", path));
}

void write_json(const std::string& path, const nlohmann::json& json) {
  write_text(path, json.dump(1) + '\n');
}

void write_record(const std::string& path, const nlohmann::json& json) {
  write_json(path, json);
  fmt::print("the record is in {}\n", path);
}

void write_text(const std::string& path, const std::string& text) {
  if (const std::error_code error = write_file(path, text))
    throw Error(fmt::format("cannot write '{}': {}", path, error.message()));
}

void finish_output() {
  errno = 0;
  std::cout.flush();
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (!failed) return;
  const std::error_code reason(errno, std::generic_category());
  std::clearerr(stdout);
  std::cout.clear();
  throw Error(lost_output(reason));
}

std::string lost_output(const std::error_code& reason) {
  return fmt::format("the output could not be written: {}",
                     reason ? reason.message() : std::string("its disk is full or its reader is gone"));
}

int terminal_columns() {
  return columns_of(STDOUT_FILENO);
}

std::string folded(std::string_view text, int columns) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result += folded_line(text.substr(0, end), columns);
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string fitted(std::string_view text) {
  const int columns = terminal_columns();
  return columns == 0 ? std::string(text) : folded(text, columns);
}

std::string prose(std::string_view text) {
  const int columns = terminal_columns();
  return folded(text, columns == 0 ? kProseColumns : columns);
}

std::string fitted_table(std::string_view text, int columns) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> widths;
  int widest = 0;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, columns_in(line));
    std::istringstream words(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string word; words >> word;) row.push_back(word);
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  if (columns == 0 || widest <= columns) return std::string(text);
  std::string result;
  std::string before;
  for (const std::vector<std::string>& row : rows) {
    if (!row.empty() && row[0] != before) result += row[0] + '\n';
    before = row.empty() ? std::string() : row[0];
    for (std::size_t i = 1; i < row.size(); ++i)
      result +=
          i == 1 ? fmt::format("  {:<{}}", row[i], widths[i]) : fmt::format(" {:>{}}", row[i], widths[i]);
    result += '\n';
  }
  return result;
}

std::string fitted_table(std::string_view text) {
  return fitted_table(text, terminal_columns());
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void complain(std::string_view text) {
  clear_progress();
  std::fflush(stdout);
  const int columns = columns_of(STDERR_FILENO);
  const std::string lines = columns == 0 ? std::string(text) : folded(text, columns);
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

void show_progress(const std::string& line) {
  const int columns = columns_of_progress();
  if (columns == 0) return;
  std::size_t end = 0;
  for (int used = 0; end < line.size(); ++end) {
    if (begins_character(line[end]) && ++used == columns) break;  // a full line would wrap
  }
  std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(end), line.c_str());
  std::fflush(stderr);
}

void clear_progress() {
  if (columns_of_progress() == 0) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

Progress::Progress(std::string line) : line_(std::move(line)) {
  if (columns_of_progress() == 0) return;
  try {
    clock_ = std::thread(&Progress::tick, this);
  } catch (const std::system_error&) {  // no further thread: then without
  }
}

Progress::~Progress() {
  if (!clock_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  clock_.join();
  if (is_shown_) clear_progress();
}

void Progress::tick() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  for (int seconds = 1;; ++seconds) {
    if (ended_.wait_until(lock, start + std::chrono::seconds(seconds), [this] { return end_; })) return;
    show_progress(fmt::format("{} ({} s)", line_, seconds));
    is_shown_ = true;
  }
}

}  // namespace harness
