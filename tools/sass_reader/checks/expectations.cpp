#include "checks/expectations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "text.h"

namespace sass {
namespace {

using harness::Error;
using nlohmann::json;

constexpr const char* kRegionNames[] = {"main_loop", "kernel", "before_loop", "after_loop"};
constexpr const char* kRegionTexts[] = {"in the main loop", "in the kernel", "before the main loop",
                                        "behind the main loop"};
constexpr int kMaxRegisters = 255;  // what the hardware gives a thread

bool is_resource(const std::string& kind) {
  return kind == "registers" || kind == "spill_bytes" || kind == "stack_bytes" || kind == "shared_bytes";
}

/// Reads one expectation; every complaint starts with `place`.
class Reader {
 public:
  Reader(const json& object, std::string place) : object_(object), place_(std::move(place)) {}

  Expectation read() {
    if (!object_.is_object()) fail("it must be an object");
    Expectation expectation;
    for (const std::string& kind : expectation_kinds())
      if (object_.contains(kind)) {
        if (!expectation.kind.empty()) fail(fmt::format("it is both '{}' and '{}'", expectation.kind, kind));
        expectation.kind = kind;
      }
    if (expectation.kind.empty()) {
      std::vector<std::string> keys;
      for (const auto& [key, ignored] : object_.items()) keys.push_back(key);
      std::string hint;
      for (const std::string& key : keys)
        if (hint.empty()) hint = harness::nearest_match(key, expectation_kinds());
      fail(fmt::format("none of its keys ({}) names an expectation{}", fmt::join(keys, ", "),
                       hint.empty() ? fmt::format("; known: {}", fmt::join(expectation_kinds(), ", "))
                                    : fmt::format("; did you mean '{}'?", hint)));
    }
    expectation.why = string("why");
    if (trim(expectation.why).empty()) fail("'why' is empty");
    read_kind(expectation);
    check_keys(expectation.kind);
    return expectation;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}: {}", place_, what)); }

  std::string string(const std::string& key) const {
    if (!object_.contains(key)) fail(fmt::format("'{}' is missing", key));
    if (!object_[key].is_string()) fail(fmt::format("'{}' must be a string", key));
    return object_[key];
  }

  int integer(const json& object, const std::string& key) const {
    if (!object[key].is_number_integer() || object[key] < 0)
      fail(fmt::format("'{}' must be a whole number, not negative", key));
    return object[key];
  }

