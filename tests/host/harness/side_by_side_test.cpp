// Jobs in several processes: what is printed and recorded is what one process would print and record.
#include "harness/cli/side_by_side.h"

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.h"

namespace {

struct Done {
  bool ok;
  std::string printed;
  nlohmann::json record = nlohmann::json::array();
};

/// Runs the jobs with what they print kept in a file. A job that fails ends all.
template <typename Job>
Done run(std::size_t count, std::size_t processes, const Job& job) {
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  std::FILE* const file = std::tmpfile();
  dup2(fileno(file), STDOUT_FILENO);
  Done done{};
  try {
    done.ok = harness::run_side_by_side(
        count, processes, job, [&](std::size_t) { return count; }, done.record);
  } catch (const std::runtime_error& error) {
    done.printed = fmt::format("thrown: {}\n", error.what());
  }
  std::fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
  std::rewind(file);
  char part[256];
  while (const std::size_t bytes = std::fread(part, 1, sizeof part, file)) done.printed.append(part, bytes);
  std::fclose(file);
  return done;
}

std::string lines(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("job {}\n", i);
  return text;
}

}  // namespace

TEST_CASE("side by side: output and record are in order, whatever the number of processes") {
  for (const std::size_t processes : {1, 2, 3, 8}) {
    for (const std::size_t count : {0, 1, 2, 7, 40}) {
      INFO(processes << " processes, " << count << " jobs");
      const Done done = run(count, processes, [](std::size_t i, nlohmann::json& record) {
        usleep(1000 * static_cast<useconds_t>(i % 3));
        fmt::print("job {}\n", i);
        record.push_back({{"number", i}, {"process", getpid()}});
        return true;
      });
      CHECK(done.ok);
      CHECK(done.printed == lines(count));
      REQUIRE(done.record.size() == count);
      std::set<pid_t> used;
      for (std::size_t i = 0; i < count; ++i) {
        CHECK(done.record[i]["number"] == i);
        used.insert(done.record[i]["process"].get<pid_t>());
      }
      if (processes == 1) CHECK(used.size() <= 1);
      if (processes > 1 && count == 40) CHECK(used.size() >= 2);
      CHECK(used.size() <= processes);
    }
  }
}

TEST_CASE("side by side: what fails elsewhere is called again here, and nothing behind it is shown") {
  const pid_t here = getpid();
  for (const std::size_t processes : {1, 2, 4}) {
    for (const std::size_t failing : {0, 3, 9}) {
      INFO(processes << " processes, job " << failing);
      bool failed_here = false;
      const Done done = run(10, processes, [&](std::size_t i, nlohmann::json& record) {
        fmt::print("job {}\n", i);
        record.push_back(i);
        if (i == failing && getpid() == here) failed_here = true;
        return i != failing;
      });
      CHECK_FALSE(done.ok);
      CHECK(failed_here);
      CHECK(done.printed == lines(failing + 1));
      CHECK(done.record.size() == failing + 1);
    }
  }
}

TEST_CASE("side by side: a job that dies or throws elsewhere does so here") {
  const pid_t here = getpid();
  const Done dead = run(6, 3, [&](std::size_t i, nlohmann::json&) {
    if (getpid() != here) std::raise(SIGKILL);
    fmt::print("job {}\n", i);
    return true;
  });
  CHECK(dead.ok);
  CHECK(dead.printed == lines(6));
  const Done thrown = run(6, 3, [](std::size_t i, nlohmann::json&) -> bool {
    if (i == 5) throw std::runtime_error("the last one");
    fmt::print("job {}\n", i);
    return true;
  });
  CHECK_FALSE(thrown.ok);
  CHECK(thrown.printed == "thrown: the last one\n" + lines(5));
}

TEST_CASE("side by side: behind a failure it goes on where it is told to") {
  std::fflush(stdout);
  nlohmann::json record = nlohmann::json::array();
  const bool ok = harness::run_side_by_side(
      9, 3,
      [](std::size_t i, nlohmann::json& mine) {
        mine.push_back(i);
        return i != 1 && i != 4;
      },
      [](std::size_t i) { return i / 3 * 3 + 3; }, record);
  CHECK_FALSE(ok);
  CHECK(record == nlohmann::json{0, 1, 3, 4, 6, 7, 8});
}
