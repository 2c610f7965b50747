// What every program does with what ends it.
#pragma once

#include <functional>

namespace harness {

/// Runs the body. What it throws becomes one line on stderr and an exit status (see backend.h): a broken rule
/// of the emulator as it is, anything else as "error: ...". The same when what it printed did not arrive.
int guarded(const std::function<int()>& body);

}  // namespace harness