  OpcodePattern pattern(const std::string& text) const {
    try {
      return OpcodePattern(text);
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
  }

  Position position(const std::string& text) const {
    const std::string_view whole = trim(text);
    const auto space = whole.find(' ');
    const std::string_view which = whole.substr(0, space);
    if (space == std::string_view::npos || (which != "first" && which != "last"))
      fail(fmt::format("'{}' is not a position: write 'first OPCODE' or 'last OPCODE'", text));
    return {which == "first", pattern(std::string(whole.substr(space)))};
  }

  Bound bound(const json& object) const {
    Bound result;
    if (object.contains("exact")) result.exact = integer(object, "exact");
    if (object.contains("min")) result.min = integer(object, "min");
    if (object.contains("max")) result.max = integer(object, "max");
    if (result.exact && (result.min || result.max)) fail("'exact' excludes 'min' and 'max'");
    if (result.min && !result.max && *result.min == 0) fail("'min' 0 cannot fail");
    if (result.min && result.max && *result.min > *result.max) fail("'min' is above 'max'");
    return result;
  }

  static bool has_bound(const Bound& bound) { return bound.exact || bound.min || bound.max; }

  void read_region(Expectation& expectation) const {
    if (!object_.contains("in")) return;
    const std::string name = string("in");
    const auto found = std::find(std::begin(kRegionNames), std::end(kRegionNames), name);
    if (found == std::end(kRegionNames))
      fail(fmt::format("'in' is '{}'; known: {}", name, fmt::join(kRegionNames, ", ")));
    expectation.region = static_cast<Region>(found - std::begin(kRegionNames));
  }

  void read_between(Expectation& expectation) const {
    if (!object_.contains("between")) return;
    const json& pair = object_["between"];
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      fail("'between' must be two positions: [\"first LDG\", \"last FFMA\"]");
    expectation.from = position(pair[0]);
    expectation.to = position(pair[1]);
  }

  void read_kind(Expectation& expectation) const {
    const std::string& kind = expectation.kind;
    if (is_resource(kind)) {
      if (!object_[kind].is_object())
        fail(fmt::format("'{}' must be an object with 'exact', 'min' or 'max'", kind));
      for (const auto& [key, ignored] : object_[kind].items())
        if (key != "exact" && key != "min" && key != "max")
          fail(fmt::format("'{}' has an unknown key '{}'", kind, key));
      expectation.bound = bound(object_[kind]);
      if (!has_bound(expectation.bound)) fail(fmt::format("'{}' has no bound", kind));
      if (kind == "registers" && expectation.bound.max.value_or(0) >= kMaxRegisters)
        fail("a register bound of 255 or more cannot fail");
    } else if (kind == "count") {
      expectation.pattern = pattern(string("count"));
      read_region(expectation);
      read_between(expectation);
      expectation.bound = bound(object_);
      if (object_.contains("per_k_tile")) {
        if (has_bound(expectation.bound)) fail("'per_k_tile' excludes 'exact', 'min' and 'max'");
        if (expectation.region != Region::kMainLoop) fail("'per_k_tile' is about the main loop");
        expectation.per_k_tile = integer(object_, "per_k_tile");
      } else if (!has_bound(expectation.bound)) {
        fail("'count' has no bound: 'exact', 'min', 'max' or 'per_k_tile'");
      }
    } else if (kind == "every") {
      expectation.pattern = pattern(string("every"));
      expectation.other = pattern(string("is"));
      if (expectation.pattern->text() == expectation.other->text())
        fail("'every' and 'is' are the same: it cannot fail");
      read_region(expectation);
      read_between(expectation);
    } else if (kind == "order") {
      const auto sides = split(string("order"), '<');
      if (sides.size() != 2)
        fail("'order' must be two positions with a '<' between: 'first LDGSTS < first HMMA'");
      expectation.from = position(sides[0]);
      expectation.to = position(sides[1]);
      read_region(expectation);
    } else if (kind == "covered") {
      expectation.pattern = pattern(string("covered"));
      expectation.other = pattern(string("by"));
      expectation.bound = bound(object_);
      if (!expectation.bound.min || expectation.bound.max) fail("'covered' needs 'min' and nothing else");
    } else if (kind == "gap") {
      expectation.pattern = pattern(string("gap"));
      read_region(expectation);
      if (!object_.contains("max_cycles")) fail("'gap' needs 'max_cycles'");
      expectation.max_cycles = integer(object_, "max_cycles");
    } else if (kind == "target" || kind == "forbid_note" || kind == "same_mix") {
      expectation.text = string(kind);
      if (trim(expectation.text).empty()) fail(fmt::format("'{}' is empty", kind));
    } else {
      fail(fmt::format("'{}' belongs beside 'expect', not into it", kind));
    }
  }

  void check_keys(const std::string& kind) const {
    std::vector<std::string> known = {kind, "why"};
    if (kind == "count") known.insert(known.end(), {"in", "between", "exact", "min", "max", "per_k_tile"});
    if (kind == "every") known.insert(known.end(), {"is", "in", "between"});
    if (kind == "order") known.insert(known.end(), {"in"});
    if (kind == "covered") known.insert(known.end(), {"by", "min"});
    if (kind == "gap") known.insert(known.end(), {"in", "max_cycles"});
    for (const auto& [key, ignored] : object_.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(fmt::format("'{}' does not take the key '{}'; it takes {}", kind, key, fmt::join(known, ", ")));
  }

  const json& object_;
  std::string place_;
};

void read_list(const json& list, const std::string& place, std::vector<Expectation>& into) {
  if (!list.is_array()) throw Error(fmt::format("{}: it must be a list of expectations", place));
  for (std::size_t i = 0; i < list.size(); ++i)
    into.push_back(Reader(list[i], fmt::format("{}, expectation {}", place, i + 1)).read());
}

/// Checks one variant; collects what is wrong.
class Checker {
 public:
  Checker(const KernelView& view, const VariantExpectations& expectations)
      : view_(view), expectations_(expectations) {}

  std::vector<Violation> run() {
    check_k_tiles();
    for (const Expectation& expectation : expectations_.list) check_one(expectation);
    return std::move(violations_);
  }

 private:
  using Code = std::vector<const Instruction*>;

  void report(const Expectation& expectation, std::string expected, std::string found,
              const Code& lines = {}) {
    Violation violation{expectations_.variant, std::move(expected), std::move(found), expectation.why, {}};
    constexpr std::size_t kMaxLines = 8;
    for (std::size_t i = 0; i < lines.size() && i < kMaxLines; ++i)
      violation.lines.push_back(fmt::format("{:>5x}  {}", lines[i]->address, lines[i]->text()));
    if (lines.size() > kMaxLines)
      violation.lines.push_back(fmt::format("  ... {} more", lines.size() - kMaxLines));
    violations_.push_back(std::move(violation));
  }

  void check_k_tiles() {
    if (view_.variant.tile_m == 0) return;  // it multiplies nothing
    const int threads = expectations_.math_threads > 0 ? expectations_.math_threads : view_.variant.threads;
    k_tiles_ = view_.k_tiles_per_iteration(threads);
    Expectation rule;
    rule.why =
        fmt::format("the multiply-adds of the loop over {} threads must be those of whole {}x{}x{} tiles",
                    threads, view_.variant.tile_m, view_.variant.tile_n, view_.variant.tile_k);
    const Mix mix = count_mix(view_.loop_code);
    const std::string found =
        view_.main_loop == nullptr ? "no loop that multiplies"
        : k_tiles_                 ? fmt::format("{} k-tiles", *k_tiles_)
                   : fmt::format("{} multiply-adds per thread, which is no whole number of k-tiles",
                                 mix.multiply_adds);
    if (!k_tiles_)
      report(rule, "a main loop that works off whole k-tiles", found);
    else if (expectations_.k_tiles && *expectations_.k_tiles != *k_tiles_)
      report(rule, fmt::format("{} k-tiles per iteration of the main loop", *expectations_.k_tiles), found);
  }

  Code region_code(Region region) const {
    switch (region) {
      case Region::kMainLoop:
        return view_.loop_code;
      case Region::kKernel:
        return view_.code;
      case Region::kBeforeLoop:
        return view_.before_loop();
      case Region::kAfterLoop:
        return view_.after_loop();
    }
    return {};
  }

  /// The index of a position in `code`; code.size() when the opcode does not occur.
  static std::size_t find(const Code& code, const Position& position) {
    std::size_t found = code.size();
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (!position.pattern->matches(*code[i])) continue;
      found = i;
      if (position.first) break;
    }
    return found;
  }

  /// The code an expectation is about. Nothing, and a violation, when its "between" does not exist.
  std::optional<Code> code_of(const Expectation& expectation, const std::string& expected) {
    Code code = region_code(expectation.region);
    const std::string where = kRegionTexts[static_cast<int>(expectation.region)];
    if (code.empty()) {
      report(expectation, expected, fmt::format("no code {}", where));
      return std::nullopt;
    }
    if (expectation.kind == "order" || !expectation.from) return code;
    const std::size_t from = find(code, *expectation.from);
    const std::size_t to = find(code, *expectation.to);
    for (const auto& [index, position] :
         {std::pair(from, &*expectation.from), std::pair(to, &*expectation.to)})
      if (index == code.size()) {
        report(expectation, expected, fmt::format("no {} {}", position->pattern->text(), where));
        return std::nullopt;
      }
    if (from >= to) {
      report(
          expectation, expected,
          fmt::format("the {} does not come before the {}", expectation.from->text(), expectation.to->text()),
          {code[to], code[from]});
      return std::nullopt;
    }
    return Code(code.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                code.begin() + static_cast<std::ptrdiff_t>(to));
  }

  std::string where_of(const Expectation& expectation) const {
    std::string text = kRegionTexts[static_cast<int>(expectation.region)];
    if (expectation.from && expectation.kind != "order")
      text += fmt::format(" between the {} and the {}", expectation.from->text(), expectation.to->text());
    return text;
  }

  void check_one(const Expectation& expectation) {
    if (expectation.kind == "count") check_count(expectation);
    if (expectation.kind == "every") check_every(expectation);
    if (expectation.kind == "order") check_order(expectation);
    if (expectation.kind == "covered") check_covered(expectation);
    if (expectation.kind == "gap") check_gap(expectation);
    if (is_resource(expectation.kind)) check_resource(expectation);
    if (expectation.kind == "target") check_target(expectation);
    if (expectation.kind == "forbid_note") check_notes(expectation);
  }

  void check_count(const Expectation& expectation) {
    Bound bound = expectation.bound;
    std::string amount = bound.text();
    if (expectation.per_k_tile) {
      if (!k_tiles_) return;  // reported already
      bound.exact = *expectation.per_k_tile * *k_tiles_;
      amount = fmt::format("{} ({} per k-tile)", bound.text(), *expectation.per_k_tile);
    }
    const std::string expected =
        fmt::format("{} {} {}", amount, expectation.pattern->text(), where_of(expectation));
    const auto code = code_of(expectation, expected);
    if (!code) return;
    Code matching;
    for (const Instruction* instruction : *code)
      if (expectation.pattern->matches(*instruction)) matching.push_back(instruction);
    const int count = static_cast<int>(matching.size());
    if (!bound.admits(count)) report(expectation, expected, fmt::format("{}", count), matching);
  }

  void check_every(const Expectation& expectation) {
    const std::string expected = fmt::format("every {} {} to be {}", expectation.pattern->text(),
                                             where_of(expectation), expectation.other->text());
    const auto code = code_of(expectation, expected);
    if (!code) return;
    int count = 0;
    Code others;
    for (const Instruction* instruction : *code) {
      if (!expectation.pattern->matches(*instruction)) continue;
      ++count;
      if (!expectation.other->matches(*instruction)) others.push_back(instruction);
    }
    if (count == 0)
      report(expectation, expected, fmt::format("no {} at all", expectation.pattern->text()));
    else if (!others.empty())
      report(expectation, expected, fmt::format("{} of {} that are not", others.size(), count), others);
  }

  void check_order(const Expectation& expectation) {
    const std::string expected = fmt::format("the {} before the {} {}", expectation.from->text(),
                                             expectation.to->text(), where_of(expectation));
    const auto code = code_of(expectation, expected);
    if (!code) return;
    const std::size_t from = find(*code, *expectation.from);
    const std::size_t to = find(*code, *expectation.to);
    for (const auto& [index, position] :
         {std::pair(from, &*expectation.from), std::pair(to, &*expectation.to)})
      if (index == code->size()) {
        report(expectation, expected, fmt::format("no {}", position->pattern->text()));
        return;
      }
    if (from >= to) report(expectation, expected, "the opposite order", {(*code)[to], (*code)[from]});
  }

  void check_covered(const Expectation& expectation) {
    const std::string expected =
        fmt::format("{} {} between every {} of the main loop and the first instruction that waits for it",
                    expectation.bound.text(), expectation.other->text(), expectation.pattern->text());
    const Code& code = view_.loop_code;
    int loads = 0;
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (!expectation.pattern->matches(*code[i])) continue;
      ++loads;
      // Of several loads in a row the compiler may mark only the last: they return in order.
      int scoreboard = code[i]->control.write_barrier;
      const Class kind = classify(*code[i]);
      int covering = 0;
      const Instruction* waiting = nullptr;
      for (std::size_t step = 1; step <= code.size() && waiting == nullptr; ++step) {
        const Instruction* next = code[(i + step) % code.size()];
        if (scoreboard >= 0 && (next->control.wait_mask >> scoreboard & 1))
          waiting = next;
        else if (scoreboard < 0 && classify(*next) == kind)
          scoreboard = next->control.write_barrier;
        else if (expectation.other->matches(*next))
          ++covering;
      }
      if (waiting == nullptr) {
        report(expectation, expected, "no instruction that waits for it", {code[i]});
        return;
      }
      if (covering < *expectation.bound.min) {
        report(expectation, expected, fmt::format("{}", covering), {code[i], waiting});
        return;
      }
    }
    if (loads == 0) report(expectation, expected, fmt::format("no {} at all", expectation.pattern->text()));
  }

