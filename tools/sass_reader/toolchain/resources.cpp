#include "toolchain/resources.h"

#include <charconv>

#include "text.h"

namespace sass {
namespace {

/// The number that ends just before `suffix` ("12 bytes spill stores" -> 12); 0 when
/// the suffix does not occur.
int number_before(std::string_view text, std::string_view suffix) {
  const auto position = text.find(suffix);
  if (position == std::string_view::npos) return 0;
  std::string_view head = trim(text.substr(0, position));
  const auto start = head.find_last_not_of("0123456789");
  if (start != std::string_view::npos) head.remove_prefix(start + 1);
  int value = 0;
  std::from_chars(head.data(), head.data() + head.size(), value);
  return value;
}

/// The number right behind `prefix` ("REG:30" -> 30).
int number_after(std::string_view text, std::string_view prefix) {
  const auto position = text.find(prefix);
  if (position == std::string_view::npos) return 0;
  const std::string_view tail = text.substr(position + prefix.size());
  int value = 0;
  std::from_chars(tail.data(), tail.data() + tail.size(), value);
  return value;
}

std::string between(std::string_view text, std::string_view open, std::string_view close) {
  const auto start = text.find(open);
  if (start == std::string_view::npos) return "";
  const auto from = start + open.size();
  const auto end = text.find(close, from);
  return std::string(text.substr(from, end == std::string_view::npos ? end : end - from));
}

}  // namespace

PtxasLog parse_ptxas_log(std::string_view text) {
  constexpr std::string_view kInfo = "ptxas info";
  PtxasLog log;
  std::string function;
  for (const std::string& whole : split_lines(text)) {
    const std::string_view line = trim(whole);
    if (line.find("Compiling entry function") != std::string_view::npos) {
      function = between(line, "function '", "'");
      log.targets[function] = between(line, "for '", "'");
      log.functions[function];
    } else if (line.find("Function properties for ") != std::string_view::npos) {
      // The properties of functions that were not inlined follow; they are reported, but are no kernels.
      function = std::string(trim(line.substr(line.find("for ") + 4)));
      log.functions[function];
    } else if (line.find("bytes stack frame") != std::string_view::npos) {
      Resources& resources = log.functions[function];
      resources.stack_bytes = number_before(line, "bytes stack frame");
      resources.spill_store_bytes = number_before(line, "bytes spill stores");
      resources.spill_load_bytes = number_before(line, "bytes spill loads");
    } else if (line.find("Used ") != std::string_view::npos &&
               line.find("registers") != std::string_view::npos) {
      log.functions[function].registers = number_before(line, "registers");
      log.functions[function].shared_bytes = number_before(line, "bytes smem");
    } else if (line.starts_with("ptxas") &&
               (!line.starts_with(kInfo) || line.find("(C7") != std::string_view::npos ||
                line.find("Potential Performance Loss") != std::string_view::npos)) {
      log.notes.emplace_back(line);
    }
  }
  return log;
}

std::map<std::string, Resources> parse_resource_usage(std::string_view text) {
  std::map<std::string, Resources> result;
  std::string function;
  for (const std::string& whole : split_lines(text)) {
    const std::string_view line = trim(whole);
    if (line.starts_with("Function ")) {
      function = between(line, "Function ", ":");
    } else if (line.find("REG:") != std::string_view::npos && !function.empty()) {
      Resources& resources = result[function];
      resources.registers = number_after(line, "REG:");
      resources.stack_bytes = number_after(line, "STACK:");
      resources.shared_bytes = number_after(line, "SHARED:");
    }
  }
  return result;
}

}  // namespace sass
