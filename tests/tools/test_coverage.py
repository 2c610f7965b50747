"""tools/coverage.py: which lines are a kernel's, what counts as reached, and what the list of tests/coverage.txt may say."""
import contextlib
import io
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/lib")]
import coverage
from program import UserError

KERNEL = """struct Work {
  int host() const { return 1; }
  __device__ int next(int i) const {
    return i > 0 ? 1 : 2;
  }
};
template <int k = 3>
__global__ void __launch_bounds__(128, 1)
    kernel(Work work = {}) {
  if (work.next(1)) {
    stop();
  }
}
int on_the_host() {
  return 3;
}
constexpr int twice(int i) {
  return 2 * i; }
__device__ int one() { return 1; }
"""


# The step that is measured, where it is built.
STEP = "01_naive"
BUILT = pathlib.Path(os.environ.get("GEMM_STEPS_BUILD", ROOT / "build/emulator"))
TOOLS = ("clang++", "llvm-cov", "llvm-profdata", "ninja", "nm")


def function(name, regions, branches=()):
    return {"name": name, "filenames": ["k"], "regions": [[line, 1, line, 9, count, 0, 0, 0] for line, count in regions],
            "branches": [[line, 1, line, 9, taken, other, 0, 0, 4] for line, taken, other in branches]}


class Coverage(unittest.TestCase):
    def test_lines_of_device_functions(self):
        lines = coverage.device_lines(KERNEL)
        self.assertEqual({line for line, only in lines.items() if only}, {3, 4, 5, 8, 9, 10, 11, 12, 13, 19})
        self.assertEqual({line for line, only in lines.items() if not only}, {17, 18})

    def test_instantiations_count_together_and_unused_functions_do_not(self):
        functions = [function("f<1>", [(3, 0), (4, 2)], [(4, 2, 0), (5, 0, 1)]), function("f<2>", [(3, 0), (4, 0)], [(4, 0, 3), (5, 0, 1)]),
                     function("unused", [(9, 0)])]
        found = coverage.unreached(functions, {"f<1>", "f<2>"}, lambda file: dict.fromkeys(range(10), True), lambda file: ["run(now);"] * 10)
        self.assertEqual(found, ({("k", 3): "is never executed", ("k", 5): "is always false in columns 1 to 8"}, 2))
        self.assertEqual(coverage.unreached(functions, {"f<1>", "f<2>"}, lambda file: {4: True}, lambda file: ["run(now);"] * 10), ({}, 1))

    def test_a_function_that_the_host_has_too_may_have_no_use(self):
        functions = [function("f", [(3, 0), (4, 0)], [(4, 0, 1)]), function("g", [(5, 1), (6, 0)])]
        found = coverage.unreached(functions, {"f", "g"}, lambda file: dict.fromkeys(range(10), False), lambda file: ["run(now);"] * 10)
        self.assertEqual(found, ({("k", 6): "is never executed"}, 2))

    def test_what_no_instantiation_has_is_not_unreached(self):
        for line, begin, end, expected in (("  if constexpr (kIs) {", 22, 23, True), ("  if constexpr (kIs) stop();", 22, 26, True),
                                           ("  } else if (i > 0) {", 10, 12, True), ("  if constexpr (kIs && 4 * kN > 2) {", 24, 34, True),
                                           ("  if constexpr (kIs) return x;", 22, 28, True), ("  if (is) return;", 12, 18, False),
                                           ("  if (is) stop();", 12, 18, False), ("  is ? one : two;", 8, 11, False),
                                           ("  constexpr bool kIs = kOne || kTwo;", 32, 36, True),
                                           ("  if (is && more) {", 13, 17, False), ("  if constexpr (kIs) { stop(); }", 22, 33, False)):
            self.assertEqual(coverage.is_discarded(line, begin, end), expected, line)

    def test_what_follows_a_return_of_some_instantiations(self):
        lines = ["  if constexpr (kIs) return f(x);", "  if constexpr (kElse) return x;", "  if (x) return;", "  stop();"]
        self.assertEqual([coverage.follows_return(lines, line, column) for line, column in ((2, 3), (2, 24), (3, 3), (4, 3))],
                         [True, False, True, False])

    def test_the_list_excuses_a_line_of_a_step_and_nothing_that_is_reached(self):
        text = "# why\n11 12 | k.cuh | trap(); | no launch gets there\n"
        with mock.patch.object(coverage, "EXCUSES", mock.Mock(read_text=lambda encoding: text)):
            lines = ["a();", "  trap();"]
            told = coverage.judge("11", {("k.cuh", 2): "is never executed", ("k.cuh", 1): "is always true"}, lambda file: lines)
            self.assertEqual(told, ["k.cuh:1 is always true: a();"])
            self.assertEqual(coverage.judge("12", {}, lambda file: lines), ["tests/coverage.txt: step 12 does reach k.cuh: trap();"])
            self.assertEqual(coverage.judge("13", {}, lambda file: lines), [])
            text = "13 | k.cuh | a | b; | it never is"
            self.assertEqual(coverage.judge("13", {("k.cuh", 1): "is always true"}, lambda file: ["a | b;"]), [])
            text = "13 | k.cuh | * | all of it"
            self.assertEqual(coverage.judge("13", {("k.cuh", 1): "is always true"}, lambda file: lines), [])
            self.assertEqual(coverage.judge("13", {}, lambda file: lines), ["tests/coverage.txt: step 13 does reach k.cuh: *"])
        with self.assertRaisesRegex(UserError, "coverage.txt:1 is not"):
            coverage.excuses("11 | k.cuh | trap();")
        coverage.excuses(coverage.EXCUSES.read_text(encoding="utf-8"))