  void check_gap(const Expectation& expectation) {
    const std::string expected =
        fmt::format("at most {} cycles of plain instructions between one {} and the next {}",
                    expectation.max_cycles, expectation.pattern->text(), where_of(expectation));
    const auto code = code_of(expectation, expected);
    if (!code) return;
    const Instruction* last = nullptr;  // the last match
    const Instruction* obstacle = nullptr;
    int cycles = 0;
    int gaps = 0;
    for (const Instruction* instruction : *code) {
      const bool matches = expectation.pattern->matches(*instruction);
      if (last != nullptr && obstacle == nullptr && is_obstacle(*instruction)) obstacle = instruction;
      if (matches && last != nullptr) {
        ++gaps;
        if (obstacle != nullptr)
          report(expectation, expected, "an instruction that waits, synchronises or branches",
                 {last, obstacle, instruction});
        else if (cycles > expectation.max_cycles)
          report(expectation, expected, fmt::format("{} cycles", cycles), {last, instruction});
      }
      if (matches) {
        last = instruction;
        obstacle = nullptr;
        cycles = 0;
      }
      cycles += instruction->control.stall;
    }
    if (gaps == 0) report(expectation, expected, fmt::format("no two {}", expectation.pattern->text()));
  }

  /// Keeps a warp for a time that its stall field does not say.
  static bool is_obstacle(const Instruction& instruction) {
    const Class kind = classify(instruction);
    return instruction.control.wait_mask != 0 || kind == Class::kBarrier || kind == Class::kControl;
  }

