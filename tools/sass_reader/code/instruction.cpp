#include "code/instruction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "harness/base/problem.h"
#include "text.h"

namespace sass {
namespace {

/// Splits at commas outside brackets.
std::vector<std::string> split_operands(std::string_view text) {
  std::vector<std::string> operands;
  std::string current;
  int depth = 0;
  for (const char letter : text) {
    if (letter == '[' || letter == '(') ++depth;
    if (letter == ']' || letter == ')') --depth;
    if (letter == ',' && depth == 0) {
      operands.emplace_back(trim(current));
      current.clear();
    } else {
      current += letter;
    }
  }
  if (!trim(current).empty()) operands.emplace_back(trim(current));
  return operands;
}

int leading_number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "64x256x16" -> {64, 256, 16}; the three numbers are 0 when the text is something else.
struct MmaShape {
  int m = 0, n = 0, k = 0;
};
MmaShape parse_shape(const std::string& text) {
  const auto parts = split(text, 'x');
  if (parts.size() != 3) return {};
  return {leading_number(parts[0]), leading_number(parts[1]), leading_number(parts[2])};
}

/// The shapes of warp-wide MMA are written without separators: m, n, k of the listed ones only.
MmaShape warp_mma_shape(const std::string& modifier) {
  if (modifier == "16816") return {16, 8, 16};
  if (modifier == "16832") return {16, 8, 32};
  if (modifier == "1688") return {16, 8, 8};
  if (modifier == "16864") return {16, 8, 64};
  if (modifier == "8816") return {8, 8, 16};
  if (modifier == "884") return {8, 8, 4};
  return {};
}

bool is_zero(std::string_view operand) {
  while (!operand.empty() && (operand.front() == '-' || operand.front() == '|' || operand.front() == '!'))
    operand.remove_prefix(1);
  return operand.starts_with("RZ") || operand.starts_with("URZ");
}

}  // namespace

ControlFields decode_control(std::uint64_t high) {
  constexpr int kNoBarrier = 7;
  const auto field = [high](int shift, int bits) {
    return static_cast<int>((high >> shift) & ((std::uint64_t{1} << bits) - 1));
  };
  ControlFields control;
  control.stall = field(41, 4);
  control.yield = field(45, 1) == 0;
  control.write_barrier = field(46, 3) == kNoBarrier ? -1 : field(46, 3);
  control.read_barrier = field(49, 3) == kNoBarrier ? -1 : field(49, 3);
  control.wait_mask = static_cast<unsigned>(field(52, 6));
  control.reuse_mask = static_cast<unsigned>(field(58, 4));
  return control;
}

bool Instruction::has_modifier(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::full_opcode() const {
  return modifiers.empty() ? opcode : fmt::format("{}.{}", opcode, fmt::join(modifiers, "."));
}

std::string Instruction::text() const {
  std::string result = predicate.empty() ? "" : predicate + " ";
  result += full_opcode();
  if (!operands.empty()) result += fmt::format(" {}", fmt::join(operands, ", "));
  return result;
}

Instruction parse_instruction(std::string_view text) {
  Instruction instruction;
  text = trim(text);
  if (!text.empty() && text.front() == '@') {
    const auto end = text.find_first_of(" \t");
    instruction.predicate = std::string(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : trim(text.substr(end));
  }
  const auto end = text.find_first_of(" \t");
  const auto names = split(text.substr(0, end), '.');
  if (names[0].empty() || !std::isupper(static_cast<unsigned char>(names[0][0])))
    throw std::invalid_argument(fmt::format("'{}' is not an instruction", text));
  instruction.opcode = names[0];
  instruction.modifiers.assign(names.begin() + 1, names.end());
  if (end != std::string_view::npos) instruction.operands = split_operands(text.substr(end));
  return instruction;
}

Class classify(const Instruction& instruction) {
  const Opcode* opcode = find_opcode(instruction.opcode);
  if (opcode == nullptr || instruction.never_executes()) return Class::kOther;
  const auto& operands = instruction.operands;
  const auto has_operand = [&](std::string_view text) {
    return std::find(operands.begin(), operands.end(), text) != operands.end();
  };
  if (instruction.opcode == "HFMA2" && operands.size() >= 3 && is_zero(operands[1]) && is_zero(operands[2]))
    return Class::kMove;
  if (instruction.opcode == "HADD2" && instruction.has_modifier("F32")) return Class::kConversion;
  if (instruction.opcode == "IMAD") {
    if (operands.size() == 4 && is_zero(operands[1]) && is_zero(operands[2])) return Class::kMove;
    if (has_operand("0x10000")) return Class::kConversion;
  }
  if (instruction.opcode == "SHF" && instruction.has_modifier("L") && has_operand("0x10"))
    return Class::kConversion;
  if (instruction.opcode == "LOP3" && has_operand("0xffff0000")) return Class::kConversion;
  return opcode->kind;
}

std::string_view synchronisation(const Instruction& instruction) {
  const std::string& opcode = instruction.opcode;
  if (opcode == "SYNCS") {
    if (instruction.has_modifier("PHASECHK")) return "mbarrier wait";
    if (instruction.has_modifier("ARRIVE")) return "mbarrier arrive";
    if (instruction.has_modifier("EXCH")) return "mbarrier init";
  }
  if (opcode == "WARPGROUP") {
    if (instruction.has_modifier("ARRIVE")) return "wgmma fence";
    if (instruction.has_modifier("DEPBAR")) return "wgmma wait";
  }
  if (opcode == "FENCE" && instruction.has_modifier("ASYNC")) return "proxy fence";
  return "";
}

int access_bytes(const Instruction& instruction) {
  const Class kind = classify(instruction);
  switch (kind) {
    case Class::kGlobalLoad:
    case Class::kGlobalStore:
    case Class::kAsyncCopy:
    case Class::kSharedLoad:
    case Class::kSharedStore:
    case Class::kLocal:
      break;
    case Class::kMatrixLoad:
      // 8x8 matrices of 16-bit elements, spread over 32 lanes: four bytes a lane and matrix.
      return instruction.has_modifier("4") ? 16 : instruction.has_modifier("2") ? 8 : 4;
    default:
      return 0;
  }
  if (instruction.opcode.starts_with("U")) return 0;  // TMA: the size is in the tensor map
  if (instruction.has_modifier("128")) return 16;
  if (instruction.has_modifier("64")) return 8;
  if (instruction.has_modifier("U16") || instruction.has_modifier("S16")) return 2;
  if (instruction.has_modifier("U8") || instruction.has_modifier("S8")) return 1;
  return 4;
}

int tensor_memory_depth(const std::string& opcode) {
  return opcode == "UTCHMMA" ? 16 : opcode == "UTCQMMA" ? 32 : opcode == "UTCOMMA" ? 64 : 0;
}

double multiply_adds(const Instruction& instruction) {
  if (instruction.never_executes()) return 0;
  const std::string& opcode = instruction.opcode;
  if (opcode == "FFMA" || opcode == "FFMA32I" || opcode == "DFMA") return 1;
  if (opcode == "HFMA2") return classify(instruction) == Class::kMath ? 2 : 0;
  // Its shape is in a register: counted as m128n128, by the 128 threads of a warpgroup.
  if (const int depth = tensor_memory_depth(opcode); depth > 0) return 128 * 128 * depth / 128.0;
  if (instruction.modifiers.empty()) return 0;
  if (opcode == "HMMA" || opcode == "IMMA") {
    constexpr double kLanes = 32;
    const MmaShape shape = warp_mma_shape(instruction.modifiers[0]);
    return shape.m * shape.n * shape.k / kLanes;
  }
  if (opcode == "HGMMA" || opcode == "QGMMA" || opcode == "IGMMA") {
    constexpr double kWarpgroup = 128;
    const MmaShape shape = parse_shape(instruction.modifiers[0]);
    return shape.m * shape.n * shape.k / kWarpgroup;
  }
  return 0;
}

OpcodePattern::OpcodePattern(std::string_view text) : text_(trim(text)) {
  for (const std::string& part : split(text_, '|')) {
    const std::string_view alternative_text = trim(part);
    const auto space = alternative_text.find(' ');
    const auto names = split(alternative_text.substr(0, space), '.');
    Alternative alternative{names[0], {names.begin() + 1, names.end()}, ""};
    if (space != std::string_view::npos)
      alternative.operand = std::string(trim(alternative_text.substr(space)));
    if (find_opcode(alternative.opcode) == nullptr) {
      std::vector<std::string> known;
      for (const Opcode& opcode : opcode_table()) known.emplace_back(opcode.name);
      const std::string nearest = harness::nearest_match(alternative.opcode, known);
      throw std::invalid_argument(
          fmt::format("there is no SASS opcode '{}'{}", alternative.opcode,
                      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
    }
    alternatives_.push_back(std::move(alternative));
  }
}

bool OpcodePattern::matches(const Instruction& instruction) const {
  if (instruction.never_executes()) return false;
  return std::any_of(alternatives_.begin(), alternatives_.end(), [&](const Alternative& alternative) {
    if (alternative.opcode != instruction.opcode) return false;
    for (const std::string& modifier : alternative.modifiers)
      if (!instruction.has_modifier(modifier)) return false;
    const auto& operands = instruction.operands;
    if (alternative.operand.empty()) return true;
    return std::any_of(operands.begin(), operands.end(), [&](const std::string& operand) {
      if (alternative.operand.front() != '.') return operand == alternative.operand;
      return (operand + '.').find(alternative.operand + '.') != std::string::npos;
    });
  });
}

}  // namespace sass
