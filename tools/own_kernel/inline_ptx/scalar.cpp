// Arithmetic, comparisons, conversions, moves: what a thread does alone, in registers.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "translation.h"

namespace emulate::inline_ptx {
namespace {

/// A function of inline_ptx/scalar.h and how many operands it takes, all of the instruction's type.
struct Function {
  const char* name;
  std::size_t operands;
};

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> kFunctions = {
      {"add", {"add", 2}},          {"sub", {"sub", 2}},   {"div", {"div", 2}},     {"rem", {"rem", 2}},
      {"min", {"min", 2}},          {"max", {"max", 2}},   {"abs", {"abs", 1}},     {"neg", {"neg", 1}},
      {"and", {"bit_and", 2}},      {"or", {"bit_or", 2}}, {"xor", {"bit_xor", 2}}, {"not", {"bit_not", 1}},
      {"cnot", {"cnot", 1}},        {"sad", {"sad", 3}},   {"fma", {"fma", 3}},     {"brev", {"brev", 1}},
      {"ex2", {"ex2", 1}},          {"lg2", {"lg2", 1}},   {"rcp", {"rcp", 1}},     {"rsqrt", {"rsqrt", 1}},
      {"sqrt", {"sqrt", 1}},        {"sin", {"sin", 1}},   {"cos", {"cos", 1}},     {"tanh", {"tanh", 1}},
      {"copysign", {"copysign", 2}}};
  return kFunctions;
}

unsigned bits_of(const std::string& type) {
  if (type == "pred") return 1;
  return static_cast<unsigned>(std::stoul(type.substr(type.find_first_of("0123456789"))));
}

bool is_float(const std::string& type) {
  return type[0] == 'f' || type.rfind("bf", 0) == 0;
}

/// What the modifiers between the name and the type make of a result: `.sat`, `.ftz`, `.relu`, `.NaN`.
/// Roundings other than to the nearest are refused.
std::string modifiers(const Instruction& in, std::size_t first) {
  std::string flags;
  for (std::size_t i = first; i + 1 < in.parts.size(); ++i) {
    const std::string& part = in.parts[i];
    if (part == "rn" || part == "approx" || part == "full" || part == "xorsign" || part == "lo") continue;
    if (part == "sat" || part == "ftz" || part == "relu" || part == "NaN") {
      flags += fmt::format(
          "{}::inline_ptx::k{}", flags.empty() ? "" : " | ",
          part == "NaN" ? "Nan" : std::string(1, static_cast<char>(part[0] - 'a' + 'A')) + part.substr(1));
      continue;
    }
    throw Untranslated{in.opcode};
  }
  return flags.empty() ? "0u" : flags;
}

std::string values(const Instruction& in, Operands& operands, std::size_t count, const std::string& type) {
  if (in.arguments.size() != count + 1) throw Untranslated{in.opcode};
  std::string list;
  for (std::size_t i = 1; i <= count; ++i)
    list += (i > 1 ? ", " : "") + operands.value(in.arguments[i], type);
  return list;
}

std::string comparison(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {
      {"eq", "kEq"},   {"ne", "kNe"},   {"lt", "kLt"},   {"le", "kLe"},   {"gt", "kGt"},   {"ge", "kGe"},
      {"lo", "kLt"},   {"ls", "kLe"},   {"hi", "kGt"},   {"hs", "kGe"},   {"equ", "kEqu"}, {"neu", "kNeu"},
      {"ltu", "kLtu"}, {"leu", "kLeu"}, {"gtu", "kGtu"}, {"geu", "kGeu"}, {"num", "kNum"}, {"nan", "kNan"}};
  const auto found = kNames.find(name);
  if (found == kNames.end()) throw Untranslated{"the comparison ." + name};
  return "::inline_ptx::Compare::" + found->second;
}

/// setp.lt.and.s32 p|q, a, b, c; and set, whose result is a number.
std::string set_predicate(const Instruction& in, Operands& operands) {
  const bool is_set = in.root() == "set";
  if (in.parts.size() < 3) throw Untranslated{in.opcode};
  const std::string& type = in.type();
  std::string combine;
  const std::size_t last = in.parts.size() - (is_set ? 2 : 1);
  for (std::size_t i = 2; i < last; ++i) {
    if (in.parts[i] == "ftz") continue;
    if (in.parts[i] != "and" && in.parts[i] != "or" && in.parts[i] != "xor") throw Untranslated{in.opcode};
    combine = in.parts[i];
  }
  if (in.arguments.size() != (combine.empty() ? 3u : 4u)) throw Untranslated{in.opcode};
  std::string code =
      fmt::format("const bool ptx_p = ::inline_ptx::compare({}, {}, {}); ", comparison(in.parts[1]),
                  operands.value(in.arguments[1], type), operands.value(in.arguments[2], type));
  const auto combined = [&](const std::string& predicate) {
    if (combine.empty()) return predicate;
    const char* sign = combine == "and" ? "&&" : combine == "or" ? "||" : "!=";
    return fmt::format("({} {} ptx_c)", predicate, sign);
  };
  if (!combine.empty())
    code += fmt::format("const bool ptx_c = {}; ", operands.value(in.arguments[3], "pred"));
  if (is_set) {
    const std::string& result = in.parts[last];
    return code +
           operands.assign(in.arguments[0], fmt::format("({1} ? {0}({2}) : {0}(0))", cpp_type(result),
                                                        combined("ptx_p"), is_float(result) ? "1" : "-1"));
  }
  const std::vector<std::string> results = split(in.arguments[0], '|');
  code += operands.assign(results[0], combined("ptx_p"));
  if (results.size() > 1) code += operands.assign(results[1], combined("(!ptx_p)"));
  return code;
}

/// mov between a register and a vector of parts of it: the first one is the lowest.
std::string move(const Instruction& in, Operands& operands) {
  if (in.arguments.size() != 2 || in.parts.size() != 2) throw Untranslated{in.opcode};
  const std::string& to = in.arguments[0];
  const std::string& from = in.arguments[1];
  if (to[0] != '{' && from[0] != '{') return operands.assign(to, operands.value(from, in.type()));
  const std::vector<std::string> parts = operands.vector(to[0] == '{' ? to : from);
  const unsigned bits = bits_of(in.type()) / static_cast<unsigned>(parts.size());
  const std::string part_type = fmt::format("b{}", bits);
  std::string code;
  if (to[0] == '{') {
    code = fmt::format("const auto ptx_v = {}; ", operands.value(from, in.type()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] != "_")
        code += operands.assign(parts[i], fmt::format("{}(ptx_v >> {})", cpp_type(part_type), bits * i));
    }
    return code;
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    code += fmt::format("{}({}({}) << {})", i > 0 ? " | " : "", cpp_type(in.type()),
                        operands.value(parts[i], part_type), bits * i);
  return operands.assign(to, code);
}

std::string multiply(const Instruction& in, Operands& operands) {
  const std::string& type = in.type();
  const bool adds = in.root() == "mad";
  if (is_float(type)) {
    if (adds)
      return operands.assign(in.argument(0), fmt::format("::inline_ptx::fma({}, {})",
                                                         values(in, operands, 3, type), modifiers(in, 1)));
    return operands.assign(in.argument(0), fmt::format("::inline_ptx::mul({}, {})",
                                                       values(in, operands, 2, type), modifiers(in, 1)));
  }
  if (in.parts.size() != 3) throw Untranslated{in.opcode};
  const std::string& half = in.parts[1];
  if (half != "lo" && half != "hi" && half != "wide") throw Untranslated{in.opcode};
  std::string code = fmt::format("::inline_ptx::mul_{}({}, {})", half, operands.value(in.argument(1), type),
                                 operands.value(in.argument(2), type));
  if (adds) {
    const std::string sum_type = half == "wide" ? fmt::format("{}{}", type[0], 2 * bits_of(type)) : type;
    code = fmt::format("::inline_ptx::add({}, {}, 0u)", code, operands.value(in.argument(3), sum_type));
  }
  return operands.assign(in.arguments[0], code);
}

std::string shift(const Instruction& in, Operands& operands) {
  const std::string& type = in.type();
  if (in.root() == "shf") {
    if (in.parts.size() != 4) throw Untranslated{in.opcode};
    return operands.assign(in.argument(0), fmt::format("::inline_ptx::shf_{}({}, {})", in.parts[1],
                                                       values(in, operands, 3, "b32"),
                                                       in.parts[2] == "wrap" ? "true" : "false"));
  }
  return operands.assign(
      in.argument(0), fmt::format("::inline_ptx::{}({}, {})", in.root(), operands.value(in.argument(1), type),
                                  operands.value(in.argument(2), "u32")));
}

/// cvt.rn.satfinite.e4m3x2.f32 d, a, b; the types are the last two parts.
std::string convert(const Instruction& in, Operands& operands) {
  if (in.parts.size() < 3) throw Untranslated{in.opcode};
  const std::string& to = in.parts[in.parts.size() - 2];
  const std::string& from = in.type();
  std::string rounding = "kNone";
  bool saturates = false;
  bool finite = false;
  bool relu = false;
  for (std::size_t i = 1; i + 2 < in.parts.size(); ++i) {
    const std::string& part = in.parts[i];
    static const std::map<std::string, std::string> kRoundings = {
        {"rn", "kNearest"}, {"rni", "kNearest"}, {"rz", "kZero"}, {"rzi", "kZero"}, {"rm", "kDown"},
        {"rmi", "kDown"},   {"rp", "kUp"},       {"rpi", "kUp"},  {"rna", "kAway"}};
    if (const auto found = kRoundings.find(part); found != kRoundings.end()) {
      rounding = found->second;
    } else if (part == "sat") {
      saturates = true;
    } else if (part == "satfinite") {
      finite = true;
    } else if (part == "relu") {
      relu = true;
    } else if (part != "ftz") {
      throw Untranslated{in.opcode};
    }
  }
  const std::string options =
      fmt::format("{{::inline_ptx::Rounding::{}, {}, {}, {}}}", rounding, saturates, finite, relu);
  const auto narrow_pair = [&](const std::string& type) {
    return type == "e4m3x2" ? "::inline_ptx::e4m3x2" : type == "e5m2x2" ? "::inline_ptx::e5m2x2" : "";
  };
  if (*narrow_pair(to) || to == "f16x2" || to == "bf16x2") {
    const std::string target = *narrow_pair(to) ? narrow_pair(to) : cpp_type(to);
    if (from == "f32" && in.arguments.size() == 3)
      return operands.assign(in.arguments[0], fmt::format("::inline_ptx::convert_pair<{}>({}, {}, {})",
                                                          target, operands.value(in.arguments[1], "f32"),
                                                          operands.value(in.arguments[2], "f32"), options));
    if (in.arguments.size() != 2) throw Untranslated{in.opcode};
    const std::string source = *narrow_pair(from) ? fmt::format("::inline_ptx::as<{}>({})", narrow_pair(from),
                                                                operands.name(in.arguments[1]))
                                                  : operands.value(in.arguments[1], from);
    return operands.assign(in.arguments[0],
                           fmt::format("::inline_ptx::convert_lanes<{}>({}, {})", target, source, options));
  }
  if (in.arguments.size() != 2) throw Untranslated{in.opcode};
  if (to == "tf32")
    return operands.assign(in.arguments[0], fmt::format("::inline_ptx::to_tf32({}, {})",
                                                        operands.value(in.arguments[1], "f32"), options));
  return operands.assign(in.arguments[0], fmt::format("::inline_ptx::convert<{}>({}, {})", cpp_type(to),
                                                      operands.value(in.arguments[1], from), options));
}

/// add.cc and addc: the carry is a variable of the statement.
std::string with_carry(const Instruction& in, Operands& operands) {
  const bool subtracts = in.root().rfind("sub", 0) == 0;
  const bool takes = in.root().back() == 'c';
  return operands.assign(
      in.argument(0), fmt::format("::inline_ptx::{}_carry({}, {}, {}, ptx_carry)", subtracts ? "sub" : "add",
                                  values(in, operands, 2, in.type()), takes, in.has("cc")));
}

}  // namespace

