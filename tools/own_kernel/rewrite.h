// What of a kernel's file an ordinary C++ compiler does not read: <<< >>>, __cluster_dims__, a second main.
// Lines stay where they are.
#pragma once

#include <stdexcept>
#include <string>

namespace emulate {

/// One sentence about a file that cannot be emulated, with its place.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Backend { kEmulator, kGpu };

/// `path`: what reports call the file. Throws Refused.
std::string rewrite(const std::string& file, const std::string& path, Backend backend);

}  // namespace emulate
