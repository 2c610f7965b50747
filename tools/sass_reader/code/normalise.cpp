#include "code/normalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <set>

namespace sass {
namespace {

enum class File { kVector, kUniform, kPredicate, kUniformPredicate };

/// A register name inside an operand's text.
struct Token {
  File file;
  int number;
  std::size_t position;  // of the first letter of the name
  std::size_t length;
};

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
}

/// Finds R12, UR4, P0, UP1. RZ, URZ, PT, UPT and SR_... have no number and stay as they are.
std::vector<Token> find_registers(const std::string& text) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_name_letter(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_name_letter(text[end])) ++end;
    const std::string_view word = std::string_view(text).substr(i, end - i);
    const std::size_t letters = word.starts_with("UR") || word.starts_with("UP") ? 2 : 1;
    int number = 0;
    const bool known = (word[letters - 1] == 'R' || word[letters - 1] == 'P') && word.size() > letters;
    const char* const last = word.data() + word.size();
    // A modifier such as ".R8" is no register: names follow a dot only in modifiers.
    const bool is_modifier = i > 0 && text[i - 1] == '.';
    if (known && !is_modifier && std::from_chars(word.data() + letters, last, number).ptr == last) {
      const bool uniform = letters == 2;
      const File file = word[letters - 1] == 'R' ? (uniform ? File::kUniform : File::kVector)
                                                 : (uniform ? File::kUniformPredicate : File::kPredicate);
      tokens.push_back({file, number, i, end - i});
    }
    i = end;
  }
  return tokens;
}

int words_of(const Instruction& instruction) {
  const int bytes = access_bytes(instruction);
  return bytes > 4 ? bytes / 4 : 1;
}

/// Shared address, mbarrier and a coordinate for each dimension: UTMALDG.2D names four registers.
int tma_words(const Instruction& instruction) {
  constexpr int kMaxDimensions = 5;
  for (int dimensions = 1; dimensions <= kMaxDimensions; ++dimensions)
    if (instruction.has_modifier(fmt::format("{}D", dimensions))) return 2 + dimensions;
  return 1;
}

/// How many consecutive registers operand `index` of `instruction` names by its first one. From the public
/// descriptions of the PTX instructions behind the opcodes; 1 where nothing is known,
/// which only costs grouping.
int operand_words(const Instruction& instruction, std::size_t index, const std::string& operand,
                  const Token& token) {
  const std::string& opcode = instruction.opcode;
  // Addresses: [R2.64], desc[UR8][R2.64], gdesc[UR4].
  if (operand.find('[') != std::string::npos) {
    if (operand.compare(token.position + token.length, 3, ".64") == 0) return 2;
    const bool descriptor = token.position >= 5 && operand.compare(token.position - 5, 5, "desc[") == 0;
    if (descriptor) return operand.starts_with("gdesc") ? 4 : 2;
    if (opcode.starts_with("UTMA")) return index == 0 ? tma_words(instruction) : 2;
    return 1;
  }
  if (token.file != File::kVector && token.file != File::kUniform) return 1;
  const bool is_result = index == 0;
  switch (classify(instruction)) {
    case Class::kGlobalLoad:
    case Class::kSharedLoad:
    case Class::kMatrixLoad:
    case Class::kLocal:
    case Class::kGlobalStore:
    case Class::kSharedStore:
      return words_of(instruction);
    case Class::kConstantLoad:
      return instruction.has_modifier("128") ? 4 : instruction.has_modifier("64") ? 2 : 1;
    default:
      break;
  }
  if (opcode == "HMMA" && !instruction.modifiers.empty()) {
    const bool half_k = instruction.modifiers[0] == "1688";
    const int accumulator = instruction.has_modifier("F32") ? 4 : 2;
    if (index == 1) return half_k ? 2 : 4;
    if (index == 2) return half_k ? 1 : 2;
    return accumulator;
  }
  if (opcode == "HGMMA" && !instruction.modifiers.empty()) {
    const double accumulators = multiply_adds(instruction) / 16;  // one per output of the thread, k = 16
    if (is_result) return std::max(1, static_cast<int>(accumulators));
    return 4;
  }
  if ((opcode == "IMAD" || opcode == "UIMAD") && instruction.has_modifier("WIDE")) {
    const bool addend = index + 1 == instruction.operands.size();
    return is_result || addend ? 2 : 1;
  }
  if (opcode == "CS2R") return instruction.has_modifier("32") ? 1 : 2;
  if (opcode == "DADD" || opcode == "DMUL" || opcode == "DFMA") return 2;
  return 1;
}

/// New numbers for one register file.
class Renumbering {
 public:
  explicit Renumbering(int modulus) : modulus_(modulus) {}

  void mention(int first, int words) {
    order_.push_back(first);
    for (int i = 0; i < words; ++i) {
      root_.try_emplace(first + i, first + i);
      root_[find(first + i)] = std::min(find(first), find(first + i));
      root_[find(first)] = std::min(find(first), find(first + i));
    }
  }

  int operator()(int number) {
    if (new_number_.empty()) assign();
    return new_number_.at(number);
  }

 private:
  int find(int number) {
    while (root_.at(number) != number) number = root_.at(number);
    return number;
  }

