// Inline PTX of a kernel's file becomes C++ that calls the emulator (common/own_kernel/inline_ptx).
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ptx_text.h"

namespace emulate::inline_ptx {

/// An operand of an asm statement: "constraint" (expression)
struct AsmOperand {
  std::string constraint;
  std::string expression;
};

struct AsmStatement {
  std::string text;
  std::vector<AsmOperand> outputs;
  std::vector<AsmOperand> inputs;
};

/// A C++ block that does what the statement does. Throws Untranslated.
std::string translate(const AsmStatement& statement);

/// What the C++ of an instruction is made of: its operands, by the names that they have in the block.
class Operands {
 public:
  explicit Operands(const AsmStatement& statement);

  void open_scope();
  void close_scope();
  void declare(const std::string& name, const std::string& type);

  /// An lvalue, or a constant.
  std::string name(const std::string& operand);
  /// The operand's value as one of the PTX type: "s32", "b64", "pred", "f16x2".
  std::string value(const std::string& operand, const std::string& type);
  /// `{a, b}`, or the one operand that has no braces.
  std::vector<std::string> vector(const std::string& operand) const;
  /// `[a + 16]` as 64 bits.
  std::string address(const std::string& operand);
  /// A statement; nothing is kept where the operand is `_`.
  std::string assign(const std::string& operand, const std::string& expression);
  /// The number of the operand, which has to be an input: it is bound to the expression and not copied.
  std::string bound(const std::string& operand);
  std::string label(const std::string& name);
  /// Whether the operand is a register that the text declares.
  bool is_register(const std::string& operand) const;
  /// The name of an array of the block.
  std::string array(const std::string& type, std::size_t count);
  /// Code that the statement's next tcgen05.wait::ld takes over.
  void keep_for_wait(const std::string& code) { kept_ += code; }
  std::string take_kept() { return std::exchange(kept_, ""); }

  bool is_bound(std::size_t number) const { return bound_.count(number) != 0; }
  const std::set<std::string>& labels() const { return labels_; }
  /// Declarations of the registers, for the beginning of the block.
  const std::string& registers() const { return registers_; }

 private:
  std::size_t number_of(const std::string& operand) const;

  const AsmStatement& statement_;
  std::vector<std::map<std::string, std::string>> scopes_{1};
  std::string registers_;
  std::string kept_;
  int declared_ = 0;
  std::set<std::size_t> bound_;
  std::set<std::string> labels_;
};

/// The C++ type of a PTX type; throws Untranslated where there is none.
std::string cpp_type(const std::string& type);

/// The calls of one instruction, by kind; "" where it is of another kind.
std::string scalar_instruction(const Instruction& instruction, Operands& operands);
std::string memory_instruction(const Instruction& instruction, Operands& operands);
std::string synchronizing_instruction(const Instruction& instruction, Operands& operands);
std::string copy_instruction(const Instruction& instruction, Operands& operands);
std::string matrix_instruction(const Instruction& instruction, Operands& operands);
std::string tensor_memory_instruction(const Instruction& instruction, Operands& operands);

/// The C++ of the number in .cta_group::1, which may be a constant operand: .cta_group::%5; "" without one.
std::string cta_group(const Instruction& instruction, Operands& operands);
/// A C++ expression: the opcode as reports have it. A group that is an operand is known when the C++ is
/// compiled.
std::string quoted_opcode(const Instruction& instruction);

}  // namespace emulate::inline_ptx
