// Which source this program was built from.
#pragma once

#include <string>

namespace harness {

/// "abc1234", "abc1234-dirty", or "unknown" outside a git checkout. Asked of git when
/// the build was configured.
std::string commit_hash();

}  // namespace harness
