"""The code that chapters quote, and the numbers in their sentences."""
import json
import re
import subprocess
import sys
import unittest

from generator import CONDITIONS, ROOT, GeneratorTest, contestant, shape, timed

sys.path.insert(0, str(ROOT / "tools/lib"))
sys.path.insert(0, str(ROOT / "tools"))
import blocks  # noqa: E402
import excerpts  # noqa: E402
import regions  # noqa: E402

OLD = """// The first.
__global__ void kernel(int n) {
  // What is left out.
  // ANCHOR: loop
  for (int i = 0; i < n; ++i) {
    load(i);
    // ANCHOR: barrier
    __syncthreads();
    // ANCHOR_END: barrier
  }
  // ANCHOR_END: loop
}
"""
NEW = """__global__ void kernel(int n) {
  // ANCHOR: first_stage
  int stage = 0;
  // ANCHOR_END: first_stage
  // ANCHOR: loop
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    // Waits.
    wait(stage);
    // ANCHOR: end
    load(i);
  }
  // ANCHOR_END: loop
  // ANCHOR_END: end
}
"""


class Excerpts(GeneratorTest):
    """Two steps and one page."""

    def setUp(self):
        super().setUp()
        for name, text in (("10_old", OLD), ("11_new", NEW)):
            folder = self.root / "steps" / name
            folder.mkdir(parents=True)
            (folder / "kernel.cuh").write_text(text)
        self.page = self.root / "README.md"

    def made(self, kind, specification):
        """The lines that the block gets."""
        self.page.write_text(f"before\n\n<!-- {kind}: {specification} -->\nstale\n<!-- /{kind} -->\n")
        done = self.run_tool("excerpts.py")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        lines = self.page.read_text().split("\n")
        return lines[4:lines.index(f"<!-- /{kind} -->") - 1]

    def refused(self, kind, specification, message):
        text = f"<!-- {kind}: {specification} -->\nstale\n<!-- /{kind} -->\n"
        self.page.write_text(text)
        done = self.run_tool("excerpts.py")
        self.assertEqual((done.returncode, done.stderr), (2, f"README.md: line 1: {message}\n"))
        self.assertEqual(self.page.read_text(), text)

    def test_an_excerpt_is_a_region_without_the_marks(self):
        self.assertEqual(self.made("code", "10#loop"),
                         ["```cpp", "for (int i = 0; i < n; ++i) {", "  load(i);", "  __syncthreads();", "}", "```"])
        self.assertEqual(self.made("code", "steps/10_old/kernel.cuh#barrier"), ["```cpp", "__syncthreads();", "```"])
        self.assertEqual(self.made("code", "11#loop comments=no"),
                         ["```cpp", "#pragma unroll 1", "for (int i = 0; i < n; ++i) {", "  wait(stage);", "  load(i);", "}", "```"])

    def test_regions_may_overlap(self):
        self.assertEqual(self.made("code", "11#end"), ["```cpp", "  load(i);", "}", "```"])

    def test_a_diff_leaves_comments_out_and_shows_what_goes_first(self):
        self.assertEqual(self.made("diff", "10#loop 11#loop"),
                         ["```diff", "+ #pragma unroll 1", "  for (int i = 0; i < n; ++i) {", "+   wait(stage);", "    load(i);",
                          "-   __syncthreads();", "  }", "```"])
        self.assertEqual(self.made("diff", "10#barrier 11#first_stage")[1:-1], ["- __syncthreads();", "+ int stage = 0;"])
        self.assertEqual(self.made("diff", "none 11#first_stage")[1:-1], ["+ int stage = 0;"])

    def test_a_change_of_the_source_is_noticed(self):
        self.made("diff", "10#loop 11#loop")
        self.assertEqual(self.run_tool("excerpts.py", "--check").returncode, 0)
        kernel = self.root / "steps/10_old/kernel.cuh"
        kernel.write_text(OLD.replace("__syncthreads", "__syncwarp"))
        done = self.run_tool("excerpts.py", "--check")
        self.assertEqual((done.returncode, done.stderr),
                         (1, "README.md: an excerpt differs from its source; run tools/excerpts.py.\n"))

    def test_what_it_refuses(self):
        self.refused("code", "12#x", "there is no step 12.")
        self.refused("code", "steps/x.cuh#x", "there is no source steps/x.cuh.")
        self.refused("code", "11#lop", "steps/11_new/kernel.cuh has no region 'lop'; did you mean 'loop'? The known ones are: end, "
                     "first_stage, loop.")
        self.refused("code", "11", "'11' names no region: write SOURCE#REGION, for example 11#producer.")
        self.refused("code", "11#loop comment=no", "'comment=no' is not an option of an excerpt; the only one is comments=no.")
        self.refused("diff", "11#loop", "a diff is SOURCE#REGION SOURCE#REGION, or none SOURCE#REGION.")
        self.refused("diff", "11#loop 11#loop", "11#loop and 11#loop have the same lines: there is nothing to show.")
        self.page.write_text("<!-- code: 11#loop -->\n")
        self.assertIn("line 1: the code has no end; write <!-- /code --> after it.", self.run_tool("excerpts.py").stderr)

    def test_marks_come_in_pairs(self):
        for text, message in (("// ANCHOR: a\nx;\n", "begins the region 'a' and does not end it; write // ANCHOR_END: a after it."),
                              ("x;\n// ANCHOR_END: a\n", "ends the region 'a', which it has not begun."),
                              ("// ANCHOR: a\n// ANCHOR: a\n", "begins the region 'a' twice.")):
            (self.root / "steps/11_new/kernel.cuh").write_text(text)
            self.refused("code", "11#a", f"steps/11_new/kernel.cuh {message}")


