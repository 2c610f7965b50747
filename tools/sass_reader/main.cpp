// tools/sass: the machine code of a step, to read and to check.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "checks/expectations.h"
#include "harness/backend/backend.h"
#include "harness/base/problem.h"
#include "text.h"
#include "toolchain/toolchain.h"
#include "view/report.h"

namespace fs = std::filesystem;

namespace {

using harness::Error;
using namespace sass;

constexpr int kExitViolation = 1;

constexpr const char* kOpcodesBegin = "<!-- opcodes: written by tools/sass update -->\n";
constexpr const char* kOpcodesEnd = "<!-- end of opcodes -->\n";

struct Options {
  fs::path root = GEMM_SOURCE_DIR;
  std::string architecture;  // empty: the step's own
  std::vector<std::string> names;
  std::string variant;
  std::string right_variant;
  std::vector<std::string> objects;  // of the GPU build, to be checked instead of compiling the step
  std::vector<std::string> linked;   // what is linked to it
  bool full = false;
  bool unfold = false;
};

std::vector<std::string> steps_of(const Options& options, const std::vector<std::string>& names) {
  if (names.empty() || names == std::vector<std::string>{"all"}) return list_steps(options.root);
  std::vector<std::string> steps;
  for (const std::string& name : names) steps.push_back(find_step(options.root, name));
  return steps;
}

/// "03:64" -> step 03, variant 64.
std::pair<std::string, std::string> split_variant(const std::string& name, const std::string& fallback) {
  const auto colon = name.find(':');
  if (colon == std::string::npos) return {name, fallback};
  return {name.substr(0, colon), name.substr(colon + 1)};
}

int show(const Options& options) {
  const auto [name, variant] = split_variant(options.names[0], options.variant);
  const std::string step = find_step(options.root, name);
  const Toolchain toolchain = find_toolchain(options.root);
  const StepBinary binary = build_step(toolchain, options.root, step, options.architecture);
  const KernelView view(binary, binary.find_variant(variant));
  const ReportOptions report_options{
      .root = options.root, .line_numbers = true, .fold = !options.unfold && !options.full};
  fmt::print("{}, variant {}: {}\ncompiled for {} by nvcc {}, disassembled by nvdisasm {}\nkernel {}\n\n",
             step, view.variant.name, view.variant.summary, binary.target, toolchain.compiler_version,
             toolchain.disassembler_version, demangle(view.function->name));
  if (options.full)
    fmt::print("{}\n{}\n{}", resource_lines(view), mix_table(view), full_listing(view, report_options));
  else
    fmt::print("{}", report(view, report_options));
  return harness::kExitOk;
}

int show_diff(const Options& options) {
  const auto [left_name, left_variant] = split_variant(options.names[0], options.variant);
  const auto [right_name, right_variant] = split_variant(options.names[1], options.variant);
  const std::string left_step = find_step(options.root, left_name);
  const std::string right_step = find_step(options.root, right_name);
  const Toolchain toolchain = find_toolchain(options.root);
  const StepBinary left = build_step(toolchain, options.root, left_step, options.architecture);
  const StepBinary right = build_step(toolchain, options.root, right_step, options.architecture);
  const KernelView left_view(left, left.find_variant(left_variant));
  const KernelView right_view(right, right.find_variant(right_variant));
  fmt::print("{}", diff(left_view, right_view, left_step.substr(0, 2) + ":" + left_view.variant.name,
                        right_step.substr(0, 2) + ":" + right_view.variant.name));
  return harness::kExitOk;
}

/// The document with the opcode table put between its markers.
std::string with_opcodes(const std::string& document) {
  const auto begin = document.find(kOpcodesBegin);
  const auto end = document.find(kOpcodesEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw Error("docs/sass.md has lost the markers of its opcode table");
  return document.substr(0, begin) + kOpcodesBegin + opcode_markdown() + document.substr(end);
}

int update(const Options& options) {
  const auto steps = steps_of(options, options.names);
  const Toolchain toolchain = find_toolchain(options.root);
  const auto write_changed = [&](const fs::path& path, const std::string& text) {
    const bool changed = !fs::exists(path) || read_file(path) != text;
    if (changed) write_file(path, text);
    fmt::print("{} {}\n", fs::relative(path, options.root).string(), changed ? "written" : "is up to date");
  };
  for (const std::string& step : steps) {
    const StepBinary binary = build_step(toolchain, options.root, step);
    write_changed(options.root / "steps" / step / "sass.txt", listing_file(binary, toolchain, options.root));
  }
  const fs::path document = options.root / "docs" / "sass.md";
  if (fs::exists(document)) write_changed(document, with_opcodes(read_file(document)));
  return harness::kExitOk;
}

/// Expectations and the committed listing of one step. Prints what is wrong.
bool check_step(const Options& options, const Toolchain& toolchain, const std::string& step) {
  const fs::path folder = options.root / "steps" / step;
  const fs::path expectations = folder / "expect.json";
  if (!fs::exists(expectations))
    throw Error(fmt::format(
        "step {} has no expect.json: write one that says what its machine code must contain", step));
  const ExpectationFile file =
      parse_expectations(read_file(expectations), fmt::format("steps/{}/expect.json", step));
  const StepBinary binary = options.objects.empty() ? build_step(toolchain, options.root, step)
                                                    : read_built_step(toolchain, options.root, step,
                                                                      options.objects, options.linked);
  bool ok = true;
  const auto violations = check(binary, file);
  if (!violations.empty()) {
    fmt::print("steps/{}/expect.json: {} expectations are not met\n", step, violations.size());
    for (const Violation& violation : violations) fmt::print("{}", to_string(violation));
    ok = false;
  }
  std::size_t count = 0;
  for (const VariantExpectations& variant : file.variants) count += variant.list.size() + 1;

  std::string listing_state = "listing up to date";
  const fs::path listing_path = folder / "sass.txt";
  const std::string fresh = listing_file(binary, toolchain, options.root);
  const std::string committed = fs::exists(listing_path) ? read_file(listing_path) : "";
  if (committed == fresh) {
  } else if (!committed.empty() && version_line(committed) != version_line(fresh)) {
    listing_state = fmt::format("the listing was not compared: it was {}, here it is {}",
                                version_line(committed), version_line(fresh));
  } else {
    fmt::print("steps/{}/sass.txt is {}: run 'tools/sass update {}'\n", step,
               committed.empty() ? "missing" : "out of date", step.substr(0, 2));
    const auto before = split_lines(committed);
    const auto now = split_lines(fresh);
    const auto [left, right] = std::mismatch(before.begin(), before.end(), now.begin(), now.end());
    const auto line_at = [](const auto& lines, auto place) {
      return place == lines.end() ? std::string("(nothing)") : std::string(*place);
    };
    if (!committed.empty())
      fmt::print("  its line {}:  {}\n  and it is now: {}\n", left - before.begin() + 1,
                 line_at(before, left), line_at(now, right));
    ok = false;
  }
  if (ok)
    fmt::print("{}: {} expectations met in {} variants, {}\n", step, count, file.variants.size(),
               listing_state);
  return ok;
}

int check_steps(const Options& options) {
  const auto steps = steps_of(options, options.names);
  if (!options.objects.empty() && steps.size() != 1) throw Error("an object is that of one step");
  const Toolchain toolchain = find_toolchain(options.root);
  bool ok = true;
  for (const std::string& step : steps) ok = check_step(options, toolchain, step) && ok;
  return ok ? harness::kExitOk : kExitViolation;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app(
      "The machine code of a step: tools/sass 03 finds the main loop, prints it annotated, and counts what "
      "it is made of.\n"
      "Needs nvcc, nvdisasm and cuobjdump, but no GPU. docs/sass.md explains how to read the listing.",
      "tools/sass");
  app.footer(
      "tools/sass 03 --variant 64     another variant\n"
      "tools/sass 03 --full           the whole kernel, with real registers and addresses\n"
      "tools/sass diff 02 03          two main loops side by side (also 03:128 03:64)\n"
      "tools/sass check [NN ...]      do expect.json and sass.txt of the steps hold?\n"
      "tools/sass update [NN ...]     write sass.txt anew");
  app.add_option("--root", options.root)->group("");
  app.add_option("--object", options.objects)->group("");
  app.add_option("--linked", options.linked)->group("");
  app.add_option("--arch", options.architecture, "target to compile for, instead of the step's own")
      ->check(CLI::IsMember({"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a"}));
  app.add_option("words", options.names,
                 "a step (03, 03_register_tile, 03:64), or diff, check or update and steps");
  app.add_option("--variant", options.variant, "variant of the step; the first one if left out");
  app.add_flag("--full", options.full, "print the whole kernel instead of the main loop");
  app.add_flag("--unfold", options.unfold, "print every instruction of long runs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ExtrasError& error) {
    const std::vector<std::string> known = {"--variant", "--full", "--unfold", "--arch", "--help"};
    const std::string flag = app.remaining().empty() ? "" : app.remaining().front();
    const std::string nearest = harness::nearest_match(flag, known);
    throw Error(fmt::format(
        "unknown flag '{}'{}", flag,
        nearest.empty() ? "; --help lists the known ones" : fmt::format("; did you mean '{}'?", nearest)));
  } catch (const CLI::ParseError& error) {
    throw Error(error.what());
  }

  if (options.names.empty())
    throw Error("no step named: write for example 'tools/sass 03'; --help says what else there is");
  const std::string command = options.names.front();
  if (command != "diff" && command != "check" && command != "update") {
    if (options.names.size() > 1)
      throw Error(fmt::format("'{}' is one step too many; 'tools/sass diff {} {}' compares two",
                              options.names[1], options.names[0], options.names[1]));
    return show(options);
  }
  options.names.erase(options.names.begin());
  if (command == "check") return check_steps(options);
  if (command == "update") return update(options);
  if (options.names.size() != 2)
    throw Error("diff compares two steps: write for example 'tools/sass diff 02 03'");
  return show_diff(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const MissingTool& missing) {
    std::fprintf(stderr, "error: %s\n", missing.what());
    return kExitSkipped;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return harness::kExitUsage;
  }
}
