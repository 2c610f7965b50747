#include "checks/expectations.h"

#include <fmt/format.h>

#include <set>

#include "catch.h"
#include "fixtures.h"
#include "harness/backend/backend.h"

namespace {

/// An expectation, a kernel that satisfies it, one that does not, and what the complaint must say.
struct Case {
  const char* kind;
  const char* json;
  const char* good;  // "file/kernel"
  const char* bad;
  const char* found;
};

const std::vector<Case> kCases = {
    {"count", R"({"count": "FFMA", "exact": 16})", "kernels/prefetched", "kernels/nested", "found     1"},
    {"count", R"({"count": "LDG.128", "min": 1})", "kernels/prefetched", "kernels/scalar", "found     0"},
    {"count", R"({"count": "LDS", "max": 2})", "kernels/prefetched", "kernels/scalar", "LDS R"},
    {"count", R"({"count": "LDS", "per_k_tile": 2})", "kernels/prefetched", "kernels/scalar",
     "(2 per k-tile)"},
    {"count", R"({"count": "LDL|STL", "in": "kernel", "exact": 0})", "kernels/prefetched", "kernels/spilling",
     "STL"},
    {"count", R"({"count": "LDG", "in": "before_loop", "exact": 1})", "kernels/prefetched", "kernels/scalar",
     "before the main loop"},
    {"count", R"({"count": "STG", "in": "after_loop", "exact": 16})", "kernels/scalar", "kernels/unrolled",
     "behind the main loop"},
    {"count", R"({"count": "BAR", "between": ["first LDG", "last FFMA"], "exact": 0})", "kernels/prefetched",
     "kernels/scalar", "BAR.SYNC"},
    {"count", R"({"count": "BAR", "between": ["first LDGSTS", "last FFMA"], "exact": 0})",
     "kernels/async_early", "kernels/async_late", "the first LDGSTS does not come before the last FFMA"},
    {"count", R"({"count": "BAR", "between": ["first LDGSTS", "last FFMA"], "exact": 0})",
     "kernels/async_early", "kernels/prefetched", "no LDGSTS"},
    {"every", R"({"every": "LDS", "is": "LDS.128"})", "kernels/prefetched", "kernels/scalar", "that are not"},
    {"every", R"({"every": "LDS", "is": "LDS.128"})", "kernels/async_early", "kernels/unrolled",
     "no LDS at all"},
    {"order", R"({"order": "first LDGSTS < first FFMA"})", "kernels/async_early", "kernels/async_late",
     "the opposite order"},
    {"order", R"({"order": "last LDGSTS < last FFMA"})", "kernels/async_early", "kernels/prefetched",
     "no LDGSTS"},
    {"covered", R"({"covered": "LDG", "by": "FFMA", "min": 16})", "kernels/prefetched", "kernels/scalar",
     "found     0"},
    {"covered", R"({"covered": "LDG", "by": "FFMA", "min": 1})", "kernels/prefetched", "kernels/async_late",
     "no LDG at all"},
    {"count", R"({"count": "HGMMA gsb0", "exact": 1})", "hopper/ring", "hopper/one_at_a_time", "found     4"},
    {"count", R"({"count": "WARPGROUP|BAR", "between": ["first HGMMA", "last HGMMA"], "exact": 0})",
     "hopper/ring", "hopper/one_at_a_time", "WARPGROUP.DEPBAR.LE gsb0, 0x0"},
    {"count", R"({"count": "WARPGROUP.DEPBAR 0x1", "exact": 1})", "hopper/ring", "hopper/long_address",
     "found     0"},
    {"count", R"({"count": "SYNCS.EXCH", "in": "before_loop", "exact": 8})", "hopper/ring",
     "hopper/one_at_a_time", "found     0"},
    {"every", R"({"every": "UTMALDG", "is": "UTMALDG.2D"})", "hopper/ring", "hopper/one_at_a_time",
     "no UTMALDG at all"},
    {"order", R"({"order": "first SYNCS.PHASECHK < first HGMMA"})", "hopper/ring", "hopper/one_at_a_time",
     "no SYNCS.PHASECHK"},
    {"order", R"({"order": "first WARPGROUP.DEPBAR < first UTMALDG"})", "hopper/ring", "hopper/long_address",
     "no UTMALDG"},
    {"gap", R"({"gap": "HGMMA", "max_cycles": 48})", "hopper/ring", "hopper/one_at_a_time",
     "an instruction that waits, synchronises or branches"},
    {"gap", R"({"gap": "HGMMA", "max_cycles": 48})", "hopper/ring", "hopper/long_address", " cycles\n"},
    {"gap", R"({"gap": "HGMMA", "max_cycles": 48, "in": "kernel"})", "hopper/ring", "kernels/prefetched",
     "no two HGMMA"},
    {"gap", R"({"gap": "HGMMA", "max_cycles": 48, "in": "main_loop"})", "hopper/ring",
     "serialised/serialised", "WARPGROUP.DEPBAR.LE gsb0, 0x0"},
    {"registers", R"({"registers": {"max": 40}})", "kernels/prefetched", "kernels/spilling", "found     64"},
    {"spill_bytes", R"({"spill_bytes": {"exact": 0}})", "kernels/prefetched", "kernels/spilling",
     "found     692"},
    {"stack_bytes", R"({"stack_bytes": {"max": 0}})", "kernels/prefetched", "kernels/spilling", "STL"},
    {"shared_bytes", R"({"shared_bytes": {"exact": 2048}})", "kernels/prefetched", "kernels/scalar",
     "found     1024"},
    {"target", R"({"target": "sm_90a"})", "kernels/unrolled", "other_target/dot", "one for sm_90\n"},
    {"forbid_note", R"({"forbid_note": "(C75"})", "kernels/prefetched", "serialised/serialised", "(C7511)"},
};

/// A file with one variant and one expectation; `k_tiles` is what it claims of the loop.
sass::VariantExpectations expectations_of(std::string json, const std::string& k_tiles) {
  json.insert(json.size() - 1, R"(, "why": "the test says so")");
  const std::string file =
      fmt::format(R"({{"step": "s", "variants": {{"v": {{"k_tiles_per_iteration": {}, "expect": [{}]}}}}}})",
                  k_tiles, json);
  return sass::parse_expectations(file, "expect.json").variants.at(0);
}

using Binaries = std::function<const sass::Binary&(const std::string& file)>;

/// The violations of one expectation; the rule about k-tiles, which kernels without a
/// tile break, is left out.
std::vector<sass::Violation> violations_of(const Case& test, const std::string& place,
                                           const Binaries& binaries) {
  const auto slash = place.find('/');
  const sass::KernelView view = fixtures::view(binaries(place.substr(0, slash)), place.substr(slash + 1));
  std::vector<sass::Violation> violations = sass::check(view, expectations_of(test.json, "\"derived\""));
  std::erase_if(violations,
                [](const sass::Violation& violation) { return violation.why != "the test says so"; });
  return violations;
}

void check_all(const Binaries& binaries) {
  for (const Case& test : kCases) {
    CAPTURE(test.json, test.good, test.bad);
    CHECK(violations_of(test, test.good, binaries).empty());
    const auto violations = violations_of(test, test.bad, binaries);
    REQUIRE_FALSE(violations.empty());
    std::string text;
    for (const sass::Violation& violation : violations) text += to_string(violation);
    CHECK_THAT(text, has_text(test.found));
    CHECK_THAT(text, has_text("because   the test says so"));
  }
}

void check_k_tiles(const Binaries& binaries) {
  const auto violations = [&](const char* kernel, const char* k_tiles) {
    return sass::check(fixtures::view(binaries("kernels"), kernel),
                       expectations_of(R"({"registers": {"max": 254}})", k_tiles));
  };
  CHECK(violations("prefetched", "1").empty());
  CHECK(violations("prefetched", "\"derived\"").empty());
  REQUIRE(violations("prefetched", "2").size() == 1);
  CHECK_THAT(to_string(violations("prefetched", "2")[0]),
             has_text("expected  2 k-tiles") && has_text("found     1 k-tile"));
  REQUIRE(violations("nested", "\"derived\"").size() == 1);
  CHECK_THAT(to_string(violations("nested", "\"derived\"")[0]), has_text("no whole number of k-tiles"));
  CHECK_THAT(to_string(violations("straight", "1")[0]), has_text("no loop that multiplies"));
}

}  // namespace

TEST_CASE("every kind of expectation can be met and can be missed") {
  std::set<std::string> kinds = {"k_tiles_per_iteration", "same_mix"};  // they have cases of their own
  for (const Case& test : kCases) kinds.insert(test.kind);
  CHECK(kinds == std::set<std::string>(sass::expectation_kinds().begin(), sass::expectation_kinds().end()));
  check_all(fixtures::committed);
  check_k_tiles(fixtures::committed);
}

TEST_CASE("the same on kernels compiled here") {
  sass::Toolchain toolchain;
  try {
    toolchain = sass::find_toolchain(GEMM_SOURCE_DIR);
  } catch (const sass::MissingTool& missing) {
    skip_test(missing.what());
    return;
  }
  std::map<std::string, sass::Binary> binaries;
  const Binaries compiled = [&](const std::string& file) -> const sass::Binary& {
    const auto [entry, inserted] = binaries.try_emplace(file);
    if (inserted)
      entry->second =
          sass::build_file(toolchain, fixtures::kFolder / "kernels" / (file + ".cu"),
                           std::filesystem::path(GEMM_BUILD_DIR) / "sass", fixtures::architecture_of(file));
    return entry->second;
  };
  check_all(compiled);
  check_k_tiles(compiled);
  // The fixtures are what these kernels compile to; another compiler may differ.
  if (contains(fixtures::text("kernels.log"), "sm_90a") && toolchain.compiler_version == "13.0.88") {
    for (const char* file : {"kernels", "hopper", "serialised", "other_target"})
      for (const sass::Function& function : fixtures::committed(file).listing.functions) {
        const sass::Function* fresh = compiled(file).listing.find(function.name);
        CAPTURE(file, function.name);
        REQUIRE(fresh != nullptr);
        REQUIRE(fresh->instructions.size() == function.instructions.size());
        for (std::size_t i = 0; i < function.instructions.size(); ++i)
          CHECK(fresh->instructions[i].low == function.instructions[i].low);
      }
  }
}

TEST_CASE("an expectation that cannot be right is refused") {
  struct Row {
    const char* json;
    const char* complaint;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"count": "FFMA"})", "'count' has no bound"},
      {R"({"count": "FFMA", "min": 0})", "'min' 0 cannot fail"},
      {R"({"count": "FFMA", "min": 5, "max": 4})", "'min' is above 'max'"},
      {R"({"count": "FFMA", "exact": 1, "max": 4})", "'exact' excludes"},
      {R"({"count": "FFMA", "exact": -1})", "must be a whole number"},
      {R"({"count": "FFMA", "exact": 1.5})", "must be a whole number"},
      {R"({"count": "LDGST", "exact": 0})", "there is no SASS opcode 'LDGST'"},
      {R"({"count": 7, "exact": 0})", "'count' must be a string"},
      {R"({"count": "FFMA", "exact": 1, "in": "loop"})", "known: main_loop, kernel"},
      {R"({"count": "FFMA", "exact": 1, "mim": 4})", "does not take the key 'mim'"},
      {R"({"count": "FFMA", "per_k_tile": 1, "in": "kernel"})", "'per_k_tile' is about the main loop"},
      {R"({"count": "FFMA", "per_k_tile": 1, "min": 1})", "'per_k_tile' excludes"},
      {R"({"count": "BAR", "exact": 0, "between": ["first LDG"]})", "two positions"},
      {R"({"count": "BAR", "exact": 0, "between": ["LDG", "last FFMA"]})", "is not a position"},
      {R"({"every": "LDS", "is": "LDS"})", "it cannot fail"},
      {R"({"every": "LDS"})", "'is' is missing"},
      {R"({"order": "first LDG"})", "with a '<' between"},
      {R"({"order": "first LDG < FFMA"})", "is not a position"},
      {R"({"covered": "LDG", "by": "FFMA"})", "needs 'min'"},
      {R"({"covered": "LDG", "by": "FFMA", "min": 0})", "cannot fail"},
      {R"({"gap": "HGMMA"})", "'gap' needs 'max_cycles'"},
      {R"({"gap": "HGMMA", "max_cycles": -4})", "must be a whole number"},
      {R"({"gap": "HGMMA", "max_cycles": 4, "min": 2})", "does not take the key 'min'"},
      {R"({"registers": 128})", "must be an object"},
      {R"({"registers": {"max": 255}})", "cannot fail"},
      {R"({"registers": {}})", "has no bound"},
      {R"({"registers": {"most": 3}})", "unknown key 'most'"},
      {R"({"target": " "})", "is empty"},
      {R"({"conut": "FFMA", "exact": 1})", "did you mean 'count'?"},
      {R"({"count": "FFMA", "order": "first LDG < first FFMA", "exact": 1})", "it is both"},
      {R"({"k_tiles_per_iteration": 1})", "belongs beside 'expect'"},
  }));
  CAPTURE(row.json);
  CHECK_THROWS_WITH(expectations_of(row.json, "1"),
                    has_text(row.complaint) && has_text("expect.json: variants/v, expectation 1: "));
}

