#include "emulator/report/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>

#include "emulator/ledger/ledger.h"
#include "emulator/machine/machine.h"

namespace emulator {
namespace {

struct Totals {
  std::uint64_t requests = 0, threads = 0, bytes = 0;
  std::uint64_t sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0;
  void add(const Totals& other) {
    requests += other.requests;
    threads += other.threads;
    bytes += other.bytes;
    sectors += other.sectors;
    ideal_sectors += other.ideal_sectors;
    wavefronts += other.wavefronts;
    ideal_wavefronts += other.ideal_wavefronts;
  }
};

/// One warp's execution of an instruction, as its lanes arrive.
struct Request {
  std::uint32_t lanes = 0;
  unsigned bytes = 0;  // per lane
  bool shared = false;
  bool second_half = false;  // of an instruction that is counted already
  std::array<std::uintptr_t, 32> addresses{};
};

struct Site {
  const char* instruction;
  std::uint64_t where;
  bool operator==(const Site&) const = default;
};
struct SiteHash {
  std::size_t operator()(const Site& site) const {
    return std::hash<std::uint64_t>()(site.where * 0x9e3779b97f4a7c15u ^
                                      reinterpret_cast<std::uintptr_t>(site.instruction));
  }
};

/// Different values of address / unit over the lanes in `lanes`.
std::size_t distinct(const Request& request, std::uint32_t lanes, std::uintptr_t unit) {
  std::array<std::uintptr_t, 64> values;
  std::size_t count = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    const std::uintptr_t first = request.addresses[lane] / unit;
    const std::uintptr_t last = (request.addresses[lane] + request.bytes - 1) / unit;
    for (std::uintptr_t value = first; value <= last && count < values.size(); ++value)
      values[count++] = value;
  }
  std::sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<std::size_t>(
      std::unique(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)) - values.begin());
}

/// Passes over the banks that these lanes need together: the largest number of different 4-byte words in one
/// bank. Lanes that touch the same word share it.
std::size_t passes(const Request& request, std::uint32_t lanes) {
  std::array<std::uintptr_t, 128> words;
  std::size_t count = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    for (unsigned byte = 0; byte < request.bytes; byte += 4)
      words[count++] = (request.addresses[lane] + byte) / 4;
  }
  std::sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
  std::array<std::size_t, 32> in_bank{};
  std::size_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0 && words[i] == words[i - 1]) continue;
    most = std::max(most, ++in_bank[words[i] % 32]);
  }
  return most;
}

Totals measure(const Request& request) {
  Totals totals;
  const auto lanes = static_cast<std::uint64_t>(std::popcount(request.lanes));
  if (!request.second_half) {
    totals.requests = 1;
    totals.threads = lanes;
    totals.bytes = lanes * request.bytes;
  }
  if (request.shared) {
    // 32 banks x 4 bytes a pass: 8-byte accesses go half a warp at a time, 16-byte accesses a quarter.
    const unsigned groups = request.bytes <= 4 ? 1 : request.bytes / 4;
    const unsigned lanes_per_group = 32 / groups;
    for (unsigned group = 0; group < groups; ++group) {
      const std::uint32_t mask =
          lanes_per_group == 32 ? 0xffffffffu : ((1u << lanes_per_group) - 1) << (group * lanes_per_group);
      if (!(request.lanes & mask)) continue;
      totals.wavefronts += passes(request, request.lanes & mask);
      totals.ideal_wavefronts += 1;
    }
  } else {
    totals.sectors = distinct(request, request.lanes, 32);
    // Different bytes, rounded up to sectors. An access is at most 16 bytes and aligned, so count its units.
    totals.ideal_sectors = (distinct(request, request.lanes, request.bytes) * request.bytes + 31) / 32;
  }
  return totals;
}

struct Global {
  std::mutex mutex;
  std::unordered_map<Site, Totals, SiteHash> totals;
};
Global& global() {
  static Global instance;
  return instance;
}

/// What an OS thread gathers for the CTA it runs; emptied at each barrier of the CTA and when the CTA ends.
struct Stream {
  std::array<std::uint32_t, 32> position{};  // requests each lane has taken part in
  std::vector<Request> open;
};
struct StreamKey {
  const Cta* cta;
  int warp;
  bool shared;
  Site site;
  bool operator==(const StreamKey&) const = default;
};
struct StreamKeyHash {
  std::size_t operator()(const StreamKey& key) const {
    return SiteHash()(key.site) * 31 + static_cast<std::size_t>(key.warp * 2 + key.shared) +
           (reinterpret_cast<std::uintptr_t>(key.cta) >> 4);
  }
};
struct Local {
  std::unordered_map<StreamKey, Stream, StreamKeyHash> streams;
  std::unordered_map<Site, Totals, SiteHash> totals;
  // The streams that the innermost loop is likely to need next.
  struct Recent {
    StreamKey key{};
    Stream* stream = nullptr;
  };
  std::array<Recent, 64> recent{};

  Stream& stream(const StreamKey& key) {
    Recent& candidate = recent[StreamKeyHash()(key) % recent.size()];
    if (!candidate.stream || !(candidate.key == key)) candidate = {key, &streams[key]};
    return *candidate.stream;
  }
  void forget_streams() {
    streams.clear();
    recent.fill({});
  }
};
thread_local Local local;

}  // namespace

void count_instruction(const char* instruction, Where where, unsigned requests, unsigned threads,
                       std::uint64_t bytes) {
  Totals& totals = local.totals[{instruction, where.packed()}];
  totals.requests += requests;
  totals.threads += threads;
  totals.bytes += bytes;
}

