// The barrier ledger in a chapter is what the step does.
//
//   <!-- ledger: 256x256x512 -->      of the default variant at this shape; "256x256x512 NAME" of another one
//   | barrier | count | ... | protects against |
//   <!-- /ledger -->
//
// All columns but the last come from the run. The last says what would go wrong without the barrier, and is
// written by hand; a row keeps it while its barrier keeps its name. To write the tables anew:
// GEMM_STEPS_UPDATE_PAGES=1 build/emulator/tests/tests_steps_NN "[ledger]"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "harness/backend/emulator_control.h"
#include "steps/generated_tables.h"
#include "steps/verify_shape.h"

namespace {

using Cells = std::vector<std::string>;

std::string line_of(const Cells& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

/// The cells of a line of a table, without the blanks around them.
Cells cells_of(const std::string& line) {
  Cells cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    const std::size_t begin = std::min(cell.find_first_not_of(' '), cell.size());
    cells.push_back(cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
  }
  return cells;
}

nlohmann::json ledger_of_launch(const gemm::Step& step, const gemm::Variant& variant,
                                const gemm::Shape& shape) {
  harness::control_emulator({});
  harness::Workload workload(shape, harness::Pattern::kExact, 1, harness::form_of(step, variant));
  workload.poison();
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  harness::begin_emulator_ledger();
  launcher(nullptr);
  const std::string ledger = harness::take_emulator_ledger().json;
  CHECK(workload.check(variant.tile).ok);
  return nlohmann::json::parse(ledger);
}

/// The rows with what `old` says of the barriers in its last column.
std::string table_of(const nlohmann::json& ledger, const std::string& old) {
  std::map<std::string, std::string> prose;
  std::istringstream lines(old);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('|')) continue;
    const Cells cells = cells_of(line);
    prose[cells.front()] = cells.back();
  }
  const auto or_dash = [](const std::string& text) { return text.empty() ? std::string("–") : text; };
  std::vector<Cells> rows{
      {"barrier", "count", "arrives", "waits", "first phase waited for", "orders", "protects against"}};
  bool has_phases = false;
  for (const nlohmann::json& row : ledger["barriers"]) {
    std::string name = row["barrier"];
    const std::size_t comma = name.find(',');  // "__syncthreads, first"
    if (row["kind"] == "mbarrier") {
      name = "`" + name + "`";
      has_phases = true;
    } else if (!name.starts_with("named") && !name.starts_with("cluster")) {
      name = "`" + name.substr(0, comma) + "`" + (comma == std::string::npos ? "" : name.substr(comma));
    }
    Cells orders;
    for (const nlohmann::json& bytes : row["orders"]) {
      orders.push_back(fmt::format("{}, then {}: {} bytes", bytes["before"].get<std::string>(),
                                   bytes["after"].get<std::string>(), bytes["bytes"].get<std::uint64_t>()));
    }
    const auto found = prose.find(name);
    rows.push_back({name, or_dash(row["count"]), row["arrives"], row["waits"], or_dash(row["first_phase"]),
                    or_dash(fmt::format("{}", fmt::join(orders, "; "))),
                    found == prose.end() ? "TODO: what would go wrong without it" : found->second});
  }
  std::string table;
  for (Cells& row : rows) {
    if (!has_phases) row.erase(row.begin() + 4);
    table += line_of(row);
    if (&row != &rows.front()) continue;
    table += "|";
    for (std::size_t i = 0; i < row.size(); ++i) table += "---|";
    table += "\n";
  }
  return table;
}

}  // namespace

TEST_CASE("the chapter's ledger is what the step does", "[emulator][ledger]") {
  if (skip_without_emulator()) return;
  const gemm::Step& step = step_under_test();
  check_or_write_tables(
      std::string(GEMM_SOURCE_DIR "/steps/") + step.name + "/README.md",
      "<!-- ledger: (\\d+)x(\\d+)x(\\d+)( \\S+)? -->", "<!-- /ledger -->",
      [&](const std::smatch& match, const std::string& old) {
        const gemm::Shape shape{std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3])};
        const std::string name = match[4];
        const gemm::Variant& variant = name.empty() ? step.variants.front() : variant_named(name.substr(1));
        return table_of(ledger_of_launch(step, variant, shape), old);
      });
}
