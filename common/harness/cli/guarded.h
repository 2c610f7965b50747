// What every program does with what ends it.
#pragma once

#include <functional>
#include <string>

namespace harness {

/// Runs the body. What it throws becomes one line on stderr and an exit status (see backend.h): a broken rule
/// of the emulator as it is, anything else as "error: ...". The same when what it printed did not arrive.
int guarded(const std::function<int()>& body);

/// The same with every line handed to `tell` instead of stderr, without "error: ".
int guarded(const std::function<int()>& body, const std::function<void(const std::string&)>& tell);

}  // namespace harness
