// An mbarrier, event by event: what arrives, what is missing, which waits would pass.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "command_line.h"
#include "harness/backend/backend.h"
#include "mbarrier_device.h"
#include "mbarrier_json.h"
#include "mbarrier_script.h"
#include "ptx/mbarrier_word.h"

namespace play {
namespace {

constexpr const char* kDefaultScript = R"(init 2                # a phase takes two arrivals
arrive_expect 1024    # the first one also expects 1024 bytes, which a copy will bring
complete 512          # half of them have arrived
arrive                # the second arrival; 512 bytes are still missing
complete 512          # the last bytes: phase 0 is complete, phase 1 begins with the same count
wait parity 0         # so a wait for parity 0 passes
arrive 2              # phase 1: two arrivals, and no bytes expected
wait parity 1)";

constexpr const char* kMbarrierFooter =
    R"(An mbarrier is a 64-bit object in shared memory that counts threads and bytes. It goes through phases. A phase
is complete when no arrival and no byte is missing any more. The next phase begins at once, with the same
number of arrivals. Phases are distinguished by their parity: the first has parity 0, the next 1, then 0 again. A
wait for parity p passes when the current phase has the other parity.

Events, separated by commas, semicolons or lines; # begins a comment:
  init N           mbarrier.init: N arrivals complete a phase
  arrive [N]       mbarrier.arrive, N times in a row
  expect N         mbarrier.expect_tx: this phase waits for N more bytes
  arrive_expect N  mbarrier.arrive.expect_tx: expects N bytes and then arrives
  complete N       a copy of N bytes (TMA, a real one) signals the barrier: mbarrier's complete-tx
  test P           mbarrier.test_wait.parity: is the phase of parity P complete? It never waits
  wait P           mbarrier.try_wait.parity in a loop: waits until it is complete
  inval            mbarrier.inval: the memory may be used for something else

Without events, the command runs a script of eight events with comments. One thread executes all events, so a wait for
something that comes later in the script never ends. Try it.

  tools/play mbarrier
  tools/play mbarrier init 1, wait 1            # a fresh barrier lets a wait for parity 1 pass
  tools/play mbarrier init 1, arrive 2, test 0  # one thread is too fast, and phase 0 looks incomplete again
  tools/play mbarrier init 1, complete 512, arrive_expect 512, wait 0   # bytes may come before they are expected
  tools/play mbarrier init 1, arrive_expect 512, complete 1024
  tools/play mbarrier init 2, arrive_expect 512, arrive, arrive
  tools/play mbarrier --json events.json        # the same as JSON

The word: the PTX ISA ("mbarrier") documents what the object holds and in which ranges (counts below 2^20,
bytes between -(2^20 - 1) and 2^20 - 1), and calls it opaque. The bits shown are those of an H200, found by
observation (ptx/mbarrier_word.h), and the emulator keeps the same bits: 1-20 minus the count, 21-41 minus the bytes
missing, 43-62 minus the arrivals missing, 63 the parity. No program may rely on them. On a GPU, the word is
read after mbarrier.inval, in a separate launch for each event. The columns "wait" show what mbarrier.test_wait
answers there, and "answer" is the answer of the event itself.)";

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  // A folder can be opened, and reads as nothing.
  if (!file || std::filesystem::is_directory(path))
    throw harness::Error(fmt::format("the script '{}' cannot be read", path));
  return text.str();
}

/// What would be undefined on a GPU and can be told from the script alone. The emulator reports all of it
/// itself.
void refuse_undefined(const std::vector<Event>& events) {
  constexpr std::uint32_t kMaxCount = (1u << 20) - 1;
  if (events.front().verb != Verb::kInit)
    throw harness::Error(
        fmt::format("the script begins with '{}'; on a GPU it must begin with init, because any other "
                    "use of the memory would be undefined (the emulator reports it)",
                    events.front().text));
  for (const Event& event : events) {
    if (event.verb == Verb::kInit && (event.value == 0 || event.value > kMaxCount))
      throw harness::Error(fmt::format("'{}': a phase must have 1 to {} arrivals", event.text, kMaxCount));
    if ((event.verb == Verb::kTest || event.verb == Verb::kWait) && event.value > 1)
      throw harness::Error(fmt::format("'{}': a parity must be 0 or 1", event.text));
  }
}

