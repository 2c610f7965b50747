#include "rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inline_ptx/preprocessed.h"
#include "source_text.h"

namespace emulate {
namespace {

/// Where the name before a launch's <<< begins, with its template arguments; `end` where it is no plain name.
std::size_t kernel_before(const std::string& code, std::size_t end) {
  std::size_t last = end;
  while (last > 0 && std::isspace(static_cast<unsigned char>(code[last - 1]))) --last;
  std::size_t begin = last;
  if (begin > 0 && code[begin - 1] == '>') {
    int depth = 0;
    int parentheses = 0;  // in them < and > compare
    do {
      --begin;
      if (std::string_view(";{}").find(code[begin]) != std::string_view::npos) return end;
      if (code[begin] == ')') ++parentheses;
      if (code[begin] == '(') --parentheses;
      if (parentheses == 0 && code[begin] == '>') ++depth;
      if (parentheses == 0 && code[begin] == '<') --depth;
    } while (depth > 0 && begin > 0);
  }
  const std::size_t arguments = begin;
  while (begin > 0 && (is_word(code[begin - 1]) || code[begin - 1] == ':')) --begin;
  return begin == arguments ? end : begin;
}

/// kernel<<<grid, block>>>(arguments): a call of an object that knows the kernel as a function of its name,
/// whose default arguments and deduced template arguments are there, and as what is its address.
void rewrite_launches(const Preprocessed& source, std::vector<Edit>& edits) {
  const std::string& code = source.code();
  for (std::size_t at = code.find("<<<"); at != std::string::npos; at = code.find("<<<", at + 3)) {
    std::size_t end = at + 3;
    while (end < code.size() && code.compare(end, 3, ">>>") != 0) {
      end = code[end] == '(' || code[end] == '{' || code[end] == '[' ? after_closing(code, end) : end + 1;
      if (end == std::string::npos || code[std::min(end, code.size() - 1)] == ';') break;
    }
    if (end >= code.size() || code.compare(end, 3, ">>>") != 0)
      throw Refused(source.place(at) + ": a launch begins with <<< but has no >>>.");
    const std::size_t begin = kernel_before(code, at);
    if (begin == at) {
      edits.push_back({at, at + 3, " ->* ::emulator_cuda::configured("});
      edits.push_back({end, end + 3, ")"});
      continue;
    }
    std::string kernel = code.substr(begin, at - begin);
    const auto lines = static_cast<std::size_t>(std::count(kernel.begin(), kernel.end(), '\n'));
    std::replace(kernel.begin(), kernel.end(), '\n', ' ');
    edits.push_back({begin, at + 3, "::emulator_cuda::configured(" + std::string(lines, '\n')});
    std::string call = ").with([&](auto... emulator_values) -> decltype(void(";
    call.append(kernel)
        .append("(emulator_values...))) { ")
        .append(kernel)
        .append("(emulator_values...); }, ");
    call.append("[&](auto emulator_probe) -> decltype(emulator_probe(").append(kernel).append(")) { ");
    call.append("return emulator_probe(").append(kernel).append("); })");
    edits.push_back({end, end + 3, call});
  }
}

/// `(void*)kernel` and `reinterpret_cast<const void*>(kernel)`: from the address alone nobody knows the
/// kernel's parameters, so that the cast writes them down.
void rewrite_casts_of_kernels(const std::string& code, std::vector<Edit>& edits) {
  const auto cast = [](const std::string& type) { return "::emulator_cuda::VoidCast<" + type + ">() ->* "; };
  for (const std::string type :
       {"void*", "void *", "const void*", "const void *", "void const*", "void const *"}) {
    const std::string c_style = "(" + type + ")";
    for (std::size_t at = code.find(c_style); at != std::string::npos; at = code.find(c_style, at + 1)) {
      const std::size_t next = next_solid(code, at + c_style.size());
      const bool is_operand =
          next < code.size() &&
          (code[next] == '&' ||
           (is_word(code[next]) && std::isdigit(static_cast<unsigned char>(code[next])) == 0));
      std::size_t before = at;
      while (before > 0 && std::isspace(static_cast<unsigned char>(code[before - 1]))) --before;
      const bool begins =
          before > 0 && std::string_view("(,=;{").find(code[before - 1]) != std::string_view::npos;
      if (is_operand && begins) edits.push_back({at, at + c_style.size(), cast(type)});
    }
    const std::string reinterpreted = "reinterpret_cast<" + type + ">";
    for (std::size_t at = code.find(reinterpreted); at != std::string::npos;
         at = code.find(reinterpreted, at + 1))
      edits.push_back({at, at + reinterpreted.size(), cast(type)});
  }
}

/// Whether the place is inside a function: some open brace there belongs to no namespace.
bool is_in_function(const std::string& code, std::size_t at) {
  std::vector<bool> open;
  for (std::size_t i = 0; i < at; ++i) {
    if (code[i] == '}' && !open.empty()) open.pop_back();
    if (code[i] != '{') continue;
    const std::size_t begin = code.find_last_of(";{}", i == 0 ? 0 : i - 1);
    const std::string before = code.substr(begin == std::string::npos ? 0 : begin + 1,
                                           i - (begin == std::string::npos ? 0 : begin + 1));
    const bool is_scope =
        find_word(before, "namespace") != std::string::npos ||
        (find_word(before, "extern") != std::string::npos && before.find('"') != std::string::npos);
    open.push_back(!is_scope);
  }
  return std::find(open.begin(), open.end(), true) != open.end();
}

/// `extern __shared__ __align__(16) T name[];` in a function: a reference to where the CTA's dynamic memory
/// is. Elsewhere the linker defines the array (cmake/link_extern_shared).
void rewrite_dynamic_shared(const std::string& code, std::vector<Edit>& edits) {
  const std::string shared_word = "thread_local";  // what __shared__ is by now
  for (std::size_t at = find_word(code, "extern"); at != std::string::npos;
       at = find_word(code, "extern", at + 1)) {
    const std::size_t end = code.find(';', at);
    const std::size_t shared = find_word(code, shared_word, at);
    if (end == std::string::npos || shared >= end || !is_in_function(code, at)) continue;
    std::string declaration = code.substr(at + 6, end - at - 6);
    for (const std::string attribute : {"__align__", "alignas", "__attribute__"}) {
      std::size_t begin = 0;
      while ((begin = find_word(declaration, attribute)) != std::string::npos) {
        const std::size_t after = after_closing(declaration, declaration.find('(', begin));
        declaration.erase(begin, after == std::string::npos ? attribute.size() : after - begin);
      }
    }
    declaration.erase(find_word(declaration, shared_word), shared_word.size());
    const std::size_t bracket = declaration.find('[');  // of the first of several dimensions
    if (bracket == std::string::npos) continue;
    std::size_t last = bracket;
    while (last > 0 && std::isspace(static_cast<unsigned char>(declaration[last - 1]))) --last;
    std::size_t first = last;
    while (first > 0 && is_word(declaration[first - 1])) --first;
    std::string type = declaration.substr(0, first);
    const std::string name = declaration.substr(first, last - first);
    std::string dimensions = declaration.substr(bracket);
    const auto lines =
        static_cast<std::size_t>(std::count(code.begin() + static_cast<std::ptrdiff_t>(at),
                                            code.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    std::replace(type.begin(), type.end(), '\n', ' ');
    std::replace(dimensions.begin(), dimensions.end(), '\n', ' ');
    std::string whole = type;
    whole.append("(&").append(name).append(")").append(dimensions).append(" = *static_cast<").append(type);
    whole.append("(*)")
        .append(dimensions)
        .append(">(::emulator::dynamic_shared(0, ::emulator::Where::here()))");
    whole.append(lines, '\n');
    edits.push_back({at, end, whole});
  }
}

/// `#pragma unroll 4` in the middle of a line, where a macro of nvcc's has put it: other compilers take a
/// pragma from a line of its own alone.
void remove_pragmas_of_macros(const std::string& code, std::vector<Edit>& edits) {
  const std::string pragma = "#pragma";
  for (std::size_t at = code.find(pragma); at != std::string::npos; at = code.find(pragma, at + 1)) {
    std::size_t end = code.find("unroll", at);
    if (end == std::string::npos) break;
    end = next_solid(code, end + std::string("unroll").size());
    if (end < code.size() && code[end] == '(') end = after_closing(code, end);
    while (end < code.size() && std::isdigit(static_cast<unsigned char>(code[end]))) ++end;
    edits.push_back({at, end, ""});
  }
}

/// A kernel, a function or a variable called gemm, which is the name of our namespace: it gets a `_`. Theirs
/// stay: `gemm::` and `namespace gemm`.
void rename_gemm(const std::string& code, std::vector<Edit>& edits) {
  const std::string gemm = "gemm";
  for (std::size_t at = find_word(code, gemm); at != std::string::npos; at = find_word(code, gemm, at + 1)) {
    if (code.compare(next_solid(code, at + gemm.size()), 2, "::") == 0) continue;
    const std::size_t before = code.find_last_of(";{}", at);
    const std::string statement = code.substr(before + 1, at - before - 1);
    if (find_word(statement, "namespace") == std::string::npos)
      edits.push_back({at + gemm.size(), at + gemm.size(), "_"});
  }
}

/// After the `>` that closes the `<` at `open`, or `open` itself where that is no bracket.
std::size_t after_angles(const std::string& code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size();) {
    if (std::string_view(";{}").find(code[i]) != std::string_view::npos) return open;
    if (code[i] == '(') {
      i = after_closing(code, i);
      continue;
    }
    if (code[i] == ')') return open;
    if (code[i] == '<') ++depth;
    if (code[i] == '>' && code[i - 1] != '-' && --depth == 0) return i + 1;
    ++i;
  }
  return open;
}

/// The names of function templates.
std::set<std::string> names_of_templates(const std::string& code) {
  std::set<std::string> names;
  for (std::size_t at = find_word(code, "template"); at != std::string::npos;
       at = find_word(code, "template", at + 1)) {
    std::size_t open = next_solid(code, at + std::string("template").size());
    if (open >= code.size() || code[open] != '<') continue;
    open = after_angles(code, open);
    std::string name = "__";
    while (name.rfind("__", 0) == 0) {  // what is before the bracket of an attribute
      open = code.find_first_of("(;{", open);
      if (open == std::string::npos || code[open] != '(') break;
      std::size_t end = open;
      while (end > 0 && std::isspace(static_cast<unsigned char>(code[end - 1]))) --end;
      std::size_t begin = end;
      while (begin > 0 && is_word(code[begin - 1])) --begin;
      name = code.substr(begin, end - begin);
      open = after_closing(code, open);
    }
    if (name != "__") names.insert(name);
  }
  return names;
}

/// Whether `T::` is before, where T is named by some `typename T` of the text.
bool follows_type_parameter(const std::string& code, std::size_t at) {
  if (code.compare(at - 2, 2, "::") != 0) return false;
  std::size_t begin = at - 2;
  while (begin > 0 && is_word(code[begin - 1])) --begin;
  const std::string name = code.substr(begin, at - 2 - begin);
  return !name.empty() && (code.find("typename " + name + ",") != std::string::npos ||
                           code.find("typename " + name + ">") != std::string::npos);
}

/// `object.function<3>(x)`, `T::function<3>(x)` where the object's type depends on a template parameter: C++ wants a `template`
/// there, and nvcc does without.
void add_template_words(const std::string& code, std::vector<Edit>& edits) {
  std::optional<std::set<std::string>> names;
  for (std::size_t at = code.find('<'); at != std::string::npos; at = code.find('<', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && is_word(code[begin - 1])) --begin;
    if (begin == at || begin < 2) continue;
    const bool is_member = code[begin - 1] == '.' || code.compare(begin - 2, 2, "->") == 0;
    if (!(is_member || follows_type_parameter(code, begin)) || std::isdigit(static_cast<unsigned char>(code[begin])) != 0) continue;
    const std::size_t end = after_angles(code, at);
    if (end >= code.size() || code[end] != '(') continue;
    if (!names) names = names_of_templates(code);
    if (names->count(code.substr(begin, at - begin)) != 0) edits.push_back({begin, begin, "template "});
  }
}

/// Whether the declaration around `at` is a template.
bool is_template(const std::string& code, std::size_t at) {
  const std::size_t before = code.find_last_of(";}", at);
  const std::size_t begin = next_solid(code, before == std::string::npos ? 0 : before + 1);
  const std::size_t word = find_word(code, "template", begin);
  return word != std::string::npos && word < at;
}

/// `__cluster_dims__(2, 1, 1)`: a launch is told by a variable after the kernel, or, where the sizes may
/// depend on template parameters, by the first statement of the kernel, which a launch tries out.
void rewrite_clusters(const Preprocessed& source, std::vector<Edit>& edits) {
  const std::string& code = source.code();
  int number = 0;
  const std::string cluster_dims =
      "emulator_cluster_dims";  // in an attribute: what __cluster_dims__ is by now
  for (std::size_t at = find_word(code, cluster_dims); at != std::string::npos;
       at = find_word(code, cluster_dims, at + 1)) {
    const std::size_t open = next_solid(code, at + cluster_dims.size());
    if (open >= code.size() || code[open] != '(') continue;
    const std::size_t end = after_closing(code, open);
    const std::size_t attribute = code.rfind("__attribute__", at);
    if (end == std::string::npos || attribute == std::string::npos) continue;
    const std::size_t attribute_end = after_closing(code, code.find('(', attribute));
    edits.push_back({attribute, attribute_end, ""});
    // The kernel's name is before the first bracket that does not belong to an attribute.
    std::size_t bracket = code.find('(', attribute_end);
    std::string name;
    while (bracket != std::string::npos) {
      std::size_t last = bracket;
      while (last > 0 && std::isspace(static_cast<unsigned char>(code[last - 1]))) --last;
      std::size_t first = last;
      while (first > 0 && is_word(code[first - 1])) --first;
      name = code.substr(first, last - first);
      if (name.rfind("__", 0) != 0) break;
      bracket = code.find('(', after_closing(code, bracket));
    }
    if (bracket == std::string::npos) continue;
    const std::size_t body = next_solid(code, after_closing(code, bracket));
    if (body >= code.size() || code[body] != '{') continue;  // a declaration
    const std::size_t body_end = after_closing(code, body);
    if (body_end == std::string::npos) throw Refused(source.place(body) + ": a { without its }.");
    const std::string sizes = code.substr(open + 1, end - open - 2);
    const bool is_known_later = is_template(code, attribute);
    if (is_known_later)
      edits.push_back({body + 1, body + 1, fmt::format(" ::emulator_cuda::declare_cluster({});", sizes)});
    edits.push_back({body_end, body_end,
                     fmt::format(" [[maybe_unused]] static const ::emulator_cuda::ClusterDims "
                                 "emulator_cluster_{}(\"{}\"{}{});",
                                 number++, name, is_known_later ? "" : ", ", is_known_later ? "" : sizes)});
  }
}

std::string edited(const std::string& text, std::vector<Edit> edits) {
  std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result;
  std::size_t done = 0;
  for (const Edit& edit : edits) {
    if (edit.begin < done) continue;  // inside one that is gone
    result += text.substr(done, edit.begin - done) + edit.text;
    done = edit.end;
  }
  return result + text.substr(done);
}

}  // namespace

std::string rewrite(const std::string& file, const std::string& path) {
  const std::string mark = "\xef\xbb\xbf";  // of UTF-8, which editors write in front; nvcc takes it
  const std::string text = file.rfind(mark, 0) == 0 ? file.substr(mark.size()) : file;
  const std::string code = blanked(text, false);
  const bool includes = text.find("#include") != std::string::npos;  // the kernel may be in a header
  if (find_word(code, "__global__") == std::string::npos && !includes)
    throw Refused(path + " has no kernel: no function in it is __global__.");
  std::vector<Edit> edits;
  std::string trailer;
  const std::size_t main = find_word(code, "main");
  if (find_word(code, "check_kernel") != std::string::npos) {
    trailer = "void emulate::detail::run_once(emulate::Run& run) { ::check_kernel(run); }\n";
  } else if (main != std::string::npos && code[next_solid(code, main + 4)] == '(') {
    edits.push_back({main, main + 4, "emulate_main"});
    // A main without a return returns 0; another function would return anything.
    const std::size_t body = next_solid(code, after_closing(code, code.find('(', main)));
    const std::size_t end =
        body < code.size() && code[body] == '{' ? after_closing(code, body) : std::string::npos;
    if (end != std::string::npos) edits.push_back({end - 1, end - 1, " return 0; "});
    trailer =
        "void emulate::detail::run_once(emulate::Run& run) { emulate::detail::call_main(&::emulate_main, "
        "run); }\n";
  } else {
    throw Refused(path +
                  " has kernels but nothing that runs them: write 'void check_kernel(emulate::Run& run)' "
                  "that allocates, launches and checks (docs/emulator/bring-your-own-kernel.md), or a main.");
  }
  return "#include \"own_kernel/emulate.h\"\n#line 1 \"" + path + "\"\n" + edited(text, edits) + "\n" +
         trailer;
}

std::string rewrite_preprocessed(const std::string& text, const std::vector<std::string>& own_folders) {
  Preprocessed source(text, own_folders);
  std::vector<Edit> edits;
  rename_gemm(source.code(), edits);
  add_template_words(source.code(), edits);
  remove_pragmas_of_macros(source.code(), edits);
  if (!edits.empty()) source = Preprocessed(edited(text, std::exchange(edits, {})), own_folders);
  rewrite_launches(source, edits);
  rewrite_casts_of_kernels(source.code(), edits);
  rewrite_clusters(source, edits);
  rewrite_dynamic_shared(source.code(), edits);
  for (const PtxStatement& statement : ptx_statements(source)) edits.push_back(statement.edit);
  return edited(source.text(), edits);
}

std::string list_ptx(const std::string& text, const std::vector<std::string>& own_folders) {
  std::string result;
  for (const PtxStatement& statement : ptx_statements(Preprocessed(text, own_folders))) {
    std::string opcodes;
    for (const std::string& opcode : statement.opcodes) opcodes += (opcodes.empty() ? "" : ", ") + opcode;
    if (opcodes.empty()) continue;
    result += statement.place + ": " + opcodes +
              (statement.untranslated.empty() ? "" : "   not known: " + statement.untranslated) + "\n";
  }
  return result;
}

}  // namespace emulate
