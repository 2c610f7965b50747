"""tools/new-step: a step in one command, in a copy of the project."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from sandbox import ROOT


class NewStep(unittest.TestCase):
    def setUp(self):
        self.copy = tempfile.mkdtemp(prefix="gemm-steps-test.")
        self.addCleanup(shutil.rmtree, self.copy)
        files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               capture_output=True, check=True).stdout.split(b"\0")
        for name in filter(None, map(os.fsdecode, files)):
            if (ROOT / name).is_file():
                os.makedirs(os.path.dirname(f"{self.copy}/{name}"), exist_ok=True)
                shutil.copy(ROOT / name, f"{self.copy}/{name}")
        self.git("init", "--quiet")
        self.git("add", "--all")

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.copy, *arguments], capture_output=True, text=True, check=True).stdout

    def changed(self):
        """(the files that are not as they were, the folders and files that are new)."""
        lines = self.git("status", "--short", "--untracked-files=normal").splitlines()
        return {line[3:] for line in lines if line[1] == "M"}, {line[3:] for line in lines if line.startswith("??")}

    def new_step(self, *arguments):
        return subprocess.run([f"{self.copy}/tools/new-step", *arguments], capture_output=True, text=True, check=False)

    def read(self, name):
        with open(f"{self.copy}/{name}", encoding="utf-8") as file:
            return file.read()

    def test_bad_input_is_refused_and_nothing_is_made(self):
        for arguments, part in ((["16", "x", "--from", "15"], "there is a step 16, 16_cluster_multicast"),
                                (["34", "Large", "--from", "33"], "'Large' is not the name of a step"),
                                (["34", "peak", "--from", "33"], "there is a step of that name, 22_peak"),
                                (["3", "x", "--from", "33"], "'3' is not the number of a step"),
                                (["34", "x", "--from", "37"], "there is no step '37' to continue; did you mean"),
                                (["34", "x", "--from", "40"], "40_layouts comes after 34"),
                                (["34", "x", "--from", "33", "--title", 'a "b"'], "the title is one line"),
                                (["34", "x"], "--from"), (["34", "x", "--from", "33", "--bogus"], "--bogus")):
            done = self.new_step(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(part, done.stderr)
        self.assertEqual(self.changed(), (set(), set()))

    def test_what_fails_halfway_leaves_everything_as_it_was(self):
        with open(f"{self.copy}/docs/results.md", "a", encoding="utf-8") as file:
            file.write("<!-- table: nonsense record=docs/results/course_h200.json -->\n<!-- /table -->\n")
        self.git("add", "--all")
        done = self.new_step("34", "softmax_rows", "--from", "33")
        self.assertEqual(done.returncode, 2)
        self.assertIn("tools/tables.py did not accept the new step, and nothing was changed", done.stderr)
        self.assertEqual(self.changed(), (set(), set()))

    def test_it_touches_what_a_command_rewrites_and_nothing_else(self):
        done = self.new_step("79", "smaller_tiles", "--from", "73", "--title", "a tile for a small problem")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.changed(), ({"README.md", "docs/figures/step_map.svg", "docs/results.md", "steps/78_nvfp4/README.md", "steps/steps.json"},
                                          {"steps/79_smaller_tiles/", "tests/mutants/s79/"}))
        kernel = self.read("steps/79_smaller_tiles/kernel.cuh")
        self.assertIn('.title = "a tile for a small problem",\n    .builds_on = "73_roles_two_accumulators",', kernel)
        self.assertNotIn("step_73", kernel)
        described = json.loads(self.read("steps/steps.json"))[-1]
        self.assertEqual((described["name"], described["builds_on"], described["architecture"]),
                         ("79_smaller_tiles", "73_roles_two_accumulators", "100a"))
        self.assertIn("· [79 →](../79_smaller_tiles/README.md)", self.read("steps/78_nvfp4/README.md"))
        self.assertIn("[← 78](../78_nvfp4/README.md)", self.read("steps/79_smaller_tiles/README.md"))
        self.assertIn("[79 smaller tiles](steps/79_smaller_tiles/README.md)", self.read("README.md"))
        self.assertIn("| a tile for a small problem |", self.read("docs/results.md"))
        # The tests of the pages, of the exercises and of the mutants find nothing.
        for test in ("test_markdown.Pages", "test_excerpts.Published", "test_figures.Committed.test_drawings_without_timelines",
                     "test_exercise.Exercise.test_every_real_exercise_is_named_in_its_chapter_and_no_other",
                     "test_exercise.Exercise.test_every_real_exercise_is_listed_and_has_all_its_parts", "test_diff_steps.Budget"):
            done = subprocess.run(["python3", "-m", "unittest", test], cwd=f"{self.copy}/tests/tools", capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": "pages:builds"}, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_new_step_builds_and_passes_and_its_mutant_is_caught(self):
        self.assertEqual(self.new_step("34", "softmax_rows", "--from", "33").returncode, 0)
        # Nothing is optimised, for little runs; and no compiler cache is to keep what lies in a folder that nobody has again.
        environment = {**os.environ, "CCACHE_DISABLE": "1"}

        def run(*command, folder=self.copy):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
            self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-3000:])
            return done.stdout

        run("cmake", "--preset", "emulator", "-DCMAKE_CXX_FLAGS_RELEASE=-O0")
        # The commands of the new step. What a library or a test of every step is made of has been compiled in this repository's build.
        build = f"{self.copy}/build/emulator"
        commands = run("ninja", "-C", build, "-t", "commands", "34_softmax_rows", "tests_mutants_s34", "tests_exercises_34").splitlines()
        for command in commands:
            found = re.search(r" (?:-o|ar qc) (\S+)", command)
            made = found[1] if found else ""
            os.makedirs(os.path.dirname(f"{build}/{made}"), exist_ok=True)
            if made.endswith((".o", ".a")) and "34" not in made and (ROOT / "build/emulator" / made).exists():
                os.symlink(ROOT / "build/emulator" / made, f"{build}/{made}")
            elif command.split()[0] != "ninja:":
                run("sh", "-c", command, folder=build)
        self.assertIn("34_softmax_rows", run("build/emulator/bin/34_softmax_rows", "130x136x72", "--check"))
        described = json.loads(run("build/emulator/bin/34_softmax_rows", "--describe"))
        del described[0]["variants"]
        self.assertIn(described[0], json.loads(self.read("steps/steps.json")))
        run("build/emulator/tests/mutants/tests_mutants_s34")
        run("build/emulator/tests/exercises/tests_exercises_34")
