#include "translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "../source_text.h"

namespace emulate::inline_ptx {
namespace {

/// Special registers of the PTX ISA, as C++.
const std::map<std::string, std::string>& special_registers() {
  static const std::map<std::string, std::string> kRegisters = [] {
    std::map<std::string, std::string> result = {
        {"laneid", "::cuda::ptx::get_sreg_laneid(ptx_where)"},
        {"warpid", "::cuda::ptx::get_sreg_warpid(ptx_where)"},
        {"nwarpid", "64u"},
        {"cluster_ctarank", "::emulator::cluster_ctarank(ptx_where)"},
        {"cluster_nctarank", "::emulator::cluster_nctarank(ptx_where)"},
        {"is_explicit_cluster", "(::emulator::cluster_nctarank(ptx_where) > 1)"},
        {"smid", "::inline_ptx::smid()"},
        {"nsmid", "::inline_ptx::nsmid()"},
        {"gridid", "0ull"},
        {"clock", "::inline_ptx::u32(::clock64())"},
        {"clock_hi", "::inline_ptx::u32(::clock64() >> 32)"},
        {"clock64", "::inline_ptx::u64(::clock64())"},
        {"globaltimer", "::inline_ptx::u64(::clock64())"},
        {"globaltimer_lo", "::inline_ptx::u32(::clock64())"},
        {"globaltimer_hi", "::inline_ptx::u32(::clock64() >> 32)"},
        {"lanemask_eq", "::inline_ptx::lanemask_eq(ptx_where)"},
        {"lanemask_lt", "(::inline_ptx::lanemask_eq(ptx_where) - 1u)"},
        {"lanemask_le", "(::inline_ptx::lanemask_eq(ptx_where) * 2u - 1u)"},
        {"lanemask_ge", "~(::inline_ptx::lanemask_eq(ptx_where) - 1u)"},
        {"lanemask_gt", "~(::inline_ptx::lanemask_eq(ptx_where) * 2u - 1u)"},
        {"dynamic_smem_size", "::inline_ptx::dynamic_shared_bytes()"},
    };
    for (const char axis : {'x', 'y', 'z'}) {
      for (const auto& [name, object] : {std::pair{"tid", "threadIdx"}, std::pair{"ntid", "blockDim"},
                                         std::pair{"ctaid", "blockIdx"}, std::pair{"nctaid", "gridDim"}})
        result[fmt::format("{}.{}", name, axis)] = fmt::format("::{}.{}", object, axis);
      for (const char* name : {"clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"})
        result[fmt::format("{}.{}", name, axis)] = fmt::format("::cuda::ptx::get_sreg_{}_{}()", name, axis);
    }
    return result;
  }();
  return kRegisters;
}

bool is_number(const std::string& text) {
  const std::size_t begin = !text.empty() && text[0] == '-' ? 1 : 0;
  return text.size() > begin && std::isdigit(static_cast<unsigned char>(text[begin])) != 0;
}

/// A literal of PTX as one of C++.
std::string literal(const std::string& text) {
  if (text.size() == 10 && (text.rfind("0f", 0) == 0 || text.rfind("0F", 0) == 0))
    return "::std::bit_cast<float>(0x" + text.substr(2) + "u)";
  if (text.size() == 18 && (text.rfind("0d", 0) == 0 || text.rfind("0D", 0) == 0))
    return "::std::bit_cast<double>(0x" + text.substr(2) + "ull)";
  const bool is_hexadecimal = text.find("0x") != std::string::npos || text.find("0X") != std::string::npos;
  if (text.find('.') != std::string::npos ||
      (!is_hexadecimal && text.find_first_of("eE") != std::string::npos))
    return "double(" + text + ")";
  std::string digits = text;
  while (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) digits.pop_back();
  return digits[0] == '-' ? "(" + digits + "ll)" : digits + "ull";
}

/// "%%r1" and "%r1" name the same register.
std::string plain(const std::string& name) {
  return name.rfind("%%", 0) == 0 ? name.substr(1) : name;
}

std::string sanitized(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (is_word(c)) result += c;
  }
  return result;
}

/// How an operand of the statement comes into the block.
std::string declaration(const AsmOperand& operand, std::size_t number, bool is_output, bool is_bound) {
  std::string constraint;
  for (const char c : operand.constraint) {
    if (c != '=' && c != '+' && c != '&') constraint += c;
  }
  const std::string& value = operand.expression;
  if (is_output) return fmt::format("auto& ptx_{0} = ({1}); (void)ptx_{0}; ", number, value);
  if (is_bound) return fmt::format("const auto& ptx_{0} = ({1}); (void)ptx_{0}; ", number, value);
  static const std::map<std::string, std::string> kTypes = {{"r", "u32"},   {"l", "u64"},    {"h", "u16"},
                                                            {"f", "float"}, {"d", "double"}, {"q", "u128"},
                                                            {"b", "bool"}};
  if (const auto found = kTypes.find(constraint); found != kTypes.end()) {
    const char* space = found->second == "float" || found->second == "double" || found->second == "bool"
                            ? ""
                            : "::inline_ptx::";
    return fmt::format("auto ptx_{0} = ::inline_ptx::as<{2}{3}>({1}); (void)ptx_{0}; ", number, value, space,
                       found->second);
  }
  if (constraint.find_first_of("niC") != std::string::npos)
    return fmt::format("constexpr auto ptx_{0} = ::inline_ptx::immediate({1}); (void)ptx_{0}; ", number,
                       value);
  throw Untranslated{fmt::format("an operand \"{}\"", operand.constraint)};
}

std::string call_of(const Instruction& instruction, Operands& operands) {
  if (instruction.root() == "bra" && instruction.arguments.size() == 1)
    return "goto " + operands.label(instruction.arguments[0]) + ";";
  for (const auto translate_one : {scalar_instruction, memory_instruction, synchronizing_instruction,
                                   copy_instruction, matrix_instruction, tensor_memory_instruction}) {
    std::string code = translate_one(instruction, operands);
    if (!code.empty()) return code;
  }
  throw Untranslated{instruction.opcode};
}

}  // namespace

