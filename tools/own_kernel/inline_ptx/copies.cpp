// Asynchronous copies: cp.async, bulk copies with and without a tensor map, st.async, tensor maps that
// change.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "translation.h"

namespace emulate::inline_ptx {
namespace {

std::string shared(const std::string& address) {
  return fmt::format("::inline_ptx::shared_pointer({}, ptx_where)", address);
}

/// cp.async.cg.shared.global [to], [from], 16{, source bytes | predicate that ignores the source}{, policy}
std::string cp_async(const Instruction& in, Operands& operands) {
  const std::size_t count = in.arguments.size() - (in.has("L2::cache_hint") ? 1 : 0);
  const std::string bytes = operands.value(in.argument(2), "u32");
  std::string source = bytes;
  if (count > 3)
    source =
        in.argument(3)[0] == '!' ? operands.value(in.argument(3), "pred") : operands.name(in.argument(3));
  return fmt::format(
      "::emulator::cp_async_engine(\"{0}\", ptx_where).issue(\"{0}\", {1}, ::inline_ptx::pointer({2}), {3}, "
      "::inline_ptx::source_bytes({3}, {4}), ptx_where);",
      in.opcode, shared(operands.address(in.argument(0))), operands.address(in.argument(1)), bytes, source);
}

/// `[map, {c0, c1}]`
struct TensorOperand {
  std::string map;
  std::string coordinates;
  std::size_t rank;
};
TensorOperand tensor(const std::string& text, Operands& operands) {
  if (text.size() < 2 || text.front() != '[') throw Untranslated{"the tensor " + text};
  const std::vector<std::string> parts = split(text.substr(1, text.size() - 2), ',');
  if (parts.size() != 2) throw Untranslated{"the tensor " + text};
  const std::vector<std::string> names = operands.vector(parts[1]);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + operands.value(name, "s32");
  return {fmt::format("::inline_ptx::tensor_map({})", operands.value(parts[0], "b64")), list, names.size()};
}

std::string engine(const Instruction& in) {
  return fmt::format("::emulator::hopper_engine({}, ptx_where).copies", quoted_opcode(in));
}

std::string bulk_tensor(const Instruction& in, Operands& operands) {
  const bool reduces = in.root() == "cp" && in.parts.at(1) == "reduce";
  for (const char* missing :
       {"tile::gather4", "tile::scatter4", "im2col::w", "im2col::w::128", "im2col_no_offs"}) {
    if (in.has(missing)) return "";
  }
  if (in.has("prefetch")) {
    const TensorOperand from = tensor(in.argument(0), operands);
    return fmt::format(
        "const ::inline_ptx::s32 ptx_at[] = {{{}}}; {}.prefetch(\"{}\", {}, ptx_at, {}, ptx_where);",
        from.coordinates, engine(in), in.opcode, from.map, from.rank);
  }
  if (in.argument(0).find(',') == std::string::npos) {  // into shared memory
    const TensorOperand from = tensor(in.argument(1), operands);
    std::size_t next = 3;
    std::string offsets = "nullptr";
    std::string code = fmt::format("const ::inline_ptx::s32 ptx_at[] = {{{}}}; ", from.coordinates);
    if (in.has("im2col")) {
      std::string list;
      for (const std::string& offset : operands.vector(in.argument(next++)))
        list += (list.empty() ? "" : ", ") + operands.value(offset, "u16");
      code += fmt::format("const ::inline_ptx::u16 ptx_o[] = {{{}}}; ", list);
      offsets = "ptx_o";
    }
    const bool multicast = in.has("multicast::cluster");
    const std::string ctas = multicast ? operands.value(in.argument(next), "u16") : "0";
    const std::string load = fmt::format(
        "{}.load({}, {}, {}, ptx_at, {}, ::inline_ptx::mbarrier_at({}, true, ptx_where), {}, {}, "
        "ptx_where, 128, {});",
        engine(in), quoted_opcode(in), shared(operands.address(in.argument(0))), from.map, from.rank,
        operands.address(in.argument(2)), ctas, multicast, offsets);
    const std::string group = cta_group(in, operands);
    if (group.empty() || group == "1") return code + load;
    if (multicast || in.has("im2col")) return "";
    // With .cta_group::2 the mbarrier may be the peer's.
    return code + fmt::format(
                      "if ({} == 1) {{ {} }} else {{ {}.load_of_pair({}, {}, {}, ptx_at, {}, "
                      "::inline_ptx::u32({}), ptx_where); }}",
                      group, load, engine(in), quoted_opcode(in), shared(operands.address(in.argument(0))),
                      from.map, from.rank, operands.address(in.argument(2)));
  }
  const TensorOperand to = tensor(in.argument(0), operands);
  std::string reduction = "{}";
  if (reduces) {
    std::string kind;
    for (const char* name : {"add", "min", "max", "inc", "dec", "and", "or", "xor"}) {
      if (in.has(name)) kind = name;
    }
    if (kind.empty()) return "";
    reduction =
        fmt::format("::inline_ptx::tensor_reduction({}, ::inline_ptx::reduction_kind(\"{}\"))", to.map, kind);
  }
  return fmt::format(
      "const ::inline_ptx::s32 ptx_at[] = {{{}}}; {}.store(\"{}\", {}, ptx_at, {}, {}, ptx_where, {});",
      to.coordinates, engine(in), in.opcode, to.map, to.rank, shared(operands.address(in.argument(1))),
      reduction);
}

/// cp.async.bulk.DESTINATION.SOURCE, and cp.reduce.async.bulk
std::string bulk(const Instruction& in, Operands& operands) {
  const bool reduces = in.parts.at(1) == "reduce";
  const std::size_t first = reduces ? 4 : 3;  // part that names the destination
  if (in.has("cp_mask") || in.parts.size() < first + 2) return "";
  const std::string& to = in.parts[first];
  const std::string& from = in.parts[first + 1];
  std::string reduction = "{}";
  if (reduces) {
    std::string type = in.type();
    if (type == "b32" || type == "b64") type[0] = 'u';
    const std::string& kind = in.parts[in.parts.size() - 2] == "noftz" ? in.parts[in.parts.size() - 3]
                                                                       : in.parts[in.parts.size() - 2];
    static const std::map<std::string, std::string> kTypes = {{"u32", "::inline_ptx::u32"},
                                                              {"s32", "::inline_ptx::s32"},
                                                              {"u64", "::inline_ptx::u64"},
                                                              {"s64", "::inline_ptx::s64"},
                                                              {"f32", "float"},
                                                              {"f64", "double"},
                                                              {"f16", "::__half"},
                                                              {"bf16", "::__nv_bfloat16"}};
    const auto found = kTypes.find(type);
    if (found == kTypes.end()) return "";
    reduction =
        fmt::format("::emulator::reduction<{}>(::inline_ptx::reduction_kind(\"{}\"))", found->second, kind);
  }
  if (in.has("prefetch"))
    return fmt::format("{}.prefetch_plain(::inline_ptx::pointer({}), {}, ptx_where);", engine(in),
                       operands.address(in.argument(0)), operands.value(in.argument(1), "u32"));
  const std::string bytes = operands.value(in.argument(2), "u32");
  if (to.rfind("shared", 0) == 0 && from == "global") {
    const bool multicast = in.has("multicast::cluster");
    return fmt::format(
        "{}.load_plain({}, ::inline_ptx::pointer({}), {}, ::inline_ptx::mbarrier_at({}, true, ptx_where), "
        "ptx_where, {}, {});",
        engine(in), shared(operands.address(in.argument(0))), operands.address(in.argument(1)), bytes,
        operands.address(in.argument(3)), multicast ? operands.value(in.argument(4), "u16") : "0", multicast);
  }
  if (to == "shared::cluster")
    return fmt::format(
        "{}.copy_to_cluster(::inline_ptx::u32({}), {}, {}, ::inline_ptx::u32({}), ptx_where, {});",
        engine(in), operands.address(in.argument(0)), shared(operands.address(in.argument(1))), bytes,
        operands.address(in.argument(3)), reduction);
  if (to == "global")
    return fmt::format("{}.store_plain(\"{}\", ::inline_ptx::pointer({}), {}, {}, {}, ptx_where);",
                       engine(in), in.opcode, operands.address(in.argument(0)),
                       shared(operands.address(in.argument(1))), bytes, reduction);
  return "";
}

/// st.async.mbarrier::complete_tx::bytes.v4.b32 [to], {a, b, c, d}, [barrier]; red.async
std::string remote_store(const Instruction& in, Operands& operands) {
  std::string type = in.type();
  const std::vector<std::string> sources = operands.vector(in.argument(1));
  std::string list;
  for (const std::string& source : sources) list += (list.empty() ? "" : ", ") + operands.value(source, type);
  std::string code = fmt::format("const {} ptx_v[] = {{{}}}; ", cpp_type(type), list);
  const std::string to = fmt::format("::inline_ptx::u32({})", operands.address(in.argument(0)));
  const std::string barrier = fmt::format("::inline_ptx::u32({})", operands.address(in.argument(2)));
  if (in.root() == "st")
    return code + fmt::format("::emulator::st_async({}, ptx_v, sizeof ptx_v, {}, ptx_where);", to, barrier);
  if (type[0] == 'b') type[0] = 'u';
  return code + fmt::format(
                    "{}.store_remote({{.what = \"{}\", .address = {}, .value = ptx_v, .bytes = sizeof ptx_v, "
                    ".barrier = {}, .reduction = "
                    "::emulator::reduction<{}>(::inline_ptx::reduction_kind(\"{}\"))}}, ptx_where);",
                    engine(in), in.opcode, to, barrier, cpp_type(type), in.parts[in.parts.size() - 2]);
}

/// tensormap.replace.tile.FIELD.SPACE.b1024.TYPE [map], {ordinal,} value
std::string replace(const Instruction& in, Operands& operands) {
  static const std::map<std::string, std::string> kFields = {{"global_address", "kGlobalAddress"},
                                                             {"rank", "kRank"},
                                                             {"box_dim", "kBoxDim"},
                                                             {"global_dim", "kGlobalDim"},
                                                             {"global_stride", "kGlobalStride"},
                                                             {"element_stride", "kElementStride"},
                                                             {"elemtype", "kElementType"},
                                                             {"interleave_layout", "kInterleave"},
                                                             {"swizzle_mode", "kSwizzle"},
                                                             {"fill_mode", "kFill"}};
  const auto field = kFields.find(in.parts.size() > 3 ? in.parts[3] : "");
  if (field == kFields.end()) return "";
  const bool has_ordinal = in.arguments.size() == 3;
  const std::string value = in.argument(has_ordinal ? 2 : 1);
  return fmt::format(
      "::inline_ptx::tensormap_replace({}, {{\"{}\", ::emulator::MapField::{}, {}, {}, {}}}, ptx_where);",
      operands.address(in.argument(0)), in.opcode, field->second,
      has_ordinal ? operands.value(in.arguments[1], "u32") : "0u",
      operands.value(value, in.type() == "b64" ? "b64" : "u32"), in.has("shared::cta"));
}

}  // namespace

std::string copy_instruction(const Instruction& in, Operands& operands) {
  const std::string& root = in.root();
  if (root == "cp" && (in.begins("cp.async.bulk.tensor") || in.begins("cp.reduce.async.bulk.tensor") ||
                       in.begins("cp.async.bulk.prefetch.tensor")))
    return bulk_tensor(in, operands);
  if (in.begins("cp.async.bulk.commit_group")) return "::gemm::ptx::cp_async_bulk_commit_group(ptx_where);";
  if (in.begins("cp.async.bulk.wait_group"))
    return fmt::format("{}.wait({}, {}, ptx_where);", engine(in), operands.value(in.argument(0), "u32"),
                       in.has("read"));
  if (in.begins("cp.async.bulk") || in.begins("cp.reduce.async.bulk")) return bulk(in, operands);
  if (in.begins("cp.async.commit_group")) return "::gemm::ptx::cp_async_commit_group(ptx_where);";
  if (in.begins("cp.async.wait_group"))
    return fmt::format("::inline_ptx::cp_async_wait_group({}, ptx_where);",
                       operands.value(in.argument(0), "u32"));
  if (in.begins("cp.async.wait_all")) return "::gemm::ptx::cp_async_wait_all(ptx_where);";
  if (in.begins("cp.async.ca") || in.begins("cp.async.cg")) return cp_async(in, operands);
  if (in.begins("st.async") || in.begins("red.async"))
    return in.has("release") ? "" : remote_store(in, operands);
  if (in.begins("tensormap.replace")) return replace(in, operands);
  if (in.begins("tensormap.cp_fenceproxy")) {
    const std::string scope = in.has("cta")       ? "kCta"
                              : in.has("cluster") ? "kCluster"
                              : in.has("sys")     ? "kSys"
                                                  : "kGpu";
    return fmt::format(
        "::emulator::tensormap_cp_fenceproxy(::emulator::FenceScope::{}, ::inline_ptx::pointer({}), {}, "
        "ptx_where);",
        scope, operands.address(in.argument(0)), shared(operands.address(in.argument(1))));
  }
  return "";
}

}  // namespace emulate::inline_ptx
