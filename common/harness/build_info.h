// Which sources a program was built from.
#pragma once

namespace harness {

/// "0123456789", "0123456789-dirty" with uncommitted changes, or "unknown" outside a repository.
const char* build_commit();

}  // namespace harness
