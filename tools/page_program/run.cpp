#include "run.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "emulator/machine/machine.h"
#include "emulator/machine/options.h"
#include "emulator/machine/watchdog.h"
#include "emulator/memory/faults.h"
#include "emulator/report/event_log.h"
#include "emulator/report/kernel_source.h"
#include "emulator/report/report.h"
#include "harness/backend/backend.h"
#include "harness/backend/emulator_control.h"
#include "harness/backend/name_groups.h"
#include "harness/backend/trace_control.h"
#include "harness/base/problem.h"
#include "harness/trace/trace_timeline.h"
#include "harness/verify/workload/workload.h"

namespace page {
namespace {

using Json = nlohmann::ordered_json;

// Two seconds in a browser, and some thousand events.
constexpr double kMostProducts = 512.0 * 256 * 512;
constexpr int kTracedCtas = 4;

const Kernel& find_kernel(const std::string& name) {
  std::string names;
  for (unsigned i = 0; i < kKernelCount; ++i) {
    if (kKernels[i].name == name) return kKernels[i];
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kKernels[i].name);
  }
  throw harness::Error(fmt::format("there is no kernel '{}'; the kernels are {}", name, names));
}

const gemm::Variant& variant_of(const Kernel& kernel) {
  return harness::find_variant(kernel.step(), kernel.variant);
}

/// CTAs that compute tile after tile do so twice; elsewhere two tiles are enough to see.
struct Setting {
  gemm::Shape shape;
  int sms = 2;
};

Setting default_setting(const Kernel& kernel) {
  if (kernel.sms > 0) return {harness::parse_shape(kernel.shape), kernel.sms};
  const gemm::Variant& variant = variant_of(kernel);
  const gemm::TileShape& tile = variant.tile;
  Setting setting{.shape = {4 * tile.m, tile.n, (variant.stages + 1) * tile.k}};
  harness::control_emulator({.sm_count = setting.sms});
  if (variant.launch_shape(setting.shape).grid.count() >= 4) {
    setting.shape.m = 2 * tile.m;
  } else {
    setting.shape.k = (variant.stages / 2 + 1) * tile.k;  // the ring is used again for the second tile
  }
  return setting;
}

std::uint64_t parse_seed(const std::string& text) {
  const bool is_number =
      !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number)
    throw harness::Error(fmt::format("the seed is '{}'; it must be a number from 0 to 999999999", text));
  return std::stoull(text);
}

harness::Completion parse_completion(const std::string& text) {
  if (text == "random") return harness::Completion::kRandom;
  if (text == "earliest") return harness::Completion::kEarliest;
  if (text == "latest") return harness::Completion::kLatest;
  throw harness::Error(fmt::format("the completion is '{}'; it must be random, earliest or latest", text));
}

/// Records what happens to barriers while it lives: the log of events, and the ledger.
class Barriers {
 public:
  Barriers() {
    emulator::EventLog::begin(lines_);
    harness::begin_emulator_ledger();
  }
  ~Barriers() { emulator::EventLog::end(); }
  Barriers(const Barriers&) = delete;
  Barriers& operator=(const Barriers&) = delete;

  /// Ends the ledger.
  void tell(Json& done) const {
    done["events"] = lines_.str();
    done["ledger"] = harness::take_emulator_ledger().json;
  }

 private:
  std::ostringstream lines_;
};

/// Those of the run under way: after a trap they are what is left of it.
std::optional<Barriers>& barriers() {
  static std::optional<Barriers> recorded;
  return recorded;
}

void tell_barriers(Json& done) {
  if (barriers()) barriers()->tell(done);
  barriers().reset();
}

Json outcome(const char* what, const std::string& text) {
  return {{"outcome", what}, {"rule", nullptr}, {"text", text}};
}

Json report(const std::string& rule, const std::string& text) {
  return {{"outcome", "report"}, {"rule", rule}, {"text", text}};
}

std::string timeline(const Kernel& kernel, const gemm::Shape& shape, int sms,
                     const gemm::Launcher& launcher) {
  const harness::TraceData data = harness::record_launch([&] { launcher(nullptr); }, kTracedCtas);
  const gemm::Variant& variant = variant_of(kernel);
  const std::vector<harness::TraceTimeline> all = harness::timelines(data, variant.tile.k);
  if (all.empty()) return {};
  return harness::trace_json(data, all, harness::about_trace(kernel.step(), variant, shape, sms, data));
}

