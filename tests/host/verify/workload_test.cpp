// These tests need the linked backend: the emulator anywhere, the GPU build only with a GPU.
#include "harness/verify/workload/workload.h"

#include <string>
#include <vector>

#include "catch.h"
#include "harness/backend/backend.h"
#include "harness/backend/device_reference.h"
#include "harness/verify/injected_faults.h"
#include "rejected.h"

namespace {

using harness::Pattern;

constexpr gemm::TileShape kWorkTile{64, 32, 16};

/// False, having said so, when this build's backend cannot run here.
bool have_device() {
  try {
    harness::device_info();
    return true;
  } catch (const harness::Error& error) {
    skip_test(error.what());
    return false;
  }
}

/// Puts the right D on the device, as a flawless kernel would.
void write_correct(harness::Workload& workload, Pattern pattern, std::uint64_t seed) {
  const harness::RunImage image = harness::correct_image(workload.gemm().shape, pattern, seed);
  harness::copy_to_device(workload.gemm().d, image.d.data(), image.d.size() * sizeof(gemm::bf16));
}

TEST_CASE("workload: right results pass, whatever the pattern", "[device]") {
  if (!have_device()) return;
  for (const Pattern pattern :
       {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange}) {
    for (const gemm::Shape& shape : {gemm::Shape{1, 1, 1}, {7, 33, 129}, {200, 136, 72}}) {
      CAPTURE(harness::to_string(pattern), shape.m, shape.n, shape.k);
      harness::Workload workload(shape, pattern, 3);
      workload.poison();
      write_correct(workload, pattern, 3);
      const harness::CheckResult result = workload.check(kWorkTile);
      CHECK(result.report == "");
      CHECK(result.ok);
    }
  }
}

TEST_CASE("workload: inputs on the device are those of the host, D is aligned", "[device]") {
  if (!have_device()) return;
  for (const Pattern pattern :
       {Pattern::kExact, Pattern::kNormal, Pattern::kUniform, Pattern::kIdentity, Pattern::kArange}) {
    const harness::Workload workload({65, 50, 40}, pattern, 9);
    const harness::RunImage image = workload.image();
    const std::vector<gemm::bf16> a = harness::host_input(image.a_rule);
    const std::vector<gemm::bf16> b = harness::host_input(image.b_rule);
    REQUIRE(a.size() == 65 * 40);
    REQUIRE(b.size() == 50 * 40);
    for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(image.a[i].bits == a[i].bits);
    for (std::size_t i = 0; i < b.size(); ++i) REQUIRE(image.b[i].bits == b[i].bits);
    for (const void* pointer :
         {static_cast<const void*>(workload.gemm().a), static_cast<const void*>(workload.gemm().b),
          static_cast<const void*>(workload.gemm().d)})
      CHECK(reinterpret_cast<std::uintptr_t>(pointer) % 256 == 0);
  }
}

TEST_CASE("workload: poison makes an old result fail, before and after a check", "[device]") {
  if (!have_device()) return;
  harness::Workload workload({40, 48, 32}, Pattern::kExact, 1);
  CHECK(workload.check(kWorkTile).failed == std::vector<std::string>{harness::kNeverWritten});
  write_correct(workload, Pattern::kExact, 1);
  CHECK(workload.check(kWorkTile).ok);
  workload.poison();
  CHECK(workload.check(kWorkTile).failed == std::vector<std::string>{harness::kNeverWritten});
  write_correct(workload, Pattern::kExact, 1);
  CHECK(workload.check(kWorkTile).ok);
}

TEST_CASE("workload: a second launch that leaves what the first one gave is wrong", "[device]") {
  if (!have_device()) return;
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
    harness::Workload workload({70, 40, 33}, pattern, 5);
    int launches = 0;
    const auto flawless = [&](gemm::ptx::Stream) {
      write_correct(workload, pattern, 5 + static_cast<std::uint64_t>(launches++));
    };
    CHECK(launch_and_check(workload, flawless, 3, kWorkTile).ok);
    CHECK(launches == 3);
    CHECK(workload.seed() == 5);
    launches = 0;
    const auto stale = [&](gemm::ptx::Stream) {
      write_correct(workload, pattern, 5);
      ++launches;
    };
    CHECK(launch_and_check(workload, stale, 1, kWorkTile).ok);
    const harness::CheckResult result = launch_and_check(workload, stale, 3, kWorkTile);
    CHECK_FALSE(result.ok);
    CHECK(launches == 1 + 2);
    CHECK(result.report.rfind("launch 2 of 3 of one plan, with other inputs", 0) == 0);
  }
}