TEST_CASE("a file of expectations that cannot be right is refused") {
  const auto complaint = [](const std::string& json) {
    try {
      sass::parse_expectations(json, "expect.json");
    } catch (const harness::Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(complaint("{"), has_text("is not JSON"));
  CHECK_THAT(complaint("[]"), has_text("must be an object"));
  CHECK_THAT(complaint(R"({"variants": {}})"), has_text("'step' must name the step"));
  CHECK_THAT(complaint(R"({"step": "s"})"), has_text("'variants'"));
  CHECK_THAT(complaint(R"({"step": "s", "variants": {}})"), has_text("'variants'"));
  CHECK_THAT(complaint(R"({"step": "s", "varants": {}})"), has_text("unknown key 'varants'"));
  CHECK_THAT(complaint(R"({"step": "s", "variants": {"v": {}}})"),
             has_text("has no 'k_tiles_per_iteration'"));
  CHECK_THAT(complaint(R"({"step": "s", "variants": {"v": {"k_tiles_per_iteration": 0}}})"),
             has_text("positive number"));
  CHECK_THAT(complaint(R"({"step": "s", "variants": {"v": {"k_tiles_per_iteration": 1}}})"),
             has_text("expects nothing"));
  CHECK_THAT(
      complaint(R"({"step": "s", "variants": {"v": {"k_tiles_per_iteration": 1, "expect": [{"count": "FFMA",
                           "exact": 1}]}}})"),
      has_text("'why' is missing"));
  CHECK_THAT(
      complaint(R"({"step": "s", "variants": {"v": {"k_tiles_per_iteration": 1, "expect": [{"count": "FFMA",
                           "exact": 1, "why": " "}]}}})"),
      has_text("'why' is empty"));
}

