// What of a kernel's file an ordinary C++ compiler does not read. Before the preprocessor: a second main.
// After it, in headers and in what macros have become as well: <<< >>>, __cluster_dims__, extern __shared__,
// inline PTX. Lines stay where they are.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace emulate {

/// One sentence about a file that cannot be emulated, with its place.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The file for the preprocessor, on either backend. `path`: what reports call the file. One of several files
/// may have neither a kernel nor what runs it. Throws Refused.
std::string rewrite(const std::string& file, const std::string& path, bool is_one_of_several = false);

/// What the preprocessor has made of it, as C++ for the emulator; headers in `own_folders` are the
/// emulator's. Throws Refused.
std::string rewrite_preprocessed(const std::string& text, const std::vector<std::string>& own_folders = {});

/// A line for each statement of inline PTX: its place, its instructions, and what of it is not known.
std::string list_ptx(const std::string& text, const std::vector<std::string>& own_folders = {});

}  // namespace emulate
