// What --autotune remembers, where, and what is made of it.
#include "harness/predict/autotune.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "catch.h"
#include "host/folder.h"

namespace {

namespace fs = std::filesystem;
using harness::DeviceInfo;
using harness::TunedChoice;
using harness::TunedChoices;

/// An environment variable that has this value, or none, as long as its scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* now = std::getenv(name)) before_ = now;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value != nullptr) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

DeviceInfo gpu(const char* name, int sms) {
  DeviceInfo device;
  device.name = name;
  device.sm_count = sms;
  return device;
}

const DeviceInfo kH200 = gpu("NVIDIA H200", 132);
const gemm::Shape kShape{1024, 2048, 512};
const TunedChoice kChoice{"wide", 12.25, "2026-11-20T10:00:00Z", "0123abc"};

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

/// What the Error says that reading this file throws.
std::string complaint(const fs::path& file) {
  try {
    const TunedChoices choices(file);
  } catch (const harness::Error& error) {
    return error.what();
  }
  return {};
}

gemm::Choice narrow(const gemm::Shape&) {
  return {"narrow", "the model says so"};
}

/// A variant that chooses, two that do not, and another one that chooses.
gemm::Step step_of_four() {
  gemm::Step step;
  step.name = "99_test";
  step.variants.resize(4);
  step.variants[0].name = "auto";
  step.variants[0].choose = narrow;
  step.variants[1].name = "narrow";
  step.variants[2].name = "wide";
  step.variants[3].name = "another_auto";
  step.variants[3].choose = narrow;
  return step;
}

}  // namespace

TEST_CASE("autotune: a folder is refused like a file of something else") {
  const Folder folder;
  fs::create_directory(folder / "folder");
  CHECK(contains(complaint(folder / "folder"), "folder does not hold what --autotune writes"));
}

TEST_CASE("autotune: a file that does not exist holds nothing") {
  const Folder folder;
  const TunedChoices none(folder / "none.json");
  CHECK_FALSE(none.find(kH200, "99_test", kShape).has_value());
  CHECK_FALSE(fs::exists(folder / "none.json"));  // looking does not write
}

TEST_CASE("autotune: what was remembered is found again, from the file too") {
  const Folder folder;
  const fs::path file = folder / "missing" / "folders" / "choices.json";
  TunedChoices choices(file);
  choices.remember(kH200, "99_test", kShape, kChoice);
  choices.save();
  CHECK(choices.file() == file);
  const TunedChoices again(file);
  for (const TunedChoices* memory : {static_cast<const TunedChoices*>(&choices), &again}) {
    const auto found = memory->find(kH200, "99_test", kShape);
    REQUIRE(found.has_value());
    CHECK(found->variant == kChoice.variant);
    CHECK(found->median_us == kChoice.median_us);
    CHECK(found->date == kChoice.date);
    CHECK(found->commit == kChoice.commit);
  }
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), fs::directory_iterator()) == 1);
}

TEST_CASE("autotune: by GPU and its SMs, by step, by shape, and the latest counts") {
  const Folder folder;
  const fs::path file = folder / "choices.json";
  TunedChoices choices(file);
  choices.remember(kH200, "99_test", kShape, {"narrow", 13, "2026-11-19", "old"});
  choices.remember(kH200, "99_test", kShape, kChoice);
  choices.remember(gpu("NVIDIA H200", 66), "99_test", kShape, {"narrow", 20, "", ""});
  choices.remember(gpu("A GPU/with a ~ in its name", 132), "99_test", kShape, {"odd", 21, "", ""});
  choices.save();
  {
    TunedChoices more(file);  // a second run adds to what the first one left
    more.remember(kH200, "98_other", kShape, {"other", 1, "", ""});
    more.save();
  }
  const TunedChoices all(file);
  const auto variant = [&](const DeviceInfo& device, const char* step, const gemm::Shape& shape) {
    const auto found = all.find(device, step, shape);
    return found ? found->variant : "nothing";
  };
  CHECK(variant(kH200, "99_test", kShape) == "wide");
  CHECK(variant(gpu("NVIDIA H200", 66), "99_test", kShape) == "narrow");
  CHECK(variant(gpu("A GPU/with a ~ in its name", 132), "99_test", kShape) == "odd");
  CHECK(variant(kH200, "98_other", kShape) == "other");
  CHECK(variant(gpu("NVIDIA H100", 132), "99_test", kShape) == "nothing");
  CHECK(variant(kH200, "97_none", kShape) == "nothing");
  CHECK(variant(kH200, "99_test", {2048, 1024, 512}) == "nothing");
}

TEST_CASE("autotune: a file that holds something else is named in one sentence") {
  const Folder folder;
  const fs::path file = folder / "choices.json";
  for (const char* text : {"", "{", "[1, 2]", "3", "null", "{\"NVIDIA H200, 132 SMs\": {\"99_te", "text"}) {
    write(file, text);
    INFO("'" << text << "'");
    const std::string what = complaint(file);
    CHECK(what.find(file.string()) == 0);
    CHECK(contains(what, "GEMM_STEPS_AUTOTUNE"));
    CHECK(what.find('\n') == std::string::npos);
  }
  write(file, "{}");
  CHECK(complaint(file).empty());
}

