"""tools/coverage.py: which lines are a kernel's, what counts as reached, and what the list of tests/coverage.txt may say."""
import pathlib
import sys
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
"""


def function(name, regions, branches=()):
    return {"name": name, "filenames": ["k"], "regions": [[line, 1, line, 9, count, 0, 0, 0] for line, count in regions],
            "branches": [[line, 1, line, 9, taken, other, 0, 0, 4] for line, taken, other in branches]}


class Coverage(unittest.TestCase):
    def test_lines_of_device_functions(self):
        lines = coverage.device_lines(KERNEL)
        self.assertLessEqual({4, 10, 11}, lines)
        self.assertFalse(lines & {2, 15})

    def test_instantiations_count_together_and_unused_functions_do_not(self):
        functions = [function("f<1>", [(3, 0), (4, 2)], [(4, 2, 0), (5, 0, 1)]), function("f<2>", [(3, 0), (4, 0)], [(4, 0, 3), (5, 0, 1)]),
                     function("unused", [(9, 0)])]
        found = coverage.unreached(functions, {"f<1>", "f<2>"}, lambda file: set(range(10)))
        self.assertEqual(found, ({("k", 3): "is never executed", ("k", 5): "is always false in columns 1 to 8"}, 2))
        self.assertEqual(coverage.unreached(functions, {"f<1>", "f<2>"}, lambda file: {4}), ({}, 1))

    def test_the_list_excuses_a_line_of_a_step_and_nothing_that_is_reached(self):
        text = "# why\n11 12 | k.cuh | trap(); | no launch gets there\n"
        with mock.patch.object(coverage, "EXCUSES", mock.Mock(read_text=lambda encoding: text)):
            lines = ["a();", "  trap();"]
            told = coverage.judge("11", {("k.cuh", 2): "is never executed", ("k.cuh", 1): "is always true"}, lambda file: lines)
            self.assertEqual(told, ["k.cuh:1 is always true: a();"])
            self.assertEqual(coverage.judge("12", {}, lambda file: lines), ["tests/coverage.txt: step 12 does reach k.cuh: trap();"])
            self.assertEqual(coverage.judge("13", {}, lambda file: lines), [])
        with self.assertRaisesRegex(UserError, "coverage.txt:1 is not"):
            coverage.excuses("11 | k.cuh | trap();")
        coverage.excuses(coverage.EXCUSES.read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
