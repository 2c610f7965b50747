#include "ptx_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace emulate::inline_ptx {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

std::string without_comments(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      const std::size_t end = text.find("*/", i + 2);
      i = end == std::string::npos ? text.size() : end + 2;
      result += ' ';
    } else {
      result += text[i++];
    }
  }
  return result;
}

/// `%p<4>`, `a, b`: the names that a .reg declares.
std::vector<std::string> declared_names(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& item : split(list, ',')) {
    const std::size_t open = item.find('<');
    if (open == std::string::npos) {
      names.push_back(item);
      continue;
    }
    const int count = std::atoi(item.c_str() + open + 1);
    for (int i = 0; i < count; ++i) names.push_back(item.substr(0, open) + std::to_string(i));
  }
  return names;
}

Instruction parse_instruction(std::string text) {
  Instruction result;
  if (text[0] == '@') {
    const std::size_t begin = text.find_first_not_of(" \t\n@");
    std::size_t end = begin;
    while (end < text.size() && (is_name(text[end]) || text[end] == '!')) ++end;
    if (begin == std::string::npos || end == begin) throw Untranslated{text};
    result.guard = text.substr(begin, end - begin);
    text = trimmed(text.substr(end));
  }
  std::size_t end = 0;
  while (end < text.size() && (is_name(text[end]) || text[end] == '.' || text[end] == ':')) ++end;
  if (end == 0) throw Untranslated{text};
  result.opcode = text.substr(0, end);
  result.parts = split_opcode(result.opcode);
  const std::string rest = trimmed(text.substr(end));
  if (!rest.empty()) result.arguments = split(rest, ',');
  return result;
}

}  // namespace

const std::string& Instruction::argument(std::size_t i) const {
  if (i >= arguments.size()) throw Untranslated{opcode};
  return arguments[i];
}

bool Instruction::has(std::string_view part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\r\v\f");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\n\r\v\f") - begin + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> result;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::string_view("([{").find(text[i]) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(text[i]) != std::string_view::npos) --depth;
    if (text[i] != separator || depth != 0) continue;
    result.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  result.push_back(trimmed(text.substr(begin)));
  return result;
}

std::vector<std::string> split_opcode(const std::string& opcode) {
  std::vector<std::string> parts(1);
  for (const char c : opcode) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<Piece> parse_ptx(const std::string& text) {
  const std::string code = without_comments(text);
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < code.size();) {
    if (std::isspace(static_cast<unsigned char>(code[at])) || code[at] == ';') {
      ++at;
      continue;
    }
    if (code[at] == '{' || code[at] == '}') {
      pieces.push_back({.kind = code[at] == '{' ? PieceKind::kOpen : PieceKind::kClose});
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < code.size() && (is_name(code[end]) || code[end] == '=')) ++end;
    std::size_t colon = end;
    while (colon < code.size() && std::isspace(static_cast<unsigned char>(code[colon]))) ++colon;
    if (end > at && colon < code.size() && code[colon] == ':' && code.compare(colon, 2, "::") != 0) {
      pieces.push_back({.kind = PieceKind::kLabel, .label = code.substr(at, end - at)});
      at = colon + 1;
      continue;
    }
    int depth = 0;
    end = at;
    while (end < code.size() && (code[end] != ';' || depth > 0)) {
      if (code[end] == '{' || code[end] == '[') ++depth;
      if (code[end] == '}' || code[end] == ']') --depth;
      if (depth < 0) break;  // the scope's end, with no ; before it
      ++end;
    }
    const std::string statement = trimmed(code.substr(at, end - at));
    at = end;
    if (statement.rfind(".reg", 0) == 0) {
      const std::string rest = trimmed(statement.substr(4));
      const std::size_t blank = rest.find_first_of(" \t\n");
      if (rest.empty() || rest[0] != '.' || blank == std::string::npos) throw Untranslated{statement};
      pieces.push_back({.kind = PieceKind::kRegisters,
                        .type = rest.substr(1, blank - 1),
                        .names = declared_names(rest.substr(blank))});
    } else if (statement[0] == '.') {
      throw Untranslated{statement.substr(0, statement.find_first_of(" \t\n"))};
    } else {
      pieces.push_back({.kind = PieceKind::kInstruction, .instruction = parse_instruction(statement)});
    }
  }
  return pieces;
}

bool is_ptx_opcode(const std::string& root) {
  // PTX ISA, "Instruction Set": all of them, whether the emulator has them or not.
  static constexpr std::array kRoots = {"abs",
                                        "activemask",
                                        "add",
                                        "addc",
                                        "alloca",
                                        "and",
                                        "applypriority",
                                        "atom",
                                        "bar",
                                        "barrier",
                                        "bfe",
                                        "bfi",
                                        "bfind",
                                        "bmsk",
                                        "bra",
                                        "brev",
                                        "brkpt",
                                        "brx",
                                        "call",
                                        "clmad",
                                        "clusterlaunchcontrol",
                                        "clz",
                                        "cnot",
                                        "copysign",
                                        "cos",
                                        "cp",
                                        "createpolicy",
                                        "cvt",
                                        "cvta",
                                        "discard",
                                        "div",
                                        "dp2a",
                                        "dp4a",
                                        "elect",
                                        "ex2",
                                        "exit",
                                        "fence",
                                        "fma",
                                        "fns",
                                        "getctarank",
                                        "griddepcontrol",
                                        "isspacep",
                                        "istypep",
                                        "ld",
                                        "ldmatrix",
                                        "ldu",
                                        "lg2",
                                        "lop3",
                                        "mad",
                                        "mad24",
                                        "madc",
                                        "mapa",
                                        "match",
                                        "max",
                                        "mbarrier",
                                        "membar",
                                        "min",
                                        "mma",
                                        "mov",
                                        "movmatrix",
                                        "mul",
                                        "mul24",
                                        "multimem",
                                        "nanosleep",
                                        "neg",
                                        "not",
                                        "or",
                                        "pmevent",
                                        "popc",
                                        "prefetch",
                                        "prefetchu",
                                        "prmt",
                                        "rcp",
                                        "red",
                                        "redux",
                                        "rem",
                                        "ret",
                                        "rsqrt",
                                        "sad",
                                        "selp",
                                        "set",
                                        "setmaxnreg",
                                        "setp",
                                        "shf",
                                        "shfl",
                                        "shl",
                                        "shr",
                                        "sin",
                                        "slct",
                                        "sqrt",
                                        "st",
                                        "stackrestore",
                                        "stacksave",
                                        "stmatrix",
                                        "sub",
                                        "subc",
                                        "suld",
                                        "suq",
                                        "sured",
                                        "sust",
                                        "szext",
                                        "tanh",
                                        "tcgen05",
                                        "tensormap",
                                        "testp",
                                        "tex",
                                        "tld4",
                                        "trap",
                                        "txq",
                                        "vabsdiff",
                                        "vabsdiff2",
                                        "vabsdiff4",
                                        "vadd",
                                        "vadd2",
                                        "vadd4",
                                        "vavrg2",
                                        "vavrg4",
                                        "vmad",
                                        "vmax",
                                        "vmax2",
                                        "vmax4",
                                        "vmin",
                                        "vmin2",
                                        "vmin4",
                                        "vote",
                                        "vset",
                                        "vset2",
                                        "vset4",
                                        "vshl",
                                        "vshr",
                                        "vsub",
                                        "vsub2",
                                        "vsub4",
                                        "wgmma",
                                        "wmma",
                                        "xor"};
  return std::find(kRoots.begin(), kRoots.end(), root) != kRoots.end();
}

}  // namespace emulate::inline_ptx