std::string cpp_type(const std::string& type) {
  static const std::map<std::string, std::string> kTypes = {
      {"pred", "bool"},
      {"f32", "float"},
      {"f64", "double"},
      {"b8", "::inline_ptx::u8"},
      {"u8", "::inline_ptx::u8"},
      {"s8", "::inline_ptx::s8"},
      {"b16", "::inline_ptx::u16"},
      {"u16", "::inline_ptx::u16"},
      {"s16", "::inline_ptx::s16"},
      {"b32", "::inline_ptx::u32"},
      {"u32", "::inline_ptx::u32"},
      {"s32", "::inline_ptx::s32"},
      {"b64", "::inline_ptx::u64"},
      {"u64", "::inline_ptx::u64"},
      {"s64", "::inline_ptx::s64"},
      {"b128", "::inline_ptx::u128"},
      {"f16", "::inline_ptx::f16"},
      {"bf16", "::inline_ptx::bf16"},
      {"f16x2", "::inline_ptx::Pair<::inline_ptx::f16>"},
      {"bf16x2", "::inline_ptx::Pair<::inline_ptx::bf16>"},
      {"f32x2", "::inline_ptx::Pair<float>"},
  };
  const auto found = kTypes.find(type);
  if (found == kTypes.end()) throw Untranslated{"the type ." + type};
  return found->second;
}

Operands::Operands(const AsmStatement& statement) : statement_(statement) {}

void Operands::open_scope() {
  scopes_.emplace_back();
}

void Operands::close_scope() {
  if (scopes_.size() > 1) scopes_.pop_back();
}

void Operands::declare(const std::string& name, const std::string& type) {
  const std::string variable = fmt::format("ptx_{}_{}", sanitized(name), declared_++);
  scopes_.back()[plain(name)] = variable;
  registers_ += fmt::format("{} {}{{}}; (void){}; ", cpp_type(type), variable, variable);
}

std::size_t Operands::number_of(const std::string& operand) const {
  if (operand.size() < 2 || operand[0] != '%' ||
      operand.find_first_not_of("0123456789", 1) != std::string::npos)
    return std::string::npos;
  const std::size_t number = std::stoul(operand.substr(1));
  return number < statement_.outputs.size() + statement_.inputs.size() ? number : std::string::npos;
}

std::string Operands::name(const std::string& operand) {
  if (operand == "_") return "::inline_ptx::sink()";
  if (operand == "WARP_SZ") return "32u";
  if (const std::size_t number = number_of(operand); number != std::string::npos)
    return fmt::format("ptx_{}", number);
  const std::string key = plain(operand);
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    if (const auto found = scopes_[i].find(key); found != scopes_[i].end()) return found->second;
  }
  if (key[0] == '%') {
    const auto found = special_registers().find(key.substr(1));
    if (found != special_registers().end()) return found->second;
  }
  if (is_number(operand)) return literal(operand);
  throw Untranslated{"the operand " + operand};
}

