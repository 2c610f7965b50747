// How many instructions of each class a piece of code has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "code/instruction.h"

namespace sass {

struct ClassMix {
  int count = 0;
  std::map<std::string, int> opcodes;  // by full name: "LDS.128"
};

struct Mix {
  std::map<Class, ClassMix> classes;
  int instructions = 0;
  double multiply_adds = 0;   // per thread
  int math_instructions = 0;  // those that do them
  int stall_cycles = 0;  // sum of the stall fields: what one warp needs to issue the code if it never waits
  int reused_operands = 0;  // operands taken from the reuse cache instead of a register bank
  int count(Class kind) const;
};

Mix count_mix(const std::vector<const Instruction*>& code);

}  // namespace sass
