#include "emulator/report/narrow_offsets.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

namespace emulator {
namespace {

struct Token {
  std::string_view text;  // in the source
  std::size_t at = 0;

  bool is(std::string_view other) const { return text == other; }
  bool is_name() const { return std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_'; }
  bool is_number() const { return std::isdigit(static_cast<unsigned char>(text[0])) != 0; }
};
using Tokens = std::vector<Token>;

Tokens tokens_of(std::string_view code) {
  Tokens tokens;
  tokens.reserve(code.size() / 4);
  const auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'';
  };
  for (std::size_t i = 0; i < code.size();) {
    if (std::isspace(static_cast<unsigned char>(code[i])) != 0) {
      ++i;
      continue;
    }
    if (code[i] == '#') {  // a directive
      i = std::min(code.find('\n', i), code.size());
      continue;
    }
    std::size_t end = i + 1;
    if (word(code[i])) {
      while (end < code.size() && word(code[end])) ++end;
    } else {
      // ">>" mostly ends two lists of template arguments.
      for (const std::string_view two :
           {"::", "->", "<<", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*="}) {
        if (code[i] == two[0] && i + 1 < code.size() && code[i + 1] == two[1]) end = i + 2;
      }
    }
    tokens.push_back({code.substr(i, end - i), i});
    i = end;
  }
  return tokens;
}

/// The index of the token that closes the bracket at `open`, or the number of tokens.
std::size_t closing(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    const std::string_view text = tokens[i].text;
    if (text == "(" || text == "[" || text == "{") ++depth;
    if ((text == ")" || text == "]" || text == "}") && --depth == 0) return i;
  }
  return tokens.size();
}

bool is_wide_type(std::string_view name) {
  return name == "int64_t" || name == "uint64_t" || name == "size_t" || name == "ptrdiff_t" ||
         name == "long" || name == "uintptr_t";
}

bool is_constant_name(std::string_view name) {
  return name.size() > 1 && name[0] == 'k' && std::isupper(static_cast<unsigned char>(name[1])) != 0;
}

bool is_tile_extent(std::string_view name) {
  return name == "kM" || name == "kN" || name == "kK";
}

/// What is known of an expression's value.
struct Value {
  bool wide = false;
  int run_time = 0;                    // factors that are known only at run time and may be large
  bool dimension = false;              // one of them is that of a matrix: its rows, its columns, a stride
  std::set<std::string_view> extents;  // of a tile, among the factors
};

/// By its name: m, lda, columns, b_rows, row_stride.
bool is_dimension(std::string_view name) {
  for (const char* word : {"m", "n", "k", "M", "N", "K", "ld", "lda", "ldb", "ldc", "ldd"}) {
    if (name == word) return true;
  }
  for (const std::string_view word :
       {"rows", "columns", "cols", "width", "height", "stride", "pitch", "size"}) {
    if (name.size() >= word.size() && name.compare(name.size() - word.size(), word.size(), word) == 0)
      return true;
  }
  return false;
}

bool too_large(const Value& product) {
  return !product.wide && ((product.run_time >= 2 && product.dimension) ||
                           (product.run_time >= 1 && product.extents.size() >= 2));
}

/// Looks through the expressions of one source.
class OffsetReader {
 public:
  OffsetReader(const std::string& code, const Tokens& tokens) : code_(code), tokens_(tokens) {
    collect_small();
  }

  struct Found {
    std::size_t begin, end;  // tokens of the product
  };

  /// The first product in [begin, end) that may not fit, through the variables that it names.
  std::optional<Found> look(std::size_t begin, std::size_t end) {
    found_.reset();
    sum(begin, end, 0);
    return found_;
  }

  std::string text(std::size_t begin, std::size_t end) const {
    const std::size_t from = tokens_[begin].at;
    const Token& last = tokens_[end - 1];
    std::string raw = code_.substr(from, last.at + last.text.size() - from);
    std::string text;
    for (const char c : raw) {
      const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
      if (!space) text += c;
      if (space && !text.empty() && text.back() != ' ') text += ' ';
    }
    return text;
  }

 private:
  static constexpr int kDepth = 6;  // of variables behind variables