class Numbers(GeneratorTest):
    """Numbers inside sentences."""

    def setUp(self):
        super().setUp()
        contestants = [contestant("10_old", "step", 600, "a"), contestant("11_new", "step", 660, "a"),
                       contestant("11_new", "step", 330, "b"), contestant("cublaslt_best", "baseline", 800),
                       contestant("wgmma_ceiling", "ceiling", 1000)]
        made = timed([shape(4096, 4096, 4096, contestants, samples=7)], mode="sustained", idle_ms=0)
        made["shapes"][0]["conditions"] = {**CONDITIONS, "throttle_reasons": ["power_cap"]}
        self.write(made)
        self.page = self.root / "README.md"

    def number(self, specification):
        self.page.write_text(f"It is <!-- number: {specification} -->stale<!-- /number -->.\n")
        done = self.run_tool("tables.py")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stderr)
        return re.fullmatch(r"It is <!-- .* -->(.*)<!-- /number -->\.\n", self.page.read_text())[1]

    def refused(self, specification, message):
        self.page.write_text(f"It is <!-- number: {specification} -->stale<!-- /number -->.\n")
        done = self.run_tool("tables.py")
        self.assertEqual((done.returncode, done.stderr), (2, f"README.md: line 1: {message}\n"))

    def test_values(self):
        for specification, value in {"run 11 tflops": "660", "run 11:b tflops": "330", "run 11:a cublaslt": "0.825",
                                     "run 11 cublaslt digits=1": "0.8", "run 11 ceiling": "66 %", "run 11 median": "208.2",
                                     "run 11 times=10": "1.10", "run 11 faster=10": "10 %", "run 11:b slower=11:a": "100 %",
                                     "run 11 joule": "0.107", "run 11 picojoule": "0.776", "run 11 power": "512"}.items():
            self.assertEqual(self.number(specification), value, specification)
        self.assertEqual(self.number("source"), "stale")

    def test_means_over_shapes_that_are_named(self):
        def measured(k, ours):
            return shape(512, 512, k, [contestant("10_old", "step", ours, "a"), contestant("11_new", "step", 400, "a"),
                                       contestant("cublaslt_best", "baseline", 400)])

        shapes = [measured(64, 400), measured(128, 100), measured(256, 1600)]
        self.write(timed(shapes))
        for options, value in {"": "1.000", " at=512x512x64,512x512x256": "2.000", " at=512x512x128": "0.250",
                               " at=512x512x128 others=11": "0.630", " at=512x512x64 others=11 digits=1": "1.0"}.items():
            self.assertEqual(self.number(f"run 10 geometric_mean{options}"), value, options)
        self.refused("run 10 geometric_mean at=512x512x512", "shape=512x512x512 was not timed; the record has 512x512x64, "
                     "512x512x128, 512x512x256.")
        self.refused("run 10 median at=512x512x64", "at= and others= go with geometric_mean and worst.")
        del shapes[2]["contestants"][0]
        self.write(timed(shapes))
        self.assertEqual(self.number("run 10 geometric_mean others=11"), "0.630")

    def test_derived_values(self):
        for specification, value in {"derived 2*3 µs": "6 µs", "derived 1/3": "0.333", "derived 1/3 digits=1 %": "0.3 %",
                                     "derived 2*4096*4096/4.48e6 digits=1 µs": "7.5 µs", "derived (1+2)*-3": "-9",
                                     "derived min(4, 2) + ceil(0.1)": "3", "derived 10**6/1e3 TFLOP/s": "1000 TFLOP/s",
                                     "derived {run 11 tflops}/{run 10 tflops} digits=2": "1.10",
                                     "derived 100*(1-{run 11 ceiling}/100) %": "34 %"}.items():
            self.assertEqual(self.number(specification), value, specification)

    def test_a_derived_value_follows_its_record(self):
        self.number("derived 2*{run 11 tflops}")
        self.assertEqual(self.run_tool("tables.py", "--check").returncode, 0)
        self.page.write_text(self.page.read_text().replace(">1320<", ">1321<"))
        self.assertEqual(self.run_tool("tables.py", "--check").returncode, 1)

    def test_what_is_no_arithmetic_is_refused(self):
        for expression in ("__import__('os')*1", "x*2", "'a'*3", "[1]*2", "True*2", "max(1, key=2)", "(1).real*2"):
            self.refused(f"derived {expression}", f"'{expression}' is not arithmetic: numbers, + - * / **, parentheses, min, max, ceil, "
                         "floor, round.")
        self.refused("derived 1/0", "'1/0' has no value as arithmetic.")
        self.refused("derived 2*", "'2*' has no value as arithmetic.")
        self.refused("derived 1350 TFLOP/s", "'1350' derives nothing: show the arithmetic.")
        self.refused("derived 9**9**9", "'9**9**9' is too large a power.")
        self.refused("derived 1*2 digits=x", "digits=x is not a number of digits from 0 to 9.")

    def test_stated_says_nothing(self):
        page = self.root / "README.md"
        page.write_text("<!-- number: stated -->3 µs<!-- /number -->\n")
        done = self.run_tool("tables.py", page)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'stated' says nothing about where a number comes from", done.stderr)

    def note(self, specification, name="docs/lab/x.md"):
        page = self.root / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<!-- noted: {specification} -->\n<!-- /noted -->\n")
        done = self.run_tool("tables.py", page)
        return done.stderr.removeprefix(f"{name}: line 1: ").strip() or page.read_text()

    def test_a_note_is_written_out(self):
        fields = 'date=2026-11-25 card="NVIDIA H200" commit=1c4bcfbd command="tools/run 22 --time"'
        self.assertIn("\n*The numbers on this page that do not come from a record were measured on 2026-11-25 on an NVIDIA H200 (burst, commit 1c4bcfbd). To repeat it: "
                      "`tools/run 22 --time`.*\n", self.note(fields))
        self.assertIn("(sustained, commit 1c4bcfbd). Only today's kernel can be run again:",
                      self.note(fields + " mode=sustained kernels=gone"))
        self.assertEqual(self.note(fields, "docs/x.md"), "a number that was noted and has no record stands on a page of docs/lab only; "
                         "link it from here.")
        self.assertEqual(self.note("date=2026-11-25 commit=1c4bcfbd"), "the note lacks card and command.")
        self.assertEqual(self.note(fields.replace("2026-11-25", "yesterday")),
                         "a note has its date as 2026-11-25 and its commit as 7 or more hexadecimal digits.")
        self.assertEqual(self.note(fields + " colour=red"), "a note has no field 'colour'; the known ones are date, card, commit, command, mode and "
                         "kernels.")

    def test_shares_and_factors_without_a_mark_are_listed(self):
        self.page.write_text("It is 12 % longer.\n\nAnd <!-- number: derived 1+1 -->2<!-- /number --> times, or 3 times.\n")
        done = self.run_tool("tables.py", "--list", self.page)
        self.assertEqual((done.returncode, done.stdout), (0, "README.md:1: 12 %\nREADME.md:3: 3 times\n1 derived\n"))

    def test_several_in_one_line_and_none_in_a_block(self):
        text = ("<!-- number: run 10 tflops -->1<!-- /number --> and <!-- number: run 11 tflops -->2<!-- /number -->\n"
                "```\n<!-- number: nothing -->3<!-- /number -->\n```\n")
        self.page.write_text(text)
        self.assertEqual(self.run_tool("tables.py").returncode, 0)
        self.assertEqual(self.page.read_text(), text.replace(">1<", ">600<").replace(">2<", ">660<"))

    def test_what_it_refuses(self):
        self.refused("run 11 faster=cublaslt_best", "it is not faster: the sentence would say the opposite of the record.")
        self.refused("run 12 tflops", "12 picks no contestant of docs/results/run.json.")
        self.refused("run step tflops", "step picks several contestants of docs/results/run.json.")
        self.refused("run 11", "a number is RECORD CONTESTANT VALUE, such as part3_h200 11:128x256_stages4 cublaslt, or 'derived' and arithmetic, or 'source'.")
        self.refused("run 11 tflop", "there is no value 'tflop'; did you mean 'tflops'? The known ones are: tflops, median, cublaslt, "
                     "ceiling, clock, power, joule, picojoule, times=NN, faster=NN, slower=NN, to_sm_bytes, l2_read_bytes, "
                     "dram_read_bytes, l2_hit_percent, l2_read_requests, l2_write_requests, tensor_percent, clock_mhz.")
        self.refused("run 11 tflops digits=x", "digits=x is not a number of digits from 0 to 9.")
        self.page.write_text("It is <!-- number: run 11 tflops -->stale\n<!-- /number -->.\n")
        self.assertIn("line 1: the number has no end; write <!-- /number --> after it, in the same line.",
                      self.run_tool("tables.py").stderr)

    def test_energy_is_known_at_the_power_limit_only(self):
        record = json.loads(self.record.read_text())
        record.update(mode="burst", idle_ms=15)
        self.write(record)
        self.refused("run 11 joule", "the energy of a launch is known only where the power limit decides: in a sustained record "
                                     "that was throttled by power_cap.")


class Published(unittest.TestCase):
    """What is committed."""

    def test_excerpts_of_the_chapters_are_up_to_date(self):
        done = subprocess.run([sys.executable, ROOT / "tools/excerpts.py", "--check"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_region_is_quoted(self):
        """A mark that no page names is noise for whoever reads the source."""
        pages = "\n".join(path.read_text(encoding="utf-8") for path in blocks.documents())
        quoted = set()
        for places in re.findall(r"<!-- (?:code|diff): ([^>]*?) -->", pages):
            quoted |= {excerpts.path_of(place) for place in places.split() if "#" in place}
        for folder in ("steps", "common"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in (".cuh", ".h", ".cpp", ".cu"):
                    name = path.relative_to(ROOT).as_posix()
                    for region in regions.regions(path.read_text(encoding="utf-8"), name):
                        self.assertIn((path, region), quoted, f"no page quotes the region '{region}' of {name}")
