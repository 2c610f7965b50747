// Writing files so that half of one is never found.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace harness {

/// A file appears at once with the whole text, or stays as it was. A symbolic link stays one: the file it
/// leads to is written. What is no ordinary file, a pipe or a device, is written to and never replaced, and
/// so is a file that the program has open (/dev/stdout, /dev/fd/3): the text follows what is there.
std::error_code write_file(const std::filesystem::path& path, const std::string& text);

/// True if write_file() could begin: the folder is there and takes a new file. Changes nothing.
bool can_write_file(const std::filesystem::path& path);

}  // namespace harness