TEST_CASE("workload: every injected fault is rejected on the device, too", "[device]") {
  if (!have_device()) return;
  const gemm::TileShape tile{32, 32, 16};
  const gemm::Shape shape = harness::injected_fault_shape({1, 8, 8}, tile);
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
    harness::Workload workload(shape, pattern, 1);
    write_correct(workload, pattern, 1);
    REQUIRE(workload.check(tile).ok);
    const harness::RunImage correct = workload.image();
    const auto verify = [&](const harness::RunImage& image) {
      workload.restore(image);
      return workload.check(tile);
    };
    check_rejected(harness::injected_faults(), pattern, correct, verify, tile);
    workload.restore(correct);
    CHECK(workload.check(tile).ok);
  }
}

TEST_CASE("workload: poison repairs the guard bands, a check repairs the inputs", "[device]") {
  if (!have_device()) return;
  harness::Workload workload({40, 48, 32}, Pattern::kNormal, 1);
  write_correct(workload, Pattern::kNormal, 1);
  const harness::RunImage correct = workload.image();
  harness::RunImage damaged = correct;
  damaged.after[100] ^= 1;
  damaged.b[7].bits ^= 1;
  workload.restore(damaged);
  CHECK(workload.check(kWorkTile).failed == std::vector<std::string>{harness::kGuardAfter, harness::kInputB});
  workload.poison();
  write_correct(workload, Pattern::kNormal, 1);
  CHECK(workload.check(kWorkTile).ok);
}

TEST_CASE("workload: a clobbered input does not become the reference", "[device]") {
  if (!have_device()) return;
  harness::Workload workload({40, 48, 32}, Pattern::kExact, 1);
  // Before the first check, that is before the reference exists: D is right for the inputs as they should be.
  write_correct(workload, Pattern::kExact, 1);
  harness::RunImage damaged = workload.image();
  damaged.a[0].bits ^= 0x8000;
  workload.restore(damaged);
  CHECK(workload.check(kWorkTile).failed == std::vector<std::string>{harness::kInputA});
}

TEST_CASE("workload: of a problem in groups, right results pass and damaged ones do not", "[device]") {
  if (!have_device()) return;
  const gemm::Shape shape{60, 24, 72};
  const std::vector<gemm::GroupRows> groups = harness::grouped_fault_groups(shape);
  for (const Pattern pattern : {Pattern::kExact, Pattern::kNormal}) {
    harness::Workload workload(shape, pattern, 3, {.groups = groups});
    CHECK(workload.problem().groups == groups);
    const harness::RunImage correct = harness::correct_image(shape, pattern, 3, groups);
    workload.restore(correct);
    CHECK(workload.check(kWorkTile).report == "");
    const auto verify = [&](const harness::RunImage& image) {
      workload.restore(image);
      return workload.check(kWorkTile);
    };
    check_rejected(harness::group_faults(), pattern, correct, verify, kWorkTile);
    workload.restore(correct);
    workload.use_inputs(4);
    CHECK_FALSE(workload.check(kWorkTile).ok);
  }
  CHECK_THROWS_AS(harness::Workload(shape, Pattern::kExact, 1, {.groups = {{0, 61}}}), harness::Error);
  CHECK_THROWS_AS(harness::Workload(shape, Pattern::kExact, 1, {.epilogue = {.beta = 1}, .groups = groups}),
                  harness::Error);
  CHECK(harness::workload_bytes(shape, {.groups = groups}) - harness::workload_bytes(shape) ==
        3 * 2 * 24 * 72);
}

TEST_CASE("workload: the bytes it takes, and refusing what does not fit", "[device]") {
  CHECK(harness::workload_bytes({10, 20, 30}) ==
        2 * (10 * 30 + 20 * 30 + 10 * 20) + 2 * static_cast<std::int64_t>(harness::kGuardBytes));
  CHECK(harness::workload_bytes({262144, 262144, 262144}) > std::int64_t{3} * 2 * 262144 * 262144);
  if (!have_device()) return;
  try {
    const harness::Workload workload({262144, 262144, 262144}, Pattern::kExact, 1);
    FAIL("fits");
  } catch (const harness::Error& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(text.find("262144x262144x262144 needs 412 GB of device memory, but ") == 0);
    CHECK(contains(text, " are free on "));
  }
  CHECK_THROWS_AS(harness::Workload({0, 1, 1}, Pattern::kExact, 1), harness::Error);
}

}  // namespace