std::string scalar_instruction(const Instruction& in, Operands& operands) {
  const std::string& root = in.root();
  const std::string& type = in.type();
  if (root == "mov") return move(in, operands);
  if (root == "setp" || root == "set") return set_predicate(in, operands);
  if (root == "selp")
    return operands.assign(
        in.argument(0),
        fmt::format("({} ? {} : {})", operands.value(in.argument(3), "pred"),
                    operands.value(in.argument(1), type), operands.value(in.argument(2), type)));
  if (root == "slct")
    return operands.assign(in.argument(0),
                           fmt::format("({} >= 0 ? {} : {})", operands.value(in.argument(3), type),
                                       operands.value(in.argument(1), in.parts[in.parts.size() - 2]),
                                       operands.value(in.argument(2), in.parts[in.parts.size() - 2])));
  if (root == "mul" || root == "mad") return multiply(in, operands);
  if (root == "mul24" || root == "mad24") return "";
  if (root == "shl" || root == "shr" || root == "shf") return shift(in, operands);
  if (root == "cvt" && !in.has("pack")) return convert(in, operands);
  if (in.has("cc") || root == "addc" || root == "subc")
    return root == "add" || root == "sub" || root == "addc" || root == "subc" ? with_carry(in, operands) : "";
  if (root == "lop3" && type == "b32" && in.parts.size() == 2)
    return operands.assign(
        in.argument(0),
        fmt::format("::inline_ptx::lop3({}, {}, {}, {})", operands.value(in.argument(1), "b32"),
                    operands.value(in.argument(2), "b32"), operands.value(in.argument(3), "b32"),
                    operands.value(in.argument(4), "b32")));
  if (root == "prmt")
    return operands.assign(in.argument(0),
                           fmt::format("::inline_ptx::prmt({}, \"{}\")", values(in, operands, 3, "b32"),
                                       in.parts.size() > 2 ? type : ""));
  if (root == "bfe")
    return operands.assign(
        in.argument(0),
        fmt::format("::inline_ptx::bfe({}, {}, {})", operands.value(in.argument(1), type),
                    operands.value(in.argument(2), "u32"), operands.value(in.argument(3), "u32")));
  if (root == "bfi")
    return operands.assign(
        in.argument(0),
        fmt::format("::inline_ptx::bfi({}, {}, {}, {})", operands.value(in.argument(1), type),
                    operands.value(in.argument(2), type), operands.value(in.argument(3), "u32"),
                    operands.value(in.argument(4), "u32")));
  if (root == "popc" || root == "clz" || root == "bfind")
    return operands.assign(in.argument(0),
                           fmt::format("::inline_ptx::{}({}{})", root, operands.value(in.argument(1), type),
                                       in.has("shiftamt") ? ", true" : ""));
  if (root == "dp4a" || root == "dp2a") {
    if (root == "dp2a" || in.parts.size() != 3) return "";
    return operands.assign(
        in.argument(0),
        fmt::format("::inline_ptx::dp4a<{}, {}>({}, {}, {})", in.parts[1] == "s32", in.parts[2] == "s32",
                    operands.value(in.argument(1), "b32"), operands.value(in.argument(2), "b32"),
                    operands.value(in.argument(3), "b32")));
  }
  if (root == "testp")
    return operands.assign(in.argument(0), fmt::format("::inline_ptx::testp_{}({})", in.parts.at(1),
                                                       operands.value(in.argument(1), type)));
  if (root == "cvta") {
    const bool to_space = in.parts.at(1) == "to";
    const bool is_shared = in.begins("cvta.to.shared") || in.begins("cvta.shared");
    if (!is_shared) return operands.assign(in.argument(0), operands.value(in.argument(1), type));
    return operands.assign(
        in.argument(0), fmt::format("::inline_ptx::{}_address({}, ptx_where)",
                                    to_space ? "shared" : "generic", operands.value(in.argument(1), "b64")));
  }
  if (root == "isspacep" && in.parts.size() == 2 && (in.parts[1] == "shared" || in.parts[1] == "global"))
    return operands.assign(in.argument(0), fmt::format("::inline_ptx::is_in_{}({}, ptx_where)", in.parts[1],
                                                       operands.value(in.argument(1), "b64")));
  if (root == "trap" || root == "brkpt") return "::emulator::trap(ptx_where);";
  if (root == "pmevent" || root == "nanosleep") return "::__nanosleep(1);";
  const auto found = functions().find(root);
  if (found == functions().end()) return "";
  if (type == "pred")
    return operands.assign(in.argument(0), fmt::format("::inline_ptx::{}_pred({})", found->second.name,
                                                       values(in, operands, found->second.operands, "pred")));
  return operands.assign(in.argument(0),
                         fmt::format("::inline_ptx::{}({}, {})", found->second.name,
                                     values(in, operands, found->second.operands, type), modifiers(in, 1)));
}

}  // namespace emulate::inline_ptx
