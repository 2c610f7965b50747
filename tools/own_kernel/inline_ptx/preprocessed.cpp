#include "preprocessed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../source_text.h"
#include "translation.h"

namespace emulate {
namespace {

using inline_ptx::AsmOperand;
using inline_ptx::AsmStatement;
using inline_ptx::trimmed;

void blank(std::string& text, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < std::min(end, text.size()); ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

/// The string literals of the text, put together: what a compiler makes of them.
std::string literals(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "R\"") == 0) {
      const std::size_t open = text.find('(', i);
      if (open == std::string::npos) break;
      const std::string close = ")" + text.substr(i + 2, open - i - 2) + "\"";
      const std::size_t end = std::min(text.find(close, open), text.size());
      result += text.substr(open + 1, end - open - 1);
      i = end + close.size();
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
          result += text[i];
          continue;
        }
        const char escaped = text[++i];
        if (escaped != '\n')
          result += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped == 'r' ? '\r' : escaped;
      }
      ++i;
    } else {
      ++i;
    }
  }
  return result;
}

/// Ends of the parts between separators outside brackets, in text whose literals are blank.
std::vector<std::pair<std::size_t, std::size_t>> parts_of(const std::string& code, std::size_t begin,
                                                          std::size_t end, char separator) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  int depth = 0;
  std::size_t start = begin;
  for (std::size_t i = begin; i < end; ++i) {
    if (code[i] == '(' || code[i] == '[' || code[i] == '{') ++depth;
    if (code[i] == ')' || code[i] == ']' || code[i] == '}') --depth;
    if (code[i] != separator || depth != 0) continue;
    result.emplace_back(start, i);
    start = i + 1;
  }
  result.emplace_back(start, end);
  return result;
}

/// `"=r"(expression), ...`; nvcc also takes them without a comma between.
std::vector<AsmOperand> operands_of(const Preprocessed& source, std::size_t begin, std::size_t end) {
  std::vector<AsmOperand> result;
  for (const auto& [first, last] : parts_of(source.code(), begin, end, ',')) {
    std::string text = trimmed(source.unmarked().substr(first, last - first));
    while (!text.empty()) {
      AsmOperand operand;
      const std::string code = blanked(text, false);
      const std::size_t open = code.find('(');
      const std::size_t close = open == std::string::npos ? open : after_closing(code, open);
      if (close == std::string::npos) throw inline_ptx::Untranslated{"the operand " + text};
      operand.constraint = literals(text.substr(0, open));
      operand.expression = trimmed(text.substr(open + 1, close - open - 2));
      std::replace(operand.expression.begin(), operand.expression.end(), '\n', ' ');
      result.push_back(operand);
      text = trimmed(text.substr(close));
    }
  }
  return result;
}

/// Whether the text is PTX, and not the assembly of the machine that host code runs on.
bool is_ptx(const std::string& text, std::vector<std::string>& opcodes) {
  if (trimmed(text).empty()) return true;
  bool known = false;
  try {
    for (const inline_ptx::Piece& piece : inline_ptx::parse_ptx(text)) {
      if (piece.kind != inline_ptx::PieceKind::kInstruction) continue;
      opcodes.push_back(piece.instruction.opcode);
      known = known || inline_ptx::is_ptx_opcode(piece.instruction.root());
    }
  } catch (const inline_ptx::Untranslated&) {
    return text.find('.') != std::string::npos;
  }
  return known;
}

}  // namespace