  /// Loop counters and what comes from a thread's index: never large.
  void collect_small() {
    for (std::size_t i = 0; i + 4 < tokens_.size(); ++i) {
      if (tokens_[i].is("for") && tokens_[i + 1].is("(") && tokens_[i + 2].is_name() &&
          tokens_[i + 3].is_name())
        small_.insert(tokens_[i + 3].text);
    }
    for (const char* name :
         {"lane", "warp", "warpgroup", "thread", "stage", "threadIdx", "tx", "ty", "element"})
      small_.insert(name);
  }

  /// `int name = ...;` or `const auto name = ...;` latest before `before`: the range of its initialiser.
  std::optional<std::pair<std::size_t, std::size_t>> initialiser(std::string_view name,
                                                                 std::size_t before) const {
    for (std::size_t i = before; i-- > 1;) {
      if (tokens_[i].text != name || !tokens_[i - 1].is_name() || tokens_[i - 1].is("return")) continue;
      if (i + 1 >= tokens_.size() || !tokens_[i + 1].is("=")) return std::nullopt;  // declared otherwise
      std::size_t end = i + 2;
      while (end < tokens_.size() && !tokens_[end].is(";") && !tokens_[end].is(",")) {
        const bool opens = tokens_[end].is("(") || tokens_[end].is("[") || tokens_[end].is("{");
        end = opens ? closing(tokens_, end) + 1 : end + 1;
      }
      return std::pair(i + 2, std::min(end, tokens_.size()));
    }
    return std::nullopt;
  }

  bool declared_wide(std::string_view name, std::size_t before) const {
    for (std::size_t i = before; i-- > 1;) {
      if (tokens_[i].text != name || !tokens_[i - 1].is_name()) continue;
      return is_wide_type(tokens_[i - 1].text);
    }
    return false;
  }

  static Value join(const Value& one, const Value& other) {
    Value both = one.run_time >= other.run_time ? one : other;
    both.wide = one.wide || other.wide;
    both.dimension = one.dimension || other.dimension;
    return both;
  }

  /// Terms with + and - between them; other operators end the walk over one of them.
  Value sum(std::size_t begin, std::size_t end, int depth) {
    Value all;
    std::size_t start = begin;
    for (std::size_t i = begin; i <= end; ++i) {
      const bool at_end = i == end;
      const bool operand_before = i > start && !tokens_[i - 1].is("*") && !tokens_[i - 1].is("/");
      if (at_end || (operand_before && is_between(tokens_[i]))) {
        if (i > start) all = join(all, term(start, i, depth));
        start = i + 1;
        continue;
      }
      const bool opens = tokens_[i].is("(") || tokens_[i].is("[") || tokens_[i].is("{");
      if (opens) i = std::min(closing(tokens_, i), end - 1);
    }
    return all;
  }
  static bool is_between(const Token& token) {
    for (const char* text :
         {"+", "-", "?", ":", "<<", "&", "|", "^", "==", "!=", "&&", "||", "<=", ">=", ","}) {
      if (token.is(text)) return true;
    }
    return false;
  }

  Value term(std::size_t begin, std::size_t end, int depth) {
    Value product;
    std::size_t start = begin;
    char before = ' ';
    for (std::size_t i = begin; i <= end; ++i) {
      const bool operation = i < end && (tokens_[i].is("*") || tokens_[i].is("/") || tokens_[i].is("%"));
      if (i == end || (operation && i > start)) {
        if (i == start) break;
        const Value next = factor(start, i, depth);
        if (before == ' ') {
          product = next;
        } else if (before == '*') {
          product.wide = product.wide || next.wide;
          product.run_time += next.run_time;
          product.dimension = product.dimension || next.dimension;
          product.extents.insert(next.extents.begin(), next.extents.end());
          if (too_large(product) && !found_) found_ = Found{begin, i};
        } else {  // at most what it was, or below the divisor
          product.run_time = before == '%' ? std::min(product.run_time, next.run_time) : product.run_time;
          product.extents.clear();
        }
        if (i < end) before = tokens_[i].text[0];
        start = i + 1;
        continue;
      }
      const bool opens = tokens_[i].is("(") || tokens_[i].is("[") || tokens_[i].is("{");
      if (opens) i = std::min(closing(tokens_, i), end - 1);
    }
    return product;
  }