TEST_CASE("a variant's code can be held to have the opcodes of another variant's") {
  sass::StepBinary binary;
  static_cast<sass::Binary&>(binary) = fixtures::committed("kernels");
  binary.step = "s";
  for (const char* kernel : {"prefetched", "scalar"})
    binary.variants.push_back(
        {.name = kernel, .function = kernel, .tile_m = 32, .tile_n = 32, .tile_k = 1, .threads = 64});
  binary.variants.push_back(binary.variants.front());
  binary.variants.back().name = "again";
  const auto violations = [&](const std::string& other) {
    return sass::check(
        binary,
        sass::parse_expectations(
            fmt::format(R"({{"step": "s", "every_variant": [{{"registers": {{"max": 254}}, "why": "w"}}],
                        "variants": {{"prefetched": {{"k_tiles_per_iteration": 1, "expect": [
                                        {{"same_mix": "{}", "why": "nothing was added"}}]}},
                                      "scalar": {{"k_tiles_per_iteration": "derived"}},
                                      "again": {{"k_tiles_per_iteration": "derived"}}}}}})",
                        other),
            "expect.json"));
  };
  CHECK(violations("again").empty());
  const auto found = violations("scalar");
  REQUIRE(found.size() == 1);
  CHECK_THAT(to_string(found[0]), has_text("expected  as many of every opcode as variant scalar has") &&
                                      has_text("opcodes that differ") && has_text("LDG.E") &&
                                      has_text("because   nothing was added"));
  CHECK_THROWS_WITH(violations("scaler"), has_text("did you mean 'scalar'?"));
}