const char* wait_text(std::uint32_t complete, int parity) {
  return (complete >> parity & 1) != 0 ? "passes" : "waits";
}

void print_rows(const std::vector<Event>& events, const ScriptRun& run, Output& output) {
  std::size_t width = 13;
  for (const Event& event : events) width = std::max(width, event.text.size());
  const bool asks = std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.verb == Verb::kTest || event.verb == Verb::kWait;
  });
  output.text += fmt::format("{:<{}}  {:<18}  {:<12}  {:<16}  {:<13}  {:<13}  {}{}\n", "event", width, "word",
                             "phase", "arrivals missing", "bytes missing", "wait parity 0", "wait parity 1",
                             asks ? "  answer" : "");
  std::uint64_t phase = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Observation& seen = run.observations[i];
    if (seen.seen == 0) break;
    if (events[i].verb == Verb::kInval) {
      output.text += fmt::format("{:<{}}  no barrier any more\n", events[i].text, width);
      continue;
    }
    const gemm::ptx::MbarrierWord word = gemm::ptx::decode_mbarrier(seen.word);
    if (events[i].verb == Verb::kInit) phase = 0;
    phase += (phase & 1) != word.parity ? 1 : 0;  // no single event completes two
    std::string row = fmt::format(
        "{:<{}}  {:#018x}  {:<12}  {:<16}  {:<13}  {:<13}  {:<13}  {}", events[i].text, width, seen.word,
        fmt::format("{} (parity {})", phase, word.parity), fmt::format("{} of {}", word.pending, word.count),
        word.tx, wait_text(seen.complete, 0), wait_text(seen.complete, 1), answer_text(events[i], seen));
    row.erase(row.find_last_not_of(' ') + 1);
    output.text += row + '\n';
  }
}

}  // namespace

int mbarrier(const std::vector<std::string>& arguments, Output& output) {
  CLI::App app{"Runs a script of events on an mbarrier and decodes it after each one.",
               "tools/play mbarrier"};
  std::vector<std::string> words;
  std::string file;
  app.add_option("events", words, "The script (default: an example)");
  app.add_option("--file", file, "Read the script from this file");
  std::string json;
  app.add_option("--json", json, "Write the barrier after each event to this file instead");
  app.footer(kMbarrierFooter);
  return run(app, arguments, output, [&] {
    if (!file.empty() && !words.empty())
      throw harness::Error("there are events on the command line and a --file; give one of them");
    std::string script = kDefaultScript;
    if (!file.empty()) script = read_file(file);
    if (!words.empty()) {
      script.clear();
      for (const std::string& word : words) script += word + ' ';
    }
    const std::vector<Event> events = parse_script(script);
    const bool emulator = require_hopper();
    if (!emulator) refuse_undefined(events);
    if (!json.empty()) {
      const ScriptRun result = run_script(events, emulator);
      write_file(json, script_json(script, events, result));
      const Ending end = ending(events, result);
      output.text += fmt::format("{} of {} events are in {}\n", end.reached, events.size(), json);
      return end.status;
    }
    if (file.empty() && words.empty()) output.text += std::string(kDefaultScript) + "\n\n";
    const ScriptRun result = run_script(events, emulator);
    print_rows(events, result, output);
    const Ending end = ending(events, result);
    if (!end.sentence.empty()) output.errors += end.sentence + '\n';
    if (!result.rule.empty()) output.errors += result.report + '\n';
    return end.status;
  });
}

}  // namespace play