  /// Of the arguments of std::min and std::max: a smallest one of which one is a constant is small.
  Value one_of(std::size_t begin, std::size_t end, bool smallest, int depth) {
    std::size_t comma = begin;
    while (comma < end && !tokens_[comma].is(",")) {
      const bool opens = tokens_[comma].is("(") || tokens_[comma].is("[") || tokens_[comma].is("{");
      comma = opens ? closing(tokens_, comma) + 1 : comma + 1;
    }
    if (comma >= end) return {};
    const Value one = sum(begin, comma, depth);
    const Value other = sum(comma + 1, end, depth);
    return smallest && (one.run_time == 0 || other.run_time == 0) ? Value{} : join(one, other);
  }

  Value factor(std::size_t begin, std::size_t end, int depth) {
    while (begin < end && (tokens_[begin].is("-") || tokens_[begin].is("+"))) ++begin;
    if (begin >= end) return {};
    const Token& first = tokens_[begin];
    if (first.is("(")) {
      const std::size_t close = closing(tokens_, begin);
      if (close + 1 >= end) return sum(begin + 1, std::min(close, end), depth);
      // (std::int64_t)row
      const bool wide = std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                                    tokens_.begin() + static_cast<std::ptrdiff_t>(close),
                                    [](const Token& token) { return is_wide_type(token.text); });
      Value value = factor(close + 1, end, depth);
      value.wide = value.wide || wide;
      return value;
    }
    if (first.is_number()) {
      Value value;
      value.wide =
          first.text.find_first_of("lLzZ") != std::string::npos && first.text.compare(0, 2, "0x") != 0;
      return value;
    }
    if (!first.is_name()) return {};
    // The last name of the chain, and whether it is called.
    std::size_t last = begin;
    std::size_t i = begin;
    while (i < end) {
      if (tokens_[i].is_name()) last = i;
      if (tokens_[i].is("(") || tokens_[i].is("[") || tokens_[i].is("{")) break;
      ++i;
    }
    const std::string_view name = tokens_[last].text;
    if (i < end && tokens_[i].is("[")) return {};  // an element of something small enough to be indexed
    if (i < end) {                                 // a call, or a cast
      const std::size_t close = std::min(closing(tokens_, i), end);
      const bool cast =
          first.is("static_cast") || is_wide_type(name) || first.is("int") || first.is("unsigned");
      if (name == "min" || name == "max") return one_of(i + 1, close, name == "min", depth);
      if (!cast) {
        Value value;
        value.wide = name == "offset";
        return value;
      }
      bool wide = false;
      for (std::size_t at = begin; at < i; ++at) wide = wide || is_wide_type(tokens_[at].text);
      Value value = sum(i + 1, close, depth);
      value.wide = wide;
      return value;
    }
    if (is_constant_name(name)) {
      Value value;
      if (is_tile_extent(name)) value.extents.insert(name);
      return value;
    }
    if (first.is("true") || first.is("false") || first.is("sizeof")) return {};
    if (small_.count(first.text) != 0 || small_.count(name) != 0) return {};
    Value value;
    value.run_time = 1;
    value.dimension = is_dimension(name);
    if (last == begin) {
      value.wide = declared_wide(name, begin);
      if (depth < kDepth) {
        if (const auto range = initialiser(name, begin)) {
          const Value inner = sum(range->first, range->second, depth + 1);
          if (inner.run_time == 0) value.run_time = 0;  // made of constants and thread indices
          value.wide = value.wide || inner.wide;
          value.dimension = value.dimension || inner.dimension;
        }
      }
    }
    return value;
  }

