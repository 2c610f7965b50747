#include "code/mix.h"

#include <algorithm>

namespace sass {

int Mix::count(Class kind) const {
  const auto found = classes.find(kind);
  return found == classes.end() ? 0 : found->second.count;
}

namespace {

bool is_matrix_math(const Instruction* instruction) {
  return classify(*instruction) == Class::kMatrixMath && multiply_adds(*instruction) > 0;
}

}  // namespace

Mix count_mix(const std::vector<const Instruction*>& code) {
  Mix mix;
  // Beside a multiplication of matrices an FFMA does something else: step 44 scales and adds.
  const bool has_matrices = std::any_of(code.begin(), code.end(), is_matrix_math);
  for (const Instruction* instruction : code) {
    ClassMix& entry = mix.classes[classify(*instruction)];
    ++entry.count;
    ++entry.opcodes[(instruction->never_executes() ? "@!PT " : "") + instruction->full_opcode()];
    ++mix.instructions;
    const double work = has_matrices && !is_matrix_math(instruction) ? 0 : multiply_adds(*instruction);
    mix.multiply_adds += work;
    if (work > 0) ++mix.math_instructions;
    mix.stall_cycles += instruction->control.stall;
    for (unsigned bits = instruction->control.reuse_mask; bits != 0; bits &= bits - 1) ++mix.reused_operands;
  }
  return mix;
}

}  // namespace sass
