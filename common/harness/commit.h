// Which source this program was built from.
#pragma once

#include <string>

namespace harness {

/// "abc1234", "abc1234-dirty", or "unknown" outside a git checkout. Asked of git by every
/// build; GEMM_STEPS_COMMIT in the environment of the build stands in where there is no repository.
std::string commit_hash();

}  // namespace harness
