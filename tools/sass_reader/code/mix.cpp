#include "code/mix.h"

namespace sass {

int Mix::count(Class kind) const {
  const auto found = classes.find(kind);
  return found == classes.end() ? 0 : found->second.count;
}

Mix count_mix(const std::vector<const Instruction*>& code) {
  Mix mix;
  for (const Instruction* instruction : code) {
    ClassMix& entry = mix.classes[classify(*instruction)];
    ++entry.count;
    ++entry.opcodes[(instruction->never_executes() ? "@!PT " : "") + instruction->full_opcode()];
    ++mix.instructions;
    const double work = multiply_adds(*instruction);
    mix.multiply_adds += work;
    if (work > 0) ++mix.math_instructions;
    mix.stall_cycles += instruction->control.stall;
    for (unsigned bits = instruction->control.reuse_mask; bits != 0; bits &= bits - 1) ++mix.reused_operands;
  }
  return mix;
}

}  // namespace sass
