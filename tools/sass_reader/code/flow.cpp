#include "code/flow.h"

#include <algorithm>
#include <map>
#include <set>

namespace sass {
namespace {

bool is_jump(const Instruction& instruction) {
  return instruction.opcode == "BRA" || instruction.opcode == "JMP";
}

bool ends_thread(const Instruction& instruction) {
  return instruction.opcode == "EXIT" || instruction.opcode == "RET" || instruction.opcode == "KILL" ||
         instruction.opcode == "BRX" || instruction.opcode == "BRXU" || instruction.opcode == "JMX" ||
         instruction.opcode == "JMXU";
}

/// A guard ("@P0") or a predicate operand ("BRA.U UP0, `(.L)", "BRA !P1, `(.L)") makes a branch conditional.
bool is_conditional(const Instruction& instruction) {
  if (!instruction.predicate.empty() && instruction.predicate != "@PT" && instruction.predicate != "@UPT")
    return true;
  return std::any_of(instruction.operands.begin(), instruction.operands.end(), [](std::string_view operand) {
    if (operand.starts_with("!")) operand.remove_prefix(1);
    if (operand.starts_with("U")) operand.remove_prefix(1);
    return operand.size() == 2 && operand[0] == 'P' && operand[1] >= '0' && operand[1] <= '9';
  });
}

std::vector<Block> split_blocks(const Function& function) {
  const auto& code = function.instructions;
  std::map<std::uint32_t, std::size_t> index_of;
  for (std::size_t i = 0; i < code.size(); ++i) index_of[code[i].address] = i;

  std::set<std::size_t> leaders = {0};
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (is_jump(code[i]) && code[i].target && index_of.count(*code[i].target))
      leaders.insert(index_of[*code[i].target]);
    if ((is_jump(code[i]) || ends_thread(code[i])) && i + 1 < code.size()) leaders.insert(i + 1);
  }

  std::vector<Block> blocks;
  std::map<std::size_t, std::size_t> block_at;
  for (auto leader = leaders.begin(); leader != leaders.end(); ++leader) {
    const auto next = std::next(leader);
    block_at[*leader] = blocks.size();
    blocks.push_back({*leader, (next == leaders.end() ? code.size() : *next) - 1, {}});
  }
  for (Block& block : blocks) {
    const Instruction& last = code[block.last];
    if (is_jump(last) && last.target && index_of.count(*last.target))
      block.successors.push_back(block_at[index_of[*last.target]]);
    const bool falls_through = is_conditional(last) || !(is_jump(last) || ends_thread(last));
    if (falls_through && block.last + 1 < code.size()) block.successors.push_back(block_at[block.last + 1]);
  }
  return blocks;
}

/// dominators[b][d]: every way from the entry to block b passes through block d.
std::vector<std::vector<bool>> find_dominators(const std::vector<Block>& blocks) {
  const std::size_t count = blocks.size();
  std::vector<std::vector<std::size_t>> predecessors(count);
  for (std::size_t b = 0; b < count; ++b)
    for (const std::size_t successor : blocks[b].successors) predecessors[successor].push_back(b);

  std::vector<std::vector<bool>> dominators(count, std::vector<bool>(count, true));
  dominators[0].assign(count, false);
  dominators[0][0] = true;
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::size_t b = 1; b < count; ++b) {
      if (predecessors[b].empty()) continue;  // unreachable
      std::vector<bool> meet(count, true);
      for (const std::size_t p : predecessors[b])
        for (std::size_t d = 0; d < count; ++d) meet[d] = meet[d] && dominators[p][d];
      meet[b] = true;
      if (meet != dominators[b]) {
        dominators[b] = std::move(meet);
        changed = true;
      }
    }
  }
  return dominators;
}

std::vector<bool> find_reachable(const std::vector<Block>& blocks, std::vector<std::size_t> pending) {
  std::vector<bool> reachable(blocks.size(), false);
  while (!pending.empty()) {
    const std::size_t block = pending.back();
    pending.pop_back();
    if (reachable[block]) continue;
    reachable[block] = true;
    pending.insert(pending.end(), blocks[block].successors.begin(), blocks[block].successors.end());
  }
  return reachable;
}

Loop natural_loop(const std::vector<Block>& blocks, std::size_t header,
                  const std::vector<std::size_t>& latches) {
  std::vector<std::vector<std::size_t>> predecessors(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (const std::size_t successor : blocks[b].successors) predecessors[successor].push_back(b);
  std::set<std::size_t> body = {header};
  std::vector<std::size_t> pending = latches;
  while (!pending.empty()) {
    const std::size_t block = pending.back();
    pending.pop_back();
    if (!body.insert(block).second) continue;
    pending.insert(pending.end(), predecessors[block].begin(), predecessors[block].end());
  }
  return {header, {body.begin(), body.end()}, latches};
}

double multiply_adds_of(const Function& function, const Block& block) {
  double sum = 0;
  for (std::size_t i = block.first; i <= block.last; ++i) sum += multiply_adds(function.instructions[i]);
  return sum;
}

}  // namespace

bool Loop::contains(std::size_t block) const {
  return std::binary_search(blocks.begin(), blocks.end(), block);
}

Flow analyse_flow(const Function& function) {
  Flow flow;
  if (function.instructions.empty()) return flow;
  flow.blocks = split_blocks(function);
  const auto dominators = find_dominators(flow.blocks);
  const auto reachable = find_reachable(flow.blocks, {0});
  std::map<std::size_t, std::vector<std::size_t>> latches;
  for (std::size_t b = 0; b < flow.blocks.size(); ++b)
    for (const std::size_t successor : flow.blocks[b].successors)
      if (reachable[b] && dominators[b][successor]) latches[successor].push_back(b);
  for (const auto& [header, sources] : latches)
    flow.loops.push_back(natural_loop(flow.blocks, header, sources));
  return flow;
}

std::vector<bool> reachable_from(const Flow& flow, const std::vector<std::size_t>& start) {
  return find_reachable(flow.blocks, start);
}

const Loop* find_main_loop(const Function& function, const Flow& flow) {
  const auto work_of = [&](const Loop& loop) {
    double sum = 0;
    for (const std::size_t block : loop.blocks) sum += multiply_adds_of(function, flow.blocks[block]);
    return sum;
  };
  const Loop* best = nullptr;
  double best_work = 0;
  for (const Loop& loop : flow.loops) {
    const bool innermost = std::none_of(flow.loops.begin(), flow.loops.end(), [&](const Loop& other) {
      return other.header != loop.header && loop.contains(other.header) && work_of(other) > 0;
    });
    const double work = work_of(loop);
    if (innermost && work > best_work) {
      best = &loop;
      best_work = work;
    }
  }
  return best;
}

std::vector<const Instruction*> instructions_of(const Function& function, const Flow& flow,
                                                const Loop& loop) {
  std::vector<const Instruction*> result;
  for (const std::size_t block : loop.blocks)
    for (std::size_t i = flow.blocks[block].first; i <= flow.blocks[block].last; ++i)
      result.push_back(&function.instructions[i]);
  return result;
}

}  // namespace sass
