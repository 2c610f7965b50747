#include "harness/cli/guarded.h"

#include <fmt/format.h>

#include <sys/resource.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "harness/backend/backend.h"
#include "harness/base/output.h"
#include "harness/base/problem.h"

namespace harness {
namespace {

std::string memory_sentence() {
  rlimit limit{};
  const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_limited ? fmt::format(
                          "there is not enough memory: ulimit -v allows this process {}; allow it more, or "
                          "take a smaller size",
                          human_bytes(static_cast<double>(limit.rlim_cur)))
                    : std::string("there is not enough memory on this machine; take a smaller size");
}

using Tell = std::function<void(const std::string&)>;

int guarded_with(const std::function<int()>& body, const Tell& tell_error, const Tell& tell_report) {
  const auto refuse = [&](const std::string& sentence) {
    tell_error(sentence);
    return kExitUsage;
  };
  int status = kExitOk;
  try {
    status = body();
  } catch (const EmulatorReport& report) {
    tell_report(report.what());
    status = kExitEmulator;
  } catch (const std::bad_alloc&) {
    status = refuse(memory_sentence());
  } catch (const std::system_error& error) {
    const bool is_output = std::ferror(stdout) != 0;  // fmt throws what write() says
    std::clearerr(stdout);
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    status = refuse(
        is_output ? lost_output(error.code())
        : is_thread
            ? "no further thread can be started: ulimit -u and ulimit -v limit what this process may have"
            : error.what());
  } catch (const std::exception& error) {
    status = refuse(error.what());
  } catch (...) {  // a reader's host code may throw a number
    status = refuse("an exception that is not a std::exception was thrown and not caught");
  }
  try {
    finish_output();
  } catch (const Error& error) {
    refuse(error.what());
    if (status == kExitOk) status = kExitUsage;
  }
  return status;
}

}  // namespace

int guarded(const std::function<int()>& body) {
  return guarded_with(
      body, [](const std::string& sentence) { complain(fmt::format("error: {}\n", sentence)); },
      [](const std::string& report) { complain(fmt::format("{}\n", report)); });
}

int guarded(const std::function<int()>& body, const std::function<void(const std::string&)>& tell) {
  return guarded_with(body, tell, tell);
}
}  // namespace harness