  void check_resource(const Expectation& expectation) {
    const Resources& resources = view_.resources;
    const std::string& kind = expectation.kind;
    const int value = kind == "registers"     ? resources.registers
                      : kind == "spill_bytes" ? resources.spill_bytes()
                      : kind == "stack_bytes" ? resources.stack_bytes
                                              : resources.shared_bytes + view_.variant.dynamic_shared_bytes;
    if (expectation.bound.admits(value)) return;
    const std::string name = kind == "registers"     ? "registers per thread"
                             : kind == "spill_bytes" ? "bytes of register spills per thread"
                             : kind == "stack_bytes" ? "bytes of stack per thread"
                                                     : "bytes of shared memory per block";
    Code lines;
    if (kind == "spill_bytes" || kind == "stack_bytes")
      for (const Instruction* instruction : view_.code)
        if (classify(*instruction) == Class::kLocal) lines.push_back(instruction);
    report(expectation, fmt::format("{} {}", expectation.bound.text(), name), fmt::format("{}", value),
           lines);
  }

  void check_target(const Expectation& expectation) {
    if (view_.binary->target != expectation.text)
      report(expectation, fmt::format("a cubin for {}", expectation.text),
             fmt::format("one for {}", view_.binary->target));
  }

  void check_notes(const Expectation& expectation) {
    for (const std::string& note : view_.binary->log.notes)
      if (note.find(expectation.text) != std::string::npos)
        report(expectation, fmt::format("no message of ptxas with '{}'", expectation.text), note);
  }

