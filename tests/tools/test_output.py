"""Where the output cannot be written: a full disk, a closed descriptor. A tool says so, does nothing else, and its status is 2."""
import re
import shutil
import subprocess

from generator import python_with
from sandbox import ROOT, SandboxTest

UNWRITABLE = (">/dev/full", ">&-")


class UnwritableOutput(SandboxTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(ROOT / "docs/schemas", self.repository / "docs/schemas")
        shutil.copytree(ROOT / ".ci", self.repository / ".ci")
        (self.repository / "tools/own_kernel/wrong.cpp").write_text("int  not_formatted ;\n")
        (self.repository / "build/emulator/bin").mkdir(parents=True)
        (self.repository / "build/emulator/bin/program").write_text("built\n")
        subprocess.run(["git", "init", "-q", self.repository], check=True, capture_output=True)
        for name in ("clang-format-14", "clang-tidy", "apt-get", "cmake", "ninja", "g++", "ctest"):
            self.fake(name, 'echo "clang-format version 14.0.6; version 3.25.1"')

    def tree(self):
        return {path: path.read_bytes() for path in self.repository.rglob("*") if path.is_file() and ".git" not in path.parts}

    def redirected(self, command, where):
        """Runs it with its output there; standard error is kept."""
        return subprocess.run(["bash", "-c", f'"$@" {where}', "bash", *map(str, command)], env=self.variables(), cwd=self.repository,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)

    def assert_stopped(self, command):
        before = self.tree()
        name = command[-2].relative_to(self.repository)
        for where in UNWRITABLE:
            self.assert_refused(self.redirected(command, where), f"{name}: error: ", "cannot be written")
        self.redirected(command, "| true")
        self.assertEqual(self.tree(), before, command)
        self.assertEqual(self.calls(), [], command)

    def test_a_script_does_nothing_beside_its_help(self):
        scripts = [path for path in sorted([*(self.repository / "tools").iterdir(), self.repository / ".ci/run",
                                            self.repository / "tools/own_kernel/emulate-cc"])
                   if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env bash")]
        self.assertGreater(len(scripts), 16)
        for script in scripts:
            with self.subTest(script=script.name):
                if script.name == "emulate-cc":
                    self.assert_refused(self.redirected([script, "--help"], ">/dev/full"), "cannot be written")
                else:
                    self.assert_stopped([script, "--help"])

    def test_a_full_stderr_leaves_the_status(self):
        for where in ("2>/dev/full", "2>&-", ">&- 2>&-"):
            for status, command in ((2, ["run", "99"]), (2, ["clean", "--bogus"]), (2, ["exercise", "01", "nothing"]),
                                    (2, ["records", "csv", "nothing.json"]), (1, ["records", "check", "nothing.json"])):
                if command[0] == "records" and where.startswith(">&-"):
                    continue  # which csv needs
                done = self.redirected([python_with("jsonschema"), "-B"] * (command[0] == "records") +
                                       [self.repository / "tools" / command[0], *command[1:]], where)
                self.assertEqual((done.returncode, done.stdout), (status, ""), command)
        self.assertEqual(self.shell("exec 2>/dev/full; note a; echo on").stdout, "on\n")

    def test_lists_that_cannot_be_written_are_told_in_one_sentence(self):
        (self.bin / "diff").symlink_to(shutil.which("diff"))
        for command in (["run"], ["diff-steps"], ["diff-steps", "02"], ["profile", "01", "--dry"], ["exercise"], ["clean", "--dry"]):
            for where in UNWRITABLE:
                done = self.redirected([self.repository / "tools" / command[0], *command[1:]], where)
                if command != ["exercise"]:  # no step of this copy has any
                    self.assert_refused(done, f"tools/{command[0]}: error: ", "cannot be written")

    def test_what_a_record_holds_needs_an_output(self):
        record = ROOT / "docs/results/suite_h200.json"
        for command in (["check", record], ["csv", record], ["diff", record, record]):
            done = self.redirected([python_with("jsonschema"), "-B", self.repository / "tools/records", *command], ">&-")
            self.assert_refused(done, "tools/records: error: the output cannot be written")

    def test_a_python_tool_does_nothing_beside_its_help(self):
        tools = [path for path in sorted([*(self.repository / "tools").iterdir(), *(self.repository / "tools/figures").iterdir()])
                 if path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python3") and
                 re.search(r"(?m)^    (sys\.exit|figure_program|figures\.plot_records)\(", path.read_text(encoding="utf-8"))]
        self.assertGreater(len(tools), 30)
        for tool in tools:
            with self.subTest(tool=tool.name):
                self.assert_stopped([python_with("jsonschema"), "-B", tool, "--help"])


class Signals(SandboxTest):
    """A program of ours that a signal ends: one sentence and status 2, and none of bash's own words."""

    def test_a_program_that_dies_is_told_in_one_sentence(self):
        for signal, said in (("SEGV", "SIGSEGV: it touched memory"), ("ABRT", "SIGABRT: "), ("KILL", "SIGKILL: the memory did not suffice"),
                             ("FPE", "SIGFPE: a division by zero"), ("USR1", "signal USR1")):
            done = self.shell(f"run_program 'the program' bash -c 'echo first; kill -{signal} $$; sleep 5'")
            self.assertEqual((done.returncode, done.stdout), (2, "first\n"))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith(f"tools/probe: error: the program was ended by {said}"), done.stderr)

    def test_other_ends_pass(self):
        for status in (0, 1, 2, 3, 130, 141):
            done = self.shell(f"run_program 'the program' bash -c 'echo out; echo err >&2; exit {status}'")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, "out\n", "err\n"))