TEST_CASE("variants of one family share expectations") {
  const auto file = [](const std::string& families, const std::string& family) {
    return sass::parse_expectations(
        fmt::format(R"({{"step": "s", "every_variant": [{{"count": "FFMA", "exact": 1, "why": "a"}}],
                        "families": {{{}}},
                        "variants": {{"u": {{"k_tiles_per_iteration": 1}},
                                     "v": {{"family": "{}", "k_tiles_per_iteration": 1}}}}}})",
                    families, family),
        "expect.json");
  };
  const std::string narrow = R"("narrow": [{"count": "LDS", "exact": 2, "why": "b"}])";
  const sass::ExpectationFile read = file(narrow, "narrow");
  REQUIRE(read.variants.size() == 2);
  CHECK(read.variants[0].list.size() == 1);  // those of every variant
  REQUIRE(read.variants[1].list.size() == 2);
  CHECK(read.variants[1].list[1].why == "b");
  CHECK_THROWS_WITH(file(narrow, "wide"), has_text("variants/v: 'family' must name one of 'families'"));
  CHECK_THROWS_WITH(file(narrow + R"(, "wide": [{"count": "LDS", "exact": 2, "why": "b"}])", "narrow"),
                    has_text("families/wide has no variant"));
}

TEST_CASE("a file must speak of the step's own variants, all of them") {
  sass::StepBinary binary;
  static_cast<sass::Binary&>(binary) = fixtures::committed("kernels");
  binary.step = "s";
  for (const char* kernel : {"prefetched", "scalar"})
    binary.variants.push_back(
        {.name = kernel, .function = kernel, .tile_m = 32, .tile_n = 32, .tile_k = 1, .threads = 64});
  const auto file = [](const std::string& step, const std::string& variants) {
    return sass::parse_expectations(
        fmt::format(R"({{"step": "{}", "every_variant": [{{"count": "FFMA", "exact": 16, "why": "4 x 4"}}],
                        "variants": {{{}}}}})",
                    step, variants),
        "expect.json");
  };
  const std::string entry = R"({"k_tiles_per_iteration": 1})";
  const std::string both = fmt::format(R"("prefetched": {0}, "scalar": {0})", entry);
  CHECK(sass::check(binary, file("s", both)).empty());
  CHECK_THROWS_WITH(sass::check(binary, file("t", both)), has_text("is about step 't'"));
  CHECK_THROWS_WITH(sass::check(binary, file("s", fmt::format(R"("prefetched": {})", entry))),
                    has_text("says nothing about variant scalar"));
  CHECK_THROWS_WITH(sass::check(binary, file("s", both + fmt::format(R"(, "prefetch": {})", entry))),
                    has_text("did you mean 'prefetched'?"));
}
