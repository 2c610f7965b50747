// Lines and files that leave the program.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace harness {

/// Writes `json` to `path`, all of it or (on an error, which is thrown as Error) nothing.
void write_json(const std::string& path, const nlohmann::json& json);

/// The same with a text.
void write_text(const std::string& path, const std::string& text);

/// write_json(), and a line on stdout that says where the record is.
void write_record(const std::string& path, const nlohmann::json& json);

/// Throws Error when no file can be written at `path`: to be asked before a long run, not after it.
void check_writable(const std::string& path);

/// Throws Error when something printed to stdout did not arrive (a full disk, a closed stream): to be asked
/// last.
void finish_output();
/// The sentence for that.
std::string lost_output(const std::error_code& reason);

/// Columns of the terminal that stdout is, 0 when it is none.
int terminal_columns();

/// Breaks lines longer than `columns` between words, never within one. What follows stands below the line's
/// last column (after two blanks or more), or when there is none a little further in than the line.
std::string folded(std::string_view text, int columns);

/// For lines that programs read too: folded on a terminal, as it is in a pipe or a file.
std::string fitted(std::string_view text);

/// For prose: folded to the terminal's columns, to 80 in a pipe or a file.
std::string prose(std::string_view text);

/// A table of words whose first column is the widest. Where a terminal is too narrow for it, that column
/// stands on lines of its own, and the others are as wide as they must be.
std::string fitted_table(std::string_view text);
std::string fitted_table(std::string_view text, int columns);

/// "1 round", "2 rounds".
std::string counted(std::size_t count, std::string_view noun);

/// A message on stderr, behind whatever was printed before, folded on a terminal. Where stderr cannot be
/// written the exit status alone tells, so nothing is thrown.
void complain(std::string_view text);

/// A one-line progress message on stderr that the next one overwrites; silent when stderr is not a terminal.
/// What is longer than the terminal's line is cut.
void show_progress(const std::string& line);
void clear_progress();

/// A progress message with a clock, "checking 2 of 6: ... (12 s)", for work that says nothing while it runs.
/// It is there from the second second on and goes away with the object.
class Progress {
 public:
  explicit Progress(std::string line);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void tick();

  std::string line_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  bool is_shown_ = false;
  std::thread clock_;
};

}  // namespace harness