std::string Operands::value(const std::string& operand, const std::string& type) {
  if (operand.empty()) throw Untranslated{"an empty operand"};
  if (operand[0] == '!') return "(!" + name(trimmed(operand.substr(1))) + ")";
  return fmt::format("::inline_ptx::as<{}>({})", cpp_type(type), name(operand));
}

std::vector<std::string> Operands::vector(const std::string& operand) const {
  if (operand.empty() || operand.front() != '{') return {operand};
  return split(operand.substr(1, operand.size() - 2), ',');
}

std::string Operands::address(const std::string& operand) {
  if (operand.size() < 3 || operand.front() != '[' || operand.back() != ']')
    throw Untranslated{"the address " + operand};
  const std::string inside = operand.substr(1, operand.size() - 2);
  const std::size_t plus = inside.find('+');
  if (plus == std::string::npos) return value(trimmed(inside), "b64");
  return fmt::format("({} + {})", value(trimmed(inside.substr(0, plus)), "b64"),
                     value(trimmed(inside.substr(plus + 1)), "s64"));
}

std::string Operands::assign(const std::string& operand, const std::string& expression) {
  if (operand == "_") return fmt::format("(void)({}); ", expression);
  return fmt::format("::inline_ptx::set({}, {}); ", name(operand), expression);
}

std::string Operands::bound(const std::string& operand) {
  const std::size_t number = number_of(operand);
  if (number == std::string::npos)
    throw Untranslated{"the operand " + operand + ", which is no operand of the statement"};
  if (number >= statement_.outputs.size()) bound_.insert(number);
  return fmt::format("ptx_{}", number);
}

bool Operands::is_register(const std::string& operand) const {
  return std::any_of(scopes_.begin(), scopes_.end(),
                     [&](const auto& scope) { return scope.count(plain(operand)) != 0; });
}

std::string Operands::array(const std::string& type, std::size_t count) {
  std::string variable = fmt::format("ptx_array_{}", declared_++);
  registers_ += fmt::format("{} {}[{}]{{}}; ", type, variable, count);
  return variable;
}

std::string Operands::label(const std::string& name) {
  std::string result = "ptx_at_" + sanitized(name);
  labels_.insert(result);
  return result;
}

std::string translate(const AsmStatement& statement) {
  const std::string where = "const ::emulator::Where ptx_where = ::emulator::Where::here(); ";
  const std::vector<Piece> pieces = parse_ptx(statement.text);
  if (pieces.empty())
    return "{ __asm__ __volatile__(\"\" ::: \"memory\"); }";  // a word to the compiler alone
  Operands operands(statement);
  std::string body;
  for (const Piece& piece : pieces) {
    switch (piece.kind) {
      case PieceKind::kOpen:
        operands.open_scope();
        break;
      case PieceKind::kClose:
        operands.close_scope();
        break;
      case PieceKind::kLabel:
        body += operands.label(piece.label) + ":; ";
        break;
      case PieceKind::kRegisters:
        for (const std::string& name : piece.names) operands.declare(name, piece.type);
        break;
      case PieceKind::kInstruction: {
        const Instruction& instruction = piece.instruction;
        if (!instruction.guard.empty())
          body += fmt::format("if ({}) ", operands.value(instruction.guard, "pred"));
        body += "{ " + call_of(instruction, operands) + " } ";
        break;
      }
    }
  }
  if (!operands.take_kept().empty())
    throw Untranslated{"a tcgen05.ld into registers of the statement that it does not wait for"};
  std::string head = "{ ";
  if (!operands.labels().empty()) {
    head += "__label__ ";
    const char* separator = "";
    for (const std::string& label : operands.labels()) {
      head += separator + label;
      separator = ", ";
    }
    head += "; ";
  }
  if (body.find("ptx_where") != std::string::npos) head += where;
  if (body.find("ptx_carry") != std::string::npos) head += "bool ptx_carry = false; ";
  std::size_t number = 0;
  for (const AsmOperand& output : statement.outputs) head += declaration(output, number++, true, false);
  for (const AsmOperand& input : statement.inputs) {
    head += declaration(input, number, false, operands.is_bound(number));
    ++number;
  }
  return head + operands.registers() + body + "}";
}

}  // namespace emulate::inline_ptx
