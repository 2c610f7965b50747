// Damage that is done to the outcome of a correct run on purpose, and what must reject it.
#pragma once

#include <string>
#include <vector>

#include "gemm/problem/gemm.h"
#include "harness/verify/inputs/input_value.h"

namespace harness {

/// One way to damage the outcome of a correct run.
template <typename Damage>
struct Fault {
  std::string name;         // "missing last k-slice"
  std::string check;        // the check that must reject it, and the only one
  std::string phrase;       // what the report must say about it; "" when the check's name says it all
  bool exact_only = false;  // too small for a random pattern's error bound
  Damage damage{};
  bool random_only = false;  // the exact pattern's large integers hide it

  /// Whether it shows in a result of this pattern.
  bool shows_in(Pattern pattern) const { return pattern == Pattern::kExact ? !random_only : !exact_only; }
};

/// Calls check(fault, damaged image) for each fault that shows in the pattern; `arguments` are those of
/// Fault::damage after the image.
template <typename Damage, typename Image, typename Check, typename... Arguments>
void for_each_fault(const std::vector<Fault<Damage>>& faults, Pattern pattern, const Image& correct,
                    const Check& check, const Arguments&... arguments) {
  for (const Fault<Damage>& fault : faults) {
    if (!fault.shows_in(pattern)) continue;
    Image damaged = correct;
    fault.damage(damaged, arguments...);
    check(fault, damaged);
  }
}

/// Changes one bit in a part of an image: in its first element, its last one or one in the middle.
enum class Place { kFirst, kMiddle, kLast };
template <auto kPart, Place kPlace, typename Image, typename Rules>
void flip_bit(Image& image, const Rules&, const gemm::TileShape&) {
  auto& part = image.*kPart;
  auto& element = kPlace == Place::kFirst  ? part.front()
                  : kPlace == Place::kLast ? part.back()
                                           : part[part.size() / 2];
  if constexpr (requires { element.bits; }) {
    element.bits ^= 1;
  } else {
    element ^= 1;
  }
}

}  // namespace harness
