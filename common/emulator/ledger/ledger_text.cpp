// harness/backend/emulator_control.h: the ledger as a table, and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "emulator/ledger/ledger.h"
#include "emulator/ledger/record.h"
#include "emulator/machine/options.h"
#include "emulator/report/counters.h"
#include "harness/backend/emulator_control.h"

namespace harness {
namespace {

using Cells = std::vector<std::string>;

/// The chapters' columns. What an instruction has none of is a dash.
std::string table_of(const std::vector<const emulator::LedgerRow*>& rows) {
  std::vector<Cells> lines{{"barrier", "count", "arrives", "waits", "first phase waited for", "orders"}};
  const auto or_else = [](const std::string& text, const char* otherwise) {
    return text.empty() ? otherwise : text;
  };
  for (const emulator::LedgerRow* row : rows) {
    lines.push_back({row->barrier, or_else(row->count, "-"), or_else(row->arrives, "nobody"),
                     or_else(row->waits, "nobody"), or_else(row->first, "-"),
                     or_else(row->bytes_text(), "-")});
  }
  std::vector<std::size_t> widths(lines.front().size());
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const Cells& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) text += fmt::format("| {:<{}} ", line[i], widths[i]);
    text += "|\n";
    if (&line != &lines.front()) continue;
    for (const std::size_t width : widths) text += fmt::format("|{:-<{}}", "", width + 2);
    text += "|\n";
  }
  return text;
}

std::string text_of(const emulator::Ledger& ledger) {
  if (ledger.rows.empty()) return "no barrier was used\n";
  std::string text;
  for (std::size_t begin = 0; begin < ledger.rows.size();) {
    const std::uint64_t launch = ledger.rows[begin].launch;
    std::vector<const emulator::LedgerRow*> rows;
    while (begin < ledger.rows.size() && ledger.rows[begin].launch == launch)
      rows.push_back(&ledger.rows[begin++]);
    if (ledger.rows.front().launch != ledger.rows.back().launch)
      text += fmt::format("{}launch {}:\n", text.empty() ? "" : "\n", launch);
    for (const emulator::LedgerRole& role : ledger.roles) {
      if (role.launch == launch) text += role.text + "\n";
    }
    text += "\n" + table_of(rows) + "\n";
    for (const emulator::LedgerRow* row : rows) {
      text += fmt::format("{}: {}{}\n", row->barrier, row->where,
                          row->kind == "wait for groups"
                              ? ""
                              : fmt::format(", {} phase{}", row->phases, row->phases == 1 ? "" : "s"));
    }
  }
  if (ledger.ctas > ledger.ctas_seen)
    text += ledger.ctas_seen < std::min(ledger.ctas, emulator::kRecordedCtas)
                ? fmt::format(
                      "recorded: {} of {} CTAs; the others did not begin, because other CTAs took their "
                      "tiles or the run ended before\n",
                      ledger.ctas_seen, ledger.ctas)
                : fmt::format("recorded: the first {} of {} CTAs\n", ledger.ctas_seen, ledger.ctas);
  return text;
}

std::string json_of(const emulator::Ledger& ledger) {
  nlohmann::ordered_json document;
  document["schema"] = 1;
  document["ctas"] = {{"recorded", ledger.ctas_seen}, {"launched", ledger.ctas}};
  document["roles"] = nlohmann::ordered_json::array();
  for (const emulator::LedgerRole& role : ledger.roles)
    document["roles"].push_back({{"launch", role.launch}, {"role", role.text}});
  document["barriers"] = nlohmann::ordered_json::array();
  for (const emulator::LedgerRow& row : ledger.rows) {
    nlohmann::ordered_json one = {
        {"launch", row.launch}, {"kind", row.kind},         {"barrier", row.barrier},
        {"where", row.where},   {"count", row.count},       {"arrives", row.arrives},
        {"waits", row.waits},   {"first_phase", row.first}, {"phases", row.phases}};
    one["orders"] = nlohmann::ordered_json::array();
    for (const emulator::LedgerBytes& bytes : row.bytes) {
      one["orders"].push_back({{"before", bytes.before},
                               {"proxy_before", bytes.proxy_before},
                               {"after", bytes.after},
                               {"proxy_after", bytes.proxy_after},
                               {"bytes", bytes.bytes}});
    }
    document["barriers"].push_back(one);
  }
  return document.dump(2) + "\n";
}

}  // namespace

void begin_emulator_ledger() {
  emulator::Options options = emulator::options();
  options.counters = true;  // plain accesses are told to the ledger where they are counted
  emulator::set_options(options);
  emulator::begin_ledger();
}

EmulatorLedger take_emulator_ledger() {
  const emulator::Ledger ledger = emulator::end_ledger();
  emulator::Options options = emulator::options();
  options.counters = false;
  emulator::set_options(options);
  emulator::reset_counters();
  return {.text = text_of(ledger), .json = json_of(ledger), .empty = ledger.rows.empty()};
}

}  // namespace harness