  const KernelView& view_;
  const VariantExpectations& expectations_;
  std::optional<int> k_tiles_;
  std::vector<Violation> violations_;
};

std::map<std::string, int> opcodes_of(const KernelView& view) {
  std::map<std::string, int> counts;
  for (const auto& [ignored, mix] : count_mix(view.code).classes)
    for (const auto& [opcode, count] : mix.opcodes) counts[opcode] += count;
  return counts;
}

/// What the kernel has of every opcode, against another kernel.
std::vector<Violation> check_same_mix(const KernelView& view, const KernelView& other,
                                      const Expectation& expectation) {
  const auto mine = opcodes_of(view);
  const auto theirs = opcodes_of(other);
  std::vector<std::string> lines;
  const auto count_in = [](const std::map<std::string, int>& counts, const std::string& opcode) {
    const auto found = counts.find(opcode);
    return found == counts.end() ? 0 : found->second;
  };
  std::set<std::string> opcodes;
  for (const auto& [opcode, ignored] : mine) opcodes.insert(opcode);
  for (const auto& [opcode, ignored] : theirs) opcodes.insert(opcode);
  for (const std::string& opcode : opcodes)
    if (count_in(mine, opcode) != count_in(theirs, opcode))
      lines.push_back(
          fmt::format("{} {}, there {}", count_in(mine, opcode), opcode, count_in(theirs, opcode)));
  if (lines.empty()) return {};
  return {{view.variant.name, fmt::format("as many of every opcode as variant {} has", other.variant.name),
           fmt::format("{} of {} opcodes that differ", lines.size(), opcodes.size()), expectation.why,
           lines}};
}

}  // namespace

const std::vector<std::string>& expectation_kinds() {
  static const std::vector<std::string> kKinds = {"count",
                                                  "every",
                                                  "order",
                                                  "covered",
                                                  "gap",
                                                  "registers",
                                                  "spill_bytes",
                                                  "stack_bytes",
                                                  "shared_bytes",
                                                  "target",
                                                  "forbid_note",
                                                  "same_mix",
                                                  "k_tiles_per_iteration"};
  return kKinds;
}

std::string to_string(const Violation& violation) {
  std::string text = fmt::format("  variant {}\n    expected  {}\n    found     {}\n    because   {}\n",
                                 violation.variant, violation.expected, violation.found, violation.why);
  for (const std::string& line : violation.lines) text += fmt::format("      {}\n", line);
  return text;
}

bool Bound::admits(int value) const {
  return (!exact || value == *exact) && (!min || value >= *min) && (!max || value <= *max);
}

std::string Bound::text() const {
  if (exact) return *exact == 0 ? "no" : fmt::format("exactly {}", *exact);
  if (min && max) return fmt::format("{} to {}", *min, *max);
  return min ? fmt::format("at least {}", *min) : fmt::format("at most {}", *max);
}

std::string Position::text() const {
  return (first ? "first " : "last ") + pattern->text();
}

ExpectationFile parse_expectations(const std::string& text, const std::string& name) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    throw Error(fmt::format("{} is not JSON: {}", name, error.what()));
  }
  const auto fail = [&](const std::string& what) { throw Error(fmt::format("{}: {}", name, what)); };
  const auto check_keys = [&](const json& object, const std::string& where,
                              const std::vector<std::string>& known) {
    if (!object.is_object()) fail(fmt::format("{} must be an object", where));
    for (const auto& [key, ignored] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(fmt::format("{} has an unknown key '{}'; known: {}", where, key, fmt::join(known, ", ")));
  };
  check_keys(root, "the file", {"step", "every_variant", "families", "variants"});
  ExpectationFile file;
  if (!root.contains("step") || !root["step"].is_string()) fail("'step' must name the step");
  file.step = root["step"];
  std::vector<Expectation> common;
  if (root.contains("every_variant")) read_list(root["every_variant"], name + ": every_variant", common);
  std::map<std::string, std::vector<Expectation>> families;
  if (root.contains("families")) {
    if (!root["families"].is_object()) fail("'families' must be an object of lists");
    for (const auto& [family, list] : root["families"].items())
      read_list(list, fmt::format("{}: families/{}", name, family), families[family]);
  }
  std::set<std::string> used;
  if (!root.contains("variants") || !root["variants"].is_object() || root["variants"].empty())
    fail("'variants' must be an object with an entry for every variant of the step");
  for (const auto& [variant, entry] : root["variants"].items()) {
    const std::string place = fmt::format("{}: variants/{}", name, variant);
    check_keys(entry, fmt::format("variants/{}", variant),
               {"family", "k_tiles_per_iteration", "math_threads", "expect"});
    VariantExpectations expectations{variant, std::nullopt, 0, common};
    if (entry.contains("family")) {
      if (!entry["family"].is_string() || families.count(entry["family"]) == 0)
        fail(fmt::format("variants/{}: 'family' must name one of 'families'", variant));
      const std::vector<Expectation>& list = families[entry["family"]];
      expectations.list.insert(expectations.list.end(), list.begin(), list.end());
      used.insert(entry["family"]);
    }
    if (!entry.contains("k_tiles_per_iteration"))
      fail(fmt::format("variants/{} has no 'k_tiles_per_iteration'", variant));
    const json& k_tiles = entry["k_tiles_per_iteration"];
    if (k_tiles.is_number_integer() && k_tiles > 0)
      expectations.k_tiles = k_tiles.get<int>();
    else if (k_tiles != "derived" && k_tiles != "none")
      fail(fmt::format(
          "variants/{}: 'k_tiles_per_iteration' must be a positive number, \"derived\" or \"none\"",
          variant));
    if (entry.contains("math_threads")) {
      if (!entry["math_threads"].is_number_integer() || entry["math_threads"] <= 0)
        fail(fmt::format("variants/{}: 'math_threads' must be a positive number", variant));
      expectations.math_threads = entry["math_threads"];
    }
    if (entry.contains("expect")) read_list(entry["expect"], place, expectations.list);
    if (expectations.list.empty()) fail(fmt::format("variants/{} expects nothing", variant));
    file.variants.push_back(std::move(expectations));
  }
  for (const auto& [family, ignored] : families)
    if (used.count(family) == 0) fail(fmt::format("families/{} has no variant", family));
  return file;
}

