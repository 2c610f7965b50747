// Which source this program was built from.
#pragma once

#include <string>

namespace harness {

/// "abc1234", "abc1234-dirty", or "unknown" outside a git checkout. Asked of git by every build.
std::string commit_hash();

/// "commit abc1234, built 2026-11-21 for the emulator". The day (UTC) is that of the last build.
std::string build_description();

}  // namespace harness
