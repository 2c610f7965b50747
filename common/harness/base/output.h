// Lines and files that leave the program.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace harness {

/// Writes `json` to `path`, all of it or (on an error, which is thrown as Error) nothing.
void write_json(const std::string& path, const nlohmann::json& json);

/// The same with a text.
void write_text(const std::string& path, const std::string& text);

/// Throws Error when no file can be written at `path`: to be asked before a long run, not after it.
void check_writable(const std::string& path);

/// A one-line progress message on stderr that the next one overwrites; silent when stderr is not a terminal.
void show_progress(const std::string& line);
void clear_progress();

}  // namespace harness