TEST_CASE("autotune: entries of another form are passed over") {
  const Folder folder;
  const fs::path file = folder / "choices.json";
  for (const char* gpu_entry :
       {"5", "[]", "{\"99_test\": 5}", "{\"99_test\": {\"1024x2048x512\": 5}}",
        "{\"99_test\": {\"1024x2048x512\": {\"variant\": 5}}}",
        "{\"99_test\": {\"1024x2048x512\": {\"variant\": \"wide\", \"median_us\": \"fast\"}}}"}) {
    write(file, std::string("{\"NVIDIA H200, 132 SMs\": ") + gpu_entry + "}");
    INFO(gpu_entry);
    const TunedChoices choices(file);
    CHECK_FALSE(choices.find(kH200, "99_test", kShape).has_value());
  }
}

TEST_CASE("autotune: what is measured takes the place of an entry of another form") {
  const Folder folder;
  const fs::path file = folder / "choices.json";
  for (const char* gpu_entry : {"5", "[]", "{\"99_test\": 5}", "{\"99_test\": {\"1024x2048x512\": 5}}"}) {
    write(file, std::string("{\"NVIDIA H200, 132 SMs\": ") + gpu_entry + "}");
    INFO(gpu_entry);
    TunedChoices choices(file);
    choices.remember(kH200, "99_test", kShape, kChoice);
    const auto found = choices.find(kH200, "99_test", kShape);
    REQUIRE(found.has_value());
    CHECK(found->variant == "wide");
  }
}

TEST_CASE("autotune: a file that cannot be written is named in one sentence") {
  const Folder folder;
  write(folder / "a_file", "");
  TunedChoices choices(folder / "a_file" / "choices.json");  // its folder is a file
  choices.remember(kH200, "99_test", kShape, kChoice);
  try {
    choices.save();
    FAIL("it was written");
  } catch (const harness::Error& error) {
    const std::string what = error.what();
    CHECK(what.find(choices.file().string()) == 0);
    CHECK(what.find('\n') == std::string::npos);
  }
}

TEST_CASE("autotune: the file is where the environment says") {
  const Variable home("HOME", "/home/somebody");
  {
    const Variable cache("XDG_CACHE_HOME", "/somewhere/cache");
    {
      const Variable own("GEMM_STEPS_AUTOTUNE", "/tmp/own.json");
      CHECK(harness::autotune_file() == "/tmp/own.json");
    }
    const Variable empty("GEMM_STEPS_AUTOTUNE", "");  // as if it were not set
    CHECK(harness::autotune_file() == "/somewhere/cache/gemm-steps/autotune.json");
  }
  const Variable own("GEMM_STEPS_AUTOTUNE", nullptr);
  const Variable cache("XDG_CACHE_HOME", nullptr);
  CHECK(harness::autotune_file() == "/home/somebody/.cache/gemm-steps/autotune.json");
  const Variable nowhere("HOME", nullptr);
  CHECK(harness::autotune_file() == "autotune.json");
}

TEST_CASE("resolve: a variant that does not choose is what runs") {
  const Folder folder;
  const gemm::Step step = step_of_four();
  TunedChoices choices(folder / "choices.json");
  choices.remember(kH200, step.name, kShape, kChoice);
  const harness::ResolvedVariant resolved = harness::resolve(step, step.variants[1], kShape, kH200, choices);
  CHECK(resolved.variant == &step.variants[1]);
  CHECK(resolved.why.empty());
}

TEST_CASE("resolve: what was measured on this GPU, else what the model says") {
  const Folder folder;
  const gemm::Step step = step_of_four();
  TunedChoices choices(folder / "choices.json");
  const auto resolved = [&](const DeviceInfo& device, const gemm::Shape& shape) {
    return harness::resolve(step, step.variants[0], shape, device, choices);
  };
  CHECK(resolved(kH200, kShape).variant == &step.variants[1]);
  CHECK(resolved(kH200, kShape).why == "the model says so");
  choices.remember(kH200, step.name, kShape, kChoice);
  CHECK(resolved(kH200, kShape).variant == &step.variants[2]);
  CHECK(resolved(kH200, kShape).why ==
        "fastest when all were measured on 2026-11-20 (12.2 us, commit 0123abc)");
  CHECK(resolved(gpu("NVIDIA H100", 132), kShape).variant == &step.variants[1]);
  CHECK(resolved(kH200, {1, 8, 8}).variant == &step.variants[1]);
}

TEST_CASE("resolve: a remembered name that is none, or that chooses itself, is passed over") {
  const Folder folder;
  const gemm::Step step = step_of_four();
  for (const char* name : {"", "removed", "auto", "another_auto"}) {
    TunedChoices choices(folder / "choices.json");
    choices.remember(kH200, step.name, kShape, {name, 1, "2026-11-20", "0123abc"});
    INFO("'" << name << "'");
    const harness::ResolvedVariant resolved =
        harness::resolve(step, step.variants[0], kShape, kH200, choices);
    CHECK(resolved.variant == &step.variants[1]);
    CHECK(resolved.why == "the model says so");
  }
}