  void assign() {
    std::map<int, std::vector<int>> groups;
    for (const auto& [number, ignored] : root_) groups[find(number)].push_back(number);
    std::set<int> taken;
    for (const int mentioned : order_) {
      const auto group = groups.find(find(mentioned));
      if (group == groups.end()) continue;  // already numbered
      const int first = group->second.front();
      int base = first % modulus_;
      const auto collides = [&](int number) { return taken.count(base + number - first) != 0; };
      while (std::any_of(group->second.begin(), group->second.end(), collides)) base += modulus_;
      for (const int number : group->second) {
        new_number_[number] = base + number - first;
        taken.insert(base + number - first);
      }
      groups.erase(group);
    }
  }

  int modulus_;
  std::vector<int> order_;
  std::map<int, int> root_;
  std::map<int, int> new_number_;
};

constexpr const char* kPrefix[] = {"R", "UR", "P", "UP"};

/// Replaces every register name of `text` by `rename(token)`.
std::string rename_registers(const std::string& text,
                             const std::function<std::string(const Token&)>& rename) {
  std::string result;
  std::size_t done = 0;
  for (const Token& token : find_registers(text)) {
    result += text.substr(done, token.position - done) + rename(token);
    done = token.position + token.length;
  }
  return result + text.substr(done);
}

std::string name_parameters(const std::string& operand, int base) {
  constexpr std::string_view kBank = "c[0x0][0x";
  const auto start = operand.find(kBank);
  if (start == std::string::npos || base < 0) return operand;
  const char* const digits = operand.data() + start + kBank.size();
  int offset = 0;
  const auto [end, status] = std::from_chars(digits, operand.data() + operand.size(), offset, 16);
  if (status != std::errc{} || *end != ']' || offset < base) return operand;
  return operand.substr(0, start) + fmt::format("param[{:#x}]", offset - base) +
         operand.substr(static_cast<std::size_t>(end - operand.data()) + 1);
}

/// Where kernel parameters begin in constant bank 0, or -1 when unknown. Observed, not documented.
int parameter_base(const std::string& target) {
  if (target.starts_with("sm_90")) return 0x210;
  if (target.starts_with("sm_8")) return 0x160;
  return -1;
}

}  // namespace

std::vector<std::uint32_t> branch_targets(const std::vector<Instruction>& code) {
  std::set<std::uint32_t> inside;
  for (const Instruction& instruction : code) inside.insert(instruction.address);
  std::set<std::uint32_t> targets;
  for (const Instruction& instruction : code)
    if (instruction.target && inside.count(*instruction.target)) targets.insert(*instruction.target);
  return {targets.begin(), targets.end()};
}

void normalise(std::vector<Instruction>& code, const std::string& target) {
  Renumbering renumbering[] = {Renumbering(4), Renumbering(4), Renumbering(1), Renumbering(1)};
  const auto mention = [&](const Token& token, int words) {
    renumbering[static_cast<int>(token.file)].mention(token.number, words);
  };
  for (const Instruction& instruction : code) {
    for (const Token& token : find_registers(instruction.predicate)) mention(token, 1);
    for (std::size_t i = 0; i < instruction.operands.size(); ++i)
      for (const Token& token : find_registers(instruction.operands[i]))
        mention(token, operand_words(instruction, i, instruction.operands[i], token));
  }

  const auto rename = [&](const Token& token) {
    const int file = static_cast<int>(token.file);
    return kPrefix[file] + std::to_string(renumbering[file](token.number));
  };
  const std::vector<std::uint32_t> targets = branch_targets(code);
  const int base = parameter_base(target);
  for (Instruction& instruction : code) {
    instruction.predicate = rename_registers(instruction.predicate, rename);
    for (std::string& operand : instruction.operands) {
      const bool is_target = operand.starts_with("`(") || operand.starts_with("0x");
      if (instruction.target && is_target) {
        const auto label = std::find(targets.begin(), targets.end(), *instruction.target);
        operand = label == targets.end() ? "out" : fmt::format("L{}", label - targets.begin());
        continue;
      }
      operand = name_parameters(rename_registers(operand, rename), base);
    }
  }
}

std::string shape_of(const Instruction& instruction) {
  const auto mask = [](const std::string& text) {
    const std::string named = rename_registers(
        text, [](const Token& token) -> std::string { return kPrefix[static_cast<int>(token.file)]; });
    // Immediates and offsets: any number becomes #, .reuse goes.
    std::string result;
    for (std::size_t i = 0; i < named.size();) {
      const bool starts_number = std::isdigit(static_cast<unsigned char>(named[i])) &&
                                 (i == 0 || (!is_name_letter(named[i - 1]) && named[i - 1] != '.'));
      if (named.compare(i, 6, ".reuse") == 0) {
        i += 6;
      } else if (starts_number) {
        while (i < named.size() && (is_name_letter(named[i]) || named[i] == '.')) ++i;
        result += '#';
      } else {
        result += named[i++];
      }
    }
    return result;
  };
  std::string result = instruction.predicate.empty() ? "" : mask(instruction.predicate) + " ";
  result += instruction.full_opcode();
  for (std::size_t i = 0; i < instruction.operands.size(); ++i)
    result += (i == 0 ? " " : ", ") + (instruction.target && i + 1 == instruction.operands.size()
                                           ? std::string("label")
                                           : mask(instruction.operands[i]));
  return result;
}

}  // namespace sass