void count_access(const char* instruction, bool shared, const void* address, unsigned bytes, Where where) {
  const Thread& thread = this_thread(instruction, where);
  if (ledger_on() && shared && std::strncmp(instruction, "cp_async", 8) != 0)
    ledger_access(address, bytes, std::strcmp(instruction, "ld_shared") != 0, where);
  const Site site{instruction, where.packed()};
  Stream& stream = local.stream({thread.cta, thread.warp(), shared, site});
  const auto lane = static_cast<unsigned>(thread.lane());
  const std::uint32_t index = stream.position[lane]++;
  if (index >= stream.open.size()) stream.open.resize(index + 1);
  Request& request = stream.open[index];
  request.lanes |= 1u << lane;
  request.bytes = bytes;
  request.shared = shared;
  request.second_half = !shared && std::strncmp(instruction, "cp_async", 8) == 0;
  request.addresses[lane] = reinterpret_cast<std::uintptr_t>(address);
}

void count_rows(const char* instruction, const void* const* rows, unsigned count, Where where) {
  Totals& totals = local.totals[{instruction, where.packed()}];
  totals.bytes += std::uint64_t{16} * count;
  for (unsigned i = 0; i < count && ledger_on(); ++i)
    ledger_access(rows[i], 16, std::strncmp(instruction, "stmatrix", 8) == 0, where);
  for (unsigned first = 0; first < count; first += 8) {
    Request request;
    request.bytes = 16;
    for (unsigned i = first; i < count && i < first + 8; ++i) {
      request.lanes |= 1u << (i - first);
      request.addresses[i - first] = reinterpret_cast<std::uintptr_t>(rows[i]);
    }
    totals.wavefronts += passes(request, request.lanes);
    totals.ideal_wavefronts += 1;
  }
}

void realign_counters(Cta& cta) {
  for (auto& [key, stream] : local.streams) {
    if (key.cta != &cta) continue;
    Totals& totals = local.totals[key.site];
    for (const Request& request : stream.open) {
      if (request.lanes != 0) totals.add(measure(request));
    }
    stream.open.clear();
    stream.position.fill(0);
  }
}

void finish_counters(Gang& gang) {
  for (const auto& cta : gang.ctas) realign_counters(*cta);
  local.forget_streams();
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  for (const auto& [site, totals] : local.totals) g.totals[site].add(totals);
  local.totals.clear();
}

LineCounters Counters::total(const std::string& instruction) const {
  LineCounters sum;
  sum.instruction = instruction;
  for (const LineCounters& line : lines) {
    if (line.instruction != instruction) continue;
    sum.requests += line.requests;
    sum.threads += line.threads;
    sum.bytes += line.bytes;
    sum.sectors += line.sectors;
    sum.ideal_sectors += line.ideal_sectors;
    sum.wavefronts += line.wavefronts;
    sum.ideal_wavefronts += line.ideal_wavefronts;
  }
  return sum;
}

Counters counters() {
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  // The same line may have been compiled into several objects: add up by text.
  std::map<std::tuple<std::string, unsigned, std::string>, LineCounters> by_place;
  for (const auto& [site, totals] : g.totals) {
    const Where where = Where::from_packed(site.where);
    const std::string place = where.text();
    const std::size_t colon = place.rfind(':');
    const unsigned number =
        colon == std::string::npos ? 0 : static_cast<unsigned>(std::strtoul(&place[colon + 1], nullptr, 10));
    LineCounters& line = by_place[{place.substr(0, colon), number, site.instruction}];
    line.where = place;
    line.instruction = site.instruction;
    line.requests += totals.requests;
    line.threads += totals.threads;
    line.bytes += totals.bytes;
    line.sectors += totals.sectors;
    line.ideal_sectors += totals.ideal_sectors;
    line.wavefronts += totals.wavefronts;
    line.ideal_wavefronts += totals.ideal_wavefronts;
  }
  Counters result;
  for (auto& [key, line] : by_place) {
    if (line.requests == 0) line.requests = (line.threads + kWarpSize - 1) / kWarpSize;  // fences: by thread
    result.lines.push_back(line);
  }
  return result;
}

void reset_counters() {
  Global& g = global();
  const std::lock_guard lock(g.mutex);
  g.totals.clear();
}

std::string Counters::to_text() const {
  if (lines.empty()) return "no instruction was counted\n";
  std::size_t width = 5;
  for (const LineCounters& line : lines) width = std::max(width, line.where.size());
  auto ratio = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? std::string("-")
                      : fmt::format("{:.2f}", static_cast<double>(part) / static_cast<double>(whole));
  };
  auto number = [](std::uint64_t value) { return value == 0 ? std::string("-") : fmt::format("{}", value); };
  std::string text = fmt::format("{:<{}}  {:<22} {:>12} {:>14} {:>12} {:>8} {:>12} {:>12} {:>8}\n", "place",
                                 width, "instruction", "requests", "bytes", "sectors", "/request",
                                 "wavefronts", "conflicts", "/ideal");
  auto row = [&](const std::string& place, const LineCounters& line) {
    text += fmt::format("{:<{}}  {:<22} {:>12} {:>14} {:>12} {:>8} {:>12} {:>12} {:>8}\n", place, width,
                        line.instruction, line.requests, number(line.bytes), number(line.sectors),
                        line.sectors == 0 ? "-" : ratio(line.sectors, line.requests), number(line.wavefronts),
                        line.wavefronts == 0 ? "-" : fmt::format("{}", line.conflicts()),
                        line.wavefronts == 0 ? "-" : ratio(line.wavefronts, line.ideal_wavefronts));
  };
  std::set<std::string> instructions;
  for (const LineCounters& line : lines) {
    row(line.where, line);
    instructions.insert(line.instruction);
  }
  for (const std::string& instruction : instructions) row("all", total(instruction));
  return text;
}

}  // namespace emulator
