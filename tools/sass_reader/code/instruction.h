// One SASS instruction: its text as nvdisasm prints it, and the scheduling fields of its 128-bit encoding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "code/opcodes.h"

namespace sass {

/// How the compiler tells the warp scheduler when an instruction may issue. NVIDIA does not document this
/// part of the encoding; the layout is reverse-engineered and has been the same since Volta. Sources: Jia et
/// al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (arXiv 1804.06826), section 2.1;
/// Jia et al., "Dissecting the NVidia Turing T4 GPU" (arXiv 1903.07486); Huerta et al., "Analyzing Modern
/// NVIDIA GPU Cores" (arXiv 2503.20481).
struct ControlFields {
  int stall = 0;            // cycles until the warp's next instruction may issue
  bool yield = false;       // hint: let another warp go next
  int write_barrier = -1;   // scoreboard that is pending until the result is written; -1: none
  int read_barrier = -1;    // scoreboard that is pending until the source registers were read; -1: none
  unsigned wait_mask = 0;   // bit i: do not issue before scoreboard i is clear
  unsigned reuse_mask = 0;  // bit i: keep the register of source slot i in the operand reuse cache
  bool operator==(const ControlFields&) const = default;
};

/// `high` is the upper 64-bit word of the encoding. Bits 41-44 stall, 45 no-yield, 46-48 write barrier, 49-51
/// read barrier (7: none), 52-57 wait mask, 58-61 reuse.
ControlFields decode_control(std::uint64_t high);

/// A place in the source, from -lineinfo.
struct SourceFrame {
  std::string file;
  int line = 0;
  bool operator==(const SourceFrame&) const = default;
};

struct Instruction {
  std::uint32_t address = 0;            // in bytes, from the start of the function
  std::string predicate;                // "@P0", "@!UP1", "" when the instruction always executes
  std::string opcode;                   // "LDG"
  std::vector<std::string> modifiers;   // {"E", "128", "CONSTANT"}
  std::vector<std::string> operands;    // {"R4", "desc[UR8][R12.64+0x2]"}
  std::optional<std::uint32_t> target;  // of a branch, in bytes from the start of the function
  bool has_encoding = false;  // the listing carried the encoding: the two words and `control` are valid
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  ControlFields control;
  std::vector<SourceFrame> source;  // innermost inlined function first; empty without -lineinfo

  bool has_modifier(std::string_view modifier) const;
  /// Guarded by @!PT, which is false: ptxas puts such loads beside asynchronous copies.
  bool never_executes() const { return predicate == "@!PT" || predicate == "@!UPT"; }
  /// "LDG.E.128.CONSTANT"
  std::string full_opcode() const;
  /// "@P0 LDG.E.128 R4, [R2.64]": without address and encoding.
  std::string text() const;
};

/// Splits the text between address and semicolon: "@!P0 BRA `(.L_x_1)". Throws std::invalid_argument for text
/// that has no opcode. Leaves address, encoding and target alone.
Instruction parse_instruction(std::string_view text);

/// The class of the opcode, refined by its operands: a shift by 16 turns bf16 into fp32 and counts as a
/// conversion, HFMA2 with RZ operands loads a constant and counts as a move.
Class classify(const Instruction& instruction);

/// What a barrier or fence of Hopper's asynchronous engines does, in two words ("mbarrier wait", "wgmma
/// fence"); "" for everything else.
std::string_view synchronisation(const Instruction& instruction);

/// Bytes per thread that a load, store or copy moves; 0 for everything else.
int access_bytes(const Instruction& instruction);

/// Multiply-adds per thread: FFMA 1, HFMA2 2, HMMA.16816 64 (16*8*16 over 32 lanes), HGMMA over 128 threads;
/// UTCHMMA, UTCQMMA and UTCOMMA, which do not show their shape, as if it were m128n128.
/// 0 for everything that is not a multiply-add.
double multiply_adds(const Instruction& instruction);

/// Elements of K that one tcgen05.mma with this opcode multiplies; 0 for every other opcode.
int tensor_memory_depth(const std::string& opcode);

/// Matches opcodes: "LDG.E.128" needs opcode LDG and both modifiers, in any order among others ("LDG.128"
/// matches LDG.E.128.CONSTANT). "LDL|STL" is either. "USETMAXREG 0x18" also needs an operand with that text,
/// "HGMMA .tnspA" one with that modifier.
/// What never executes matches nothing.
class OpcodePattern {
 public:
  /// Throws std::invalid_argument, with the nearest known opcode, for an opcode that does not exist: an
  /// expectation about a misspelt opcode could not fail.
  explicit OpcodePattern(std::string_view text);
  bool matches(const Instruction& instruction) const;
  const std::string& text() const { return text_; }

 private:
  struct Alternative {
    std::string opcode;
    std::vector<std::string> modifiers;
    std::string operand;
  };
  std::string text_;
  std::vector<Alternative> alternatives_;
};

}  // namespace sass