std::vector<Violation> check(const KernelView& view, const VariantExpectations& expectations) {
  return Checker(view, expectations).run();
}

std::vector<Violation> check(const StepBinary& binary, const ExpectationFile& file) {
  if (file.step != binary.step)
    throw Error(fmt::format("steps/{}/expect.json is about step '{}'", binary.step, file.step));
  std::set<std::string> missing;
  for (const VariantInfo& variant : binary.variants) missing.insert(variant.name);
  std::vector<Violation> violations;
  for (const VariantExpectations& expectations : file.variants) {
    const VariantInfo& variant = binary.find_variant(expectations.variant);
    missing.erase(variant.name);
    const auto found = check(KernelView(binary, variant), expectations);
    violations.insert(violations.end(), found.begin(), found.end());
    for (const Expectation& expectation : expectations.list) {
      if (expectation.kind != "same_mix") continue;
      const auto differences =
          check_same_mix(KernelView(binary, variant),
                         KernelView(binary, binary.find_variant(expectation.text)), expectation);
      violations.insert(violations.end(), differences.begin(), differences.end());
    }
  }
  if (!missing.empty())
    throw Error(fmt::format("steps/{}/expect.json says nothing about variant {}", binary.step,
                            fmt::join(missing, ", ")));
  return violations;
}

}  // namespace sass
