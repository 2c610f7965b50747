// Bulk stores of the emulated machine that moved nothing.
#pragma once

#include <string>

namespace harness {

/// A sentence about the bulk stores since the last call whose box lies wholly outside their tensor, or
/// nothing. They are allowed: it explains elements that were never written. Forgets them.
std::string take_outside_stores();

}  // namespace harness
