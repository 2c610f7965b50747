#include "emulator/report/kernel_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "emulator/report/narrow_offsets.h"
#include "emulator/report/report.h"
#include "emulator/report/symbols.h"
#include "harness/backend/backend.h"

namespace emulator {
namespace {

struct Source {
  const char* scope;
  const char* path;
  const char* text;
};
std::vector<Source>& sources() {
  static std::vector<Source> all;
  return all;
}

struct Finding {
  Source source;
  CopiedTensorMap map;
};

struct NarrowFinding {
  const char* scope;  // nullptr: a header, of any kernel
  const char* path;
  NarrowOffset offset;
};

/// Of all sources in the program, and of the headers that they are made of. A program without such a source
/// runs somebody else's kernels: it is spared the look.
const std::vector<NarrowFinding>& narrow_findings() {
  static const std::vector<NarrowFinding> all = [] {
    std::vector<NarrowFinding> found;
    if (sources().empty()) return found;
    const auto look = [&](const char* scope, const char* path, const char* text) {
      for (NarrowOffset& offset : narrow_offsets(without_comments(text)))
        found.push_back({scope, path, std::move(offset)});
    };
    for (const Source& source : sources()) look(source.scope, source.path, source.text);
    for (const HeaderSource& header : header_sources()) look(nullptr, header.path, header.text);
    return found;
  }();
  return all;
}

/// Of all sources in the program: none in a program without a fault.
const std::vector<Finding>& findings() {
  static const std::vector<Finding> all = [] {
    std::vector<Finding> found;
    for (const Source& source : sources()) {
      for (CopiedTensorMap& map : copied_tensor_maps(source.text)) found.push_back({source, std::move(map)});
    }
    return found;
  }();
  return all;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The place behind the parenthesis that closes the one at `open`.
std::size_t behind_closing(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return text.size();
}

/// Where a word stands as a word, from `from` to `to`.
std::size_t find_word(const std::string& text, std::string_view word, std::size_t from, std::size_t to) {
  for (std::size_t i = text.find(word, from); i < to; i = text.find(word, i + 1)) {
    const bool begins = i == 0 || !is_word(text[i - 1]);
    const bool ends = i + word.size() >= text.size() || !is_word(text[i + word.size()]);
    if (begins && ends) return i;
  }
  return std::string::npos;
}

std::string word_before(const std::string& text, std::size_t end) {
  while (end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
  std::size_t begin = end;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

int line_of(const std::string& text, std::size_t place) {
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
}

void look_at_parameter(const std::string& text, std::size_t begin, std::size_t end, const std::string& kernel,
                       std::vector<CopiedTensorMap>& found) {
  std::size_t type = find_word(text, "TensorMap", begin, end);
  if (type == std::string::npos) type = find_word(text, "CUtensorMap", begin, end);
  if (type == std::string::npos || find_word(text, "__grid_constant__", begin, end) != std::string::npos)
    return;
  const std::string parameter = text.substr(begin, end - begin);
  if (parameter.find_first_of("*&<") != std::string::npos) return;  // memory that somebody else answers for
  found.push_back({kernel, word_before(text, end), line_of(text, type)});
}

/// A __global__ function: its name, where it stands, and its parentheses.
struct Declaration {
  std::string name;
  int line;
  std::size_t open, close;
};

std::vector<Declaration> kernels_in(const std::string& text) {
  std::vector<Declaration> found;
  for (std::size_t at = find_word(text, "__global__", 0, text.size()); at != std::string::npos;
       at = find_word(text, "__global__", at + 1, text.size())) {
    // The parameters are in the first parentheses that belong to a name, not to an attribute.
    std::size_t open = text.find('(', at);
    while (open != std::string::npos && word_before(text, open).rfind("__", 0) == 0)
      open = text.find('(', behind_closing(text, open));
    if (open == std::string::npos) break;
    const std::size_t behind = behind_closing(text, open);
    if (text[behind - 1] != ')') break;  // cut off
    found.push_back({word_before(text, open), line_of(text, open), open, behind - 1});
  }
  return found;
}

/// Whether the program's name of a function is that of this kernel.
bool is_kernel(std::string function, const char* scope, const std::string& kernel) {
  const std::string unnamed = "(anonymous namespace)::";
  for (std::size_t i; (i = function.find(unnamed)) != std::string::npos;) function.erase(i, unnamed.size());
  const std::string full = fmt::format("gemm::{}::{}", scope, kernel);
  const std::size_t at = function.find(full);
  return at != std::string::npos &&
         (at + full.size() >= function.size() || !is_word(function[at + full.size()]));
}

}  // namespace

std::string without_comments(std::string_view source) {
  std::string text(source);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t end = i;
    if (text.compare(i, 2, "//") == 0) {
      end = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      const std::size_t close = text.find("*/", i + 2);
      end = close == std::string::npos ? text.size() : close + 2;
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !is_word(text[i - 1])))) {  // not 1'000
      end = i + 1;
      while (end < text.size() && text[end] != text[i] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    }
    if (end == i) continue;
    for (; i < end; ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
    --i;
  }
  return text;
}

std::vector<CopiedTensorMap> copied_tensor_maps(std::string_view source) {
  std::vector<CopiedTensorMap> found;
  const std::string text = without_comments(source);
  for (const Declaration& kernel : kernels_in(text)) {
    std::size_t begin = kernel.open + 1;
    int depth = 0;
    for (std::size_t i = begin; i <= kernel.close; ++i) {
      if (text[i] == '(' || text[i] == '{') ++depth;
      if ((text[i] == ')' && i < kernel.close) || text[i] == '}') --depth;
      if (i == kernel.close || (text[i] == ',' && depth == 0)) {
        look_at_parameter(text, begin, i, kernel.name, found);
        begin = i + 1;
      }
    }
  }
  return found;
}

std::string_view source_text(std::string_view path) {
  const auto found = std::find_if(sources().begin(), sources().end(),
                                  [&](const Source& source) { return path == source.path; });
  return found == sources().end() ? std::string_view() : found->text;
}

std::string source_line(std::string_view path, int line) {
  std::string_view text;
  for (const Source& source : sources()) {
    if (path == source.path) text = source.text;
  }
  for (const HeaderSource& header : header_sources()) {
    if (path == header.path) text = header.text;
  }
  std::size_t begin = 0;
  for (int before = 1; before < line && begin < text.size(); ++before)
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

std::string initialised_member(std::string_view line) {
  const std::string text = without_comments(line);
  const std::size_t call = text.find("mbarrier_init(");
  if (call == std::string::npos) return {};
  const std::size_t end = text.find(',', call);
  if (end == std::string::npos) return {};
  return word_before(text, end);  // behind a bracket there is none
}

KernelSource::KernelSource(const char* scope, const char* path, const char* text) {
  sources().push_back({scope, path, text});
}

std::string place_of_kernel(const void* kernel) {
  const std::string name = name_function(kernel);
  for (const Source& source : sources()) {
    for (const Declaration& declaration : kernels_in(without_comments(source.text))) {
      if (is_kernel(name, source.scope, declaration.name))
        return fmt::format("{}:{}", source.path, declaration.line);
    }
  }
  return {};
}

namespace {

/// Whether the kernel is of the source that was told with this scope.
bool is_of_scope(const std::string& function, const char* scope) {
  return scope == nullptr || function.find(fmt::format("gemm::{}::", scope)) != std::string::npos;
}

/// "row" of "row * n", "row + 8" of "(row + 8) * n".
std::string first_factor(const std::string& product) {
  if (product[0] == '(') {
    const std::size_t behind = behind_closing(product, 0);
    return product.substr(1, behind - 2);
  }
  int depth = 0;  // of parentheses
  for (std::size_t i = 0; i + 1 < product.size(); ++i) {
    depth += product[i] == '(' ? 1 : product[i] == ')' ? -1 : 0;
    if (depth == 0 && product.compare(i, 2, " *") == 0) return product.substr(0, i);
  }
  return product;
}

void check_offsets(const void* kernel) {
  if (!course_rule_on(CourseRule::kNarrowOffset) || narrow_findings().empty()) return;
  const std::string name = name_function(kernel);
  for (const NarrowFinding& finding : narrow_findings()) {
    if (!is_of_scope(name, finding.scope)) continue;
    const std::string rule = "narrow-offset";
    throw harness::EmulatorReport(
        rule,
        rule + ": " +
            Report("an offset into global memory is computed in 32 bits: {}", finding.offset.product)
                .line("where", "{}:{}", finding.path, finding.offset.line)
                .line("offset", "{}, of {}", finding.offset.expression, finding.offset.pointer)
                .missing("offset(row, column, columns), or static_cast<std::int64_t>({}) as the first factor",
                         first_factor(finding.offset.product))
                .rule(
                    "the offset of an element must be computed in 64 bits: 65536 x 65536 elements, a legal "
                    "shape, do not fit in an int",
                    "C++ standard: overflow of a signed integer is undefined, and an unsigned product wraps")
                .line("found",
                      "in the source, because no check runs a shape that large; --allow {} switches this "
                      "inspection off (docs/emulator/stricter-rules.md)",
                      rule)
                .str());
  }
}

}  // namespace

void check_kernel_source(const void* kernel) {
  check_offsets(kernel);
  if (findings().empty()) return;
  const std::string name = name_function(kernel);
  for (const Finding& finding : findings()) {
    if (!is_kernel(name, finding.source.scope, finding.map.kernel)) continue;
    const std::string rule = "grid-constant";
    throw harness::EmulatorReport(
        rule,
        rule + ": " +
            Report("the kernel {} takes the tensor map {} by value and without __grid_constant__",
                   finding.map.kernel, finding.map.parameter)
                .line("where", "{}:{}", finding.source.path, finding.map.line)
                .rule("a tensor map must be in parameter, constant or global memory, so its parameter must "
                      "be const __grid_constant__. Without that, the parameter is copied to the thread's "
                      "local memory when its address is taken, and the copy engine cannot read it there",
                      "PTX ISA, \"cp.async.bulk.tensor\"; CUDA C++ Programming Guide, "
                      "\"__grid_constant__ Parameters\"")
                .str());
  }
}

}  // namespace emulator
