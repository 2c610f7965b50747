// play_mbarrier: the script language, the rows, the emulator's reports.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/backend/backend.h"
#include "mbarrier_script.h"
#include "run_play.h"

using namespace play_test;
using play::Verb;

namespace {

std::vector<std::string> texts(const std::string& script) {
  std::vector<std::string> result;
  for (const play::Event& event : play::parse_script(script)) result.push_back(event.text);
  return result;
}

}  // namespace

TEST_CASE("mbarrier scripts: separators, comments, words that only help reading") {
  const std::vector<std::string> expected = {"init 2", "arrive_expect 1024", "complete 512", "wait 0"};
  CHECK(texts("init 2, arrive_expect 1024, complete 512, wait 0") == expected);
  CHECK(texts("init 2; arrive_expect 1024 bytes;complete 0x200 ,, wait parity 0;") == expected);
  CHECK(texts("init 2 # two arrivals, arrive\narrive_expect 1024\n\n  complete 512\nwait 0") == expected);
  CHECK(texts("init 1, arrive 3, inval") ==
        std::vector<std::string>{"init 1", "arrive", "arrive", "arrive", "inval"});
  CHECK(play::parse_script("expect 1048575").front() ==
        play::Event{Verb::kExpect, 1048575, "expect 1048575"});
}

TEST_CASE("mbarrier scripts: what is refused") {
  check_refused(play::mbarrier, "init 1, arive",
                {"unknown event 'arive'", "did you mean 'arrive'?", "arrive_expect"});
  check_refused(play::mbarrier, "init 1, xyzzy", {"unknown event 'xyzzy'", "the events are init, arrive"});
  check_refused(play::mbarrier, "init", {"'init' lacks its number", "arrivals"});
  check_refused(play::mbarrier, "wait", {"'wait' lacks its number", "parity"});
  check_refused(play::mbarrier, "init two", {"'two'", "whole number"});
  check_refused(play::mbarrier, "init -1", {"'-1'", "whole number"});
  check_refused(play::mbarrier, "init 1 arrive",
                {"'init 1 arrive' has too many words", "separated by commas"});
  check_refused(play::mbarrier, "inval 3", {"too many words"});
  check_refused(play::mbarrier, "expect 4294967296", {"4294967295"});
  for (const char* bytes : {"0", "8", "1040", "66560"})
    check_refused(play::mbarrier, std::string("init 1, complete ") + bytes,
                  {"cannot be one copy", "multiple of 16"});
  check_refused(play::mbarrier, "init 1, complete 65536, complete 65536, complete 65536, complete 16",
                {"196608 bytes in all"});
  std::string many = "init 1";
  for (int i = 1; i <= 17; ++i) many += ", complete " + std::to_string(16 * i);
  check_refused(play::mbarrier, many, {"more than 16 different sizes"});
  check_refused(play::mbarrier, ",", {"no events"});
  check_refused(play::mbarrier, "init 1, arrive 1000", {"more than 1000 events"});
  check_refused(play::mbarrier, "--file /nonexistent/script", {"'/nonexistent/script' cannot be read"});
  check_refused(play::mbarrier, "--file /", {"'/' cannot be read"});
  check_refused(play::mbarrier, "init 1 --json /nonexistent/file", {"'/nonexistent/file' cannot be written"});
  check_refused(play::mbarrier, "init 1, arrive 0", {"'arrive 0' does nothing"});
  check_refused(play::mbarrier, "--file x init 1", {"give one of them"});
  check_refused(play::mbarrier, "--fiel x", {"'--fiel'", "did you mean '--file'?"});
}

TEST_CASE("play mbarrier: rows") {
  const Ran ran =
      run(play::mbarrier, "init 2, arrive_expect 1024, complete 512, arrive, complete 512, wait 0, test 1");
  INFO(ran.errors);
  CHECK(ran.status == 0);
  CHECK(ran.errors.empty());
  CHECK(
      ran.text ==
      R"(event               word                phase         arrivals missing  bytes missing  wait parity 0  wait parity 1  answer
init 2              0x7ffff000001ffffc  0 (parity 0)  2 of 2            0              waits          passes
arrive_expect 1024  0x7ffffbff801ffffc  0 (parity 0)  1 of 2            1024           waits          passes
complete 512        0x7ffffbffc01ffffc  0 (parity 0)  1 of 2            512            waits          passes
arrive              0x000003ffc01ffffc  0 (parity 0)  0 of 2            512            waits          passes
complete 512        0xfffff000001ffffc  1 (parity 1)  2 of 2            0              passes         waits
wait 0              0xfffff000001ffffc  1 (parity 1)  2 of 2            0              passes         waits          passed
test 1              0xfffff000001ffffc  1 (parity 1)  2 of 2            0              passes         waits          no: not complete
)");
}

