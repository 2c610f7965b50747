// Copies of the emulated machine that moved nothing, and clusters that were cancelled.
#pragma once

#include <string>

namespace harness {

/// Sentences about the bulk stores since the last call whose box lies wholly outside their tensor, and about
/// the clusters that were cancelled, or nothing. They are allowed: it explains elements that were never
/// written. Forgets them.
std::string take_outside_stores();
/// Which CTA of the latest launch stored which tile of D, which is in bf16: for tiles that were never
/// written.
std::string tile_owners();
/// What it says where that explains all of them.
inline constexpr const char* kStepOfCtas = "These are the tiles that clusters get if they advance by";
/// The same for bulk loads whose box lies far outside: it explains wrong values.
std::string take_outside_loads();

}  // namespace harness
