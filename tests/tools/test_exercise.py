"""tools/exercise: what it lists, hands out, keeps, refuses and passes on. That the exercises themselves can be solved, and
fail unsolved, is tested in tests/exercises."""
import os
import re
import shutil
import subprocess

from sandbox import ROOT, SandboxTest

KERNEL = """#pragma once
// Step 02.
int first = 1;
int second = 2;
int third = 3;
"""
MUTANT = """step: 02_shared_tile
variant: 32
shape: 33x40x70
expect: shared-race
--- old
int second = 2;
--- new
--- end
"""
BREAK_IT = """# One line is gone

<!--
mutant: s02_gone
-->

Predict first: which line?

## Hint 1

Count.

## Hint 2

The second.

## Explanation

It was the second.
"""
TODO = """variant: 32
shape: 33x40x70
expect: rule
--- old
int first = 1;
...
int third = 3;
--- new
// TODO: three lines.
--- end
"""
BUILD_IT = """# Three lines

<!--
rule: ctas <= 4: too many
-->

Write them.

## Hint 1

One by one.

## Explanation

These are the three.
"""


class Exercise(SandboxTest):
    def setUp(self):
        super().setUp()
        step = self.repository / "steps/02_shared_tile"
        (step / "kernel.cuh").write_text(KERNEL)
        (step / "exercises").mkdir()
        (step / "exercises/gone.md").write_text(BREAK_IT)
        (step / "exercises/three_lines.md").write_text(BUILD_IT)
        (step / "exercises/three_lines.todo").write_text(TODO)
        (self.repository / "tests/mutants/s02").mkdir(parents=True)
        (self.repository / "tests/mutants/s02/gone.mutant").write_text(MUTANT)
        shutil.copytree(ROOT / "cmake", self.repository / "cmake")
        for command in ("cmake", "diff"):
            (self.bin / command).symlink_to(shutil.which(command))
        self.mine = self.repository / "exercises/02_shared_tile/gone/kernel.cuh"

    def exercise(self, *arguments):
        return self.run_tool("exercise", *arguments)

    def fake_build(self, status, builds="true"):
        """cmake that puts a program in place which says something and ends with this status."""
        for program in ("ninja", "c++"):
            self.fake(program, "")
        bin_folder = self.repository / "build/emulator/bin"
        self.fake("cmake", f"""[ "$1" = --version ] && echo cmake version 3.25.1 && exit 0
            [ "$1" = --build ] || exit 0
            {builds}
            mkdir -p {bin_folder}
            printf '#!/bin/bash\\n[ $# = 0 ] || echo "arguments: $*"\\necho the report\\nexit {status}\\n' >{bin_folder}/exercise_02_gone
            chmod +x {bin_folder}/exercise_02_gone""")

    def test_the_list_has_every_exercise_with_its_kind_and_title(self):
        for arguments in ((), ("--list",), ("02",), ("shared_tile", "--list")):
            done = self.exercise(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.splitlines(), [
                "02_shared_tile", "  gone                     break it  One line is gone",
                "  three_lines              build it  Three lines", "", "next: tools/exercise 02 gone"])

    def test_every_real_exercise_is_listed_and_has_all_its_parts(self):
        listed = subprocess.run([str(ROOT / "tools/exercise")], capture_output=True, text=True, check=True).stdout
        pages = sorted(ROOT.glob("steps/*/exercises/*.md"))
        self.assertGreaterEqual(len(pages), 40)
        for page in pages:
            text = page.read_text()
            self.assertRegex(listed, rf"(?m)^  {page.stem} +(break|build) it  \S")
            for heading in ("# ", "## Hint 1\n", "## Hint 2\n", "## Explanation\n"):
                self.assertEqual(("\n" + text).count("\n" + heading), 1, f"{page}: {heading}")
            # Either a mutant or a list of what is left to do, and not both.
            self.assertNotEqual("\nmutant: " in text, page.with_suffix(".todo").exists(), page)
            if "\nmutant: " in text:
                self.assertIn("Predict first", text, page)

    def test_every_real_exercise_is_named_in_its_chapter_and_no_other(self):
        for chapter in ROOT.glob("steps/*/README.md"):
            for number, name in re.findall(r"tools/exercise (\d\d) (\w+)", chapter.read_text()):
                self.assertEqual(len(list(ROOT.glob(f"steps/{number}_*/exercises/{name}.md"))), 1, f"{number} {name}")
        for page in ROOT.glob("steps/*/exercises/*.md"):
            step = page.parents[1]
            chapter = (step / "README.md").read_text().split("\n## Exercises\n")[1]
            self.assertIn(f"tools/exercise {step.name[:2]} {page.stem}`", chapter, page)

    def test_help_is_the_first_comment(self):
        done = self.exercise("--help")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("Usage: tools/exercise"), done.stdout)
        self.assertNotIn("shellcheck", done.stdout)

    def test_bad_input_is_refused_with_one_sentence(self):
        self.assert_refused(self.exercise("09"), "there is no step '09'")
        self.assert_refused(self.exercise("01"), "01_naive has no exercises that are checked")
        self.assert_refused(self.exercise("01", "gone"), "01_naive has no exercises that are checked")
        self.assert_refused(self.exercise("02", "gonne"), "no exercise 'gonne'; did you mean gone?", "gone three_lines")
        self.assert_refused(self.exercise("02", "gone", "chek"), "'chek' is none of", "did you mean check?")
        self.assert_refused(self.exercise("02", "gone", "check", "now"), "'now' is one argument too many")
        self.assert_refused(self.exercise("02", "gone", "--force"), "unknown argument '--force'", "--restart")
        for arguments in (("--restart",), ("02", "--restart")):
            self.assert_refused(self.exercise(*arguments), "--restart needs to know what", "STEP NAME --restart")
        self.assertFalse((self.repository / "build").exists())
        self.assertFalse((self.repository / "exercises").exists())

    def test_a_start_makes_a_copy_and_says_what_to_do(self):
        done = self.exercise("02", "gone")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.mine.read_text(), KERNEL.replace("int second = 2;\n", ""))
        self.assertIn("02_shared_tile, break it: One line is gone", done.stdout)
        self.assertIn("Predict first: which line?", done.stdout)
        self.assertIn("Edit     exercises/02_shared_tile/gone/kernel.cuh\n", done.stdout)
        self.assertIn("tools/exercise 02 gone check", done.stdout)
        for spoiler in ("Count", "It was the second", "mutant:", "<!--"):
            self.assertNotIn(spoiler, done.stdout)
        self.assertEqual((self.repository / "steps/02_shared_tile/kernel.cuh").read_text(), KERNEL)

    def test_what_is_left_to_do_replaces_everything_between_its_first_and_last_line(self):
        self.assertEqual(self.exercise("02", "three_lines", "start").returncode, 0)
        mine = self.mine.parents[1] / "three_lines/kernel.cuh"
        self.assertEqual(mine.read_text(), "#pragma once\n// Step 02.\n// TODO: three lines.\n")

    def test_edits_are_kept_until_restart(self):
        self.exercise("02", "gone")
        self.mine.write_text("edited\n")
        done = self.exercise("02", "gone")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.mine.read_text(), "edited\n")
        self.assertIn("as you left it; --restart", done.stderr)
        self.assertIn("(started)", self.exercise("02").stdout)
        handed_out = KERNEL.replace("int second = 2;\n", "")
        for number, text in ((1, "edited\n"), (2, "edited again\n")):
            self.mine.write_text(text)
            done = self.exercise("02", "gone", "--restart")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(self.mine.read_text(), handed_out)
            self.assertIn(f"is kept in exercises/02_shared_tile/gone/kernel.cuh.backup-{number}\n", done.stderr)
            self.assertEqual((self.mine.parent / f"kernel.cuh.backup-{number}").read_text(), text)
        self.assertEqual(self.exercise("02", "gone", "--restart").stderr, "")  # nothing was edited
        self.assertEqual(sorted(path.name for path in self.mine.parent.iterdir()),
                         ["kernel.cuh", "kernel.cuh.backup-1", "kernel.cuh.backup-2"])
        self.assertEqual([path.name for path in (self.repository / "exercises").iterdir()], ["02_shared_tile"])

    def test_only_a_start_takes_edits_away(self):
        self.exercise("02", "gone")
        self.mine.write_text("edited\n")
        for action in ("check", "run", "solution"):
            self.assert_refused(self.exercise("02", "gone", "--restart", action), f"--restart does not go with {action}",
                                "tools/exercise 02 gone --restart")
        self.exercise("02", "gone", "hint", "--restart")
        self.assertEqual(self.mine.read_text(), "edited\n")
        self.assertEqual(len(list(self.mine.parent.iterdir())), 2)  # and the count of hints

    def test_copies_are_moved_out_of_the_build_folder(self):
        old = self.repository / "build/exercises/02_shared_tile/gone"
        for _ in range(2):
            old.mkdir(parents=True)
            (old / "kernel.cuh").write_text("edited\n")
            (old / "hints").write_text("1\n")
            (old / ".notes").write_text("mine\n")
            (old / "solved").touch()
            done = self.exercise("02")
            self.assertEqual(done.stderr.splitlines()[-1],
                             "tools/exercise: your copies of 1 exercises were moved from build/exercises to exercises")
            self.assertIn("(solved)", done.stdout)
            self.assertEqual(self.mine.read_text(), "edited\n")
            self.assertFalse((self.repository / "build/exercises").exists())
        self.assertEqual(sorted(path.name for path in self.mine.parent.iterdir()), [".notes", "hints", "kernel.cuh", "solved"])
        self.assertIn("The second", self.exercise("02", "gone", "hint").stdout)
        # Both places have one: neither is lost.
        old.mkdir(parents=True)
        (old / "kernel.cuh").write_text("older\n")
        self.assertIn("kernel.cuh.backup-1", self.exercise().stderr)
        self.assertEqual(self.mine.read_text(), "edited\n")
        self.assertEqual((self.mine.parent / "kernel.cuh.backup-1").read_text(), "older\n")

    def test_the_program_of_an_exercise_is_made_from_that_folder(self):
        self.assertIn('"${PROJECT_SOURCE_DIR}/exercises/${step}/${name}"',
                      (ROOT / "tools/exercise_program/CMakeLists.txt").read_text())
        ignored = subprocess.run(["git", "-C", ROOT, "check-ignore", "exercises/02_shared_tile/tile/kernel.cuh"],
                                 capture_output=True, text=True, check=False)
        self.assertIn(ignored.returncode, (0, 128), ignored.stderr)  # 128: a copy without .git
        self.assertNotIn("steps/02_shared_tile/exercises", subprocess.run(
            ["git", "-C", ROOT, "check-ignore", "steps/02_shared_tile/exercises/tile.md"], capture_output=True, text=True,
            check=False).stdout)

    def test_hints_come_one_by_one_and_again_after_a_restart(self):
        self.assertEqual(self.exercise("02", "gone", "hint").stdout, "Hint 1\n\nCount.\n")
        self.assertEqual(self.exercise("02", "gone", "hint").stdout, "Hint 2\n\nThe second.\n")
        for _ in range(2):
            self.assertIn("tools/exercise 02 gone solution", self.exercise("02", "gone", "hint").stdout)
        self.exercise("02", "gone", "start")
        self.assertIn("Count", self.exercise("02", "gone", "hint", "--restart").stdout)
        self.assertIn("The second", self.exercise("02", "gone", "hint").stdout)
        self.exercise("02", "gone", "--restart")
        self.assertIn("Count", self.exercise("02", "gone", "hint").stdout)

    def test_hints_that_were_not_counted_begin_again(self):
        self.exercise("02", "gone", "start")
        for garbage in (b"garbage\n", b"", b"a[$(touch x)]", b"08", b"-1", b"\xff\x00\n", b"9" * 300):
            (self.mine.parent / "hints").write_bytes(garbage)
            done = self.exercise("02", "gone", "hint")
            self.assertEqual((done.returncode, done.stderr), (0, ""), garbage)
            self.assertIn("those were all" if garbage == b"08" else "hint 1", done.stdout.lower())
        self.assertFalse((self.folder / "x").exists())

    def test_a_changed_kernel_is_named_with_the_line_that_is_missing(self):
        (self.repository / "steps/02_shared_tile/kernel.cuh").write_text(KERNEL.replace("second", "other"))
        done = self.exercise("02", "gone")
        self.assert_refused(done, "02_shared_tile/kernel.cuh was changed", "'old' lines must stand exactly once")
        self.assertFalse(self.mine.exists())
        (self.repository / "steps/02_shared_tile/kernel.cuh").write_text(KERNEL + "int second = 2;\n")
        self.assert_refused(self.exercise("02", "gone"), "must stand exactly once")

    def test_the_solution_is_what_differs_and_why(self):
        for start in (False, True):
            if start:
                self.exercise("02", "gone")
            done = self.exercise("02", "gone", "solution")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("\n+int second = 2;\n", done.stdout)
            self.assertIn("It was the second.", done.stdout)
            self.assertEqual("your kernel.cuh" in done.stdout, start)
        self.mine.write_text(KERNEL)
        self.assertEqual(self.exercise("02", "gone", "solution").stdout,
                         "your kernel.cuh is the step's kernel, to the letter.\n\nIt was the second.\n")

    def test_a_check_needs_a_copy(self):
        self.assert_refused(self.exercise("02", "gone", "check"), "no copy of the kernel yet", "tools/exercise 02 gone")

    def test_a_check_builds_one_program_and_passes_its_answer_on(self):
        self.exercise("02", "gone")
        for status in (3, 1, 0):
            self.fake_build(status)
            done = self.exercise("02", "gone", "check")
            self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (status, "the report"), done.stderr)
            self.assertEqual("(solved)" in self.exercise("02").stdout, status == 0)
        builds = [call for call in self.calls() if call.startswith("cmake --build")]
        self.assertEqual(builds, [f"cmake --build {self.repository}/build/emulator --target exercise_02_gone"] * 3)
        # Edited afterwards, it is no longer known to be solved.
        later = self.mine.stat().st_mtime + 10
        os.utime(self.mine, (later, later))
        self.assertIn("(started)", self.exercise("02").stdout)

    def test_a_run_passes_its_arguments_on_and_solves_nothing(self):
        self.assert_refused(self.exercise("02", "gone", "run"), "no copy of the kernel yet")
        self.exercise("02", "gone")
        self.fake_build(0)
        done = self.exercise("02", "gone", "run", "40x40x72", "--variant", "16", "--restart")
        self.assertEqual(done.stdout, "arguments: 40x40x72 --variant 16 --restart\nthe report\n", done.stderr)
        self.assertEqual(self.exercise("02", "gone", "run").stdout, "arguments: --check\nthe report\n")
        self.assertNotIn("(solved)", self.exercise("02").stdout)

    def test_a_kernel_that_does_not_compile_is_shown_with_its_error(self):
        self.exercise("02", "gone")
        self.fake_build(0, "echo 'kernel.cuh:3: error: no'; exit 1")
        done = self.exercise("02", "gone", "check")
        self.assertEqual(done.returncode, 2)
        self.assertIn("kernel.cuh:3: error: no", done.stderr)
        self.assertNotIn("(solved)", self.exercise("02").stdout)
