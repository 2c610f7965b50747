// Copies of the emulated machine that moved nothing, and clusters that were cancelled.
#pragma once

#include <string>

namespace harness {

/// Sentences about the bulk stores since the last call whose box lies wholly outside their tensor, and about
/// the clusters that were cancelled, or nothing. They are allowed: it explains elements that were never
/// written. Forgets them.
std::string take_outside_stores();
/// The same for bulk loads whose box lies far outside: it explains wrong values.
std::string take_outside_loads();

}  // namespace harness
