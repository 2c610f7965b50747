"""tools/diff-steps: what it counts and shows, and that the course's own steps keep to the budget."""
import shutil
import subprocess
import unittest

from sandbox import ROOT, SandboxTest

FIRST = """// Step 1: a comment that changes.
#pragma once
namespace gemm::step_01 {
int first();
  int second();  // one reason
}
"""
SECOND = """// Step 2: another comment.

#pragma once
namespace gemm::step_02 {
int second();  // another reason
int third();
int fourth();
}
"""


class DiffSteps(SandboxTest):
    def setUp(self):
        super().setUp()
        (self.bin / "diff").symlink_to(shutil.which("diff"))
        self.write("01_naive", FIRST)
        self.write("02_shared_tile", SECOND)

    def write(self, step, text):
        (self.repository / "steps" / step / "kernel.cuh").write_text(text)

    def rows(self):
        done = self.run_tool("diff-steps")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split(maxsplit=4) for line in done.stdout.splitlines()[1:]]

    def test_comments_blanks_indentation_and_the_steps_number_do_not_count(self):
        rows = self.rows()
        self.assertEqual(rows[0], ["01_naive", "5"])
        self.assertEqual(rows[1], ["02_shared_tile", "6", "2", "1"])

    def test_a_step_above_the_budget_is_marked(self):
        self.write("03_register_tile", SECOND + "".join(f"int more{i}();\n" for i in range(120)))
        self.assertEqual(self.rows()[2], ["03_register_tile", "126", "120", "0"])
        self.write("03_register_tile", SECOND + "".join(f"int more{i}();\n" for i in range(121)))
        self.assertEqual(self.rows()[2][4], "above the budget of 120")

    def test_a_step_is_compared_with_the_one_it_builds_on(self):
        self.describe("03_register_tile", builds_on="01_naive")
        self.write("03_register_tile", FIRST + "int third();\nint fourth();\n")
        self.assertEqual(self.rows()[2], ["03_register_tile", "7", "2", "0", "over 01_naive"])
        done = self.run_tool("diff-steps", "03")
        self.assertEqual(done.stdout.splitlines()[0], "--- steps/01_naive/kernel.cuh")
        self.assertTrue(done.stdout.endswith("\n2 new lines of code, 0 dropped\n"), done.stdout)
        done = self.run_tool("diff-steps", "02", "03")  # both named: that is what is compared
        self.assertEqual(done.stdout.splitlines()[0], "--- steps/02_shared_tile/kernel.cuh")
        self.write("03_register_tile", FIRST + "".join(f"int more{i}();\n" for i in range(121)))
        self.assertEqual(self.rows()[2][4], "over 01_naive  above the budget of 120")

    def test_a_step_that_builds_on_none_before_it_is_refused(self):
        for base in ("00_nothing", "03_register_tile", "03"):
            self.describe("02_shared_tile", builds_on=base)
            self.assert_refused(self.run_tool("diff-steps", "02"), "02_shared_tile", f"'{base}'",
                                "not a step before it")
            done = self.run_tool("diff-steps")
            self.assertEqual(done.returncode, 2)
            self.assertIn("not a step before it", done.stderr)

    def test_the_diff_of_one_step_or_of_two(self):
        for arguments in (["02"], ["01", "2"], ["01_naive", "shared_tile"]):
            done = self.run_tool("diff-steps", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.splitlines()[:2],
                             ["--- steps/01_naive/kernel.cuh", "+++ steps/02_shared_tile/kernel.cuh"])
            self.assertIn("\n+int third();\n", done.stdout)
            self.assertTrue(done.stdout.endswith("\n2 new lines of code, 1 dropped\n"))
        backwards = self.run_tool("diff-steps", "02", "01")
        self.assertIn("\n-int third();\n", backwards.stdout)

    def test_what_cannot_be_compared_is_refused(self):
        self.assert_refused(self.run_tool("diff-steps", "01"), "01_naive is the first step")
        self.assert_refused(self.run_tool("diff-steps", "01", "02", "03"), "at most two steps")
        self.assert_refused(self.run_tool("diff-steps", "--all"), "unknown argument '--all'")
        self.assert_refused(self.run_tool("diff-steps", "01", "naive_tile"), "there is no step 'naive_tile'")


class Budget(unittest.TestCase):
    def test_every_step_is_inside_the_budget_or_its_chapter_says_why_not(self):
        done = subprocess.run([ROOT / "tools/diff-steps"], capture_output=True, text=True, check=True)
        rows = done.stdout.splitlines()[1:]
        self.assertEqual(len(rows), len(list((ROOT / "steps").glob("[0-9][0-9]_*/kernel.cuh"))))
        for row in rows:
            step = row.split()[0]
            chapter = (ROOT / "steps" / step / "README.md").read_text(encoding="utf-8")
            if "above the budget" in row:
                self.assertIn("`tools/diff-steps", chapter, f"{step} is above the budget: its chapter must say why")
