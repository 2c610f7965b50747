// The text of an inline PTX statement, taken apart: scopes, registers, labels, instructions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace emulate::inline_ptx {

/// One instruction: `@!p add.s32 d, a, 1;`
struct Instruction {
  std::string guard;               // "!p", or "" without a guard
  std::string opcode;              // "add.s32"
  std::vector<std::string> parts;  // "add", "s32"
  std::vector<std::string> arguments;

  /// Throws Untranslated where there are not so many.
  const std::string& argument(std::size_t i) const;
  bool has(std::string_view part) const;
  const std::string& root() const { return parts.front(); }
  const std::string& type() const { return parts.back(); }
  bool begins(std::string_view prefix) const { return opcode.rfind(prefix, 0) == 0; }
};

enum class PieceKind { kOpen, kClose, kLabel, kRegisters, kInstruction };
struct Piece {
  PieceKind kind;
  std::string label;               // kLabel
  std::string type;                // kRegisters: "b32"
  std::vector<std::string> names;  // kRegisters
  Instruction instruction;         // kInstruction
};

/// Throws Untranslated where the text is no PTX that is understood.
std::vector<Piece> parse_ptx(const std::string& text);

/// What the emulator has no translation of: an opcode, an operand.
struct Untranslated {
  std::string what;
};

/// Without blanks at either end.
std::string trimmed(std::string_view text);
/// The parts between the separators that are in no bracket, trimmed.
std::vector<std::string> split(std::string_view text, char separator);
/// The parts of an opcode: "cp", "async", "L2::128B".
std::vector<std::string> split_opcode(const std::string& opcode);

/// Whether the first part of an opcode is one of PTX, and not of another machine's assembly.
bool is_ptx_opcode(const std::string& root);

}  // namespace emulate::inline_ptx
