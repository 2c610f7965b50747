// Loads, stores and atomics.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "translation.h"

namespace emulate::inline_ptx {
namespace {

/// What stands between the name of a load, store or atomic and its type.
struct MemoryForm {
  std::string space = "kGeneric";
  std::string order = "kWeak";
  std::string scope = "kDevice";
  std::string operation;  // of an atomic
  std::size_t width = 1;
  bool has_hint = false;
};

MemoryForm form_of(const Instruction& in) {
  MemoryForm form;
  for (std::size_t i = 1; i + 1 < in.parts.size(); ++i) {
    const std::string& part = in.parts[i];
    if (part == "global") {
      form.space = "kGlobal";
    } else if (part == "shared" || part == "shared::cta" || part == "shared::cluster") {
      form.space = "kShared";
    } else if (part == "volatile" || part == "relaxed" || part == "mmio") {
      form.order = "kRelaxed";
    } else if (part == "acquire") {
      form.order = "kAcquire";
    } else if (part == "release") {
      form.order = "kRelease";
    } else if (part == "acq_rel") {
      form.order = "kAcquireRelease";
    } else if (part == "cta") {
      form.scope = "kCta";
    } else if (part == "sys") {
      form.scope = "kSystem";
    } else if (part == "v2" || part == "v4" || part == "v8") {
      form.width = static_cast<std::size_t>(part[1] - '0');
    } else if (part == "L2::cache_hint") {
      form.has_hint = true;
    } else if (part == "param" || part == "param::entry" || part == "param::func" || part == "local" ||
               part == "const" || part == "async") {
      throw Untranslated{in.opcode};
    } else if (form.operation.empty() && (in.root() == "atom" || in.root() == "red") && part != "cluster" &&
               part != "gpu" && part != "sys" && part != "noftz" && part[0] != 'L') {
      form.operation = part;
    }
  }
  return form;
}

std::string atomic(const Instruction& in, Operands& operands) {
  const MemoryForm form = form_of(in);
  const bool is_red = in.root() == "red";
  std::string type = in.type();
  if (type == "noftz" || type == "b128") throw Untranslated{in.opcode};
  const std::size_t first = is_red ? 0 : 1;
  const std::size_t count = form.operation == "cas" ? 2 : 1;
  if (in.arguments.size() < first + 1 + count) throw Untranslated{in.opcode};
  const std::vector<std::string> sources = operands.vector(in.arguments[first + 1]);
  if (sources.size() != form.width) throw Untranslated{in.opcode};
  if (form.operation == "and" || form.operation == "or" || form.operation == "xor")
    type = "u" + type.substr(1);
  const std::string cpp = cpp_type(type);
  static const std::vector<std::string> kOperations = {"add", "min",  "max", "and", "or",
                                                       "xor", "exch", "cas", "inc", "dec"};
  if (std::find(kOperations.begin(), kOperations.end(), form.operation) == kOperations.end())
    throw Untranslated{in.opcode};
  std::string code = fmt::format("const auto ptx_a = {}; ", operands.address(in.arguments[first]));
  std::string results;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    code += fmt::format(
        "const {0} ptx_b{1} = {2}; const {0} ptx_c{1} = {3}; const {0} ptx_d{1} = "
        "::inline_ptx::atomic<{0}>(\"{4}\", "
        "{{::inline_ptx::Space::{5}, ::inline_ptx::Order::{6}, ::emulator::Scope::{7}}}, ptx_a + {8} * "
        "sizeof({0}), ptx_where, "
        "[=]({0} ptx_old) {{ return ::inline_ptx::atomic_{9}(ptx_old, ptx_b{1}, ptx_c{1}); }}); "
        "(void)ptx_d{1}; ",
        cpp, i, operands.value(sources[i], type),
        count == 2 ? operands.value(in.arguments[first + 2], type) : cpp + "{}", in.opcode, form.space,
        form.order, form.scope, i, form.operation);
    if (!is_red)
      results += operands.assign(operands.vector(in.arguments[0]).at(i), fmt::format("ptx_d{}", i));
  }
  return code + results;
}

std::string load_or_store(const Instruction& in, Operands& operands) {
  const MemoryForm form = form_of(in);
  const std::string cpp = cpp_type(in.type());
  const bool loads = in.root() != "st";
  const std::size_t bits = std::stoul(in.type().substr(in.type().find_first_of("0123456789"))) *
                           (in.type().back() == '2' && in.type().find('x') != std::string::npos ? 2 : 1);
  // PTX ISA, "ld" and "st": 256 bits, in .global alone, from sm_100 on.
  if (bits * form.width > (form.space == "kGlobal" ? 256 : 128)) throw Untranslated{in.opcode};
  if (in.arguments.size() < 2) throw Untranslated{in.opcode};
  const std::vector<std::string> registers = operands.vector(in.arguments[loads ? 0 : 1]);
  if (registers.size() != form.width) throw Untranslated{in.opcode};
  const std::string place = fmt::format(
      "{{::inline_ptx::Space::{}, ::inline_ptx::Order::{}, ::emulator::Scope::{}}}, {}, ptx_where",
      form.space, form.order, form.scope, operands.address(in.arguments[loads ? 1 : 0]));
  if (loads) {
    std::string code = fmt::format("const auto ptx_v = ::inline_ptx::load<{}, {}>(\"{}\", {}); ", cpp,
                                   form.width, in.opcode, place);
    for (std::size_t i = 0; i < registers.size(); ++i)
      code += operands.assign(registers[i], fmt::format("ptx_v.at[{}]", i));
    return code;
  }
  std::string list;
  for (const std::string& source : registers)
    list += (list.empty() ? "" : ", ") + operands.value(source, in.type());
  return fmt::format("::inline_ptx::store<{}, {}>(\"{}\", {{{{{}}}}}, {});", cpp, form.width, in.opcode, list,
                     place);
}

}  // namespace

std::string memory_instruction(const Instruction& in, Operands& operands) {
  const std::string& root = in.root();
  if ((root == "ld" || root == "ldu" || root == "st") && !in.has("async")) return load_or_store(in, operands);
  if ((root == "atom" || root == "red") && !in.has("async")) return atomic(in, operands);
  if (in.begins("prefetch.tensormap"))
    return fmt::format("::inline_ptx::prefetch_tensormap(\"{}\", {}, ptx_where);", in.opcode,
                       operands.address(in.argument(0)));
  if (root == "prefetch" || root == "prefetchu")
    return fmt::format("::inline_ptx::prefetch(\"{}\", {}, {}, ptx_where);", in.opcode, root == "prefetchu",
                       operands.address(in.argument(0)));
  if (root == "discard" || root == "applypriority")  // hints about lines of the L2
    return fmt::format("(void)({});", operands.address(in.argument(0)));
  if (root == "createpolicy") return operands.assign(in.argument(0), "::inline_ptx::policy()");
  return "";
}

}  // namespace emulate::inline_ptx