  const std::string& code_;
  const Tokens& tokens_;
  std::set<std::string_view> small_;
  std::optional<Found> found_;
};

/// Names of pointers into global memory.
std::set<std::string_view> global_pointers(const Tokens& tokens) {
  std::set<std::string_view> names{"matrix", "workspace"};
  // Parameters of kernels: `* name` in their parentheses.
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is("__global__")) continue;
    std::size_t open = i + 1;
    while (open < tokens.size() && !tokens[open].is("(") && !tokens[open].is(";")) ++open;
    while (open < tokens.size() && tokens[open - 1].text.compare(0, 2, "__") == 0) {
      open = closing(tokens, open) + 1;
      while (open < tokens.size() && !tokens[open].is("(") && !tokens[open].is(";")) ++open;
    }
    if (open >= tokens.size()) break;
    const std::size_t close = closing(tokens, open);
    for (std::size_t at = open; at + 1 < close; ++at) {
      if (!tokens[at].is("*")) continue;
      std::size_t name = at + 1;
      while (name < close && (tokens[name].is("const") || tokens[name].is("__restrict__"))) ++name;
      if (name < close && tokens[name].is_name()) names.insert(tokens[name].text);
    }
  }
  // Variables and members that are declared as pointers.
  std::set<std::string_view> pointers;
  for (std::size_t i = 1; i + 2 < tokens.size(); ++i) {
    if (!tokens[i].is("*") || !(tokens[i - 1].is_name() || tokens[i - 1].is(">"))) continue;
    const std::size_t name = tokens[i + 1].is("const") ? i + 2 : i + 1;
    if (tokens[name].is_name() && (tokens[name + 1].is("=") || tokens[name + 1].is(";")))
      pointers.insert(tokens[name].text);
  }
  const auto is_anchor = [&](std::size_t i) {
    if (i + 2 < tokens.size() && tokens[i].is("gemm") && tokens[i + 1].is(".") &&
        tokens[i + 2].text.size() == 1)
      return true;
    return names.count(tokens[i].text) != 0;
  };
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
      if (pointers.count(tokens[i].text) == 0 || names.count(tokens[i].text) != 0) continue;
      std::size_t begin = i + 2;
      std::size_t end = begin;
      if (tokens[i + 1].is("=")) {
        while (end < tokens.size() && !tokens[end].is(";")) ++end;
      } else if (tokens[i + 1].is("(") && i > 0 && (tokens[i - 1].is(":") || tokens[i - 1].is(","))) {
        end = closing(tokens, i + 1);
      } else {
        continue;
      }
      // The pointer itself, not what is loaded from it.
      for (; begin < end; ++begin) {
        if (tokens[begin].is("ld_global") || tokens[begin].is("load_8")) break;
        if (is_anchor(begin)) {
          names.insert(tokens[i].text);
          break;
        }
      }
    }
  }
  return names;
}

}  // namespace

std::vector<NarrowOffset> narrow_offsets(const std::string& code) {
  std::vector<NarrowOffset> found;
  const Tokens tokens = tokens_of(code);
  const std::set<std::string_view> pointers = global_pointers(tokens);
  OffsetReader reader(code, tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::size_t behind = i + 1;
    if (i + 2 < tokens.size() && tokens[i].is("gemm") && tokens[i + 1].is(".") &&
        tokens[i + 2].text.size() == 1 && tokens[i + 2].is_name()) {
      behind = i + 3;
    } else if (pointers.count(tokens[i].text) == 0 ||
               (i > 0 && (tokens[i - 1].is(".") || tokens[i - 1].is("->")))) {
      continue;
    }
    const std::string pointer = reader.text(i, behind);
    for (int casts = 0; casts < 2 && behind < tokens.size() && tokens[behind].is(")"); ++casts) ++behind;
    if (behind + 1 >= tokens.size()) break;
    std::size_t begin = behind + 1;
    std::size_t end = begin;
    if (tokens[behind].is("[")) {
      end = closing(tokens, behind);
    } else if (tokens[behind].is("+") || tokens[behind].is("-") || tokens[behind].is("+=")) {
      while (end < tokens.size() && !tokens[end].is(";") && !tokens[end].is(",") && !tokens[end].is(")") &&
             !tokens[end].is("]") && !tokens[end].is("}") && !tokens[end].is("{")) {
        const bool opens = tokens[end].is("(") || tokens[end].is("[");
        end = opens ? closing(tokens, end) + 1 : end + 1;
      }
    } else {
      continue;
    }
    end = std::min(end, tokens.size());
    if (end <= begin) continue;
    const auto product = reader.look(begin, end);
    if (!product) continue;
    const auto line =
        1 +
        std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(tokens[product->begin].at), '\n');
    found.push_back({pointer, reader.text(begin, end), reader.text(product->begin, product->end),
                     static_cast<int>(line)});
  }
  return found;
}

}  // namespace emulator