Json run_kernel(const Kernel& kernel, const gemm::Shape& shape, const Request& request) {
  const gemm::Step& step = kernel.step();
  const gemm::Variant& variant = variant_of(kernel);
  harness::check_contract(step, shape);
  if (static_cast<double>(shape.m) * shape.n * shape.k > kMostProducts)
    throw harness::Error(fmt::format(
        "{} is too large for a page; take at most as many products as 512x256x512 has, or run it with "
        "tools/run {} --check {}",
        harness::to_string(shape), step.name.substr(0, 2), harness::to_string(shape)));
  const int sms = default_setting(kernel).sms;
  harness::control_emulator({.schedule_seed = parse_seed(request.seed),
                             .completion = parse_completion(request.completion),
                             .sm_count = sms});
  emulator::Options options = emulator::options();
  options.os_threads = 1;  // the log has one order
  emulator::set_options(options);
  harness::Workload workload(shape, harness::Pattern::kExact, 1, harness::form_of(step, variant));
  harness::name_tiles(shape, variant.tile);
  harness::name_groups(workload.problem());
  const gemm::Launcher launcher = gemm::prepare(variant, workload.problem());
  barriers().emplace();
  const harness::CheckResult result =
      harness::launch_and_check(workload, launcher, kernel.launches, variant.tile);
  if (!result.ok) return outcome("wrong", result.summary + "\n" + result.report);
  Json done = outcome("right", result.summary);
  tell_barriers(done);
  if (std::string file = timeline(kernel, shape, sms, launcher); !file.empty())
    done["timeline"] = std::move(file);
  return done;
}

/// Which lines of the kernel the text names, in its order.
std::vector<int> lines_named(const std::string& text, const std::string& path) {
  std::vector<int> lines;
  const std::string mark = path + ":";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const int line = std::atoi(text.c_str() + at + mark.size());
    if (line > 0 && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  return lines;
}

/// With what every outcome has.
std::string finished(Json done, const std::string& path) {
  tell_barriers(done);
  done["lines"] = lines_named(done["text"], path);
  return done.dump();
}

std::string path_under_way;

}  // namespace

std::string describe() {
  Json kernels = Json::array();
  for (unsigned i = 0; i < kKernelCount; ++i) {
    const Kernel& kernel = kKernels[i];
    const Setting setting = default_setting(kernel);
    kernels.push_back({{"name", kernel.name},
                       {"title", kernel.title},
                       {"path", kernel.path},
                       {"variant", kernel.variant},
                       {"shape", harness::to_string(setting.shape)},
                       {"sms", setting.sms},
                       {"launches", kernel.launches},
                       {"source", emulator::source_text(kernel.path)}});
  }
  const gemm::Contract& contract = kKernels[0].step().contract;
  return Json{{"step", kKernels[0].step().name},
              {"multiples", {contract.m_multiple, contract.n_multiple, contract.k_multiple}},
              {"kernels", kernels}}
      .dump();
}

std::string run(const Request& request) {
  Json done;
  std::string path;
  try {
    const Kernel& kernel = find_kernel(request.kernel);
    path = path_under_way = kernel.path;
    done = run_kernel(kernel, harness::parse_shape(request.shape), request);
  } catch (const harness::EmulatorReport& error) {
    done = report(error.rule(), error.what());
  } catch (const std::exception& error) {
    done = outcome("refused", error.what());
  }
  return finished(std::move(done), path);
}

std::string trapped(const std::string& message) {
  const emulator::Thread* const thread = emulator::context.thread;
  if (thread == nullptr)
    return finished(outcome("refused", "the emulator itself failed: " + message), path_under_way);
  const auto said = [&](const char* text) { return message.find(text) != std::string::npos; };
  emulator::Failure failure{"illegal-instruction", {}};
  if (said("divide by zero") || said("by zero")) {
    failure = emulator::describe_fault({.signal = SIGFPE}, *thread);
  } else {
    failure.text = emulator::Report("WebAssembly stopped the kernel: {}", message)
                       .line("by", emulator::name_thread(*thread))
                       .rule("a kernel must do nothing that C++ leaves undefined",
                             "CUDA C++ Programming Guide, \"C++ Language Support\"")
                       .str();
  }
  return finished(report(failure.rule, failure.rule + ": " + failure.text), path_under_way);
}

}  // namespace page