class MeasuredCoverage(unittest.TestCase):
    """A copy of step 01 with a branch that no thread takes."""

    def test_a_line_that_is_not_reached_and_one_that_is_listed_and_reached(self):
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing or not (BUILT / "bin" / STEP).is_file():
            self.skipTest(f"{missing[0]} is not here" if missing else f"{STEP} is not built")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copytree(ROOT / "steps" / STEP, folder / "steps" / STEP)
        kernel, end = folder / "steps" / STEP / "kernel.cuh", "  ptx::st_global(gemm.d"
        text = kernel.read_text(encoding="utf-8")
        self.assertEqual(text.count(end), 1)
        kernel.write_text(text.replace(end, f"  if (k < 0) {{\n    accumulator = 0;\n  }}\n{end}"), encoding="utf-8")
        command = coverage.compile_command(STEP)
        source = folder / "source.cpp"
        source.write_text(pathlib.Path(command[command.index("-c") + 1]).read_text(encoding="utf-8").replace(str(ROOT), str(folder)),
                          encoding="utf-8")
        command[command.index("-c") + 1] = str(source)
        excuses = folder / "coverage.txt"
        excuses.write_text(f"01 | steps/{STEP}/kernel.cuh | accumulator += a * b; | it is\n", encoding="utf-8")
        for name, value in (("BUILD", BUILT), ("ROOT", folder), ("EXCUSES", excuses), ("compile_command", lambda step: command)):
            self.enterContext(mock.patch.object(coverage, name, value))
        output = self.enterContext(contextlib.redirect_stdout(io.StringIO()))
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        self.assertEqual(coverage.main(["01"]), 1)
        place = f"01_naive: steps/{STEP}/kernel.cuh"
        begin = text[:text.index(end)].count("\n") + 1
        self.assertEqual(output.getvalue().splitlines(), [
            f"{place}:{begin} is never executed from column 14 on: if (k < 0) {{",
            f"01_naive: tests/coverage.txt: step 01 does reach steps/{STEP}/kernel.cuh: accumulator += a * b;"])


if __name__ == "__main__":
    unittest.main()
