// ldmatrix, stmatrix, mma, wgmma.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "translation.h"

namespace emulate::inline_ptx {
namespace {

std::string matrices(const Instruction& in, Operands& operands) {
  if (!in.has("m8n8") || in.type() != "b16") return "";
  const bool loads = in.root() == "ldmatrix";
  const std::vector<std::string> registers = operands.vector(in.argument(loads ? 0 : 1));
  const std::size_t count = registers.size();
  const std::string row =
      fmt::format("::inline_ptx::matrix_row({}, {}, {}, ptx_where)", operands.address(in.argument(loads ? 1 : 0)),
                  in.opcode.find("shared") != std::string::npos, count);
  if (loads) {
    std::string code = fmt::format(
        "::inline_ptx::u32 ptx_v[{0}]; ::emulator::ldmatrix(\"{1}\", ptx_v, {0}, {2}, {3}, ptx_where); ",
        count, in.opcode, in.has("trans"), row);
    for (std::size_t i = 0; i < count; ++i)
      code += operands.assign(registers[i], fmt::format("ptx_v[{}]", i));
    return code;
  }
  std::string list;
  for (const std::string& name : registers) list += (list.empty() ? "" : ", ") + operands.value(name, "b32");
  return fmt::format(
      "const ::inline_ptx::u32 ptx_v[] = {{{}}}; ::emulator::stmatrix(\"{}\", ptx_v, {}, {}, {}, ptx_where);",
      list, in.opcode, count, in.has("trans"), row);
}

std::string element_of_mma(const std::string& type) {
  static const std::map<std::string, std::string> kElements = {
      {"bf16", "kBf16"}, {"f16", "kF16"},   {"tf32", "kTf32"}, {"s8", "kS8"},
      {"u8", "kU8"},     {"e4m3", "kE4m3"}, {"e5m2", "kE5m2"}};
  const auto found = kElements.find(type);
  return found == kElements.end() ? "" : "::emulator::MmaElement::" + found->second;
}

/// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {d}, {a}, {b}, {c}
std::string mma(const Instruction& in, Operands& operands) {
  if (in.parts.size() < 10 || in.parts[3].rfind("m16n8k", 0) != 0) return "";
  const std::size_t types = in.parts.size() - 4;
  for (std::size_t i = 4; i < types; ++i) {
    if (in.parts[i] != "row" && in.parts[i] != "col" && in.parts[i] != "kind::f8f6f4") return "";
  }
  const std::string a = element_of_mma(in.parts[types + 1]);
  const std::string b = element_of_mma(in.parts[types + 2]);
  const std::string& sum = in.parts[types];
  if (a.empty() || b.empty() || sum != in.type() || (sum != "f32" && sum != "s32" && sum != "f16")) return "";
  const std::string type = sum == "f16" ? "b32" : sum;
  const std::vector<std::string> d = operands.vector(in.argument(0));
  const auto list = [&](std::size_t i, const std::string& as) {
    std::string result;
    for (const std::string& name : operands.vector(in.argument(i)))
      result += (result.empty() ? "" : ", ") + operands.value(name, as);
    return result;
  };
  std::string code = fmt::format(
      "{} ptx_d[] = {{{}}}; const ::inline_ptx::u32 ptx_a[] = {{{}}}; const ::inline_ptx::u32 ptx_b[] = "
      "{{{}}}; ",
      cpp_type(type), list(3, type), list(1, "b32"), list(2, "b32"));
  code += fmt::format("::emulator::mma_m16n8({{\"{}\", {}, {}, {}, {}}}, ptx_d, ptx_a, ptx_b, ptx_where); ",
                      in.opcode, a, in.parts[3].substr(6), sum == "f16", a == b ? "{}" : b);
  for (std::size_t i = 0; i < d.size(); ++i) code += operands.assign(d[i], fmt::format("ptx_d[{}]", i));
  return code;
}

/// wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {d}, a, b, p, scale, scale{, transpose, transpose}
std::string wgmma(const Instruction& in, Operands& operands) {
  static const std::map<std::string, std::string> kTypes = {{"bf16", "kBf16"}, {"f16", "kFp16"},
                                                            {"tf32", "kTf32"}, {"e4m3", "kE4m3"},
                                                            {"e5m2", "kE5m2"}, {"s8", "kInt8"}};
  if (in.parts.size() != 8 || in.parts[4].rfind("m64n", 0) != 0) return "";
  const auto a_type = kTypes.find(in.parts[6]);
  const auto b_type = kTypes.find(in.parts[7]);
  const bool is_integer = in.parts[5] == "s32";
  if (a_type == kTypes.end() || b_type == kTypes.end() ||
      (in.parts[5] != "f32" && in.parts[5] != "f16" && !is_integer))
    return "";
  const int n = std::stoi(in.parts[4].substr(4));
  const bool from_registers = in.argument(1)[0] == '{';
  const std::vector<std::string> d = operands.vector(in.argument(0));
  std::string list;
  for (const std::string& name : d) list += (list.empty() ? "&" : ", &") + operands.bound(name);
  std::string code = fmt::format("::std::remove_reference_t<decltype({})>* const ptx_d[] = {{{}}}; ",
                                 operands.bound(d[0]), list);
  std::string fragment = "nullptr";
  if (from_registers) {
    std::string parts;
    for (const std::string& name : operands.vector(in.arguments[1]))
      parts += fmt::format("{}::inline_ptx::fragment({})", parts.empty() ? "" : ", ", operands.bound(name));
    code += fmt::format("const ::inline_ptx::u32* const ptx_f[] = {{{}}}; ", parts);
    fragment = fmt::format("::inline_ptx::in_one_array(\"{}\", ptx_f, ptx_where)", in.opcode);
  }
  std::string transposed = "{}";
  if (!is_integer && in.arguments.size() > 4) {
    code += fmt::format("::inline_ptx::check_scales(\"{}\", {}, {}, ptx_where); ", in.opcode,
                        operands.value(in.argument(4), "s32"), operands.value(in.argument(5), "s32"));
    if (in.arguments.size() > 6)
      transposed = from_registers
                       ? fmt::format("{{false, {} != 0}}", operands.value(in.arguments.back(), "s32"))
                       : fmt::format("{{{} != 0, {} != 0}}", operands.value(in.argument(6), "s32"),
                                     operands.value(in.argument(7), "s32"));
  }
  return code + fmt::format(
                    "::emulator::wgmma_mma(\"{0}\", {1}, ::inline_ptx::in_one_array(\"{0}\", ptx_d, "
                    "ptx_where), {2}, {3}, {4}, {5}, ptx_where, "
                    "{{::gemm::Type::{6}, ::gemm::Type::{7}, {9}}}, {8});",
                    in.opcode, n, from_registers ? "0" : operands.value(in.arguments[1], "b64"), fragment,
                    operands.value(in.argument(2), "b64"), operands.value(in.argument(3), "pred"),
                    a_type->second, b_type->second, transposed, in.parts[5] == "f16");
}

}  // namespace

std::string matrix_instruction(const Instruction& in, Operands& operands) {
  if (in.root() == "ldmatrix" || in.root() == "stmatrix") return matrices(in, operands);
  if (in.begins("mma.sync.aligned")) return mma(in, operands);
  if (in.begins("wgmma.fence")) return "::gemm::ptx::wgmma_fence(ptx_where);";
  if (in.begins("wgmma.commit_group")) return "::gemm::ptx::wgmma_commit_group(ptx_where);";
  if (in.begins("wgmma.wait_group"))
    return fmt::format("::inline_ptx::wgmma_wait_group({}, ptx_where);",
                       operands.value(in.argument(0), "u32"));
  if (in.begins("wgmma.mma_async.sync.aligned")) return wgmma(in, operands);
  return "";
}

}  // namespace emulate::inline_ptx
