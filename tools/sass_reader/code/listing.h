// The text that nvdisasm or cuobjdump print for a cubin, as functions of instructions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "code/instruction.h"

namespace sass {

struct Function {
  std::string name;                       // mangled
  std::vector<Instruction> instructions;  // in address order; the padding behind the last EXIT is left out
};

struct Listing {
  std::string target;  // "sm_90a"
  std::vector<Function> functions;

  /// nullptr when there is no function of that (mangled) name.
  const Function* find(std::string_view name) const;
};

/// Reads the output of `nvdisasm -c -hex` (with -g or -gi: source lines too) or of `cuobjdump -sass`.
/// Throws std::invalid_argument naming the line that is neither, or saying that there is no function at all.
Listing parse_listing(std::string_view text);

}  // namespace sass
