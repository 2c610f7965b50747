// Blackwell: tensor memory and what multiplies into it, and clusters that are cancelled.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "translation.h"

namespace emulate::inline_ptx {
namespace {

std::string engine(const Instruction& in) {
  return fmt::format("::emulator::tcgen05({}, ptx_where)", quoted_opcode(in));
}
std::string shared(const std::string& address) {
  return fmt::format("::inline_ptx::shared_pointer({}, ptx_where)", address);
}

/// tcgen05.ld.sync.aligned.32x32b.x8.b32 {r}, [address]; tcgen05.st.sync.aligned.32x32b.x8.b32 [address], {r}
std::string transfer(const Instruction& in, Operands& operands) {
  // PTX ISA, "tcgen05.ld": with .32x32b each lane moves as many registers as .num says.
  if (in.parts.size() != 7 || in.parts[4] != "32x32b" || in.parts[5][0] != 'x') return "";
  const bool loads = in.parts[1] == "ld";
  const std::vector<std::string> registers = operands.vector(in.argument(loads ? 0 : 1));
  const std::string address = operands.address(in.argument(loads ? 1 : 0));
  if (std::to_string(registers.size()) != in.parts[5].substr(1)) return "";
  std::string list;
  if (loads && operands.is_register(registers[0])) {
    // They are variables of their own: an array is filled, and they get its elements when the load is
    // awaited.
    const std::string array = operands.array("float", registers.size());
    for (std::size_t i = 0; i < registers.size(); ++i)
      list += operands.assign(registers[i], fmt::format("{}[{}]", array, i));
    operands.keep_for_wait(list);
    return fmt::format("{}.load({}, {}, {}, static_cast<::inline_ptx::u32>({}), ptx_where);", engine(in),
                       quoted_opcode(in), array, registers.size(), address);
  }
  if (loads) {
    for (const std::string& name : registers)
      list += fmt::format("{}::inline_ptx::loaded({})", list.empty() ? "" : ", ", operands.bound(name));
    return fmt::format(
        "float* const ptx_r[] = {{{0}}}; {1}.load({2}, ::inline_ptx::in_one_array({2}, ptx_r, ptx_where), "
        "{3}, static_cast<::inline_ptx::u32>({4}), ptx_where);",
        list, engine(in), quoted_opcode(in), registers.size(), address);
  }
  for (const std::string& name : registers) list += (list.empty() ? "" : ", ") + operands.value(name, "b32");
  return fmt::format(
      "const ::inline_ptx::u32 ptx_r[] = {{{}}}; {}.store({}, ptx_r, {}, "
      "static_cast<::inline_ptx::u32>({}), ptx_where);",
      list, engine(in), quoted_opcode(in), registers.size(), address);
}

/// tcgen05.mma.cta_group::1.kind::f16 [d], a descriptor | [a], b, instruction, {lanes to keep,} accumulate
std::string multiply(const Instruction& in, Operands& operands, const std::string& group) {
  if (in.parts.size() < 4 || in.parts[3] != "kind::f16") return "";
  for (std::size_t i = 4; i < in.parts.size(); ++i) {
    if (in.parts[i].rfind("collector::", 0) != 0) return "";  // which only says what may be kept in a buffer
  }
  const bool has_lanes = in.arguments.size() == 6;
  if (in.arguments.size() != 5 && !has_lanes) return "";
  std::string code;
  if (has_lanes) {
    std::string lanes;
    for (const std::string& name : operands.vector(in.argument(4)))
      lanes += (lanes.empty() ? "" : " | ") + operands.value(name, "b32");
    code = fmt::format("::inline_ptx::check_all_lanes({}, {}, ptx_where); ", quoted_opcode(in), lanes);
  }
  const bool is_in_tensor_memory = in.argument(1)[0] == '[';
  const std::string a =
      is_in_tensor_memory ? operands.address(in.argument(1)) : operands.value(in.argument(1), "b64");
  return code + fmt::format(
                    "::gemm::ptx::trace_state(::gemm::ptx::TraceState::kMultiply, ptx_where); "
                    "{}.multiply({}, {}, static_cast<::inline_ptx::u32>({}), {}, {}, {}, {}, {}, ptx_where);",
                    engine(in), quoted_opcode(in), group, operands.address(in.argument(0)), a,
                    is_in_tensor_memory, operands.value(in.argument(2), "b64"),
                    operands.value(in.argument(3), "b32"), operands.value(in.arguments.back(), "pred"));
}

/// tcgen05.cp.cta_group::1.32x128b.warpx4{.b8x16.b4x16_p64} [to], descriptor
std::string copy(const Instruction& in, Operands& operands, const std::string& group) {
  static constexpr std::array<std::array<std::string_view, 2>, 6> kShapes = {{
      {"128x256b", "k128x256b"},
      {"128x128b", "k128x128b"},
      {"4x256b", "k4x256b"},
      {"64x128b.warpx2::02_13", "k64x128bWarps02And13"},
      {"64x128b.warpx2::01_23", "k64x128bWarps01And23"},
      {"32x128b.warpx4", "k32x128bWarps0123"},
  }};
  std::string written = in.opcode.substr(in.opcode.find('.', in.opcode.find("cta_group::")) + 1);
  std::string format = "kBytes";
  for (const auto& [source, name] : {std::pair{"b4x16_p64", "k4Bits"}, std::pair{"b6x16_p32", "k6Bits"}}) {
    const std::size_t at = written.find(std::string(".b8x16.") + source);
    if (at == std::string::npos) continue;
    written.resize(at);
    format = name;
  }
  const auto* const shape =
      std::find_if(kShapes.begin(), kShapes.end(), [&](const auto& each) { return written == each[0]; });
  if (shape == kShapes.end()) return "";
  return fmt::format(
      "{}.copy({}, {}, {{::emulator::TensorCopyShape::{}, ::emulator::TensorCopyFormat::{}}}, "
      "static_cast<::inline_ptx::u32>({}), {}, ptx_where);",
      engine(in), quoted_opcode(in), group, (*shape)[1], format, operands.address(in.argument(0)),
      operands.value(in.argument(1), "b64"));
}

/// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [barrier], ctas
std::string commit(const Instruction& in, Operands& operands, const std::string& group) {
  const bool is_shared = in.has("shared::cluster");
  const bool is_multicast = in.has("multicast::cluster");
  return fmt::format("{}.commit({}, {}, ::inline_ptx::mbarrier_at({}, {}, ptx_where), {}, ptx_where);",
                     engine(in), quoted_opcode(in), group, operands.address(in.argument(0)), is_shared,
                     is_multicast ? operands.value(in.argument(1), "u16") : "::std::nullopt");
}

std::string tensor_memory(const Instruction& in, Operands& operands) {
  const std::string& what = in.parts.at(1);
  if (what == "ld" || what == "st") return transfer(in, operands);
  if (what == "wait::ld" || what == "wait::st")
    return fmt::format("{}.wait({}, ptx_where); ", engine(in), what == "wait::st") +
           (what == "wait::ld" ? operands.take_kept() : "");
  if (what == "fence::before_thread_sync") return engine(in) + ".fence_before(ptx_where);";
  if (what == "fence::after_thread_sync") return engine(in) + ".fence_after(ptx_where);";
  const std::string group = cta_group(in, operands);
  if (group.empty()) return "";
  if (what == "alloc")
    return fmt::format("{}.alloc({}, static_cast<::inline_ptx::u32*>({}), {}, ptx_where);", engine(in), group,
                       in.has("shared::cta")
                           ? shared(operands.address(in.argument(0)))
                           : fmt::format("::inline_ptx::pointer({})", operands.address(in.argument(0))),
                       operands.value(in.argument(1), "b32"));
  if (what == "dealloc")
    return fmt::format("{}.dealloc({}, {}, {}, ptx_where);", engine(in), group,
                       operands.value(in.argument(0), "b32"), operands.value(in.argument(1), "b32"));
  if (what == "relinquish_alloc_permit")
    return fmt::format("{}.relinquish({}, ptx_where);", engine(in), group);
  if (what == "mma") return multiply(in, operands, group);
  if (what == "commit") return commit(in, operands, group);
  if (what == "cp") return copy(in, operands, group);
  if (what == "shift" && in.has("down"))
    return fmt::format("{}.shift({}, {}, static_cast<::inline_ptx::u32>({}), ptx_where);", engine(in),
                       quoted_opcode(in), group, operands.address(in.argument(0)));
  return "";
}

/// clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes.b128 [response],
/// [barrier]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, response
std::string launch_control(const Instruction& in, Operands& operands) {
  const std::string& what = in.parts.at(1);
  if (what == "try_cancel") {
    const bool is_shared = in.has("shared::cta");
    return fmt::format(
        "::gemm::ptx::clusterlaunchcontrol_try_cancel{}<>(static_cast<uint4*>({}), "
        "static_cast<::std::uint64_t*>(::inline_ptx::mbarrier_at({}, {}, ptx_where)), ptx_where);",
        in.has("multicast::cluster::all") ? "_multicast" : "",
        is_shared ? shared(operands.address(in.argument(0)))
                  : fmt::format("::inline_ptx::pointer({})", operands.address(in.argument(0))),
        operands.address(in.argument(1)), is_shared);
  }
  if (what != "query_cancel" || in.type() != "b128") return "";
  const std::string call = fmt::format(
      "::gemm::ptx::clusterlaunchcontrol_query_cancel_{{}}(::std::bit_cast<uint4>({}), ptx_where)",
      operands.value(in.argument(1), "b128"));
  if (in.has("is_canceled"))
    return operands.assign(in.argument(0), fmt::format(fmt::runtime(call), "is_canceled"));
  std::string code =
      fmt::format("const ::uint3 ptx_first = {}; ", fmt::format(fmt::runtime(call), "get_first_ctaid"));
  if (in.has("v4")) {
    const std::vector<std::string> to = operands.vector(in.argument(0));
    if (to.size() != 4) return "";
    for (std::size_t i = 0; i < 3; ++i) code += operands.assign(to[i], fmt::format("ptx_first.{}", "xyz"[i]));
    return code + operands.assign(to[3], "::inline_ptx::u32(0)");
  }
  for (const char axis : {'x', 'y', 'z'}) {
    if (in.has(fmt::format("get_first_ctaid::{}", axis)))
      return code + operands.assign(in.argument(0), fmt::format("ptx_first.{}", axis));
  }
  return "";
}

}  // namespace

std::string quoted_opcode(const Instruction& in) {
  const std::size_t operand = in.opcode.find("cta_group::%");
  if (operand == std::string::npos) return fmt::format("\"{}\"", in.opcode);
  const std::size_t number = operand + std::string_view("cta_group::").size();
  const std::size_t end = std::min(in.opcode.find('.', number), in.opcode.size());
  const auto with = [&](char group) {
    return fmt::format("\"{}{}{}\"", in.opcode.substr(0, number), group, in.opcode.substr(end));
  };
  return fmt::format("(ptx_{} == 1 ? {} : {})", in.opcode.substr(number + 1, end - number - 1), with('1'),
                     with('2'));
}

std::string cta_group(const Instruction& in, Operands& operands) {
  static constexpr std::string_view kName = "cta_group::";
  for (const std::string& part : in.parts) {
    if (part.rfind(kName, 0) != 0) continue;
    const std::string number = part.substr(kName.size());
    return number == "1" || number == "2" ? number
                                          : fmt::format("static_cast<int>({})", operands.name(number));
  }
  return "";
}

std::string tensor_memory_instruction(const Instruction& in, Operands& operands) {
  if (in.root() == "tcgen05" && in.parts.size() > 1) return tensor_memory(in, operands);
  if (in.root() == "clusterlaunchcontrol" && in.parts.size() > 2) return launch_control(in, operands);
  return "";
}

}  // namespace emulate::inline_ptx