TEST_CASE("play mbarrier: bytes that come before they are expected") {
  const Ran ran = run(play::mbarrier, "init 1, complete 512, arrive_expect 512, wait 0, inval");
  INFO(ran.errors);
  CHECK(ran.status == 0);
  check_text(ran.text, {"complete 512       0x7ffff800401ffffe  0 (parity 0)  1 of 1            -512 ",
                        "arrive_expect 512  0xfffff800001ffffe  1 (parity 1)  1 of 1            0 ",
                        "inval              no barrier any more\n"});
}

TEST_CASE("play mbarrier: without a script an example with its comments") {
  const Ran ran = run(play::mbarrier, "");
  CHECK(ran.status == 0);
  check_text(ran.text,
             {"# a phase takes two arrivals", "wait 1              0x7ffff000001ffffc  2 (parity 0)"});
  CHECK(contains(run(play::mbarrier, "--help").text, "mbarrier.arrive.expect_tx"));
}

TEST_CASE("play mbarrier: the emulator names what is wrong, behind the rows so far") {
  struct Case {
    const char* script;
    const char* event;
    const char* rule;
    std::size_t rows;
  };
  for (const Case& c :
       {Case{"arrive", "event 1, 'arrive'", "mbarrier-uninitialised", 0},
        Case{"init 0", "event 1, 'init 0'", "mbarrier-count", 0},
        Case{"init 1, init 1", "event 2, 'init 1'", "mbarrier-reinitialised", 1},
        Case{"init 1, wait 0", "event 2, 'wait 0'", "deadlock", 1},
        Case{"init 1, test 2", "event 2, 'test 2'", "mbarrier-parity", 1},
        Case{"init 2, arrive_expect 512, arrive 2", "event 4, 'arrive'", "mbarrier-arrivals", 3},
        Case{"init 1, arrive_expect 512, complete 1024", "event 3, 'complete 1024'", "expect-tx-small", 2},
        Case{"init 1, expect 1048576", "event 2, 'expect 1048576'", "mbarrier-tx-overflow", 1},
        Case{"init 1, expect 16, inval", "event 3, 'inval'", "mbarrier-invalidated-in-use", 2},
        Case{"init 1, inval, arrive", "event 3, 'arrive'", "mbarrier-uninitialised", 2},
        Case{"init 1, expect 16", "after the last event", "exit-in-flight", 2}}) {
    const Ran ran = run(play::mbarrier, c.script);
    INFO(c.script << "\n" << ran.text << ran.errors);
    CHECK(ran.status == harness::kExitEmulator);
    CHECK(ran.errors.rfind(std::string(c.event) + ": the emulator reports " + c.rule + "\n", 0) == 0);
    CHECK(static_cast<std::size_t>(std::count(ran.text.begin(), ran.text.end(), '\n')) == c.rows + 1);
    CHECK(contains(ran.errors, "PTX ISA"));
  }
}

TEST_CASE("mbarrier scripts: the same rows as JSON") {
  const std::string path = GEMM_BUILD_DIR "/mbarrier.json";
  const auto written = [&](const std::string& script, int status) {
    CHECK(run(play::mbarrier, script + " --json " + path).status == status);
    std::ifstream file(path);
    return nlohmann::json::parse(file);
  };
  const nlohmann::json good = written("init 2, arrive_expect 1024, complete 1024, arrive, wait 0", 0);
  REQUIRE(good["events"].size() == 5);
  CHECK(good["events"][1]["event"] == "arrive_expect 1024");
  CHECK(good["events"][1]["word"] == "0x7ffffbff801ffffc");
  CHECK(good["events"][1]["tx"] == 1024);
  CHECK(good["events"][3]["phase"] == 1);
  CHECK(good["events"][4]["answer"] == "passed");
  CHECK(good["ending"] == "");
  const nlohmann::json stuck = written("init 2, arrive, wait 0", harness::kExitEmulator);
  CHECK(stuck["events"].size() == 2);
  CHECK(stuck["stopped_at"] == "wait 0");
  CHECK(contains(stuck["report"].get<std::string>(), "deadlock"));
}
