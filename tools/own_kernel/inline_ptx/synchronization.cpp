// Barriers, fences, votes, shuffles, mbarriers: what threads do together.
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "translation.h"

namespace emulate::inline_ptx {
namespace {

/// bar.sync a, b; barrier.cta.red.popc.aligned.u32 d, a, b, p;
std::string named_barrier(const Instruction& in, Operands& operands) {
  if (in.begins("bar.warp.sync"))
    return fmt::format("::__syncwarp({}, ptx_where);", operands.value(in.argument(0), "u32"));
  const bool reduces = in.has("red");
  const std::size_t first = reduces ? 1 : 0;
  const std::size_t last = in.arguments.size() - (reduces ? 1 : 0);
  const std::string barrier = operands.value(in.argument(first), "u32");
  const std::string threads =
      first + 1 < last ? operands.value(in.argument(first + 1), "u32") : "::inline_ptx::threads_of_cta()";
  if (reduces) {
    const char* kind = in.has("popc") ? "popc" : in.has("and") ? "and" : "or";
    return operands.assign(
        in.arguments[0], fmt::format("::gemm::ptx::bar_red_{}({}, {}, {}, ptx_where)", kind, barrier, threads,
                                     operands.value(in.arguments.back(), "pred")));
  }
  if (in.has("arrive")) return fmt::format("::gemm::ptx::bar_arrive({}, {}, ptx_where);", barrier, threads);
  if (!in.has("sync")) return "";
  if (in.argument(0) == "0" && in.arguments.size() == 1) return "::__syncthreads(ptx_where);";
  return fmt::format("::gemm::ptx::bar_sync({}, {}, ptx_where);", barrier, threads);
}

std::string scope_of(const Instruction& in) {
  return in.has("cta") ? "kCta" : in.has("cluster") ? "kCluster" : in.has("sys") ? "kSys" : "kGpu";
}

std::string fence(const Instruction& in, Operands& operands) {
  if (in.begins("fence.mbarrier_init")) return "::emulator::fence_mbarrier_init(ptx_where);";
  if (in.begins("fence.proxy.async") && in.parts.size() <= 4 && !in.has("global::generic")) {
    const bool shared = in.parts.size() == 3 || in.parts[3].rfind("shared", 0) == 0;
    const bool global = in.parts.size() == 3 || in.parts[3] == "global";
    return fmt::format("::emulator::fence_proxy_async(\"{}\", {}, {}, ptx_where);", in.opcode, shared,
                       global);
  }
  if (in.begins("fence.proxy.tensormap::generic.release"))
    return fmt::format("::emulator::fence_proxy_tensormap_release(::emulator::FenceScope::{}, ptx_where);",
                       scope_of(in));
  if (in.begins("fence.proxy.tensormap::generic.acquire"))
    return fmt::format("::inline_ptx::fence_tensormap_acquire(::emulator::FenceScope::{}, {}, ptx_where);",
                       scope_of(in), operands.address(in.argument(0)));
  if (in.has("proxy") || in.has("sync_restrict::shared::cta") || in.has("sync_restrict::shared::cluster"))
    return "";
  // PTX ISA, "membar, fence": from sm_70 on, membar is a synonym for fence.sc.
  const bool sequential = in.root() == "membar" || in.has("sc");
  return fmt::format(
      "::emulator::fence(::emulator::Scope::{}, \"{}\", ptx_where, ::emulator::FenceOrder::{});",
      in.has("cta")   ? "kCta"
      : in.has("sys") ? "kSystem"
                      : "kDevice",
      in.opcode, sequential ? "kSequential" : "kAcquireRelease");
}

std::string mbarrier(const Instruction& in, Operands& operands) {
  const bool is_shared = in.opcode.find("shared") != std::string::npos;
  const bool is_remote = in.has("shared::cluster");
  const auto barrier = [&](const std::string& text) {
    return fmt::format("::inline_ptx::mbarrier_at({}, {}, ptx_where)", operands.address(text), is_shared);
  };
  const std::string& what = in.parts.at(1);
  if (what == "init")
    return fmt::format("::emulator::mbarrier_init({}, {}, ptx_where);", barrier(in.argument(0)),
                       operands.value(in.argument(1), "u32"));
  if (what == "inval")
    return fmt::format("::emulator::mbarrier_inval({}, ptx_where);", barrier(in.argument(0)));
  if (what == "pending_count")
    return operands.assign(in.argument(0), fmt::format("::emulator::mbarrier_pending_count({}, ptx_where)",
                                                       operands.value(in.argument(1), "b64")));
  if (what == "try_wait" || what == "test_wait") {
    const std::string parity =
        in.has("parity") ? operands.value(in.argument(2), "u32")
                         : fmt::format("::inline_ptx::parity_of({})", operands.value(in.argument(2), "b64"));
    return operands.assign(
        in.argument(0),
        fmt::format("::inline_ptx::mbarrier_{}(\"{}\", {}, {}, {}, {}, ptx_where)", what, in.opcode,
                    barrier(in.argument(1)), parity, in.has("cluster"), in.has("relaxed")));
  }
  if (what == "complete_tx") {
    if (is_remote)
      return fmt::format(
          "::emulator::mbarrier_complete_tx_remote(\"{}\", ::inline_ptx::u32({}), {}, ptx_where);", in.opcode,
          operands.address(in.argument(0)), operands.value(in.argument(1), "u32"));
    return fmt::format("::emulator::mbarrier_complete_tx_by_thread(\"{}\", {}, {}, ptx_where);", in.opcode,
                       barrier(in.argument(0)), operands.value(in.argument(1), "u32"));
  }
  if (what != "arrive" && what != "expect_tx") return "";
  const bool arrives = what == "arrive";
  const bool expects = in.has("expect_tx");
  const std::size_t first = in.argument(0)[0] == '[' ? 0 : 1;
  std::string options = fmt::format(".what = \"{}\"", in.opcode);
  if (!arrives) options += ", .arrives = false";
  if (expects)
    options +=
        fmt::format(", .expected_bytes = {}, .expects = true", operands.value(in.argument(first + 1), "u32"));
  if (arrives && is_remote)
    options += fmt::format(", .releases_cluster = {}", in.has("cluster") && !in.has("relaxed"));
  if (arrives && !expects && in.arguments.size() > first + 1)
    options += fmt::format(", .count = {}", operands.value(in.arguments[first + 1], "u32"));
  if (in.has("noComplete")) options += ", .completes = false";
  if (arrives && in.has("relaxed"))
    options += fmt::format(", .releases = false, .orders_tensor = {}", is_remote);
  if (is_remote)
    return fmt::format("::inline_ptx::mbarrier_arrive_remote({}, {{{}}}, ptx_where);",
                       operands.address(in.argument(first)), options);
  if (!arrives)
    return fmt::format("::emulator::mbarrier_arrive({}, {{{}}}, ptx_where);", barrier(in.argument(first)),
                       options);
  return operands.assign(first == 0 ? "_" : in.arguments[0],
                         fmt::format("::inline_ptx::mbarrier_arrive({}, {{{}}}, ptx_where)",
                                     barrier(in.argument(first)), options));
}

/// shfl.sync.idx.b32 d|p, a, b, c, mask
std::string shuffle(const Instruction& in, Operands& operands) {
  static const std::map<std::string, std::string> kKinds = {
      {"idx", "kIndex"}, {"up", "kUp"}, {"down", "kDown"}, {"bfly", "kXor"}};
  const auto kind = kKinds.find(in.parts.size() == 4 ? in.parts[2] : "");
  if (kind == kKinds.end()) return "";
  const std::vector<std::string> results = split(in.argument(0), '|');
  std::string code = fmt::format(
      "const auto ptx_s = ::inline_ptx::shuffle(\"{}\", ::emulator::Shuffle::{}, {}, {}, {}, {}, "
      "ptx_where); ",
      in.opcode, kind->second, operands.value(in.argument(4), "u32"), operands.value(in.argument(1), "b32"),
      operands.value(in.argument(2), "u32"), operands.value(in.argument(3), "u32"));
  code += operands.assign(results[0], "ptx_s.value");
  if (results.size() > 1) code += operands.assign(results[1], "ptx_s.in_range");
  return code;
}

std::string vote(const Instruction& in, Operands& operands) {
  const std::string mask = operands.value(in.argument(2), "u32");
  const std::string predicate = operands.value(in.argument(1), "pred");
  const std::string kind = in.parts.size() == 4 ? in.parts[2] : "";
  if (kind == "ballot")
    return operands.assign(in.argument(0), fmt::format("::emulator::ballot(\"{}\", {}, {}, ptx_where)",
                                                       in.opcode, mask, predicate));
  const std::string count = fmt::format(
      "const ::inline_ptx::u32 ptx_m = {}; const auto ptx_v = ::emulator::vote(\"{}\", ptx_m, {}, "
      "ptx_where); ",
      mask, in.opcode, predicate);
  if (kind == "any") return count + operands.assign(in.argument(0), "(ptx_v.lanes != 0)");
  if (kind == "all") return count + operands.assign(in.argument(0), "(ptx_v.lanes == ptx_v.voters)");
  if (kind == "uni")
    return count + operands.assign(in.argument(0), "(ptx_v.lanes == ptx_v.voters || ptx_v.lanes == 0)");
  return "";
}

std::string reduction_of_warp(const Instruction& in, Operands& operands) {
  if (in.parts.size() != 4) return "";
  static const std::map<std::string, std::string> kTypes = {
      {"u32", "unsigned"}, {"s32", "int"}, {"b32", "unsigned"}};
  const auto type = kTypes.find(in.type());
  if (type == kTypes.end()) return "";
  return operands.assign(in.argument(0), fmt::format("::__reduce_{}_sync({}, {}({}), ptx_where)", in.parts[2],
                                                     operands.value(in.argument(2), "u32"), type->second,
                                                     operands.value(in.argument(1), in.type())));
}

}  // namespace

std::string synchronizing_instruction(const Instruction& in, Operands& operands) {
  const std::string& root = in.root();
  if (in.begins("barrier.cluster.arrive"))
    return fmt::format("::emulator::barrier_cluster_arrive({}, ptx_where);", !in.has("relaxed"));
  if (in.begins("barrier.cluster.wait")) return "::emulator::barrier_cluster_wait(ptx_where);";
  if (root == "bar" || root == "barrier") return named_barrier(in, operands);
  if (root == "fence" || root == "membar") return fence(in, operands);
  if (root == "mbarrier") return mbarrier(in, operands);
  if (root == "shfl") return shuffle(in, operands);
  if (root == "vote") return vote(in, operands);
  if (root == "redux") return reduction_of_warp(in, operands);
  if (root == "activemask")
    return operands.assign(in.argument(0), "::emulator::lanes_together(\"activemask\", ptx_where)");
  if (in.begins("match.any.sync"))
    return operands.assign(in.argument(0), fmt::format("::__match_any_sync({}, {}, ptx_where)",
                                                       operands.value(in.argument(2), "u32"),
                                                       operands.value(in.argument(1), in.type())));
  if (in.begins("match.all.sync")) {
    const std::vector<std::string> results = split(in.argument(0), '|');
    std::string code =
        fmt::format("int ptx_all = 0; const auto ptx_v = ::__match_all_sync({}, {}, &ptx_all, ptx_where); ",
                    operands.value(in.argument(2), "u32"), operands.value(in.argument(1), in.type()));
    code += operands.assign(results[0], "ptx_v");
    if (results.size() > 1) code += operands.assign(results[1], "(ptx_all != 0)");
    return code;
  }
  if (root == "elect") {
    const std::vector<std::string> results = split(in.argument(0), '|');
    std::string code = fmt::format("const auto ptx_e = ::inline_ptx::elect({}, {}, ptx_where); ",
                                   operands.value(in.argument(1), "u32"), results[0] != "_");
    if (results.size() > 1) code += operands.assign(results[1], "ptx_e.is_leader");
    return code + operands.assign(results[0], "ptx_e.leader");
  }
  if (root == "mapa") {
    const bool is_shared = in.has("shared::cluster");
    return operands.assign(
        in.argument(0),
        fmt::format("::inline_ptx::{}({}, {}, ptx_where)", is_shared ? "map_shared" : "map_generic",
                    operands.value(in.argument(1), is_shared ? "b32" : "b64"),
                    operands.value(in.argument(2), "u32")));
  }
  if (root == "getctarank")
    return operands.assign(in.argument(0),
                           fmt::format("::inline_ptx::rank_of({}, {}, ptx_where)",
                                       operands.value(in.argument(1), "b64"), in.has("shared::cluster")));
  if (root == "setmaxnreg")
    return fmt::format("::gemm::ptx::setmaxnreg_{}<static_cast<int>({})>(ptx_where);", in.parts.at(1),
                       operands.name(in.argument(0)));
  if (root == "griddepcontrol")
    return in.has("wait") ? "::cudaGridDependencySynchronize(ptx_where);"
                          : "::cudaTriggerProgrammaticLaunchCompletion(ptx_where);";
  if (in.begins("cp.async.mbarrier.arrive")) {
    return fmt::format(
        "::emulator::cp_async_mbarrier_arrive(\"{}\", ::inline_ptx::mbarrier_at({}, {}, ptx_where), {}, "
        "ptx_where);",
        in.opcode, operands.address(in.argument(0)), in.opcode.find("shared") != std::string::npos,
        !in.has("noinc"));
  }
  return "";
}

}  // namespace emulate::inline_ptx