Preprocessed::Preprocessed(std::string text, const std::vector<std::string>& own_folders)
    : text_(std::move(text)), unmarked_(text_) {
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    if (text_[at] == '#') {
      if (text_.compare(at, 2, "# ") == 0 && std::isdigit(static_cast<unsigned char>(text_[at + 2]))) {
        const std::string line = text_.substr(at, end - at);
        const std::size_t open = line.find('"');
        const std::size_t close = line.rfind('"');
        if (open != std::string::npos && close > open) {
          const std::string file = line.substr(open + 1, close - open - 1);
          const bool is_own =
              std::any_of(own_folders.begin(), own_folders.end(),
                          [&](const std::string& folder) { return file.rfind(folder + "/", 0) == 0; });
          marks_.push_back({at, std::min(end + 1, text_.size()), std::atoi(line.c_str() + 2), file,
                            is_own || line.find(" 3", close) != std::string::npos});
        }
      }
      blank(unmarked_, at, end);
    }
    at = end + 1;
  }
  code_ = blanked(unmarked_, false);
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i].is_system)
      blank(code_, marks_[i].begin, i + 1 < marks_.size() ? marks_[i + 1].begin : code_.size());
  }
}

const LineMark* Preprocessed::mark_before(std::size_t at) const {
  const auto next =
      std::upper_bound(marks_.begin(), marks_.end(), at,
                       [](std::size_t place, const LineMark& mark) { return place < mark.begin; });
  return next == marks_.begin() ? nullptr : &*(next - 1);
}

int Preprocessed::line_at(std::size_t at) const {
  const LineMark* mark = mark_before(at);
  const std::size_t begin = mark ? std::min(mark->end, at) : 0;
  return (mark ? mark->line : 1) +
         static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                     text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string Preprocessed::place(std::size_t at) const {
  const LineMark* mark = mark_before(at);
  return fmt::format("{}:{}", mark ? mark->file : "", line_at(at));
}

std::string Preprocessed::mark(std::size_t at) const {
  const LineMark* mark = mark_before(at);
  return fmt::format("\n# {} \"{}\"\n", line_at(at), mark ? mark->file : "");
}

std::vector<PtxStatement> ptx_statements(const Preprocessed& source) {
  const std::string& code = source.code();
  std::vector<std::size_t> places;
  for (const char* word : {"asm", "__asm__", "__asm"}) {
    for (std::size_t at = find_word(code, word); at != std::string::npos; at = find_word(code, word, at + 1))
      places.push_back(at);
  }
  std::sort(places.begin(), places.end());
  std::vector<PtxStatement> result;
  for (const std::size_t at : places) {
    std::size_t open = at;
    while (open < code.size() && is_word(code[open])) ++open;
    open = next_solid(code, open);
    while (open < code.size() && is_word(code[open])) {  // volatile
      while (open < code.size() && is_word(code[open])) ++open;
      open = next_solid(code, open);
    }
    if (open >= code.size() || code[open] != '(') continue;
    const std::size_t close = after_closing(code, open);
    if (close == std::string::npos) continue;
    const std::size_t end = next_solid(code, close);
    if (end >= code.size() || code[end] != ';') continue;  // the name of a declaration
    const auto sections = parts_of(code, open + 1, close - 1, ':');
    const auto [first, last] = sections[0];
    PtxStatement statement;
    AsmStatement assembly;
    assembly.text = literals(source.unmarked().substr(first, last - first));
    if (!is_ptx(assembly.text, statement.opcodes)) continue;
    std::string replacement;
    try {
      if (sections.size() > 1) assembly.outputs = operands_of(source, sections[1].first, sections[1].second);
      if (sections.size() > 2) assembly.inputs = operands_of(source, sections[2].first, sections[2].second);
      replacement = inline_ptx::translate(assembly);
    } catch (const inline_ptx::Untranslated& unknown) {
      statement.untranslated = unknown.what;
      std::string what = unknown.what;
      std::replace(what.begin(), what.end(), '"', '\'');
      std::replace(what.begin(), what.end(), '\n', ' ');
      std::replace(what.begin(), what.end(), '\\', '/');
      replacement = fmt::format("{{ ::inline_ptx::untranslated(\"{}\", ::emulator::Where::here()); }}", what);
    }
    statement.place = source.place(at);
    statement.edit = {at, end + 1, replacement + source.mark(end + 1)};
    result.push_back(std::move(statement));
  }
  return result;
}

}  // namespace emulate
